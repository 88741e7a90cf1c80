// The allocator's state after one event: every segment and block to one scale.

import { fresh, json, Latest, url } from "../base/ask.ts";
import { fill, h } from "../base/dom.ts";
import { bytes, count, percent } from "../base/format.ts";
import { byId } from "../base/dom.ts";
import { actions } from "../base/names.ts";
import type { Page } from "../page/page.ts";
import { css, mix, palette, siteColour, textOn, type Palette } from "../picture/palette.ts";
import type { Rail } from "../rail/rail.ts";
import { byteTick } from "../base/scale.ts";
import type { Event } from "../base/wire.ts";

export interface Segment {
  address: string;
  size: number;
  pool: string;
  private: boolean;
  stream: number | string;
  type: string;
  expandable: boolean;
  first: number;
  blocks: number;
  releasable: number;
  stranded: number;
}

export interface Heap {
  event: number;
  exact: boolean;
  notes: string[];
  reserved: number;
  allocated: number;
  pending: number;
  slack: number;
  free: number;
  releasable: number;
  stranded: number;
  segments: Segment[];
  blocks: { offset: number[]; size: number[]; requested: number[]; state: string; alloc: number[]; group: number[] };
  strands: { key: string; group: number; count: number; bytes: number }[];
  changed: { address: string; size: number; action: string } | null;
}

/** A segment, or a part of one, on a row of text-like lines. */
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

/** Segments by pool, stream and size class, large pools first. */
export function sections(heap: Heap, unfolded: boolean): Section[] {
  const by = new Map<string, Section>();
  heap.segments.forEach((s, i) => {
    const name = `${s.pool === "default" ? "" : `${s.pool} · `}stream ${s.stream} · ${s.type} pool${s.expandable ? " · expandable" : ""}`;
    let sec = by.get(name);
    if (!sec) by.set(name, (sec = { name, private: s.private, segments: [], folded: [], reserved: 0, used: 0, magnified: 1, pieces: [], rows: 0 }));
    sec.reserved += s.size;
    let used = 0;
    for (let b = s.first; b < s.first + s.blocks; b++) if (heap.blocks.state[b] !== "f") used += heap.blocks.size[b]!;
    sec.used += used;
    (used === 0 && !unfolded ? sec.folded : sec.segments).push(i);
  });
  const out = [...by.values()];
  for (const sec of out) sec.segments.sort((a, b) => compareAddress(heap.segments[a]!.address, heap.segments[b]!.address));
  return out.sort((a, b) => b.reserved - a.reserved);
}

const compareAddress = (a: string, b: string): number => a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);

/** The bytes of a row: the smallest power of two that gives at most `most` rows in all. */
export function rowBytes(heap: Heap, secs: Section[], most: number): number {
  let row = 2 ** 20;
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

const rowHigh = 17;
const rowStep = 22;
const left = 64;
const around = 6; // events that are listed before and behind the state's

interface Spot {
  x0: number;
  x1: number;
  y0: number;
  y1: number;
  segment: number; // −1: the line of folded segments
  section: Section;
}

export class Allocator {
  private readonly asking = new Latest(30);
  private asked = "";
  private heap: Heap | null = null;
  private error = "";
  private unfolded = false;
  private spots: Spot[] = [];
  private playing = 0;

  constructor(
    private readonly page: Page,
    private readonly rail: Rail,
    private readonly root: HTMLElement,
    private readonly tooltip: HTMLElement,
    private readonly jump: (to: string, back: boolean) => void,
  ) {
    new ResizeObserver(() => this.root.querySelector(".heap") && this.paint()).observe(root);
  }

  enter(): void {
    this.inspect();
  }

  update(): void {
    const { page } = this;
    if (!page.device || !page.bands) return fill(this.root);
    const params = { ...page.base, k: page.device.events === 0 ? -1 : page.k };
    const key = `${url("state", params)} ${page.file?.blocks}`; // once sizes are known, more of it is exact
    if (key !== this.asked) {
      this.asked = key;
      this.asking.ask(
        () => fresh<Heap>("state", params),
        (v) => {
          this.heap = v;
          this.error = "";
          const { reserved, allocated, pending, free, releasable, stranded } = v;
          page.figures.heap = { event: v.event, reserved, allocated, pending, free, releasable, stranded, strands: v.strands.reduce((n, s) => n + s.bytes, 0), segments: v.segments.length, pools: sections(v, true).map((x) => ({ name: x.name, reserved: x.reserved, active: x.used, segments: x.segments.length })) };
          this.draw();
        },
        (e) => {
          this.error = e.message;
          this.heap = null;
          this.draw();
        },
      );
    }
    if (!this.root.querySelector(".heap, .note")) this.draw();
    else {
      this.paint();
      this.inspect();
    }
  }

  private draw(): void {
    if (this.page.s.view !== "allocator") return;
    const { heap } = this;
    if (!heap) return fill(this.root, h("p", { class: "note" }, this.error || "Building the allocator's state …"));
    const canvas = h("canvas", { role: "img", "aria-label": `${count(heap.segments.length)} segments, ${bytes(heap.reserved)} reserved, ${bytes(heap.allocated)} allocated; the inspector lists them` });
    const scroll = h("div", { class: "scroll heap", tabindex: "0", role: "group", "aria-label": "Segments and blocks" }, canvas);
    canvas.addEventListener("click", (e) => this.click(e));
    canvas.addEventListener("pointermove", (e) => this.point(e));
    canvas.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
    fill(
      this.root,
      h(
        "div",
        { class: "bar" },
        h("span", {}, heap.event < 0 ? "state at the snapshot" : ["state after event ", h("b", {}, count(heap.event)), ` of ${count(this.page.device!.events)}`]),
        this.page.device!.events === 0
          ? null
          : h(
              "span",
              { class: "jumps", role: "group", "aria-label": "Jump to" },
              this.button("segment back", "‹", "Segment event before (,)", () => this.jump("segment", true)),
              "segment event",
              this.button("segment", "›", "Next segment event (.)", () => this.jump("segment", false)),
              this.button("peak", "peak", "Next peak (p)", () => this.jump("peak", false)),
              this.page.device!.marks.some((m) => m.kind === "oom") ? this.button("oom", "error", "Next out-of-memory error (o)", () => this.jump("oom", false)) : null,
              matchMedia("(prefers-reduced-motion: reduce)").matches ? null : this.button("play", this.playing ? "stop" : "play", "Play segment events (space)", () => this.play()),
            ),
        h("span", { id: "row-scale", class: "wide" }),
        heap.exact ? null : h("span", { title: heap.notes.join(" ") }, "block sizes of what is gone are lower bounds"),
        h(
          "div",
          { class: "end" },
          h("button", { type: "button", class: "link", "data-key": "unfold", onclick: () => this.unfold() }, "fold or show free segments"),
          h("a", { href: url("csv", { table: "state", ...this.page.base, k: heap.event }), download: "strandline-state.csv", "data-key": "csv" }, "save CSV"),
        ),
      ),
      scroll,
    );
    this.paint();
    this.inspect();
  }

  private button(key: string, text: string, title: string, act: () => void): HTMLElement {
    return h("button", { type: "button", class: "link", "data-key": key, title, "aria-label": text.length > 1 ? undefined : title, onclick: act }, text);
  }

  /** Folds the wholly free segments to one line each group, or shows them all. */
  unfold(): void {
    this.unfolded = !this.unfolded;
    this.paint();
  }

  /** Plays segment events, four a second; not where motion is unwanted. */
  play(): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    if (this.playing) {
      clearInterval(this.playing);
      this.playing = 0;
      return this.draw();
    }
    this.playing = window.setInterval(() => {
      if (this.page.s.view !== "allocator") return this.play();
      json<{ event: number | null }>("next", { f: this.page.f, d: this.page.d, k: this.page.k, to: "segment" }).then(({ event }) => {
        if (event === null) return this.playing ? this.play() : undefined;
        this.page.store.set({ k: event });
        this.rail.reveal(event);
      }, () => {});
    }, 250);
    this.draw();
  }

  private paint(): void {
    const { heap } = this;
    const canvas = this.root.querySelector<HTMLCanvasElement>(".heap canvas");
    if (!heap || !canvas) return;
    const c = palette();
    const width = Math.max(300, canvas.parentElement!.clientWidth);
    const room = width - left - 16;
    const secs = sections(heap, this.unfolded);
    const row = rowBytes(heap, secs, 24);
    for (const s of secs) flow(heap, s, row, (2 / room) * row);
    const high = secs.reduce((n, s) => n + 24 + s.rows * rowStep + (s.folded.length ? rowStep : 0) + 8, 24 + 36);
    const ratio = devicePixelRatio;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(high * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${high}px`;
    const g = canvas.getContext("2d")!;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    g.font = `11px ${getComputedStyle(this.root).fontFamily}`;
    g.textBaseline = "middle";
    fill(byId("row-scale"), "1 row = ", h("b", {}, byteTick(row)), ", one scale; magnified groups say so");
    g.fillStyle = css(c.muted);
    for (let i = 0; i <= 4; i++) {
      const x = left + (room * i) / 4;
      g.textAlign = i === 4 ? "right" : i ? "center" : "left";
      g.fillText(byteTick((row * i) / 4), x, 12);
      g.fillRect(Math.min(x, width - 17), 19, 1, 4);
    }
    this.spots = [];
    let y = 24;
    for (const s of secs) y = this.paintSection(g, c, s, row, room, y);
    this.legend(g, c, y + 12);
  }

  private paintSection(g: CanvasRenderingContext2D, c: Palette, s: Section, row: number, room: number, y: number): number {
    const heap = this.heap!;
    g.textAlign = "left";
    g.fillStyle = css(c.muted);
    const n = s.segments.length + s.folded.length;
    const parts = [s.name, `${count(n)} ${n === 1 ? "segment" : "segments"}`, `${bytes(s.reserved)} reserved`, `${bytes(s.used)} in use`];
    if (s.private) parts.push("not shared with the default pool");
    if (s.magnified > 1 && s.segments.length) parts.push(`drawn ×${s.magnified}`);
    g.fillText(parts.join("  ·  "), left, y + 12);
    y += 24;
    const scale = (room / row) * s.magnified;
    const widest = this.widestFree(s.pieces);
    for (const p of s.pieces) {
      const x0 = left + p.x * scale;
      const x1 = left + (p.x + p.bytes) * scale;
      const top = y + p.row * rowStep;
      this.paintPiece(g, c, p, x0, x1, top, scale, widest.get(p.segment) === p);
      this.spots.push({ x0, x1, y0: top, y1: top + rowHigh, segment: p.segment, section: s });
    }
    y += s.rows * rowStep;
    if (s.folded.length) {
      const sum = s.folded.reduce((m, i) => m + heap.segments[i]!.size, 0);
      hatch(g, left, y, room, rowHigh, css(c.whole), css(c.wholeLine));
      const text = `${count(s.folded.length)} whole free ${s.folded.length === 1 ? "segment" : "segments"}, ${bytes(sum)} · folded, not to scale · ${s.private ? "empty_cache() returns them only once their pool is gone" : "empty_cache() would return them"}`;
      g.fillStyle = css(c.page);
      g.fillRect(left + 6, y + 1, g.measureText(text).width + 12, rowHigh - 2);
      g.fillStyle = css(c.ink);
      g.fillText(text, left + 12, y + rowHigh / 2);
      this.spots.push({ x0: left, x1: left + room, y0: y, y1: y + rowHigh, segment: -1, section: s });
      y += rowStep;
    }
    return y + 8;
  }

  /** For each segment the piece that shows the largest free part of it, where its label stands. */
  private widestFree(pieces: Piece[]): Map<number, Piece> {
    const { blocks, segments } = this.heap!;
    const best = new Map<number, { piece: Piece; free: number }>();
    for (const p of pieces) {
      const s = segments[p.segment]!;
      for (let b = s.first; b < s.first + s.blocks; b++) {
        if (blocks.state[b] !== "f") continue;
        const free = Math.min(blocks.offset[b]! + blocks.size[b]!, p.from + p.bytes) - Math.max(blocks.offset[b]!, p.from);
        if (free > (best.get(p.segment)?.free ?? 0)) best.set(p.segment, { piece: p, free });
      }
    }
    return new Map([...best].map(([segment, v]) => [segment, v.piece]));
  }

  private use(segment: number): { used: number; n: number } {
    const pins = this.pins(segment);
    return { used: pins.reduce((sum, p) => sum + p.bytes, 0), n: pins.length };
  }

  private paintPiece(g: CanvasRenderingContext2D, c: Palette, p: Piece, x0: number, x1: number, y: number, scale: number, tells: boolean): void {
    const heap = this.heap!;
    const { blocks } = heap;
    const seg = heap.segments[p.segment]!;
    const whole = seg.stranded === 0 && seg.releasable > 0;
    if (whole) hatch(g, x0, y, x1 - x0, rowHigh, css(c.whole), css(c.wholeLine));
    else {
      g.fillStyle = css(c.stranded);
      g.fillRect(x0, y, x1 - x0, rowHigh);
    }
    // Free pieces wide enough for a word tell how much is stranded, and by what.
    const label = (text: string, from: number, to: number, colour: string, right: boolean): void => {
      if (to - from < 110) return;
      let t = text;
      while (t.length > 4 && g.measureText(t).width > to - from - 10) t = `${t.slice(0, -2)}…`.replace("……", "…");
      g.fillStyle = colour;
      g.textAlign = right ? "right" : "left";
      g.fillText(t, right ? to - 6 : from + 5, y + rowHigh / 2 + 0.5);
      g.textAlign = "left";
    };
    let widest: [number, number] = [0, 0];
    for (let b = seg.first; b < seg.first + seg.blocks; b++) {
      const from = Math.max(blocks.offset[b]!, p.from);
      const to = Math.min(blocks.offset[b]! + blocks.size[b]!, p.from + p.bytes);
      if (to <= from) continue;
      const bx0 = x0 + (from - p.from) * scale;
      const bx1 = x0 + (to - p.from) * scale;
      if (blocks.state[b] === "f") {
        if (bx1 - bx0 > widest[1] - widest[0]) widest = [bx0, bx1];
        continue;
      }
      const group = this.page.bands!.groups[blocks.group[b]!];
      let colour = siteColour(c, group?.slot ?? -1);
      const solo = this.page.s.solo;
      if ((solo.length && !solo.includes(group?.key ?? "")) || (this.page.found && !this.page.found.has(group?.key ?? ""))) colour = mix(colour, c.page, 0.15);
      const w = Math.max(0.75, bx1 - bx0);
      if (blocks.state[b] === "p") hatch(g, bx0, y, w, rowHigh, css(colour), css(c.page));
      else {
        g.fillStyle = css(colour);
        g.fillRect(bx0, y, w, rowHigh);
      }
      const slack = (blocks.size[b]! - blocks.requested[b]!) * scale;
      if (slack >= 1 && to === blocks.offset[b]! + blocks.size[b]!) {
        g.fillStyle = css(c.ink);
        g.globalAlpha = 0.35;
        g.fillRect(bx1 - slack, y, slack, rowHigh);
        g.globalAlpha = 1;
      }
      if (bx1 - bx0 > 3) {
        g.fillStyle = css(c.page);
        g.globalAlpha = 0.6;
        g.fillRect(bx1 - 1, y, 1, rowHigh);
        g.globalAlpha = 1;
      }
      if (group) label(group.label, bx0, bx1, css(textOn(colour)), false);
    }
    if (tells && seg.stranded > 0) {
      const { used, n } = this.use(p.segment);
      label(`${bytes(seg.stranded)} stranded by ${bytes(used)} in ${count(n)}`, widest[0], widest[1], css(c.strandedText), true);
    }
    const pinned = this.page.s.segment === seg.address;
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
    this.ring(g, c, p, x0, y, scale);
  }

  /** Rings what the event touched. */
  private ring(g: CanvasRenderingContext2D, c: Palette, p: Piece, x0: number, y: number, scale: number): void {
    const { changed, segments } = this.heap!;
    if (!changed) return;
    const from = Number(changed.address) - Number(segments[p.segment]!.address) - p.from; // 48 bits: exact
    const to = from + changed.size;
    if (to <= 0 || from >= p.bytes) return;
    const a = x0 + Math.max(0, from) * scale;
    const b = Math.max(a + 3, x0 + Math.min(p.bytes, to) * scale);
    g.strokeStyle = css(c.accent);
    g.lineWidth = 2;
    g.strokeRect(a - 1, y - 2, b - a + 2, rowHigh + 4);
  }

  private legend(g: CanvasRenderingContext2D, c: Palette, y: number): void {
    const heap = this.heap!;
    let x = left;
    const item = (text: string, draw: (x: number) => void): void => {
      draw(x);
      g.fillStyle = css(c.ink);
      g.textAlign = "left";
      g.fillText(text, x + 22, y + 6);
      x += g.measureText(text).width + 44;
    };
    const flat = (colour: string) => (x: number): void => {
      g.fillStyle = colour;
      g.fillRect(x, y, 16, 12);
    };
    item("in use (colour of its site)", flat(css(c.slots[0]!)));
    if (heap.pending) item(`freed, waits for a stream: ${bytes(heap.pending)}`, (x) => hatch(g, x, y, 16, 12, css(c.slots[0]!), css(c.page)));
    item(`free but stranded: ${bytes(heap.stranded)}`, flat(css(c.stranded)));
    item(`releasable: ${bytes(heap.releasable)}`, (x) => hatch(g, x, y, 16, 12, css(c.whole), css(c.wholeLine)));
    if (heap.slack) item(`rounding: ${bytes(heap.slack)}`, flat(css(mix(c.ink, c.page, 0.35))));
  }

  private spotAt(e: MouseEvent): Spot | undefined {
    const r = (e.currentTarget as HTMLElement).getBoundingClientRect();
    const x = e.clientX - r.left;
    const y = e.clientY - r.top;
    return this.spots.find((s) => x >= s.x0 && x < s.x1 && y >= s.y0 && y < s.y1);
  }

  private click(e: MouseEvent): void {
    const s = this.spotAt(e);
    if (s && s.segment < 0) {
      this.unfolded = true;
      return this.paint();
    }
    const address = s ? this.heap!.segments[s.segment]!.address : null;
    this.page.store.set({ segment: address === this.page.s.segment ? null : address }, true);
  }

  private pins(segment: number): { label: string; slot: number; bytes: number; alloc: number }[] {
    const { blocks, segments } = this.heap!;
    const s = segments[segment]!;
    const out = [];
    for (let b = s.first; b < s.first + s.blocks; b++) {
      if (blocks.state[b] === "f") continue;
      const g = this.page.bands!.groups[blocks.group[b]!];
      out.push({ label: g?.label ?? "unknown", slot: g?.slot ?? -1, bytes: blocks.size[b]!, alloc: blocks.alloc[b]! });
    }
    return out.sort((a, b) => b.bytes - a.bytes);
  }

  private point(e: PointerEvent): void {
    const s = this.spotAt(e);
    const t = this.tooltip;
    t.hidden = !s || s.segment < 0;
    if (!s || s.segment < 0) return;
    const seg = this.heap!.segments[s.segment]!;
    const pins = this.pins(s.segment);
    const sum = pins.reduce((n, p) => n + p.bytes, 0);
    t.replaceChildren(
      h("div", { class: "head" }, `${bytes(seg.size)} segment`),
      h("div", { class: "mono" }, `${seg.address} · ${seg.type} · stream ${seg.stream}`),
      h("div", {}, seg.stranded > 0 ? `${bytes(seg.stranded)} cannot be returned because ${count(pins.length)} ${pins.length === 1 ? "block" : "blocks"} (${bytes(sum)}) ${pins.length === 1 ? "is" : "are"} in use` : pins.length ? "full" : "free"),
      ...pins.slice(0, 6).map((p) => h("div", {}, h("span", { class: `sw s${p.slot}` }), ` ${p.label} · ${bytes(p.bytes)}`)),
      ...(pins.length > 6 ? [h("div", { class: "muted" }, `${count(pins.length - 6)} more`)] : []),
    );
    const x = e.clientX + 16 + t.offsetWidth > innerWidth ? e.clientX - t.offsetWidth - 12 : e.clientX + 16;
    const y = e.clientY + 16 + t.offsetHeight > innerHeight ? e.clientY - t.offsetHeight - 10 : e.clientY + 16;
    t.style.transform = `translate(${Math.max(4, x)}px,${Math.max(4, y)}px)`;
  }

  private inspect(): void {
    const root = byId("inspector");
    const { heap, page } = this;
    if (!heap) return fill(root);
    const line = (name: string, v: number, id: string): Node[] => [h("dt", {}, name), h("dd", { "data-bytes": v, "data-figure": id, title: `${v} bytes` }, bytes(v))];
    const out: Node[] = [
      h("h2", {}, "reserved"),
      h(
        "dl",
        {},
        line("reserved", heap.reserved, "heap-reserved"),
        line("in use", heap.allocated, "heap-allocated"),
        heap.pending ? line("waits for a stream", heap.pending, "heap-pending") : [],
        heap.slack ? line("of it rounding", heap.slack, "heap-slack") : [],
        line("free, stranded", heap.stranded, "heap-stranded"),
        line("free, releasable", heap.releasable, "heap-releasable"),
      ),
    ];
    const i = heap.segments.findIndex((s) => s.address === page.s.segment);
    if (page.s.segment !== null) {
      const s = heap.segments[i];
      out.push(h("h2", {}, "segment pinned"));
      if (!s) out.push(h("p", { class: "muted" }, `${page.s.segment} does not exist at this event.`));
      else {
        const pins = this.pins(i);
        const sum = pins.reduce((n, p) => n + p.bytes, 0);
        out.push(
          h("p", { class: "mono" }, `${s.address} · ${bytes(s.size)} · ${s.type}`),
          s.stranded > 0 ? h("p", {}, `${bytes(s.stranded)} cannot be returned because ${count(pins.length)} ${pins.length === 1 ? "block" : "blocks"} (${bytes(sum)}) ${pins.length === 1 ? "is" : "are"} in use:`) : h("p", {}, `${count(pins.length)} blocks, ${bytes(sum)} in use`),
          h("dl", { class: "names" }, pins.slice(0, 30).map((p) => [h("dt", {}, h("button", { type: "button", class: "link", "data-key": `pin ${p.alloc}`, disabled: p.alloc < 0, onclick: () => this.follow(p.alloc) }, h("span", { class: `sw s${p.slot}` }), h("span", { class: "name" }, p.label))), h("dd", { "data-bytes": p.bytes }, bytes(p.bytes))])),
        );
        if (pins.length > 30) out.push(h("p", { class: "muted" }, `${count(pins.length - 30)} more`));
      }
    }
    if (heap.strands.length) {
      const groups = page.bands?.groups ?? [];
      out.push(
        h("h2", {}, "who strands memory"),
        h(
          "dl",
          { id: "strands", class: "names" },
          heap.strands.slice(0, 10).map((s) => [
            h("dt", {}, h("button", { type: "button", class: "link", "data-key": `strand ${s.key}`, onclick: () => page.store.set({ solo: page.s.solo[0] === s.key ? [] : [s.key] }, true) }, h("span", { class: `sw s${groups[s.group]?.slot ?? -1}` }), h("span", { class: "name" }, `${groups[s.group]?.label ?? "unknown"} × ${count(s.count)}`))),
            h("dd", { "data-bytes": s.bytes, title: percent(s.bytes, heap.stranded) }, bytes(s.bytes)),
          ]),
        ),
      );
      const rest = heap.strands.slice(10);
      if (rest.length) out.push(h("p", { class: "muted" }, `${count(rest.length)} more sites, ${bytes(rest.reduce((n, s) => n + s.bytes, 0))}`));
    }
    out.push(...this.eventList());
    if (heap.notes.length) out.push(h("h2", {}, "notes"), ...heap.notes.map((n) => h("p", { class: "muted" }, n)));
    fill(root, ...out);
  }

  /** The events around the state's, each a way to its state. */
  private eventList(): Node[] {
    const { page, heap } = this;
    const k = heap!.event;
    const events = page.device!.events;
    if (events === 0) return [];
    const from = Math.max(0, Math.min(k - around, events - 2 * around - 1));
    const key = `${page.f} ${page.d} ${page.u} ${from}`;
    if (key !== this.listed.key) {
      this.listing.ask(
        () => json<{ events: Event[] }>("events", { f: page.f, d: page.d, u: page.u, from, to: Math.min(events - 1, from + 2 * around) }),
        (v) => {
          this.listed = { key, events: v.events };
          if (page.s.view === "allocator") this.inspect();
        },
      );
    }
    return [
      h("h2", {}, "events here"),
      h(
        "ol",
        { class: "events" },
        this.listed.events.map((e) =>
          h(
            "li",
            {},
            h(
              "button",
              { type: "button", "data-key": `event ${e.event}`, "aria-current": e.event === k ? "true" : undefined, onclick: () => page.store.set({ k: e.event }) },
              h("span", { class: "n" }, count(e.event)),
              h("span", { class: "name" }, actions[e.action] ?? e.action),
              h("span", {}, bytes(e.bytes)),
            ),
          ),
        ),
      ),
    ];
  }

  private readonly listing = new Latest(30);
  private listed: { key: string; events: Event[] } = { key: "", events: [] };

  /** Shows the allocation of a block in the timeline. */
  private follow(alloc: number): void {
    this.page.store.set({ alloc, view: "timeline" }, true);
  }
}

function hatch(g: CanvasRenderingContext2D, x: number, y: number, w: number, high: number, ground: string, line: string): void {
  g.save();
  g.beginPath();
  g.rect(x, y, w, high);
  g.clip();
  g.fillStyle = ground;
  g.fillRect(x, y, w, high);
  g.strokeStyle = line;
  g.lineWidth = 1;
  g.beginPath();
  for (let d = Math.floor(x / 6) * 6 - high; d < x + w; d += 6) {
    g.moveTo(d, y + high);
    g.lineTo(d + high, y);
  }
  g.stroke();
  g.restore();
}
