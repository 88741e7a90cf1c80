// The picture of a recording: what each place holds over time, the growth of
// resident memory above it, and lanes for the classes of growth and for the GPU.

import { stackOf } from "../picture/blit.ts";
import { begin, gutterName, left, rect, triangle, write } from "../picture/canvas.ts";
import { byId, h, swatch } from "../base/dom.ts";
import { bytes, delta, plural, time } from "../base/format.ts";
import { paintFor } from "../picture/paint.ts";
import { mix, palette } from "../picture/palette.ts";
import { bandLabels, columnRuns, dashed, gutter, inside, stepLine, type Value } from "../picture/plot.ts";
import { marksHeight, TimePicture } from "../picture/time.ts";
import { heldBy, others, tileOf, type Group, type Layers, type Slice } from "./bands.ts";
import type { Recording } from "../base/api.ts";
import type { State } from "./state.ts";
import type { Span } from "../base/scale.ts";

/** What the picture needs of the page. */
export interface Shown {
  doc: Recording;
  slice: Slice; // of the window, or finer
  whole: Slice;
  layers: Layers;
  s: State;
  tall: boolean; // the picture is the view, not above one
  rest: number; // the moment of the cursor where the reader did not put it elsewhere
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

class Picture extends TimePicture<Shown> {
  readonly figures: Record<string, number> = {};

  protected get ready(): boolean {
    return !!this.shown?.slice.n;
  }

  protected get all(): Span {
    const { edges, n } = this.shown!.whole;
    return [edges[0]!, edges[n]!];
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
    const { slice, layers, s } = shown;
    this.colors = palette();
    const lanes = this.lanes;
    const top = 4 + laneHeight * lanes.length + marksHeight;
    const high = shown.tall ? Math.max(120, Math.round(innerHeight * 0.5) - top) : 96;
    this.lay(top, high);
    const alone = s.alone ? s.sel : null;
    this.tile = tileOf(slice, layers, alone);
    const step = this.reach((alone === null && this.fits === "resident" ? highest(this.tile.reserved) : Math.max(highest(this.tile.max), highest(this.tile.reserved))) * 1.04);
    this.drawn = columnRuns(this.tile, (c) => [slice.edges[c]!, slice.edges[c + 1]!], this.frame);
    this.paint();
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

  protected paint(): void {
    const { s, layers, found } = this.shown!;
    this.blit(paintFor(layers.bands, this.colors, this.lit ?? s.sel, found));
  }

  /** Axes, lanes, lines and labels. */
  private write(lanes: Lane[], step: number, alone: string | null): void {
    const g = begin(this.ink);
    const l = this.layout;
    const c = this.colors;
    const { slice, doc } = this.shown!;
    this.axes(g, step, (t) => (t === 0 ? "0" : time(t)));
    lanes.forEach((lane, i) => this.lane(g, lane, 4 + laneHeight * i));
    this.drops(g);
    inside(g, l, () => {
      const { growth } = slice;
      if (alone === null) dashed(g, c.reserved, () => stepLine(g, this.drawn, this.frame.scale, (v) => Math.min(this.y(v), l.top + l.height - 0.75), (r) => growth[r.c]!));
      bandLabels(g, this.drawn, this.frame, l, this.shown!.layers.bands, c, this.shown!.found);
    });
    if (doc.partial !== null && this.frame.win[1] >= this.all[1]) rect(g, c.danger, left + l.width - 2, l.top, 3, l.height);
    this.gutter(g, alone, this.shown!.s.k === null && !this.shown!.s.win ? this.column : slice.at(this.frame.win[1]));
  }

  /** Growth of a class or an owner, on its own scale. */
  private lane(g: CanvasRenderingContext2D, lane: Lane, y: number): void {
    const l = this.layout;
    const c = this.colors;
    gutterName(g, lane.name, y + 10, c);
    rect(g, c.panel, left, y, l.width, laneHeight - 2);
    let [low, high] = [0, 1];
    for (const r of this.drawn) [low, high] = [Math.min(low, lane.values[r.c]!), Math.max(high, lane.values[r.c]!)];
    const at = (v: number): number => y + laneHeight - 2 - ((v - low) / (high - low)) * (laneHeight - 3);
    const ink = mix(lane.owner === undefined ? c.neutral : c.accent, c.panel, 0.75);
    const ratio = this.frame.scale;
    for (const r of this.drawn) {
      const v = lane.values[r.c]!;
      rect(g, ink, left + r.x0 / ratio, Math.min(at(v), at(0)), (r.x1 - r.x0) / ratio, Math.abs(at(v) - at(0)));
    }
    if (lane.owner !== undefined) {
      rect(g, c.panel, left, y, g.measureText(lane.owner).width + 12, laneHeight - 2);
      write(g, lane.owner, left + 6, y + 10, c.ink);
    }
    const last = lane.values[this.shown!.slice.at(this.frame.win[1])] ?? 0;
    write(g, lane.owner === undefined ? delta(last) : bytes(last), left + l.width + 8, y + 10, c.ink);
  }

  /** Marks where events were lost. */
  private drops(g: CanvasRenderingContext2D): void {
    const { top } = this.layout;
    for (const r of this.drawn) if (this.lostAt(r.c) > 0) triangle(g, this.colors.danger, left + (r.x0 + r.x1) / 2 / this.frame.scale, top - 9, top - 2);
  }

  private lostAt(c: number): number {
    const { drops } = this.shown!.slice.of;
    return drops[c]! - (c > 0 ? drops[c - 1]! : 0);
  }

  /** The values at the right edge, beside the lines that they belong to. */
  private gutter(g: CanvasRenderingContext2D, alone: string | null, column: number): void {
    const { slice, layers } = this.shown!;
    const tile = this.tile!;
    if (!tile.n) return;
    const { ink, reserved, muted } = this.colors;
    let grows = 0;
    for (let b = 0; b < layers.bands.kept; b++) grows += tile.height[b * tile.n + column]!;
    const value = (name: string, v: number, text = bytes(v), color = ink): Value => {
      this.figures[name] = v;
      return { name, at: Math.max(0, v), text, ink: color };
    };
    const growth = slice.growth[column]!;
    const more = alone === null ? [value("grew by", growth, delta(growth), reserved), ...(grows > 0 ? [value("in findings", grows)] : [])] : [];
    gutter(g, this.layout, (v) => this.y(v), [value("mapped", tile.max[column]!), ...more], muted);
  }

  // ---- the cursor

  /** The column of the cursor. */
  get column(): number {
    const { slice, s } = this.shown!;
    return slice.column(s.k ?? this.shown!.rest);
  }

  private cursor(): void {
    const { slice, s } = this.shown!;
    if (slice.n) this.drawCursor(slice.of.seconds[this.column]!, s.range && (s.range.map((k) => slice.of.seconds[slice.column(k)]!) as Span));
  }

  /** Moves the cursor by columns, and the window with it. */
  move(by: number): void {
    const { slice, set } = this.shown!;
    const column = Math.max(0, Math.min(slice.n - 1, this.column + by));
    set({ k: slice.of.moment[column]!, ...this.seeing(slice.of.seconds[column]!) });
  }

  /** Puts the cursor on the first or the last moment of all. */
  end(last: boolean): void {
    const { whole, set } = this.shown!;
    set({ k: last ? whole.of.moment[whole.n - 1]! : 0 });
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
    const at = this.drawnAt(column, y);
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
    const { column, group } = there;
    this.light(group?.key ?? null);
    const { slice, doc } = this.shown!;
    const at = h("div", { class: "muted" }, `at ${time(slice.of.seconds[column]!)}`);
    const lost = this.lostAt(column);
    const drops = lost > 0 ? [h("div", { class: "danger" }, `${plural(lost, "event")} were lost before this; the sums were set right by the kernel's list`)] : [];
    const growth = h("div", {}, `resident memory ${delta(slice.growth[column]!)}, mapped ${bytes(slice.of.live_bytes[column]!)}`);
    if (!group) {
      const beyond = y > this.y(Math.max(0, slice.growth[column]!)) && y < this.y(slice.of.live_bytes[column]!);
      return [growth, ...(beyond ? [h("div", {}, `${bytes(slice.growth[column]! - slice.of.live_bytes[column]!)} of it is in no mapping made since`)] : []), at, ...drops];
    }
    const { bytes: sum, count: pieces } = heldBy(group, slice, column);
    const held = (i: number): number => slice.stacks[i]!.bytes[column]!;
    const s = doc.stacks[group.stacks.reduce((a, b) => (held(b) > held(a) ? b : a))];
    const own = s?.frames.filter((f) => f.origin === "own") ?? [];
    const frames = (own.length ? own : (s?.frames ?? [])).slice(0, 6);
    return [
      h("div", { class: "head" }, swatch(group.slot, !group.grows), group.label),
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

export const picture = new Picture(byId("rail"), byId("tooltip"));
