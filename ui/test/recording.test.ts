import assert from "node:assert/strict";
import { test } from "node:test";
import { timeStep } from "../src/base/scale.ts";
import { edgesOf, flameOf, groupsOf, heldBy, layersOf, others, Slice, tileOf } from "../src/recording/bands.ts";
import { address, first, type State } from "../src/recording/state.ts";
import type { Recording, Stack, Window } from "../src/base/api.ts";
import type { Frame } from "../src/base/wire.ts";

const frame = (name: string, line = 0): Frame => ({ file: `/srv/${name}`, line, function: name, origin: line ? "own" : "native" });

const stack = (id: number, key: string, grows: boolean, from: number, frames: Frame[]): Stack => ({
  id, key, label: `label ${key}`, slot: id, call: "mmap", complete: true, grows, peak_bytes: 100, first_seconds: from, last_seconds: 9,
  resident_bytes: null, assumed_bytes: 0, made_bytes: 0, calls: 0, frames, frames_left_out: 0,
});

// Two stacks of one line, of which one grows; one of another line; one that was not copied; others.
const recording = {
  moments: 4,
  stacks: [
    stack(1, "a", true, 1, [frame("inner"), frame("leak", 7), frame("main", 99)]),
    stack(2, "a", false, 0, [frame("other"), frame("leak", 7), frame("main", 99)]),
    stack(3, "b", false, 2, [frame("rest", 8), frame("main", 99)]),
    stack(0, "", false, 0, []),
  ],
  others: 5,
} as unknown as Recording;

const window = {
  from: 10, to: 16, moment: [10, 12, 14, 16], seconds: [1, 2, 4, 8], rss_bytes: [5, 5, 5, 5], anonymous_bytes: [0, 10, 20, 60], file_bytes: [0, 0, 5, -5], shared_bytes: [0, 0, 0, 1],
  drops: [0, 0, 0, 0], live_bytes: [18, 27, 47, 97],
  stacks: [{ at: [0, 1, 3], bytes: [10, 20, 80], count: [1, 2, 8] }, { at: [0, 2], bytes: [2, 4], count: [1, 1] }, { at: [1, 2, 3], bytes: [0, 16, 6], count: [0, 1, 1] }, { at: [], bytes: [], count: [] }, { at: [0, 1], bytes: [6, 7], count: [3, 3] }],
  owners: [],
} as Window;

const slice = new Slice(window);

test("a course holds until it changes", () => {
  assert.deepEqual([...slice.stacks[0]!.bytes], [10, 20, 20, 80]);
  assert.deepEqual([...slice.stacks[2]!.bytes], [0, 0, 16, 6]);
  assert.deepEqual([...slice.stacks[3]!.bytes], [0, 0, 0, 0]);
  assert.deepEqual([...slice.growth], [0, 10, 25, 56]);
});

test("a moment is seen half-way to its neighbors", () => {
  assert.deepEqual([...slice.edges], [1, 1.5, 3, 6, 8]);
  assert.deepEqual([0, 1, 1.5, 2.9, 6, 99].map((t) => slice.at(t)), [0, 0, 1, 1, 3, 3]);
  assert.deepEqual([9, 10, 11, 12, 99].map((k) => slice.column(k)), [0, 0, 0, 1, 3]);
  assert.deepEqual([...edgesOf([7])], [7, 8]);
  assert.deepEqual([...edgesOf([7, 7])], [7, 7, 8]);
  assert.equal(edgesOf([]).length, 1);
});

test("groups by line and by stack hold the same in all", () => {
  for (const by of ["line", "stack"] as const) {
    const groups = groupsOf(recording, by);
    assert.equal(groups.length, by === "line" ? 4 : 5);
    for (let c = 0; c < slice.n; c++) assert.equal(groups.reduce((n, g) => n + heldBy(g, slice, c).bytes, 0), slice.stacks.reduce((n, s) => n + s.bytes[c]!, 0));
    assert.equal(groups.at(-1)!.key, others);
  }
  const [a] = groupsOf(recording, "line");
  assert.deepEqual([a!.grows, a!.first, a!.last, a!.stacks], [true, 0, 9, [0, 1]]);
});

test("what grows lies below, and what came first below what came later", () => {
  const layers = layersOf(recording, groupsOf(recording, "line"), 1000);
  assert.deepEqual(layers.stacks, [[0], [1], [3], [2], [4]]);
  assert.deepEqual(layersOf({ ...recording, stacks: recording.stacks.map((s) => (s.id === 2 ? { ...s, peak_bytes: 2000 } : s)) }, layers.groups, 1000).stacks, [[0], [3], [2], [4], [1]], "address space lies above all");
  assert.deepEqual([layers.bands.kept, layers.bands.bands.map((b) => b.fate)], [1, ["kept", "freed", "freed", "freed", "freed"]]);
  const whole = tileOf(slice, layers, null);
  assert.deepEqual([...whole.max], [18, 29, 47, 97]);
  assert.deepEqual([...whole.reserved], [0, 10, 25, 56]);
  assert.deepEqual([...tileOf(slice, layers, "a").max], [12, 22, 24, 84], "alone");
});

test("a flame holds each stack below its callers, and nothing that shrank", () => {
  const flame = flameOf(recording, [{ bytes: 50, count: 2 }, { bytes: 10, count: 1 }, { bytes: -4, count: 0 }, { bytes: 7, count: 1 }, { bytes: 3, count: 9 }]);
  assert.deepEqual([flame.bytes, flame.count], [70, 13]);
  const name = (i: number): string => (flame.nodes.frame[i]! < 0 ? String(flame.nodes.frame[i]) : flame.frames[flame.nodes.frame[i]!]!.function);
  const drawn = flame.nodes.frame.map((_, i) => [name(i), flame.nodes.bytes[i]]);
  assert.deepEqual(drawn, [["-1", 70], ["main", 60], ["leak", 60], ["inner", 50], ["other", 10], ["-5", 10]]);
  for (let i = 1; i < drawn.length; i++) assert.ok(flame.nodes.parent[i]! < i);
});

test("steps of time are round, and few enough", () => {
  for (const [length, n, want] of [[20, 10, 2], [100, 10, 10], [3600, 8, 600], [0.004, 4, 0.001], [86400 * 30, 10, 3 * 86400]] as const) {
    assert.equal(timeStep([0, length], n), want);
  }
});

test("the address holds the state, and nothing that cannot be", () => {
  const state: State = { ...first, view: "stacks", g: "stack", k: 7, range: [3, 9], of: "range", y: "resident", win: [1.25, 8], sel: "0af", alone: true, stack: 4, gpu: 1, finding: 2, q: "a|b c&d#" };
  assert.deepEqual(address.decode(address.encode(state)), state);
  assert.equal(address.encode(first), "");
  assert.deepEqual(address.decode("#v=x&g=y&k=-1&r=9-3&w=2-x&y=z&z=2&st=1e9&of=all&unknown=1"), first);
});
