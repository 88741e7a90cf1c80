// The page of `strandline view` of a watch's recording: what each process, container and
// device held over time, and how that was judged. While the recording is written, the
// page follows it. All figures are the program's.

import { fresh, link, Refused } from "../base/ask.ts";
import { byId, fill, h } from "../base/dom.ts";
import { otherFiles, takeDrops } from "../base/drops.ts";
import { base, bytes, duration, plural } from "../base/format.ts";
import { listen, showKeys, type Key } from "../base/keys.ts";
import { termList, watchTerms } from "../base/terms.ts";
import { picture as compose, save } from "../base/save.ts";
import { keyCommands, palette, share, sharing, type Command } from "../base/share.ts";
import { theme } from "../base/theme.ts";
import { moment } from "./bands.ts";
import { inspector } from "./inspector.ts";
import { ahead, asking, doc, drawn, engine, fromAddress, hooks, judged, load, mapped, s, seen, set, spot, subject, view } from "./model.ts";
import { Picture } from "./picture.ts";
import { views } from "./state.ts";
import { listed, mainView, shownViews, wrongQuery } from "./tables.ts";
import type { Watch } from "./wire.ts";

const picture = new Picture(byId("rail"), byId("tooltip"));
let drawing = 0;

/** Draws once, however much changes before the next frame. */
function draw(): void {
  cancelAnimationFrame(drawing);
  drawing = requestAnimationFrame(() => {
    drawing = 0;
    const { course, whole } = seen;
    byId("rail").hidden = !course?.n;
    if (course?.n && whole) picture.draw({ doc, subject: subject()!, course, whole, load: engine.course, finding: judged(), judged: drawn(), ahead: ahead(), s, spot: spot(), set });
    head();
    tabs();
    tools();
    mainView();
    inspector((name) => picture.light(name));
    const field = byId<HTMLInputElement>("search");
    field.setAttribute("aria-invalid", String(wrongQuery !== ""));
    field.title = wrongQuery;
  });
}

function banner(text: string, wrong = true): void {
  const el = byId("banner");
  el.hidden = text === "";
  el.className = wrong ? "error" : "";
  el.textContent = text;
}

/** What the recording is good for, in a word and in sentences. */
function coverage(): [kind: string, word: string, sentences: string] {
  const whatIs = `${plural(doc.samples, "sample")} over ${moment(doc.seconds)}.`;
  if (doc.partial !== null) return ["damaged", "partial", `This recording is only partly readable: ${doc.partial}. The rest of it is shown. ${whatIs}`];
  if (doc.reading) return ["late", "reading", `The recording is still being read. So far ${whatIs}`];
  if (!doc.following) return ["exact", "whole", `The whole recording was read: ${whatIs}`];
  const age = Date.now() / 1000 - doc.began_us / 1e6 - doc.seconds;
  const usual = doc.samples > 1 ? doc.seconds / (doc.samples - 1) : 1;
  if (doc.samples && age > 10 + 5 * usual) return ["exact", "no new samples", `The whole recording was read: ${whatIs} The last sample was taken ${duration(age * 1e6)} ago; later ones will be shown when they are written.`];
  return ["live", "live", `Samples are shown as they are written. ${whatIs}`];
}

function head(): void {
  document.title = `${base(doc.file)} – strandline`;
  fill(byId("files"), h("span", { id: "name", title: doc.file }, base(doc.file)), h("span", { class: "muted" }, `${plural(doc.samples, "sample")}, ${moment(doc.seconds)}`), otherFiles());
  const [kind, word, text] = coverage();
  const badge = byId("coverage");
  badge.hidden = false;
  badge.dataset.kind = kind;
  badge.textContent = word;
  badge.title = text;
  badge.onclick = () => banner(byId("banner").hidden ? text : "", doc.partial !== null);
}

function tabs(): void {
  fill(byId("tabs"), shownViews().map((v, i) => h("button", { type: "button", "data-key": `view ${v}`, "aria-current": view() === v ? "page" : undefined, title: `${views[v]} (${i + 1})`, onclick: () => go(v) }, views[v] + (v === "findings" && doc.findings.length ? ` ${doc.findings.length + doc.findings_left_out}` : ""))));
}

function go(v: keyof typeof views): void {
  const stays = v === "findings" || subject()?.kind === v;
  set({ view: v, ...(stays ? {} : { sub: null, finding: null, win: null, range: null, alone: false, ahead: null }) }, true);
}

function tools(): void {
  const of = drawn();
  const e = of?.e;
  const x = subject();
  const chip = (key: string, on: boolean, title: string, text: string, act: () => void): Node => h("button", { type: "button", class: "chip", "data-key": key, "aria-pressed": String(on), title, onclick: act }, text);
  const { course } = seen;
  const more = course?.of.samples.some((n) => n > 1 && course.n > 600) ?? false;
  fill(
    byId("tools"),
    h("span", {}, x ? (x.label.startsWith(x.place) ? x.label : `${x.label}, ${x.place}`) : ""),
    of && stackable() ? chip("alone", s.alone, "What was judged alone, or all (z)", s.alone ? "show all" : `${of.parts.join(" + ")} alone`, () => set({ alone: !s.alone }, true)) : null,
    x?.mappings ? chip("mapped", s.mapped, "Its mappings that grow, by address, or its kinds of memory (m)", s.mapped ? "by kind" : "by mapping", () => set({ mapped: !s.mapped, alone: false }, true)) : null,
    e?.toLimit ? chip("ahead", ahead(), "As far as the limit, or to the last sample (l)", ahead() ? "to the last sample" : "as far as the limit", () => set({ ahead: !ahead(), win: null }, true)) : null,
    s.range ? chip("range", true, "Drop the selection (Esc)", `selected: ${moment(s.range[0])} – ${moment(s.range[1])} ×`, () => set({ range: null }, true)) : null,
    s.win ? chip("all", true, "Show all of time (0)", `seen: ${moment(Math.max(0, s.win[0]))} – ${moment(s.win[1])} ×`, () => set({ win: null }, true)) : null,
    more ? h("span", {}, "each column shows its highest sample") : null,
    of ? h("span", { class: "legend" }, h("span", {}, h("i", { class: "fit" }), "fitted, with its interval"), e?.limit ? h("span", {}, h("i", { class: "limit" }), "limit") : null) : null,
  );
}

/** Reports whether what was judged can be stacked alone: it is a part of the total. */
const stackable = (): boolean => !!drawn()?.parts.length && drawn()!.parts.every((name) => seen.course?.parts.some((p) => p.name === name && !p.beside));

// ---- keys

function keyTable(): Key[] {
  const step = (by: number) => (e: KeyboardEvent) => seen.course?.n && picture.move(by * (e.shiftKey ? 10 : 1));
  const wide = (e: KeyboardEvent): number => (e.shiftKey ? 4 : 1);
  const pictured = (act: (e: KeyboardEvent) => unknown) => (e: KeyboardEvent) => seen.course?.n && act(e);
  return [
    ...shownViews().map((v, i) => ({ keys: [String(i + 1)], show: i ? "" : `1 … ${shownViews().length}`, does: "the views", act: () => go(v) })),
    { keys: ["ArrowLeft"], show: "←  →", does: "the cursor, by samples (shift: ten)", act: step(-1) },
    { keys: ["ArrowRight"], show: "", does: "", act: step(1) },
    { keys: ["Home"], show: "Home  End", does: "the first, the last sample", act: pictured(() => picture.end(false)) },
    { keys: ["End"], show: "", does: "", act: pictured(() => picture.end(true)) },
    { keys: ["ArrowUp"], show: "↑  ↓", does: "the one above, below in the table", act: () => neighbor(-1) },
    { keys: ["ArrowDown"], show: "", does: "", act: () => neighbor(1) },
    { keys: ["w"], show: "w  s", does: "zoom (shift: more)", act: pictured((e) => picture.zoomBy(0.8 ** wide(e))) },
    { keys: ["s"], show: "", does: "", act: pictured((e) => picture.zoomBy(1.25 ** wide(e))) },
    { keys: ["a"], show: "a  d", does: "move (shift: more)", act: pictured((e) => picture.pan(-0.1 * wide(e))) },
    { keys: ["d"], show: "", does: "", act: pictured((e) => picture.pan(0.1 * wide(e))) },
    { keys: ["0"], show: "0", does: "all of time", act: () => set({ win: null }) },
    { keys: ["f"], show: "f", does: "fit the selection", act: pictured(() => picture.fit()) },
    { keys: ["l"], show: "l", does: "as far as the limit, or to the last sample", act: () => drawn()?.e.toLimit && set({ ahead: !ahead(), win: null }, true) },
    { keys: ["z"], show: "z", does: "what was judged alone, or all", act: () => stackable() && set({ alone: !s.alone }, true) },
    { keys: ["m"], show: "m", does: "mappings by address, or kinds of memory", act: () => subject()?.mappings && set({ mapped: !mapped(), alone: false }, true) },
    { keys: ["/"], show: "/", does: "search, a regular expression", act: () => byId("search").focus() },
    { keys: ["e"], show: "e", does: "save the picture or the page, copy the link", act: give },
    { keys: ["Escape"], show: "Esc", does: "step back out", act: out },
    { keys: ["?"], show: "?", does: "these keys", act: help },
  ];
}

/** Goes to the next subject of the table. */
function neighbor(by: number): void {
  const all = view() === "findings" ? [] : listed();
  const at = all.findIndex((x) => x.key === subject()?.key);
  const to = all[Math.max(0, Math.min(all.length - 1, at + by))];
  if (to) set({ sub: to.key, finding: null, win: null, range: null, alone: false, ahead: null });
}

function out(): void {
  const field = document.activeElement;
  if (field instanceof HTMLInputElement) return s.q ? ((field.value = ""), set({ q: "" })) : field.blur();
  if (s.range) set({ range: null }, true);
  else if (s.alone) set({ alone: false }, true);
  else if (s.win) set({ win: null }, true);
  else if (s.k !== null) set({ k: null });
}

async function savePicture(): Promise<void> {
  const x = subject();
  if (!x || !seen.course?.n) return;
  const style = getComputedStyle(document.documentElement);
  const png = await compose(`${base(doc.file)} · ${x.label}, ${x.place}`, [picture.canvas()], style.getPropertyValue("--page"), style.getPropertyValue("--ink"));
  if (png) save(`strandline-${base(doc.file)}.png`, png);
}

const gifts = (): Command[] => [{ key: "png", name: "Picture", does: "as PNG", off: !seen.course?.n, act: savePicture }, ...sharing(base(doc.file), () => location.hash, (text) => (byId("live").textContent = text))];

const give = (): void => share(gifts());

/** All that can be done or turned to. */
function commands(): Command[] {
  return [
    ...shownViews().map((v) => ({ key: v, name: views[v], does: "view", act: () => go(v) })),
    ...doc.findings.map((f, i) => ({ key: `finding ${i}`, name: f.title, does: f.kind, act: () => set({ view: "findings", finding: i, sub: f.subject, win: null, range: null, ahead: null, alone: false }, true) })),
    ...doc.subjects.map((x) => ({ key: `subject ${x.key}`, name: x.label, does: x.place, act: () => set({ sub: x.key, finding: null, win: null, range: null, alone: false, ahead: null }, true) })),
    ...gifts().map((c) => ({ ...c, name: `Save or share: ${c.name}` })),
    ...keyCommands(keyTable()),
  ];
}

function help(): void {
  showKeys(keyTable(), "Drag on the picture to select, click for a moment, turn the wheel to zoom. The address holds all that is chosen.", ...termList(watchTerms));
}

// ---- begin

let saying = 0;

/** Announces to screen readers where the cursor is, once the hand rests. */
function announce(): void {
  clearTimeout(saying);
  saying = window.setTimeout(() => {
    const at = spot();
    if (at && at.column >= 0) byId("live").textContent = `${subject()?.label}, ${moment(at.course.of.at[at.column]!)}: ${bytes(at.course.of.max_bytes[at.column]!)}`;
  }, 500);
}

/** Takes newer answers as long as they come. */
async function follow(): Promise<void> {
  for (;;) {
    const began = performance.now();
    try {
      load(await fresh<Watch>("watch", { since: doc.version }));
      draw();
    } catch (e) {
      if (!(e instanceof Refused)) throw e;
      if (e.status === 403) return; // the program is another run's, and never answers this page
      // the link shows to the reader that it is away; another try follows
    }
    const least = 1000;
    await new Promise((r) => setTimeout(r, Math.max(least - (performance.now() - began), doc.reading ? 200 : least / 2)));
  }
}

async function begin(): Promise<void> {
  takeDrops(banner);
  hooks.changed = () => (draw(), announce());
  hooks.draw = draw;
  hooks.failed = banner;
  link.changed = () => banner(link.lost ? `${link.why} What is here stays.` : "");
  load(await fresh<Watch>("watch"));
  if (doc.partial !== null) banner(coverage()[2]);
  const field = byId<HTMLInputElement>("search");
  field.addEventListener("input", () => set({ q: field.value }));
  byId("help").addEventListener("click", help);
  byId("export").addEventListener("click", give);
  const there = (): void => {
    fromAddress();
    field.value = s.q;
  };
  addEventListener("popstate", there);
  listen(keyTable);
  palette(commands);
  there();
  theme(draw);
  if (!link.saved && (doc.reading || doc.following)) void follow();
}

declare global {
  interface Window {
    strandline: unknown;
  }
}

window.strandline = {
  state: () => ({ s, doc, view: doc ? view() : null, subject: doc ? subject() : null, judged: doc ? judged() : null, picture: seen.course?.n ? picture.state() : null, settled: doc !== undefined && !doc.reading && drawing === 0 && !asking(), levels: seen.course?.of }),
};

begin().catch((e: Error) => banner(e.message));

