// What the pointer does: zones of the rail, dragging, the wheel, clicks.

import { json } from "../base/ask.ts";
import { placeTip } from "../base/dom.ts";
import { shifted } from "../base/scale.ts";
import type { Alloc, Hit, Mark, Scope } from "../base/wire.ts";
import { stackOf } from "../picture/blit.ts";
import { left } from "../picture/canvas.ts";
import { axisHeight, mapHeight, noteRows } from "./layout.ts";
import { fit, moveTo, pan, pin, zoomBy } from "./moves.ts";
import type { Scene } from "./scene.ts";
import { showTip, showAbove, unpoint } from "./tooltip.ts";

/** The mark or the annotation that is at a point above the picture. */
function above(scene: Scene, x: number, y: number): { mark: Mark } | { scope: Scope } | null {
  const l = scene.layout;
  const { device } = scene.page;
  if (!device || x < left || x > left + l.width) return null;
  if (y >= l.top - 14 && y < l.top + 2) {
    let best: { mark: Mark; far: number } | null = null;
    for (const mark of device.marks) {
      const at = scene.placeOf(mark.event);
      const far = at === undefined ? Infinity : Math.abs(left + scene.px(at) - x);
      if (far <= 6 && far < (best?.far ?? Infinity)) best = { mark, far };
    }
    return best;
  }
  const lane = l.steps >= 0 && y >= l.steps && y < l.steps + 18 ? "steps" : l.notes >= 0 && y >= l.notes && y < l.notes + 18 * l.noteRows ? "notes" : null;
  if (!lane) return null;
  const { row } = noteRows(device.scopes);
  const want = lane === "notes" ? Math.floor((y - l.notes) / 18) : -1;
  const scope = device.scopes.findLast((s, i) => {
    if (s.lane !== lane || row[i] !== want) return false;
    const at = scene.scopePixels(s.from, s.to);
    return at !== null && x >= at[0] - 1 && x < at[1] + 1;
  });
  return scope ? { scope } : null;
}

function clickAbove(scene: Scene, x: number, y: number, second: boolean): void {
  const at = above(scene, x, y);
  if (!at) return;
  const { s, store } = scene.page;
  if ("mark" in at) store.set({ k: at.mark.event }, true);
  else if (second && s.range) store.set({ a: Math.min(s.range[1], at.scope.to), b: Math.max(s.range[1], at.scope.to), k: at.scope.to, range: null }, true);
  else store.set({ range: [at.scope.from, at.scope.to], a: null, b: null, k: at.scope.to }, true);
}

function zoneOf(scene: Scene, x: number, y: number): "picture" | "axis" | "map" | "left" | "lanes" | "other" {
  const l = scene.layout;
  if (x < left) return y >= l.top && y < l.top + l.height ? "left" : "other";
  if (x > left + l.width) return "other";
  if (l.map >= 0 && y >= l.map && y < l.map + mapHeight) return "map";
  if (y >= l.top + l.height && y < l.top + l.height + axisHeight) return "axis";
  if (y >= l.top && y < l.top + l.height) return "picture";
  return y < l.top ? "lanes" : "other";
}

export function mouse(scene: Scene): void {
  const box = scene.el.box;
  const local = (e: MouseEvent): [number, number] => {
    const r = box.getBoundingClientRect();
    return [e.clientX - r.left, e.clientY - r.top];
  };
  box.addEventListener("wheel", (e) => wheel(scene, e, ...local(e)), { passive: false });
  scene.el.front.addEventListener("pointerdown", (e) => {
    if (e.button !== 0 && e.button !== 1) return;
    const [x, y] = local(e);
    const zone = zoneOf(scene, x, y);
    if (zone === "other" || zone === "left") return;
    if (zone === "lanes") return clickAbove(scene, x, y, e.shiftKey);
    box.focus({ preventScroll: true });
    e.preventDefault();
    scene.el.front.setPointerCapture(e.pointerId);
    const how = zone === "map" ? "map" : zone === "picture" && e.button === 0 && !e.altKey ? "select" : "pan";
    scene.drag = { how, x0: x - left, win: scene.win, moved: false };
    if (how === "map") dragTo(scene, x - left);
  });
  scene.el.front.addEventListener("pointermove", (e) => {
    const [x, y] = local(e);
    if (scene.drag) {
      if (Math.abs(x - left - scene.drag.x0) > 3) scene.drag.moved = true;
      if (scene.drag.moved || scene.drag.how === "map") dragTo(scene, x - left);
      return;
    }
    scene.el.front.style.cursor = { picture: "crosshair", axis: "grab", map: "grab", left: "ns-resize", lanes: "", other: "" }[zoneOf(scene, x, y)];
    const at = above(scene, x, y);
    if (at) {
      scene.el.front.style.cursor = "pointer";
      return showAbove(scene, at, e.clientX, e.clientY);
    }
    point(scene, x, y, e.clientX, e.clientY);
  });
  scene.el.front.addEventListener("pointerup", (e) => {
    const drag = scene.drag;
    scene.drag = null;
    if (!drag || drag.moved || drag.how !== "select") return scene.need("cursor");
    const [x, y] = local(e);
    click(scene, x - left, y - scene.layout.top, e.shiftKey);
  });
  scene.el.front.addEventListener("pointercancel", () => (scene.drag = null));
  scene.el.front.addEventListener("pointerleave", () => unpoint(scene));
  scene.el.front.addEventListener("dblclick", (e) => {
    const [x, y] = local(e);
    if (zoneOf(scene, x, y) === "picture") fit(scene);
    else if (zoneOf(scene, x, y) === "map") scene.page.store.set({ win: null });
    else if (zoneOf(scene, x, y) === "left") scene.page.store.set({ y: "reserved" });
  });
}

function wheel(scene: Scene, e: WheelEvent, x: number, y: number): void {
  const zone = zoneOf(scene, x, y);
  if (zone === "other" || !scene.page.device?.events) return;
  e.preventDefault();
  const unit = e.deltaMode === 1 ? 16 : 1;
  const dy = e.deltaY * unit;
  if (zone === "left") return scene.page.store.set({ y: Math.max(1, Math.round((scene.axisTop ?? scene.top()) * 1.0015 ** dy)) });
  const dx = e.deltaX * unit || (e.shiftKey ? dy : 0);
  const { width } = scene.layout;
  if (dx && (e.shiftKey || Math.abs(dx) > Math.abs(dy))) return pan(scene, dx / width);
  const [from, to] = zone === "map" ? [0, scene.end] : scene.win;
  zoomBy(scene, 1.0015 ** dy, from + ((x - left) / width) * (to - from));
}

function dragTo(scene: Scene, x: number): void {
  const drag = scene.drag!;
  const l = scene.layout;
  scene.el.tooltip.hidden = true;
  if (drag.how === "map") {
    const center = (x / l.width) * scene.end;
    const half = (scene.win[1] - scene.win[0]) / 2;
    if (scene.win[1] - scene.win[0] < scene.end) moveTo(scene, [center - half, center + half]);
    return;
  }
  if (drag.how === "pan") return moveTo(scene, shifted(drag.win, (drag.x0 - x) / l.width));
  const ends = [drag.x0, x].map((v) => Math.max(0, Math.min(l.width - 0.01, v))).sort((a, b) => a - b);
  const [a, b] = ends.map((v) => scene.runAt(v));
  if (a && b) scene.page.store.set({ range: [a.tile.events[a.c]!, Math.max(a.tile.events[a.c]!, b.tile.events[b.c + 1]! - 1)] });
}

/** Shows what is under the pointer at once, and asks for the allocation at rest. */
function point(scene: Scene, x: number, y: number, clientX: number, clientY: number): void {
  const run = zoneOf(scene, x, y) === "picture" ? scene.runAt(x - left) : undefined;
  if (!run) return unpoint(scene);
  const l = scene.layout;
  const height = (1 - (y - l.top) / l.height) * scene.frame.top;
  const at = stackOf(run.tile, run.c).find((d) => height >= d.from && height < d.from + d.bytes) ?? null;
  scene.hover = { x: x - left, run, at, bytes: height };
  const key = at && at.bands === 1 && scene.page.bands ? scene.page.bandGroup(scene.page.bands.bands[at.band]!).key : null;
  scene.page.lightUp(key);
  showTip(scene, null);
  placeTip(scene.el.tooltip, clientX, clientY);
  scene.hitAsk.cancel();
  if (at && scene.page.bands && scene.page.s.view !== "whatif") {
    const k = scene.eventOf(run);
    scene.hitAsk.ask(
      async () => {
        const hit = await json<Hit>("hit", { ...scene.page.base, u: scene.page.u, k, y: Math.floor(height), solo: scene.picture.solo });
        return hit.alloc === null ? null : await json<Alloc>("alloc", { f: scene.page.f, d: scene.page.d, u: scene.page.segments, i: hit.alloc });
      },
      (alloc) => {
        if (!scene.hover) return;
        showTip(scene, alloc);
        placeTip(scene.el.tooltip, clientX, clientY);
      },
    );
  }
  scene.need("cursor");
}

function click(scene: Scene, x: number, y: number, mark: boolean): void {
  const run = scene.runAt(x);
  if (!run) return;
  const k = scene.eventOf(run);
  if (mark) return scene.page.store.set({ a: scene.page.s.a ?? scene.page.k, b: k }, true);
  const height = (1 - y / scene.layout.height) * scene.frame.top;
  scene.page.store.set({ k, alloc: null, range: null }, true);
  if (height >= 0 && height < run.tile.max[run.c]! && scene.page.bands) pin(scene, k, height);
}
