// What a recording holds over time, put together as bands of a picture, rows of a
// table and trees of stacks.

import { lastAt } from "../base/scale.ts";
import type { Course, Recording, Window } from "../base/api.ts";
import type { Bands, Flame, Frame, Tile } from "../base/wire.ts";
import { bandsOf, tileOf as tile } from "../picture/plot.ts";

/** The node of a tree for stacks that were not copied. */
const notCopied = -5;

/** What is held at each column. */
export interface Held {
  bytes: Float64Array;
  count: Float64Array;
}

function spread(c: Course, n: number): Held {
  const out = { bytes: new Float64Array(n), count: new Float64Array(n) };
  c.at.forEach((from, i) => {
    const to = c.at[i + 1] ?? n;
    out.bytes.fill(c.bytes[i]!, from, to);
    out.count.fill(c.count[i]!, from, to);
  });
  return out;
}

/** The moments of a window, with what each stack and owner held. */
export class Slice {
  readonly n: number;
  readonly stacks: Held[];
  readonly owners: Held[];
  readonly edges: Float64Array; // column c is from edges[c] to edges[c + 1], in seconds
  readonly growth: Float64Array; // of resident memory

  constructor(readonly of: Window) {
    this.n = of.moment.length;
    this.stacks = of.stacks.map((c) => spread(c, this.n));
    this.owners = of.owners.map((c) => spread(c, this.n));
    this.edges = edgesOf(of.seconds);
    this.growth = Float64Array.from(of.rss_bytes, (_, i) => of.anonymous_bytes[i]! + of.file_bytes[i]! + of.shared_bytes[i]!);
  }

  /** The column of a moment: the last one that is not later. */
  column(moment: number): number {
    return Math.max(0, lastAt(this.of.moment, moment));
  }

  /** The column that is seen at a time. */
  at(seconds: number): number {
    return Math.max(0, Math.min(this.n - 1, lastAt(this.edges, seconds)));
  }
}

/** A moment is seen half-way to its neighbors. One alone is seen for a second. */
export function edgesOf(seconds: number[]): Float64Array {
  const n = seconds.length;
  const out = new Float64Array(n + 1);
  if (n === 0) return out;
  out[0] = seconds[0]!;
  for (let i = 1; i < n; i++) out[i] = (seconds[i - 1]! + seconds[i]!) / 2;
  out[n] = seconds[n - 1]! > out[0] ? seconds[n - 1]! : out[0] + 1;
  return out;
}

export type By = "line" | "stack";

/** Stacks that are listed together: those of a line, or one. */
export interface Group {
  key: string;
  label: string;
  slot: number;
  stacks: number[]; // places in the recording's list; the last one is that of the others
  grows: boolean; // one of them does
  first: number | null; // seconds
  last: number | null;
  peak: number; // of the largest stack
  text: string; // what a search looks in
}

export const others = "others";

/** The groups of a recording, the largest first. */
export function groupsOf(r: Recording, by: By): Group[] {
  const out = new Map<string, Group>();
  r.stacks.forEach((s, i) => {
    const key = by === "line" && s.key ? s.key : `stack-${s.id}`;
    let g = out.get(key);
    if (!g) out.set(key, (g = { key, label: s.label, slot: s.slot, stacks: [], grows: false, first: null, last: null, peak: 0, text: `${s.label}\n` }));
    g.stacks.push(i);
    g.grows ||= s.grows;
    g.peak = Math.max(g.peak, s.peak_bytes);
    if (s.first_seconds !== null) g.first = Math.min(g.first ?? Infinity, s.first_seconds);
    if (s.last_seconds !== null) g.last = Math.max(g.last ?? 0, s.last_seconds);
    g.text += s.frames.map((f) => `${f.file}:${f.line} ${f.function}\n`).join("");
  });
  const all = [...out.values()];
  if (r.others > 0) all.push({ key: others, label: `${r.others} smaller stacks`, slot: -1, stacks: [r.stacks.length], grows: false, first: null, last: null, peak: 0, text: "" });
  return all;
}

/** What a group holds in a column. */
export function heldBy(g: Group, slice: Slice, column: number): { bytes: number; count: number } {
  let bytes = 0;
  let count = 0;
  for (const i of g.stacks) {
    bytes += slice.stacks[i]!.bytes[column]!;
    count += slice.stacks[i]!.count[column]!;
  }
  return { bytes, count };
}

/**
 * The bands of a picture, lowest first: of what grows, and above it of what does
 * not; in each of these what came first is lowest. What is larger than resident
 * memory ever grew is address space for the most part, and lies above all, where it
 * hides nothing. A line of which one stack grows and another does not has two bands.
 */
export interface Layers {
  bands: Bands; // as the painter knows them: what grows is kept
  groups: Group[]; // by place in bands.groups
  stacks: number[][]; // by band
}

export function layersOf(r: Recording, groups: Group[], resident: number): Layers {
  const list: { group: number; grows: boolean; stacks: number[]; first: number; space: boolean }[] = [];
  groups.forEach((g, group) => {
    for (const grows of [true, false]) {
      const stacks = g.stacks.filter((i) => (r.stacks[i]?.grows ?? false) === grows);
      if (!stacks.length) continue;
      const space = stacks.some((i) => (r.stacks[i]?.peak_bytes ?? 0) > resident);
      list.push({ group, grows, stacks, space, first: g.key === others ? Infinity : Math.min(...stacks.map((i) => r.stacks[i]!.first_seconds ?? Infinity)) });
    }
  });
  list.sort((a, b) => Number(b.grows) - Number(a.grows) || Number(a.space) - Number(b.space) || (a.first === b.first ? a.group - b.group : a.first - b.first));
  return {
    groups,
    stacks: list.map((b) => b.stacks),
    bands: bandsOf(groups, list.map(({ group, grows }) => ({ group, fate: grows ? "kept" : "freed" })), list.filter((b) => b.grows).length),
  };
}

/** The picture of a slice for the painter; alone: of one group only. */
export function tileOf(slice: Slice, l: Layers, alone: string | null): Tile {
  const shown = (b: number): boolean => alone === null || l.groups[l.bands.bands[b]!.group]!.key === alone;
  const courses = l.stacks.map((stacks, b) => (shown(b) ? stacks.map((i) => slice.stacks[i]!.bytes) : []));
  return tile(slice.n, courses, alone === null ? { reserved: slice.growth.map((v) => Math.max(0, v)) } : {});
}

/** The tree of stacks that hold so much each, as the icicle draws it: depth first, the larger child first. */
export function flameOf(r: Recording, amounts: { bytes: number; count: number }[]): Flame {
  interface Node { frame: number; bytes: number; count: number; below: Map<number, Node> }
  const frames: Frame[] = [];
  const known = new Map<string, number>();
  const frameOf = (f: Frame): number => {
    const key = `${f.file}\n${f.line}\n${f.function}`;
    if (!known.has(key)) known.set(key, frames.push(f) - 1);
    return known.get(key)!;
  };
  const node = (frame: number): Node => ({ frame, bytes: 0, count: 0, below: new Map() });
  const root = node(-1);
  amounts.forEach(({ bytes, count }, i) => {
    if (bytes <= 0) return;
    const stack = r.stacks[i]?.frames ?? [];
    let at = root;
    for (const frame of [...(stack.length ? stack.map(frameOf).reverse() : [notCopied]), null]) {
      at.bytes += bytes;
      at.count += count;
      if (frame === null) break;
      const to = at.below.get(frame) ?? node(frame);
      at.below.set(frame, to);
      at = to;
    }
  });
  const nodes: Flame["nodes"] = { frame: [], parent: [], bytes: [], count: [] };
  const put = ({ frame, bytes, count, below }: Node, parent: number): void => {
    const me = nodes.frame.push(frame) - 1;
    nodes.parent.push(parent);
    nodes.bytes.push(bytes);
    nodes.count.push(count);
    for (const c of [...below.values()].sort((a, b) => b.bytes - a.bytes)) put(c, me);
  };
  put(root, -1);
  return { bytes: root.bytes, count: root.count, frames, nodes, left_out: 0 };
}
