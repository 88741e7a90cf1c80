// The wall: all files and devices, a row each with its curve and the worst that was found there.

import { button, note } from "../base/controls.ts";
import type { Finding, Wall as Answer, WallRow } from "../base/api.ts";
import { fresh } from "../base/ask.ts";
import { cut, fill, h, svg } from "../base/dom.ts";
import { bytes, count, deviceName, short } from "../base/format.ts";
import { LongTable } from "../base/rows.ts";
import { chip } from "../findings/card.ts";
import type { Page } from "../session/page.ts";
import { filtered, outliersFirst, type Only, type Ranked } from "./order.ts";

const [width, high] = [220, 26]; // of a curve

interface Row extends Ranked {
  of: WallRow;
  name: string;
  finding: Finding | null;
}

export class WallView {
  private rows: Row[] = [];
  private shown: Row[] = [];
  private only: Only = "all";
  private asked = "";
  private drawn = "";
  private axis = "";
  private readonly table = new LongTable("Files", 34, (i) => this.row(this.shown[i]!, i));

  constructor(
    private readonly page: Page,
    private readonly root: HTMLElement,
  ) {}

  update(): void {
    const { session, s } = this.page;
    if (s.view !== "wall" || !session) return;
    const want = `${session.findings} ${this.page.findings.length} ${session.files.map((f) => f.state)}`;
    if (want !== this.asked) {
      this.asked = want;
      fresh<Answer>("wall").then(
        (v) => want === this.asked && this.take(v),
        () => (this.asked = ""),
      );
    }
    this.draw();
  }

  private take({ rows, by_step }: Answer): void {
    this.axis = by_step ? "steps" : "events";
    const { session, findings } = this.page;
    const files = new Map(session!.files.map((f) => [f.f, f]));
    const devices = new Set(rows.map((r) => r.d)).size > 1;
    const processes = new Set(session!.files.map((f) => f.process)).size > 1;
    const all = session!.files.map((f) => f.name);
    this.rows = outliersFirst(
      rows.map((of) => {
        const file = files.get(of.f);
        const finding = of.finding === null ? null : (findings[of.finding] ?? null);
        const name = [...new Set([processes && file?.process, file ? short(file.name, all) : String(of.f), devices && of.d !== null && deviceName(of.d)])].filter(Boolean).join(" · ");
        return { of, name, finding, severity: finding?.severity ?? null, place: of.finding ?? 0, peak: of.peak, text: `${name} ${file?.path} ${finding ? `${finding.kind} ${finding.title} ${finding.site?.file}` : ""}` };
      }),
    );
    this.page.figures.wall = this.rows.map((r) => [r.of.f, r.of.d, r.finding?.title ?? null]);
    this.drawn = "";
    this.draw();
    performance.mark("strandline:first-rows");
  }

  private draw(): void {
    if (this.page.s.view !== "wall") return;
    if (!this.rows.length) return fill(this.root, note("Reading the files …"));
    const kind = `${this.rows.length} ${this.only} ${this.page.s.q} ${this.asked} ${this.page.finding}`;
    if (this.root.querySelector(".wall") && this.drawn === kind) return;
    this.drawn = kind;
    this.shown = filtered(this.rows, this.only, this.page.s.q);
    fill(this.root, h("div", { class: "wall" }, this.chips(), this.table.root));
    this.table.show(this.shown.length, ["file", `memory over its ${this.axis}`, "most", "at the end", "found"].map((x) => h("th", { scope: "col" }, x)));
  }

  /** Buttons that leave only the rows with findings of a severity. */
  private chips(): HTMLElement {
    const of = (only: Only): number => (only === "all" ? this.rows.length : this.rows.filter((r) => (r.severity ?? "none") === only).length);
    const names: [Only, string][] = [["all", "all"], ["problem", "problems"], ["warning", "warnings"], ["info", "notes"], ["none", "no finding here"]];
    return h(
      "div",
      { class: "acts", role: "group", "aria-label": "Findings" },
      names.filter(([only]) => only === "all" || only === this.only || of(only) > 0).map(([only, name]) => button(`only ${only}`, `${name} ${count(of(only))}`, () => ((this.only = only), (this.drawn = ""), this.draw()), { class: "chip", "aria-pressed": String(this.only === only) })),
    );
  }

  private row({ of, name, finding }: Row, i: number): HTMLElement {
    const card = finding?.card;
    return h(
      "tr",
      { "aria-rowindex": i + 2, class: finding && finding === this.page.findings[this.page.finding] ? "pinned" : undefined },
      h("th", { scope: "row" }, button(`open ${of.f} ${of.d}`, cut(name), () => this.open(of))),
      h("td", {}, curve(of.course, finding?.severity)),
      h("td", { "data-bytes": of.peak }, of.d === null ? "" : bytes(of.peak)),
      h("td", { "data-bytes": of.end }, of.d === null ? "" : bytes(of.end)),
      h("td", { class: "text", title: finding?.title }, card ? [chip(card.word), card.line ? h("b", {}, ` ${card.line}`) : null, ` ${card.title}`] : ""),
    );
  }

  /** Opens a row: its picture, or its finding where it has none. */
  private open(of: WallRow): void {
    const where = { f: of.f, print: null, win: null, k: null, range: null, alloc: null, solo: [], finding: of.finding };
    this.page.store.set(of.d === null ? { view: "findings", finding: of.finding } : { ...where, d: of.d, view: "timeline" }, true);
  }
}

/** A curve from zero to its peak. */
function curve(course: number[], severity: string | undefined): Element | null {
  if (!course.length) return null;
  const x = (i: number): string => ((i / Math.max(1, course.length)) * width).toFixed(1);
  const d = `M0 ${high}${course.map((v, i) => `V${(high - (v / 1000) * (high - 2)).toFixed(1)}H${x(i + 1)}`).join("")}V${high}Z`;
  return svg("svg", { viewBox: `0 0 ${width} ${high}`, width, height: high, "aria-hidden": "true", class: severity ?? "" }, svg("path", { d }));
}
