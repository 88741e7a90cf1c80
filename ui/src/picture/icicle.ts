// Stacks as an icicle: the root on top, width for bytes.

import { missing } from "../base/names.ts";
import { h, own, placeTip } from "../base/dom.ts";
import { bytes, count, delta, percent, placeOf } from "../base/format.ts";
import { mix, palette, siteColor, textOn, type RGB } from "./palette.ts";
import type { Flame, Frame } from "../base/wire.ts";
import { begin, fontOf, inRoom, outline, rect, size, write } from "./canvas.ts";

const rowHeight = 18;

/** A box of the icicle: a node, or a run of library frames folded into one. */
export interface Box {
  node: number;
  folded: number; // frames in it
  depth: number;
  x: number; // bytes from the left
  bytes: number;
  parent: number; // index of a box
}

/** Lays the tree out, root on top. Chains of library frames become one box if asked to. */
export function layout(flame: Flame, foldLibrary: boolean): Box[] {
  const { frame, parent, bytes } = flame.nodes;
  const n = frame.length;
  const children: number[][] = Array.from({ length: n }, () => []);
  for (let i = 1; i < n; i++) children[parent[i]!]!.push(i);
  const library = (i: number): boolean => frame[i]! >= 0 && flame.frames[frame[i]!]!.origin !== "own";
  const out: Box[] = [];
  const put = (node: number, depth: number, x: number, above: number): void => {
    let last = node;
    let folded = 1;
    if (foldLibrary) {
      while (library(last) && children[last]!.length === 1 && library(children[last]![0]!) && bytes[children[last]![0]!] === bytes[last]) {
        last = children[last]![0]!;
        folded++;
      }
    }
    const me = out.push({ node: last, folded, depth, x, bytes: bytes[node]!, parent: above }) - 1;
    let at = x;
    for (const c of children[last]!) {
      put(c, depth + 1, at, me);
      at += bytes[c]!;
    }
  };
  if (n) put(0, 0, 0, -1);
  return out;
}

/** What an icicle asks of the page that it is in. */
export interface How {
  tooltip: HTMLElement;
  pieces: string; // what its bytes are in, as allocations
  slot: (own: Frame) => number; // the color of a line of own code, −1 if it has none
  found: () => RegExp | null; // what is searched for
  zoomed?: (node: number) => void;
}

export class Icicle {
  private flame: Flame | null = null;
  private boxes: Box[] = [];
  private focus = 0; // the box that fills the width
  private picked: Box | null = null;
  private readonly canvas = h("canvas", { role: "img", onclick: (e) => this.click(e as MouseEvent), ondblclick: () => this.zoomTo(0), onpointermove: (e) => this.point(e as PointerEvent), onpointerleave: () => (this.how.tooltip.hidden = true) });
  private readonly box = own(h("div", { class: "icicle", tabindex: "0", role: "group", "aria-label": "Stacks" }, this.canvas));
  folded = true;

  constructor(private readonly how: How) {}

  /** Takes other stacks. */
  show(flame: Flame): void {
    this.flame = flame;
    this.lay();
  }

  refold(): void {
    this.folded = !this.folded;
    this.lay();
  }

  private lay(): void {
    this.focus = 0;
    this.picked = null;
    this.boxes = this.flame ? layout(this.flame, this.folded) : [];
  }

  private get depth(): number {
    return this.boxes.reduce((m, b) => Math.max(m, b.depth), 0) + 1;
  }

  /** The element, in a view that it leaves room in, where that does not scroll as a whole. What stands in it is drawn by paint(). */
  element(view: HTMLElement): HTMLElement {
    const { flame, how } = this;
    this.canvas.setAttribute("aria-label", `Stacks of ${bytes(flame?.bytes)} in ${count(flame?.count ?? 0)} ${how.pieces}, root on top; a table shows the same`);
    this.box.style.height = `${Math.min(this.depth * rowHeight + 2, getComputedStyle(view).overflow === "visible" ? Infinity : Math.round(view.clientHeight * 0.55))}px`;
    return this.box;
  }

  private frameOf(b: Box): Frame | undefined {
    return this.flame!.frames[this.flame!.nodes.frame[b.node]!];
  }

  private nameOf(b: Box): string {
    const f = this.flame!.nodes.frame[b.node]!;
    if (f === -1) return "all";
    if (f < -1) return missing[f] ?? "";
    if (b.folded > 1) return `⋯ ${b.folded} library frames`;
    return placeOf(this.flame!.frames[f]!);
  }

  private rect(b: Box, width: number): [number, number] {
    const from = this.boxes[this.focus]!;
    const scale = width / Math.max(1, from.bytes);
    return [Math.max(0, (b.x - from.x) * scale), Math.min(width, (b.x + b.bytes - from.x) * scale)];
  }

  paint(): void {
    const { canvas, depth } = this;
    if (!canvas.isConnected || !this.flame || !this.boxes.length) return;
    const width = canvas.parentElement!.clientWidth;
    size(canvas, width, depth * rowHeight);
    const g = begin(canvas);
    const c = palette();
    g.font = fontOf(canvas);
    const found = this.how.found();
    for (const b of this.boxes) {
      const [x0, x1] = this.rect(b, width);
      if (x1 - x0 < 0.5 || x1 <= 0 || x0 >= width) continue;
      const frame = this.frameOf(b);
      let color: RGB = mix(c.neutral, c.page, 0.28);
      if (frame?.origin === "own") {
        const slot = this.how.slot(frame);
        color = slot >= 0 ? siteColor(c, slot) : mix(c.accent, c.page, 0.3);
      }
      const net = this.flame.nodes.net?.[b.node];
      if (net !== undefined) color = mix(net > 0 ? c.danger : c.accent, c.page, 0.25 + (0.75 * Math.abs(net)) / Math.max(1, b.bytes)); // red grew, blue shrank
      if (found && !found.test(this.nameOf(b))) color = mix(color, c.page, 0.3);
      const y = b.depth * rowHeight;
      rect(g, color, x0, y, Math.max(0.5, x1 - x0 - 1), rowHeight - 1);
      if (b === this.picked) outline(g, c.accent, 2, x0 + 1, y + 1, x1 - x0 - 3, rowHeight - 3);
      if (x1 - x0 < 34) continue;
      const room = x1 - x0 - 10;
      write(g, inRoom(g, this.nameOf(b), room), x0 + 5, y + rowHeight / 2, textOn(color));
      const amount = net === undefined ? bytes(b.bytes) : delta(net);
      const w = g.measureText(amount).width;
      if (g.measureText(this.nameOf(b)).width + w + 20 < room) write(g, amount, x1 - w - 6, y + rowHeight / 2, textOn(color));
    }
  }

  private boxAt(e: MouseEvent): Box | undefined {
    const canvas = e.currentTarget as HTMLCanvasElement;
    const r = canvas.getBoundingClientRect();
    const depth = Math.floor((e.clientY - r.top) / rowHeight);
    const x = e.clientX - r.left;
    return this.boxes.find((b) => {
      if (b.depth !== depth) return false;
      const [x0, x1] = this.rect(b, r.width);
      return x >= x0 && x < x1;
    });
  }

  private click(e: MouseEvent): void {
    const b = this.boxAt(e);
    if (!b) return;
    const i = this.boxes.indexOf(b);
    this.picked = b;
    this.zoomTo(i === this.focus && b.parent >= 0 ? b.parent : i);
  }

  private zoomTo(i: number): void {
    this.focus = i;
    this.how.zoomed?.(this.boxes[i]?.node ?? 0);
    this.paint();
  }

  /** Lets a node of the tree fill the width, if it is drawn. */
  zoom(node: number): void {
    this.focus = Math.max(0, this.boxes.findIndex((b) => b.node === node));
  }

  private point(e: PointerEvent): void {
    const b = this.boxAt(e);
    const t = this.how.tooltip;
    t.hidden = !b;
    if (!b || !this.flame) return;
    const f = this.frameOf(b);
    const net = this.flame.nodes.net?.[b.node];
    t.replaceChildren(
      h("div", { class: "head" }, this.nameOf(b)),
      h("div", { "data-bytes": b.bytes }, net === undefined ? "" : `${delta(net)}: `, `${bytes(b.bytes)}, ${percent(b.bytes, this.flame.bytes)} in ${count(this.flame.nodes.count[b.node]!)} ${this.how.pieces}`),
      ...(f ? [h("span", { class: "mono" }, f.line > 0 ? `${f.file}:${f.line}` : f.file)] : []),
    );
    placeTip(t, e.clientX, e.clientY);
  }
}
