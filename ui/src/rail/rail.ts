// The rail: lanes, the picture, its axes and the map of the whole file. It draws its scene,
// which the rest of the page moves.

import type { Refused } from "../base/ask.ts";
import { h } from "../base/dom.ts";
import type { Change, Page } from "../session/page.ts";
import type { State } from "../session/store.ts";
import { rowOf, stackOf } from "../picture/blit.ts";
import { layered, left, onPaper, place, size } from "../picture/canvas.ts";
import { css, palette } from "../picture/palette.ts";
import { Tiles } from "../picture/tiles.ts";
import { drawData, foresee } from "./data.ts";
import { drawFront } from "./front.ts";
import { drawInk } from "./ink.ts";
import { mouse } from "./input.ts";
import { layoutOf } from "./layout.ts";
import { Scene, type Layer } from "./scene.ts";
import { unpoint } from "./tooltip.ts";

export class Rail {
  readonly scene: Scene;
  private dirty = new Set<Layer>();
  private waiting = 0;
  private ratio = devicePixelRatio; // for which the canvases are made

  constructor(page: Page, root: HTMLElement, tooltip: HTMLElement, announce: (s: string) => void, failed: (e: Refused) => void) {
    const box = h("div", { class: "box", tabindex: "0", role: "group" });
    const data = h("canvas", { role: "img" });
    const ink = h("canvas", { "aria-hidden": "true" });
    const front = h("canvas", { "aria-hidden": "true" });
    const over = h("div");
    box.append(data, ink, front, over);
    root.append(box);
    const need = (...what: Layer[]): void => this.need(...what);
    this.scene = new Scene(page, new Tiles(() => need("data", "ink"), failed), { root, box, data, ink, front, over, tooltip }, need, announce);
    new ResizeObserver(() => this.resize()).observe(root);
    addEventListener("resize", () => this.resize());
    onPaper(root, () => {
      this.measure();
      this.draw(new Set(["data", "ink"])); // no frame comes before the sheet
      return this.canvas();
    }, () => this.resize());
    document.addEventListener("visibilitychange", () => need("data", "ink", "cursor"));
    mouse(this.scene);
    page.on((what) => this.changed(what));
    page.store.on((now, before) => this.turned(now, before));
  }

  /** The page has learned something. */
  private changed(what: Change): void {
    if (what === "drawn") return;
    const { scene } = this;
    if (what === "theme") scene.colors = palette();
    if (what === "device" || what === "bands") scene.places.clear();
    if (what === "theme" || what === "findings" || what === "bands" || what === "device" || what === "lit" || what === "found") scene.paint = null;
    if (what === "session") foresee(scene);
    if (what === "event" || what === "pinned") this.need("cursor");
    else if (what === "device" || what === "bands") this.resize();
    else this.need("data", "ink", "cursor");
  }

  /** The reader looks at something else. */
  private turned(now: State, before: State): void {
    if (now.view !== before.view) this.resize();
    const moved = now.win !== before.win || now.y !== before.y || now.x !== before.x || now.each !== before.each || now.g !== before.g || now.u !== before.u || now.f !== before.f || now.d !== before.d || now.lane !== before.lane;
    if (now.solo !== before.solo) this.scene.paint = null;
    if (moved || now.solo !== before.solo) this.need("data", "ink", "cursor");
    else this.need("cursor");
    if (now.k === before.k && !moved) return;
    this.scene.band = -1;
    unpoint(this.scene); // it shows another moment
  }

  private resize(): void {
    if (!matchMedia("print").matches) this.measure(); // a sheet has a picture of its own
  }

  private measure(): void {
    const { scene } = this;
    const { el } = scene;
    const room = el.root.clientWidth;
    const l = (scene.layout = layoutOf(scene.page, room));
    el.box.style.height = `${l.whole}px`;
    this.ratio = devicePixelRatio;
    size(el.data, l.width, l.height);
    place(el.data, left, l.top);
    for (const canvas of [el.ink, el.front]) size(canvas, room, l.whole);
    scene.image = null;
    this.need("data", "ink", "cursor");
  }

  /** Asks for one frame that draws what is stale. */
  private need(...what: Layer[]): void {
    for (const w of what) this.dirty.add(w);
    if (this.waiting || document.hidden) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      if (this.ratio !== devicePixelRatio) this.resize(); // no event is certain to report it
      const what = this.dirty;
      this.dirty = new Set();
      this.draw(what);
      performance.clearMarks("strandline:painted"); // the browser keeps all marks
      performance.mark("strandline:painted");
    });
  }

  private draw(what: Set<Layer>): void {
    if (what.has("data")) drawData(this.scene);
    if (what.has("data") || what.has("ink")) drawInk(this.scene);
    drawFront(this.scene);
  }

  /** Asks again after the engine was away. */
  retry(): void {
    this.scene.tiles.forgive();
    this.need("data", "ink");
  }

  /** The picture with all that is written on it. */
  canvas(): HTMLCanvasElement {
    const { el, layout } = this.scene;
    const { out, g } = layered(el.data, layout.top, el.ink, el.front);
    g.font = this.scene.font(11 * devicePixelRatio);
    for (const label of el.over.querySelectorAll<HTMLElement>(".over")) this.write(g, label);
    return out;
  }

  /** Writes a label or button of the page into a picture. */
  private write(g: CanvasRenderingContext2D, el: HTMLElement): void {
    const { colors } = this.scene;
    const ratio = devicePixelRatio;
    const [x, y] = [Number.parseFloat(el.style.left) * ratio, Number.parseFloat(el.style.top) * ratio];
    const flag = el.classList.contains("flag");
    if (flag) {
      g.fillStyle = css(colors.page);
      g.fillRect(x, y, el.offsetWidth * ratio, el.offsetHeight * ratio);
    }
    // A label and its value may stand one below the other.
    let line = 0;
    for (const part of el.childNodes) {
      if (part instanceof HTMLElement && getComputedStyle(part).display === "block" && part.previousSibling) line++;
      g.fillStyle = css(part instanceof HTMLElement || !el.classList.contains("gutter") ? colors.ink : colors.muted);
      const inline = part instanceof HTMLElement && line === 0 && part.previousSibling;
      g.fillText(part.textContent ?? "", x + (flag ? 6 * ratio : 0) + (inline ? g.measureText(part.previousSibling!.textContent ?? "").width : 0), y + (12 + 14 * line) * ratio);
    }
  }

  /** What is drawn, in numbers: for tests and for the curious. */
  state(): Record<string, unknown> {
    const { layout: l, win, level, drawn, tiles, frame } = this.scene;
    return {
      win,
      level,
      kind: drawn[0]?.tile.kind ?? null,
      settled: tiles.settled && this.dirty.size === 0,
      tiles: [...new Set(drawn.map((r) => r.tile))].map((t) => ({ kind: t.kind, level: t.level, first: t.first, n: t.n, flags: t.flags })),
      tileBytes: tiles.size,
      box: { left, top: l.top, width: l.width, height: l.height, map: l.map, steps: l.steps },
      axis: frame.top,
    };
  }

  /** Where an event stands, in pixels from the left edge of the picture; null where that is not known. */
  pixel(event: number): number | null {
    const place = this.scene.placeOf(event);
    return place === undefined ? null : this.scene.px(place);
  }

  /** What is drawn in the column of an event: entries from below with the pixel rows of their tops. */
  column(event: number): unknown {
    const { frame, layout } = this.scene;
    const r = this.scene.drawnOf(event);
    if (!r) return null;
    const stack = stackOf(r.tile, r.c);
    return {
      witness: this.scene.eventOf(r),
      x: (r.x0 / frame.width) * layout.width,
      pixels: r.x1 - r.x0,
      max: r.tile.max[r.c],
      total: stack.reduce((sum, d) => sum + d.bytes, 0),
      entries: stack.map((d) => ({ band: d.band, bands: d.bands, alloc: d.alloc, from: d.from, bytes: d.bytes, top: rowOf(d.from + d.bytes, frame) })),
    };
  }
}
