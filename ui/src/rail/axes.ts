// The axis of events or time, the lane of steps and the rows of annotations.

import { count, duration } from "../base/format.ts";
import { niceStep, ticks, type Span } from "../base/scale.ts";
import { gutterName, left, rect, write } from "../picture/canvas.ts";
import { css, mix } from "../picture/palette.ts";
import { noteRows } from "./layout.ts";
import type { Scene } from "./scene.ts";

export function drawAxis(scene: Scene, g: CanvasRenderingContext2D): void {
  const l = scene.layout;
  const c = scene.colors;
  const { win } = scene;
  const y = l.top + l.height;
  const time = scene.us ? scene.page.device!.time! : null;
  const step = Math.max(1, niceStep(win[1] - win[0], l.width / 110));
  for (const [at, label] of time ? timeTicks(win, step, time.folds) : eventTicks(win, step)) {
    const x = left + scene.px(at);
    if (x > left + l.width + 1) continue;
    rect(g, c.muted, Math.round(x), y, 1, 4);
    write(g, label, x, y + 12, c.muted, "center");
  }
  for (const f of time?.folds ?? []) {
    const x = left + scene.px(f.at);
    if (x < left || x > left + l.width) continue;
    rect(g, c.page, x - 6, y - 5, 12, 10);
    g.strokeStyle = css(c.muted);
    g.beginPath();
    for (const dx of [-4, 2]) {
      g.moveTo(x + dx, y + 5);
      g.lineTo(x + dx + 3, y - 5);
    }
    g.stroke();
    const text = duration(f.us);
    const width = g.measureText(text).width + 6;
    rect(g, c.page, x - width / 2, y - 20, width, 14);
    write(g, text, x, y - 13, c.muted, "center");
  }
}

export function drawSteps(scene: Scene, g: CanvasRenderingContext2D): void {
  const l = scene.layout;
  const c = scene.colors;
  gutterName(g, scene.page.device!.torch_version === "" ? "files" : "steps", l.steps + 9, c);
  for (const s of scene.page.device!.scopes) {
    if (s.lane !== "steps") continue;
    const at = scene.scopePixels(s.from, s.to);
    if (!at) continue;
    rect(g, mix(c.hair, c.panel, 0.45), at[0], l.steps, Math.max(1, at[1] - at[0] - 1), 17);
    if (g.measureText(s.name).width + 8 <= at[1] - at[0]) write(g, s.name, at[0] + 5, l.steps + 9, c.ink);
  }
}

export function drawNotes(scene: Scene, g: CanvasRenderingContext2D): void {
  const l = scene.layout;
  const c = scene.colors;
  gutterName(g, "notes", l.notes + 9, c);
  const { row } = noteRows(scene.page.device!.scopes);
  const free = new Float64Array(l.noteRows).fill(-1);
  scene.page.device!.scopes.forEach((s, i) => {
    const r = row[i]!;
    if (s.lane !== "notes" || r >= l.noteRows) return;
    const at = scene.scopePixels(s.from, s.to);
    if (!at || at[1] <= free[r]!) return;
    const y = l.notes + 18 * r;
    rect(g, mix(c.hair, c.page, 0.5), at[0], y + 1, Math.max(1, at[1] - at[0] - 1), 15);
    free[r] = at[1];
    if (g.measureText(s.name).width + 8 <= at[1] - at[0]) write(g, s.name, at[0] + 4, y + 9, c.muted);
  });
}

/** Where ticks of an axis of events stand, in the middle of an event where single ones are seen. */
const eventTicks = (win: Span, step: number): [number, string][] =>
  ticks(win[0], win[1], step).map((t) => [t + (win[1] - win[0] > 100 ? 0 : 0.5), count(t)]);

/** A round moment, with the digits that its neighbors need. */
function moment(us: number, step: number): string {
  if (us === 0) return "0";
  const digits = (unit: number): number => Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  return us < 1e6 && step < 1e5 ? `${(us / 1e3).toFixed(digits(1e3))} ms` : `${(us / 1e6).toFixed(digits(1e6))} s`;
}

/** Where ticks of a folded axis of time stand: at round moments on both sides of each fold. */
export function timeTicks(win: Span, step: number, folds: { at: number; us: number }[]): [number, string][] {
  const out: [number, string][] = [];
  let from = 0;
  let left = 0; // out of the axis so far
  for (const f of [...folds, { at: Infinity, us: 0 }]) {
    const a = Math.max(win[0], from);
    const b = Math.min(win[1], f.at);
    if (a <= b) for (const t of ticks(a + left, b + left, step)) out.push([t - left, moment(t, step)]);
    from = f.at;
    left += f.us;
  }
  return out;
}
