// The data layer: the tiles that the rail asks for, and the picture made of them.

import { link } from "../base/ask.ts";
import { bytes, count, plural } from "../base/format.ts";
import { byteStep, levelFor, ticks } from "../base/scale.ts";
import type { Kind, Tile } from "../base/wire.ts";
import { paintRuns, runs, widen } from "../picture/blit.ts";
import { bucketsPerTile, cover, type Picture, type Want } from "../picture/tiles.ts";
import type { Scene } from "./scene.ts";

function wants(scene: Scene): { now: Want[]; next: Want[] } {
  const p = scene.picture;
  const { win, level, kind } = scene;
  const y = Math.max(0, Math.min(48, Math.floor(Math.log2(scene.top() / Math.max(1, scene.layout.height)))));
  const whole = scene.whole;
  const of = (kind: Kind, level: number, from: number, to: number): Want[] => cover(p, kind, level, from, Math.min(to, scene.end), y);
  const here = of(kind, level, win[0], win[1]);
  const map = cover({ ...p, solo: "" }, "total", whole, 0, scene.end, 0);
  const now = kind === "total" || !scene.firstDone ? [...map, ...here] : [...here, ...map];
  const length = win[1] - win[0];
  const places = bucketsPerTile * 2 ** level;
  const next = of(kind, level, win[0] - places, win[1] + places);
  if (level < whole) next.push(...of(scene.kindOf(level + 1), level + 1, win[0] - length / 2, win[1] + length / 2));
  return { now, next: kind === "total" || scene.page.device?.held ? [] : next.filter((w) => !here.some((v) => v.level === w.level && v.i === w.i)) };
}

/** Asks for the totals of a whole file as soon as they are available: its one device will want them first. */
export function foresee(scene: Scene): void {
  const { file, device, s } = scene.page;
  if (link.saved || device || !file || s.view === "compare" || file.devices.length !== 1 || (file.state !== "totals" && file.state !== "ready")) return;
  const picture: Picture = { f: file.f, d: file.devices[0]!, g: s.g, u: scene.page.u, x: "ev", solo: "" };
  const events = file.events ?? 0;
  scene.tiles.want(cover(picture, "total", levelFor(Math.max(1, events), scene.pixelsForLevel), 0, events, 0), []);
}

export function drawData(scene: Scene): void {
  const { device } = scene.page;
  const context = scene.el.data.getContext("2d")!;
  scene.el.data.setAttribute("aria-label", description(scene));
  scene.el.box.setAttribute("aria-label", description(scene));
  if (!device || device.events === 0) {
    scene.drawn = [];
    context.clearRect(0, 0, scene.el.data.width, scene.el.data.height);
    return;
  }
  const { now, next } = wants(scene);
  scene.tiles.want(now, next);
  const width = scene.el.data.width;
  const height = scene.el.data.height;
  const p = scene.picture;
  const { level, kind } = scene;
  const whole = Math.max(level, scene.whole);
  const exact = new Map<number, Tile>();
  for (const w of now) {
    const tile = w.picture.solo === p.solo && w.level === level && w.kind === kind ? scene.tiles.find(w) : undefined;
    if (tile) exact.set(w.i, tile);
  }
  const other = scene.tiles.of(p);
  const lookup = (l: number, bucket: number): Tile | undefined => (l === level ? exact.get(Math.floor(bucket / bucketsPerTile)) : undefined) ?? other(l, bucket);
  const rs = scene.tiles.any(p) ? runs(scene.win, width, level, whole, lookup) : [];
  // Nothing of this picture is there yet: the old one stays for the moment.
  if (!rs.length && scene.drawn.length && !scene.tiles.settled) return;
  scene.drawn = rs;
  const top = scene.top();
  scene.axisTop = top;
  const step = byteStep(top, scene.layout.height > 100 ? 7 : 2);
  scene.frame = { width, height, win: scene.win, top, gridAt: ticks(step, top, step), scale: Math.max(1, devicePixelRatio) };
  widen(rs, top * 0.03);
  scene.image = paintRuns(context, scene.frame, rs, scene.paintOf(), scene.image);
  scene.page.notify("drawn");
  if (rs.length && !scene.firstDone) {
    scene.firstDone = true;
    performance.mark("strandline:first-picture");
  }
}

function description(scene: Scene): string {
  const dev = scene.page.device;
  if (!dev || dev.events === 0) return "Live memory: nothing was recorded";
  const peak = dev.peak ? `, peak ${bytes(dev.peak.bytes)} at event ${count(dev.peak.event)}` : "";
  return `Live memory over ${plural(dev.events, "event")}${peak}, ${bytes(dev.kept)} alive at the snapshot`;
}
