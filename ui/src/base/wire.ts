// What the engine answers (WIRE.md), as types, and the decoding of its tiles.

export interface SessionFile {
  f: number;
  name: string;
  path: string;
  fingerprint: string;
  process: string | null;
  state: "waiting" | "reading" | "pairing" | "totals" | "ready" | "failed";
  phase: string | null;
  read: number;
  size: number | null;
  events: number | null;
  partial: string | null;
  error: string | null;
  peak: number | null;
  devices: number[];
  main: number | null; // the device with the highest peak
  blocks?: "waiting" | "working" | "ready" | "unknown";
}

export interface Session {
  version: number;
  title: string;
  files: SessionFile[];
  skipped?: { path: string; why: string }[];
  order: number[];
  findings: "waiting" | "working" | "ready" | "failed";
}

export interface Mark {
  event: number;
  kind: "oom" | "snapshot" | "annotation" | "release";
  label: string;
  bytes?: number;
}

export interface Scope {
  name: string;
  lane: "steps" | "notes";
  from: number;
  to: number;
  open: boolean; // it had not ended when the history did
}

export interface Device {
  device: number;
  events: number;
  allocations: number;
  measures: string[];
  groupings: string[];
  measures_why?: string | null;
  start: { live: number; requested: number; reserved: number };
  end: { live: number; requested: number; reserved: number };
  peak: { event: number; bytes: number } | null;
  peak_reserved: { event: number; bytes: number } | null;
  kept: number;
  pending: number;
  coverage: { kind: "exact" | "ring" | "late" | "damaged" | "state"; text: string };
  time: { start_us: number; end_us: number; span: number; folds: { at: number; us: number }[] } | null;
  time_why: string | null;
  marks: Mark[];
  marks_left_out: number;
  scopes: Scope[];
  held?: Held;
}

/** What a saved page holds of a device. */
export interface Held {
  events: number[];
  stations: number[];
  next: Record<string, number[] | null>;
  levels: Record<string, number>;
  near: { level: number; from: number; to: number }[] | null;
  alone: string[];
  text: string;
}

export type Fate = "kept" | "freed" | "pending";

export interface Group {
  key: string;
  label: string;
  file?: string;
  line?: number;
  function?: string;
  origin?: string;
  slot: number;
  peak: { event: number; bytes: number };
  kept: number;
  allocations: number;
}

export interface Band {
  group: number;
  fate: Fate;
  before: boolean;
  peak: number;
  allocations: number;
}

export interface Lane {
  group: number;
  band: number;
  from: number;
  to: number;
  points: number[];
}

export interface Bands {
  g: string;
  kept: number;
  groups: Group[];
  bands: Band[];
  lanes: Lane[];
  lanes_left_out: number;
}

export interface AtRow {
  key: string;
  group: number;
  bytes: number;
  count: number;
  kept: number;
  freed: number;
  pending: number;
  peak: number;
}

export interface More {
  groups: number;
  bytes: number;
  count: number;
}

export interface At {
  event: number;
  live: number; // in the measure that was asked for
  requested: number;
  reserved: number;
  count: number;
  rows: AtRow[];
  more: More;
}

export interface Range {
  rows: { key: string; group: number; bytes: number; count: number; kept: number }[];
  more: More;
}

export interface Diff {
  a: number;
  b: number;
  rows: { key: string; group: number; a: number; b: number; bytes: number; count: number }[];
  more: More;
}

export type Origin = "own" | "torch" | "library" | "generated" | "native";

export interface Frame {
  file: string;
  line: number;
  function: string;
  origin: Origin;
}

export interface Alloc {
  alloc: number;
  bytes: number;
  block: number | null;
  address: string;
  birth: number;
  freed: number | null;
  death: number | null;
  born_us: number | null;
  died_us: number | null;
  stream: number | string;
  pool: string;
  purpose: string | null;
  fate: Fate;
  keys: Record<string, string>;
  missing?: string; // why there is no line of own code
  stack: Frame[] | null;
  free_stack: Frame[] | null;
}

export interface Hit {
  alloc: number | null;
  band: number;
  y0: number;
  bytes: number;
}

export interface Event {
  event: number;
  action: string;
  bytes: number;
  address: string;
  time_us: number | null;
  place: number | null;
  stream: number | string;
  alloc: number | null;
  live: number;
  requested: number;
  reserved: number;
  missing?: string; // why an allocation has no line of own code
  stack: Frame[] | null;
}

export interface Flame {
  bytes: number;
  count: number;
  frames: Frame[];
  nodes: { frame: number[]; parent: number[]; bytes: number[]; count: number[] };
  left_out: number;
}

export const kinds = ["total", "band", "alloc"] as const;
export type Kind = (typeof kinds)[number];

/** No event: the state before the first one. */
export const beforeFirst = 4294967295;

/** Header flag: rectangles were asked for, but there would be too many. */
export const flagTooMany = 2;

/** Flags of a rectangle. */
export const stripOfAllocs = 1;
export const stripOfBands = 2;
export const rectPending = 4;

/** A tile: n buckets of 2^level places, beginning at bucket `first`. */
export interface Tile {
  kind: Kind;
  level: number;
  first: number;
  n: number;
  flags: number;
  threshold: number;
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
  marks: Uint16Array;
}

/** Reads a tile. Throws if it is none. */
export function decodeTile(buf: ArrayBuffer): Tile {
  const view = new DataView(buf);
  if (buf.byteLength < 64 || view.getUint32(0, false) !== 0x534c5431) throw new Error("the engine's answer is no tile");
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
    kind,
    level: view.getUint8(6),
    first: view.getFloat64(16, true),
    n,
    flags: view.getUint32(24, true),
    threshold: view.getFloat64(32, true),
    size: buf.byteLength,
    witness,
    events,
    max: take(Float64Array, n, 8),
    min: take(Float64Array, n, 8),
    last: take(Float64Array, n, 8),
    reserved: take(Float64Array, n, 8),
    m,
    id: new Int32Array(0),
    count: new Uint32Array(0),
    height: new Float32Array(0),
    c0: new Uint16Array(0),
    c1: new Uint16Array(0),
    y0: new Float64Array(0),
    alloc: new Uint32Array(0),
    band: new Uint32Array(0),
    marks: new Uint16Array(0),
  };
  if (kind === "band") {
    tile.id = take(Int32Array, m, 4);
    tile.count = take(Uint32Array, m, 4);
    tile.height = take(Float32Array, m * n, 4);
  } else if (kind === "alloc") {
    tile.c0 = take(Uint16Array, m, 2);
    tile.c1 = take(Uint16Array, m, 2);
    tile.y0 = take(Float64Array, m, 8);
    tile.height = take(Float32Array, m, 4);
    tile.alloc = take(Uint32Array, m, 4);
    tile.band = take(Uint32Array, m, 4);
    tile.count = take(Uint32Array, m, 4);
    tile.marks = take(Uint16Array, m, 2);
  }
  return tile;
}
