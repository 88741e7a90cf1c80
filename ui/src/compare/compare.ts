// Compare: one row of picture a file, all to one scale, and what grew.

import { fresh } from "../base/ask.ts";
import { blit, runs, widen, type Frame } from "../picture/blit.ts";
import { fill, h, printable } from "../base/dom.ts";
import { bytes, bytesOrDash, count, delta, plural } from "../base/format.ts";
import type { Page } from "../page/page.ts";
import { paintFor } from "../picture/paint.ts";
import { css, palette, type Palette } from "../picture/palette.ts";
import { levelFor } from "../base/scale.ts";
import { csv, csvButton } from "../base/save.ts";
import { table, type Column, type Row } from "../base/table.ts";
import { bucketsPerTile, Tiles, type Picture, type Want } from "../picture/tiles.ts";
import type { Bands, Device } from "../base/wire.ts";

export interface Site {
  key: string;
  file: string | null;
  line: number | null;
  function: string | null;
  bytes: number[];
  count: number[];
  survivors: number;
  bytes_per_step: number;
}

export interface GroupOf {
  process: string | null;
  files: { f: number; path: string }[];
  sites: Site[];
  survivors: { device: number; bytes: number[][]; event: (number | null)[][] }[];
}

interface Answer {
  groups: GroupOf[];
  outliers?: { file: string | null; line: number | null; function: string | null; process: string; bytes: number; median_of_others_bytes: number }[];
}

/** A file's row of picture. */
interface Strip {
  f: number;
  device: Device;
  bands: Bands | null;
}

interface SiteRow extends Row {
  site: Site;
}

const mostColumns = 12;

export class Compare {
  private answer: Answer | null = null;
  private error = "";
  private asking = false;
  private sort = -1;
  private up = false;
  private strips: Strip[] = [];
  private stripsOf = "";
  private readonly tiles = new Tiles(() => this.paint(), () => {});

  constructor(
    private readonly page: Page,
    private readonly root: HTMLElement,
  ) {
    new ResizeObserver(() => this.root.querySelector(".rows") && this.paint()).observe(root);
  }

  update(): void {
    const files = this.page.session?.files ?? [];
    const done = files.length > 1 && this.page.session?.findings === "ready"; // both are judged at once
    if (!this.answer && !this.asking && done) {
      this.asking = true;
      fresh<Answer>("compare").then(
        (v) => {
          this.answer = v;
          this.page.figures.survivors = v.groups.map((g) => g.survivors);
          this.page.figures.compare = v.groups.map((g) => ({ files: g.files.length, sites: g.sites.map((s) => ({ line: s.line, file: s.file, bytes: s.bytes, bytes_per_step: s.bytes_per_step, survivors: s.survivors })) }));
          this.draw();
        },
        (e: Error) => {
          this.error = e.message;
          this.draw();
        },
      );
    }
    this.draw();
  }

  private name(f: number): string {
    return this.page.session?.files.find((x) => x.f === f)?.name ?? String(f);
  }

  /** Whether the newest files of all processes are compared: so it begins where there are several. */
  private get across(): boolean {
    const { group } = this.page.s;
    return group === -1 || (group === null && this.answer!.groups.length > 1);
  }

  /** What is compared. */
  private shown(): GroupOf | undefined {
    const { groups } = this.answer!;
    return this.across ? acrossOf(groups) : groups[this.page.s.group ?? 0];
  }

  /** Whether the files are separate runs, which have no growth from one to the next. */
  private runs(g: GroupOf): boolean {
    return !this.across && (this.page.s.runs ?? separate(g));
  }

  private draw(): void {
    if (this.page.s.view !== "compare") return;
    if (this.error) return fill(this.root, h("p", { class: "note" }, this.error));
    if (!this.answer) return fill(this.root, h("p", { class: "note" }, "Reading the other files …"));
    const g = this.shown();
    if (!g) return fill(this.root, h("p", { class: "note" }, "There is nothing to compare: each file belongs to a process of its own."));
    const { found } = this.page;
    const slots = new Map(this.page.bands?.groups.map((x) => [x.key, x.slot]));
    const rows: SiteRow[] = g.sites
      .filter((s) => !found || found.has(s.key))
      .map((site) => ({ key: site.key, label: site.file ? `${site.file.slice(site.file.lastIndexOf("/") + 1)}:${site.line} ${site.function}` : "stack unknown", slot: slots.get(site.key) ?? -1, site, selected: this.page.s.solo.includes(site.key) }));
    const { across } = this;
    const runs = this.runs(g);
    if (runs) rows.sort((a, b) => apart(b.site) - apart(a.site));
    const columns = [...this.files(g), ...(across || runs ? [this.spread(runs && g.files.length === 2)] : this.growth())];
    const old = this.root.querySelector(".scroll")?.scrollTop ?? 0;
    fill(
      this.root,
      h(
        "div",
        { class: "bar" },
        across ? null : h("button", { type: "button", "data-key": "runs", "aria-pressed": String(runs), title: "Separate runs are drawn from their starts and compared by their difference; steps of one process by growth", onclick: () => this.page.store.set({ runs: !runs }, true) }, runs ? "separate runs" : "steps of one process"),
        h("span", {}, across ? `${plural(g.files.length, "process", "processes")}, what the newest file of each holds` : `${plural(g.files.length, "file")}, what each holds at its snapshot`),
        this.answer.groups.length > 1
          ? h(
              "select",
              { "aria-label": "process", "data-key": "process", onchange: (e: globalThis.Event) => this.page.store.set({ group: Number((e.target as HTMLSelectElement).value), runs: null }, true) },
              this.answer.groups.map((x, i) => h("option", { value: i, selected: x === g }, x.process ?? `process ${i}`)),
              h("option", { value: -1, selected: across }, "the newest of each process"),
            )
          : null,
        h("div", { class: "end" }, csvButton("compare", () => csv("site", rows, columns))),
      ),
      h("div", { class: "rows", tabindex: "0", role: "group", "aria-label": "Files" }, h("canvas", { role: "img", "aria-label": `What each of ${g.files.length} files holds, by site; the table below tells the same` })),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": "Sites" },
        table<SiteRow>({
          name: across || runs ? "site, most different first" : "site, most growth first",
          rows: rows.slice(0, 300),
          total: rows.length,
          columns,
          sort: this.sort,
          up: this.up,
          onsort: (i) => {
            this.up = this.sort === i ? !this.up : false;
            this.sort = i;
            this.draw();
          },
          onrow: (r) => this.page.store.set({ solo: this.page.s.solo[0] === r.key ? [] : [r.key] }, true),
          onlight: () => {},
        }),
      ),
    );
    this.root.querySelector(".scroll")!.scrollTop = old;
    this.paint();
    void this.load(g);
  }

  /** What each file holds: a column a file or, of many files, the first and the last one and a strip of all. */
  private files(g: GroupOf): Column<SiteRow>[] {
    const names = g.files.map((f) => this.name(f.f));
    const last = g.files.length - 1;
    const of = (i: number): Column<SiteRow> => ({ name: short(names[i]!, names), of: (r) => r.site.bytes[i]!, show: (r) => bytesOrDash(r.site.bytes[i]!), bytes: true });
    if (g.files.length <= mostColumns) return names.map((_, i) => of(i));
    const strip: Column<SiteRow> = { name: `all ${count(g.files.length)}`, of: (r) => Math.max(...r.site.bytes), show: (r) => r.site.bytes.join(" "), node: (r) => heat(r.site.bytes, names) };
    return [of(0), strip, of(last)];
  }

  /** The difference of two runs, the last less the first, or how far ranks and runs are apart. */
  private spread(two: boolean): Column<SiteRow> {
    const of = ({ site }: SiteRow): number => (two ? site.bytes[1]! - site.bytes[0]! : apart(site));
    return { name: two ? "difference" : "spread", of, show: (r) => (of(r) === 0 ? "–" : two ? delta(of(r)) : bytes(of(r))), bytes: true };
  }

  /** How a site grew, as the findings judge it: what was made once did not grow. */
  private growth(): Column<SiteRow>[] {
    const judged = new Map(this.page.findings.filter((f) => f.bytes_per_step).map((f) => [f.where?.keys[0], f.bytes_per_step!]));
    const a = (r: SiteRow): number => Math.round(judged.get(r.key) ?? 0);
    const allocations = ({ site }: SiteRow): number => site.count[site.count.length - 1]!;
    return [
      { name: "growth a step", of: a, show: (r) => (a(r) === 0 ? "–" : delta(a(r))), bytes: true },
      { name: "survivors", of: (r) => r.site.survivors, show: (r) => (r.site.survivors ? count(r.site.survivors) : "–") },
      { name: "allocations", of: allocations, show: (r) => count(allocations(r)) },
    ];
  }

  /** Asks for what the rows of picture need, of the device that is chosen. */
  private async load(g: GroupOf): Promise<void> {
    const key = `${this.page.s.group} ${this.page.d} ${this.page.s.g}`;
    if (key === this.stripsOf) return;
    this.stripsOf = key;
    this.strips = [];
    const d = this.page.d;
    const strips = await Promise.all(
      g.files.map(async ({ f }): Promise<Strip | null> => {
        try {
          const [device, bands] = await Promise.all([fresh<Device>("device", { f, d }), fresh<Bands>("bands", { f, d, g: this.page.s.g })]);
          return { f, device, bands };
        } catch {
          return null; // a file without this device has no row
        }
      }),
    );
    if (key !== this.stripsOf) return;
    this.strips = strips.filter((s) => s !== null);
    this.draw();
  }

  /** One row of picture a file, all with the same axes. */
  private paint(): void {
    const canvas = this.root.querySelector<HTMLCanvasElement>(".rows canvas");
    if (!canvas || !this.strips.length) return;
    const c = palette();
    const width = this.root.clientWidth;
    const rowHigh = Math.max(80, Math.min(150, Math.floor((innerHeight * 0.54 - 26) / this.strips.length) - 10));
    const step = rowHigh + 10;
    const high = this.strips.length * step + 26;
    const ratio = devicePixelRatio;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(high * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${high}px`;
    const ctx = canvas.getContext("2d")!;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.font = `11px ${getComputedStyle(this.root).fontFamily}`;
    ctx.textBaseline = "middle";
    const names = this.strips.map((s) => this.name(s.f));
    const leftEdge = Math.min(220, Math.max(64, ...names.map((n) => ctx.measureText(short(n, names)).width + 24)));
    const room = width - leftEdge - 96;
    const g = this.shown()!;
    const told = g.survivors.find((s) => s.device === this.strips[0]!.device.device);
    const { offsets, how } = align(
      this.strips.map((s) => s.device),
      this.strips.map((s) => g.files.findIndex((v) => v.f === s.f)).map((j, i, all) => (i > 0 ? (told?.event[all[i - 1]!]?.[j] ?? null) : null)),
      this.across || this.runs(g),
    );
    const events = Math.max(1, ...this.strips.map((s, i) => offsets[i]! + s.device.events));
    const reserved = this.page.s.y === "reserved";
    const top = Math.max(1, ...this.strips.map((s) => Math.max(s.device.peak?.bytes ?? 0, reserved ? (s.device.peak_reserved?.bytes ?? 0) : 0))) * 1.04;
    const level = levelFor(events, room * (ratio >= 1.5 ? ratio : 1));
    const y = Math.max(0, Math.floor(Math.log2(top / rowHigh)));
    const wants: Want[] = [];
    this.strips.forEach((s, i) => {
      const picture: Picture = { f: s.f, d: s.device.device, g: this.page.s.g, u: "requested", x: "ev", solo: this.page.s.solo.join(",") };
      for (let t = 0; t * bucketsPerTile * 2 ** level < s.device.events; t++) wants.push({ picture, kind: "band", level, i: t, y });
      const frame: Frame = { width: Math.round(room * ratio), height: Math.round(rowHigh * ratio), win: [-offsets[i]!, events - offsets[i]!], top, gridAt: [], scale: Math.max(1, ratio) };
      const rs = runs(frame.win, frame.width, level, level, this.tiles.of(picture));
      widen(rs, top * 0.03);
      const image = ctx.createImageData(frame.width, frame.height);
      blit(new Uint32Array(image.data.buffer), frame, rs, paintFor(s.bands, c, this.page.lit, this.page.found));
      const at = 8 + i * step;
      ctx.putImageData(image, Math.round(leftEdge * ratio), Math.round(at * ratio));
      ctx.fillStyle = css(c.hair);
      ctx.fillRect(leftEdge, at + rowHigh, room, 1);
      ctx.strokeStyle = css(c.reserved);
      ctx.lineWidth = 1.5;
      ctx.setLineDash([5, 3]);
      ctx.beginPath();
      for (const r of rs) {
        const ry = at - 4 + Math.max(0, 4 + rowHigh - (r.tile.reserved[r.c]! / top) * rowHigh);
        ctx.lineTo(leftEdge + r.x0 / ratio, ry);
        ctx.lineTo(leftEdge + r.x1 / ratio, ry);
      }
      ctx.stroke();
      ctx.setLineDash([]);
      this.survivors(ctx, i, (event) => leftEdge + ((offsets[i]! + event) / events) * room, (b) => at + rowHigh - (b / top) * rowHigh, at, leftEdge + room, c, names);
      ctx.textAlign = "right";
      ctx.fillStyle = css(c.ink);
      ctx.fillText(printable(short(names[i]!, names)), leftEdge - 8, at + rowHigh / 2);
      ctx.textAlign = "left";
      const x = leftEdge + room + 8;
      ctx.fillStyle = css(c.muted);
      ctx.fillText("kept", x, at + rowHigh / 2 - 15);
      ctx.fillStyle = css(c.ink);
      ctx.fillText(bytes(s.device.kept), x, at + rowHigh / 2);
      if (i > 0) ctx.fillText(delta(s.device.kept - this.strips[i - 1]!.device.kept), x, at + rowHigh / 2 + 15);
    });
    ctx.textAlign = "left";
    ctx.fillStyle = css(c.muted);
    ctx.fillText(`${plural(events, "event")}, ${how}; highest ${bytes(top / 1.04)}`, leftEdge, high - 12);
    this.tiles.want(wants, []);
  }

  /** In the row of a file, where each earlier one ended, and how much of what lived then lives on to the end. */
  private survivors(g: CanvasRenderingContext2D, row: number, x: (event: number) => number, y: (bytes: number) => number, top: number, end: number, c: Palette, names: string[]): void {
    const { device, f } = this.strips[row]!;
    const of = this.shown()!;
    const told = of.survivors.find((s) => s.device === device.device);
    const j = of.files.findIndex((v) => v.f === f);
    if (!told || j < 0 || this.page.s.solo.length) return;
    // Of many files only what the one before left.
    const taken: [number, number][] = [];
    for (let i = j - 1; i >= (j > 3 ? j - 1 : 0); i--) {
      const event = told.event[i]![j];
      const bytesOf = told.bytes[i]![j]!;
      if (event === null || event === undefined || bytesOf === 0) continue;
      const from = x(event);
      const to = Math.min(end, x(device.events));
      const high = top + 8;
      g.fillStyle = css(c.ink);
      g.globalAlpha = 0.5;
      g.fillRect(Math.round(from), high, 1, y(0) - high);
      g.globalAlpha = 1;
      for (const colour of [c.page, c.ink]) {
        g.strokeStyle = css(colour);
        g.lineWidth = colour === c.ink ? 1.5 : 3.5;
        g.beginPath();
        g.moveTo(from, y(bytesOf));
        g.lineTo(to, y(bytesOf));
        g.stroke();
      }
      const text = `${bytes(bytesOf)} of ${short(names[i] ?? "", names)} survive`;
      const width = g.measureText(text).width;
      // Where there is no room for words, the line alone stays.
      const at = [from + 6, from - width - 8].find((a) => a > 0 && a + width < to && !taken.some(([b, e]) => a < e && b < a + width));
      if (at === undefined) continue;
      taken.push([at - 6, at + width + 6]);
      g.textAlign = "left";
      g.fillStyle = css(c.page);
      g.globalAlpha = 0.85;
      g.fillRect(at - 3, high - 7, width + 6, 14);
      g.globalAlpha = 1;
      g.fillStyle = css(c.ink);
      g.fillText(text, at, high);
    }
  }
}

/**
 * Where the histories of files begin on one axis of events. behind[i] is the
 * first event of file i that is later than the end of the one before, null if
 * that cannot be told. Runs and ranks, which stand apart, all begin together.
 */
export function align(devices: Pick<Device, "events" | "time">[], behind: (number | null)[], apart = false): { offsets: number[]; how: string } {
  const fromStart = { offsets: devices.map(() => 0), how: "each file from its first event" };
  if (apart) return fromStart;
  const offsets = [0];
  let how = "the same moment stands in one column";
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

/** Reports whether nothing of any file lives on in the next: then they are not steps of one process. */
export function separate(g: GroupOf): boolean {
  const known = g.survivors.filter((s) => s.bytes.length > 1);
  return known.length > 0 && known.every((s) => s.bytes.every((row, i) => i + 1 >= s.bytes.length || row[i + 1] === 0));
}

/** A cell a file, the darker the more it holds of the most. */
function heat(values: number[], names: string[]): HTMLElement {
  const most = Math.max(1, ...values);
  return h("span", { class: "heat", role: "img", "aria-label": `from ${bytes(values[0])} to ${bytes(values[values.length - 1])}` }, values.map((v, i) => {
    const cell = h("i", { title: `${names[i]}: ${bytes(v)}` });
    cell.style.opacity = String(0.06 + (0.94 * v) / most);
    return cell;
  }));
}

/** How far the files are apart in a site. */
const apart = ({ bytes }: Site): number => Math.max(...bytes) - Math.min(...bytes);

/** The newest files of all processes as one group, the sites that differ most first. */
export function acrossOf(groups: GroupOf[]): GroupOf {
  const sites = new Map<string, Site>();
  groups.forEach((g, i) => {
    for (const s of g.sites) {
      const key = s.key || "unknown";
      let row = sites.get(key);
      if (!row) sites.set(key, (row = { ...s, bytes: groups.map(() => 0), count: groups.map(() => 0), survivors: 0, bytes_per_step: 0 }));
      row.bytes[i] = s.bytes[s.bytes.length - 1]!;
      row.count[i] = s.count[s.count.length - 1]!;
    }
  });
  const out = [...sites.values()];
  for (const s of out) s.bytes_per_step = Math.max(...s.bytes) - Math.min(...s.bytes); // the spread
  out.sort((a, b) => b.bytes_per_step - a.bytes_per_step);
  return { process: null, files: groups.map((g) => g.files[g.files.length - 1]!), sites: out, survivors: [] };
}

/** A name without what all names share at both ends: step2 of w12.step2.pickle. */
export function short(name: string, all: string[]): string {
  if (all.length < 2) return name;
  let a = 0;
  while (all.every((n) => n.length > a && n[a] === all[0]![a])) a++;
  while (a > 0 && /[\p{L}\p{N}]/u.test(name[a - 1]!)) a--;
  let b = 0;
  while (all.every((n) => n.length - b > a && n[n.length - 1 - b] === all[0]![all[0]!.length - 1 - b])) b++;
  while (b > 0 && /[\p{L}\p{N}]/u.test(name[name.length - b]!)) b--;
  return name.slice(a, name.length - b) || name;
}
