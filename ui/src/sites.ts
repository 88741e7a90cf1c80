// Sites: the stacks of what lives, as an icicle, and a table of their places.

import { json, Latest, url } from "./ask.ts";
import { fill, h } from "./dom.ts";
import { base, bytes, bytesOrDash, count, percent } from "./format.ts";
import type { Page } from "./page.ts";
import { css, mix, palette, siteColour, textOn, type RGB } from "./palette.ts";
import type { Source } from "./store.ts";
import { table, type Column, type Row } from "./table.ts";
import { groupings } from "./names.ts";
import { csv, csvButton } from "./save.ts";
import type { At, Bands, Flame, Frame, Group, Range } from "./wire.ts";

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
const placeLabel = (f: Frame, by: By): string => (by === "line" ? `${base(f.file)}:${f.line} ${f.function}` : by === "function" ? `${base(f.file)} ${f.function}` : base(f.file));

/** Sums of a tree by place: total counts a place once a stack, self is what it is the innermost frame of. */
export function places(flame: Flame, by: By): SiteRow[] {
  const { frame, parent, bytes, count } = flame.nodes;
  const rows = new Map<string, SiteRow>();
  const inner = Float64Array.from(bytes);
  for (let i = 1; i < frame.length; i++) inner[parent[i]!]! -= bytes[i]!;
  const open: string[][] = [];
  for (let i = 0; i < frame.length; i++) {
    const above = i === 0 ? [] : open[parent[i]!]!;
    const f = frame[i]!;
    const name = f >= 0 ? placeLabel(flame.frames[f]!, by) : f === -2 ? "no stack recorded" : f === -3 ? "no Python frame" : "";
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
  return [...rows.values()].sort((a, b) => b.bytes - a.bytes);
}

export class Sites {
  private readonly asking = new Latest(60);
  private asked = "";
  private flame: Flame | null = null;
  private boxes: Box[] = [];
  private focus = 0; // the box that fills the width
  private folded = true;
  private sort = 0;
  private up = false;
  private error = "";
  private picked: Box | null = null;
  private groups: SiteRow[] = []; // where the grouping is not by a place
  private groupsAsked = "";
  private table: { name: string; rows: SiteRow[]; columns: Column<SiteRow>[] } | null = null;

  constructor(
    private readonly page: Page,
    private readonly root: HTMLElement,
    private readonly tooltip: HTMLElement,
  ) {
    new ResizeObserver(() => this.root.querySelector(".icicle") && this.paint()).observe(root);
  }

  private params(): Record<string, string | number | undefined> {
    const { s, d, k } = this.page;
    if (s.of === "kept") return { f: this.page.f, d, kept: 1 };
    if (s.of === "range" && s.range) return { f: this.page.f, d, from: s.range[0], to: s.range[1] };
    return { f: this.page.f, d, k };
  }

  update(): void {
    if (!this.page.device || !this.page.bands) return fill(this.root);
    const key = url("flame", this.params());
    if (key !== this.asked) {
      this.asked = key;
      this.asking.ask(
        () => json<Flame>("flame", this.params()),
        (v) => {
          this.flame = v;
          this.error = "";
          this.focus = 0;
          this.picked = null;
          this.boxes = layout(v, this.folded);
          this.page.figures.flame = v.bytes;
          this.draw();
        },
        (e) => {
          this.error = e.message;
          this.draw();
        },
      );
    }
    if (!this.by) this.askGroups();
    this.draw();
  }

  /** Asks for the groups of what the stacks are of. */
  private askGroups(): void {
    const { device, base } = this.page;
    const { k, kept, from, to } = this.params() as Record<string, number | undefined>;
    const end = device!.events - 1;
    const params = { ...base, limit: 400, ...(from !== undefined ? { from, to } : { k: kept ? end : k }) };
    const key = url(from !== undefined ? "range" : "at", params);
    if (key === this.groupsAsked) return;
    this.groupsAsked = key;
    this.groups = [];
    json<At & Range>(from !== undefined ? "range" : "at", params).then(
      (v) => {
        if (key !== this.groupsAsked) return;
        const { groups } = this.page.bands!;
        this.groups = v.rows.map((r) => ({ key: r.key, label: groups[r.group]?.label ?? r.key, slot: groups[r.group]?.slot ?? -1, bytes: r.bytes, self: r.bytes, count: r.count, kept: r.kept, own: true }));
        this.draw();
      },
      () => {},
    );
  }

  private draw(): void {
    if (this.page.s.view !== "sites") return;
    const flame = this.flame;
    if (this.error) return fill(this.root, this.bar(), h("p", { class: "note" }, this.error));
    if (!flame) return;
    const matcher = this.matcher();
    const { by } = this;
    const { solo } = this.page.s;
    const rows = by
      ? places(flame, by)
          .filter((r) => (!matcher || matcher.test(r.label) || matcher.test(r.key)) && (!this.folded || r.own || r.self > 0))
          .map((r) => ({ ...r, slot: this.groupOf(r.key)?.slot ?? -1, selected: solo.includes(this.groupOf(r.key)?.key ?? "-") }))
      : this.groups.filter((r) => !this.page.found || this.page.found.has(r.key)).map((r) => ({ ...r, selected: solo.includes(r.key) }));
    const columns: Column<SiteRow>[] = [
      { name: by ? "with callees" : "bytes", of: (r) => r.bytes, show: (r) => bytes(r.bytes), bytes: true },
      { name: "share", of: (r) => r.bytes, show: (r) => percent(r.bytes, flame.bytes) },
      by ? { name: "itself", of: (r) => r.self, show: (r) => bytesOrDash(r.self), bytes: true } : { name: "alive at snapshot", of: (r) => r.kept, show: (r) => bytesOrDash(r.kept), bytes: true },
      { name: "allocations", of: (r) => r.count, show: (r) => count(r.count) },
    ];
    const name = by ? `${{ line: "place", function: "function", file: "file" }[by]} in a stack` : (groupings[this.page.s.g] ?? this.page.s.g);
    this.table = { name, rows, columns };
    const old = this.root.querySelector(".scroll")?.scrollTop ?? 0;
    const depth = this.boxes.reduce((m, b) => Math.max(m, b.depth), 0) + 1;
    const canvas = h("canvas", { role: "img", "aria-label": `Stacks of ${bytes(flame.bytes)} in ${count(flame.count)} allocations, root on top; the table below tells the same` });
    const icicle = h("div", { class: "icicle", tabindex: "0", role: "group", "aria-label": "Stacks" }, canvas);
    icicle.style.height = `${Math.min(depth * rowHeight + 2, Math.round(this.root.clientHeight * 0.55))}px`;
    canvas.addEventListener("click", (e) => this.click(e));
    canvas.addEventListener("dblclick", () => this.zoomTo(0));
    canvas.addEventListener("pointermove", (e) => this.point(e));
    canvas.addEventListener("pointerleave", () => (this.tooltip.hidden = true));
    fill(
      this.root,
      this.bar(),
      icicle,
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "group", "aria-label": "Places" },
        table<SiteRow>({
          name,
          rows: rows.slice(0, 400),
          total: rows.length,
          columns,
          sort: this.sort,
          up: this.up,
          onsort: (i) => {
            this.up = this.sort === i ? !this.up : false;
            this.sort = i;
            this.draw();
          },
          onrow: (r) => {
            const key = by ? this.groupOf(r.key)?.key : r.key;
            if (key) this.page.store.set({ solo: solo.length === 1 && solo[0] === key ? [] : [key] }, true);
          },
          onlight: () => {},
          more: rows.length > 400 ? { label: `${count(rows.length - 400)} more places`, cells: [] } : undefined,
        }),
      ),
    );
    this.root.querySelector(".scroll")!.scrollTop = old;
    this.paint();
  }

  private bar(): HTMLElement {
    const { s, store, k } = this.page;
    const choice = (of: Source, label: string, ready = true): Node =>
      h("button", { type: "button", "data-key": `of ${of}`, "aria-pressed": String((s.of === "range" && !s.range ? "cursor" : s.of) === of), disabled: !ready, onclick: () => store.set({ of }, true) }, label);
    const flame = this.flame;
    return h(
      "div",
      { class: "bar" },
      h(
        "div",
        { class: "choice" },
        choice("cursor", k < 0 && !this.page.device?.events ? "live at the snapshot" : `live at ${count(k)}`),
        choice("range", s.range ? `allocated in ${count(s.range[0])} – ${count(s.range[1])}` : "allocated in selection", !!s.range),
        choice("kept", "alive at the snapshot"),
      ),
      flame ? h("span", { "data-bytes": flame.bytes, "data-figure": "flame" }, `${bytes(flame.bytes)} in ${count(flame.count)} allocations`) : null,
      h(
        "div",
        { class: "end" },
        flame && flame.left_out > 0 ? h("span", {}, `${count(flame.left_out)} smaller stacks left out`) : null,
        this.table ? csvButton("sites", () => csv(this.table!.name, this.table!.rows, this.table!.columns)) : null,
        h("button", { type: "button", class: "link", "data-key": "fold", "aria-pressed": String(this.folded), onclick: () => this.refold() }, this.folded ? "unfold library frames" : "fold library frames"),
      ),
    );
  }

  private refold(): void {
    this.folded = !this.folded;
    this.boxes = this.flame ? layout(this.flame, this.folded) : [];
    this.focus = 0;
    this.draw();
  }

  private matcher(): RegExp | null {
    if (!this.page.s.q) return null;
    try {
      return new RegExp(this.page.s.q);
    } catch {
      return null;
    }
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

  private frameOf(b: Box): Frame | undefined {
    return this.flame!.frames[this.flame!.nodes.frame[b.node]!];
  }

  private nameOf(b: Box): string {
    const f = this.flame!.nodes.frame[b.node]!;
    if (f === -1) return "all";
    if (f === -2) return "no stack recorded";
    if (f === -3) return "no Python frame";
    if (b.folded > 1) return `⋯ ${b.folded} library frames`;
    const frame = this.flame!.frames[f]!;
    return `${base(frame.file)}:${frame.line} ${frame.function}`;
  }

  private rect(b: Box, width: number): [number, number] {
    const from = this.boxes[this.focus]!;
    const scale = width / Math.max(1, from.bytes);
    return [Math.max(0, (b.x - from.x) * scale), Math.min(width, (b.x + b.bytes - from.x) * scale)];
  }

  private paint(): void {
    const canvas = this.root.querySelector<HTMLCanvasElement>(".icicle canvas");
    if (!canvas || !this.flame || !this.boxes.length) return;
    const width = canvas.parentElement!.clientWidth;
    const depth = this.boxes.reduce((m, b) => Math.max(m, b.depth), 0) + 1;
    const ratio = devicePixelRatio;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(depth * rowHeight * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${depth * rowHeight}px`;
    const g = canvas.getContext("2d")!;
    g.setTransform(ratio, 0, 0, ratio, 0, 0);
    const c = palette();
    g.font = `11px ${getComputedStyle(this.root).fontFamily}`;
    g.textBaseline = "middle";
    const matcher = this.matcher();
    for (const b of this.boxes) {
      const [x0, x1] = this.rect(b, width);
      if (x1 - x0 < 0.5 || x1 <= 0 || x0 >= width) continue;
      const frame = this.frameOf(b);
      let colour: RGB = mix(c.neutral, c.page, 0.28);
      if (frame?.origin === "own") {
        const slot = (this.by && this.groupOf(placeKey(frame, this.by))?.slot) ?? -1;
        colour = slot >= 0 ? siteColour(c, slot) : mix(c.accent, c.page, 0.3);
      }
      if (matcher && !matcher.test(this.nameOf(b))) colour = mix(colour, c.page, 0.3);
      g.fillStyle = css(colour);
      const y = b.depth * rowHeight;
      g.fillRect(x0, y, Math.max(0.5, x1 - x0 - 1), rowHeight - 1);
      if (b === this.picked) {
        g.strokeStyle = css(c.accent);
        g.lineWidth = 2;
        g.strokeRect(x0 + 1, y + 1, x1 - x0 - 3, rowHeight - 3);
      }
      if (x1 - x0 < 34) continue;
      const room = x1 - x0 - 10;
      g.fillStyle = css(textOn(colour));
      g.fillText(cut(g, this.nameOf(b), room), x0 + 5, y + rowHeight / 2);
      const amount = bytes(b.bytes);
      const w = g.measureText(amount).width;
      if (g.measureText(this.nameOf(b)).width + w + 20 < room) g.fillText(amount, x1 - w - 6, y + rowHeight / 2);
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
    this.paint();
  }

  private point(e: PointerEvent): void {
    const b = this.boxAt(e);
    const t = this.tooltip;
    t.hidden = !b;
    if (!b || !this.flame) return;
    const f = this.frameOf(b);
    t.replaceChildren(
      h("div", { class: "head" }, this.nameOf(b)),
      h("div", { "data-bytes": b.bytes }, `${bytes(b.bytes)}, ${percent(b.bytes, this.flame.bytes)} in ${count(this.flame.nodes.count[b.node]!)} allocations`),
      ...(f ? [h("span", { class: "mono" }, `${f.file}:${f.line}`)] : []),
    );
    const x = e.clientX + 16 + t.offsetWidth > innerWidth ? e.clientX - t.offsetWidth - 12 : e.clientX + 16;
    t.style.transform = `translate(${Math.max(4, x)}px,${e.clientY + 16}px)`;
  }
}

function cut(g: CanvasRenderingContext2D, text: string, room: number): string {
  if (g.measureText(text).width <= room) return text;
  let n = Math.floor((text.length * room) / g.measureText(text).width);
  while (n > 1 && g.measureText(`${text.slice(0, n)}…`).width > room) n--;
  return n > 1 ? `${text.slice(0, n)}…` : "";
}
