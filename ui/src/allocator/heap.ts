// The allocator's state after one event, and its layout: segments on rows to one scale.

import type { Blocks, Segment, State } from "../base/api.ts";
import type { Group } from "../base/wire.ts";

export type { Segment };

/** The state with its groups, which a saved page holds apart from it. */
export type Heap = Required<State> & { blocks: Required<Blocks> };

export interface Piece {
  segment: number;
  from: number; // bytes of the segment before this piece
  bytes: number;
  x: number; // bytes from the left of the row
  row: number;
  open: boolean; // the segment goes on in the next row
}

export interface Section {
  name: string;
  private: boolean;
  segments: number[]; // drawn
  folded: number[]; // wholly free
  reserved: number;
  used: number;
  magnified: number; // by how much it is drawn larger than the others
  pieces: Piece[];
  rows: number;
}

/** The places of a segment's blocks. */
export const blocksOf = ({ first, blocks }: Segment): number[] => Array.from({ length: blocks }, (_, i) => first + i);

/** Whether a block is in use. */
const used = ({ blocks }: Heap, b: number): boolean => blocks.state[b] !== "f";

/** Segments by pool, stream and size class, large pools first. */
export function sections(heap: Heap, unfolded: boolean): Section[] {
  const by = new Map<string, Section>();
  heap.segments.forEach((s, i) => {
    const name = `${s.pool === "default" ? "" : `${s.pool} · `}stream ${s.stream} · ${s.type} pool${s.expandable ? " · expandable" : ""}`;
    let sec = by.get(name);
    if (!sec) by.set(name, (sec = { name, private: s.private, segments: [], folded: [], reserved: 0, used: 0, magnified: 1, pieces: [], rows: 0 }));
    sec.reserved += s.size;
    const active = blocksOf(s).reduce((n, b) => n + (used(heap, b) ? heap.blocks.size[b]! : 0), 0);
    sec.used += active;
    (active === 0 && !unfolded ? sec.folded : sec.segments).push(i);
  });
  const out = [...by.values()];
  for (const sec of out) sec.segments.sort((a, b) => compareAddress(heap.segments[a]!.address, heap.segments[b]!.address));
  return out.sort((a, b) => b.reserved - a.reserved);
}

const compareAddress = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

/** The bytes of a row: the smallest power of two that gives at most `most` rows in all, and is no less than another size. */
export function rowBytes(heap: Heap, secs: Section[], most: number, least = 0): number {
  let row = 2 ** Math.max(20, Math.ceil(Math.log2(least)));
  for (;;) {
    const rows = secs.reduce((n, s) => n + Math.ceil(s.segments.reduce((m, i) => m + heap.segments[i]!.size, 0) / row), 0);
    if (rows <= most) return row;
    row *= 2;
  }
}

/** Lays the segments of a section out like text; a small section is magnified by a power of two. */
export function flow(heap: Heap, sec: Section, row: number, gap: number): void {
  const sum = sec.segments.reduce((n, i) => n + heap.segments[i]!.size, 0);
  sec.magnified = 1;
  const gaps = sec.segments.length * gap;
  while (sum > 0 && sum * sec.magnified * 2 + gaps <= row) sec.magnified *= 2;
  const width = row / sec.magnified;
  const space = gap / sec.magnified;
  sec.pieces = [];
  let x = 0;
  let r = 0;
  for (const i of sec.segments) {
    let from = 0;
    const { size } = heap.segments[i]!;
    while (from < size) {
      if (width - x < width * 1e-6) {
        x = 0;
        r++;
      }
      // A rest of a few pixels hangs over the edge rather than begin a row.
      const take = size - from <= width - x + 4 * space ? size - from : width - x;
      sec.pieces.push({ segment: i, from, bytes: take, x, row: r, open: from + take < size });
      from += take;
      x += take;
    }
    x = Math.min(width, x + space);
  }
  sec.rows = sec.pieces.length ? r + 1 : 0;
}

/** A block in use, and whose it is. */
export interface Pin {
  label: string;
  slot: number;
  bytes: number;
  alloc: number;
}

/** The block in use of a segment that is at a number of bytes from its start; −1 if none is. */
export function blockAt(heap: Heap, segment: number, at: number): number {
  const { offset, size } = heap.blocks;
  return blocksOf(heap.segments[segment]!).find((b) => used(heap, b) && at >= offset[b]! && at < offset[b]! + size[b]!) ?? -1;
}

/** The block in use at an address: its segment and its place; null if there is none. */
export function addressed(heap: Heap, address: string): { segment: number; block: number } | null {
  if (!/^0x[0-9a-f]{1,16}$/i.test(address)) return null;
  const at = BigInt(address);
  const segment = heap.segments.findIndex((s) => at >= BigInt(s.address) && at < BigInt(s.address) + BigInt(s.size));
  const block = segment < 0 ? -1 : blockAt(heap, segment, Number(at - BigInt(heap.segments[segment]!.address)));
  return block < 0 ? null : { segment, block };
}

/** The blocks in use that keep a segment, largest first. */
export function pins(heap: Heap, groups: Group[], segment: number): Pin[] {
  const { size, group, alloc } = heap.blocks;
  const of = (b: number): Pin => ({ label: groups[group[b]!]?.label ?? "unknown", slot: groups[group[b]!]?.slot ?? -1, bytes: size[b]!, alloc: alloc[b]! });
  return blocksOf(heap.segments[segment]!).filter((b) => used(heap, b)).map(of).sort((a, b) => b.bytes - a.bytes);
}

/** The largest free piece: its segment, where it begins there, and its size; null if nothing is free. */
export function largestHole(heap: Heap): { segment: number; offset: number; bytes: number } | null {
  const { offset, size } = heap.blocks;
  const holes = heap.segments.flatMap((s, segment) => blocksOf(s).filter((b) => !used(heap, b)).map((b) => ({ segment, offset: offset[b]!, bytes: size[b]! })));
  return holes.reduce<(typeof holes)[0] | null>((best, x) => (x.bytes > (best?.bytes ?? 0) ? x : best), null);
}
