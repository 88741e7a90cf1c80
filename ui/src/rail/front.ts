// The layer of the cursor: the only one that is drawn while the pointer moves.

import { pixelAt } from "../base/scale.ts";
import { stripOfBands, type Tile } from "../base/wire.ts";
import { rowOf } from "../picture/blit.ts";
import { begin, left, rect, write } from "../picture/canvas.ts";
import { type RGB } from "../picture/palette.ts";
import { cursorLine, selection } from "../picture/plot.ts";
import type { Scene } from "./scene.ts";

export function drawFront(scene: Scene): void {
  const l = scene.layout;
  const c = scene.colors;
  const g = begin(scene.el.front);
  const { device, s } = scene.page;
  if (!device || device.events === 0) return;
  g.font = scene.font(11);
  const line = (event: number, color: RGB, name?: string): void => {
    const at = scene.placeOf(event);
    if (at === undefined) return;
    const x = Math.round(left + scene.px(at));
    if (x < left || x > left + l.width) return;
    cursorLine(g, l, color, x);
    if (!name) return;
    rect(g, color, x - 7, l.top - 15, 14, 13);
    write(g, name, x, l.top - 8, c.page, "center");
  };
  if (s.range) {
    const at = scene.scopePixels(s.range[0], s.range[1]);
    if (at) selection(g, l, c.accent, ...at);
  }
  drawPinned(scene, g);
  line(scene.page.k, c.accent);
  if (s.a !== null) line(s.a, c.ink, "A");
  if (s.b !== null) line(s.b, c.ink, "B");
  drawHover(scene, g);
}

/** Outlines the rectangle of the pinned allocation, where it is drawn on its own. */
function drawPinned(scene: Scene, g: CanvasRenderingContext2D): void {
  const pinned = scene.page.s.alloc;
  if (pinned === null) return;
  const l = scene.layout;
  const ratio = scene.frame.width / l.width;
  const { accent } = scene.colors;
  const seen = new Set<Tile>();
  for (const r of scene.drawn) {
    if (r.tile.kind !== "alloc" || seen.has(r.tile)) continue;
    seen.add(r.tile);
    const t = r.tile;
    for (let i = 0; i < t.alloc.length; i++) {
      if (t.alloc[i] !== pinned || t.flag[i]! & stripOfBands) continue;
      const at = (c: number): number => Math.max(0, Math.min(scene.frame.width, pixelAt((t.first + c) * 2 ** t.level, scene.frame.win, scene.frame.width))) / ratio;
      const y0 = l.top + Math.max(0, rowOf(t.y0[i]! + t.height[i]!, scene.frame)) / ratio;
      const y1 = l.top + Math.max(0, rowOf(t.y0[i]!, scene.frame)) / ratio;
      const x0 = left + at(t.c0[i]!);
      const x1 = left + at(t.c1[i]!);
      for (const y of [y0, y1]) rect(g, accent, x0, y - 1, x1 - x0, 2);
      if (at(t.c0[i]!) > 0 && t.c0[i]! > 0) rect(g, accent, x0, y0, 1.5, y1 - y0);
      if (at(t.c1[i]!) < l.width && t.c1[i]! < t.n) rect(g, accent, x1 - 1.5, y0, 1.5, y1 - y0);
    }
  }
}

function drawHover(scene: Scene, g: CanvasRenderingContext2D): void {
  if (!scene.hover || scene.drag?.moved) return;
  rect(g, scene.colors.ink, Math.round(left + scene.hover.x), scene.layout.top, 1, scene.layout.height, 0.45);
}
