import assert from "node:assert/strict";
import { test } from "node:test";
import { lastAt } from "../src/base/scale.ts";
import { decodeRun, highest } from "../src/session/runs.ts";
import { conf, parts } from "../src/whatif/conf.ts";

test("a run is read as it was written", () => {
  const text = new TextEncoder().encode(JSON.stringify({ settings: "expandable_segments:True", peak_reserved_bytes: 40 }));
  const buf = new ArrayBuffer(16 + 16 + 3 * 8 + 8 + 4 * 2 * 8 + text.length);
  const view = new DataView(buf);
  view.setUint32(0, 0x534c4331);
  for (const [at, n] of [[4, 3], [8, 2], [12, text.length]] as const) view.setUint32(at, n, true);
  [-1, 5, 9].forEach((k, i) => view.setInt32(16 + 4 * i, k, true));
  [10, 40, 20].forEach((v, i) => view.setFloat64(32 + 8 * i, v, true));
  [0, 9].forEach((k, i) => view.setInt32(56 + 4 * i, k, true));
  [10, 20, 8, 12, 9, 15, 1, 2].forEach((v, i) => view.setFloat64(64 + 8 * i, v, true));
  new Uint8Array(buf, 128).set(text);
  const run = decodeRun(buf);
  assert.deepEqual([[...run.steps.event], [...run.steps.bytes]], [[-1, 5, 9], [10, 40, 20]]);
  assert.deepEqual([[...run.looks], [...run.unused], [...run.stranded]], [[0, 9], [2, 8], [1, 2]]);
  assert.equal(run.outcome.peak_reserved_bytes, 40);
  assert.throws(() => decodeRun(new ArrayBuffer(4)), /not a run/);
});

test("a column shows the highest that a run has in it", () => {
  const events = Int32Array.of(-1, 5, 6, 9);
  const bytes = Float64Array.of(10, 40, 30, 20);
  for (const [from, to, want] of [[0, 5, 10], [0, 6, 40], [6, 9, 30], [6, 10, 30], [9, 20, 20], [100, 101, 20]] as const) assert.equal(highest(events, bytes, from, to), want, `${from} to ${to}`);
  assert.deepEqual([-2, -1, 4, 5, 100].map((k) => lastAt(events, k)), [-1, 0, 0, 1, 3]);
});

test("settings go through their fields and back", () => {
  for (const text of ["", "expandable_segments:True", "max_split_size_mb:128,roundup_power2_divisions:4", "backend:native,garbage_collection_threshold:0.8"]) assert.deepEqual(parts(conf(parts(text))), parts(text));
  const list = "roundup_power2_divisions:[256:1,512:2,>:4],expandable_segments:True";
  assert.deepEqual(parts(list), { expandable: true, split: "", roundup: "", collect: "", others: ["roundup_power2_divisions:[256:1,512:2,>:4]"] });
  assert.equal(conf(parts(list)), list);
  assert.equal(conf({ ...parts(list), expandable: false, split: "64" }), "roundup_power2_divisions:[256:1,512:2,>:4],max_split_size_mb:64");
});
