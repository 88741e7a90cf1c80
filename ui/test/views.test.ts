import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { flow, rowBytes, sections, type Heap } from "../src/allocator/heap.ts";
import type { Process } from "../src/base/api.ts";
import { acrossOf, separate } from "../src/compare/compare.ts";
import { short } from "../src/base/format.ts";
import { align } from "../src/compare/strips.ts";
import { settingOf } from "../src/findings/findings.ts";
import { holders, holderWords } from "../src/findings/words.ts";
import { layout } from "../src/picture/icicle.ts";
import { places } from "../src/sites/sites.ts";
import { fold } from "../src/base/stack.ts";
import { sorted, type Row } from "../src/base/table.ts";
import { traceTerms, watchTerms } from "../src/base/hostterms.ts";
import { terms } from "../src/base/terms.ts";
import type { Flame, Frame } from "../src/base/wire.ts";

const frame = (name: string, origin: Frame["origin"]): Frame => ({ file: `/x/${name}.py`, line: 1, function: name, origin });

// main ─ step ─ lib1 ─ lib2 ─ own2, and main itself again below lib3.
const flame: Flame = {
  bytes: 100,
  count: 5,
  frames: [frame("main", "own"), frame("step", "own"), frame("lib1", "torch"), frame("lib2", "library"), frame("own2", "own"), frame("lib3", "torch")],
  nodes: { frame: [-1, 0, 1, 2, 3, 4, 5, 0], parent: [-1, 0, 1, 2, 3, 4, 1, 6], bytes: [100, 100, 70, 70, 70, 60, 20, 20], count: [5, 5, 3, 3, 3, 2, 1, 1] },
  left_out: 0,
};

test("an icicle keeps each box inside its parent, and folds chains of library frames", () => {
  for (const folded of [true, false]) {
    const boxes = layout(flame, folded);
    assert.equal(boxes.length, folded ? 7 : 8);
    for (const b of boxes.slice(1)) {
      const above = boxes[b.parent]!;
      assert.ok(b.x >= above.x && b.x + b.bytes <= above.x + above.bytes);
      assert.equal(b.depth, above.depth + 1);
    }
  }
  assert.deepEqual(layout(flame, true).filter((b) => b.folded > 1).map((b) => b.folded), [2]);
});

test("a place counts once a stack, and itself only where it is innermost", () => {
  const rows = new Map(places(flame, "line").map((r) => [r.label, r]));
  assert.deepEqual([rows.get("main.py:1 main")!.bytes, rows.get("main.py:1 main")!.self], [100, 30]);
  assert.deepEqual([rows.get("own2.py:1 own2")!.bytes, rows.get("own2.py:1 own2")!.self], [60, 60]);
  assert.equal([...rows.values()].reduce((n, r) => n + r.self, 0), flame.bytes);
});

test("library frames fold, own ones stand alone, unknown ones are left", () => {
  const own = frame("a", "own");
  const lib = frame("b", "torch");
  assert.deepEqual(fold([own, lib, lib, own, own]).map((r) => r.frames.length), [1, 2, 1, 1]);
  const { origin: _, ...unknown } = lib;
  assert.deepEqual(fold([unknown, unknown]).map((r) => r.frames.length), [1, 1]);
});

const heap = (sizes: [size: number, used: number, type: string][]): Heap => ({
  event: 0, exact: true, notes: [], reserved: 0, allocated: 0, pending: 0, slack: 0, free: 0, releasable: 0, stranded: 0,
  segments: sizes.map(([size, , type], i) => ({ address: `0x${(i + 1).toString(16)}000`, size, pool: "default", private: false, stream: 0, type, expandable: false, first: 2 * i, blocks: 2, releasable: 0, ranges: [], stranded: 0, stack: -1 })),
  stacks: [],
  blocks: { offset: sizes.flatMap(([, used]) => [0, used]), size: sizes.flatMap(([size, used]) => [used, size - used]), requested: [], state: sizes.map(([, used]) => (used ? "af" : "ff")).join(""), alloc: [], group: [] },
  strands: [], takers: [], changed: null,
});

test("segments flow over rows without losing a byte", () => {
  const h = heap([[3 << 20, 1 << 20, "large"], [5 << 20, 1, "large"], [2 << 20, 0, "large"], [1 << 18, 1000, "small"]]);
  const [large, small] = sections(h, false) as [ReturnType<typeof sections>[0], ReturnType<typeof sections>[0]];
  assert.deepEqual(large.folded, [2]);
  const row = rowBytes(h, [large, small], 4);
  assert.equal(row, 4 << 20);
  flow(h, large, row, 0);
  for (const i of large.segments) assert.equal(large.pieces.filter((p) => p.segment === i).reduce((n, p) => n + p.bytes, 0), h.segments[i]!.size);
  assert.ok(large.pieces.every((p) => p.x + p.bytes <= row));
  assert.equal(large.pieces.filter((p) => p.open).length, 1, "the second segment goes on in the next row");
  flow(h, small, row, 0);
  assert.equal(small.magnified, 16);
  assert.equal(small.rows, 1);
});

test("rows sort by a column, either way", () => {
  const rows = [3, 1, 2].map((v) => ({ key: String(v), label: "", slot: 0, v }));
  const columns = [{ name: "v", of: (r: Row & { v: number }) => r.v, show: () => "" }];
  assert.deepEqual(sorted(rows, columns, 0, false).map((r) => r.v), [3, 2, 1]);
  assert.deepEqual(sorted(rows, columns, 0, true).map((r) => r.v), [1, 2, 3]);
  assert.deepEqual(sorted(rows, columns, -1, false), rows);
});

test("file names are cut to what differs", () => {
  const names = ["w12.step2.pickle", "w12.step3.pickle"];
  assert.deepEqual(names.map((n) => short(n, names)), ["step2", "step3"]);
  assert.equal(short("only.pickle", ["only.pickle"]), "only.pickle");
  assert.equal(short("same", ["same", "same"]), "same");
});

test("processes are put beside each other by site", () => {
  const site = (key: string, bytes: number[]) => ({ key, file: "a.py", line: 1, function: "f", bytes, count: bytes, survivors: 1, bytes_per_step: 1 });
  const group = (f: number, ...sites: Process["sites"]): Process => ({ process: `rank${f}`, files: [{ f: 9 }, { f }], sites, survivors: [] });
  const all = acrossOf([group(0, site("a", [9, 10]), site("b", [1, 2])), group(1, site("b", [3, 30]))]);
  assert.deepEqual(all.files.map((v) => v.f), [0, 1]);
  assert.deepEqual(all.sites.map((s) => [s.key, s.bytes, s.bytes_per_step]), [["b", [2, 30], 28], ["a", [10, 0], 10]]);
});

test("remedies that are settings of the allocator are distinguished from others", () => {
  const want: [string, string | null][] = [["PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "expandable_segments:True"], ["export PYTORCH_ALLOC_CONF=max_split_size_mb:128,expandable_segments:True", "max_split_size_mb:128,expandable_segments:True"], ["import torch\nfor step in range(4):", null], ["NCCL_BUFFSIZE=1048576", null]];
  for (const [text, conf] of want) assert.equal(settingOf(text), conf, text);
});

test("histories that overlap stand on one axis", () => {
  const device = (events: number, from: number, to: number) => ({ events, time: { start_us: from, end_us: to, span: to - from, folds: [] } });
  assert.deepEqual(align([device(100, 0, 10), device(50, 20, 30)], [null, null], true), { offsets: [0, 0], how: "each file from its first event" }, "two runs are not a staircase");
  assert.deepEqual(align([device(100, 0, 10), device(150, 0, 15)], [null, 100]).offsets, [0, 0], "a history that only grew");
  assert.deepEqual(align([device(100, 0, 10), device(100, 4, 14), device(100, 8, 18)], [null, 60, 60]).offsets, [0, 40, 80], "a ring that moves on");
  const gap = align([device(100, 0, 10), device(50, 20, 30)], [null, null]);
  assert.deepEqual(gap.offsets, [0, 100]);
  assert.match(gap.how, /left out/);
  assert.deepEqual(align([{ events: 100, time: null }, { events: 150, time: null }], [null, null]), { offsets: [0, 0], how: "each file from its first event" });
});

test("files of which nothing lives on are separate runs", () => {
  const of = (...bytes: number[][]): Process => ({ process: null, files: [], sites: [], survivors: [{ device: 0, bytes, event: [] }] });
  assert.equal(separate(of([9, 0], [0, 5])), true);
  assert.equal(separate(of([9, 4], [4, 5])), false);
  assert.equal(separate(of([9, 0, 0], [0, 5, 2], [0, 2, 7])), false);
  assert.equal(separate({ process: null, files: [], sites: [], survivors: [] }), false, "of many files nothing is known");
});

test("who keeps tensors is shown with its graph and its line", () => {
  const held = holders({ held_by: [{ kind: "autograd", path: "meter.total", share: 1, file: "/a/train.py", line: 17, node: "AddBackward0", chain_length: 20000, grew: 5000 }, { kind: "native", path: "no Python object", share: 0.1 }] });
  assert.deepEqual(held.map(holderWords), ["ends a chain of 20,000 AddBackward0, 5,000 more than in the snapshot before · train.py:17", ""]);
  assert.deepEqual(holders({}), []);
});

test("every term of the page is one of the glossary", () => {
  const glossary = new Set([...readFileSync("../docs/glossary.md", "utf8").matchAll(/^\| (.*?) \|/gm)].flatMap((row) => [...row[1]!.matchAll(/\*\*([^*]+)\*\*/g)].map((m) => m[1]!)));
  assert.ok(glossary.has("reserved"));
  assert.deepEqual(Object.keys({ ...terms, ...traceTerms, ...watchTerms }).filter((t) => !glossary.has(t) && !glossary.has(t.replace(/s$/, ""))), []);
});
