import assert from "node:assert/strict";
import { test } from "node:test";
import { blit, keptLine, labelPlaces, runs, stackOf, widen, type Frame, type Paint, type Run } from "../src/picture/blit.ts";
import { timeTicks } from "../src/rail/axes.ts";
import { noteRows } from "../src/rail/layout.ts";
import { decodeTile, type Tile } from "../src/base/wire.ts";

/** Encodes a tile of bands as WIRE.md has it. */
function encodeBands(level: number, first: number, columns: { max: number; min?: number; reserved?: number; heights: number[] }[], ids: number[]): ArrayBuffer {
  const n = columns.length;
  const parts: (Uint32Array | Int32Array | Float32Array | Float64Array)[] = [
    Uint32Array.from({ length: n }, (_, c) => (first + c) * 2 ** level),
    Uint32Array.from({ length: n }, (_, c) => (first + c) * 2 ** level),
    Uint32Array.of((first + n) * 2 ** level),
    Float64Array.from(columns, (c) => c.max),
    Float64Array.from(columns, (c) => c.min ?? c.max),
    Float64Array.from(columns, (c) => c.max),
    Float64Array.from(columns, (c) => c.reserved ?? c.max),
    Int32Array.from(ids),
    Uint32Array.from(ids, () => 1),
    Float32Array.from(ids.flatMap((_, e) => columns.map((c) => c.heights[e]!))),
  ];
  const padded = (n: number): number => (n + 7) & ~7;
  const buf = new ArrayBuffer(parts.reduce((sum, p) => sum + padded(p.byteLength), 64));
  const view = new DataView(buf);
  view.setUint32(0, 0x534c5431);
  view.setUint8(4, 1);
  view.setUint8(6, level);
  view.setUint32(8, n, true);
  view.setUint32(12, ids.length, true);
  view.setFloat64(16, first, true);
  let at = 64;
  for (const p of parts) {
    new Uint8Array(buf, at).set(new Uint8Array(p.buffer));
    at += padded(p.byteLength);
  }
  return buf;
}

const tile = (level: number, first: number, max: number[]): Tile => decodeTile(encodeBands(level, first, max.map((m) => ({ max: m, heights: [m / 2, m / 2] })), [0, 1]));

const paint = (): Paint => ({
  background: 1, grid: 2, spare: 3, total: 4, top: 5, kept: 6, low: 7,
  band: Uint32Array.of(10, 11), band2: Uint32Array.of(20, 21), edge: Uint32Array.of(30, 31), strip: [40, 41, 42], keptBands: 1, pendingFrom: 2,
});

const frame = (width: number, height: number, top: number, win: [number, number]): Frame => ({ width, height, win, top, gridAt: [], scale: 1 });

test("a tile is read as it was written", () => {
  const t = tile(3, 256, [8, 16, 4]);
  assert.equal(t.kind, "band");
  assert.deepEqual([t.level, t.first, t.n, t.m], [3, 256, 3, 2]);
  assert.deepEqual([...t.max], [8, 16, 4]);
  assert.deepEqual([...t.events], [2048, 2056, 2064, 2072]);
  assert.deepEqual(stackOf(t, 1).map((d) => [d.band, d.from, d.bytes]), [[0, 0, 8], [1, 8, 8]]);
  assert.equal(keptLine(t, 1, 1), 8);
  assert.throws(() => decodeTile(new ArrayBuffer(10)), /not a tile/);
});

test("every bucket of the level gets a pixel", () => {
  const t = tile(0, 0, Array.from({ length: 100 }, (_, i) => i));
  for (const width of [100, 137, 199, 400]) {
    const rs = runs([0, 100], width, 0, 0, () => t);
    assert.deepEqual(rs.map((r) => r.c), Array.from({ length: 100 }, (_, i) => i));
    assert.equal(rs[0]!.x0, 0);
    assert.equal(rs.at(-1)!.x1, width);
    rs.slice(1).forEach((r, i) => assert.equal(r.x0, rs[i]!.x1));
  }
});

test("a missing tile is stood in for by a coarser one", () => {
  const coarse = tile(2, 0, [1, 2, 3, 4]);
  const rs = runs([0, 16], 16, 0, 4, (level) => (level === 2 ? coarse : undefined));
  assert.deepEqual(rs.map((r) => [r.c, r.x0, r.x1]), [[0, 0, 4], [1, 4, 8], [2, 8, 12], [3, 12, 16]]);
});

test("the last bucket has a pixel though it is cut short", () => {
  const t = tile(2, 0, Array.from({ length: 623 }, (_, i) => i));
  const rs = runs([0, 2489], 946, 2, 2, () => t); // the last event is alone in its bucket
  assert.deepEqual(rs.map((r) => r.c), Array.from({ length: 623 }, (_, i) => i));
  assert.deepEqual([rs[0]!.x0, rs.at(-1)!.x1], [0, 946]);
  for (const [i, r] of rs.entries()) assert.ok(i === 0 || r.x0 === rs[i - 1]!.x1, "without a gap");
});

test("a spike of one bucket is three pixels wide", () => {
  const t = tile(0, 0, [10, 10, 90, 10, 10]);
  const rs = runs([0, 5], 5, 0, 0, () => t);
  widen(rs, 5);
  const spike = rs.find((r) => r.c === 2)!;
  assert.equal(spike.x1 - spike.x0, 3);
  const flat = runs([0, 5], 5, 0, 0, () => tile(0, 0, [10, 11, 12, 11, 10]));
  const before = structuredClone(flat.map((r) => [r.x0, r.x1]));
  widen(flat, 5);
  assert.deepEqual(flat.map((r) => [r.x0, r.x1]), before);
});

test("pixels show each band's bytes, the top line its sum, and reserved above it", () => {
  const t = decodeTile(encodeBands(0, 0, [{ max: 60, reserved: 80, heights: [40, 20] }], [0, 1]));
  const f = frame(4, 100, 100, [0, 1]);
  const px = new Uint32Array(400);
  blit(px, f, [{ x0: 0, x1: 4, tile: t, c: 0 }], paint());
  const column = Array.from({ length: 100 }, (_, y) => px[y * 4]!).reverse(); // from below
  assert.ok(column.slice(0, 37).every((v) => v === 10), "kept");
  assert.ok(column.slice(41, 58).every((v) => v === 11), "freed");
  assert.equal(column[59], 5, "top line");
  assert.ok(column.slice(60, 80).every((v) => v === 3), "reserved and not in use");
  assert.ok(column.slice(80).every((v) => v === 1), "not reserved");
  assert.ok(column.slice(38, 42).includes(6), "kept line");
});

test("a strip of small bands has the color of its fate", () => {
  const t = decodeTile(encodeBands(0, 0, [{ max: 60, heights: [30, 30] }], [-1, -2]));
  const px = new Uint32Array(100);
  blit(px, frame(1, 100, 100, [0, 1]), [{ x0: 0, x1: 1, tile: t, c: 0 }], paint());
  assert.equal(px[95], 40);
  assert.equal(px[55], 41);
});

test("labels stand inside their band", () => {
  const t = decodeTile(encodeBands(0, 0, Array.from({ length: 100 }, (_, i) => ({ max: 100, heights: i < 50 ? [5, 95] : [40, 60] })), [0, 1]));
  const f = frame(100, 100, 100, [0, 100]);
  const rs: Run[] = runs([0, 100], 100, 0, 0, () => t);
  const places = labelPlaces(rs, f, 2, () => 20, 15);
  const low = places.find((p) => p.band === 0)!;
  assert.ok(low.x >= 48, "band 0 is high enough only on the right");
  assert.ok(low.y > 60 && low.y < 100);
  assert.equal(places.find((p) => p.band === 1)!.x, 0);
  assert.deepEqual(labelPlaces(rs, f, 2, () => 200, 15), []);
});

test("annotations inside each other get rows of their own", () => {
  const s = (from: number, to: number, lane = "notes") => ({ lane, from, to });
  assert.deepEqual(noteRows([s(0, 10), s(2, 5), s(5, 8), s(0, 9, "steps"), s(12, 14)]), { rows: 2, row: [0, 1, 1, -1, 0] });
});

test("ticks of folded time are round on both sides of a fold", () => {
  const at = timeTicks([0, 300e3], 100e3, [{ at: 150e3, us: 1e6 }]);
  assert.deepEqual(at.map(([, label]) => label), ["0", "0.1 s", "1.2 s", "1.3 s"]);
  assert.equal(at[2]![0], 200e3);
});
