// Sites: the stacks of what lives, as an icicle, and a table of their places.

import { choice, note, refill, scroll, textLink } from "../base/controls.ts";
import { json, Latest, link, url } from "../base/ask.ts";
import { fill, h } from "../base/dom.ts";
import { base, bytes, bytesOrDash, count, delta, percent, placeOf, plural } from "../base/format.ts";
import { pattern } from "../base/frame.ts";
import { Icicle } from "../picture/icicle.ts";
import type { Page } from "../session/page.ts";
import type { Source } from "../session/store.ts";
import { Sorting, table, type Column, type Row } from "../base/table.ts";
import { groupings, liveAt, missing } from "../base/names.ts";
import { csv, csvButton } from "../base/save.ts";
import type { Bands, Flame, Frame, Group, Table } from "../base/wire.ts";

interface SiteRow extends Row {
  bytes: number;
  self: number;
  count: number;
  kept: number; // alive at the snapshot; of groups only
  own: boolean; // of the program's own code
}

/** What frames are put together by. */
export type By = "line" | "function" | "file";

const bys: By[] = ["line", "function", "file"];

type Place = { file: string; line?: number; function?: string };

const placeKey = (f: Place, by: By): string => (by === "line" ? `${f.file}:${f.line}:${f.function}` : by === "function" ? `${f.file}:${f.function}` : f.file);
const placeLabel = (f: Frame, by: By): string => (by === "line" ? placeOf(f) : by === "function" ? `${base(f.file)} ${f.function}` : base(f.file));

/** Sums of a tree by place: total counts a place once a stack, self is what it is the innermost frame of. */
export function places(flame: Flame, by: By): SiteRow[] {
  const { frame, parent, count } = flame.nodes;
  const bytes = flame.nodes.net ?? flame.nodes.bytes;
  const rows = new Map<string, SiteRow>();
  const inner = Float64Array.from(bytes);
  for (let i = 1; i < frame.length; i++) inner[parent[i]!]! -= bytes[i]!;
  const open: string[][] = [];
  for (let i = 0; i < frame.length; i++) {
    const above = i === 0 ? [] : open[parent[i]!]!;
    const f = frame[i]!;
    const name = f >= 0 ? placeLabel(flame.frames[f]!, by) : (missing[f] ?? "");
    const key = f >= 0 ? placeKey(flame.frames[f]!, by) : name;
    open[i] = name ? [...above, key] : above;
    if (!name) continue;
    let row = rows.get(key);
    if (!row) rows.set(key, (row = { key, label: name, slot: -1, own: false, bytes: 0, self: 0, count: 0, kept: 0 }));
    if (!above.includes(key)) {
      row.bytes += bytes[i]!;
      row.count += count[i]!;
    }
    row.self += inner[i]!;
    row.own ||= f >= 0 && flame.frames[f]!.origin === "own";
  }
  return [...rows.values()].sort((a, b) => Math.abs(b.bytes) - Math.abs(a.bytes));
}

export class Sites {
  private readonly asking = new Latest(60);
  private flame: Flame | null = null;
  private readonly icicle: Icicle;
  private readonly order = new Sorting(() => this.draw(), 0);
  private error = "";
  private groups: SiteRow[] = []; // where the grouping is not by a place
  private readonly groupsAsking = new Latest(0);
  private table: { name: string; rows: SiteRow[]; columns: Column<SiteRow>[] } | null = null;

  constructor(
    private readonly page: Page,
    private readonly root: HTMLElement,
    tooltip: HTMLElement,
  ) {
    this.icicle = new Icicle({ tooltip, pieces: "allocations", slot: (f) => (this.by && this.groupOf(placeKey(f, this.by))?.slot) ?? -1, found: () => pattern(page.s.q), zoomed: (zoom) => page.store.set({ zoom }) });
    new ResizeObserver(() => this.icicle.paint()).observe(root);
  }

  private params(): Record<string, string | number | undefined> {
    const { s, d, k } = this.page;
    if (s.of === "kept") return { f: this.page.f, d, kept: 1 };
    if (this.of === "diff") return { f: this.page.f, d, a: s.a!, b: s.b! };
    if (s.of === "range" && s.range) return { f: this.page.f, d, from: s.range[0], to: s.range[1] };
    return { f: this.page.f, d, k };
  }

  /** What the stacks are of: what the reader chose, where it is there. */
  private get of(): Source {
    const { of, range, a, b } = this.page.s;
    return (of === "range" && !range) || (of === "diff" && (a === null || b === null)) ? "cursor" : of;
  }

  update(): void {
    if (!this.page.device || !this.page.bands) return fill(this.root);
    this.asking.once(
      url("flame", this.params()),
      () => json<Flame>("flame", this.params()),
      (v) => {
        const again = this.flame !== null;
        this.flame = v;
        this.error = "";
        this.icicle.show(v);
        if (again && this.page.s.zoom) this.page.store.set({ zoom: 0 }); // it was of other stacks
        else this.icicle.zoom(this.page.s.zoom);
        this.page.figures.flame = v.bytes;
        this.draw();
      },
      (e) => {
        this.error = e.message;
        this.draw();
      },
    );
    if (!this.by) this.askGroups();
    this.draw();
  }

  /** Asks for the groups of what the stacks are of. */
  private askGroups(): void {
    const { device, base } = this.page;
    const { k, kept, from, to, a, b } = this.params() as Record<string, number | undefined>;
    const end = device!.events - 1;
    const params = { ...base, limit: 400, ...(from !== undefined ? { from, to } : a !== undefined ? { a, b } : { k: kept ? end : k }) };
    const name = from !== undefined ? "range" : a !== undefined ? "diff" : "at";
    const other = this.groupsAsking.once(url(name, params), () => json<Table>(name, params), (v) => {
      const groups = this.page.bands?.groups;
      if (!groups) return this.groupsAsking.cancel();
      this.groups = v.rows.map((r) => ({ key: r.key, label: groups[r.group]?.label ?? r.key, slot: groups[r.group]?.slot ?? -1, bytes: r.bytes, self: r.bytes, count: r.count, kept: r.kept, own: true }));
      this.draw();
    });
    if (other) this.groups = [];
  }

  private draw(): void {
    if (this.page.s.view !== "sites") return;
    const flame = this.flame;
    if (this.error) return fill(this.root, this.bar(), note(this.error));
    if (!flame) return;
    const matcher = pattern(this.page.s.q);
    const { by } = this;
    const { solo } = this.page.s;
    const rows = by
      ? places(flame, by)
          .filter((r) => (!matcher || matcher.test(r.label) || matcher.test(r.key)) && (!this.icicle.folded || r.own || r.self > 0))
          .map((r) => ({ ...r, slot: this.groupOf(r.key)?.slot ?? -1, fixed: !this.page.hasAlone(this.groupOf(r.key)?.key ?? ""), selected: solo.includes(this.groupOf(r.key)?.key ?? "-") }))
      : this.groups.filter((r) => !this.page.found || this.page.found.has(r.key)).map((r) => ({ ...r, fixed: !this.page.hasAlone(r.key), selected: solo.includes(r.key) }));
    const columns: Column<SiteRow>[] = [
      { name: by ? "with callees" : "bytes", of: (r) => r.bytes, show: (r) => bytes(r.bytes), bytes: true },
      { name: "share", of: (r) => r.bytes, show: (r) => percent(r.bytes, flame.bytes) },
      by ? { name: "itself", of: (r) => r.self, show: (r) => bytesOrDash(r.self), bytes: true } : { name: "kept", of: (r) => r.kept, show: (r) => bytesOrDash(r.kept), bytes: true },
      { name: "allocations", of: (r) => r.count, show: (r) => count(r.count) },
    ];
    const name = by ? `${{ line: "place", function: "function", file: "file" }[by]} in a stack` : (groupings[this.page.s.g] ?? this.page.s.g);
    this.table = { name, rows, columns };
    refill(
      this.root,
      this.bar(),
      this.icicle.element(this.root),
      scroll("Places", table<SiteRow>({
        name, rows: rows.slice(0, 400), total: rows.length, columns, by: this.order,
        onrow: (r) => {
          const key = by ? this.groupOf(r.key)?.key : r.key;
          if (key) this.page.toggleAlone(key);
        },
        more: rows.length > 400 ? { label: plural(rows.length - 400, "more place"), cells: [] } : undefined,
      })),
    );
    this.icicle.paint();
  }

  private bar(): HTMLElement {
    const { s, store, k } = this.page;
    const of = (of: Source, label: string, ready = true): Node => choice(`of ${of}`, label, this.of === of, () => store.set({ of }, true), null, { disabled: !ready });
    const flame = this.flame;
    return h(
      "div",
      { class: "bar" },
      h(
        "div",
        { class: "choice" },
        of("cursor", liveAt(k, this.page.device?.events ?? 0)),
        link.saved ? null : of("range", s.range ? `allocated in ${count(s.range[0])} – ${count(s.range[1])}` : "allocated in selection", !!s.range),
        of("kept", "kept"),
        s.a !== null && s.b !== null ? of("diff", `difference ${count(s.a)} → ${count(s.b)}`) : null,
      ),
      flame ? h("span", { "data-bytes": flame.bytes, "data-figure": "flame" }, flame.nodes.net ? `${delta(flame.nodes.net[0]!)} in all` : `${bytes(flame.bytes)} in ${plural(flame.count, "allocation")}`) : null,
      h(
        "div",
        { class: "end" },
        flame && flame.left_out > 0 ? h("span", {}, `${plural(flame.left_out, "smaller stack")} left out`) : null,
        this.table ? csvButton("sites", () => csv(this.table!.name, this.table!.rows, this.table!.columns)) : null,
        textLink("fold", this.icicle.folded ? "unfold library frames" : "fold library frames", () => this.refold(), { "aria-pressed": String(this.icicle.folded) }),
      ),
    );
  }

  private refold(): void {
    this.icicle.refold();
    this.draw();
  }

  /** What frames are put together by; null where the grouping is of something else. */
  private get by(): By | null {
    return bys.find((b) => b === this.page.s.g) ?? null;
  }

  /** The group of a place, where the grouping is by one. */
  private groupOf(place: string): Group | undefined {
    const { bands } = this.page;
    const { by } = this;
    if (!bands || !by) return undefined;
    if (this.indexOf !== bands) {
      this.indexOf = bands;
      this.index = new Map(bands.groups.filter((g) => g.file).map((g) => [placeKey(g as Place, by), g]));
    }
    return this.index.get(place);
  }

  private index = new Map<string, Group>();
  private indexOf: Bands | null = null;
}
