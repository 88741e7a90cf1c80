// What all plots over events or time draw alike: lines by columns, the names of bands, the
// values at the right edge, and what is selected.

import { pixelAt, type Span } from "../base/scale.ts";
import { noShapes, type Bands, type Tile } from "../base/wire.ts";
import { labelPlaces, type Frame, type Run } from "./blit.ts";
import { clipped, left, rect, write } from "./canvas.ts";
import { fillOf } from "./paint.ts";
import { css, textOn, type Palette, type RGB } from "./palette.ts";

/** Where a plot stands, in CSS pixels below the names of its rows. */
export interface Area {
  top: number;
  width: number;
  height: number;
}

/** The pixels that the columns of a tile fill, each from and to a time. Where several share a pixel, the highest has it. */
export function columnRuns(tile: Tile, at: (c: number) => Span, { win, width }: Frame): Run[] {
  const owner = new Int32Array(width).fill(-1);
  for (let c = 0; c < tile.n; c++) {
    const [x0, end] = at(c).map((t) => pixelAt(t, win, width)) as Span;
    if (end < 0 || x0 > width) continue;
    const from = Math.max(0, Math.min(x0, width - 1));
    for (let x = from; x < Math.min(width, Math.max(end, from + 1)); x++) if (owner[x]! < 0 || tile.max[c]! > tile.max[owner[x]!]!) owner[x] = c;
  }
  const out: Run[] = [];
  for (let x = 0; x < width; x++) {
    const c = owner[x]!;
    const last = out[out.length - 1];
    if (last && last.x1 === x && last.c === c) last.x1++;
    else if (c >= 0) out.push({ x0: x, x1: x + 1, tile, c });
  }
  return out;
}

/** A line through columns, in steps; null where there is none. */
export function stepLine(g: CanvasRenderingContext2D, drawn: Run[], ratio: number, y: (v: number) => number, of: (r: Run) => number | null, from = left): void {
  g.beginPath();
  let end = -1;
  for (const r of drawn) {
    const v = r.x1 <= r.x0 ? null : of(r);
    if (v === null || Number.isNaN(v)) continue;
    if (end !== r.x0) g.moveTo(from + r.x0 / ratio, y(v));
    g.lineTo(from + r.x0 / ratio, y(v));
    g.lineTo(from + r.x1 / ratio, y(v));
    end = r.x1;
  }
  g.stroke();
}

/** The same, dashed, as memory is drawn that is not stacked: reserved, resident, a container's own count. */
export function dashed(g: CanvasRenderingContext2D, ink: RGB, draw: () => void): void {
  g.strokeStyle = css(ink);
  g.lineWidth = 1.5;
  g.setLineDash([5, 3]);
  draw();
  g.setLineDash([]);
}

/** Strokes what is drawn twice, first the ground around it, so that it is seen on any color. */
export function onGround(g: CanvasRenderingContext2D, ink: RGB, ground: RGB, width: number, draw: (below: boolean) => void): void {
  for (const color of [ground, ink]) {
    g.strokeStyle = g.fillStyle = css(color);
    g.lineWidth = color === ink ? width : width + 2;
    draw(color !== ink);
  }
}

/** Draws inside an area only. */
export const inside = (g: CanvasRenderingContext2D, { top, width, height }: Area, draw: () => void): void => clipped(g, left, top - 1, width, height + 1, draw);

/** The names of bands, where they have room; those that a search does not find are muted. */
export function bandLabels(g: CanvasRenderingContext2D, drawn: Run[], frame: Frame, { top, width }: Area, bands: Bands, c: Palette, found: Set<string> | null): void {
  const ratio = frame.width / width;
  const of = (b: number): Bands["groups"][0] => bands.groups[bands.bands[b]!.group]!;
  const widths = new Map<number, number>();
  const widthOf = (b: number): number => {
    if (!widths.has(b)) widths.set(b, g.measureText(of(b).label).width * ratio);
    return widths.get(b)!;
  };
  for (const p of labelPlaces(drawn, frame, bands.bands.length, widthOf, 15 * ratio)) {
    const ink = found && !found.has(of(p.band).key) ? c.muted : textOn(fillOf(bands, p.band, c));
    write(g, of(p.band).label, left + p.x / ratio + 8, top + p.y / ratio + 0.5, ink);
  }
}

/** Where labels of a height stand that would like to be at places, the highest first: those that would cover each other move apart, downwards first, then back from the bottom. */
export function apart(ys: number[], high: number, top: number, bottom: number): number[] {
  let below = top;
  const out = ys.map((y) => (below = Math.max(y - high / 2, below) + high) - high);
  let above = bottom;
  for (let i = out.length - 1; i >= 0; i--) above = out[i] = Math.min(out[i]!, above - high);
  return out;
}

/** A value at the right edge, beside the line that it belongs to. */
export interface Value {
  name: string;
  at: number; // bytes, where its line ends
  text: string;
  ink: RGB;
}

/** Writes the values at the right edge. */
export function gutter(g: CanvasRenderingContext2D, l: Area, y: (v: number) => number, values: Value[], muted: RGB): void {
  const rows = [...values].sort((a, b) => b.at - a.at);
  const high = l.height < 110 ? 14 : 28;
  const ys = apart(rows.map((r) => y(r.at)), high, l.top - 8, l.top + l.height + 10);
  const x = left + l.width + 8;
  rows.forEach((r, i) => {
    if (high === 28) write(g, r.name, x, ys[i]! + 7, muted);
    write(g, r.text, x, ys[i]! + high - 7, r.ink);
  });
}

/** A stretch that is selected, from pixel to pixel. */
export function selection(g: CanvasRenderingContext2D, { top, width, height }: Area, ink: RGB, from: number, to: number): void {
  const [a, b] = [from, to].map((x) => Math.max(left, Math.min(left + width, x))) as [number, number];
  rect(g, ink, a, top, b - a, height, 0.16);
  for (const x of [a, b - 1]) rect(g, ink, Math.round(x), top, 1, height);
}

/** The line of the cursor at a pixel. */
export const cursorLine = (g: CanvasRenderingContext2D, { top, height }: Area, ink: RGB, x: number): void => rect(g, ink, Math.round(x) - 0.75, top - 3, 1.5, height + 3);

/** A picture of one tile for the painter: each band is the sum of some courses. Unless they are given, its totals are those of the bands. */
export function tileOf(n: number, bands: ArrayLike<number>[][], totals: Partial<Pick<Tile, "max" | "min" | "reserved">> = {}): Tile {
  const m = bands.length;
  const height = new Float32Array(m * n);
  const total = new Float64Array(n);
  bands.forEach((courses, b) => {
    for (const values of courses) {
      for (let c = 0; c < n; c++) {
        const v = values[c]! || 0; // NaN where it is not known
        height[b * n + c]! += v;
        total[c]! += v;
      }
    }
  });
  return {
    ...noShapes, max: total, min: total, last: total, reserved: total, ...totals, kind: "band", level: 0, first: 0, n, flags: 0, size: 0, m, height,
    witness: Uint32Array.from({ length: n }, (_, c) => c), events: Uint32Array.from({ length: n + 1 }, (_, c) => c),
    id: Int32Array.from({ length: m }, (_, b) => b), count: new Uint32Array(m).fill(1),
  };
}

/** Bands that are drawn from groups, which no history has. */
export const bandsOf = (groups: { key: string; label: string; slot: number; peak?: number }[], bands: { group: number; fate: Bands["bands"][0]["fate"] }[], kept: number): Bands => ({
  kept, lanes: [], lanes_left_out: 0,
  groups: groups.map(({ key, label, slot, peak = 0 }) => ({ key, label, slot, peak: { event: 0, bytes: peak }, kept: 0, allocations: 0 })),
  bands,
});
