// What the rail shows: the window, the tiles in it, and where an event stands.
// All parts of the rail draw from it and change it.

import { Latest } from "../base/ask.ts";
import { clamp, levelFor, type Span } from "../base/scale.ts";
import { beforeFirst, type Kind } from "../base/wire.ts";
import type { Page } from "../session/page.ts";
import { runs, type Drawn, type Frame, type Paint, type Run } from "../picture/blit.ts";
import { left } from "../picture/canvas.ts";
import { paintFor } from "../picture/paint.ts";
import { palette, type Palette } from "../picture/palette.ts";
import type { Picture, Tiles } from "../picture/tiles.ts";
import { highest } from "../session/runs.ts";
import type { Layout } from "./layout.ts";

export const leastPlaces = 4;
const allocLevel = 4; // buckets of up to 16 events are drawn allocation by allocation

export type Layer = "data" | "ink" | "cursor";

export interface Elements {
  root: HTMLElement;
  box: HTMLElement;
  data: HTMLCanvasElement;
  ink: HTMLCanvasElement;
  front: HTMLCanvasElement;
  over: HTMLElement; // labels and buttons over the canvases
  tooltip: HTMLElement;
}

/** What is under the pointer. */
export interface Hover {
  x: number;
  run: Run;
  at: Drawn | null;
  bytes: number;
}

export interface Drag {
  how: "select" | "pan" | "map";
  x0: number;
  win: Span;
  moved: boolean;
}

/** What columns of the picture show: events from … to, of which the witness is the highest. */
export interface Column {
  from: number;
  to: number;
  witness: number;
  max: number;
  min: number;
  reserved: number;
}

export class Scene {
  colors: Palette = palette();
  paint: Paint | null = null;
  layout: Layout = { width: 0, steps: -1, notes: -1, noteRows: 0, grows: -1, growRows: 0, top: 0, height: 0, lane: -1, map: -1, whole: 0 };
  image: ImageData | null = null;
  drawn: Run[] = [];
  frame: Frame = { width: 1, height: 1, win: [0, 1], top: 1, gridAt: [], scale: 1 };
  hover: Hover | null = null;
  drag: Drag | null = null;
  firstDone = false;
  places = new Map<number, number>(); // of events, where x is time
  band = -1; // chosen by the arrow keys
  axisTop: number | null = null;
  readonly hitAsk = new Latest(40);
  private readonly family: string;

  constructor(
    readonly page: Page,
    readonly tiles: Tiles,
    readonly el: Elements,
    readonly need: (...what: Layer[]) => void,
    readonly announce: (s: string) => void,
  ) {
    this.family = getComputedStyle(el.root).fontFamily;
  }

  font(px: number): string {
    return `${px}px ${this.family}`;
  }

  get end(): number {
    const dev = this.page.device;
    if (!dev) return 1;
    return Math.max(1, this.us ? Math.ceil(dev.time!.span) + 1 : dev.events);
  }

  /** Groups that are shown alone; runs are of all memory. */
  get solo(): string[] {
    return this.page.s.view === "whatif" ? [] : this.page.s.solo;
  }

  /** The events that are seen, both included. */
  get events(): [number, number] | null {
    const first = this.drawn[0];
    const last = this.drawn[this.drawn.length - 1];
    return first && last ? [first.tile.events[first.c]!, Math.max(first.tile.events[first.c]!, last.tile.events[last.c + 1]! - 1)] : null;
  }

  /** What each column of the picture shows, in at most `most` rows: neighbors are put together. */
  columns(most: number): Column[] {
    const each = Math.max(1, Math.ceil(this.drawn.length / most));
    const out: Column[] = [];
    for (let i = 0; i < this.drawn.length; i += each) {
      const part = this.drawn.slice(i, i + each);
      const highest = part.reduce((a, b) => (b.tile.max[b.c]! > a.tile.max[a.c]! ? b : a));
      const [{ tile, c }, last] = [part[0]!, part.at(-1)!];
      out.push({
        from: tile.events[c]!, to: Math.max(last.tile.events[last.c]!, last.tile.events[last.c + 1]! - 1), witness: this.eventOf(highest), max: highest.tile.max[highest.c]!,
        min: Math.min(...part.map((r) => r.tile.min[r.c]!)), reserved: Math.max(...part.map((r) => r.tile.reserved[r.c]!)),
      });
    }
    return out;
  }

  get us(): boolean {
    return this.page.s.x === "us" && !!this.page.device?.time;
  }

  /** The window of places that the picture shows. */
  get win(): Span {
    return this.page.s.win ? clamp(this.page.s.win, this.end, leastPlaces) : [0, this.end];
  }

  /** What part of the file is seen, at which level, and whether there is no finer one. */
  get seen(): { win: Span; level: number; bound: boolean } {
    const { win, level } = this;
    return { win, level, bound: level > levelFor(win[1] - win[0], this.pixelsForLevel) };
  }

  get picture(): Picture {
    const { s, d, u } = this.page;
    return { f: this.page.f, d: d ?? 0, g: s.g, u, x: this.us ? "us" : "ev", solo: this.solo.join(",") };
  }

  get pixelsForLevel(): number {
    const ratio = devicePixelRatio >= 1.5 ? devicePixelRatio : 1;
    return Math.max(1, this.layout.width * ratio);
  }

  get level(): number {
    return this.levelOf(this.win, this.page.s.solo.length > 0);
  }

  /** The level of the picture of the whole file. */
  get whole(): number {
    return this.levelOf([0, this.end], false);
  }

  levelOf(win: Span, solo: boolean): number {
    return Math.max(levelFor(win[1] - win[0], this.pixelsForLevel), this.page.finest(this.us ? "us" : "ev", solo, ...win));
  }

  get kind(): Kind {
    if (this.page.file?.state !== "ready" || !this.page.bands || this.page.s.view === "whatif") return "total";
    return this.kindOf(this.level);
  }

  /** What tiles of a level hold: single allocations where there is room for them, or if the reader wants them. */
  kindOf(level: number): Kind {
    return (this.page.s.each && !this.page.device?.held) || (!this.us && level <= allocLevel) ? "alloc" : "band";
  }

  /** The bytes at the upper edge of the picture. */
  top(): number {
    const { device, s, bands } = this.page;
    if (!device) return 1;
    const solo = this.solo.length > 0;
    if (typeof s.y === "number") return s.y;
    const peak = solo
      ? this.solo.reduce((sum, key) => sum + (bands?.groups.find((g) => g.key === key)?.peak.bytes ?? 0), 0)
      : Math.max(device.peak?.bytes ?? 0, device.start.live, device.end.live);
    if (s.y === "window" && this.drawn.length) {
      const runs = s.view === "whatif" ? this.page.curves.map((c) => c.run.steps) : null;
      const most = this.drawn.reduce((m, r) => {
        if (!runs) return Math.max(m, r.tile.max[r.c]!);
        const [from, to] = [r.tile.events[r.c]!, r.tile.events[r.c + 1]!];
        return Math.max(m, r.tile.reserved[r.c]!, ...runs.map((x) => highest(x.event, x.bytes, from, to)));
      }, 0);
      return Math.max(1, most * 1.06);
    }
    if (s.y === "reserved" && !solo) {
      const runs = s.view === "whatif" ? this.page.curves.map((c) => c.run.outcome.peak_reserved_bytes) : [];
      const most = Math.max(peak, device.peak_reserved?.bytes ?? 0, device.start.reserved, ...runs);
      const room = device.capacity ?? 0; // in the picture where it is near
      return Math.max(1, (s.view !== "whatif" && room < most * 1.5 ? Math.max(most, room) : most) * 1.045);
    }
    return Math.max(1, peak * 1.06);
  }

  paintOf(): Paint {
    const { bands, lit, found } = this.page;
    return (this.paint ??= paintFor(bands, this.colors, lit, found));
  }

  /** The pixel of a place, from the left edge of the picture. */
  px(place: number): number {
    const { win } = this;
    return ((place - win[0]) / (win[1] - win[0])) * this.layout.width;
  }

  /** Device pixels of the picture to a CSS pixel of its width. */
  get ratio(): number {
    return this.frame.width / this.layout.width;
  }

  /** The pixel of a number of bytes, from the top of the rail. */
  y(bytes: number): number {
    return this.layout.top + this.layout.height * (1 - bytes / this.frame.top);
  }

  /** The place of an event: its index, or where its time stands. Undefined: not known yet. */
  placeOf(event: number): number | undefined {
    if (!this.us) return event + 0.5;
    const known = this.places.get(event);
    if (known !== undefined) return known;
    if (this.page.event?.event === event && this.page.event.place !== null) return this.page.event.place;
    const all = this.overview();
    let best: Run | undefined;
    for (const r of [...all, ...this.drawn]) {
      if (r.tile.events[r.c]! <= event && event < r.tile.events[r.c + 1]! && (!best || r.tile.level < best.tile.level)) best = r;
    }
    if (!best) { // its bucket is narrower than a pixel: the pixel shows the event nearest before it
      for (const r of all) if (r.tile.events[r.c]! <= event && (!best || r.tile.events[r.c]! >= best.tile.events[best.c]!)) best = r;
    }
    return best && Math.min(this.end, (best.tile.first + best.c + 0.5) * 2 ** best.tile.level);
  }

  /** Runs that show the whole file, of the small map's tiles. */
  overview(): Run[] {
    const whole = this.whole;
    const p = { ...this.picture, solo: "" };
    return this.tiles.any(p) ? runs([0, this.end], Math.round(this.layout.width), whole, whole, this.tiles.of(p)) : [];
  }

  scopePixels(from: number, to: number): [number, number] | null {
    const a = this.placeOf(from);
    const b = this.placeOf(to);
    if (a === undefined || b === undefined) return null;
    const x0 = this.px(a - (this.us ? 0 : 0.5));
    const x1 = this.px(b + (this.us ? 0 : 0.5));
    if (x1 < 0 || x0 > this.layout.width) return null;
    return [left + Math.max(0, x0), left + Math.min(this.layout.width, Math.max(x1, x0 + 1))];
  }

  /** The event at a place, where x is time. */
  eventAt(place: number): number {
    const r = this.runAt(this.px(place)) ?? this.overview().find((o) => (o.tile.first + o.c + 1) * 2 ** o.tile.level > place);
    return r ? r.tile.events[r.c]! : 0;
  }

  /** The column in which an event is drawn. */
  drawnOf(event: number): Run | undefined {
    return this.drawn.find((r) => r.tile.events[r.c]! <= event && event < r.tile.events[r.c + 1]!);
  }

  runAt(x: number): Run | undefined {
    const dx = (x * this.frame.width) / this.layout.width;
    let lo = 0;
    let hi = this.drawn.length - 1;
    while (lo <= hi) {
      const mid = (lo + hi) >> 1;
      const r = this.drawn[mid]!;
      if (dx < r.x0) hi = mid - 1;
      else if (dx >= r.x1) lo = mid + 1;
      else return r;
    }
    return undefined;
  }

  eventOf(r: Run): number {
    const w = r.tile.witness[r.c]!;
    return w === beforeFirst ? -1 : w;
  }
}
