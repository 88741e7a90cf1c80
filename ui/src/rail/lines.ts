// Lines over the picture and the small pictures beside it: growth lanes,
// reserved memory, runs under other settings, the map of the whole file.

import { button } from "../base/controls.ts";
import { h } from "../base/dom.ts";
import { bytes, growth, plural } from "../base/format.ts";
import { clipped, gutterName, left, place, outline, plate, rect, write } from "../picture/canvas.ts";
import { css, mix, siteColor } from "../picture/palette.ts";
import { dashed, inside, onGround, stepLine } from "../picture/plot.ts";
import { highest, type Run } from "../session/runs.ts";
import { captionHeight, laneHeight, mapHeight } from "./layout.ts";
import type { Scene } from "./scene.ts";

export function drawLanes(scene: Scene, g: CanvasRenderingContext2D): void {
  const l = scene.layout;
  const c = scene.colors;
  const { bands, device, s } = scene.page;
  gutterName(g, "grows", l.grows + 11, c);
  bands!.lanes.slice(0, l.growRows).forEach((lane, row) => {
    const y = l.grows + 22 * row;
    const group = bands!.groups[lane.group]!;
    rect(g, c.panel, left, y, l.width, 20);
    const most = Math.max(1, ...lane.points);
    const pale = mix(c.danger, c.panel, 0.35); // words can be read on it
    const last = lane.points.length - 1;
    for (let x = 0; x < l.width; x++) {
      const place = scene.win[0] + ((x + 0.5) / l.width) * (scene.win[1] - scene.win[0]);
      const event = scene.us ? scene.eventAt(place) : place;
      const v = lane.points[Math.round((Math.max(0, Math.min(device!.events, event)) / device!.events) * last)] ?? 0;
      const high = Math.round((v / most) * 19);
      rect(g, pale, left + x, y + 20 - high, 1, high);
      rect(g, c.danger, left + x, y + 20 - high, 1, Math.min(2, high));
    }
    const others = row === l.growRows - 1 ? bands!.lanes.length + bands!.lanes_left_out - l.growRows : 0;
    const name = `${group.label} · own scale${others > 0 ? ` · ${plural(others, "other grows", "others grow")}` : ""}`;
    const alone = button(`lane ${group.key}`, name, () => scene.page.toggleAlone(group.key), { class: "over lane", "aria-pressed": String(s.solo.includes(group.key)), title: `${group.label}: ${bytes(lane.from)} → ${bytes(lane.to)} alive at the snapshot. Show it alone.` });
    place(alone, left, y);
    alone.style.maxWidth = `${l.width}px`;
    const value = h("div", { class: "over", "data-bytes": lane.to }, growth(lane.from, lane.to));
    place(value, left + l.width + 8, y + 4);
    scene.el.over.append(alone, value);
  });
}

export function drawReserved(scene: Scene, g: CanvasRenderingContext2D): void {
  inside(g, scene.layout, () => dashed(g, scene.colors.reserved, () => stepLine(g, scene.drawn, scene.ratio, (v) => scene.y(v), (r) => r.tile.reserved[r.c]!)));
}

/** A run in each column; null where it is not drawn. */
function line(scene: Scene, g: CanvasRenderingContext2D, y: (bytes: number) => number, of: (from: number, to: number) => number | null): void {
  stepLine(g, scene.drawn, scene.ratio, y, (r) => of(r.tile.events[r.c]!, r.tile.events[r.c + 1]!));
}

/** What would be reserved in another run, under a name: if the lines of the pinned finding were freed, or reserved memory were kept under a size. */
export function drawGhost(scene: Scene, g: CanvasRenderingContext2D, ghost: Run | null, name: string): void {
  const last = scene.drawn[scene.drawn.length - 1];
  if (!ghost || !last) return;
  const l = scene.layout;
  const { event, bytes: values } = ghost.steps;
  inside(g, l, () => {
    onGround(g, scene.colors.good, scene.colors.page, 2.5, (below) => {
      g.setLineDash(below ? [] : [2, 3]);
      line(scene, g, (v) => scene.y(v), (from, to) => highest(event, values, from, to));
    });
    g.setLineDash([]);
  });
  const text = `${name}: ${bytes(ghost.outcome.peak_reserved_bytes)} reserved at most`;
  const { peak } = scene.page.device!;
  const leftward = scene.px(scene.placeOf(peak.event) ?? 0) > l.width / 2; // away from the flag of the peak
  const at = leftward ? scene.drawn[scene.drawn.length >> 3]! : last;
  const y = Math.max(l.top + 8, scene.y(highest(event, values, at.tile.events[at.c]!, at.tile.events[at.c + 1]!)) - 12);
  plate(g, text, leftward ? left + at.x0 / scene.ratio : left + l.width - g.measureText(text).width - 13, y, scene.colors.good, scene.colors.page);
}

/** The line of what PyTorch could have. */
export function drawCapacity(scene: Scene, g: CanvasRenderingContext2D, capacity: number | null): void {
  const l = scene.layout;
  if (capacity === null || capacity >= scene.frame.top) return;
  const y = scene.y(capacity);
  rect(g, scene.colors.danger, left, y, l.width, 1);
  write(g, `capacity ${bytes(capacity)}`, left + 6, y - l.top < 14 ? y + 9 : y - 7, scene.colors.danger);
}

/** Runs under other settings: what they reserve, over the recorded line, and below it what of that is not in use. */
export function drawRuns(scene: Scene, g: CanvasRenderingContext2D): void {
  const l = scene.layout;
  const c = scene.colors;
  const { curves, recorded, s } = scene.page;
  const high = (v: number): number => scene.y(v);
  clipped(g, left, l.top - 6, l.width, l.height + 7, () => {
    g.lineJoin = "round";
    drawCapacity(scene, g, curves[0]?.run.outcome.capacity_bytes ?? null);
    const failing = new Map<number, { numbers: number[]; y: number }>();
    for (const { run, slot, number } of curves) {
      const oom = run.outcome.oom?.event ?? Infinity;
      g.strokeStyle = css(siteColor(c, slot));
      g.lineWidth = 2;
      line(scene, g, high, (from, to) => (from > oom ? null : highest(run.steps.event, run.steps.bytes, from, to)));
      if (oom === Infinity) continue;
      g.globalAlpha = 0.4;
      line(scene, g, high, (from, to) => (from > oom ? highest(run.steps.event, run.steps.bytes, from, to) : null));
      g.globalAlpha = 1;
      const at = failing.get(oom);
      if (at) at.numbers.push(number);
      else failing.set(oom, { numbers: [number], y: high(run.outcome.oom!.reserved_bytes) });
    }
    for (const [event, { numbers, y }] of failing) cross(scene, g, event, y, `${numbers.join(", ")} ${numbers.length === 1 ? "runs" : "run"} out`);
  });
  gutterName(g, s.lane, l.lane + 10, c);
  rect(g, c.panel, left, l.lane, l.width, laneHeight);
  const all = [...(recorded ? [{ run: recorded, color: c.reserved, dash: [5, 3] }] : []), ...curves.map((v) => ({ run: v.run, color: siteColor(c, v.slot), dash: [] as number[] }))];
  const of = s.lane === "stranded" ? (r: typeof all[0]["run"]) => r.stranded : (r: typeof all[0]["run"]) => r.unused;
  let most = 1;
  for (const { run } of all) for (const v of of(run)) most = Math.max(most, v);
  const low = (v: number): number => l.lane + laneHeight - 2 - (v / most) * (laneHeight - captionHeight - 4);
  clipped(g, left, l.lane, l.width, laneHeight, () => {
    g.lineWidth = 1.5;
    for (const { run, color, dash } of all) {
      g.strokeStyle = css(color);
      g.setLineDash(dash);
      const values = of(run);
      if (run.looks.length) line(scene, g, low, (from, to) => highest(run.looks, values, from, to));
    }
  });
  const lane = button("lane", s.lane === "stranded" ? "stranded: free, next to active blocks" : "reserved, not allocated", () => scene.page.store.set({ lane: s.lane === "stranded" ? "unused" : "stranded" }, true), { class: "over lane", title: "Reserved less allocated, or what of it even empty_cache() could not return" });
  place(lane, left, l.lane);
  const top = h("div", { class: "over gutter" }, "highest", h("b", {}, bytes(all.length ? most : 0)));
  place(top, left + l.width + 8, l.lane + 2);
  scene.el.over.append(lane, top);
}

function cross(scene: Scene, g: CanvasRenderingContext2D, event: number, y: number, text: string): void {
  const at = scene.placeOf(event);
  if (at === undefined) return;
  const x = left + scene.px(at);
  if (x < left - 4 || x > left + scene.layout.width + 4) return;
  g.strokeStyle = css(scene.colors.danger);
  g.lineWidth = 2;
  g.beginPath();
  for (const d of [-4, 4]) {
    g.moveTo(x - 4, y - d);
    g.lineTo(x + 4, y + d);
  }
  g.stroke();
  const toLeft = x > left + scene.layout.width - 80;
  write(g, text, x + (toLeft ? -8 : 8), y + 12, scene.colors.danger, toLeft ? "right" : "left");
}

export function drawMap(scene: Scene, g: CanvasRenderingContext2D): void {
  const l = scene.layout;
  const c = scene.colors;
  gutterName(g, "all", l.map + mapHeight / 2, c);
  rect(g, c.panel, left, l.map, l.width, mapHeight);
  const rs = scene.overview();
  const most = rs.reduce((m, r) => Math.max(m, r.tile.max[r.c]!), 1);
  const ink = mix(c.neutral, c.page, 0.7);
  for (const r of rs) {
    const high = (r.tile.max[r.c]! / most) * (mapHeight - 3);
    rect(g, ink, left + r.x0, l.map + mapHeight - high, r.x1 - r.x0, high);
  }
  const x0 = left + (scene.win[0] / scene.end) * l.width;
  const x1 = left + (scene.win[1] / scene.end) * l.width;
  rect(g, c.page, left, l.map, x0 - left, mapHeight, 0.55);
  rect(g, c.page, x1, l.map, left + l.width - x1, mapHeight, 0.55);
  outline(g, c.accent, 1.5, Math.round(x0) + 0.5, l.map + 0.5, Math.max(3, Math.round(x1 - x0) - 1), mapHeight - 1);
}
