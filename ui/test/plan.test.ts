import assert from "node:assert/strict";
import { test } from "node:test";
import { bars, colorOf } from "../src/plan/bars.ts";
import { groups, names } from "../src/plan/form.ts";
import { command, decode, encode, set, turn } from "../src/plan/state.ts";
import { layers } from "../src/plan/step.ts";
import { billions, counts, requests, sizes, ticks, times } from "../src/plan/words.ts";
import type { Field, Mode, Part } from "../src/plan/wire.ts";

const GiB = 2 ** 30;
const field = (name: string, kind: Field["kind"] = "string", standard = ""): Field => ({ name, help: "", kind, default: standard, choices: [] });
const fields: Record<Mode, Field[]> = {
  serve: [field("model"), field("gpu"), field("gpus", "int64", "1"), field("eager", "bool", "false"), field("tp", "int64", "0")],
  train: [field("model"), field("gpu"), field("gpus", "int64", "1"), field("seq", "int64", "4096")],
  rl: [field("model"), field("gpu"), field("gpus", "int64", "1"), field("seq", "int64", "4096"), field("rollout-tp", "int64", "1")],
};

test("the address holds a set-up, and what no mode has is left out", () => {
  const asked = { mode: "serve" as Mode, flags: { model: "./a model & co", gpus: "16", eager: "true" } };
  assert.deepEqual(decode(encode(asked), fields), asked);
  assert.deepEqual(decode("#mode=serve&model=m&check=/etc/passwd&__proto__=x", fields), { mode: "serve", flags: { model: "m" } });
  assert.equal(decode("#mode=toString&model=m", fields).mode, "serve");
  assert.ok(decode("", fields).flags.model, "a page without a set-up begins with one");
});

test("a flag is given only where it differs from the command's own", () => {
  const asked = { mode: "serve" as Mode, flags: { model: "m", gpus: "8" } };
  assert.deepEqual(set(asked, fields.serve[2]!, "1").flags, { model: "m" });
  assert.deepEqual(set(asked, fields.serve[2]!, "").flags, { model: "m" });
  assert.deepEqual(set(asked, fields.serve[2]!, "4").flags, { model: "m", gpus: "4" });
});

test("another mode keeps the model and the GPUs", () => {
  const there = turn({ mode: "serve", flags: { model: "m", gpu: "L4", gpus: "2", tp: "2" } }, "train", fields);
  assert.deepEqual(there, { mode: "train", flags: { model: "m", gpu: "L4", gpus: "2" } });
});

test("the command can be pasted into a shell", () => {
  const text = command({ mode: "serve", flags: { model: "./it's $(here)", gpus: "2", eager: "true" } }, fields.serve);
  assert.equal(text, "strandline plan --model './it'\\''s $(here)' --gpus 2 --eager");
  assert.equal(command({ mode: "rl", flags: { model: "Qwen/Qwen3-8B" } }, fields.rl), "strandline plan rl --model Qwen/Qwen3-8B");
});

test("an error marks the fields that it names", () => {
  assert.ok(names("16 GPUs are not TP 7 × PP 2", "tp") && names("16 GPUs are not TP 7 × PP 2", "train-pp"));
  assert.ok(names("--max-model-len 0 is out of range", "max-model-len"));
  assert.ok(!names("--gpus 0: want a number above 0", "gpu") && !names("no HTTP 2", "tp") && !names("", "ep"));
});

test("no field stands in a form twice", () => {
  for (const [mode, list] of Object.entries(groups)) {
    const names = list.flatMap(([, some]) => some.map(([name]) => name));
    assert.equal(new Set(names).size, names.length, mode);
  }
});

test("a range of sizes names a unit once", () => {
  assert.equal(sizes(81.7 * GiB, 88 * GiB), "81.7–88 GiB");
  assert.equal(sizes(172 * 2 ** 20, 2.69 * GiB), "172 MiB–2.69 GiB");
  assert.equal(sizes(GiB, GiB + 1), "1 GiB");
  assert.equal(counts([5, 5]), "5");
  assert.equal(requests([6.04, 6.01]), "6.0");
  assert.equal(times([65_100, 83_100]), "65–83 ms");
  assert.equal(times([900, 1_100]), "900 µs–1.1 ms");
  assert.deepEqual([671e9, 1.03e12, 124e6].map(billions), ["671B", "1.03T", "124M"]);
});

test("an axis has round steps that reach its end", () => {
  for (const most of [3, 23.6, 79.1, 140, 268, 5000]) {
    const list = ticks(most * GiB, 7);
    assert.ok(list.length >= 4 && list.length <= 9, `${most}: ${list.length} marks`);
    assert.ok(list.at(-1)! <= most * GiB && list.at(-1)! + list[1]! > most * GiB);
  }
});

const part = (name: string, low: number, high = low): Part => ({ name, low_bytes: low, high_bytes: high });

test("a bar begins in the middle of the end of the one before it", () => {
  assert.deepEqual(bars([part("weights", 10), part("KV cache", 20, 30), part("slack", 5)]).map((b) => b.left), [0, 10, 35]);
  assert.equal(colorOf("slack", 5), "rest");
});

test("phases are stacked in one order, what is sure below what may come", () => {
  const components = [part("trainer weights", 3), part("optimizer", 4), part("rollout KV cache", 9, 11)];
  const phase = { name: "rollout", low_bytes: 13, high_bytes: 18, components: [part("rollout KV cache", 9, 11), part("optimizer", 4, 7), part("sync buffers", 0, 0)] };
  const stack = layers(phase, components);
  assert.deepEqual(stack.map((l) => [l.name, l.bottom, l.bytes, l.may]), [["optimizer", 0, 4, false], ["rollout KV cache", 4, 9, false], ["optimizer", 13, 3, true], ["rollout KV cache", 16, 2, true]]);
  assert.equal(stack.at(-1)!.bottom + stack.at(-1)!.bytes, phase.high_bytes);
});
