// What keys do: the window, the cursor, the band that is chosen.

import { fresh, json } from "../base/ask.ts";
import { bytes } from "../base/format.ts";
import { fates } from "../base/names.ts";
import { clamp, shifted, zoom, type Span } from "../base/scale.ts";
import type { Event, Hit } from "../base/wire.ts";
import { stackOf } from "../picture/blit.ts";
import { leastPlaces, type Scene } from "./scene.ts";

export function moveTo(scene: Scene, win: Span): void {
  const next = clamp(win, scene.end, leastPlaces);
  scene.hover = null;
  scene.el.tooltip.hidden = true;
  scene.page.store.set({ win: next[0] <= 0 && next[1] >= scene.end ? null : [round(next[0]), round(next[1])] });
}

export function zoomBy(scene: Scene, factor: number, around?: number): void {
  const { win } = scene;
  const cursor = scene.placeOf(scene.page.k);
  const center = around ?? (cursor !== undefined && cursor >= win[0] && cursor <= win[1] ? cursor : (win[0] + win[1]) / 2);
  const length = (win[1] - win[0]) * factor;
  const least = Math.min(leastPlaces, scene.end);
  const f = length < least ? least / (win[1] - win[0]) : factor;
  moveTo(scene, zoom(win, center, f));
}

export const pan = (scene: Scene, share: number): void => moveTo(scene, shifted(scene.win, share));

/** Shows the selected range, or else the life of the pinned allocation. */
export function fit(scene: Scene): void {
  const { s, pinned } = scene.page;
  const range: Span | null = s.range ?? (pinned ? [Math.max(0, pinned.birth), pinned.death ?? scene.page.device!.events - 1] : null);
  if (!range) return;
  const a = scene.placeOf(range[0]);
  const b = scene.placeOf(range[1]);
  if (a === undefined || b === undefined) return;
  const space = s.range ? 0 : (b - a) * 0.05 + 2;
  const half = scene.us ? 0 : 0.5;
  moveTo(scene, [a - half - space, b + half + space]);
  if (s.range) scene.page.store.set({ range: null });
}

/** Moves the cursor to the next column's event, and the window with it. */
export function step(scene: Scene, by: number): void {
  const i = scene.drawn.indexOf(scene.drawnOf(scene.page.k)!);
  let at = i + by;
  while (i >= 0 && scene.drawn[at] && scene.page.near(scene.eventOf(scene.drawn[at]!)) === scene.page.k) at += by;
  const next = i < 0 ? undefined : scene.drawn[at];
  if (next) scene.page.store.set({ k: scene.eventOf(next) });
  else if (scene.page.device) goTo(scene, Math.max(0, Math.min(scene.page.device.events - 1, scene.page.k + by * 2 ** scene.level)));
}

/** Moves along the stack at the cursor; the band is lit and described, Enter pins what is there. */
export function stepBand(scene: Scene, by: number): void {
  const run = scene.drawnOf(scene.page.k);
  if (!run || !scene.page.bands) return;
  const stack = stackOf(run.tile, run.c);
  scene.band = Math.max(0, Math.min(stack.length - 1, scene.band < 0 ? (by > 0 ? 0 : stack.length - 1) : scene.band + by));
  const d = stack[scene.band];
  if (!d) return;
  const band = scene.page.bands.bands[d.band]!;
  const group = scene.page.bandGroup(band);
  scene.page.lightUp(d.bands === 1 ? group.key : null);
  scene.announce(`${d.bands > 1 ? "several small sites" : group.label}, ${bytes(d.bytes)}, ${fates[band.fate]}`);
}

export function pinBand(scene: Scene): void {
  const run = scene.drawnOf(scene.page.k);
  const d = run && stackOf(run.tile, run.c)[scene.band];
  if (d) pin(scene, scene.page.k, d.from + d.bytes / 2);
}

/** Pins the allocation that is drawn at a height after an event. */
export function pin(scene: Scene, k: number, height: number): void {
  fresh<Hit>("hit", { ...scene.page.base, u: scene.page.u, k, y: Math.floor(height), solo: scene.picture.solo }).then(
    (hit) => {
      if (scene.page.k === k && hit.alloc !== null) scene.page.store.set({ alloc: hit.alloc });
    },
    () => {},
  );
}

/** Puts the cursor on an event, where it is seen. */
export function goTo(scene: Scene, k: number): void {
  scene.page.store.set({ k });
  reveal(scene, k);
}

/** Moves the window, if need be, so that an event is seen. */
export function reveal(scene: Scene, k: number): void {
  const go = (at: number): void => {
    const { win } = scene;
    if (at >= win[0] && at <= win[1]) return;
    const half = (win[1] - win[0]) / 2;
    moveTo(scene, [at - half, at + half]);
  };
  if (!scene.us) return go(k + 0.5);
  json<Event>("event", { f: scene.page.f, d: scene.page.d, k: Math.max(0, k) }).then((e) => {
    if (e.place !== null) go(e.place);
  }, () => {});
}

/** Switches x between events and time; the window stays on the same events. */
export async function switchX(scene: Scene): Promise<void> {
  const { page } = scene;
  const dev = page.device;
  if (!dev?.time) return;
  if (page.s.win === null) return page.store.set({ x: scene.us ? "ev" : "us" }, true);
  const { win } = scene;
  if (scene.us) {
    const a = scene.drawn[0];
    const b = scene.drawn[scene.drawn.length - 1];
    if (a && b) page.store.set({ x: "ev", win: clamp([a.tile.events[a.c]!, b.tile.events[b.c + 1]!], dev.events, leastPlaces) }, true);
    return;
  }
  const place = async (k: number): Promise<number> => (await json<Event>("event", { f: page.f, d: page.d, k: Math.max(0, Math.min(dev.events - 1, k)) })).place ?? 0;
  const [a, b] = await Promise.all([place(Math.floor(win[0])), place(Math.ceil(win[1]) - 1)]);
  page.store.set({ x: "us", win: clamp([a, b + 1], Math.ceil(dev.time.span) + 1, leastPlaces) }, true);
}

const round = (v: number): number => Math.round(v * 1000) / 1000;
