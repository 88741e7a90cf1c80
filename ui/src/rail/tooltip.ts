// The tooltip: what is under the pointer.

import { h, placeTip, swatch } from "../base/dom.ts";
import { bytes, count, duration, placeOf, plural } from "../base/format.ts";
import { fates } from "../base/names.ts";
import { measureName } from "../base/terms.ts";
import { flagTooMany, type Alloc, type Mark, type Scope } from "../base/wire.ts";
import { highest } from "../session/runs.ts";
import type { Scene } from "./scene.ts";

/** Names the mark or the annotation above the picture that the pointer is at. */
export function showAbove(scene: Scene, at: { mark: Mark } | { scope: Scope }, clientX: number, clientY: number): void {
  unpoint(scene);
  scene.el.tooltip.replaceChildren(
    ...("mark" in at
      ? [h("div", { class: "head" }, at.mark.label), h("div", { class: "muted" }, `event ${count(at.mark.event)} · click puts the cursor here`)]
      : [h("div", { class: "head" }, at.scope.name), h("div", {}, `events ${count(at.scope.from)} – ${count(at.scope.to)}${at.scope.open ? ", and it had not ended" : ""}`), h("div", { class: "muted" }, "click selects it, shift-click on another shows the difference between their ends")]),
  );
  scene.el.tooltip.hidden = false;
  placeTip(scene.el.tooltip, clientX, clientY);
}

export function unpoint(scene: Scene): void {
  scene.el.tooltip.hidden = true;
  if (!scene.hover) return;
  scene.hover = null;
  scene.hitAsk.cancel();
  scene.page.lightUp(null);
  scene.need("cursor");
}

export function showTip(scene: Scene, alloc: Alloc | null): void {
  const { run, at } = scene.hover!;
  const { tile, c } = run;
  const { bands } = scene.page;
  const event = scene.eventOf(run);
  const inBucket = tile.events[c + 1]! - tile.events[c]!;
  const parts: (Node | string)[] = [];
  if (at && bands) {
    const band = bands.bands[at.band]!;
    const group = scene.page.bandGroup(band);
    if (at.bands > 1) {
      parts.push(h("div", { class: "head" }, swatch(-1), "several small sites"), h("div", { "data-bytes": at.bytes }, `${bytes(at.bytes)} here, each too small to draw; zoom in`));
    } else {
      parts.push(
        h("div", { class: "head" }, swatch(group.slot, band.fate !== "kept"), group.label),
        h("div", { "data-bytes": at.bytes }, at.allocs > 1 ? `${plural(at.allocs, "small allocation")}, ${bytes(at.bytes)}` : bytes(at.bytes), h("span", { class: "muted" }, ` · ${fates[band.fate]}`)),
      );
    }
  } else if (scene.page.s.view === "whatif") {
    parts.push(h("div", { class: "head" }, "reserved"), h("div", { "data-bytes": tile.reserved[c] }, h("span", { class: "line recorded" }), ` ${bytes(tile.reserved[c])} as recorded`));
    for (const { run, slot, name } of scene.page.curves) {
      const v = highest(run.steps.event, run.steps.bytes, tile.events[c]!, tile.events[c + 1]!);
      parts.push(h("div", { "data-bytes": v }, swatch(slot), ` ${bytes(v)} with ${name}`));
    }
  } else {
    const free = tile.reserved[c]! - tile.max[c]!;
    parts.push(h("div", { class: "head" }, scene.hover!.bytes <= tile.reserved[c]! && free > 0 ? `reserved, not ${measureName[scene.page.u]}` : "not reserved"));
    if (free > 0) parts.push(h("div", { "data-bytes": free }, bytes(free)));
  }
  if (alloc) {
    const lived = alloc.born_us !== null && alloc.died_us !== null ? `, ${duration(alloc.died_us - alloc.born_us)}` : "";
    const born = alloc.birth < 0 ? "older than the recording" : `event ${count(alloc.birth)}`;
    parts.push(h("div", { "data-bytes": alloc.bytes }, `this allocation ${bytes(alloc.bytes)}: ${born} → ${alloc.death === null ? "still alive" : `event ${count(alloc.death)}`}${lived}`));
    const own = (alloc.stack ?? []).findIndex((f) => f.origin === "own");
    const from = Math.max(0, own);
    for (const f of (alloc.stack ?? []).slice(from, from + 3)) parts.push(h("span", { class: `mono ${f.origin === "own" ? "own" : ""}` }, placeOf(f)));
  }
  parts.push(
    h("div", { class: "muted" }, `event ${count(event)}${inBucket > 1 ? ` · highest of ${plural(inBucket, "event")} here` : ""}${tile.flags & flagTooMany ? " · zoom in for allocations" : ""}`),
    h("div", { class: "muted" }, `${measureName[scene.page.u]} ${bytes(tile.max[c]!)} · reserved ${bytes(tile.reserved[c]!)}`),
  );
  scene.el.tooltip.replaceChildren(...parts);
  scene.el.tooltip.dataset.event = String(event);
  scene.el.tooltip.hidden = false;
}
