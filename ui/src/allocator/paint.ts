// Draws segments and blocks.

import { byId, fill, h } from "../base/dom.ts";
import { bytes, count, plural } from "../base/format.ts";
import { byteTick } from "../base/scale.ts";
import type { Page } from "../session/page.ts";
import { css, mix, palette, siteColor, textOn, type Palette, type RGB } from "../picture/palette.ts";
import { blocksOf, flow, largestHole, pins, rowBytes, sections, type Heap, type Piece, type Section } from "./heap.ts";
import { begin, fontOf, hatch, inRoom, left, outline, rect, size, write } from "../picture/canvas.ts";

const rowHigh = 17;
const rowStep = 22;

/** Where a segment, or a part of it, is drawn. */
export interface Spot {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  segment: number; // −1: the line of folded segments
  from: number; // bytes of the segment before it
  scale: number; // pixels a byte
}

/** What is drawn, and where. */
export interface View {
  page: Page;
  root: HTMLElement;
  heap: Heap;
  unfolded: boolean;
  spots: Spot[];
}

/** Draws the state into the view's canvas, and notes where each segment is. */
export function paint(v: View): void {
  const { heap } = v;
  const canvas = v.root.querySelector<HTMLCanvasElement>(".heap canvas");
  if (!canvas) return;
  const c = palette();
  const width = Math.max(300, canvas.parentElement!.clientWidth);
  const room = width - left - 16;
  const secs = sections(heap, v.unfolded);
  const failed = failure(v);
  const row = rowBytes(heap, secs, 24, failed?.bytes ?? 0);
  for (const s of secs) flow(heap, s, row, (2 / room) * row);
  const g = canvas.getContext("2d")!;
  g.font = fontOf(v.root);
  const key = legend(g, heap, c, room);
  const high = secs.reduce((n, s) => n + 24 + s.rows * rowStep + (s.folded.length ? rowStep : 0) + 8, 24 + 16 + 20 * (key.at(-1)!.row + 1) + (failed ? failedHigh : 0));
  size(canvas, width, high); // which takes the font away, too
  begin(canvas).font = fontOf(v.root);
  fill(byId("row-scale"), "1 row = ", h("b", {}, byteTick(row)), ", one scale; magnified groups are labeled");
  for (let i = 0; i <= 4; i++) {
    const x = left + (room * i) / 4;
    write(g, byteTick((row * i) / 4), x, 12, c.muted, i === 4 ? "right" : i ? "center" : "left");
    rect(g, c.muted, Math.min(x, width - 17), 19, 1, 4);
  }
  v.spots = [];
  let y = failed ? paintFailure(g, c, failed, room / row) : 24;
  for (const s of secs) y = paintSection(v, g, c, s, row, room, y);
  if (failed?.hole) markHole(v, g, c, failed.hole);
  for (const e of key) {
    const top = y + 12 + 20 * e.row;
    e.draw(g, left + e.x, top);
    write(g, e.text, left + e.x + 22, top + 6, c.ink);
  }
}

/** A request that failed at the event that is shown, and the largest piece that was free then. */
interface Failure {
  bytes: number;
  hole: ReturnType<typeof largestHole>;
}

const failedHigh = 2 * rowStep + 12;

function failure({ page, heap }: View): Failure | null {
  const { event } = page;
  return event?.event === heap.event && event.action === "oom" && event.bytes ? { bytes: event.bytes, hole: largestHole(heap) } : null;
}

/** Draws the request to the scale of the rows, above the piece that would have to hold it; returns where the rows begin. */
function paintFailure(g: CanvasRenderingContext2D, c: Palette, { bytes: wanted, hole }: Failure, scale: number): number {
  const bars: [string, number, RGB][] = [["the failed request", wanted, c.danger], [hole && hole.bytes >= wanted ? "the largest free piece, which could not serve it" : "the largest free piece", hole?.bytes ?? 0, c.stranded]];
  bars.forEach(([name, n, color], i) => {
    const y = 28 + rowStep * i;
    const wide = n > 0 ? Math.max(2, n * scale) : 0;
    rect(g, color, left, y, wide, rowHigh);
    outline(g, c.danger, 1.5, left, y, wide, rowHigh);
    const text = `${name}: ${bytes(n)}`;
    const fits = g.measureText(text).width + 14 < wide;
    const ink = !fits ? c.ink : i ? c["stranded-text"] : textOn(c.danger);
    write(g, text, fits ? left + 7 : left + wide + 8, y + rowHigh / 2 + 0.5, ink);
  });
  return 24 + failedHigh;
}

/** Frames the largest free piece where it lies. */
function markHole(v: View, g: CanvasRenderingContext2D, c: Palette, { segment, offset, bytes: size }: NonNullable<Failure["hole"]>): void {
  for (const s of v.spots) {
    if (s.segment !== segment) continue;
    const [a, b] = [s.x0 + (offset - s.from) * s.scale, s.x0 + (offset + size - s.from) * s.scale].map((x) => Math.max(s.x0, Math.min(s.x1, x))) as [number, number];
    if (b > a) outline(g, c.danger, 2, a, s.y0, b - a, rowHigh);
  }
}

function paintSection(v: View, g: CanvasRenderingContext2D, c: Palette, s: Section, row: number, room: number, y: number): number {
  const heap = v.heap;
  const n = s.segments.length + s.folded.length;
  const parts = [s.name, plural(n, "segment"), `${bytes(s.reserved)} reserved`, `${bytes(s.used)} active`];
  if (s.private) parts.push("not shared with the default pool");
  if (s.magnified > 1 && s.segments.length) parts.push(`drawn ×${s.magnified}`);
  write(g, inRoom(g, parts.join("  ·  "), room), left, y + 12, c.muted);
  y += 24;
  const scale = (room / row) * s.magnified;
  const widest = widestFree(v, s.pieces);
  for (const p of s.pieces) {
    const x0 = left + p.x * scale;
    const x1 = left + (p.x + p.bytes) * scale;
    const top = y + p.row * rowStep;
    paintPiece(v, g, c, p, x0, x1, top, scale, widest.get(p.segment) === p);
    v.spots.push({ x0, x1, y0: top, y1: top + rowHigh, segment: p.segment, from: p.from, scale });
  }
  y += s.rows * rowStep;
  if (s.folded.length) {
    const sum = s.folded.reduce((m, i) => m + heap.segments[i]!.size, 0);
    hatch(g, left, y, room, rowHigh, c.whole, c["whole-line"]);
    const text = inRoom(g, `${count(s.folded.length)} whole free ${s.folded.length === 1 ? "segment" : "segments"}, ${bytes(sum)} · folded, not to scale · ${s.private ? "empty_cache() returns them only once their pool is gone" : "empty_cache() would return them"}`, room - 24);
    rect(g, c.page, left + 6, y + 1, g.measureText(text).width + 12, rowHigh - 2);
    write(g, text, left + 12, y + rowHigh / 2, c.ink);
    v.spots.push({ x0: left, x1: left + room, y0: y, y1: y + rowHigh, segment: -1, from: 0, scale: 1 });
    y += rowStep;
  }
  return y + 8;
}

/** For each segment the piece that shows the largest free part of it, where its label stands. */
function widestFree(v: View, pieces: Piece[]): Map<number, Piece> {
  const { blocks, segments } = v.heap;
  const best = new Map<number, { piece: Piece; free: number }>();
  for (const p of pieces) {
    for (const b of blocksOf(segments[p.segment]!)) {
      if (blocks.state[b] !== "f") continue;
      const free = Math.min(blocks.offset[b]! + blocks.size[b]!, p.from + p.bytes) - Math.max(blocks.offset[b]!, p.from);
      if (free > (best.get(p.segment)?.free ?? 0)) best.set(p.segment, { piece: p, free });
    }
  }
  return new Map([...best].map(([segment, v]) => [segment, v.piece]));
}

function paintPiece(v: View, g: CanvasRenderingContext2D, c: Palette, p: Piece, x0: number, x1: number, y: number, scale: number, labeled: boolean): void {
  const heap = v.heap;
  const { blocks } = heap;
  const seg = heap.segments[p.segment]!;
  rect(g, c.stranded, x0, y, x1 - x0, rowHigh);
  for (const [from, to] of seg.ranges) {
    const [a, b] = [Math.max(from, p.from), Math.min(to, p.from + p.bytes)];
    if (a < b) hatch(g, x0 + (a - p.from) * scale, y, (b - a) * scale, rowHigh, c.whole, c["whole-line"]);
  }
  // Free pieces wide enough for a word show how much is stranded, and by what.
  const label = (text: string, from: number, to: number, ink: RGB, align: "left" | "right"): void => {
    if (to - from >= 110) write(g, inRoom(g, text, to - from - 10), align === "right" ? to - 6 : from + 5, y + rowHigh / 2 + 0.5, ink, align);
  };
  let widest: [number, number] = [0, 0];
  for (const b of blocksOf(seg)) {
    const from = Math.max(blocks.offset[b]!, p.from);
    const to = Math.min(blocks.offset[b]! + blocks.size[b]!, p.from + p.bytes);
    if (to <= from) continue;
    const bx0 = x0 + (from - p.from) * scale;
    const bx1 = x0 + (to - p.from) * scale;
    if (blocks.state[b] === "f") {
      if (bx1 - bx0 > widest[1] - widest[0]) widest = [bx0, bx1];
      continue;
    }
    const group = v.page.bands!.groups[blocks.group[b]!];
    let color = siteColor(c, group?.slot ?? -1);
    const solo = v.page.s.solo;
    if ((solo.length && !solo.includes(group?.key ?? "")) || (v.page.found && !v.page.found.has(group?.key ?? ""))) color = mix(color, c.page, 0.15);
    const w = Math.max(0.75, bx1 - bx0);
    if (blocks.state[b] === "p") hatch(g, bx0, y, w, rowHigh, color, c.page);
    else rect(g, color, bx0, y, w, rowHigh);
    const slack = (blocks.size[b]! - blocks.requested[b]!) * scale;
    if (slack >= 1 && to === blocks.offset[b]! + blocks.size[b]!) rect(g, c.ink, bx1 - slack, y, slack, rowHigh, 0.35);
    if (bx1 - bx0 > 3) rect(g, c.page, bx1 - 1, y, 1, rowHigh, 0.6);
    if (group) label(group.label, bx0, bx1, textOn(color), "left");
    if (blocks.alloc[b]! >= 0 && blocks.alloc[b] === v.page.s.alloc) outline(g, c.ink, 2, bx0, y + 1, Math.max(2, w), rowHigh - 2);
  }
  if (labeled && seg.stranded > 0) {
    const by = pins(heap, v.page.bands!.groups, p.segment);
    label(`${bytes(seg.stranded)} stranded by ${bytes(by.reduce((sum, b) => sum + b.bytes, 0))} in ${count(by.length)}`, widest[0], widest[1], c["stranded-text"], "right");
  }
  const pinned = v.page.s.segment === seg.address;
  g.strokeStyle = css(pinned ? c.accent : c.top);
  g.lineWidth = pinned ? 2 : 1;
  g.beginPath();
  const inset = pinned ? 0 : 0.5;
  g.moveTo(x1, y + inset);
  g.lineTo(x0 + inset, y + inset);
  if (p.from === 0) g.lineTo(x0 + inset, y + rowHigh - inset);
  else g.moveTo(x0 + inset, y + rowHigh - inset);
  g.lineTo(x1, y + rowHigh - inset);
  if (!p.open) {
    g.moveTo(x1 - inset, y);
    g.lineTo(x1 - inset, y + rowHigh);
  }
  g.stroke();
  ring(v, g, c, p, x0, y, scale);
}

/** Rings what the event touched. */
function ring(v: View, g: CanvasRenderingContext2D, c: Palette, p: Piece, x0: number, y: number, scale: number): void {
  const { changed, segments } = v.heap;
  if (!changed) return;
  const from = Number(changed.address) - Number(segments[p.segment]!.address) - p.from; // 48 bits: exact
  const to = from + changed.size;
  if (to <= 0 || from >= p.bytes) return;
  const a = x0 + Math.max(0, from) * scale;
  const b = Math.max(a + 3, x0 + Math.min(p.bytes, to) * scale);
  outline(g, c.accent, 2, a - 1, y - 2, b - a + 2, rowHigh + 4);
}

interface Entry {
  text: string;
  draw: (g: CanvasRenderingContext2D, x: number, y: number) => void;
  x: number;
  row: number;
}

/** The legend, in as many rows as it needs. */
function legend(g: CanvasRenderingContext2D, heap: Heap, c: Palette, room: number): Entry[] {
  const flat = (color: RGB): Entry["draw"] => (g, x, y) => rect(g, color, x, y, 16, 12);
  const hatched = (ground: RGB, line: RGB): Entry["draw"] => (g, x, y) => hatch(g, x, y, 16, 12, ground, line);
  const all: [string, Entry["draw"]][] = [["allocated (color of its site)", flat(c.slots[0]!)]];
  if (heap.pending) all.push([`deferred frees: ${bytes(heap.pending)}`, hatched(c.slots[0]!, c.page)]);
  all.push([`stranded: ${bytes(heap.stranded)}`, flat(c.stranded)], [`releasable: ${bytes(heap.releasable)}`, hatched(c.whole, c["whole-line"])]);
  if (heap.slack) all.push([`rounding: ${bytes(heap.slack)}`, flat(mix(c.ink, c.page, 0.35))]);
  let [x, row] = [0, 0];
  return all.map(([text, draw]) => {
    const width = 22 + g.measureText(text).width;
    if (x > 0 && x + width > room) [x, row] = [0, row + 1];
    const entry = { text, draw, x, row };
    x += width + 22;
    return entry;
  });
}
