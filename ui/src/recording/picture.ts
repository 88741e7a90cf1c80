// The picture of a recording: what each place holds over time, the growth of
// resident memory above it, and lanes for the classes of growth and for the GPU.

import { labelPlaces, stackOf, type Run } from "../picture/blit.ts";
import { begin, gutterName, left, right, size, write } from "../picture/canvas.ts";
import { h } from "../base/dom.ts";
import { bytes, delta, plural } from "../base/format.ts";
import { fillOf, paintFor } from "../picture/paint.ts";
import { css, mix, palette, textOn } from "../picture/palette.ts";
import { axisHeight, marksHeight, TimePicture } from "../picture/time.ts";
import { others, tileOf, time, type Group, type Layers, type Slice } from "./bands.ts";
import type { Recording } from "./wire.ts";
import type { State } from "./state.ts";
import { byteStep, pixelAt, ticks, type Span } from "../base/scale.ts";

/** What the picture needs of the page. */
export interface Shown {
  doc: Recording;
  slice: Slice; // of the window, or finer
  whole: Slice;
  layers: Layers;
  s: State;
  found: Set<string> | null; // keys of groups that match the search
  set: (change: Partial<State>, step?: boolean) => void;
}

export const highest = (values: Float64Array | number[]): number => (values as number[]).reduce((m, v) => Math.max(m, v), 1);

interface Lane {
  name: string;
  values: ArrayLike<number>;
  owner?: string;
}

const laneHeight = 22;

export class Picture extends TimePicture {
  private shown: Shown | null = null;
  private lit: string | null = null;
  readonly figures: Record<string, number> = {};

  protected again(): void {
    if (this.shown) this.draw(this.shown);
  }

  protected get ready(): boolean {
    return !!this.shown?.slice.n;
  }

  protected get all(): Span {
    const { edges, n } = this.shown!.whole;
    return [edges[0]!, edges[n]!];
  }

  protected get chosen(): Span | null {
    return this.shown!.s.win;
  }

  protected see(win: Span | null): void {
    this.shown!.set({ win });
  }

  private get lanes(): Lane[] {
    const { slice, doc } = this.shown!;
    const out: Lane[] = [
      { name: "anonymous", values: slice.of.anonymous_bytes },
      { name: "file", values: slice.of.file_bytes },
      { name: "shared", values: slice.of.shared_bytes },
    ].filter((l) => l.values.some((v) => v !== 0));
    const gpu = doc.owners.map((o, i) => ({ name: "GPU", owner: `${o.owner}${o.memory === "device" ? "" : `, ${o.memory}`}`, values: slice.owners[i]!.bytes }));
    return [...out, ...gpu.filter((l) => l.values.some((v) => v > 0)).sort((a, b) => b.values[slice.n - 1]! - a.values[slice.n - 1]!).slice(0, 4)];
  }

  draw(shown: Shown): void {
    this.shown = shown;
    const { slice, layers, s, found } = shown;
    this.colors = palette();
    const lanes = this.lanes;
    const width = Math.max(100, this.root.clientWidth - left - right);
    const top = 4 + laneHeight * lanes.length + marksHeight;
    const high = s.view === "timeline" ? Math.max(120, Math.round(innerHeight * 0.5) - top) : 96;
    this.layout = { lanes: 4, top, width, height: high };
    const ratio = devicePixelRatio;
    const whole = top + high + axisHeight;
    this.box.style.height = `${whole}px`;
    size(this.data, left, top, width, high, ratio);
    for (const canvas of [this.ink, this.front]) size(canvas, 0, 0, this.root.clientWidth, whole, ratio);
    const alone = s.alone ? s.sel : null;
    this.tile = tileOf(slice, layers, alone);
    const most = (alone === null && this.fits === "resident" ? highest(this.tile.reserved) : Math.max(highest(this.tile.max), highest(this.tile.reserved))) * 1.04;
    const step = byteStep(most, 4);
    this.frame = { width: this.data.width, height: this.data.height, win: this.win, top: most, gridAt: ticks(step, most, step), scale: ratio };
    this.drawn = this.cut();
    this.paint(found);
    this.write(lanes, step, alone);
    this.cursor();
    this.box.setAttribute("aria-label", this.description(alone));
    this.front.setAttribute("aria-label", "The picture; the table below lists what is held at the cursor");
  }

  /** What the height of the picture holds. Address space can be reserved without end, so what is mapped may dwarf what is resident. */
  get fits(): "mapped" | "resident" {
    const { s, slice } = this.shown!;
    const dwarfed = 8;
    return s.y ?? (highest(slice.growth) > 1 << 20 && highest(slice.of.live_bytes) > dwarfed * highest(slice.growth) ? "resident" : "mapped");
  }

  private description(alone: string | null): string {
    const { doc, slice, layers } = this.shown!;
    const c = slice.n - 1;
    const what = alone === null ? "Memory that is mapped" : (layers.groups.find((g) => g.key === alone)?.label ?? "nothing");
    return `${what} over ${plural(doc.moments, "moment")}, ${bytes(this.tile!.max[c] ?? 0)} at the end; resident memory ${delta(slice.growth[c] ?? 0)}. Arrow keys move the cursor.`;
  }

  /** The pixels that each column fills. */
  private cut(): Run[] {
    const { edges, n } = this.shown!.slice;
    const { win, width } = this.frame;
    const out: Run[] = [];
    for (let c = 0; c < n; c++) {
      const x0 = Math.max(0, pixelAt(edges[c]!, win, width));
      const x1 = Math.min(width, pixelAt(edges[c + 1]!, win, width));
      if (x1 > x0) out.push({ x0, x1, tile: this.tile!, c });
    }
    return out;
  }

  private paint(found: Set<string> | null): void {
    const { s, layers } = this.shown!;
    this.blit(paintFor(layers.bands, this.colors, this.lit ?? s.sel, found));
  }

  /** Axes, lanes, lines and labels. */
  private write(lanes: Lane[], step: number, alone: string | null): void {
    const g = begin(this.ink);
    const l = this.layout;
    const c = this.colors;
    const { slice, doc } = this.shown!;
    this.axes(g, step, (t) => (t === 0 ? "0" : time(t)));
    lanes.forEach((lane, i) => this.lane(g, lane, l.lanes + laneHeight * i));
    this.drops(g);
    g.save();
    g.beginPath();
    g.rect(left, l.top - 1, l.width, l.height + 1);
    g.clip();
    if (alone === null) this.line(g);
    this.labels(g);
    g.restore();
    if (doc.partial !== null && this.frame.win[1] >= this.all[1]) {
      g.fillStyle = css(c.danger);
      g.fillRect(left + l.width - 2, l.top, 3, l.height);
    }
    this.gutter(g, alone, slice.at(this.frame.win[1]));
  }

  /** Growth of a class or an owner, on its own scale. */
  private lane(g: CanvasRenderingContext2D, lane: Lane, y: number): void {
    const l = this.layout;
    const c = this.colors;
    gutterName(g, lane.name, y + 10, c);
    g.fillStyle = css(c.panel);
    g.fillRect(left, y, l.width, laneHeight - 2);
    let [low, high] = [0, 1];
    for (const r of this.drawn) [low, high] = [Math.min(low, lane.values[r.c]!), Math.max(high, lane.values[r.c]!)];
    const at = (v: number): number => y + laneHeight - 2 - ((v - low) / (high - low)) * (laneHeight - 3);
    g.fillStyle = css(mix(lane.owner === undefined ? c.neutral : c.accent, c.panel, 0.75));
    const ratio = this.frame.scale;
    for (const r of this.drawn) {
      const v = lane.values[r.c]!;
      g.fillRect(left + r.x0 / ratio, Math.min(at(v), at(0)), (r.x1 - r.x0) / ratio, Math.abs(at(v) - at(0)));
    }
    g.textAlign = "left";
    if (lane.owner !== undefined) {
      const width = g.measureText(lane.owner).width + 12;
      g.fillStyle = css(c.panel);
      g.fillRect(left, y, width, laneHeight - 2);
      g.fillStyle = css(c.ink);
      write(g, lane.owner, left + 6, y + 10);
    }
    g.fillStyle = css(c.ink);
    const last = lane.values[this.shown!.slice.at(this.frame.win[1])] ?? 0;
    write(g, lane.owner === undefined ? delta(last) : bytes(last), left + l.width + 8, y + 10);
  }

  /** Marks where events were lost. */
  private drops(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    g.fillStyle = css(this.colors.danger);
    for (const r of this.drawn) {
      if (this.lostAt(r.c) <= 0) continue;
      const x = left + (r.x0 + r.x1) / 2 / this.frame.scale;
      g.beginPath();
      g.moveTo(x - 4, l.top - 9);
      g.lineTo(x + 4, l.top - 9);
      g.lineTo(x, l.top - 2);
      g.fill();
    }
  }

  private lostAt(c: number): number {
    const { drops } = this.shown!.slice.of;
    return drops[c]! - (c > 0 ? drops[c - 1]! : 0);
  }

  /** The growth of resident memory. */
  private line(g: CanvasRenderingContext2D): void {
    const { growth } = this.shown!.slice;
    g.strokeStyle = css(this.colors.reserved);
    g.lineWidth = 1.5;
    g.setLineDash([5, 3]);
    g.beginPath();
    for (const r of this.drawn) {
      const y = Math.min(this.y(growth[r.c]!), this.layout.top + this.layout.height - 0.75);
      g.lineTo(left + r.x0 / this.frame.scale, y);
      g.lineTo(left + r.x1 / this.frame.scale, y);
    }
    g.stroke();
    g.setLineDash([]);
  }

  private labels(g: CanvasRenderingContext2D): void {
    const { layers, found } = this.shown!;
    const { bands, groups } = layers;
    const { scale } = this.frame;
    const of = (b: number): Group => groups[bands.bands[b]!.group]!;
    g.textAlign = "left";
    for (const p of labelPlaces(this.drawn, this.frame, bands.bands.length, (b) => g.measureText(of(b).label).width * scale, 15 * scale)) {
      const { key, label } = of(p.band);
      const faded = found && !found.has(key);
      g.fillStyle = css(faded ? this.colors.muted : textOn(fillOf(bands, p.band, this.colors)));
      write(g, label, left + p.x / scale + 8, this.layout.top + p.y / scale + 0.5);
    }
  }

  /** The values at the right edge, beside the lines that they belong to. */
  private gutter(g: CanvasRenderingContext2D, alone: string | null, column: number): void {
    const l = this.layout;
    const { slice, layers } = this.shown!;
    if (!this.tile!.n) return;
    let grows = 0;
    for (let b = 0; b < layers.bands.kept; b++) grows += this.tile!.height[b * this.tile!.n + column]!;
    const rows: [string, number][] = [["mapped", this.tile!.max[column]!]];
    if (alone === null) rows.push(["grew by", slice.growth[column]!]);
    if (grows > 0 && alone === null) rows.push(["in findings", grows]);
    rows.sort((a, b) => b[1] - a[1]);
    const high = l.height < 110 ? 14 : 28;
    let free = l.top - 8;
    const ys = rows.map(([, v]) => (free = Math.max(this.y(Math.max(0, v)) - high / 2, free)) && (free += high) - high);
    let above = l.top + l.height + 10;
    for (let i = ys.length - 1; i >= 0; i--) above = ys[i] = Math.min(ys[i]!, above - high);
    const x = left + l.width + 8;
    rows.forEach(([name, v], i) => {
      this.figures[name] = v;
      g.textAlign = "left";
      if (high === 28) {
        g.fillStyle = css(this.colors.muted);
        write(g, name, x, ys[i]! + 7);
      }
      g.fillStyle = css(name === "grew by" ? this.colors.reserved : this.colors.ink);
      write(g, name === "grew by" ? delta(v) : bytes(v), x, ys[i]! + high - 7);
    });
  }

  // ---- the cursor

  /** The column of the cursor. */
  get column(): number {
    const { slice, s } = this.shown!;
    return s.k === null ? slice.n - 1 : slice.column(s.k);
  }

  private cursor(): void {
    const g = begin(this.front);
    const l = this.layout;
    const { slice, s } = this.shown!;
    if (!slice.n) return;
    const c = this.colors;
    if (s.range) {
      const [a, b] = s.range.map((k) => this.px(slice.of.seconds[slice.column(k)]!)).map((x) => Math.max(left, Math.min(left + l.width, x))) as Span;
      g.fillStyle = css(c.accent);
      g.globalAlpha = 0.16;
      g.fillRect(a, l.top, b - a, l.height);
      g.globalAlpha = 1;
      for (const x of [a, b]) g.fillRect(Math.round(x), l.top, 1, l.height);
    }
    const seconds = slice.of.seconds[this.column]!;
    if (seconds < this.frame.win[0] || seconds > this.frame.win[1]) return;
    g.fillStyle = css(c.accent);
    g.fillRect(Math.round(this.px(seconds)) - 0.75, l.top - 3, 1.5, l.height + 3);
  }

  /** Moves the cursor by columns. */
  move(by: number): void {
    const { slice, set } = this.shown!;
    this.reveal(Math.max(0, Math.min(slice.n - 1, this.column + by)), set);
  }

  /** Puts the cursor on a column, and the window around it. */
  private reveal(column: number, set: Shown["set"]): void {
    const { slice, s } = this.shown!;
    const t = slice.of.seconds[column]!;
    const win = this.win;
    const d = t < win[0] ? t - win[0] : t > win[1] ? t - win[1] : 0;
    set({ k: slice.of.moment[column]!, ...(s.win && d ? { win: [win[0] + d, win[1] + d] } : {}) });
  }

  /** Zooms around the cursor, or a time. */
  zoomBy(factor: number, around = this.shown!.slice.of.seconds[this.column]!): void {
    this.zoomAround(factor, around);
  }

  /** Fits the window to the range. */
  fit(): void {
    const { s, whole } = this.shown!;
    if (s.range) this.show(s.range.map((k) => whole.of.seconds[whole.column(k)]!) as Span);
  }

  /** Selects the next group above or below in the column of the cursor. */
  next(up: boolean): void {
    if (!this.tile?.n) return;
    const { layers, s, set } = this.shown!;
    const keys = stackOf(this.tile, this.column).map((d) => layers.groups[layers.bands.bands[d.band]!.group]!.key);
    if (!keys.length) return;
    const at = s.sel === null ? -1 : up ? keys.lastIndexOf(s.sel) : keys.indexOf(s.sel);
    const to = at < 0 ? (up ? 0 : keys.length - 1) : Math.max(0, Math.min(keys.length - 1, at + (up ? 1 : -1)));
    set({ sel: keys[to]!, stack: null });
  }

  // ---- the pointer

  /** What is drawn at a point: a column, and the group in it. */
  private hit(x: number, y: number): { column: number; group: Group | null } | null {
    const l = this.layout;
    if (!this.tile?.n || x < left || x > left + l.width || y < l.top - marksHeight || y > l.top + l.height) return null;
    const { slice, layers } = this.shown!;
    const column = slice.at(this.secondsAt(x));
    const height = (1 - (y - l.top) / l.height) * this.frame.top;
    const at = stackOf(this.tile, column).find((d) => height >= d.from && height < d.from + d.bytes);
    return { column, group: at ? layers.groups[layers.bands.bands[at.band]!.group]! : null };
  }

  protected select(from: number, to: number): void {
    const { slice, set } = this.shown!;
    const [a, b] = [from, to].map((t) => slice.of.moment[slice.at(t)]!) as Span;
    set({ range: [a, b], of: "range", k: b });
  }

  protected click(x: number, y: number): void {
    const there = this.hit(x, y);
    const { slice, set } = this.shown!;
    if (there) set({ k: slice.of.moment[there.column]!, sel: there.group?.key ?? null, stack: null, range: null, of: "cursor" }, true);
  }

  protected described(x: number, y: number): Node[] | null {
    const there = this.hit(x, y);
    if (!there) return null;
    this.light(there.group?.key ?? null);
    return this.tip(there.column, there.group, y);
  }

  protected gone(): void {
    this.light(null);
  }

  /** Lights a group up, from here or from the table. */
  light(key: string | null): void {
    if (key === this.lit || !this.tile) return;
    this.lit = key;
    this.paint(this.shown!.found);
  }

  private tip(column: number, group: Group | null, y: number): Node[] {
    const { slice, doc } = this.shown!;
    const at = h("div", { class: "muted" }, `at ${time(slice.of.seconds[column]!)}`);
    const lost = this.lostAt(column);
    const drops = lost > 0 ? [h("div", { class: "danger" }, `${plural(lost, "event")} were lost before this; the sums were set right by the kernel's list`)] : [];
    const growth = h("div", {}, `resident memory ${delta(slice.growth[column]!)}, mapped ${bytes(slice.of.live_bytes[column]!)}`);
    if (!group) {
      const beyond = y > this.y(Math.max(0, slice.growth[column]!)) && y < this.y(slice.of.live_bytes[column]!);
      return [growth, ...(beyond ? [h("div", {}, `${bytes(slice.growth[column]! - slice.of.live_bytes[column]!)} of it is in no mapping made since`)] : []), at, ...drops];
    }
    let sum = 0;
    let pieces = 0;
    let largest = group.stacks[0]!;
    for (const i of group.stacks) {
      sum += slice.stacks[i]!.bytes[column]!;
      pieces += slice.stacks[i]!.count[column]!;
      if (slice.stacks[i]!.bytes[column]! > slice.stacks[largest]!.bytes[column]!) largest = i;
    }
    const s = doc.stacks[largest];
    const own = s?.frames.filter((f) => f.origin === "own") ?? [];
    const frames = (own.length ? own : (s?.frames ?? [])).slice(0, 6);
    return [
      h("div", { class: "head" }, h("span", { class: `sw s${group.slot}${group.grows ? "" : " freed"}` }), group.label),
      h("div", { "data-bytes": sum }, `${bytes(sum)} in ${plural(pieces, "piece")}${group.key !== others && group.stacks.length > 1 ? `, by ${group.stacks.length} stacks` : ""}`),
      ...(group.first === null ? [] : [h("div", {}, `first seen at ${time(group.first)}, last at ${time(group.last!)}`)]),
      at,
      ...frames.map((f) => h("span", { class: f.origin === "own" ? "mono own" : "mono" }, f.line > 0 ? `${f.file}:${f.line} ${f.function}` : `${f.function}  ${f.file}`)),
      ...drops,
    ];
  }

  /** What is drawn, in numbers. */
  state(): unknown {
    const l = this.layout;
    const column = this.shown ? this.column : -1;
    return {
      win: this.shown ? this.win : null,
      box: { left, ...l },
      axis: this.frame.top,
      figures: this.figures,
      column,
      entries: this.tile && column >= 0 ? stackOf(this.tile, column).map((d) => ({ key: this.shown!.layers.groups[this.shown!.layers.bands.bands[d.band]!.group]!.key, grows: d.band < this.shown!.layers.bands.kept, from: d.from, bytes: d.bytes })) : [],
    };
  }
}
