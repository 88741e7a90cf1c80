// The page of snapshots: its views, and which part is notified of which change.

import { Allocator } from "../allocator/allocator.ts";
import { engine, link } from "../base/ask.ts";
import { byId, fill } from "../base/dom.ts";
import { frame } from "../base/frame.ts";
import { fetchLinks } from "../base/save.ts";
import { terms } from "../base/terms.ts";
import { theme } from "../base/theme.ts";
import { Compare } from "../compare/compare.ts";
import { Findings } from "../findings/findings.ts";
import { JobView } from "../job/job.ts";
import { initial, type View } from "../session/store.ts";
import { Sites } from "../sites/sites.ts";
import { Timeline } from "../timeline/timeline.ts";
import { WallView } from "../wall/wall.ts";
import { WhatIf } from "../whatif/whatif.ts";
import { find, follow } from "./cursor.ts";
import { announce, drawBanner, drop, page, rail, refused, banner, scene, store, toggleBanner, view } from "./elements.ts";
import { allocation, inspector } from "./inspector.ts";
import { keyTable, next } from "./keys.ts";
import { drawTools, drawTop, drawWindow, go, nameOf, ofFile, views } from "./top.ts";

const parts = {
  timeline: new Timeline(page, scene, view),
  allocator: new Allocator(page, scene, view, byId("tooltip"), (to, back) => void next(to, back), () => (page.pinned ? allocation(page, scene, page.pinned) : [])),
  sites: new Sites(page, view, byId("tooltip")),
  compare: new Compare(page, view, byId("tooltip")),
  whatif: new WhatIf(page, scene, view, announce),
  findings: new Findings(page, scene, view),
  wall: new WallView(page, view),
  job: new JobView(page, view, () => page.untouched && page.s.view === initial.view && store.set({ view: "job" })),
};

let railOff = false;

const manyProcesses = 12; // of more, the page begins with the overview
const ownRows: View[] = ["compare", "job", "wall"]; // in place of the rail

function showRail(off = railOff): void {
  railOff = off;
  byId("rail").hidden = off || ownRows.includes(page.s.view) || (page.s.view === "findings" && page.file?.state === "judged"); // of that there is no picture
}

const table = (): HTMLElement | null => view.querySelector<HTMLElement>("[data-key=csv]");

frame({
  views, go, terms,
  keys: () => keyTable({
    play: () => page.s.view === "allocator" && parts.allocator.play(),
    unfold: () => page.s.view === "allocator" && parts.allocator.unfold(),
    table: () => page.s.view === "timeline" && parts.timeline.toggleTable(),
    rail: () => showRail(!railOff),
  }),
  help: "Wheel zooms, shift and wheel pan, over the axis of bytes it stretches. Drag selects events; double-click fits them. Click pins, shift-click sets a second mark. Click on a step selects it, shift-click on another shows what changed.",
  name: () => page.file?.name ?? "strandline",
  title: () => `${page.file?.name ?? "strandline"} · ${nameOf(page.s.view)}`,
  pictures: () => [...(byId("rail").hidden ? [] : [rail.canvas()]), ...view.querySelectorAll("canvas")],
  gifts: () => [{ key: "table", name: "Table", does: "as CSV", off: !table(), act: () => table()?.click() }],
  places: () => [
    ...page.findings.map((f, i) => ({ key: `finding ${i}`, name: f.title, does: [f.kind, f.process, f.site?.file && `${f.site.file}:${f.site.line}`].filter(Boolean).join(" "), act: () => store.set({ view: "findings", finding: i }, true) })),
    ...(page.session?.files ?? []).map((x) => ({ key: `file ${x.f}`, name: x.name, does: `file ${x.process ?? ""}`, act: () => store.set({ f: x.f, d: null, solo: [], ...ofFile }, true) })),
  ],
  link: () => store.link,
  search: (q) => store.set({ q }),
  say: (text) => refused(new Error(text)),
});
theme(() => page.notify("theme"));
byId("held").addEventListener("click", () => toggleBanner(byId("held").title));

// ---- all together

/** Turns to the first view where a link names one that these files do not have. */
function elsewhere(v: View): boolean {
  const has = views().map((x) => x.key);
  const lacks = !!page.session && !has.includes(v);
  if (lacks) store.set({ view: has[0] as View });
  return lacks;
}

function draw(): void {
  if (!elsewhere(page.s.view)) parts[page.s.view].update();
}

/** Draws the card of the verdict, and below it what is pinned. */
function inspect(): void {
  byId("inspector").hidden = page.bare;
  parts.findings.card(byId("verdict"), page.carded);
  if (page.s.view !== "allocator") inspector(page, scene, byId("detail"));
}

let shown: View = page.s.view;
showRail();
page.on((what) => {
  if (what === "drawn") return page.s.view === "timeline" ? parts.timeline.pictured() : undefined;
  if (what === "session") {
    page.load();
    parts.findings.load();
    parts.job.load();
    if (new Set(page.session?.files.map((x) => x.process ?? x.f)).size > manyProcesses && !page.session?.job && page.untouched && store.link === "") store.set({ view: "wall" });
    drawTop();
    showRail();
  }
  if (what === "device" || what === "bands") {
    drawTop();
    drawTools();
    follow();
    find();
  }
  if (what === "session" || what === "device" || what === "bands") drawBanner();
  if (what === "device" || what === "bands" || what === "event" || what === "pinned" || what === "curves" || what === "curve" || what === "ghost" || what === "findings") inspect();
  if (what === "ghost" || what === "findings") drawTools();
  page.askGhost();
  if (what === "findings") drawTop();
  if (what !== "curves" && what !== "curve" && what !== "ghost") draw();
});

store.on((now, before) => {
  if (elsewhere(now.view)) return;
  page.load();
  if (now.view !== before.view || now.g !== before.g || now.solo !== before.solo || now.alloc !== before.alloc || now.k !== before.k || now.f !== before.f) drop();
  if (now.view !== before.view || now.f !== before.f || now.d !== before.d || now.finding !== before.finding) drawTop();
  if (now.view !== before.view || now.x !== before.x || now.u !== before.u || now.y !== before.y || now.each !== before.each || now.g !== before.g || now.solo !== before.solo || now.f !== before.f) drawTools();
  else if (now.win !== before.win) drawWindow();
  if (now.solo !== before.solo && page.unknownSites) {
    page.unknownSites = now.solo.filter((k) => !page.group(k)).length;
    drawBanner();
  }
  follow();
  find();
  page.askGhost();
  if (now.ghost !== before.ghost) page.notify("ghost");
  if (shown !== now.view) {
    if (shown === "whatif") parts.whatif.leave();
    shown = now.view;
    byId("tooltip").hidden = true;
    fill(view);
    showRail();
    view.setAttribute("aria-label", nameOf(now.view));
    if (now.view === "allocator" || now.view === "timeline" || now.view === "whatif") parts[now.view].enter();
  }
  if (now.finding !== before.finding) page.notify("findings");
  else {
    inspect();
    draw();
  }
});

link.changed = () => {
  drawBanner();
  if (!link.lost) {
    page.load();
    rail.retry();
    parts.whatif.retry();
  }
};

if (engine) fetchLinks(refused);
addEventListener("problem", (e) => banner((e as CustomEvent<string>).detail)); // of the static site

drawTop();
page.notify("device");
void page.follow();

window.strandline = {
  state: () => ({ ...page.s, d: page.d, k: page.k, u: page.u, link: store.link, picture: rail.state(), figures: { ...page.figures }, pinned: page.pinned, event: page.event, ready: !!page.bands }),
  column: (event: number) => rail.column(event),
  pixel: (event: number) => rail.pixel(event),
  bands: () => page.bands,
  device: () => page.device,
};
