// Below the picture: what lives at the cursor, what a selection allocated, or
// what differs between two marks.

import { choice, note, refill, scroll, textLink } from "../base/controls.ts";
import { json, Latest, link, url } from "../base/ask.ts";
import { fill, h } from "../base/dom.ts";
import { bytes, bytesOrDash, count, delta, percent, plural } from "../base/format.ts";
import { groupings, liveAt } from "../base/names.ts";
import type { Page } from "../session/page.ts";
import type { Column as Drawn, Scene } from "../rail/scene.ts";
import { csv, csvButton } from "../base/save.ts";
import { measureName } from "../base/terms.ts";
import { Sorting, table, type Column, type Row } from "../base/table.ts";
import type { At, AtRow, Diff, More } from "../base/wire.ts";

type Mode = "at" | "range" | "diff";

/** A row of the picture shown as a table. */
type Part = Row & Drawn;

const mostParts = 120;

/** A group in any of the tables. */
type Any = Row & AtRow & { peak: number };

interface Answer {
  mode: Mode;
  rows: Any[];
  whole: number;
  more: More;
  head: string;
}

const limit = 200;

export class Timeline {
  private readonly asking = new Latest(30);
  private answer: Answer | null = null;
  private readonly by = new Sorting(() => this.draw());
  private drawn: unknown[] = []; // what the elements show

  private twin = false; // the picture itself, as a table
  private readonly twinBy = new Sorting(() => this.draw());

  constructor(
    private readonly page: Page,
    private readonly scene: Scene,
    private readonly root: HTMLElement,
  ) {}

  /** Shows the picture as a table, or what lives at the cursor again. */
  toggleTable(): void {
    this.twin = !this.twin;
    this.drawn = [];
    this.update();
    this.root.querySelector<HTMLElement>(".scroll")?.focus();
  }

  private get mode(): Mode {
    const { s } = this.page;
    if (link.saved) return "at"; // it has no sums of other events
    if (s.range) return "range";
    return s.a !== null && s.b !== null ? "diff" : "at";
  }

  private params(): Record<string, string | number | undefined> {
    const { s, k, base, u } = this.page;
    const common = { ...base, u };
    if (this.mode === "range") return { ...common, from: s.range![0], to: s.range![1] };
    if (this.mode === "diff") return { ...common, a: s.a!, b: s.b! };
    return { ...common, k };
  }

  /** The view was emptied for another one: all is to be drawn again. */
  enter(): void {
    this.drawn = [];
  }

  update(): void {
    if (!this.page.bands || !this.page.device) {
      this.answer = null;
      this.asking.cancel();
      this.drawn = [];
      fill(this.root);
      return;
    }
    const { mode } = this;
    this.asking.once(
      url(mode, this.params()),
      () => json<At & Diff>(mode, { ...this.params(), limit }),
      (v) => {
        if (!this.page.bands) return this.asking.cancel(); // they are those of another grouping by now, and on their way
        this.answer = this.read(mode, v);
        if (mode === "at") this.page.figures.live = v.live;
        this.draw();
      },
      (e) => this.page.s.view === "timeline" && fill(this.root, note(e.message)),
    );
    this.draw();
  }

  private read(mode: Mode, v: At & Diff): Answer {
    const rows = v.rows.map((r) => this.any(r));
    const by = groupings[this.page.s.g] ?? this.page.s.g;
    if (mode === "at") return { mode, rows, whole: v.live, more: v.more, head: `live at the ${this.page.device?.events ? "cursor" : "snapshot"}, by ${by}` };
    if (mode === "range") return { mode, rows, whole: rows.reduce((n, r) => n + r.bytes, v.more.bytes), more: v.more, head: `allocated in the selection, by ${by}` };
    return { mode, rows, whole: v.b - v.a, more: v.more, head: `difference from A to B, by ${by}` };
  }

  private any(r: AtRow): Any {
    const g = this.page.bands!.groups[r.group];
    return { ...r, label: g?.label ?? r.key, slot: g?.slot ?? -1, peak: g?.peak.bytes ?? 0 };
  }

  private columns(a: Answer): Column<Any>[] {
    if (a.mode === "diff")
      return [
        { name: "B − A", of: (r) => r.bytes, show: (r) => delta(r.bytes), bytes: true },
        { name: "allocations", of: (r) => r.count, show: (r) => (r.count > 0 ? `+${count(r.count)}` : count(r.count)) },
        { name: "at A", of: (r) => r.a ?? 0, show: (r) => bytesOrDash(r.a ?? 0), bytes: true },
        { name: "at B", of: (r) => r.b ?? 0, show: (r) => bytesOrDash(r.b ?? 0), bytes: true },
      ];
    const out: Column<Any>[] = [
      { name: a.mode === "at" ? measureName[this.page.u] : this.page.segments ? "taken" : "allocated", of: (r) => r.bytes, show: (r) => bytes(r.bytes), bytes: true },
      { name: "share", of: (r) => r.bytes, show: (r) => percent(r.bytes, a.whole) },
      { name: "allocations", of: (r) => r.count, show: (r) => count(r.count), wide: true },
      { name: "kept", of: (r) => r.kept, show: (r) => bytesOrDash(r.kept), bytes: true },
    ];
    if (a.mode === "at") out.push({ name: "freed later", of: (r) => r.freed + r.pending, show: (r) => bytesOrDash(r.freed + r.pending), bytes: true, wide: true });
    out.push({ name: "site peak", of: (r) => r.peak, show: (r) => bytesOrDash(r.peak), bytes: true, wide: true });
    return out;
  }

  /** The picture was redrawn. */
  pictured(): void {
    if (this.twin) this.drawTwin();
  }

  /** The columns of the picture. */
  private drawTwin(): void {
    const parts = this.scene.columns(mostParts);
    const key = JSON.stringify([parts[0]?.from, parts[parts.length - 1]?.to, parts.length, this.page.u, this.page.s.solo, this.twinBy.column, this.twinBy.up]);
    if (key === this.drawn[0]) return;
    this.drawn = [key];
    const rows: Part[] = parts.map((p) => ({ ...p, key: String(p.from), label: p.from === p.to ? `event ${count(p.from)}` : `events ${count(p.from)} – ${count(p.to)}`, slot: -1 }));
    const columns: Column<Part>[] = [
      { name: `${measureName[this.page.u]}, highest`, of: (r) => r.max, show: (r) => bytes(r.max), bytes: true },
      { name: "at event", of: (r) => r.witness, show: (r) => (r.witness < 0 ? "before the first" : count(r.witness)) },
      { name: "lowest", of: (r) => r.min, show: (r) => bytes(r.min), bytes: true },
      { name: "reserved", of: (r) => r.reserved, show: (r) => bytes(r.reserved), bytes: true },
    ];
    this.page.figures.twin = parts;
    fill(
      this.root,
      h("div", { class: "bar" }, h("span", {}, "the picture as a table; a row puts the cursor on its highest event"), h("div", { class: "end" }, csvButton("columns", () => csv("events", rows, columns)), textLink("twin", "back to live allocations", () => this.toggleTable()))),
      scroll("Columns of the picture", table<Part>({ name: "stretch of events", rows, columns, by: this.twinBy, onrow: (r) => this.page.store.set({ k: Math.max(0, r.witness) }) })),
    );
  }

  private draw(): void {
    if (this.page.s.view !== "timeline") return; // an answer came after another view was opened
    if (this.twin) return this.drawTwin();
    const a = this.answer;
    if (!a) return;
    const { s, found, lit } = this.page;
    const { bands, finding, searchError } = this.page;
    const shows = [a, s.solo, found, s.range, bands, finding, searchError, this.by.column, this.by.up, s.a, s.b, s.x];
    if (shows.every((v, i) => v === this.drawn[i])) {
      for (const tr of this.root.querySelectorAll<HTMLElement>("tr[data-site]")) tr.classList.toggle("lit", tr.dataset.site === lit);
      return;
    }
    this.drawn = shows;
    const columns = this.columns(a);
    const rows = this.searched(a, found)
      .map((r) => ({ ...r, slot: this.page.group(r.key)?.slot ?? r.slot, fixed: !this.page.hasAlone(r.key), selected: s.solo.includes(r.key), dim: s.solo.length > 0 && !s.solo.includes(r.key), lit: r.key === lit }));
    const more =
      !found && a.more.groups > 0
        ? { label: plural(a.more.groups, "more site"), bytes: a.more.bytes, cells: a.mode === "diff" ? [delta(a.more.bytes)] : [bytes(a.more.bytes), percent(a.more.bytes, a.whole), count(a.more.count)] }
        : undefined;
    const matched = found ? rows.reduce((n, r) => n + r.bytes, 0) : 0;
    this.page.figures.matched = matched;
    this.page.figures.rows = rows.map((r) => ({ key: r.key, label: r.label, bytes: r.bytes, count: r.count, kept: r.kept }));
    this.page.figures.more = a.more;
    refill(
      this.root,
      this.bar(a, found ? `${plural(rows.length, "site matches", "sites match")}, ${bytes(matched)}` : ""),
      scroll(a.head, table<Any>({
        name: a.head, rows, columns, by: this.by, more,
        onrow: (r) => this.page.toggleAlone(r.key), onlight: (key) => this.page.lightUp(key),
        total: a.rows.length + a.more.groups,
      })),
    );
  }

  /** The rows that match the search, those that hold nothing here among them. */
  private searched(a: Answer, found: Set<string> | null): Any[] {
    if (!found) return a.rows;
    const rows = a.rows.filter((r) => found.has(r.key));
    const here = new Set(rows.map((r) => r.key));
    const absent = this.page.bands!.groups.map(({ key }, group) => this.any({ key, group, bytes: 0, count: 0, kept: 0, freed: 0, pending: 0 }));
    return [...rows, ...absent.filter((r) => found.has(r.key) && !here.has(r.key)).slice(0, limit)];
  }

  private bar(a: Answer, note: string): HTMLElement {
    const { s, store, k } = this.page;
    const marked = s.a !== null && s.b !== null;
    const mode = (mode: Mode, label: string, why: string | null, act: () => void): Node => choice(`mode ${mode}`, label, a.mode === mode, act, why);
    return h(
      "div",
      { class: "bar" },
      h(
        "div",
        { class: "choice" },
        mode("at", liveAt(k, this.page.device?.events ?? 0), null, () => store.set({ range: null, a: null, b: null })),
        ...(link.saved ? [] : [mode("range", s.range ? `allocated in ${count(s.range[0])} – ${count(s.range[1])}` : "allocated in selection", s.range ? null : "Drag over the picture to select events", () => {}),
        mode("diff", marked ? `difference ${count(s.a!)} → ${count(s.b!)}` : "difference A → B", marked ? null : "Set the marks with j and k", () => store.set({ range: null }))]),
      ),
      h("span", { "data-bytes": a.whole, "data-figure": "whole" }, a.mode === "diff" ? delta(a.whole) : bytes(a.whole)),
      note ? h("span", { id: "matches" }, note) : null,
      h("div", { class: "end" }, link.saved ? null : h("a", { href: url("csv", { table: a.mode, ...this.params() }), download: `strandline-${a.mode}.csv`, "data-key": "csv" }, "save CSV")),
    );
  }
}
