// The picture of one subject of a watch: the split of its memory over time, and in it how
// it was judged: the fitted level with its interval, the limit, and when that is reached.

import { h, swatch } from "../base/dom.ts";
import { bytes, count, utc } from "../base/format.ts";
import type { Span } from "../base/scale.ts";
import { begin, left, plate, rect } from "../picture/canvas.ts";
import { paintFor } from "../picture/paint.ts";
import { css, palette } from "../picture/palette.ts";
import { bandLabels, columnRuns, dashed, gutter, inside, onGround, stepLine, type Value } from "../picture/plot.ts";
import { axisHeight, TimePicture } from "../picture/time.ts";
import { entriesOf, grows, layersOf, standsOnZero, tileOf, timeTick, moment, type Course, type Judged, type Layers } from "./bands.ts";
import { drawLoad, loadHeight, loadRows } from "./load.ts";
import type { State } from "./state.ts";
import type { Subject, Watch, WatchFinding } from "../base/api.ts";

/** What the picture needs of the page. */
export interface Shown {
  doc: Watch;
  subject: Subject;
  course: Course; // of the window, or finer
  whole: Course;
  load: Course | null; // of the engine
  finding: WatchFinding | undefined;
  judged: Judged | null;
  ahead: boolean;
  s: State;
  spot: { course: Course; column: number } | null;
  set: (change: Partial<State>, step?: boolean) => void;
}

const margin = 0.08; // of the time, beyond the last sample of a curve that goes on

export class Picture extends TimePicture<Shown> {
  private layers: Layers | null = null;
  private judged: Judged | null = null;
  /** What is drawn of the judgment, for programs that read the page. */
  private drawnJudged: Record<string, unknown> | null = null;
  private drawnLoad: { most: number } | null = null;

  protected get ready(): boolean {
    return !!this.shown?.course.n;
  }

  protected get all(): Span {
    const { whole, ahead } = this.shown!;
    const from = whole.of.from[0] ?? 0;
    const end = whole.n ? whole.end(whole.n - 1) : from + 1;
    if (!this.judged) return [from, end];
    const { seconds } = this.judged.fit;
    return [from, Math.max(end, ahead ? seconds[seconds.length - 1]! : end + margin * (end - from))];
  }

  draw(shown: Shown): void {
    this.shown = shown;
    const { course, finding, judged, s, ahead } = shown;
    this.colors = palette();
    const judgedParts = judged?.parts ?? finding?.parts ?? [];
    const alone = s.alone && judgedParts.length > 0;
    this.layers = layersOf(course, judgedParts, alone);
    this.judged = judged && standsOnZero(this.layers, judgedParts, course) ? judged : null;
    const top = 20;
    this.lay(top, Math.max(160, Math.round(innerHeight * 0.44) - top), this.under);
    this.tile = tileOf(course, this.layers, alone);
    this.drawn = columnRuns(this.tile, (c) => [course.of.from[c]!, course.end(c)], this.frame);
    const step = this.reach(this.highest(ahead) * 1.05);
    this.paint();
    this.write(step);
    this.cursor();
    this.box.setAttribute("aria-label", this.description());
    this.front.setAttribute("aria-label", "The picture; the inspector lists what is held at the cursor");
  }

  /** The room below the axis, for the load of an engine. */
  private get under(): number {
    return this.shown!.load?.n ? loadHeight : 0;
  }

  /** The limit of what is drawn: of what was judged, or of the subject. */
  private get limit(): number | null {
    const { subject, judged, s } = this.shown!;
    const alone = s.alone && (judged?.parts.length ?? 0) > 0;
    return this.judged?.e.limit_bytes ?? (alone ? null : subject.limit_bytes);
  }

  /** What the height of the picture holds: all that is seen, the curve, and the limit where it is near or is looked ahead to. */
  private highest(ahead: boolean): number {
    let most = 1;
    for (const r of this.drawn) most = Math.max(most, this.tile!.max[r.c]!);
    const { course } = this.shown!;
    for (const p of course.parts) if (p.beside && this.isLine(p.name)) for (const r of this.drawn) most = Math.max(most, p.values[r.c]! || 0);
    const near = 1.6;
    if (this.judged) {
      const { fit } = this.judged;
      fit.seconds.forEach((t, i) => {
        if (t < this.frame.win[0] || t > this.frame.win[1]) return;
        const v = t <= fit.until ? fit.level_bytes[i]! : fit.high_bytes[i]!;
        if (v < near * most || ahead) most = Math.max(most, Math.min(v, ahead && this.limit !== null ? this.limit * 1.1 : Infinity));
      });
    }
    const { limit } = this;
    return limit !== null && (limit <= near * most || ahead) ? Math.max(most, limit) : most;
  }

  /** A container's own count is a line; what is part of other parts is listed beside the picture only. */
  private isLine(name: string): boolean {
    return name.includes("own count") && !this.shown!.s.alone;
  }

  private description(): string {
    const { subject, finding, course } = this.shown!;
    const what = `Memory of ${subject.label}, ${subject.place}: ${bytes(course.of.last_bytes[course.n - 1] ?? 0)} at the end, ${bytes(subject.peak_bytes)} at most`;
    return `${what}. ${finding ? `${finding.title}. ` : ""}Arrow keys move the cursor.`;
  }

  protected paint(): void {
    this.blit(paintFor(this.layers!.bands, this.colors, this.lit, null));
  }

  /** Axes, lines, labels, and the judgment. */
  private write(step: number): void {
    const g = begin(this.ink);
    const l = this.layout;
    const c = this.colors;
    this.axes(g, step, timeTick);
    this.drawnJudged = null;
    inside(g, l, () => {
      bandLabels(g, this.drawn, this.frame, l, this.layers!.bands, c, null);
      for (const p of this.shown!.course.parts) if (p.beside && this.isLine(p.name)) dashed(g, c.reserved, () => stepLine(g, this.drawn, this.frame.scale, (v) => this.y(v), (r) => p.values[r.c]!));
      if (this.judged) this.curve(g, this.judged);
    });
    this.bounds(g);
    this.gutter(g);
    const { load } = this.shown!;
    this.drawnLoad = load?.n ? drawLoad(g, load, { top: l.top + l.height + axisHeight, width: l.width, win: this.frame.win, px: (t) => this.px(t), colors: c }) : null;
  }

  /** The fitted level with its interval; beyond the last sample it is dashed. */
  private curve(g: CanvasRenderingContext2D, { fit, e }: Judged): void {
    const color = grows(e) ? this.colors.danger : this.colors.accent;
    const at = (i: number, of: number[]): [number, number] => [this.px(fit.seconds[i]!), this.y(of[i]!)];
    const n = fit.seconds.length;
    g.fillStyle = css(color);
    g.globalAlpha = 0.16;
    g.beginPath();
    for (let i = 0; i < n; i++) g.lineTo(...at(i, fit.high_bytes));
    for (let i = n - 1; i >= 0; i--) g.lineTo(...at(i, fit.low_bytes));
    g.fill();
    g.globalAlpha = 1;
    onGround(g, color, this.colors.page, 2, () => {
      for (const beyond of [false, true]) {
        g.setLineDash(beyond ? [6, 4] : []);
        g.beginPath();
        for (let i = 0; i < n; i++) if (beyond ? fit.seconds[i]! >= fit.until - 1e-6 : fit.seconds[i]! <= fit.until + 1e-6) g.lineTo(...at(i, fit.level_bytes));
        g.stroke();
      }
    });
    g.setLineDash([]);
    const { verdict, level_bytes: level, level_bounds_bytes: bounds, limit_bytes: limit = null, seconds_to_limit: reached = null } = e;
    this.drawnJudged = { verdict, level, bounds, until: fit.until, limit, reached };
    if (!reached) return;
    const l = this.layout;
    const x0 = Math.max(left, this.px(fit.until + reached[0]!));
    const x1 = Math.min(left + l.width, Math.max(this.px(fit.until + (reached[1] ?? Infinity)), x0 + 2));
    if (x0 < left + l.width) rect(g, this.colors.danger, x0, l.top, x1 - x0, l.height, 0.22);
  }

  /** The limit, and when it is reached, in words. */
  private bounds(g: CanvasRenderingContext2D): void {
    const l = this.layout;
    const { limit } = this;
    const c = this.colors;
    if (limit !== null) {
      const y = this.y(limit);
      const inside = y >= l.top;
      const words = `limit ${bytes(limit)}${inside ? "" : " (above the picture)"}`;
      if (inside) {
        g.strokeStyle = css(c.danger);
        g.lineWidth = 1.5;
        g.setLineDash([8, 4]);
        g.beginPath();
        g.moveTo(left, y);
        g.lineTo(left + l.width, y);
        g.stroke();
        g.setLineDash([]);
      }
      const when = this.judged?.e.seconds_to_limit ? `, reached ${this.shown!.subject.left || "soon"}` : "";
      plate(g, words + when, Math.max(6, left + l.width - g.measureText(words + when).width - 5), inside && y - 10 > 8 ? y - 10 : 9, c.danger, c.page);
    }
  }

  /** The values at the right edge; that of the fitted level stands where its curve reaches the last sample that is seen. */
  private gutter(g: CanvasRenderingContext2D): void {
    const { course } = this.shown!;
    const last = this.drawn[this.drawn.length - 1]?.c;
    if (last === undefined) return;
    const total = this.shown!.s.alone ? this.tile!.last[last]! : course.of.last_bytes[last]!;
    const values: Value[] = [{ name: "all", at: total, text: bytes(total), ink: this.colors.ink }];
    if (this.judged) {
      const { e } = this.judged;
      values.push({ name: e.verdict === "plateau" ? "levels off at" : "fitted level", at: e.level_bytes!, text: bytes(e.level_bytes), ink: grows(e) ? this.colors.danger : this.colors.accent });
    }
    gutter(g, this.layout, (v) => this.y(v), values, this.colors.muted);
  }

  private cursor(): void {
    const { course, s, spot } = this.shown!;
    if (!course.n) return;
    const { g, x } = this.drawCursor(s.k ?? spot?.course.of.at[spot.column] ?? 0, s.range);
    if (x !== null && this.under) rect(g, this.colors.accent, Math.round(x) - 0.75, this.layout.top + this.layout.height + axisHeight, 1.5, this.under);
  }

  /** Moves the cursor by columns. */
  move(by: number): void {
    const { course, whole, s, set } = this.shown!;
    const from = course.at(s.k ?? whole.of.at[whole.n - 1] ?? 0);
    const t = course.of.at[Math.max(0, Math.min(course.n - 1, from + by))];
    if (t !== undefined) set({ k: t, ...this.seeing(t) });
  }

  /** Puts the cursor on the first or the last column of all. */
  end(last: boolean): void {
    const { whole, set } = this.shown!;
    if (last) set({ k: null, win: null });
    else set({ k: whole.of.at[0] ?? 0, ...(this.shown!.s.win ? { win: null } : {}) });
  }

  zoomBy(factor: number): void {
    const { whole, s } = this.shown!;
    this.zoomAround(factor, s.k ?? whole.of.at[whole.n - 1] ?? this.win[1]);
  }

  fit(): void {
    const { s } = this.shown!;
    if (s.range) this.show(s.range);
  }

  // ---- the pointer

  protected select(from: number, to: number): void {
    if (to > from) this.shown!.set({ range: [from, to], k: to });
  }

  protected click(x: number): void {
    const { course, set } = this.shown!;
    const t = this.secondsAt(x);
    const c = course.at(t);
    set({ k: c >= 0 && t <= course.end(c) ? course.of.at[c]! : t, range: null }, true);
  }

  protected described(x: number, y: number): Node[] {
    const { course, doc } = this.shown!;
    const t = this.secondsAt(x);
    const c = course.at(t);
    if (c < 0 || t > course.end(c)) {
      const judged = this.judged && t > this.judged.fit.until ? this.foretold(t) : [];
      return judged.length ? judged : [h("div", { class: "muted" }, `not seen at ${moment(t)}`)];
    }
    const at = this.drawnAt(c, y);
    const name = at ? this.layers!.parts[at.band]!.name : null;
    this.light(name);
    const { of } = course;
    const n = of.samples[c]!;
    return [
      h("div", { class: "head" }, `${bytes(of.max_bytes[c]!)} in all`, h("span", { class: "muted" }, `${count(of.max_bytes[c]!)} bytes`)),
      ...course.parts.filter((p) => !Number.isNaN(p.values[c]!) && (p.values[c]! > 0 || p.name !== "others")).map((p) => h("div", { class: p.name === name ? "lit" : "" }, swatch(p.slot, p.beside), ` ${p.name} ${bytes(p.values[c]!)} `, h("span", { class: "muted" }, `${count(p.values[c]!)} bytes`))),
      ...(n > 1 && of.min_bytes[c] !== of.max_bytes[c] ? [h("div", { class: "muted" }, `the highest of ${count(n)} samples here; the lowest is ${bytes(of.min_bytes[c]!)}`)] : []),
      ...loadRows(this.shown!.load, of.at[c]!),
      h("div", { class: "muted" }, `at ${moment(of.at[c]!)}${doc.began_us ? `, ${utc(doc.began_us + of.at[c]! * 1e6)}` : ""}`),
    ];
  }

  /** What the curve predicts for a time that is still to come. */
  private foretold(t: number): Node[] {
    const { fit } = this.judged!;
    const i = fit.seconds.findIndex((v) => v >= t);
    if (i < 0) return [];
    return [h("div", { class: "head" }, `expected: ${bytes(fit.level_bytes[i]!)}`), h("div", {}, `between ${bytes(fit.low_bytes[i]!)} and ${bytes(fit.high_bytes[i]!)}, in 9 of 10 cases`), h("div", { class: "muted" }, `at ${moment(t)}, ${moment(t - fit.until)} after the last sample`)];
  }

  /** What is drawn, in numbers. */
  state(): unknown {
    if (!this.shown || !this.tile || !this.layers) return null;
    const column = this.shown.spot?.course === this.shown.course ? this.shown.spot.column : -1;
    return {
      win: this.win, box: { ...this.layout, left }, axis: this.frame.top, column, runs: this.drawn.length, highest: this.drawn.reduce((m, r) => Math.max(m, this.tile!.max[r.c]!), 0),
      judged: this.drawnJudged, load: this.drawnLoad, entries: column >= 0 ? entriesOf(this.tile, this.layers, column) : [],
    };
  }
}
