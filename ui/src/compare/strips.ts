// The pictures of Compare: a row a file, all with the same axes.

import type { Process, Site } from "../base/api.ts";
import { fresh } from "../base/ask.ts";
import { h, placeTip, swatch } from "../base/dom.ts";
import { bytes, count, delta, deviceName, plural, short } from "../base/format.ts";
import { byteStep, byteTick, levelFor, niceStep, ticks } from "../base/scale.ts";
import type { Bands, Device } from "../base/wire.ts";
import type { Page } from "../session/page.ts";
import { paintRuns, runs, stackOf, widen, type Frame, type Run } from "../picture/blit.ts";
import { paintFor } from "../picture/paint.ts";
import { palette, type Palette } from "../picture/palette.ts";
import { dashed, onGround, stepLine } from "../picture/plot.ts";
import { cover, Tiles, type Picture, type Want } from "../picture/tiles.ts";
import { begin, fontOf, inRoom, plate, rect, size, write } from "../picture/canvas.ts";
import { byFunction, loose, type Place } from "./runs.ts";

/** A file's row of picture. */
interface Strip {
  f: number;
  device: Device;
  bands: Bands | null;
  sites: Bands | null; // by line or function, as the table's rows are
}

/** Where the rows stand, in pixels, and what they show. */
interface Layout {
  names: string[];
  left: number;
  room: number;
  rowHigh: number;
  step: number;
  offsets: number[]; // of each file's first event on the common axis
  events: number; // of that axis
  top: number; // bytes at the upper edge of a row
}

/** What is compared, and whether its files stand apart: runs or ranks, not steps. Runs are of different code. */
export interface Shown {
  process: Process;
  apart: boolean;
  runs: boolean;
}

export class Strips {
  private strips: Strip[] = [];
  private of = "";
  private layout: Layout | null = null;
  private drawn: Run[][] = []; // by row
  private readonly tiles: Tiles;

  constructor(
    private readonly page: Page,
    private readonly root: HTMLElement,
    private readonly tooltip: HTMLElement,
    private readonly shown: () => Shown | undefined,
    private readonly name: (f: number) => string,
  ) {
    this.tiles = new Tiles(() => this.paint(), () => {});
    new ResizeObserver(() => this.paint()).observe(root);
  }

  /** The canvas to be put into the view. */
  canvas(files: number): HTMLCanvasElement {
    return h("canvas", {
      role: "img", "aria-label": `What each of ${files} files holds, by site; the table below shows the same`,
      onclick: (e) => this.click(e as MouseEvent), onpointermove: (e) => this.point(e as MouseEvent), onpointerleave: () => (this.tooltip.hidden = true),
    });
  }

  /** All sites with the most bytes of each in each file, as far as their bands are known: also what nothing is left of at the snapshots. */
  peaks({ process, runs }: Shown): Site[] {
    const none = process.files.map(() => 0);
    const identity = (s: Place & { key: string }): string => (runs ? loose(s) : s.key);
    const sites = new Map((runs ? byFunction(process.sites) : process.sites).map((s): [string, Site] => [identity(s), { ...s, bytes: [...none] }]));
    process.files.forEach(({ f }, i) => {
      for (const g of this.strips.find((s) => s.f === f)?.sites?.groups ?? []) {
        const id = identity({ ...g, missing: g.label });
        const there = sites.get(id) ?? { key: g.key, file: g.file ?? null, line: g.line ?? null, function: g.function ?? null, missing: g.label, bytes: [...none], count: none, survivors: 0, bytes_per_step: 0 };
        there.bytes[i] = Math.max(there.bytes[i]!, g.peak.bytes);
        sites.set(id, there);
      }
    });
    return [...sites.values()].sort((a, b) => Math.max(...b.bytes) - Math.max(...a.bytes));
  }

  /** The keys of what is drawn of a function, whatever its lines in each file. */
  keys(of: Site): string[] {
    const all = this.strips.flatMap((s) => s.bands?.groups ?? []).filter((g) => loose({ ...g, missing: g.label }) === loose(of));
    return all.length ? [...new Set(all.map((g) => g.key))] : [of.key];
  }

  /** The colors of sites in all rows: those of the newest file, and of the pinned finding the mark. */
  slots(): Map<string, number> {
    for (const { bands } of this.strips) this.page.mark(bands?.groups ?? []);
    return new Map((this.strips.at(-1)?.bands ?? this.page.bands)?.groups.map((g) => [g.key, g.slot]));
  }

  /** Asks for what the rows need, of the device that is chosen; done is called when it is there. */
  async load(done: () => void): Promise<void> {
    const { d: chosen, s, session } = this.page;
    const { process: { files }, runs } = this.shown()!;
    // A rank may have a device of its own.
    const deviceOf = (f: number): number | undefined => {
      const of = session?.files.find((x) => x.f === f)?.devices ?? [];
      return chosen !== undefined && of.includes(chosen) ? chosen : of[0];
    };
    const g = runs ? "function" : "line";
    const key = `${files.map((x) => x.f)} ${chosen} ${s.g} ${g}`;
    if (key === this.of) return;
    this.of = key;
    this.strips = [];
    const strips = await Promise.all(
      files.map(async ({ f }): Promise<Strip | null> => {
        const d = deviceOf(f);
        try {
          const [device, bands] = await Promise.all([fresh<Device>("device", { f, d }), fresh<Bands>("bands", { f, d, g: s.g })]);
          return { f, device, bands, sites: s.g === g ? bands : await fresh<Bands>("bands", { f, d, g }) };
        } catch {
          return null; // a file without devices has no row
        }
      }),
    );
    if (key !== this.of) return;
    this.strips = strips.filter((x) => x !== null);
    const newest = new Map(this.strips.at(-1)?.bands?.groups.map((g) => [g.key, g.slot]));
    for (const { bands } of this.strips) for (const g of bands?.groups ?? []) g.slot = newest.get(g.key) ?? g.slot;
    done();
  }

  /** Draws all rows. */
  paint(): void {
    const canvas = this.root.querySelector<HTMLCanvasElement>(".rows canvas");
    const shown = this.shown();
    if (!canvas || !shown || !this.strips.length) return;
    const c = palette();
    const ctx = canvas.getContext("2d")!;
    ctx.font = fontOf(this.root);
    const { how, ...l } = this.lay(ctx, shown);
    this.layout = l;
    const [width, high] = [this.root.clientWidth, this.strips.length * l.step + 34];
    size(canvas, width, high); // which takes the font away, too
    begin(canvas).font = fontOf(this.root);
    const wants: Want[] = [];
    this.drawn = this.strips.map((_, i) => this.row(ctx, i, l, c, wants));
    this.axis(ctx, l, c, how);
    this.page.figures.strips = { rows: this.strips.map((s, i) => ({ f: s.f, y: 8 + i * l.step, high: l.rowHigh, offset: l.offsets[i] })), left: l.left, room: l.room, events: l.events, top: l.top };
    this.tiles.want(wants, []);
  }

  private lay(ctx: CanvasRenderingContext2D, { process, apart }: Shown): Layout & { how: string } {
    const { strips } = this;
    const rowHigh = Math.max(80, Math.min(150, Math.floor((innerHeight * 0.54 - 34) / strips.length) - 10));
    const names = strips.map(({ f, device: { device } }) => `${this.name(f)}${device === this.page.d ? "" : `, ${deviceName(device)}`}`);
    const left = Math.min(220, Math.max(72, ...names.map((n) => ctx.measureText(short(n, names)).width + 24)));
    const found = process.survivors.find((s) => s.device === strips[0]!.device.device);
    const { offsets, how } = align(
      strips.map((s) => s.device),
      strips.map((s) => process.files.findIndex((v) => v.f === s.f)).map((j, i, all) => (i > 0 ? (found?.event[all[i - 1]!]?.[j] ?? null) : null)),
      apart,
    );
    const reserved = this.page.s.y === "reserved";
    const top = Math.max(1, ...strips.map((s) => Math.max(s.device.peak?.bytes ?? 0, reserved ? (s.device.peak_reserved?.bytes ?? 0) : 0))) * 1.04;
    const events = Math.max(1, ...strips.map((s, i) => offsets[i]! + s.device.events));
    return { names, left, room: Math.max(40, this.root.clientWidth - left - 96), rowHigh, step: rowHigh + 10, offsets, events, top, how };
  }

  /** One row: its picture, its bytes, and its name. */
  private row(ctx: CanvasRenderingContext2D, i: number, l: Layout, c: Palette, wants: Want[]): Run[] {
    const s = this.strips[i]!;
    const ratio = devicePixelRatio;
    const level = levelFor(l.events, l.room * (ratio >= 1.5 ? ratio : 1));
    const y = Math.max(0, Math.floor(Math.log2(l.top / l.rowHigh)));
    const picture: Picture = { f: s.f, d: s.device.device, g: this.page.s.g, u: "requested", x: "ev", solo: this.page.s.solo.join(",") };
    wants.push(...cover(picture, "band", level, 0, s.device.events, y));
    const step = byteStep(l.top, 3);
    const frame: Frame = { width: Math.round(l.room * ratio), height: Math.round(l.rowHigh * ratio), win: [-l.offsets[i]!, l.events - l.offsets[i]!], top: l.top, gridAt: ticks(step, l.top, step), scale: Math.max(1, ratio) };
    const rs = runs(frame.win, frame.width, level, level, this.tiles.of(picture));
    widen(rs, l.top * 0.03);
    const at = 8 + i * l.step;
    paintRuns(ctx, frame, rs, paintFor(s.bands, c, this.page.lit, this.page.found), null, Math.round(l.left * ratio), Math.round(at * ratio));
    const high = (b: number): number => at + l.rowHigh - (b / l.top) * l.rowHigh;
    rect(ctx, c.hair, l.left, at + l.rowHigh, l.room, 1);
    if (s.device.events === 0) write(ctx, "no history, only the state at the snapshot", l.left + 8, at + l.rowHigh - 12, c.muted);
    dashed(ctx, c.reserved, () => stepLine(ctx, rs, ratio, high, (r) => Math.min(r.tile.reserved[r.c]!, l.top * 1.03), l.left));
    this.survivors(ctx, i, l, c, high);
    for (const b of frame.gridAt) write(ctx, byteTick(b), l.left - 6, high(b), c.muted, "right");
    const near = frame.gridAt.map(high).find((y) => Math.abs(y - (at + l.rowHigh / 2)) < 13);
    write(ctx, inRoom(ctx, short(l.names[i]!, l.names), l.left - 16), l.left - 8, near === undefined ? at + l.rowHigh / 2 : near + 13, c.ink, "right");
    const figures: [string, string][] = [["peak", bytes(s.device.peak?.bytes ?? 0)], ["kept", bytes(s.device.kept)]];
    if (i > 0 && !this.shown()!.apart) figures.push(["", delta(s.device.kept - this.strips[i - 1]!.device.kept)]);
    figures.forEach(([name, text], n) => {
      const [x, line] = [l.left + l.room + 6, at + l.rowHigh / 2 + (n - 1) * 15];
      write(ctx, name, x, line, c.muted);
      write(ctx, text, name ? x + 30 : x, line, c.ink);
    });
    return rs;
  }

  /** The axis of events below all rows, and how the files are aligned. */
  private axis(ctx: CanvasRenderingContext2D, l: Layout, c: Palette, how: string): void {
    const y = this.strips.length * l.step + 4;
    for (const t of ticks(0, l.events, Math.max(1, niceStep(l.events, l.room / 110)))) {
      const x = l.left + (t / l.events) * l.room;
      rect(ctx, c.muted, Math.round(x), y - 6, 1, 4);
      if (x < l.left + l.room - 12) write(ctx, count(t), x, y + 4, c.muted, "center");
    }
    write(ctx, inRoom(ctx, `${plural(l.events, "event")}, ${how}; highest ${bytes(l.top / 1.04)}`, this.root.clientWidth - l.left - 4), l.left, y + 20, c.muted);
  }

  /** In the row of a file, where each earlier one ended, and how much of what lived then lives on to the end. */
  private survivors(g: CanvasRenderingContext2D, row: number, l: Layout, c: Palette, y: (bytes: number) => number): void {
    const { device, f } = this.strips[row]!;
    const of = this.shown()!.process;
    const x = (event: number): number => l.left + ((l.offsets[row]! + event) / l.events) * l.room;
    const top = 8 + row * l.step;
    const end = l.left + l.room;
    const found = of.survivors.find((s) => s.device === device.device);
    const j = of.files.findIndex((v) => v.f === f);
    if (!found || j < 0 || this.page.s.solo.length) return;
    const nameOf = (i: number): string => this.name(of.files[i]!.f);
    // Of many files only what the one before left.
    const taken: [number, number][] = [];
    for (let i = j - 1; i >= (j > 3 ? j - 1 : 0); i--) {
      const event = found.event[i]![j];
      const bytesOf = found.bytes[i]![j]!;
      if (event === null || event === undefined || bytesOf === 0) continue;
      const from = x(event);
      const to = Math.min(end, x(device.events));
      const high = top + 8;
      rect(g, c.ink, Math.round(from), high, 1, y(0) - high, 0.5);
      onGround(g, c.ink, c.page, 1.5, () => {
        g.beginPath();
        g.moveTo(from, y(bytesOf));
        g.lineTo(to, y(bytesOf));
        g.stroke();
      });
      const text = `${bytes(bytesOf)} of ${short(nameOf(i), l.names)} survive`;
      const width = g.measureText(text).width;
      // Where there is no room for words, the line alone stays.
      const at = [from + 6, from - width - 8].find((a) => a >= l.left && a + width < l.left + l.room && !taken.some(([b, e]) => a < e && b < a + width));
      if (at === undefined) continue;
      taken.push([at - 6, at + width + 6]);
      plate(g, text, at, high, c.ink, c.page);
    }
  }

  /** What is under the pointer: the row, its run of pixels, and the bytes from below. */
  private at(e: MouseEvent): { strip: Strip; run: Run; height: number; name: string } | { name: string; run?: never } | null {
    const l = this.layout;
    if (!l) return null;
    const box = (e.currentTarget as HTMLElement).getBoundingClientRect();
    const i = Math.floor((e.clientY - box.top - 8) / l.step);
    const y = e.clientY - box.top - 8 - i * l.step;
    const strip = this.strips[i];
    if (strip && e.clientX - box.left < l.left) return { name: l.names[i]! };
    const x = (e.clientX - box.left - l.left) * devicePixelRatio;
    const run = this.drawn[i]?.find((r) => x >= r.x0 && x < r.x1);
    return strip && run && y < l.rowHigh ? { strip, run, height: (1 - y / l.rowHigh) * l.top, name: l.names[i]! } : null;
  }

  private point(e: MouseEvent): void {
    const t = this.tooltip;
    const at = this.at(e);
    t.hidden = !at;
    if (!at) return;
    if (!at.run) {
      t.replaceChildren(h("div", { class: "head" }, at.name));
      return placeTip(t, e.clientX, e.clientY);
    }
    const { tile, c } = at.run;
    const { bands } = at.strip;
    const on = bands && stackOf(tile, c).find((d) => at.height >= d.from && at.height < d.from + d.bytes);
    const group = on && on.bands === 1 ? bands.groups[bands.bands[on.band]!.group] : undefined;
    t.replaceChildren(
      h("div", { class: "head" }, at.name),
      ...(on ? [h("div", { "data-bytes": on.bytes }, swatch(group?.slot ?? -1), ` ${group?.label ?? "several small sites"} · ${bytes(on.bytes)}`)] : []),
      h("div", {}, `requested ${bytes(tile.max[c]!)} · reserved ${bytes(tile.reserved[c]!)}`),
      h("div", { class: "muted" }, `event ${count(witness(at.run))} · click opens it`),
    );
    t.dataset.event = String(witness(at.run));
    placeTip(t, e.clientX, e.clientY);
  }

  /** Opens the file that is clicked, at the event. */
  private click(e: MouseEvent): void {
    const at = this.at(e);
    if (!at?.run) return;
    this.page.store.set({ view: "timeline", f: at.strip.f, d: at.strip.device.device, k: witness(at.run), win: null, range: null, alloc: null, a: null, b: null, segment: null }, true);
  }
}

/** The event that a column shows. */
const witness = ({ tile, c }: Run): number => (tile.witness[c]! === 0xffffffff ? 0 : tile.witness[c]!);

/**
 * Where the histories of files begin on one axis of events. behind[i] is the
 * first event of file i that is later than the end of the one before, null if
 * that is not known. Runs and ranks, which stand apart, all begin together.
 */
export function align(devices: Pick<Device, "events" | "time">[], behind: (number | null)[], apart = false): { offsets: number[]; how: string } {
  const fromStart = { offsets: devices.map(() => 0), how: "each file from its first event" };
  if (apart) return fromStart;
  const offsets = [0];
  let how = "each column shows the same moment";
  for (let i = 1; i < devices.length; i++) {
    const [old, cur] = [devices[i - 1]!, devices[i]!];
    const end = offsets[i - 1]! + old.events;
    const at = behind[i];
    if (at !== null && at !== undefined) offsets.push(Math.max(0, end - at));
    else if (old.time && cur.time && cur.time.start_us > old.time.end_us) {
      offsets.push(end);
      how = "one file begins where the one before ends, with what lies between left out";
    } else return fromStart;
  }
  return { offsets, how };
}
