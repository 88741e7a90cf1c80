// The layer of lines and words over the data.

import { h } from "../base/dom.ts";
import { bytes, plural } from "../base/format.ts";
import { byteTick } from "../base/scale.ts";
import { begin, gutterName, hatch, left, rect } from "../picture/canvas.ts";
import { drawAxis, drawNotes, drawSteps } from "./axes.ts";
import { drawFindings, drawGutter, drawLabels, drawMarks, drawPeak } from "./labels.ts";
import { drawLanes, drawMap, drawCapacity, drawGhost, drawReserved, drawRuns } from "./lines.ts";
import type { Scene } from "./scene.ts";

export function drawInk(scene: Scene): void {
  const l = scene.layout;
  const c = scene.colors;
  const g = begin(scene.el.ink);
  const { device, bands, s } = scene.page;
  scene.el.over.replaceChildren();
  empty(scene);
  if (!device || device.events === 0) return;
  const { win } = scene;
  g.font = scene.font(11);
  // The byte axis.
  if (scene.drawn.length) {
    for (const b of [0, ...scene.frame.gridAt]) {
      const y = scene.y(b);
      if (y > l.top - 2) gutterName(g, byteTick(b), Math.max(l.top + 5, y), c);
    }
  }
  drawAxis(scene, g);
  if (l.steps >= 0) drawSteps(scene, g);
  if (l.notes >= 0) drawNotes(scene, g);
  if (l.grows >= 0 && bands) drawLanes(scene, g);
  if (!scene.solo.length) drawReserved(scene, g);
  if (s.view === "whatif") {
    drawRuns(scene, g);
    drawGhost(scene, g, scene.page.kept, `kept under ${s.under}`);
  } else if (!scene.solo.length && l.height > 100) {
    drawCapacity(scene, g, device.capacity ?? null);
    drawGhost(scene, g, scene.page.ghost, "if freed");
  }
  drawMarks(scene, g);
  if (bands && l.height > 100) drawLabels(scene, g);
  if (l.map >= 0) drawMap(scene, g);
  drawGutter(scene);
  const peak = l.height > 100 ? drawPeak(scene, g) : null;
  if (s.view !== "whatif") drawFindings(scene, g, peak);
  if (device.coverage.kind === "ring" || device.coverage.kind === "late") {
    if (win[0] < (win[1] - win[0]) * 0.001 + 1) hatch(g, left, l.top, 6, l.height, c.page, c.muted);
  }
  if (device.coverage.kind === "damaged" && win[1] >= scene.end) rect(g, c.danger, left + l.width - 2, l.top, 3, l.height);
}

function empty(scene: Scene): void {
  const { device, problem, file } = scene.page;
  if (device && device.events > 0) return;
  const parts: (Node | string)[] = [];
  if (problem) parts.push(problem);
  else if (!file) parts.push(scene.page.session ? "There is no such file in this session." : "Loading");
  else if (!device) {
    const of = file.size ? ` of ${bytes(file.size)}` : "";
    const phase = { waiting: "Waiting", reading: "Reading", pairing: "Pairing allocations with frees" }[file.state as string] ?? "Preparing";
    parts.push(`${phase}: ${bytes(file.read)}${of}${file.events === null ? "" : `, ${plural(file.events, "event")}`}`);
    if (file.size) parts.push(h("progress", { max: file.size, value: file.read, "aria-label": "read" }));
  } else {
    const small = scene.layout.height < 100;
    parts.push(
      device.end.reserved > 0
        ? `This file has no history: it holds the segments and blocks at one moment (${bytes(device.end.reserved)} reserved), but no events, since the history was not recorded.${small ? "" : " Allocator shows them."}`
        : "This file holds neither history nor segments: nothing was allocated on this device, or recording was never switched on.",
      small ? "" : h("pre", {}, "torch.cuda.memory._record_memory_history(max_entries=1_000_000)\n…\ntorch.cuda.memory._dump_snapshot(\"snapshot.pickle\")"),
    );
  }
  const el = h("div", { class: "empty" }, h("div", {}, ...parts));
  scene.el.over.append(el);
}

