// A picture over time: its canvases, its window, and what the pointer does. What is drawn
// and what a click means is up to each page.

import { h, placeTip, own } from "../base/dom.ts";
import type { Key } from "../base/keys.ts";
import { byteStep, byteTick, clamp, shifted, ticks, timeStep, zoom, type Span } from "../base/scale.ts";
import type { Tile } from "../base/wire.ts";
import { paintRuns, stackOf, type Drawn, type Frame, type Paint, type Run } from "./blit.ts";
import { begin, fontOf, gutterName, layered, left, onPaper, place, rect, right, size, write } from "./canvas.ts";
import { cursorLine, selection } from "./plot.ts";
import { palette, type Palette } from "./palette.ts";

/** Rows of pixels that a picture can have above its own: marks stand there. */
export const marksHeight = 14;
export const axisHeight = 22;

/** What every picture over time needs of its page. */
interface Shown {
  s: { win: Span | null };
  set: (change: { win: Span | null }) => void;
}

/** The keys of a picture over time, which act where there is one. */
export function timeKeys<S extends Shown>(picture: TimePicture<S>, ready: () => unknown, moment: string): Key[] {
  const key = (keys: string[], show: string, does: string, act: (sign: 1 | -1, wide: number) => unknown): Key => ({ keys, show, does, act: (e, second) => ready() && act(second ? 1 : -1, e.shiftKey ? 4 : 1) });
  return [
    key(["ArrowLeft", "ArrowRight"], "←  →", `the cursor, by ${moment}s (shift: ten)`, (sign, wide) => picture.move(sign * (wide > 1 ? 10 : 1))),
    key(["Home", "End"], "Home  End", `the first, the last ${moment}`, (sign) => picture.end(sign > 0)),
    key(["w", "s"], "w  s", "zoom (shift: more)", (sign, wide) => picture.zoomBy(1.25 ** (sign * wide))),
    key(["a", "d"], "a  d", "move (shift: more)", (sign, wide) => picture.pan(0.1 * sign * wide)),
    key(["0"], "0", "all of time", () => picture.show(null)),
    key(["f"], "f", "fit the selection", () => picture.fit()),
  ];
}

export abstract class TimePicture<S extends Shown> {
  protected shown: S | null = null;
  protected readonly data = h("canvas", { "aria-hidden": "true" });
  protected readonly ink = h("canvas", { "aria-hidden": "true" });
  protected readonly front = h("canvas", { role: "img" });
  protected readonly box = own(h("div", { class: "box", tabindex: "0", role: "group" }, this.data, this.ink, this.front));
  protected colors: Palette = palette();
  protected frame: Frame = { width: 1, height: 1, win: [0, 1], top: 1, gridAt: [], scale: 1 };
  protected layout = { top: 0, width: 1, height: 1 };
  protected tile: Tile | null = null;
  protected drawn: Run[] = [];
  protected lit: string | null = null; // what is lit up, here or in a list beside it
  private pixels: ImageData | null = null;
  private drag: { x: number; win: Span; how: "select" | "pan"; moved: boolean } | null = null;

  constructor(
    protected readonly root: HTMLElement,
    protected readonly tooltip: HTMLElement,
  ) {
    root.append(this.box);
    new ResizeObserver(() => this.again()).observe(root);
    onPaper(root, () => {
      this.again();
      return this.canvas();
    }, () => this.again());
    this.mouse();
  }

  abstract draw(shown: S): void;

  /** Draws what was drawn before, where something was. */
  private again(): void {
    if (this.shown) this.draw(this.shown);
  }

  /** Reports whether there is something to look at. */
  protected abstract get ready(): boolean;
  /** All of time. */
  protected abstract get all(): Span;
  /** The reader selects a time, or clicks; what he points at. */
  protected abstract select(from: number, to: number): void;
  protected abstract click(x: number, y: number): void;
  protected abstract described(x: number, y: number): Node[] | null;
  /** Paints what is drawn, and of it what is lit up. */
  protected abstract paint(): void;
  /** Fits the window to what is selected. */
  abstract fit(): void;
  /** Moves the cursor by columns, or to an end of all; zooms around it. */
  abstract move(by: number): void;
  abstract end(last: boolean): void;
  abstract zoomBy(factor: number): void;

  /** Lays the picture out below some rows, of a height, and with room below its axis. */
  protected lay(top: number, height: number, under = 0): void {
    const width = Math.max(100, this.root.clientWidth - left - right);
    this.layout = { top, width, height };
    const whole = top + height + axisHeight + under;
    this.box.style.height = `${whole}px`;
    size(this.data, width, height);
    place(this.data, left, top);
    for (const canvas of [this.ink, this.front]) size(canvas, this.root.clientWidth, whole);
    this.frame = { width: this.data.width, height: this.data.height, win: this.win, top: 1, gridAt: [], scale: devicePixelRatio };
  }

  /** Sets the bytes that the height holds, with lines at round ones; returns from one to the next. */
  protected reach(most: number): number {
    const step = byteStep(most, 4);
    this.frame.top = most;
    this.frame.gridAt = ticks(step, most, step);
    return step;
  }

  /** Draws the selection, and the cursor, on a layer of their own; returns that, and where the cursor is seen. */
  protected drawCursor(seconds: number, range: Span | null): { g: CanvasRenderingContext2D; x: number | null } {
    const g = begin(this.front);
    const { accent } = this.colors;
    if (range) selection(g, this.layout, accent, this.px(range[0]), this.px(range[1]));
    const { win } = this.frame;
    const x = seconds >= win[0] && seconds <= win[1] ? this.px(seconds) : null;
    if (x !== null) cursorLine(g, this.layout, accent, x);
    return { g, x };
  }

  /** The window, moved so that a time is seen; nothing where it is. */
  protected seeing(t: number): { win?: Span } {
    const { win } = this;
    const d = t < win[0] ? t - win[0] : t > win[1] ? t - win[1] : 0;
    return this.shown!.s.win && d ? { win: [win[0] + d, win[1] + d] } : {};
  }

  /** What is drawn in a column at a height of the picture. */
  protected drawnAt(column: number, y: number): Drawn | undefined {
    const height = (1 - (y - this.layout.top) / this.layout.height) * this.frame.top;
    return stackOf(this.tile!, column).find((d) => height >= d.from && height < d.from + d.bytes);
  }

  /** Lights a part up, from here or from a list beside it. */
  light(name: string | null): void {
    if (name === this.lit || !this.tile) return;
    this.lit = name;
    this.paint();
  }

  /** The axes of bytes and of time, a tick of which each page words in its own way. */
  protected axes(g: CanvasRenderingContext2D, step: number, tick: (t: number, every: number) => string): void {
    const l = this.layout;
    g.font = fontOf(this.root);
    for (const b of ticks(0, this.frame.top, step)) gutterName(g, byteTick(b), Math.max(l.top + 5, this.y(b)), this.colors);
    const every = timeStep(this.frame.win, l.width / 110);
    for (const t of ticks(this.frame.win[0], this.frame.win[1], every)) {
      const x = this.px(t);
      rect(g, this.colors.muted, Math.round(x), l.top + l.height, 1, 4);
      write(g, tick(t, every), Math.min(x, left + l.width - 6), l.top + l.height + 12, this.colors.muted, "center");
    }
  }

  focus(): void {
    this.box.focus({ preventScroll: true });
  }

  /** The window that is seen, in seconds. */
  get win(): Span {
    const chosen = this.shown!.s.win;
    return chosen ? this.within(chosen) : this.all;
  }

  private within(win: Span): Span {
    const [from, to] = this.all;
    return clamp([win[0] - from, win[1] - from], to - from, (to - from) / 1e5).map((t) => t + from) as Span;
  }

  protected blit(paint: Paint): void {
    this.pixels = paintRuns(this.data.getContext("2d")!, this.frame, this.drawn, paint, this.pixels);
  }

  protected px(seconds: number): number {
    const { win } = this.frame;
    return left + ((seconds - win[0]) / (win[1] - win[0])) * this.layout.width;
  }

  protected y(value: number): number {
    const l = this.layout;
    return l.top + l.height * (1 - value / this.frame.top);
  }

  protected secondsAt(x: number): number {
    const { win } = this.frame;
    return win[0] + (Math.max(0, Math.min(this.layout.width, x - left)) / this.layout.width) * (win[1] - win[0]);
  }

  protected zoomAround(factor: number, around: number): void {
    this.show(zoom(this.win, around, factor));
  }

  pan(share: number): void {
    this.show(shifted(this.win, share));
  }

  show(win: Span | null): void {
    const [from, to] = this.all;
    const next = win && this.within(win);
    this.shown!.set({ win: next && next[1] - next[0] < (to - from) * (1 - 1e-9) ? next : null });
  }

  // ---- the pointer

  private mouse(): void {
    const at = (e: MouseEvent): [number, number] => {
      const r = this.box.getBoundingClientRect();
      return [e.clientX - r.left, e.clientY - r.top];
    };
    this.front.addEventListener("pointerdown", (e) => {
      const [x, y] = at(e);
      const l = this.layout;
      if (!this.ready || e.button !== 0 || x < left || x > left + l.width) return;
      e.preventDefault();
      this.focus();
      this.front.setPointerCapture(e.pointerId);
      this.drag = { x, win: this.win, how: y > l.top + l.height || e.altKey ? "pan" : "select", moved: false };
    });
    this.front.addEventListener("pointermove", (e) => {
      const [x, y] = at(e);
      if (!this.ready) return;
      if (!this.drag) return this.point(x, y, e);
      this.drag.moved ||= Math.abs(x - this.drag.x) > 3;
      if (!this.drag.moved) return;
      this.tooltip.hidden = true;
      const { win, how } = this.drag;
      if (how === "pan") return this.show(shifted(win, (this.drag.x - x) / this.layout.width));
      const [a, b] = [this.drag.x, x].sort((p, q) => p - q).map((v) => this.secondsAt(v)) as Span;
      this.select(a, b);
    });
    this.front.addEventListener("pointerup", (e) => {
      const drag = this.drag;
      this.drag = null;
      if (drag && !drag.moved) this.click(...at(e));
    });
    this.front.addEventListener("pointercancel", () => (this.drag = null));
    this.front.addEventListener("pointerleave", () => this.unpoint());
    this.front.addEventListener("dblclick", () => this.fit());
    this.box.addEventListener("wheel", (e) => {
      const [x, y] = at(e);
      const l = this.layout;
      if (!this.ready || x < left || x > left + l.width || y < l.top) return;
      e.preventDefault();
      const unit = e.deltaMode === 1 ? 16 : 1;
      const dx = e.deltaX * unit || (e.shiftKey ? e.deltaY * unit : 0);
      if (dx && (e.shiftKey || Math.abs(dx) > Math.abs(e.deltaY * unit))) this.pan(dx / l.width);
      else this.zoomAround(1.0015 ** (e.deltaY * unit), this.secondsAt(x));
    }, { passive: false });
  }

  private point(x: number, y: number, e: PointerEvent): void {
    const l = this.layout;
    const inside = x >= left && x <= left + l.width && y >= l.top - marksHeight && y <= l.top + l.height;
    const described = inside ? this.described(x, y) : null;
    this.front.style.cursor = described ? "crosshair" : "";
    if (!described) return this.unpoint();
    this.tooltip.replaceChildren(...described);
    this.tooltip.hidden = false;
    placeTip(this.tooltip, e.clientX, e.clientY);
  }

  private unpoint(): void {
    this.tooltip.hidden = true;
    this.light(null);
  }

  /** The picture with all that is written on it. */
  canvas(): HTMLCanvasElement {
    return layered(this.data, this.layout.top, this.ink, this.front).out;
  }
}
