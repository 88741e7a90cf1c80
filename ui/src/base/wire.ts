// What the engine answers (WIRE.md), as types, and the decoding of its tiles.

export type {
  Alloc, At, Band, Bands, Device, Diff, Event, File as SessionFile, Flame, Frame, Group, Held, Hit, Lane, Mark, More, Row as AtRow, Scope, Session, Table,
} from "./api.ts";
import type { Band } from "./api.ts";

export type Fate = Band["fate"];

export const kinds = ["total", "band", "alloc"] as const;
export type Kind = (typeof kinds)[number];

/** No event: the state before the first one. */
export const beforeFirst = 4294967295;

/** Header flag: rectangles were asked for, but there would be too many. */
export const flagTooMany = 2;

/** Flags of a rectangle. */
export const stripOfBands = 2;
export const rectPending = 4;

/** A tile: n buckets of 2^level places, beginning at bucket `first`. */
export interface Tile {
  kind: Kind;
  level: number;
  first: number;
  n: number;
  flags: number;
  size: number;
  witness: Uint32Array;
  events: Uint32Array; // the first event of each bucket, and the event after the last
  max: Float64Array;
  min: Float64Array;
  last: Float64Array;
  reserved: Float64Array;
  m: number;
  id: Int32Array;
  count: Uint32Array;
  height: Float32Array;
  c0: Uint16Array;
  c1: Uint16Array;
  y0: Float64Array;
  alloc: Uint32Array;
  band: Uint32Array;
  flag: Uint16Array;
}

/** What a tile of totals has no shapes of. */
export const noShapes = {
  id: new Int32Array(0), count: new Uint32Array(0), height: new Float32Array(0), c0: new Uint16Array(0), c1: new Uint16Array(0), y0: new Float64Array(0),
  alloc: new Uint32Array(0), band: new Uint32Array(0), flag: new Uint16Array(0),
};

/** Reads a tile. Throws if it is not one. */
export function decodeTile(buf: ArrayBuffer): Tile {
  const view = new DataView(buf);
  if (buf.byteLength < 64 || view.getUint32(0, false) !== 0x534c5431) throw new Error("the engine's answer is not a tile");
  const kind = kinds[view.getUint8(4)];
  if (!kind) throw new Error(`a tile of unknown kind ${view.getUint8(4)}`);
  const n = view.getUint32(8, true);
  const m = view.getUint32(12, true);
  let at = 64;
  const take = <T>(make: new (b: ArrayBuffer, at: number, n: number) => T, n: number, width: number): T => {
    const out = new make(buf, at, n);
    at = (at + n * width + 7) & ~7;
    return out;
  };
  const witness = take(Uint32Array, n, 4);
  const first = take(Uint32Array, n, 4);
  const end = take(Uint32Array, 1, 4);
  const events = new Uint32Array(n + 1);
  events.set(first);
  events[n] = end[0]!;
  const tile: Tile = {
    ...noShapes,
    kind,
    level: view.getUint8(6),
    first: view.getFloat64(16, true),
    n,
    flags: view.getUint32(24, true),
    size: buf.byteLength,
    witness,
    events,
    max: take(Float64Array, n, 8),
    min: take(Float64Array, n, 8),
    last: take(Float64Array, n, 8),
    reserved: take(Float64Array, n, 8),
    m,
  };
  if (kind === "band") return { ...tile, id: take(Int32Array, m, 4), count: take(Uint32Array, m, 4), height: take(Float32Array, m * n, 4) };
  if (kind === "total") return tile;
  return {
    ...tile,
    c0: take(Uint16Array, m, 2),
    c1: take(Uint16Array, m, 2),
    y0: take(Float64Array, m, 8),
    height: take(Float32Array, m, 4),
    alloc: take(Uint32Array, m, 4),
    band: take(Uint32Array, m, 4),
    count: take(Uint32Array, m, 4),
    flag: take(Uint16Array, m, 2),
  };
}
