// Words over the picture: marks, names of bands, values at the right edge, the
// peak's flag and the numbers of findings.

import { button } from "../base/controls.ts";
import { h } from "../base/dom.ts";
import { bytes, count } from "../base/format.ts";
import { measureName } from "../base/terms.ts";
import { keptLine, stackOf } from "../picture/blit.ts";
import { left, place, rect, triangle, write } from "../picture/canvas.ts";
import type { RGB } from "../picture/palette.ts";
import { apart, bandLabels, onGround } from "../picture/plot.ts";
import { lastAt } from "../base/scale.ts";
import type { Scene } from "./scene.ts";

export function drawMarks(scene: Scene, g: CanvasRenderingContext2D): void {
  const l = scene.layout;
  const c = scene.colors;
  let labeled = -1e9;
  for (const m of scene.page.device!.marks) {
    const at = scene.placeOf(m.event);
    if (at === undefined) continue;
    const x = Math.round(left + scene.px(at));
    if (x < left - 1 || x > left + l.width + 1) continue;
    const oom = m.kind === "oom";
    const ink = oom ? c.danger : c.muted;
    rect(g, ink, x, l.top, oom ? 2 : 1, l.height, oom ? 1 : 0.55);
    // Memory that goes back points up.
    const [tip, foot] = m.kind === "release" ? [l.top - 7, l.top - 1] : [l.top, l.top - 6];
    triangle(g, ink, x + 0.5, foot, tip);
    if (!oom || x - labeled < 40) continue;
    labeled = x;
    const toLeft = x > left + l.width - 40;
    write(g, "OOM", x + (toLeft ? -7 : 8), l.top - 7, ink, toLeft ? "right" : "left");
  }
}

export function drawLabels(scene: Scene, g: CanvasRenderingContext2D): void {
  g.font = scene.font(11);
  bandLabels(g, scene.drawn, scene.frame, scene.layout, scene.page.bands!, scene.colors, scene.page.found);
}

/** The values at the right edge, beside the lines that they belong to. */
export function drawGutter(scene: Scene): void {
  const l = scene.layout;
  const lastRun = scene.drawn[scene.drawn.length - 1];
  if (!lastRun) return;
  const { tile, c } = lastRun;
  const dev = scene.page.device!;
  const atEnd = scene.win[1] >= scene.end;
  const solo = scene.solo.length > 0;
  const active = solo ? tile.last[c]! : atEnd ? dev.end.live : tile.last[c]!;
  const reserved = atEnd ? dev.end.reserved : tile.reserved[c]!;
  const kept = scene.page.bands ? (atEnd && !solo ? dev.kept : keptLine(tile, c, scene.page.bands.kept)) : undefined;
  const segments = scene.page.segments && !solo;
  const rows: [string, number, string][] = segments ? [] : [[measureName[scene.page.u], active, "gutter-active"]];
  if (!solo) rows.unshift(["reserved", reserved, "gutter-reserved"]);
  if (scene.page.s.view === "whatif") {
    const to = tile.events[c + 1]! - 1;
    for (const { run, number } of scene.page.curves) rows.push([`run ${number}`, run.steps.bytes[Math.max(0, lastAt(run.steps.event, to))]!, `gutter-run-${number}`]);
    rows.sort((a, b) => b[1] - a[1]);
  } else if (kept !== undefined && !segments) rows.push(["kept", kept, "gutter-kept"]);
  const compact = l.height < 100;
  const dense = compact || rows.length > 4;
  const high = dense ? 14 : 28;
  const shown = compact ? rows.slice(0, 3) : rows;
  const ys = apart(shown.map(([, v]) => scene.y(Math.min(v, scene.frame.top))), high, l.top - 12, l.top + l.height + 8);
  shown.forEach(([name, v, id], i) => {
    const el = h("div", { class: "over gutter", "data-bytes": v, "data-figure": id }, compact ? "" : dense ? `${name} ` : name, h("b", dense ? { class: "inline" } : {}, bytes(v)));
    place(el, left + l.width + (dense ? 3 : 8), ys[i]!);
    scene.el.over.append(el);
    scene.page.figures[id] = v;
  });
}

/** Leads from a flag to what it is of, and marks that. */
function leader(g: CanvasRenderingContext2D, ink: RGB, ground: RGB, from: [number, number], to: [number, number]): void {
  onGround(g, ink, ground, 1.5, (below) => {
    g.beginPath();
    g.moveTo(...from);
    g.lineTo(...to);
    g.stroke();
    g.beginPath();
    g.arc(...to, below ? 5 : 3.5, 0, 7);
    g.fill();
  });
}

/** A place of a picture that is taken: left, top, width. */
type Taken = [number, number, number];

export function drawPeak(scene: Scene, g: CanvasRenderingContext2D): Taken | null {
  const l = scene.layout;
  const { device } = scene.page;
  if (!device!.peak || scene.solo.length || scene.page.s.view === "whatif") return null;
  const peak = device!.peak;
  const at = peak.event < 0 ? 0 : scene.placeOf(peak.event);
  if (at === undefined) return null;
  const x = left + scene.px(at);
  if (x < left || x > left + l.width) return null;
  const text = `peak ${bytes(peak.bytes)} · ${peak.event < 0 ? "before the first event" : `event ${count(peak.event)}`}`;
  const flag = button("peak", text, () => scene.page.store.set({ k: peak.event }, true), { class: "over flag", "data-bytes": peak.bytes, "data-event": peak.event, title: "Put the cursor on the peak" });
  scene.el.over.append(flag);
  const width = g.measureText(text).width + 12; // asking the button would lay the page out in every frame
  const toLeft = x + width + 6 > left + l.width;
  const y = Math.max(l.top + 10, Math.min(l.top + l.height - 30, scene.y(peak.bytes) - 20));
  const from = toLeft ? x - width - 3 : x + 4;
  place(flag, from, y);
  leader(g, scene.colors.accent, scene.colors.page, [toLeft ? from + width : from, y + 12], [x, Math.max(l.top, scene.y(peak.bytes))]);
  return [from, y, width];
}

/** Pins the findings to their places: an event, or at the right edge the memory of their lines. */
export function drawFindings(scene: Scene, g: CanvasRenderingContext2D, peak: Taken | null): void {
  const l = scene.layout;
  const { page } = scene;
  const { bands } = page;
  const last = scene.drawn[scene.drawn.length - 1];
  const stack = last && bands ? stackOf(last.tile, last.c) : [];
  // The words at marks keep their room.
  const taken: [number, number][] = page.device!.marks.filter((m) => m.kind === "oom").flatMap((m) => {
    const at = scene.placeOf(m.event);
    if (at === undefined) return [];
    const x = scene.px(at);
    return [[left + x + (x > l.width - 40 ? -35 : 12), l.top - 15]];
  });
  page.findings.forEach((f, i) => {
    const w = f.where;
    if (!w || w.f !== page.f || (w.d !== null && w.d !== page.d)) return;
    let x: number | undefined;
    let y = l.top - 15;
    let to: [number, number] | null = null; // what the pin is of
    if (w.event !== null) {
      const at = scene.placeOf(w.event);
      if (at !== undefined) x = left + scene.px(at) - 27;
      if (at !== undefined) to = [left + scene.px(at), l.top];
    } else if (last && w.g === page.s.g && l.height > 100) {
      // Until the tiles of another file are there, what is drawn may have bands that this one lacks.
      const bounds = new Map<number, [number, number]>(); // by band, which may be drawn in parts
      for (const d of stack) {
        if (d.bands > 1 || !bands!.bands[d.band] || page.bandGroup(bands!.bands[d.band]!).key !== w.keys[0]) continue;
        const [from, to] = bounds.get(d.band) ?? [Infinity, 0];
        bounds.set(d.band, [Math.min(from, d.from), Math.max(to, d.from + d.bytes)]);
      }
      const [largest] = [...bounds.values()].sort((p, q) => q[1] - q[0] - (p[1] - p[0]));
      if (largest) {
        to = [left + (last.x1 / scene.frame.width) * l.width - 3, scene.y((largest[0] + largest[1]) / 2)];
        x = to[0] - 40;
        y = to[1] - 12;
      }
    }
    if (x === undefined || x < left - 27 || x > left + l.width || y > l.top + l.height - 14) return;
    if (peak && x < peak[0] + peak[2] + 1 && x + 25 > peak[0] && Math.abs(y - peak[1]) < 25 && peak[1] + 50 < l.top + l.height) y = peak[1] + 25;
    while (taken.some(([a, b]) => Math.abs(a - x!) < 25 && Math.abs(b - y) < 25)) x -= 26;
    taken.push([x, y]);
    y = Math.max(l.top - 15, y);
    const pinned = i === page.finding;
    if (to) leader(g, scene.colors.ink, scene.colors.page, [x + 24, y + 12], to);
    const pin = button(`pin ${i}`, String(i + 1), () => page.store.set({ finding: i, alloc: null, segment: null, solo: [], k: w.event }, true), { class: `over pin ${f.severity}`, title: f.title, "aria-label": `Finding ${i + 1}: ${f.title}`, "aria-pressed": String(pinned) });
    place(pin, x, y);
    scene.el.over.append(pin);
  });
}
