// The page: its frame, and which part is notified of which change.

import { Allocator } from "../allocator/allocator.ts";
import { engine, fresh, json, Latest, link, Refused } from "../base/ask.ts";
import { Compare } from "../compare/compare.ts";
import { byId, fill, h, printable } from "../base/dom.ts";
import { otherFiles, takeDrops } from "../base/drops.ts";
import { Findings } from "../findings/findings.ts";
import { bytes, count, deviceName, plural } from "../base/format.ts";
import { JobView } from "../job/job.ts";
import { allocation, inspector } from "./inspector.ts";
import { listen, showKeys, type Key } from "../base/keys.ts";
import { coverages, groupings } from "../base/names.ts";
import { Page } from "../session/page.ts";
import { css, palette } from "../picture/palette.ts";
import { Rail } from "../rail/rail.ts";
import { fetchLinks, picture, save } from "../base/save.ts";
import { keyCommands, palette as openPalette, share, sharing, type Command } from "../base/share.ts";
import { Sites } from "../sites/sites.ts";
import { initial, type State, type View } from "../session/store.ts";
import { measureName, termList, terms } from "../base/terms.ts";
import { theme } from "../base/theme.ts";
import { Timeline } from "../timeline/timeline.ts";
import { WallView } from "../wall/wall.ts";
import { WhatIf } from "../whatif/whatif.ts";
import type { Alloc, Event } from "../base/wire.ts";

const page = new Page();
const { store } = page;
const live = byId("live");
let announcing = 0;

/** Announces to screen readers, at most twice a second. */
function announce(text: string): void {
  clearTimeout(announcing);
  announcing = window.setTimeout(() => (live.textContent = text), 500);
}

const rail = new Rail(page, byId("rail"), byId("tooltip"), announce, (e) => e.status !== 0 && refused(e));
const view = byId("view");
const parts = {
  timeline: new Timeline(page, rail, view),
  allocator: new Allocator(page, rail, view, byId("tooltip"), (to, back) => void next(to, back), () => (page.pinned ? allocation(page, rail, page.pinned) : [])),
  sites: new Sites(page, view, byId("tooltip")),
  compare: new Compare(page, view, byId("tooltip")),
  whatif: new WhatIf(page, rail, view, announce),
  findings: new Findings(page, rail, view),
  wall: new WallView(page, view),
  job: new JobView(page, view, () => page.untouched && page.s.view === initial.view && store.set({ view: "job" })),
};
const names: Record<View, string> = { job: "Job", wall: "Overview", timeline: "Timeline", allocator: "Allocator", sites: "Sites", compare: "Compare", whatif: "What if", findings: "Findings" };

/** The views that this session has something for. */
function tabs(): View[] {
  const files = page.session?.files ?? [];
  const many = files.length > 1;
  if (files.some((x) => x.state === "judged") && files.every((x) => x.state === "judged" || x.state === "failed")) return [...(page.session?.job ? (["job"] as View[]) : []), ...(many ? (["wall"] as View[]) : []), "findings"]; // there is no picture
  return (Object.keys(names) as View[]).filter((v) => ((v !== "compare" && v !== "wall") || many) && (v !== "job" || page.session?.job));
}

const ys = ["reserved", "active", "window"] as const;

// ---- the frame

let bannerText = "";

function banner(text: string): void {
  bannerText = text;
  drawBanner();
}

let refusal = "";

/** Shows what the engine has no answer to, until the reader turns to something else. */
function refused(e: Error): void {
  banner((refusal = e.message));
}

function drawBanner(): void {
  const file = page.file;
  const out: string[] = [];
  if (link.lost) out.push(`${link.why} What is here stays.`);
  else if (bannerText) out.push(bannerText);
  if (page.unknownSites > 0) out.push(`${plural(page.unknownSites, "site")} of the link ${page.unknownSites === 1 ? "is" : "are"} not in this file.`);
  if (page.strange) out.push("The link is of a file that is not open here.");
  const { coverage } = page.device ?? {};
  if (coverage?.kind === "damaged") out.push(file?.partial ? `Read in part: ${coverage.text}` : coverage.text.replace(/^t/, "T"));
  else if (file?.partial) out.push(`Read in part: ${file.partial}`);
  const el = byId("banner");
  el.hidden = out.length === 0;
  el.className = link.lost ? "error" : "";
  el.textContent = printable(out.join(" · "));
}

let tabsShown = "";

function drawTop(): void {
  const { session, file, device, s } = page;
  const title = file?.name ?? session?.title ?? "";
  document.title = title ? `${printable(title)} – strandline` : "strandline";
  const files = session?.files ?? [];
  const pick = (label: string, key: string, value: number, options: [number, string][], act: (v: number) => void): Node =>
    h(
      "select",
      { "aria-label": label, "data-key": key, onchange: (e: globalThis.Event) => act(Number((e.target as HTMLSelectElement).value)) },
      options.map(([v, text]) => h("option", { value: v, selected: v === value }, text)),
    );
  const order = session?.order.length === files.length ? session.order : files.map((f) => f.f);
  const reset: Partial<State> = { win: null, k: null, range: null, alloc: null, a: null, b: null, segment: null };
  fill(
    byId("files"),
    files.length > 1
      ? pick("file", "file", page.f, order.map((f) => [f, files.find((x) => x.f === f)?.name ?? String(f)]), (f) => store.set({ f, ...reset }, true))
      : h("span", { title: file?.path }, title),
    session?.skipped?.length ? h("span", { class: "muted wide", title: session.skipped.map((x) => `${x.path}: ${x.why}`).join("\n") }, `${count(session.skipped.length)} skipped`) : null,
    file && file.devices.length > 1 ? pick("device", "device", page.d ?? 0, file.devices.map((d) => [d, deviceName(d)]), (d) => store.set({ d, ...reset }, true)) : null,
    otherFiles(),
  );
  const badge = byId<HTMLButtonElement>("coverage");
  badge.hidden = !device;
  if (device) {
    const kind = file?.partial ? "damaged" : device.coverage.kind;
    badge.dataset.kind = kind;
    badge.textContent = coverages[kind] ?? kind;
    badge.title = file?.partial ?? device.coverage.text;
  }
  const held = byId<HTMLButtonElement>("held");
  held.hidden = !device?.held;
  if (device?.held) held.title = device.held.text;
  const shown = tabs();
  // A button that is replaced under the pointer loses its click.
  const shownTabs = `${shown} ${s.view} ${page.findings.length}`;
  if (shownTabs === tabsShown) return;
  tabsShown = shownTabs;
  fill(
    byId("tabs"),
    shown.map((v, i) => h("button", { type: "button", "data-key": `view ${v}`, "aria-current": s.view === v ? "page" : undefined, title: `${names[v]} (${i + 1})`, onclick: () => store.set({ view: v }, true) }, names[v], v === "findings" && page.findings.length ? ` ${page.findings.length}` : "")),
  );
}

function drawTools(): void {
  const { device, file, s } = page;
  const el = byId("tools");
  if (!device || device.events === 0) return fill(el);
  const time = s.x === "us" && device.time;
  const choice = (key: string, label: string, on: boolean, act: () => void, why?: string | null): Node =>
    h("button", { type: "button", "data-key": key, "aria-pressed": String(on), disabled: !!why, title: why ?? undefined, onclick: act }, label);
  fill(
    el,
    h(
      "label",
      {},
      "group by ",
      h(
        "select",
        { "data-key": "g", onchange: (e: globalThis.Event) => store.set({ g: (e.target as HTMLSelectElement).value, solo: [] }, true) },
        device.groupings.map((g) => h("option", { value: g, selected: g === s.g }, groupings[g] ?? g)),
      ),
    ),
    h("span", { class: "choice" }, "x ", choice("x ev", "events", !time, () => time && void rail.switchX()), " · ", choice("x us", "time", !!time, () => !time && void rail.switchX(), device.time ? null : (device.time_why ?? "this file has no times"))),
    h(
      "span",
      { class: "choice" },
      "y ",
      ys.filter((y) => y !== "active" || !page.segments).map((y, i) => [i ? " · " : "", choice(`y ${y}`, y === "active" ? measureName[page.u] : y === "window" ? "visible range" : y, s.y === y, () => store.set({ y }, true))]),
    ),
    h(
      "span",
      { class: "choice wide" },
      "bytes ",
      choice("u requested", "requested", page.u === "requested", () => measure("requested")),
      " · ",
      choice("u allocated", "active", page.u === "allocated", () => measure("allocated"), file?.blocks === "ready" ? null : (device.measures_why ?? "The sizes of blocks are still being worked out.")),
      " · ",
      choice("u reserved", "reserved", !!page.segments, () => measure("reserved"), device.held ? "This saved page has no history of segments." : null),
    ),
    device.held ? null : choice("each", "each allocation", s.each, () => store.set({ each: !s.each }, true), s.view === "whatif" ? "The runs are drawn as sums" : null),
    s.solo.length
      ? h(
          "button",
          { type: "button", class: "chip", "data-key": "solo", title: "Show all sites again (Esc)", onclick: () => store.set({ solo: [] }, true) },
          h("span", { class: `sw s${page.group(s.solo[0]!)?.slot ?? -1}` }),
          s.solo.length === 1 ? `only ${page.group(s.solo[0]!)?.label ?? "a site of another file"}` : `only ${count(s.solo.length)} sites`,
          h("span", { class: "muted" }, "×"),
        )
      : null,
    h("span", { id: "window" }),
    h("span", { class: "legend", "aria-hidden": "true" }, h("span", {}, h("i"), `${measureName[page.u]}, highest`), h("span", {}, h("i", { class: "low" }), "lowest"), h("span", {}, h("i", { class: "res" }), s.view === "whatif" ? "reserved, as recorded" : "reserved"), s.view === "whatif" ? null : h("span", {}, h("i", { class: "kept" }), "kept")),
  );
  drawWindow();
}

/** Turns to another measure: parts of segments are other things than allocations, and not in all groupings. */
function measure(u: State["u"]): void {
  store.set({ u, alloc: null, g: u === "reserved" && /^(purpose|pool|annotation)$/.test(page.s.g) ? "line" : page.s.g }, true);
}

/** Shows what part of the file the picture covers. */
function drawWindow(): void {
  const el = document.getElementById("window");
  const { device, s } = page;
  if (!el || !device) return;
  const { win, level, bound } = rail.seen;
  const end = bound ? ", no finer in this saved page" : "";
  const per = count(2 ** level);
  if (s.x === "us" && device.time) fill(el, `${s.win === null ? "all" : "part"} of the time · 1 column = ${per} µs${end}`);
  else fill(el, "events ", h("b", {}, `${count(Math.floor(win[0]))} – ${count(Math.ceil(win[1]))}`), ` of ${count(device.events)} · 1 column = ${per} ${level === 0 ? "event" : "events"}${end}`);
}

// ---- what follows the cursor

const askEvent = new Latest(30);
let eventKey = "";
let eventOf = "";
let allocKey = "";

function follow(): void {
  const { s, device } = page;
  if (!device || page.d === undefined) return;
  const of = `${page.f} ${page.d} ${page.u}`;
  if (of !== eventOf) page.event = null; // that of another file may have the same number
  eventOf = of;
  const ek = `${of} ${page.k}`;
  if (ek !== eventKey && device.events > 0) {
    eventKey = ek;
    askEvent.ask(
      () => json<Event>("event", { f: page.f, d: page.d, u: page.u, k: page.k }),
      (e) => {
        page.event = e;
        page.figures.active = e.live;
        page.figures.reserved = e.reserved;
        page.notify("event");
        announce(`${e.event < 0 ? "before the first event" : `event ${count(e.event)}`}, ${measureName[page.u]} ${bytes(e.live)}, reserved ${bytes(e.reserved)}`);
      },
      () => {},
    );
  }
  const ak = s.alloc === null ? "" : `${page.f} ${page.d} ${page.file?.blocks} ${page.segments} ${s.alloc}`; // its block is known once the replay is done
  if (ak === allocKey) return;
  allocKey = ak;
  if (page.pinned?.alloc !== s.alloc) page.pinned = null;
  if (s.alloc === null) return page.notify("pinned");
  fresh<Alloc>("alloc", { f: page.f, d: page.d, u: page.segments, i: s.alloc }).then(
    (a) => {
      if (ak !== allocKey) return;
      page.pinned = a;
      page.notify("pinned");
    },
    (e: Error) => link.saved && refused(e),
  );
}

// ---- search

const search = byId<HTMLInputElement>("search");
const askFind = new Latest(120);
let findKey = "";

function find(): void {
  const { s, bands } = page;
  if (search !== document.activeElement) search.value = s.q;
  if (!bands) return;
  const key = `${page.f} ${page.d} ${s.g} ${s.q}`;
  if (key === findKey) return;
  findKey = key;
  const done = (found: Set<string> | null, error: string | null): void => {
    // An invalid pattern leaves the last result as it was.
    if (!error) page.found = found;
    page.searchError = error;
    search.toggleAttribute("aria-invalid", !!error);
    if (error) search.setAttribute("aria-invalid", "true");
    search.title = error ?? "";
    banner(error ? `Search: ${error}` : "");
    page.notify("found");
  };
  if (!s.q) {
    askFind.cancel();
    return done(null, null);
  }
  askFind.ask(
    () => fresh<{ keys: string[] }>("find", { ...page.base, q: s.q }),
    (v) => {
      page.figures.found = v.keys.length;
      done(new Set(v.keys), null);
      announce(plural(v.keys.length, "site matches", "sites match"));
    },
    (e) => done(null, e instanceof Refused ? e.message : "the search failed"),
  );
}

search.addEventListener("input", () => store.set({ q: search.value }));
search.addEventListener("keydown", (e) => {
  if (e.key === "Enter" || e.key === "Escape") {
    if (e.key === "Escape") store.set({ q: "" });
    search.blur();
    search.value = page.s.q;
    e.preventDefault();
  }
});

// ---- keys

const jumps: Record<string, string> = { oom: "out-of-memory error", segment: "segment event" };

async function next(to: string, back: boolean): Promise<void> {
  const { event } = await fresh<{ event: number | null }>("next", { f: page.f, d: page.d, k: page.k, to, back: back ? 1 : undefined });
  if (event === null) {
    const none = `There is no ${back ? "earlier" : "later"} ${jumps[to] ?? to}.`;
    announce(none);
    return refused(new Error(none));
  }
  store.set({ k: event });
  rail.reveal(event);
}

function goTo(k: number | null | undefined): void {
  if (k === null || k === undefined || k < 0) return;
  store.set({ k });
  rail.reveal(k);
}

function stepOut(): void {
  const { s } = page;
  if (s.alloc !== null || s.segment !== null) store.set({ alloc: null, segment: null });
  else if (s.range) store.set({ range: null });
  else if (s.a !== null || s.b !== null) store.set({ a: null, b: null });
  else if (s.solo.length) store.set({ solo: [] }, true);
  else if (s.q) store.set({ q: "" });
  else if (s.win) store.set({ win: null });
  else if (s.k !== null) store.set({ k: null });
  else if (s.finding !== -1 && page.verdict) store.set({ finding: -1 }, true);
}

/** What a saved page has no answers for. */
const asked = (): Key[] => [
  { keys: ["j"], show: "j  k", does: "set mark A, mark B: the table shows the difference", act: () => store.set({ a: page.k, range: null }) },
  { keys: ["k"], show: "", does: "", act: () => store.set({ b: page.k, range: null }) },
  { keys: ["l"], show: "l", does: "each allocation at every zoom, or bands", act: () => store.set({ each: !page.s.each }, true) },
];

const keyTable = (): Key[] => [
  { keys: ["w"], show: "w  s", does: "zoom in, out (shift: ×4)", act: (e) => rail.zoomBy(e.shiftKey ? 1 / 4 : 1 / 1.5) },
  { keys: ["s"], show: "", does: "", act: (e) => rail.zoomBy(e.shiftKey ? 4 : 1.5) },
  { keys: ["a"], show: "a  d", does: "pan (shift: ×4)", act: (e) => rail.pan(e.shiftKey ? -0.8 : -0.2) },
  { keys: ["d"], show: "", does: "", act: (e) => rail.pan(e.shiftKey ? 0.8 : 0.2) },
  { keys: ["ArrowLeft"], show: "←  →", does: "cursor to the next column", act: () => rail.step(-1) },
  { keys: ["ArrowRight"], show: "", does: "", act: () => rail.step(1) },
  { keys: ["ArrowUp"], show: "↑  ↓", does: "next band in the stack at the cursor", act: () => rail.stepBand(1) },
  { keys: ["ArrowDown"], show: "", does: "", act: () => rail.stepBand(-1) },
  { keys: ["Enter"], show: "Enter", does: "pin what the band shows", act: () => rail.pinBand() },
  { keys: ["Home"], show: "Home  End", does: "first, last event", act: () => goTo(0) },
  { keys: ["End"], show: "", does: "", act: () => goTo((page.device?.events ?? 0) - 1) },
  { keys: ["0"], show: "0", does: "the whole file", act: () => store.set({ win: null }) },
  { keys: ["f"], show: "f", does: "fit the selection, or the lifetime of the pinned allocation", act: () => rail.fit() },
  { keys: ["p"], show: "p", does: "next peak (shift: back)", act: (e) => void next("peak", e.shiftKey) },
  { keys: ["o"], show: "o", does: "next out-of-memory error (shift: back)", act: (e) => void next("oom", e.shiftKey) },
  { keys: ["m"], show: "m", does: "next mark (shift: back)", act: (e) => void next("mark", e.shiftKey) },
  { keys: ["."], show: ",  .", does: "segment event before, after", act: () => void next("segment", false) },
  { keys: [","], show: "", does: "", act: () => void next("segment", true) },
  { keys: ["]"], show: "[  ]", does: "one event back, on", act: () => goTo(Math.min(page.beside(1), (page.device?.events ?? 1) - 1)) },
  { keys: ["["], show: "", does: "", act: () => goTo(Math.max(0, page.beside(-1))) },
  { keys: [" "], show: "space", does: "play segment events, stop (allocator)", act: () => page.s.view === "allocator" && parts.allocator.play() },
  { keys: ["u"], show: "u", does: "show free segments, fold them (allocator)", act: () => page.s.view === "allocator" && parts.allocator.unfold() },
  { keys: ["b"], show: "b  n", does: "allocation, free of the pinned one", act: () => goTo(page.pinned?.birth) },
  { keys: ["n"], show: "", does: "", act: () => goTo(page.pinned?.death) },
  { keys: ["z"], show: "z", does: "the pinned site alone, or all again", act: () => solo() },
  ...(link.saved ? [] : asked()),
  { keys: ["x"], show: "x", does: "events or time", act: () => void rail.switchX() },
  { keys: ["y"], show: "y", does: "byte axis: reserved, requested, visible range", act: () => store.set({ y: ys[(ys.indexOf(page.s.y as "active") + 1) % 3]! }, true) },
  { keys: ["g"], show: "g", does: "next grouping", act: () => nextGrouping() },
  { keys: ["/"], show: "/", does: "search sites by regular expression", act: () => search.focus() },
  { keys: ["t"], show: "t", does: "the picture as a table (timeline)", act: () => page.s.view === "timeline" && parts.timeline.toggleTable() },
  { keys: ["c"], show: "c", does: "copy file:line of the pinned allocation", act: () => document.querySelector<HTMLElement>("#inspector [data-key='copy line']")?.click() },
  { keys: ["e"], show: "e", does: "save the picture, the table or the page, copy the link", act: () => give() },
  { keys: [], show: "⌘K", does: "all commands, views, files and findings", act: () => {} },
  { keys: ["i"], show: "i", does: "inspector on, off", act: () => byId("inspector").classList.toggle("off") },
  { keys: ["h"], show: "h", does: "rail on, off", act: () => showRail(!railOff) },
  { keys: tabs().map((_, i) => String(i + 1)), show: `1 … ${tabs().length}`, does: "views", act: (e) => { const v = tabs()[Number(e.key) - 1]; if (v) store.set({ view: v }, true); } },
  { keys: ["Escape"], show: "Esc", does: "step back out", act: () => stepOut() },
  { keys: ["?"], show: "?", does: "this help", act: () => help() },
];

let railOff = false;

const manyFiles = 12; // of more, the page begins with the overview
const ownRows: View[] = ["compare", "job", "wall"]; // in place of the rail

function showRail(off = railOff): void {
  railOff = off;
  byId("rail").hidden = off || ownRows.includes(page.s.view);
}

function solo(): void {
  const { s, pinned, lit } = page;
  const key = pinned?.keys[s.g] ?? lit;
  store.set({ solo: s.solo.length || !key || !page.hasAlone(key) ? [] : [key] }, true);
}

function nextGrouping(): void {
  const of = page.device?.groupings ?? [];
  const g = of[(of.indexOf(page.s.g) + 1) % of.length];
  if (g) store.set({ g, solo: [] }, true);
}

function help(): void {
  showKeys(
    keyTable(),
    "Wheel zooms, shift and wheel pan, over the axis of bytes it stretches. Drag selects events; double-click fits them. Click pins, shift-click sets a second mark. Click on a step selects it, shift-click on another shows what changed.",
    ...termList(terms),
  );
}

// ---- what is given away

async function savePicture(): Promise<void> {
  const c = palette();
  const file = page.file?.name ?? "strandline";
  const parts = [...(byId("rail").hidden ? [] : [rail.canvas()]), ...view.querySelectorAll("canvas")];
  const blob = await picture(`${file} · ${names[page.s.view]}`, parts, css(c.page), css(c.ink));
  if (!blob) return;
  page.figures.png = blob.size;
  save(`${file}.png`, blob);
}

/** What can be saved. */
function gifts(): Command[] {
  const table = view.querySelector<HTMLElement>("[data-key=csv]");
  return [
    { key: "png", name: "Picture", does: "this view as PNG", act: () => savePicture() },
    { key: "table", name: "Table", does: "as CSV", off: !table, act: () => table?.click() },
    ...sharing(page.file?.name ?? "strandline", () => store.link, announce),
  ];
}

const give = (): void => share(gifts());

/** All that can be done or turned to. */
function commands(): Command[] {
  const reset: Partial<State> = { win: null, k: null, range: null, alloc: null, solo: [] };
  return [
    ...tabs().map((v) => ({ key: v, name: names[v], does: "view", act: () => store.set({ view: v }, true) })),
    ...page.findings.map((f, i) => ({ key: `finding ${i}`, name: f.title, does: [f.kind, f.process, f.site?.file && `${f.site.file}:${f.site.line}`].filter(Boolean).join(" "), act: () => store.set({ view: "findings", finding: i }, true) })),
    ...(page.session?.files ?? []).map((x) => ({ key: `file ${x.f}`, name: x.name, does: `file ${x.process ?? ""}`, act: () => store.set({ f: x.f, d: null, ...reset }, true) })),
    ...gifts().map((c) => ({ ...c, name: `Save or share: ${c.name}` })),
    ...keyCommands(keyTable()),
  ];
}

// ---- buttons of the frame

theme(() => page.notify("theme"));
byId("word").addEventListener("click", () => parts.findings.pin(null));
byId("help").addEventListener("click", help);
byId("export").addEventListener("click", give);
for (const id of ["coverage", "held"]) byId(id).addEventListener("click", () => banner(bannerText === byId(id).title ? "" : byId(id).title));

// ---- all together

/** Turns to the first view where a link names one that these files do not have. */
function elsewhere(v: View): boolean {
  const lacks = !!page.session && !tabs().includes(v);
  if (lacks) store.set({ view: tabs()[0]! });
  return lacks;
}

function draw(): void {
  if (!elsewhere(page.s.view)) parts[page.s.view].update();
}

/** Draws the card of the verdict, and below it what is pinned. */
function inspect(): void {
  byId("inspector").hidden = page.bare;
  parts.findings.card(byId("verdict"), page.carded);
  if (page.s.view !== "allocator") inspector(page, rail, byId("detail"));
}

let shown: View = page.s.view;
showRail();
page.on((what) => {
  if (what === "drawn") return page.s.view === "timeline" ? parts.timeline.pictured() : undefined;
  if (what === "session") {
    page.load();
    parts.findings.load();
    parts.job.load();
    if ((page.session?.files.length ?? 0) > manyFiles && !page.session?.job && page.untouched && store.link === "") store.set({ view: "wall" });
    drawTop();
  }
  if (what === "device" || what === "bands") {
    drawTop();
    drawTools();
    follow();
    find();
  }
  if (what === "session" || what === "device" || what === "bands") drawBanner();
  if (what === "device" || what === "bands" || what === "event" || what === "pinned" || what === "curves" || what === "curve" || what === "findings") inspect();
  if (what === "findings") drawTop();
  if (what !== "curves" && what !== "curve") draw();
});

store.on((now, before) => {
  if (elsewhere(now.view)) return;
  page.load();
  if (bannerText && bannerText === refusal && (now.view !== before.view || now.g !== before.g || now.solo !== before.solo || now.alloc !== before.alloc || now.k !== before.k || now.f !== before.f)) banner("");
  if (now.view !== before.view || now.f !== before.f || now.d !== before.d || now.finding !== before.finding) drawTop();
  if (now.view !== before.view || now.x !== before.x || now.u !== before.u || now.y !== before.y || now.each !== before.each || now.g !== before.g || now.solo !== before.solo || now.f !== before.f) drawTools();
  else if (now.win !== before.win) drawWindow();
  if (now.solo !== before.solo && page.unknownSites) {
    page.unknownSites = now.solo.filter((k) => !page.group(k)).length;
    drawBanner();
  }
  follow();
  find();
  if (shown !== now.view) {
    if (shown === "whatif") parts.whatif.leave();
    shown = now.view;
    byId("tooltip").hidden = true;
    fill(view);
    showRail();
    view.setAttribute("aria-label", names[now.view]);
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

takeDrops((text) => refused(new Error(text)));
listen(keyTable);
openPalette(commands);
drawTop();
page.notify("device");
void page.follow();

declare global {
  interface Window {
    strandline: unknown;
  }
}

window.strandline = {
  state: () => ({ ...page.s, d: page.d, k: page.k, u: page.u, link: store.link, picture: rail.state(), figures: { ...page.figures }, pinned: page.pinned, event: page.event, ready: !!page.bands }),
  column: (event: number) => rail.column(event),
  pixel: (event: number) => rail.pixel(event),
  bands: () => page.bands,
  device: () => page.device,
};
