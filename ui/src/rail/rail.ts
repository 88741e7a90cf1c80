// The rail: lanes, the picture, its axes and the map of the whole file.

import { Latest, fresh, json, link, type Refused } from "../base/ask.ts";
import { blit, keptLine, labelPlaces, rowOf, runs, stackOf, widen, type Drawn, type Frame, type Paint, type Run } from "../picture/blit.ts";
import { begin, gutterName, left, place, right, size } from "../picture/canvas.ts";
import { h } from "../base/dom.ts";
import { bytes, count, duration, growth } from "../base/format.ts";
import { fates } from "../base/names.ts";
import { fillOf, paintFor } from "../picture/paint.ts";
import type { Page } from "../page/page.ts";
import { css, mix, palette, siteColour, textOn, type Palette, type RGB } from "../picture/palette.ts";
import { byteStep, byteTick, clamp, levelFor, niceStep, pixelAt, ticks, zoom, type Span } from "../base/scale.ts";
import { bucketsPerTile, Tiles, type Picture, type Want } from "../picture/tiles.ts";
import { highest, lastAt } from "../whatif/runs.ts";
import { beforeFirst, flagTooMany, stripOfBands, type Alloc, type Event, type Hit, type Kind, type Mark, type Scope, type Tile } from "../base/wire.ts";

const axisHeight = 20;
const mapHeight = 34;
const laneHeight = 58; // of what is not in use, in What if
const leastPlaces = 4;
const allocLevel = 4; // buckets of up to 16 events are drawn allocation by allocation

type Dirty = "data" | "ink" | "cursor";

interface Layout {
  width: number; // of the picture, CSS pixels
  steps: number; // y of the lanes, or -1
  notes: number;
  noteRows: number;
  grows: number;
  growRows: number;
  top: number; // of the picture
  height: number;
  lane: number; // of what is not in use; -1: none
  map: number; // -1: none
  whole: number; // height of the rail
}

interface Drag {
  how: "select" | "pan" | "map";
  x0: number;
  win: Span;
  moved: boolean;
}

export class Rail {
  private readonly box = h("div", { class: "box", tabindex: "0", role: "group" });
  private readonly data = h("canvas", { role: "img" });
  private readonly ink = h("canvas", { "aria-hidden": "true" });
  private readonly front = h("canvas", { "aria-hidden": "true" });
  private readonly over = h("div");
  private readonly tiles: Tiles;
  private colours: Palette = palette();
  private paint: Paint | null = null;
  private layout: Layout = { width: 0, steps: -1, notes: -1, noteRows: 0, grows: -1, growRows: 0, top: 0, height: 0, lane: -1, map: -1, whole: 0 };
  private image: ImageData | null = null;
  private dirty = new Set<Dirty>();
  private waiting = 0;
  private drawn: Run[] = [];
  private frame: Frame = { width: 1, height: 1, win: [0, 1], top: 1, gridAt: [], scale: 1 };
  private hover: { x: number; y: number; run: Run; at: Drawn | null; bytes: number } | null = null;
  private drag: Drag | null = null;
  private readonly hitAsk = new Latest(40);
  private firstDone = false;
  private places = new Map<number, number>(); // of events, where x is time
  private band = -1; // chosen by the arrow keys
  private axisTop: number | null = null;
  private readonly family: string;

  constructor(
    private readonly page: Page,
    private readonly root: HTMLElement,
    private readonly tooltip: HTMLElement,
    private readonly say: (s: string) => void,
    failed: (e: Refused) => void,
  ) {
    this.tiles = new Tiles(() => this.need("data", "ink"), failed);
    this.family = getComputedStyle(root).fontFamily;
    this.box.append(this.data, this.ink, this.front, this.over);
    root.append(this.box);
    new ResizeObserver(() => this.resize()).observe(root);
    addEventListener("resize", () => this.resize());
    document.addEventListener("visibilitychange", () => this.need("data", "ink", "cursor"));
    this.mouse();
    page.on((what) => {
      if (what === "drawn") return;
      if (what === "theme") this.colours = palette();
      if (what === "theme" || what === "bands" || what === "device") this.paint = null;
      if (what === "device" || what === "bands") this.places.clear();
      if (what === "lit" || what === "found") this.paint = null;
      if (what === "session") this.foresee();
      if (what === "at" || what === "event" || what === "pinned") this.need("cursor");
      else if (what === "device" || what === "bands") this.resize();
      else this.need("data", "ink", "cursor");
    });
    page.store.on((now, before) => {
      if (now.view !== before.view) this.resize();
      const moved = now.win !== before.win || now.y !== before.y || now.x !== before.x || now.g !== before.g || now.u !== before.u || now.f !== before.f || now.d !== before.d || now.lane !== before.lane;
      if (now.solo !== before.solo) this.paint = null;
      if (moved || now.solo !== before.solo) this.need("data", "ink", "cursor");
      else this.need("cursor");
      if (now.k !== before.k) this.band = -1;
    });
  }

  private font(px: number): string {
    return `${px}px ${this.family}`;
  }

  // ---- what is shown

  private get end(): number {
    const dev = this.page.device;
    if (!dev) return 1;
    return Math.max(1, this.us ? Math.ceil(dev.time!.span) + 1 : dev.events);
  }

  /** Groups that are shown alone; runs are of all memory. */
  private get solo(): string[] {
    return this.page.s.view === "whatif" ? [] : this.page.s.solo;
  }

  /** The events that are seen, both included. */
  get events(): [number, number] | null {
    const first = this.drawn[0];
    const last = this.drawn[this.drawn.length - 1];
    return first && last ? [first.tile.events[first.c]!, Math.max(first.tile.events[first.c]!, last.tile.events[last.c + 1]! - 1)] : null;
  }

  /** What each column of the picture shows, in at most `most` rows: neighbours are put together. */
  columns(most: number): { from: number; to: number; witness: number; max: number; min: number; reserved: number }[] {
    const each = Math.max(1, Math.ceil(this.drawn.length / most));
    const out: { from: number; to: number; witness: number; max: number; min: number; reserved: number }[] = [];
    this.drawn.forEach((r, i) => {
      const { tile, c } = r;
      const to = Math.max(tile.events[c]!, tile.events[c + 1]! - 1);
      const last = out[out.length - 1];
      if (i % each === 0 || !last) {
        out.push({ from: tile.events[c]!, to, witness: this.eventOf(r), max: tile.max[c]!, min: tile.min[c]!, reserved: tile.reserved[c]! });
        return;
      }
      last.to = to;
      if (tile.max[c]! > last.max) [last.max, last.witness] = [tile.max[c]!, this.eventOf(r)];
      last.min = Math.min(last.min, tile.min[c]!);
      last.reserved = Math.max(last.reserved, tile.reserved[c]!);
    });
    return out;
  }

  private get us(): boolean {
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

  private get picture(): Picture {
    const { s, d, u } = this.page;
    return { f: this.page.f, d: d ?? 0, g: s.g, u, x: this.us ? "us" : "ev", solo: this.solo.join(",") };
  }

  private get pixelsForLevel(): number {
    const ratio = devicePixelRatio >= 1.5 ? devicePixelRatio : 1;
    return Math.max(1, this.layout.width * ratio);
  }

  private get level(): number {
    return this.levelOf(this.win, this.page.s.solo.length > 0);
  }

  /** The level of the picture of the whole file. */
  private get whole(): number {
    return this.levelOf([0, this.end], false);
  }

  private levelOf(win: Span, solo: boolean): number {
    return Math.max(levelFor(win[1] - win[0], this.pixelsForLevel), this.page.finest(this.us ? "us" : "ev", solo, ...win));
  }

  private get kind(): Kind {
    if (this.page.file?.state !== "ready" || !this.page.bands || this.page.s.view === "whatif") return "total";
    return !this.us && this.level <= allocLevel ? "alloc" : "band";
  }

  /** The bytes at the upper edge of the picture. */
  private top(): number {
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
      return Math.max(1, Math.max(peak, device.peak_reserved?.bytes ?? 0, device.start.reserved, ...runs) * 1.045);
    }
    return Math.max(1, peak * 1.06);
  }

  private resize(): void {
    const { view } = this.page.s;
    const dev = this.page.device;
    const runs = view === "whatif";
    const compact = view !== "timeline" && !runs;
    const width = Math.max(100, this.root.clientWidth - left - right);
    const narrow = this.root.clientWidth < 1100;
    const l: Layout = { width, steps: -1, notes: -1, noteRows: 0, grows: -1, growRows: 0, top: 0, height: 64, lane: -1, map: -1, whole: 0 };
    let y = 2;
    if (view === "timeline") {
      if (dev?.scopes.some((s) => s.lane === "steps")) {
        l.steps = y;
        y += 18;
      }
      l.noteRows = Math.min(narrow ? 1 : 3, noteRows(dev?.scopes ?? []).rows);
      if (l.noteRows > 0) {
        l.notes = y;
        y += 18 * l.noteRows;
      }
      l.growRows = Math.min(narrow ? 1 : 3, this.page.bands?.lanes.length ?? 0);
      if (l.growRows > 0) {
        l.grows = y;
        y += 22 * l.growRows;
      }
    }
    l.top = y + (compact ? 14 : 18); // room for the flags of marks
    const lanes = y;
    l.height = compact ? 64 : Math.max(150, Math.min(620, Math.round(innerHeight * (runs ? 0.36 : 0.515)) - lanes - 18 - 40));
    l.whole = l.top + l.height + axisHeight;
    if (runs) {
      l.lane = l.whole + 4;
      l.whole = l.lane + laneHeight;
    }
    if (!compact) {
      l.map = l.whole + 4;
      l.whole = l.map + mapHeight + 12;
    } else l.whole += 4;
    this.layout = l;
    this.box.style.height = `${l.whole}px`;
    const ratio = devicePixelRatio;
    size(this.data, left, l.top, width, l.height, ratio);
    size(this.ink, 0, 0, this.root.clientWidth, l.whole, ratio);
    size(this.front, 0, 0, this.root.clientWidth, l.whole, ratio);
    this.image = null;
    this.need("data", "ink", "cursor");
  }

  /** Asks for one frame that draws what is stale. */
  need(...what: Dirty[]): void {
    for (const w of what) this.dirty.add(w);
    if (this.waiting || document.hidden) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      const what = this.dirty;
      this.dirty = new Set();
      if (what.has("data")) this.drawData();
      if (what.has("data") || what.has("ink")) this.drawInk();
      this.drawFront();
      performance.mark("strandline:painted");
    });
  }

  // ---- the data layer

  private wants(): { now: Want[]; next: Want[] } {
    const p = this.picture;
    const { win, level, kind } = this;
    const y = Math.max(0, Math.min(48, Math.floor(Math.log2(this.top() / Math.max(1, this.layout.height)))));
    const whole = this.whole;
    const cover = (picture: Picture, kind: Kind, level: number, from: number, to: number): Want[] => {
      const out: Want[] = [];
      const places = bucketsPerTile * 2 ** level;
      for (let i = Math.max(0, Math.floor(from / places)); i * places < Math.min(to, this.end); i++) out.push({ picture, kind, level, i, y });
      return out;
    };
    const here = cover(p, kind, level, win[0], win[1]);
    const map = cover({ ...p, solo: "" }, "total", whole, 0, this.end).map((w) => ({ ...w, y: 0 }));
    const now = kind === "total" || !this.firstDone ? [...map, ...here] : [...here, ...map];
    const length = win[1] - win[0];
    const places = bucketsPerTile * 2 ** level;
    const next = cover(p, kind, level, win[0] - places, win[1] + places);
    if (level < whole) next.push(...cover(p, level + 1 <= allocLevel && !this.us ? "alloc" : "band", level + 1, win[0] - length / 2, win[1] + length / 2));
    return { now, next: kind === "total" || this.page.device?.held ? [] : next.filter((w) => !here.some((v) => v.level === w.level && v.i === w.i)) };
  }

  /** Asks for the totals of a whole file as soon as they can be had: its one device will want them first. */
  private foresee(): void {
    const { file, device, s } = this.page;
    if (link.saved || device || !file || s.view === "compare" || file.devices.length !== 1 || (file.state !== "totals" && file.state !== "ready")) return;
    const picture: Picture = { f: file.f, d: file.devices[0]!, g: s.g, u: this.page.u, x: "ev", solo: "" };
    const events = file.events ?? 0;
    const level = levelFor(Math.max(1, events), this.pixelsForLevel);
    const now: Want[] = [];
    for (let i = 0; i * bucketsPerTile * 2 ** level < events; i++) now.push({ picture, kind: "total", level, i, y: 0 });
    this.tiles.want(now, []);
  }

  private drawData(): void {
    const { device } = this.page;
    const context = this.data.getContext("2d")!;
    this.data.setAttribute("aria-label", this.description());
    this.box.setAttribute("aria-label", this.description());
    if (!device || device.events === 0) {
      this.drawn = [];
      context.clearRect(0, 0, this.data.width, this.data.height);
      return;
    }
    const { now, next } = this.wants();
    this.tiles.want(now, next);
    const width = this.data.width;
    const height = this.data.height;
    const p = this.picture;
    const { level, kind } = this;
    const whole = Math.max(level, this.whole);
    const exact = new Map<number, Tile>();
    for (const w of now) {
      const tile = w.picture.solo === p.solo && w.level === level && w.kind === kind ? this.tiles.find(w) : undefined;
      if (tile) exact.set(w.i, tile);
    }
    const other = this.tiles.of(p);
    const lookup = (l: number, bucket: number): Tile | undefined => (l === level ? exact.get(Math.floor(bucket / bucketsPerTile)) : undefined) ?? other(l, bucket);
    const rs = this.tiles.any(p) ? runs(this.win, width, level, whole, lookup) : [];
    // Nothing of this picture is there yet: the old one stays for the moment.
    if (!rs.length && this.drawn.length && !this.tiles.settled) return;
    this.drawn = rs;
    const top = this.top();
    this.axisTop = top;
    const step = byteStep(top, this.layout.height > 100 ? 7 : 2);
    this.frame = { width, height, win: this.win, top, gridAt: ticks(step, top, step), scale: Math.max(1, devicePixelRatio) };
    widen(rs, top * 0.03);
    if (!this.image || this.image.width !== width || this.image.height !== height) this.image = context.createImageData(width, height);
    blit(new Uint32Array(this.image.data.buffer), this.frame, rs, this.paintOf());
    context.putImageData(this.image, 0, 0);
    this.page.tell("drawn");
    if (rs.length && !this.firstDone) {
      this.firstDone = true;
      performance.mark("strandline:first-picture");
    }
  }

  private description(): string {
    const dev = this.page.device;
    if (!dev || dev.events === 0) return "Live memory: nothing was recorded";
    const peak = dev.peak ? `, peak ${bytes(dev.peak.bytes)} at event ${count(dev.peak.event)}` : "";
    return `Live memory over ${count(dev.events)} events${peak}, ${bytes(dev.kept)} alive at the snapshot`;
  }

  private paintOf(): Paint {
    const { bands, lit, found } = this.page;
    return (this.paint ??= paintFor(bands, this.colours, lit, found));
  }

  // ---- axes, lanes, labels

  /** The pixel of a place, from the left edge of the picture. */
  private px(place: number): number {
    const { win } = this;
    return ((place - win[0]) / (win[1] - win[0])) * this.layout.width;
  }

  /** The place of an event: its index, or where its time stands. Undefined: not known yet. */
  private placeOf(event: number): number | undefined {
    if (!this.us) return event + 0.5;
    const known = this.places.get(event);
    if (known !== undefined) return known;
    if (this.page.event?.event === event && this.page.event.place !== null) return this.page.event.place;
    const all = this.overview();
    let best: Run | undefined;
    for (const r of [...all, ...this.drawn]) {
      if (r.tile.events[r.c]! <= event && event < r.tile.events[r.c + 1]! && (!best || r.tile.level < best.tile.level)) best = r;
    }
    return best && (best.tile.first + best.c + 0.5) * 2 ** best.tile.level;
  }

  /** Runs that show the whole file, of the small map's tiles. */
  private overview(): Run[] {
    const whole = this.whole;
    const p = { ...this.picture, solo: "" };
    return this.tiles.any(p) ? runs([0, this.end], Math.round(this.layout.width), whole, whole, this.tiles.of(p)) : [];
  }

  private drawInk(): void {
    const l = this.layout;
    const c = this.colours;
    const g = begin(this.ink);
    const { device, bands, s } = this.page;
    this.over.replaceChildren();
    this.empty();
    if (!device || device.events === 0) return;
    const { win } = this;
    g.textBaseline = "middle";
    g.font = this.font(11);
    // The byte axis.
    g.textAlign = "right";
    g.fillStyle = css(c.muted);
    if (this.drawn.length) {
      for (const b of [0, ...this.frame.gridAt]) {
        const y = l.top + l.height - (b / this.frame.top) * l.height;
        if (y > l.top - 2) g.fillText(byteTick(b), left - 6, Math.max(l.top + 5, y));
      }
    }
    this.drawAxis(g);
    if (l.steps >= 0) this.drawSteps(g);
    if (l.notes >= 0) this.drawNotes(g);
    if (l.grows >= 0 && bands) this.drawLanes(g);
    if (!this.solo.length) this.drawReserved(g);
    if (s.view === "whatif") this.drawRuns(g);
    this.drawMarks(g);
    if (bands && l.height > 100) this.drawLabels(g);
    if (l.map >= 0) this.drawMap(g);
    this.drawGutter();
    if (l.height > 100) this.drawPeak(g);
    if (s.view !== "whatif") this.drawFindings();
    if (device.coverage.kind === "ring" || device.coverage.kind === "late") {
      if (win[0] < (win[1] - win[0]) * 0.001 + 1) hatchEdge(g, left, l.top, l.height, css(c.muted));
    }
    if (device.coverage.kind === "damaged" && win[1] >= this.end) {
      g.fillStyle = css(c.danger);
      g.fillRect(left + l.width - 2, l.top, 3, l.height);
    }
  }

  private empty(): void {
    const { device, problem, file } = this.page;
    if (device && device.events > 0) return;
    const says: (Node | string)[] = [];
    if (problem) says.push(problem);
    else if (!file) says.push(this.page.session ? "There is no such file in this session." : "Loading");
    else if (!device) {
      const of = file.size ? ` of ${bytes(file.size)}` : "";
      const phase = { waiting: "Waiting", reading: "Reading", pairing: "Pairing allocations with frees" }[file.state as string] ?? "Preparing";
      says.push(`${phase}: ${bytes(file.read)}${of}${file.events === null ? "" : `, ${count(file.events)} events`}`);
      if (file.size) says.push(h("progress", { max: file.size, value: file.read, "aria-label": "read" }));
    } else {
      says.push(
        device.end.reserved > 0
          ? `This file has no history: it holds the segments and blocks at one moment (${bytes(device.end.reserved)} reserved), but no events. The history was not recorded.`
          : "This file holds neither history nor segments: nothing was allocated on this device, or recording was never switched on.",
        h("pre", {}, "torch.cuda.memory._record_memory_history(max_entries=1_000_000)\n…\ntorch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"),
      );
    }
    const el = h("div", { class: "empty" }, h("div", {}, ...says));
    this.over.append(el);
  }

  private drawAxis(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const c = this.colours;
    const { win } = this;
    const y = l.top + l.height;
    const time = this.us ? this.page.device!.time! : null;
    const step = Math.max(1, niceStep(win[1] - win[0], l.width / 110));
    g.textAlign = "center";
    g.fillStyle = css(c.muted);
    for (const [at, label] of time ? timeTicks(win, step, time.folds) : eventTicks(win, step)) {
      const x = left + this.px(at);
      if (x > left + l.width + 1) continue;
      g.fillRect(Math.round(x), y, 1, 4);
      g.fillText(label, x, y + 12);
    }
    for (const f of time?.folds ?? []) {
      const x = left + this.px(f.at);
      if (x < left || x > left + l.width) continue;
      g.fillStyle = css(c.page);
      g.fillRect(x - 6, y - 5, 12, 10);
      g.strokeStyle = css(c.muted);
      g.beginPath();
      for (const dx of [-4, 2]) {
        g.moveTo(x + dx, y + 5);
        g.lineTo(x + dx + 3, y - 5);
      }
      g.stroke();
      const text = duration(f.us);
      const width = g.measureText(text).width + 6;
      g.fillStyle = css(c.page);
      g.fillRect(x - width / 2, y - 20, width, 14);
      g.fillStyle = css(c.muted);
      g.fillText(text, x, y - 13);
    }
  }

  private drawSteps(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const c = this.colours;
    gutterName(g, "steps", l.steps + 9, c);
    for (const s of this.page.device!.scopes) {
      if (s.lane !== "steps") continue;
      const at = this.scopePixels(s.from, s.to);
      if (!at) continue;
      g.fillStyle = css(mix(c.hair, c.panel, 0.45));
      g.fillRect(at[0], l.steps, Math.max(1, at[1] - at[0] - 1), 17);
      const width = g.measureText(s.name).width;
      if (width + 8 > at[1] - at[0]) continue;
      g.textAlign = "left";
      g.fillStyle = css(c.ink);
      g.fillText(s.name, at[0] + 5, l.steps + 9);
    }
  }

  private scopePixels(from: number, to: number): [number, number] | null {
    const a = this.placeOf(from);
    const b = this.placeOf(to);
    if (a === undefined || b === undefined) return null;
    const x0 = this.px(a - (this.us ? 0 : 0.5));
    const x1 = this.px(b + (this.us ? 0 : 0.5));
    if (x1 < 0 || x0 > this.layout.width) return null;
    return [left + Math.max(0, x0), left + Math.min(this.layout.width, Math.max(x1, x0 + 1))];
  }

  private drawNotes(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const c = this.colours;
    gutterName(g, "notes", l.notes + 9, c);
    const { row } = noteRows(this.page.device!.scopes);
    const free = new Float64Array(l.noteRows).fill(-1);
    this.page.device!.scopes.forEach((s, i) => {
      const r = row[i]!;
      if (s.lane !== "notes" || r >= l.noteRows) return;
      const at = this.scopePixels(s.from, s.to);
      if (!at || at[1] <= free[r]!) return;
      const y = l.notes + 18 * r;
      g.fillStyle = css(mix(c.hair, c.page, 0.5));
      g.fillRect(at[0], y + 1, Math.max(1, at[1] - at[0] - 1), 15);
      free[r] = at[1];
      if (g.measureText(s.name).width + 8 > at[1] - at[0]) return;
      g.textAlign = "left";
      g.fillStyle = css(c.muted);
      g.fillText(s.name, at[0] + 4, y + 9);
    });
  }

  private drawLanes(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const c = this.colours;
    const { bands, device, s } = this.page;
    gutterName(g, "grows", l.grows + 11, c);
    bands!.lanes.slice(0, l.growRows).forEach((lane, row) => {
      const y = l.grows + 22 * row;
      const group = bands!.groups[lane.group]!;
      g.fillStyle = css(c.panel);
      g.fillRect(left, y, l.width, 20);
      const most = Math.max(1, ...lane.points);
      g.fillStyle = css(c.danger);
      const last = lane.points.length - 1;
      for (let x = 0; x < l.width; x++) {
        const place = this.win[0] + ((x + 0.5) / l.width) * (this.win[1] - this.win[0]);
        const event = this.us ? this.eventAt(place) : place;
        const v = lane.points[Math.round((Math.max(0, Math.min(device!.events, event)) / device!.events) * last)] ?? 0;
        const high = Math.round((v / most) * 19);
        g.fillRect(left + x, y + 20 - high, 1, high);
      }
      const name = `${group.label} · own scale`;
      const button = h("button", {
        type: "button", class: "over lane", "data-key": `lane ${group.key}`, "aria-pressed": String(s.solo.includes(group.key)),
        title: `${group.label}: ${bytes(lane.from)} → ${bytes(lane.to)} alive at the snapshot. Show it alone.`,
        onclick: () => this.page.store.set({ solo: s.solo.length === 1 && s.solo[0] === group.key ? [] : [group.key] }, true),
      }, name);
      place(button, left, y);
      button.style.maxWidth = `${l.width}px`;
      const value = h("div", { class: "over", "data-bytes": lane.to }, growth(lane.from, lane.to));
      place(value, left + l.width + 8, y + 4);
      this.over.append(button, value);
    });
    if (bands!.lanes_left_out > 0) {
      const more = h("div", { class: "over gutter" }, `${bands!.lanes_left_out} more`);
      place(more, left + l.width + 8, l.grows - 11);
      this.over.append(more);
    }
  }

  /** The event at a place, where x is time. */
  private eventAt(place: number): number {
    const r = this.runAt(this.px(place)) ?? this.overview().find((o) => (o.tile.first + o.c + 1) * 2 ** o.tile.level > place);
    return r ? r.tile.events[r.c]! : 0;
  }

  private drawReserved(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    g.save();
    g.beginPath();
    g.rect(left, l.top - 1, l.width, l.height + 1);
    g.clip();
    g.strokeStyle = css(this.colours.reserved);
    g.lineWidth = 1.5;
    g.setLineDash([5, 3]);
    g.beginPath();
    const ratio = this.frame.scale === 0 ? 1 : this.frame.width / l.width;
    let end = -1;
    for (const r of this.drawn) {
      if (r.x1 <= r.x0) continue;
      const y = l.top + l.height - (r.tile.reserved[r.c]! / this.frame.top) * l.height;
      if (end !== r.x0) g.moveTo(left + r.x0 / ratio, y);
      g.lineTo(left + r.x0 / ratio, y);
      g.lineTo(left + r.x1 / ratio, y);
      end = r.x1;
    }
    g.stroke();
    g.restore();
  }

  /** The value of a run in each column, as pixels from the left and bytes. */
  private line(g: CanvasRenderingContext2D, y: (bytes: number) => number, of: (from: number, to: number) => number | null): void {
    const ratio = this.frame.width / this.layout.width;
    g.beginPath();
    let end = -1;
    for (const r of this.drawn) {
      if (r.x1 <= r.x0) continue;
      const v = of(r.tile.events[r.c]!, r.tile.events[r.c + 1]!);
      if (v === null) {
        end = -1;
        continue;
      }
      if (end !== r.x0) g.moveTo(left + r.x0 / ratio, y(v));
      g.lineTo(left + r.x0 / ratio, y(v));
      g.lineTo(left + r.x1 / ratio, y(v));
      end = r.x1;
    }
    g.stroke();
  }

  /** Runs under other settings: what they reserve, over the recorded line, and below it what of that is not in use. */
  private drawRuns(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const c = this.colours;
    const { curves, recorded, s } = this.page;
    const high = (v: number): number => l.top + l.height - (v / this.frame.top) * l.height;
    const capacity = curves[0]?.run.outcome.capacity_bytes ?? null;
    g.save();
    g.beginPath();
    g.rect(left, l.top - 6, l.width, l.height + 7);
    g.clip();
    g.lineJoin = "round";
    if (capacity !== null && capacity < this.frame.top) {
      g.fillStyle = css(c.danger);
      g.fillRect(left, high(capacity), l.width, 1);
      g.textAlign = "left";
      const y = high(capacity);
      g.fillText(`capacity ${bytes(capacity)}`, left + 6, y - l.top < 14 ? y + 9 : y - 7);
    }
    const failing = new Map<number, { numbers: number[]; y: number }>();
    for (const { run, slot, number } of curves) {
      const oom = run.outcome.oom?.event ?? Infinity;
      g.strokeStyle = css(siteColour(c, slot));
      g.lineWidth = 2;
      g.setLineDash([]);
      this.line(g, high, (from, to) => (from > oom ? null : highest(run.steps.event, run.steps.bytes, from, to)));
      if (oom === Infinity) continue;
      g.globalAlpha = 0.4;
      this.line(g, high, (from, to) => (from > oom ? highest(run.steps.event, run.steps.bytes, from, to) : null));
      g.globalAlpha = 1;
      const at = failing.get(oom);
      if (at) at.numbers.push(number);
      else failing.set(oom, { numbers: [number], y: high(run.outcome.oom!.reserved_bytes) });
    }
    for (const [event, { numbers, y }] of failing) this.cross(g, event, y, `${numbers.join(", ")} ${numbers.length === 1 ? "runs" : "run"} out`);
    g.restore();
    gutterName(g, s.lane, l.lane + 10, c);
    g.fillStyle = css(c.panel);
    g.fillRect(left, l.lane, l.width, laneHeight);
    const all = [...(recorded ? [{ run: recorded, colour: c.reserved, dash: [5, 3] }] : []), ...curves.map((v) => ({ run: v.run, colour: siteColour(c, v.slot), dash: [] as number[] }))];
    const of = s.lane === "stranded" ? (r: typeof all[0]["run"]) => r.stranded : (r: typeof all[0]["run"]) => r.unused;
    let most = 1;
    for (const { run } of all) for (const v of of(run)) most = Math.max(most, v);
    const low = (v: number): number => l.lane + laneHeight - 2 - (v / most) * (laneHeight - 6);
    g.save();
    g.beginPath();
    g.rect(left, l.lane, l.width, laneHeight);
    g.clip();
    g.lineWidth = 1.5;
    for (const { run, colour, dash } of all) {
      g.strokeStyle = css(colour);
      g.setLineDash(dash);
      const values = of(run);
      if (run.looks.length) this.line(g, low, (from, to) => highest(run.looks, values, from, to));
    }
    g.restore();
    g.setLineDash([]);
    const lane = h("button", {
      type: "button", class: "over lane", "data-key": "lane", title: "Reserved less allocated, or what of it even empty_cache() could not return",
      onclick: () => this.page.store.set({ lane: s.lane === "stranded" ? "unused" : "stranded" }, true),
    }, s.lane === "stranded" ? "free, but stranded in segments in use" : "reserved, not allocated");
    place(lane, left, l.lane);
    const top = h("div", { class: "over gutter" }, "highest", h("b", {}, bytes(all.length ? most : 0)));
    place(top, left + l.width + 8, l.lane + 2);
    this.over.append(lane, top);
  }

  private cross(g: CanvasRenderingContext2D, event: number, y: number, text: string): void {
    const at = this.placeOf(event);
    if (at === undefined) return;
    const x = left + this.px(at);
    if (x < left - 4 || x > left + this.layout.width + 4) return;
    g.strokeStyle = css(this.colours.danger);
    g.fillStyle = css(this.colours.danger);
    g.lineWidth = 2;
    g.beginPath();
    for (const d of [-4, 4]) {
      g.moveTo(x - 4, y - d);
      g.lineTo(x + 4, y + d);
    }
    g.stroke();
    const toLeft = x > left + this.layout.width - 80;
    g.textAlign = toLeft ? "right" : "left";
    g.fillText(text, x + (toLeft ? -8 : 8), y + 12);
  }

  private drawMarks(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const c = this.colours;
    let labelled = -1e9;
    for (const m of this.page.device!.marks) {
      const at = this.placeOf(m.event);
      if (at === undefined) continue;
      const x = Math.round(left + this.px(at));
      if (x < left - 1 || x > left + l.width + 1) continue;
      const oom = m.kind === "oom";
      if (m.kind === "annotation") continue;
      g.fillStyle = css(oom ? c.danger : c.muted);
      g.globalAlpha = oom ? 1 : 0.55;
      g.fillRect(x, l.top, oom ? 2 : 1, l.height);
      g.globalAlpha = 1;
      // Memory that goes back points up.
      const [tip, foot] = m.kind === "release" ? [l.top - 7, l.top - 1] : [l.top, l.top - 6];
      g.beginPath();
      g.moveTo(x - 4, foot);
      g.lineTo(x + 5, foot);
      g.lineTo(x + 0.5, tip);
      g.fill();
      if (!oom || x - labelled < 40) continue;
      labelled = x;
      g.textAlign = x > left + l.width - 40 ? "right" : "left";
      g.fillText("OOM", x + (x > left + l.width - 40 ? -7 : 8), l.top - 7);
    }
  }

  private drawLabels(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const { bands } = this.page;
    const ratio = this.frame.width / l.width;
    g.font = this.font(11);
    const widths = new Map<number, number>();
    const label = (b: number): string => this.page.bandGroup(bands!.bands[b]!).label;
    const widthOf = (b: number): number => {
      let w = widths.get(b);
      if (w === undefined) widths.set(b, (w = g.measureText(label(b)).width * ratio));
      return w;
    };
    g.textAlign = "left";
    for (const p of labelPlaces(this.drawn, this.frame, bands!.bands.length, widthOf, 15 * ratio)) {
      const x = left + p.x / ratio + 8;
      const y = l.top + p.y / ratio;
      g.fillStyle = css(textOn(fillOf(bands!, p.band, this.colours)));
      const key = this.page.bandGroup(bands!.bands[p.band]!).key;
      if (this.page.found && !this.page.found.has(key)) g.fillStyle = css(this.colours.muted);
      g.fillText(label(p.band), x, y + 0.5);
    }
  }

  private drawMap(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const c = this.colours;
    gutterName(g, "all", l.map + mapHeight / 2, c);
    g.fillStyle = css(c.panel);
    g.fillRect(left, l.map, l.width, mapHeight);
    const rs = this.overview();
    const most = rs.reduce((m, r) => Math.max(m, r.tile.max[r.c]!), 1);
    g.fillStyle = css(mix(c.neutral, c.page, 0.7));
    for (const r of rs) {
      const high = (r.tile.max[r.c]! / most) * (mapHeight - 3);
      g.fillRect(left + r.x0, l.map + mapHeight - high, r.x1 - r.x0, high);
    }
    const x0 = left + (this.win[0] / this.end) * l.width;
    const x1 = left + (this.win[1] / this.end) * l.width;
    const all = this.win[0] <= 0 && this.win[1] >= this.end;
    if (!all) {
      g.fillStyle = css(c.page);
      g.globalAlpha = 0.55;
      g.fillRect(left, l.map, x0 - left, mapHeight);
      g.fillRect(x1, l.map, left + l.width - x1, mapHeight);
      g.globalAlpha = 1;
    }
    g.strokeStyle = css(c.accent);
    g.lineWidth = 1.5;
    g.strokeRect(Math.round(x0) + 0.5, l.map + 0.5, Math.max(3, Math.round(x1 - x0) - 1), mapHeight - 1);
  }

  /** The values at the right edge, beside the lines that they belong to. */
  private drawGutter(): void {
    const l = this.layout;
    const lastRun = this.drawn[this.drawn.length - 1];
    if (!lastRun) return;
    const { tile, c } = lastRun;
    const dev = this.page.device!;
    const atEnd = this.win[1] >= this.end;
    const solo = this.solo.length > 0;
    const active = solo ? tile.last[c]! : atEnd ? dev.end.live : tile.last[c]!;
    const reserved = atEnd ? dev.end.reserved : tile.reserved[c]!;
    const kept = this.page.bands ? (atEnd && !solo ? dev.kept : keptLine(tile, c, this.page.bands.kept)) : undefined;
    const rows: [string, number, string][] = [["active", active, "gutter-active"]];
    if (!solo) rows.unshift(["reserved", reserved, "gutter-reserved"]);
    if (this.page.s.view === "whatif") {
      const to = tile.events[c + 1]! - 1;
      for (const { run, number } of this.page.curves) rows.push([`run ${number}`, run.steps.bytes[Math.max(0, lastAt(run.steps.event, to))]!, `gutter-run-${number}`]);
      rows.sort((a, b) => b[1] - a[1]);
    } else if (kept !== undefined) rows.push(["kept", kept, "gutter-kept"]);
    const compact = l.height < 100;
    const dense = compact || rows.length > 4;
    const high = dense ? 14 : 28;
    let below = l.top - 12;
    const shown = compact ? rows.slice(0, 3) : rows;
    const ys = shown.map(([, v]) => l.top + l.height - (Math.min(v, this.frame.top) / this.frame.top) * l.height - high / 2);
    // Labels that would cover each other move apart, downwards first, then back from the bottom.
    for (let i = 0; i < ys.length; i++) below = (ys[i] = Math.max(ys[i]!, below)) + high;
    let above = l.top + l.height + 8;
    for (let i = ys.length - 1; i >= 0; i--) {
      ys[i] = Math.min(ys[i]!, above - high);
      above = ys[i]!;
    }
    shown.forEach(([name, v, id], i) => {
      const el = h("div", { class: "over gutter", "data-bytes": v, "data-figure": id }, compact ? "" : dense ? `${name} ` : name, h("b", dense ? { class: "inline" } : {}, bytes(v)));
      place(el, left + l.width + (dense ? 3 : 8), ys[i]!);
      this.over.append(el);
      this.page.figures[id] = v;
    });
  }

  private drawPeak(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const { device } = this.page;
    if (!device!.peak || this.solo.length || this.page.s.view === "whatif") return;
    const peak = device!.peak;
    const at = this.placeOf(peak.event);
    if (at === undefined) return;
    const x = left + this.px(at);
    if (x < left || x > left + l.width) return;
    const text = `peak ${bytes(peak.bytes)} · event ${count(peak.event)}`;
    const flag = h("button", {
      type: "button", class: "over flag", "data-key": "peak", "data-bytes": peak.bytes, "data-event": peak.event, title: "Put the cursor on the peak",
      onclick: () => this.page.store.set({ k: peak.event }, true),
    }, text);
    this.over.append(flag);
    const width = g.measureText(text).width + 12; // asking the button would lay the page out in every frame
    const toLeft = x + width + 6 > left + l.width;
    const y = l.top + Math.max(2, Math.min(l.height - 30, l.height - (peak.bytes / this.frame.top) * l.height - 20));
    place(flag, toLeft ? x - width - 3 : x + 4, y);
  }

  /** Pins the findings to their places: an event, or at the right edge the memory of their lines. */
  private drawFindings(): void {
    const l = this.layout;
    const { page } = this;
    const { bands } = page;
    const last = this.drawn[this.drawn.length - 1];
    const stack = last && bands ? stackOf(last.tile, last.c) : [];
    const taken: [number, number][] = [];
    page.findings.forEach((f, i) => {
      const w = f.where;
      if (!w || w.f !== page.f || (w.d !== null && w.d !== page.d)) return;
      let x: number | undefined;
      let y = l.top - 15;
      if (w.event !== null) {
        const at = this.placeOf(w.event);
        const named = page.device!.marks.some((m) => m.kind === "oom" && m.event === w.event) && at !== undefined && left + this.px(at) > left + l.width - 40;
        if (at !== undefined) x = left + this.px(at) - (named ? 54 : 20); // beside the word at a mark
      } else if (last && w.g === page.s.g && l.height > 100) {
        const of = stack.filter((d) => d.bands === 1 && w.keys[0] === page.bandGroup(bands!.bands[d.band]!).key);
        const most = of.reduce((a, d) => (d.bytes > (a?.bytes ?? 0) ? d : a), of[0]);
        if (most) {
          x = left + (last.x1 / this.frame.width) * l.width - 20;
          y = l.top + l.height - ((most.from + most.bytes / 2) / this.frame.top) * l.height - 8;
        }
      }
      if (x === undefined || x < left - 20 || x > left + l.width || y > l.top + l.height - 8) return;
      while (taken.some(([a, b]) => Math.abs(a - x!) < 18 && Math.abs(b - y) < 17)) x -= 19;
      taken.push([x, y]);
      const pin = h("button", {
        type: "button", class: `over pin ${f.severity}`, "data-key": `pin ${i}`, title: f.title, "aria-label": `Finding ${i + 1}: ${f.title}`,
        onclick: () => page.store.set({ view: "findings", finding: i }, true),
      }, String(i + 1));
      place(pin, x, Math.max(l.top - 15, y));
      this.over.append(pin);
    });
  }

  // ---- the cursor layer

  private drawFront(): void {
    const l = this.layout;
    const c = this.colours;
    const g = begin(this.front);
    const { device, s } = this.page;
    if (!device || device.events === 0) return;
    g.font = this.font(11);
    const line = (event: number, colour: RGB, name?: string): void => {
      const at = this.placeOf(event);
      if (at === undefined) return;
      const x = Math.round(left + this.px(at));
      if (x < left || x > left + l.width) return;
      g.fillStyle = css(colour);
      g.fillRect(x - 0.75, l.top - 3, 1.5, l.height + 3);
      if (!name) return;
      g.fillRect(x - 7, l.top - 15, 14, 13);
      g.fillStyle = css(c.page);
      g.textAlign = "center";
      g.textBaseline = "middle";
      g.fillText(name, x, l.top - 8);
    };
    if (s.range) {
      const at = this.scopePixels(s.range[0], s.range[1]);
      if (at) {
        g.fillStyle = css(c.accent);
        g.globalAlpha = 0.16;
        g.fillRect(at[0], l.top, at[1] - at[0], l.height);
        g.globalAlpha = 1;
        g.fillRect(at[0], l.top, 1, l.height);
        g.fillRect(at[1] - 1, l.top, 1, l.height);
      }
    }
    this.drawPinned(g);
    line(this.page.k, c.accent);
    if (s.a !== null) line(s.a, c.ink, "A");
    if (s.b !== null) line(s.b, c.ink, "B");
    this.drawHover(g);
  }

  /** Outlines the rectangle of the pinned allocation, where it is drawn on its own. */
  private drawPinned(g: CanvasRenderingContext2D): void {
    const pinned = this.page.s.alloc;
    if (pinned === null) return;
    const l = this.layout;
    const ratio = this.frame.width / l.width;
    g.fillStyle = css(this.colours.accent);
    const seen = new Set<Tile>();
    for (const r of this.drawn) {
      if (r.tile.kind !== "alloc" || seen.has(r.tile)) continue;
      seen.add(r.tile);
      const t = r.tile;
      for (let i = 0; i < t.alloc.length; i++) {
        if (t.alloc[i] !== pinned || t.marks[i]! & stripOfBands) continue;
        const at = (c: number): number => Math.max(0, Math.min(this.frame.width, pixelAt((t.first + c) * 2 ** t.level, this.frame.win, this.frame.width))) / ratio;
        const y0 = l.top + Math.max(0, rowOf(t.y0[i]! + t.height[i]!, this.frame)) / ratio;
        const y1 = l.top + Math.max(0, rowOf(t.y0[i]!, this.frame)) / ratio;
        const x0 = left + at(t.c0[i]!);
        const x1 = left + at(t.c1[i]!);
        g.fillRect(x0, y0 - 1, x1 - x0, 2);
        g.fillRect(x0, y1 - 1, x1 - x0, 2);
        if (at(t.c0[i]!) > 0 && t.c0[i]! > 0) g.fillRect(x0, y0, 1.5, y1 - y0);
        if (at(t.c1[i]!) < l.width && t.c1[i]! < t.n) g.fillRect(x1 - 1.5, y0, 1.5, y1 - y0);
      }
    }
  }

  private drawHover(g: CanvasRenderingContext2D): void {
    if (!this.hover || this.drag?.moved) return;
    const l = this.layout;
    g.fillStyle = css(this.colours.ink);
    g.globalAlpha = 0.45;
    g.fillRect(Math.round(left + this.hover.x), l.top, 1, l.height);
    g.globalAlpha = 1;
  }

  // ---- what the pointer does

  private runAt(x: number): Run | undefined {
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

  private eventOf(r: Run): number {
    const w = r.tile.witness[r.c]!;
    return w === beforeFirst ? -1 : w;
  }

  /** The mark or the annotation that stands at a point above the picture. */
  private above(x: number, y: number): { mark: Mark } | { scope: Scope } | null {
    const l = this.layout;
    const { device } = this.page;
    if (!device || x < left || x > left + l.width) return null;
    if (y >= l.top - 14 && y < l.top + 2) {
      let best: { mark: Mark; far: number } | null = null;
      for (const mark of device.marks) {
        const at = mark.kind === "annotation" ? undefined : this.placeOf(mark.event);
        const far = at === undefined ? Infinity : Math.abs(left + this.px(at) - x);
        if (far <= 6 && far < (best?.far ?? Infinity)) best = { mark, far };
      }
      return best;
    }
    const lane = l.steps >= 0 && y >= l.steps && y < l.steps + 18 ? "steps" : l.notes >= 0 && y >= l.notes && y < l.notes + 18 * l.noteRows ? "notes" : null;
    if (!lane) return null;
    const { row } = noteRows(device.scopes);
    const want = lane === "notes" ? Math.floor((y - l.notes) / 18) : -1;
    const scope = device.scopes.findLast((s, i) => {
      if (s.lane !== lane || row[i] !== want) return false;
      const at = this.scopePixels(s.from, s.to);
      return at !== null && x >= at[0] - 1 && x < at[1] + 1;
    });
    return scope ? { scope } : null;
  }

  /** Tells what stands above the picture. */
  private pointAbove(x: number, y: number, clientX: number, clientY: number): boolean {
    const at = this.above(x, y);
    if (!at) return false;
    this.unpoint();
    this.tooltip.replaceChildren(
      ...("mark" in at
        ? [h("div", { class: "head" }, at.mark.label), h("div", { class: "muted" }, `event ${count(at.mark.event)} · click puts the cursor here`)]
        : [h("div", { class: "head" }, at.scope.name), h("div", {}, `events ${count(at.scope.from)} – ${count(at.scope.to)}`), h("div", { class: "muted" }, "click selects it, shift-click on another tells the difference between their ends")]),
    );
    this.tooltip.hidden = false;
    this.placeTip(clientX, clientY);
    return true;
  }

  private clickAbove(x: number, y: number, second: boolean): void {
    const at = this.above(x, y);
    if (!at) return;
    const { s, store } = this.page;
    if ("mark" in at) store.set({ k: at.mark.event }, true);
    else if (second && s.range) store.set({ a: Math.min(s.range[1], at.scope.to), b: Math.max(s.range[1], at.scope.to), k: at.scope.to, range: null }, true);
    else store.set({ range: [at.scope.from, at.scope.to], a: null, b: null, k: at.scope.to }, true);
  }

  private zoneOf(x: number, y: number): "picture" | "axis" | "map" | "left" | "lanes" | "other" {
    const l = this.layout;
    if (x < left) return y >= l.top && y < l.top + l.height ? "left" : "other";
    if (x > left + l.width) return "other";
    if (l.map >= 0 && y >= l.map && y < l.map + mapHeight) return "map";
    if (y >= l.top + l.height && y < l.top + l.height + axisHeight) return "axis";
    if (y >= l.top && y < l.top + l.height) return "picture";
    return y < l.top ? "lanes" : "other";
  }

  private mouse(): void {
    const box = this.box;
    const at = (e: MouseEvent): [number, number] => {
      const r = box.getBoundingClientRect();
      return [e.clientX - r.left, e.clientY - r.top];
    };
    box.addEventListener("wheel", (e) => this.wheel(e, ...at(e)), { passive: false });
    this.front.addEventListener("pointerdown", (e) => {
      if (e.button !== 0 && e.button !== 1) return;
      const [x, y] = at(e);
      const zone = this.zoneOf(x, y);
      if (zone === "other" || zone === "left") return;
      if (zone === "lanes") return this.clickAbove(x, y, e.shiftKey);
      box.focus({ preventScroll: true });
      e.preventDefault();
      this.front.setPointerCapture(e.pointerId);
      const how = zone === "map" ? "map" : zone === "picture" && e.button === 0 && !e.altKey ? "select" : "pan";
      this.drag = { how, x0: x - left, win: this.win, moved: false };
      if (how === "map") this.dragTo(x - left);
    });
    this.front.addEventListener("pointermove", (e) => {
      const [x, y] = at(e);
      if (this.drag) {
        if (Math.abs(x - left - this.drag.x0) > 3) this.drag.moved = true;
        if (this.drag.moved || this.drag.how === "map") this.dragTo(x - left);
        return;
      }
      this.front.style.cursor = { picture: "crosshair", axis: "grab", map: "grab", left: "ns-resize", lanes: "", other: "" }[this.zoneOf(x, y)];
      if (this.pointAbove(x, y, e.clientX, e.clientY)) {
        this.front.style.cursor = "pointer";
        return;
      }
      this.point(x, y, e.clientX, e.clientY);
    });
    this.front.addEventListener("pointerup", (e) => {
      const drag = this.drag;
      this.drag = null;
      if (!drag || drag.moved || drag.how !== "select") return this.need("cursor");
      const [x, y] = at(e);
      this.click(x - left, y - this.layout.top, e.shiftKey);
    });
    this.front.addEventListener("pointercancel", () => (this.drag = null));
    this.front.addEventListener("pointerleave", () => this.unpoint());
    this.front.addEventListener("dblclick", (e) => {
      const [x, y] = at(e);
      if (this.zoneOf(x, y) === "picture") this.fit();
      else if (this.zoneOf(x, y) === "map") this.page.store.set({ win: null });
      else if (this.zoneOf(x, y) === "left") this.page.store.set({ y: "reserved" });
    });
  }

  private wheel(e: WheelEvent, x: number, y: number): void {
    const zone = this.zoneOf(x, y);
    if (zone === "other" || !this.page.device?.events) return;
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 16 : 1;
    const dy = e.deltaY * unit;
    if (zone === "left") {
      this.page.store.set({ y: Math.max(1, Math.round((this.axisTop ?? this.top()) * 1.0015 ** dy)) });
      return;
    }
    const dx = e.deltaX * unit || (e.shiftKey ? dy : 0);
    const { win } = this;
    if (dx && (e.shiftKey || Math.abs(dx) > Math.abs(dy))) {
      this.moveTo([win[0] + (dx / this.layout.width) * (win[1] - win[0]), win[1] + (dx / this.layout.width) * (win[1] - win[0])]);
      return;
    }
    const around = zone === "map" ? ((x - left) / this.layout.width) * this.end : win[0] + ((x - left) / this.layout.width) * (win[1] - win[0]);
    this.zoomBy(1.0015 ** dy, around);
  }

  private dragTo(x: number): void {
    const drag = this.drag!;
    const l = this.layout;
    this.tooltip.hidden = true;
    if (drag.how === "map") {
      const centre = (x / l.width) * this.end;
      const half = (this.win[1] - this.win[0]) / 2;
      if (this.win[1] - this.win[0] < this.end) this.moveTo([centre - half, centre + half]);
      return;
    }
    if (drag.how === "pan") {
      const d = ((drag.x0 - x) / l.width) * (drag.win[1] - drag.win[0]);
      this.moveTo([drag.win[0] + d, drag.win[1] + d]);
      return;
    }
    const ends = [drag.x0, x].map((v) => Math.max(0, Math.min(l.width - 0.01, v))).sort((a, b) => a - b);
    const [a, b] = ends.map((v) => this.runAt(v));
    if (a && b) this.page.store.set({ range: [a.tile.events[a.c]!, Math.max(a.tile.events[a.c]!, b.tile.events[b.c + 1]! - 1)] });
  }

  /** Shows what is under the pointer at once, and asks for the allocation at rest. */
  private point(x: number, y: number, clientX: number, clientY: number): void {
    const run = this.zoneOf(x, y) === "picture" ? this.runAt(x - left) : undefined;
    if (!run) return this.unpoint();
    const l = this.layout;
    const height = (1 - (y - l.top) / l.height) * this.frame.top;
    const at = stackOf(run.tile, run.c).find((d) => height >= d.from && height < d.from + d.bytes) ?? null;
    this.hover = { x: x - left, y, run, at, bytes: height };
    const key = at && at.bands === 1 && this.page.bands ? this.page.bandGroup(this.page.bands.bands[at.band]!).key : null;
    this.lightUp(key);
    this.tell(null);
    this.placeTip(clientX, clientY);
    this.hitAsk.cancel();
    if (at && this.page.bands && this.page.s.view !== "whatif") {
      const k = this.eventOf(run);
      this.hitAsk.ask(
        async () => {
          const hit = await json<Hit>("hit", { ...this.page.base, u: this.page.u, k, y: Math.floor(height), solo: this.picture.solo });
          return hit.alloc === null ? null : await json<Alloc>("alloc", { f: this.page.f, d: this.page.d, i: hit.alloc });
        },
        (alloc) => {
          if (!this.hover) return;
          this.tell(alloc);
          this.placeTip(clientX, clientY);
        },
      );
    }
    this.need("cursor");
  }

  private lightUp(key: string | null): void {
    if (key === this.page.lit) return;
    this.page.lit = key;
    this.page.tell("lit");
  }

  private unpoint(): void {
    this.tooltip.hidden = true;
    if (!this.hover) return;
    this.hover = null;
    this.hitAsk.cancel();
    this.lightUp(null);
    this.need("cursor");
  }

  private tell(alloc: Alloc | null): void {
    const { run, at } = this.hover!;
    const { tile, c } = run;
    const { bands } = this.page;
    const event = this.eventOf(run);
    const inBucket = tile.events[c + 1]! - tile.events[c]!;
    const says: (Node | string)[] = [];
    if (at && bands) {
      const band = bands.bands[at.band]!;
      const group = this.page.bandGroup(band);
      if (at.bands > 1) {
        says.push(h("div", { class: "head" }, h("span", { class: "sw" }), "several small sites"), h("div", { "data-bytes": at.bytes }, `${bytes(at.bytes)} here, each too small to draw; zoom in`));
      } else {
        says.push(
          h("div", { class: "head" }, h("span", { class: `sw s${group.slot} ${band.fate === "kept" ? "" : "freed"}` }), group.label),
          h("div", { "data-bytes": at.bytes }, at.allocs > 1 ? `${count(at.allocs)} small allocations, ${bytes(at.bytes)}` : bytes(at.bytes), h("span", { class: "muted" }, ` · ${fates[band.fate]}`)),
        );
      }
    } else if (this.page.s.view === "whatif") {
      says.push(h("div", { class: "head" }, "reserved"), h("div", { "data-bytes": tile.reserved[c] }, h("span", { class: "line recorded" }), ` ${bytes(tile.reserved[c])} as recorded`));
      for (const { run, slot, name } of this.page.curves) {
        const v = highest(run.steps.event, run.steps.bytes, tile.events[c]!, tile.events[c + 1]!);
        says.push(h("div", { "data-bytes": v }, h("span", { class: `sw s${slot}` }), ` ${bytes(v)} with ${name}`));
      }
    } else {
      const free = tile.reserved[c]! - tile.max[c]!;
      says.push(h("div", { class: "head" }, this.hover!.bytes <= tile.reserved[c]! && free > 0 ? "reserved, not in use" : "not reserved"));
      if (free > 0) says.push(h("div", { "data-bytes": free }, bytes(free)));
    }
    if (alloc) {
      const lived = alloc.born_us !== null && alloc.died_us !== null ? `, ${duration(alloc.died_us - alloc.born_us)}` : "";
      const born = alloc.birth < 0 ? "older than the recording" : `event ${count(alloc.birth)}`;
      says.push(h("div", { "data-bytes": alloc.bytes }, `this allocation ${bytes(alloc.bytes)}: ${born} → ${alloc.death === null ? "still alive" : `event ${count(alloc.death)}`}${lived}`));
      const own = (alloc.stack ?? []).findIndex((f) => f.origin === "own");
      const from = Math.max(0, own);
      for (const f of (alloc.stack ?? []).slice(from, from + 3)) says.push(h("span", { class: `mono ${f.origin === "own" ? "own" : ""}` }, `${f.file.slice(f.file.lastIndexOf("/") + 1)}:${f.line} ${f.function}`));
    }
    says.push(
      h("div", { class: "muted" }, `event ${count(event)}${inBucket > 1 ? ` · highest of ${count(inBucket)} events here` : ""}${tile.flags & flagTooMany ? " · zoom in for allocations" : ""}`),
      h("div", { class: "muted" }, `active ${bytes(tile.max[c]!)} · reserved ${bytes(tile.reserved[c]!)}`),
    );
    this.tooltip.replaceChildren(...says);
    this.tooltip.dataset.event = String(event);
    this.tooltip.hidden = false;
  }

  private placeTip(x: number, y: number): void {
    const t = this.tooltip;
    const w = t.offsetWidth;
    const high = t.offsetHeight;
    const tx = x + 16 + w > innerWidth ? x - w - 12 : x + 16;
    const ty = y + 18 + high > innerHeight ? y - high - 10 : y + 18;
    t.style.transform = `translate(${Math.max(4, tx)}px,${Math.max(4, ty)}px)`;
  }

  private click(x: number, y: number, mark: boolean): void {
    const run = this.runAt(x);
    if (!run) return;
    const k = this.eventOf(run);
    if (mark) {
      this.page.store.set({ a: this.page.s.a ?? this.page.k, b: k }, true);
      return;
    }
    const height = (1 - y / this.layout.height) * this.frame.top;
    this.page.store.set({ k, alloc: null, range: null }, true);
    if (height >= 0 && height < run.tile.max[run.c]! && this.page.bands) this.pin(k, height);
  }

  /** Pins the allocation that is drawn at a height after an event. */
  private pin(k: number, height: number): void {
    fresh<Hit>("hit", { ...this.page.base, u: this.page.u, k, y: Math.floor(height), solo: this.picture.solo }).then(
      (hit) => {
        if (this.page.k === k && hit.alloc !== null) this.page.store.set({ alloc: hit.alloc });
      },
      () => {},
    );
  }

  // ---- what keys do

  moveTo(win: Span): void {
    const length = Math.min(win[1] - win[0], this.end);
    const from = Math.min(Math.max(0, win[0]), this.end - length);
    const next = clamp([from, from + length], this.end, leastPlaces);
    this.hover = null;
    this.tooltip.hidden = true;
    this.page.store.set({ win: next[0] <= 0 && next[1] >= this.end ? null : [round(next[0]), round(next[1])] });
  }

  zoomBy(factor: number, around?: number): void {
    const { win } = this;
    const cursor = this.placeOf(this.page.k);
    const centre = around ?? (cursor !== undefined && cursor >= win[0] && cursor <= win[1] ? cursor : (win[0] + win[1]) / 2);
    const length = (win[1] - win[0]) * factor;
    const least = Math.min(leastPlaces, this.end);
    const f = length < least ? least / (win[1] - win[0]) : factor;
    this.moveTo(zoom(win, centre, f));
  }

  pan(share: number): void {
    const d = (this.win[1] - this.win[0]) * share;
    this.moveTo([this.win[0] + d, this.win[1] + d]);
  }

  /** Shows the selected range, or else the life of the pinned allocation. */
  fit(): void {
    const { s, pinned } = this.page;
    const range: Span | null = s.range ?? (pinned ? [Math.max(0, pinned.birth), pinned.death ?? this.page.device!.events - 1] : null);
    if (!range) return;
    const a = this.placeOf(range[0]);
    const b = this.placeOf(range[1]);
    if (a === undefined || b === undefined) return;
    const space = s.range ? 0 : (b - a) * 0.05 + 2;
    const half = this.us ? 0 : 0.5;
    this.moveTo([a - half - space, b + half + space]);
    if (s.range) this.page.store.set({ range: null });
  }

  /** Moves the cursor to the next column's event, and the window with it. */
  step(by: number): void {
    const i = this.drawn.findIndex((r) => r.tile.events[r.c]! <= this.page.k && this.page.k < r.tile.events[r.c + 1]!);
    let at = i + by;
    while (i >= 0 && this.drawn[at] && this.page.near(this.eventOf(this.drawn[at]!)) === this.page.k) at += by;
    const next = i < 0 ? undefined : this.drawn[at];
    if (next) this.page.store.set({ k: this.eventOf(next) });
    else if (this.page.device) {
      const k = Math.max(0, Math.min(this.page.device.events - 1, this.page.k + by * 2 ** this.level));
      this.page.store.set({ k });
      this.reveal(k);
    }
  }

  /** Moves along the stack at the cursor; the band is lit and told, Enter pins what is there. */
  stepBand(by: number): void {
    const run = this.drawn.find((r) => r.tile.events[r.c]! <= this.page.k && this.page.k < r.tile.events[r.c + 1]!);
    if (!run || !this.page.bands) return;
    const stack = stackOf(run.tile, run.c);
    this.band = Math.max(0, Math.min(stack.length - 1, this.band < 0 ? (by > 0 ? 0 : stack.length - 1) : this.band + by));
    const d = stack[this.band];
    if (!d) return;
    const band = this.page.bands.bands[d.band]!;
    const group = this.page.bandGroup(band);
    this.lightUp(d.bands === 1 ? group.key : null);
    this.say(`${d.bands > 1 ? "several small sites" : group.label}, ${bytes(d.bytes)}, ${fates[band.fate]}`);
  }

  pinBand(): void {
    const run = this.drawn.find((r) => r.tile.events[r.c]! <= this.page.k && this.page.k < r.tile.events[r.c + 1]!);
    const d = run && stackOf(run.tile, run.c)[this.band];
    if (d) this.pin(this.page.k, d.from + d.bytes / 2);
  }

  /** Moves the window, if need be, so that an event is seen. */
  reveal(k: number): void {
    const go = (at: number): void => {
      const { win } = this;
      if (at >= win[0] && at <= win[1]) return;
      const half = (win[1] - win[0]) / 2;
      this.moveTo([at - half, at + half]);
    };
    if (!this.us) return go(k + 0.5);
    json<Event>("event", { f: this.page.f, d: this.page.d, k: Math.max(0, k) }).then((e) => {
      if (e.place !== null) go(e.place);
    }, () => {});
  }

  /** Switches x between events and time; the window stays on the same events. */
  async switchX(): Promise<void> {
    const { page } = this;
    const dev = page.device;
    if (!dev?.time) return;
    if (page.s.win === null) return page.store.set({ x: this.us ? "ev" : "us" }, true);
    const { win } = this;
    if (this.us) {
      const a = this.drawn[0];
      const b = this.drawn[this.drawn.length - 1];
      if (a && b) page.store.set({ x: "ev", win: clamp([a.tile.events[a.c]!, b.tile.events[b.c + 1]!], dev.events, leastPlaces) }, true);
      return;
    }
    const place = async (k: number): Promise<number> => (await json<Event>("event", { f: page.f, d: page.d, k: Math.max(0, Math.min(dev.events - 1, k)) })).place ?? 0;
    const [a, b] = await Promise.all([place(Math.floor(win[0])), place(Math.ceil(win[1]) - 1)]);
    page.store.set({ x: "us", win: clamp([a, b + 1], Math.ceil(dev.time.span) + 1, leastPlaces) }, true);
  }

  /** Asks again after the engine was away. */
  retry(): void {
    this.tiles.forgive();
    this.need("data", "ink");
  }

  /** The picture with all that is written on it. */
  canvas(): HTMLCanvasElement {
    const out = document.createElement("canvas");
    out.width = this.ink.width;
    out.height = this.ink.height;
    const g = out.getContext("2d")!;
    const ratio = devicePixelRatio;
    g.fillStyle = css(this.colours.page);
    g.fillRect(0, 0, out.width, out.height);
    g.drawImage(this.data, left * ratio, this.layout.top * ratio);
    g.drawImage(this.ink, 0, 0);
    g.drawImage(this.front, 0, 0);
    g.font = this.font(11 * ratio);
    for (const el of this.over.querySelectorAll<HTMLElement>(".over")) {
      const [x, y] = [Number.parseFloat(el.style.left) * ratio, Number.parseFloat(el.style.top) * ratio];
      const flag = el.classList.contains("flag");
      if (flag) {
        g.fillStyle = css(this.colours.page);
        g.fillRect(x, y, el.offsetWidth * ratio, el.offsetHeight * ratio);
      }
      // A label and its value may stand one below the other.
      let line = 0;
      for (const part of el.childNodes) {
        if (part instanceof HTMLElement && getComputedStyle(part).display === "block" && part.previousSibling) line++;
        g.fillStyle = css(part instanceof HTMLElement || !el.classList.contains("gutter") ? this.colours.ink : this.colours.muted);
        const inline = part instanceof HTMLElement && line === 0 && part.previousSibling;
        g.fillText(part.textContent ?? "", x + (flag ? 6 * ratio : 0) + (inline ? g.measureText(part.previousSibling!.textContent ?? "").width : 0), y + (12 + 14 * line) * ratio);
      }
    }
    return out;
  }

  /** What is drawn, in numbers: for tests and for the curious. */
  state(): Record<string, unknown> {
    const l = this.layout;
    return {
      win: this.win,
      level: this.level,
      kind: this.drawn[0]?.tile.kind ?? null,
      settled: this.tiles.settled && this.dirty.size === 0,
      tiles: [...new Set(this.drawn.map((r) => r.tile))].map((t) => ({ kind: t.kind, level: t.level, first: t.first, n: t.n, flags: t.flags })),
      tileBytes: this.tiles.size,
      box: { left, top: l.top, width: l.width, height: l.height, map: l.map, steps: l.steps },
      axis: this.frame.top,
    };
  }

  /** What is drawn in the column of an event: entries from below with the pixel rows of their tops. */
  column(event: number): unknown {
    const r = this.drawn.find((r) => r.tile.events[r.c]! <= event && event < r.tile.events[r.c + 1]!);
    if (!r) return null;
    const stack = stackOf(r.tile, r.c);
    return {
      witness: this.eventOf(r),
      x: (r.x0 / this.frame.width) * this.layout.width,
      pixels: r.x1 - r.x0,
      max: r.tile.max[r.c],
      total: stack.reduce((sum, d) => sum + d.bytes, 0),
      entries: stack.map((d) => ({ band: d.band, bands: d.bands, alloc: d.alloc, from: d.from, bytes: d.bytes, top: rowOf(d.from + d.bytes, this.frame) })),
    };
  }
}

/** Where ticks of an axis of events stand, in the middle of an event where single ones are seen. */
const eventTicks = (win: Span, step: number): [number, string][] =>
  ticks(win[0], win[1], step).map((t) => [t + (win[1] - win[0] > 100 ? 0 : 0.5), count(t)]);

/** A round moment, with the digits that its neighbours need. */
function moment(us: number, step: number): string {
  if (us === 0) return "0";
  const digits = (unit: number): number => Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  return us < 1e6 && step < 1e5 ? `${(us / 1e3).toFixed(digits(1e3))} ms` : `${(us / 1e6).toFixed(digits(1e6))} s`;
}

/** Where ticks of a folded axis of time stand: at round moments on both sides of each fold. */
export function timeTicks(win: Span, step: number, folds: { at: number; us: number }[]): [number, string][] {
  const out: [number, string][] = [];
  let from = 0;
  let left = 0; // out of the axis so far
  for (const f of [...folds, { at: Infinity, us: 0 }]) {
    const a = Math.max(win[0], from);
    const b = Math.min(win[1], f.at);
    if (a <= b) for (const t of ticks(a + left, b + left, step)) out.push([t - left, moment(t, step)]);
    from = f.at;
    left += f.us;
  }
  return out;
}

/** Rows for annotations that may lie inside each other: each goes to the first row that is free. */
export function noteRows(scopes: { lane: string; from: number; to: number }[]): { rows: number; row: number[] } {
  const ends: number[] = [];
  const row = scopes.map((s) => {
    if (s.lane !== "notes") return -1;
    let r = ends.findIndex((end) => end <= s.from);
    if (r < 0) r = ends.length;
    ends[r] = s.to;
    return r;
  });
  return { rows: ends.length, row };
}

function hatchEdge(g: CanvasRenderingContext2D, x: number, y: number, high: number, colour: string): void {
  g.save();
  g.beginPath();
  g.rect(x, y, 6, high);
  g.clip();
  g.strokeStyle = colour;
  g.beginPath();
  for (let d = -6; d < high; d += 6) {
    g.moveTo(x, y + d + 6);
    g.lineTo(x + 6, y + d);
  }
  g.stroke();
  g.restore();
}

const round = (v: number): number => Math.round(v * 1000) / 1000;
