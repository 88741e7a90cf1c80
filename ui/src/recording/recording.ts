// The page of `strandline view RECORDING`: how memory grew while `strandline
// trace` watched, and the stacks behind it. All figures are the program's.

import { fresh, Latest, link, type Refused } from "../base/ask.ts";
import { byId, fill, h } from "../base/dom.ts";
import { article, findingList, spark } from "../findings/findings.ts";
import { base, bytes, bytesOrDash, count, delta, percent, utc } from "../base/format.ts";
import { Icicle } from "../picture/icicle.ts";
import { listen, type Key } from "../base/keys.ts";
import { flameOf, groupsOf, heldBy, layersOf, others, Slice, time, type Group, type Layers } from "./bands.ts";
import { highest, Picture } from "./picture.ts";
import { decode, encode, first, views, type State, type View } from "./state.ts";
import type { Device, GPUStack, Recording, Stack, Window } from "./wire.ts";
import { csv, csvButton, picture as compose, save } from "../base/save.ts";
import { Saved } from "../page/saved.ts";
import type { Span } from "../base/scale.ts";
import { stackList } from "../base/stack.ts";
import { table, type Column, type Row } from "../base/table.ts";
import { theme } from "../base/theme.ts";

const root = byId("view");
const live = byId("live");
const picture = new Picture(byId("rail"), byId("tooltip"));

let doc: Recording;
let whole: Slice; // all of time
let slice: Slice; // what is seen, or all
let s: State = first;
let layers: Layers;
let query: RegExp | null = null; // the last search that was one
let found: Set<string> | null = null; // the groups that match it
let sort = { column: 0, up: false };
const finer = new Latest(60);

// ---- the state, and the address that holds it

let noting = 0;

/** Changes what is looked at. A step is one to which Back returns. */
function set(change: Partial<State>, step = false): void {
  const next = { ...s, ...change };
  if (next.sel === null) next.alone = false;
  if (encode(next) === encode(s)) return;
  clearTimeout(noting);
  if (step) {
    history.replaceState(null, "", encode(s));
    history.pushState(null, "", encode(next));
  } else noting = window.setTimeout(() => history.replaceState(null, "", encode(s)), 250);
  take(next);
}

function take(next: State): void {
  const before = s;
  s = next;
  if (s.g !== before.g) layers = layersOf(doc, groupsOf(doc, s.g), highest(whole.growth));
  if (s.g !== before.g || s.q !== before.q) search();
  if (String(s.win) !== String(before.win)) look();
  if (encode(s) === encode(before)) return;
  draw();
  say();
}

let drawing = 0;

/** Draws once, however much changes before the next frame. */
function draw(): void {
  cancelAnimationFrame(drawing);
  drawing = requestAnimationFrame(() => {
    drawing = 0;
    picture.draw({ doc, slice, whole, layers, s, found, set });
    tabs();
    tools();
    view();
    inspector();
  });
}

/** Asks for finer moments where the window leaves some out. */
function look(): void {
  finer.cancel();
  const { win } = s;
  if (!win || whole.n === doc.moments) return void (slice = whole);
  const [a, b] = [whole.at(win[0]), whole.at(win[1])];
  const from = whole.of.moment[Math.max(0, a - 1)]!;
  const to = whole.of.moment[Math.min(whole.n - 1, b + 1)]!;
  const covers = slice !== whole && slice.of.from <= from && to <= slice.of.to;
  if (covers && slice.n === slice.of.to - slice.of.from + 1) return; // there are no finer ones
  if (!covers) slice = whole;
  finer.ask(
    () => fresh<Window>("window", { from, to }),
    (answer) => {
      slice = new Slice(answer);
      draw();
    },
    (e) => (e as Refused).status !== 404 && banner(e.message), // a saved page holds the whole alone
  );
}

/** Where to read what is held at a moment: the finer moments, if they reach there. */
function at(moment: number | null): { slice: Slice; column: number } {
  const k = moment ?? whole.of.moment[whole.n - 1] ?? 0;
  const from = slice.n && k >= slice.of.from && k <= slice.of.to ? slice : whole;
  return { slice: from, column: from.column(k) };
}

function search(): void {
  const field = byId<HTMLInputElement>("search");
  let wrong = "";
  try {
    const q = s.q ? new RegExp(s.q) : null;
    found = q && new Set(layers.groups.filter((g) => q.test(g.text)).map((g) => g.key));
    query = q;
  } catch (e) {
    wrong = (e as Error).message;
  }
  field.setAttribute("aria-invalid", String(wrong !== ""));
  field.title = wrong;
}

let saying = 0;

/** Tells screen readers where the cursor is, once the hand rests. */
function say(): void {
  clearTimeout(saying);
  saying = window.setTimeout(() => {
    if (!whole.n) return;
    const { slice, column } = at(s.k);
    const group = layers.groups.find((g) => g.key === s.sel);
    live.textContent = `${time(slice.of.seconds[column]!)}: ${bytes(slice.of.live_bytes[column]!)} mapped${group ? `, ${group.label} ${bytes(heldBy(group, slice, column).bytes)}` : ""}`;
  }, 500);
}

function banner(text: string, wrong = true): void {
  const el = byId("banner");
  el.hidden = text === "";
  el.className = wrong ? "error" : "";
  el.textContent = text;
}

// ---- the frame

const has = (v: View): boolean => v !== "gpu" || doc.gpu.length > 0 || doc.owners.length > 0 || doc.document.gpu !== undefined;
const shownViews = (): View[] => (Object.keys(views) as View[]).filter(has);

function tabs(): void {
  fill(
    byId("tabs"),
    shownViews().map((v, i) => h("button", { type: "button", "data-key": `view ${v}`, "aria-current": s.view === v ? "page" : undefined, title: `${views[v]} (${i + 1})`, onclick: () => set({ view: v }, true) }, views[v] + (v === "findings" && doc.findings.length ? ` ${doc.findings.length + doc.findings_left_out}` : ""))),
  );
}

function head(): void {
  document.title = `${base(doc.file)} – strandline`;
  const other = window.strandlineDoor ? h("button", { type: "button", id: "other", title: "Begin anew with other files", onclick: () => location.assign(location.pathname) }, "other files") : null;
  fill(byId("files"), h("span", { id: "name", title: doc.file }, base(doc.file)), h("span", { class: "muted" }, `${doc.name}, process ${doc.pid}`), other);
  const badge = byId("coverage");
  badge.hidden = false;
  badge.dataset.kind = doc.partial !== null ? "damaged" : doc.rung === "polling" ? "late" : "exact";
  badge.textContent = doc.partial !== null ? "partial" : `seen by ${doc.rung}`;
  badge.title = coverage();
  badge.onclick = () => banner(byId("banner").hidden ? coverage() : "", doc.partial !== null);
  if (doc.partial !== null) banner(coverage());
}

const polled = "The process was only polled: it is seen how it grew, and not what mapped the memory.";

/** What the recording is good for. */
function coverage(): string {
  const out = [doc.partial !== null ? `This recording is only partly readable: ${doc.partial}. What stands before it is shown.` : "The whole recording was read."];
  const end = whole.of.seconds[whole.n - 1] ?? 0;
  if (doc.judged_seconds === null) out.push("It ends before memory was judged for the first time: there are no findings, and nothing is known of what is resident.");
  else if (doc.judged_seconds < end) out.push(`Findings and resident bytes are those of the last judgement, at ${time(doc.judged_seconds)}; memory is known up to ${time(end)}.`);
  if (doc.rung === "polling") out.push(polled);
  const d = doc.document;
  if (d.drops + d.stack_drops > 0) out.push(`${count(d.drops)} events and ${count(d.stack_drops)} stacks were lost; sums were set right by the kernel's list.`);
  return out.join(" ");
}

function tools(): void {
  const by = (g: State["g"], label: string): Node => h("button", { type: "button", "data-key": `by ${g}`, "aria-pressed": String(s.g === g), onclick: () => set({ g, sel: null, stack: null }, true) }, label);
  const scale = (y: "mapped" | "resident"): Node => h("button", { type: "button", "data-key": `y ${y}`, "aria-pressed": String(picture.fits === y), title: y === "mapped" ? "As high as all that is mapped (y)" : "As high as resident memory grew: what is only reserved is cut off (y)", onclick: () => set({ y }, true) }, y);
  const group = layers.groups.find((x) => x.key === s.sel);
  const seen = slice.of.moment.length;
  const of = slice === whole ? doc.moments : slice.of.to - slice.of.from + 1;
  fill(
    byId("tools"),
    h("span", { class: "choice", role: "group", "aria-label": "Bands by" }, "bands by ", by("line", "own line"), by("stack", "stack")),
    s.alone ? null : h("span", { class: "choice", role: "group", "aria-label": "Scale" }, "as high as ", scale("mapped"), scale("resident")),
    group ? h("button", { type: "button", class: "chip", "data-key": "alone", "aria-pressed": String(s.alone), title: s.alone ? "Show all (z)" : "Show it alone, on its own scale (z)", onclick: () => set({ alone: !s.alone }, true) }, h("span", { class: `sw s${group.slot}` }), s.alone ? "show all" : "show alone") : null,
    s.range ? h("button", { type: "button", class: "chip", "data-key": "range", title: "Drop the selection (Esc)", onclick: () => set({ range: null, of: "cursor" }, true) }, `selected: ${rangeWords(s.range)}`, " ×") : null,
    s.win ? h("button", { type: "button", class: "chip", "data-key": "all", title: "Show all of time (0)", onclick: () => set({ win: null }, true) }, `seen: ${time(picture.win[0])} – ${time(picture.win[1])}`, " ×") : null,
    h("span", {}, seen === of ? `${count(of)} moments` : `${count(seen)} of ${count(of)} moments: those at which most was mapped or resident`),
    h("span", { class: "legend" }, h("span", {}, h("i", { class: "res" }), "growth of resident memory"), layers.bands.kept ? h("span", {}, h("i", { class: "kept" }), "below: what findings name") : null, h("span", {}, h("i", { class: "steady" }), "pale: no finding")),
  );
}

function rangeWords([a, b]: Span): string {
  const t = (k: number): string => {
    const { slice, column } = at(k);
    return time(slice.of.seconds[column] ?? 0);
  };
  return `${t(a)} – ${t(b)}`;
}

function view(): void {
  if (!whole.n && s.view !== "findings") return fill(root, h("p", { class: "note" }, "There is no moment in this recording: it ended before the first one."));
  if (s.view === "timeline") timeline();
  else if (s.view === "stacks") stacks();
  else if (s.view === "gpu") gpu();
  else findings();
}

// ---- what is held, or grew

interface Place extends Row {
  bytes: number;
  count: number;
  group: Group;
  peak: number;
}

/** What each stack holds at the cursor, or by how much that grew in the range. */
function amounts(): { bytes: number; count: number }[] {
  const end = at(s.of === "range" && s.range ? s.range[1] : s.k);
  const start = s.of === "range" && s.range ? at(s.range[0]) : null;
  return end.slice.stacks.map((held, i) => ({
    bytes: held.bytes[end.column]! - (start?.slice.stacks[i]!.bytes[start.column] ?? 0),
    count: held.count[end.column]! - (start?.slice.stacks[i]!.count[start.column] ?? 0),
  }));
}

const growing = (): boolean => s.of === "range" && s.range !== null;

function choice(): HTMLElement {
  const { slice, column } = at(s.k);
  const one = (of: State["of"], label: string, ready = true): Node => h("button", { type: "button", "data-key": `of ${of}`, "aria-pressed": String((growing() ? "range" : "cursor") === of), disabled: !ready, onclick: () => set({ of }, true) }, label);
  return h("div", { class: "choice" }, one("cursor", `held at ${time(slice.of.seconds[column] ?? 0)}`), one("range", s.range ? `grew in ${rangeWords(s.range)}` : "grew in the selection", s.range !== null));
}

/** The places, sortable, and what goes with their table. */
function places(): { total: number; grew: boolean; csv: Node; table: HTMLElement } {
  const held = amounts();
  const grew = growing();
  const amount = (n: number): string => (grew ? (n === 0 ? "–" : delta(n)) : bytesOrDash(n));
  const total = held.reduce((sum, a) => sum + a.bytes, 0);
  const rows: Place[] = layers.groups
    .filter((g) => !found || found.has(g.key))
    .map((g) => ({
      key: g.key, label: g.label, slot: g.slot, selected: g.key === s.sel, dim: !g.grows, group: g,
      bytes: g.stacks.reduce((n, i) => n + held[i]!.bytes, 0), count: g.stacks.reduce((n, i) => n + held[i]!.count, 0), peak: peakOf(g),
    }));
  const signed = (n: number): string => (n > 0 && grew ? "+" : "") + count(n);
  const columns: Column<Place>[] = [
    { name: grew ? "grew by" : "bytes", of: (r) => r.bytes, show: (r) => amount(r.bytes), bytes: true },
    { name: "share", of: (r) => r.bytes, show: (r) => percent(r.bytes, total) },
    { name: "pieces", of: (r) => r.count, show: (r) => signed(r.count) },
    { name: "most", of: (r) => r.peak, show: (r) => bytesOrDash(r.peak), bytes: true, wide: true },
    { name: "first seen", of: (r) => r.group.first ?? Infinity, show: (r) => when(r.group.first), wide: true },
    { name: "last seen", of: (r) => r.group.last ?? -1, show: (r) => when(r.group.last), wide: true },
  ];
  const name = s.g === "line" ? "own line" : "stack";
  const list = table<Place>({
    name, rows, columns, sort: sort.column, up: sort.up,
    onsort: (i) => {
      sort = { column: i, up: sort.column === i && !sort.up };
      draw();
    },
    onrow: (r) => set({ sel: s.sel === r.key ? null : r.key, stack: null }, true),
    onlight: (key) => picture.light(key),
  });
  return { total, grew, csv: csvButton("growth", () => csv(name, rows, columns)), table: h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": "Places" }, list) };
}

/** Fills the view; its table stays where it was scrolled to. */
function show(...parts: (Node | null)[]): void {
  const scrolled = root.querySelector(".scroll")?.scrollTop ?? 0;
  fill(root, parts);
  const scroll = root.querySelector(".scroll");
  if (scroll) scroll.scrollTop = scrolled;
}

function timeline(): void {
  const p = places();
  show(h("div", { class: "bar" }, choice(), h("span", { "data-bytes": p.total, "data-figure": "held" }, p.grew ? `${delta(p.total)} in all` : `${bytes(p.total)} mapped`), h("div", { class: "end" }, p.csv)), layers.groups.length ? p.table : h("p", { class: "note" }, doc.rung === "polling" ? polled : "No memory that was mapped since the trace began stayed until a mark."));
}

const when = (seconds: number | null): string => (seconds === null ? "–" : time(seconds));

const peaks = new WeakMap<Group, number>();

/** The most that a group held. */
function peakOf(g: Group): number {
  let most = peaks.get(g);
  if (most === undefined) {
    most = g.peak;
    if (g.stacks.length > 1 || g.key === others) for (let c = 0; c < whole.n; c++) most = Math.max(most, heldBy(g, whole, c).bytes);
    peaks.set(g, most);
  }
  return most;
}

const icicle = new Icicle({
  tooltip: byId("tooltip"),
  pieces: "pieces",
  slot: (f) => doc.stacks.find((x) => x.label === `${base(f.file)}:${f.line} ${f.function}`)?.slot ?? -1,
  found: () => query,
});

let flamed = "";

function stacks(): void {
  const held = amounts().map((a, i) => (found && !layers.groups.some((g) => g.stacks.includes(i) && found!.has(g.key)) ? { bytes: 0, count: 0 } : a));
  const key = JSON.stringify([s.of, s.k, s.range, s.q, slice.of.from, slice.of.to, s.g]);
  const flame = flameOf(doc, held);
  if (key !== flamed) icicle.show(flame);
  flamed = key;
  const shrunk = held.reduce((sum, a) => sum + Math.min(0, a.bytes), 0);
  const p = places();
  show(
    h(
      "div",
      { class: "bar" },
      choice(),
      h("span", { "data-bytes": flame.bytes, "data-figure": "flame" }, `${bytes(flame.bytes)} in ${count(flame.count)} pieces`),
      shrunk < 0 ? h("span", {}, `what shrank is not drawn: ${delta(shrunk)}`) : null,
      h("div", { class: "end" }, p.csv, h("button", { type: "button", class: "link", "data-key": "fold", "aria-pressed": String(icicle.folded), onclick: () => (icicle.refold(), draw()) }, icicle.folded ? "unfold library frames" : "fold library frames")),
    ),
    flame.bytes > 0 ? icicle.element(Math.round(root.clientHeight * 0.55)) : h("p", { class: "note" }, growing() ? "Nothing grew there." : "Nothing is mapped there that was made since."),
    p.table,
  );
  icicle.paint();
}

// ---- memory of the GPU's driver

interface Taker extends Row {
  bytes: number;
  count: number;
  memory: string;
  owner?: string;
}

const memoryWords: Record<string, string> = { device: "device", managed: "managed", pinned: "pinned host memory", foreign: "handles of other processes" };

function gpu(): void {
  const g = doc.document.gpu;
  const { slice, column } = at(s.k);
  const owners: Taker[] = doc.owners.map((o, i) => ({ key: `${o.owner} ${o.memory}`, label: o.owner, slot: -1, bytes: slice.owners[i]!.bytes[column]!, count: slice.owners[i]!.count[column]!, memory: memoryWords[o.memory] ?? o.memory })).sort((a, b) => b.bytes - a.bytes);
  const places: Taker[] = doc.gpu.map((x, i) => ({ key: String(i), label: x.label, slot: x.slot, selected: s.gpu === i, bytes: x.live_bytes, count: x.live_count, memory: memoryWords[x.memory] ?? x.memory, owner: x.owner }));
  const columns: Column<Taker>[] = [
    { name: "held", of: (r) => r.bytes, show: (r) => bytesOrDash(r.bytes), bytes: true },
    { name: "pieces", of: (r) => r.count, show: (r) => count(r.count) },
    { name: "memory", of: () => 0, show: (r) => r.memory },
  ];
  const common = { sort: -1, up: false, onsort: () => {}, onlight: () => {} };
  const inner = table<Taker>({ ...common, name: "place", rows: places.filter((p) => p.count > 0 && (!query || query.test(`${p.label} ${p.owner}`))), columns: [...columns, { name: "by", of: () => 0, show: (r) => r.owner ?? "" }], onrow: (r) => set({ gpu: s.gpu === Number(r.key) ? null : Number(r.key) }, true) });
  inner.querySelector("caption")!.className = "";
  inner.querySelector("caption")!.textContent = doc.judged_seconds === null ? "" : `Where it was taken: what is held at ${time(doc.judged_seconds)}`;
  fill(
    root,
    h("div", { class: "bar" }, h("span", {}, `held by owner at ${time(slice.of.seconds[column]!)}`)),
    h(
      "div",
      { class: "gpu", tabindex: "0", role: "group", "aria-label": "Memory of the GPU's driver" },
      g && !g.libraries?.length ? h("p", { class: "note" }, "No process has loaded libcuda, so nothing of a GPU could be seen.") : null,
      owners.length ? table<Taker>({ ...common, name: "owner", rows: owners, columns, onrow: () => {} }) : h("p", { class: "note" }, "Nothing was taken from the GPU's driver and kept."),
      places.some((p) => p.count > 0) ? inner : null,
      (g?.devices ?? []).map(device),
    ),
  );
}

/** What the memory of a device is, when the driver was last asked. */
function device(d: Device): HTMLElement {
  const parts = d.parts ?? [];
  const has = (part: string): boolean => parts.some((p) => p.part === part);
  const words: Record<string, (p: (typeof parts)[number]) => string> = {
    pytorch: (p) => `PyTorch: reserved${p.allocated_bytes === undefined ? "" : `, ${bytes(p.allocated_bytes)} of it allocated; ${bytes(p.since_bytes)} taken since the trace began`}`,
    traced: (p) => `${p.owner}, since the trace began${has("pytorch") ? ", outside PyTorch" : ""}`,
    earlier: () => "the processes' contexts, and what they took before the trace began",
    unseen: () => "came since by no call that is watched: code of kernels, graphs, pools",
    others: (p) => `${p.count} other ${p.count === 1 ? "process" : "processes"}`,
    remainder: () => (has("earlier") ? "the remainder: the driver's own, and processes that it does not name" : "the remainder: contexts, what was taken before the trace, other processes"),
  };
  const used = d.used_bytes === null ? "as far as it is known" : `${bytes(d.used_bytes)} used${d.total_bytes === null ? "" : ` of ${bytes(d.total_bytes)}`}`;
  return h(
    "table",
    {},
    h("caption", {}, `GPU memory${d.names?.length ? ` of ${d.names.length === 1 ? "device" : "devices"} ${d.names.join(", ")}` : ""} at ${time(d.at_seconds)}: ${used}`),
    h("tbody", {}, parts.map((p) => h("tr", {}, h("th", { scope: "row" }, words[p.part]?.(p) ?? p.part), h("td", { "data-bytes": p.bytes }, bytes(p.bytes))))),
    d.notes?.length ? h("tfoot", {}, d.notes.map((n) => h("tr", {}, h("td", { colspan: 2, class: "left muted" }, n)))) : null,
  );
}

// ---- findings

function findings(): void {
  if (!doc.findings.length) {
    const why = doc.judged_seconds === null ? "This recording ends before memory was judged for the first time." : doc.verdict === "ok" ? "Nothing is wrong with what this recording tells." : "This recording tells too little for a judgement.";
    return fill(root, h("p", { class: "note" }, why));
  }
  const i = Math.min(s.finding ?? 0, doc.findings.length - 1);
  const f = doc.findings[i]!;
  const show = f.kind === "driver-leak" ? "show where it is taken" : f.stacks.length ? "show in the timeline" : null;
  fill(
    root,
    h(
      "div",
      { class: "findings" },
      findingList(doc.findings, i, (n) => go(n, "findings"), () => null),
      article({ ...f, evidence: shownEvidence(f.evidence) }, [show ? h("button", { type: "button", class: "link", "data-key": "show", onclick: () => go(i, f.kind === "driver-leak" ? "gpu" : "timeline") }, show) : null], () => null),
    ),
  );
}

/** Evidence without the numbers of stacks, which mean nothing to a reader. */
function shownEvidence({ stacks, ...others }: Record<string, unknown> = {}): Record<string, unknown> {
  return others;
}

/** Takes the page to the stack of a finding, and to the time in which it holds something. */
function go(i: number, to: View): void {
  const f = doc.findings[i]!;
  if (f.kind === "driver-leak") {
    const place = doc.gpu.findIndex((x) => f.stacks.includes(x.id));
    return set({ finding: i, view: to, gpu: place < 0 ? null : place }, true);
  }
  const at = doc.stacks.findIndex((x) => x.id === f.stacks[0]);
  const group = layers.groups.find((g) => g.stacks.includes(at));
  if (at < 0 || !group || !whole.n) return set({ finding: i, view: to, sel: null, stack: null, range: null, of: "cursor" }, true);
  const { first_seconds: from, last_seconds: until } = doc.stacks[at]!;
  const { moment, seconds } = whole.of;
  const near = (t: number): number => moment[Math.max(0, seconds.findLastIndex((v) => v <= t))]!;
  set({ finding: i, view: to, sel: group.key, stack: doc.stacks[at]!.id, range: [near(from ?? 0), near(until ?? 0)], of: "range", k: near(until ?? 0) }, true);
}

// ---- the inspector

const row = (name: string, value: string, n?: number): Node[] => [h("dt", {}, name), h("dd", { "data-bytes": n, title: n === undefined ? undefined : `${n} bytes` }, value)];

function inspector(): void {
  const group = layers.groups.find((g) => g.key === s.sel);
  const chosen = s.view === "gpu" && s.gpu !== null && doc.gpu[s.gpu] ? driverStack(doc.gpu[s.gpu]!) : group && whole.n ? place(group) : null;
  fill(byId("inspector"), chosen ?? [], cursor(), chosen ? [] : summary());
}

/** How things stand at the cursor. */
function cursor(): Node[] {
  if (!whole.n) return [];
  const { slice, column: c } = at(s.k);
  const w = slice.of;
  return [
    h("h2", {}, "cursor"),
    h(
      "dl",
      { id: "cursor" },
      h("dt", {}, "time"),
      h("dd", { title: utc(doc.began_us + w.seconds[c]! * 1e6) }, time(w.seconds[c]!)),
      row("mapped since", bytes(w.live_bytes[c]!), w.live_bytes[c]!),
      row("resident", bytes(w.rss_bytes[c]!), w.rss_bytes[c]!),
      row("grew by", delta(slice.growth[c]!), slice.growth[c]!),
      row("of it private", delta(w.anonymous_bytes[c]!), w.anonymous_bytes[c]!),
      row("files", delta(w.file_bytes[c]!), w.file_bytes[c]!),
      row("shared", delta(w.shared_bytes[c]!), w.shared_bytes[c]!),
      w.drops[c]! > 0 ? row("events lost", count(w.drops[c]!)) : [],
    ),
  ];
}

/** What the last judgement says of the whole. */
function summary(): Node[] {
  if (doc.judged_seconds === null) return [];
  const d = doc.document;
  return [
    h("h2", {}, `judged at ${time(doc.judged_seconds)}`),
    h(
      "dl",
      { id: "judged" },
      row("resident", bytes(d.rss_bytes), d.rss_bytes),
      row("grew by", delta(d.rss_growth_bytes), d.rss_growth_bytes),
      d.explained_share === null ? [] : row("explained", d.explained_share ? percent(d.explained_share, 1) : "nothing"),
      row("in older memory", delta(d.growth.older_bytes), d.growth.older_bytes),
      row("stack unknown", bytes(d.growth.unnamed_bytes), d.growth.unnamed_bytes),
      d.paired > 0 ? row("came and went", `${count(d.paired)}, ${bytes(d.paired_bytes)}`) : [],
    ),
    h("p", { class: "muted" }, "Click a band or a row for its stack."),
  ];
}

function place(group: Group): Node[] {
  const { slice, column } = at(s.k);
  const held = (i: number): number => slice.stacks[i]!.bytes[column]!;
  const sorted = [...group.stacks].sort((a, b) => held(b) - held(a));
  const here = heldBy(group, slice, column);
  const out: Node[] = [
    h("h2", {}, s.g === "line" ? "place" : "stack"),
    h("div", { class: "head" }, h("span", { class: `sw s${group.slot}${group.grows ? "" : " freed"}` }), group.label),
    h(
      "dl",
      { id: "place" },
      row("held here", bytes(here.bytes), here.bytes),
      row("pieces", count(here.count)),
      row("most", bytes(peakOf(group)), peakOf(group)),
      group.first === null ? [] : [row("first seen", when(group.first)), row("last seen", when(group.last))],
    ),
  ];
  if (group.key === others) return [...out, h("p", { class: "muted" }, `The largest ${count(doc.stacks.length)} stacks are told by themselves; strandline export --to folded writes all of them.`)];
  const chosen = sorted.find((i) => doc.stacks[i]!.id === s.stack) ?? sorted[0]!;
  if (sorted.length > 1) {
    out.push(
      h("h2", {}, `${count(sorted.length)} stacks`),
      h("dl", { class: "names" }, sorted.slice(0, 12).map((i) => [h("dt", {}, h("button", { type: "button", class: "pick", "data-key": `stack ${i}`, "aria-current": i === chosen ? "true" : undefined, onclick: () => set({ stack: doc.stacks[i]!.id }, true) }, h("span", { class: "name" }, inner(doc.stacks[i]!)))), h("dd", { "data-bytes": held(i) }, bytes(held(i)))]), sorted.length > 12 ? [h("dt", {}, `${sorted.length - 12} more`), h("dd", {}, bytes(sorted.slice(12).reduce((n, i) => n + held(i), 0)))] : []),
    );
  }
  return [...out, ...stack(doc.stacks[chosen]!)];
}

/** What tells a stack from others of the same line: the call, and who made it. */
function inner(x: Stack): string {
  const named = x.frames.find((f) => f.function && !f.function.includes("+0x"));
  return `${x.call} ${named ? named.function : "stack not copied"}`;
}

function stack(x: Stack): Node[] {
  const left = x.frames_left_out > 0 ? h("p", { class: "muted" }, `${count(x.frames_left_out)} more frames are left out.`) : null;
  return [
    h("h2", {}, "stack"),
    h("p", { "data-complete": String(x.complete) }, !x.frames.length ? "The stack was not copied." : x.complete ? "Complete: it goes down to where the thread began." : "Cut: its outermost frames are missing."),
    stackList(x.frames, ""),
    ...(left ? [left] : []),
    h("h2", {}, doc.judged_seconds === null ? "calls" : `calls, at ${when(doc.judged_seconds)}`),
    h(
      "dl",
      {},
      row("call", x.call),
      x.calls ? row("made", `${count(x.calls)}, ${bytes(x.made_bytes)}`, x.made_bytes) : [],
      x.resident_bytes === null ? [] : row("in memory", bytes(x.resident_bytes), x.resident_bytes),
      x.assumed_bytes ? row("assumed", bytes(x.assumed_bytes), x.assumed_bytes) : [],
    ),
  ];
}

function driverStack(x: GPUStack): Node[] {
  return [
    h("h2", {}, "GPU driver"),
    h("div", { class: "head" }, h("span", { class: `sw s${x.slot}` }), x.label),
    h("dl", { id: "place" }, row("held", bytes(x.live_bytes), x.live_bytes), row("pieces", count(x.live_count)), row("memory", memoryWords[x.memory] ?? x.memory), row("by", x.owner)),
    ...(x.trend && x.trend.length > 1 ? [spark(x.trend)] : []),
    ...stack(x),
  ];
}

// ---- keys

function keyTable(): Key[] {
  const step = (by: number) => (e: KeyboardEvent) => picture.move(by * (e.shiftKey ? 10 : 1));
  const wide = (e: KeyboardEvent): number => (e.shiftKey ? 4 : 1);
  return [
    ...shownViews().map((v, i) => ({ keys: [String(i + 1)], show: i ? "" : `1 … ${shownViews().length}`, does: "the views", act: () => set({ view: v }, true) })),
    { keys: ["ArrowLeft"], show: "←  →", does: "the cursor, by moments (shift: ten)", act: step(-1) },
    { keys: ["ArrowRight"], show: "", does: "", act: step(1) },
    { keys: ["Home"], show: "Home  End", does: "the first, the last moment", act: () => set({ k: 0 }) },
    { keys: ["End"], show: "", does: "", act: () => set({ k: null }) },
    { keys: ["ArrowUp"], show: "↑  ↓", does: "the next band at the cursor", act: () => picture.next(true) },
    { keys: ["ArrowDown"], show: "", does: "", act: () => picture.next(false) },
    { keys: ["w"], show: "w  s", does: "zoom (shift: more)", act: (e) => picture.zoomBy(0.8 ** wide(e)) },
    { keys: ["s"], show: "", does: "", act: (e) => picture.zoomBy(1.25 ** wide(e)) },
    { keys: ["a"], show: "a  d", does: "move (shift: more)", act: (e) => picture.pan(-0.1 * wide(e)) },
    { keys: ["d"], show: "", does: "", act: (e) => picture.pan(0.1 * wide(e)) },
    { keys: ["0"], show: "0", does: "all of time", act: () => set({ win: null }) },
    { keys: ["["], show: "[  ]", does: "the selection begins, ends at the cursor", act: () => mark(0) },
    { keys: ["]"], show: "", does: "", act: () => mark(1) },
    { keys: ["f"], show: "f", does: "fit the selection", act: () => picture.fit() },
    { keys: ["z"], show: "z", does: "the chosen band alone, or all", act: () => s.sel !== null && set({ alone: !s.alone }, true) },
    { keys: ["g"], show: "g", does: "bands by own line, or by stack", act: () => set({ g: s.g === "line" ? "stack" : "line", sel: null, stack: null }, true) },
    { keys: ["y"], show: "y", does: "as high as what is mapped, or resident", act: () => set({ y: picture.fits === "mapped" ? "resident" : "mapped" }, true) },
    { keys: ["/"], show: "/", does: "search, a regular expression", act: () => byId("search").focus() },
    { keys: ["e"], show: "e", does: "save the picture", act: () => void give() },
    { keys: ["Escape"], show: "Esc", does: "step back out", act: out },
    { keys: ["?"], show: "?", does: "these keys", act: help },
  ];
}

/** Puts an end of the range at the cursor. */
function mark(end: 0 | 1): void {
  const { slice, column } = at(s.k);
  const k = slice.of.moment[column] ?? 0;
  const other = s.range ? s.range[1 - end]! : end ? 0 : (whole.of.moment[whole.n - 1] ?? 0);
  set({ range: [Math.min(k, other), Math.max(k, other)], of: "range" }, true);
}

function out(): void {
  const field = document.activeElement;
  if (field instanceof HTMLInputElement) return s.q ? ((field.value = ""), set({ q: "" })) : field.blur();
  if (s.alone) set({ alone: false }, true);
  else if (s.range) set({ range: null, of: "cursor" }, true);
  else if (s.sel !== null) set({ sel: null, stack: null }, true);
}

async function give(): Promise<void> {
  const style = getComputedStyle(document.documentElement);
  const png = await compose(`${base(doc.file)} · ${doc.name}, process ${doc.pid}`, [picture.canvas()], style.getPropertyValue("--page"), style.getPropertyValue("--ink"));
  if (png) save(`strandline-${base(doc.file)}.png`, png);
}

function help(): void {
  const dialog = byId<HTMLDialogElement>("keys");
  fill(
    dialog,
    h("h2", { id: "keys-title" }, "Keys"),
    h("div", { class: "cols" }, keyTable().filter((k) => k.show).map((k) => h("div", {}, h("span", {}, k.show.split("  ").map((x, i) => [i ? " " : "", h("kbd", {}, x)])), h("span", {}, k.does)))),
    h("p", { class: "muted" }, "Drag on the picture to select, click for a moment and a band, turn the wheel to zoom. The address holds all that is chosen."),
    h("button", { type: "button", class: "link", onclick: () => dialog.close() }, "close"),
  );
  dialog.showModal();
}

// ---- all together

async function begin(): Promise<void> {
  const { engine } = document.documentElement.dataset;
  if (engine === "saved") {
    link.door = new Saved().ask;
    link.saved = true;
  } else if (engine === "worker") {
    if (!window.strandlineDoor) return location.replace("./"); // recordings are dropped there
    link.door = window.strandlineDoor;
  }
  link.changed = () => banner(link.lost ? `${link.why}. What is here stays.` : "");
  const [answer, moments] = await Promise.all([fresh<Recording>("recording"), fresh<Window>("window")]);
  doc = answer;
  whole = slice = new Slice(moments);
  layers = layersOf(doc, groupsOf(doc, s.g), highest(whole.growth));
  head();
  const field = byId<HTMLInputElement>("search");
  field.addEventListener("input", () => set({ q: field.value }));
  byId("help").addEventListener("click", help);
  byId("export").addEventListener("click", () => void give());
  const go = (): void => {
    clearTimeout(noting);
    take(decode(location.hash));
    field.value = s.q;
  };
  addEventListener("popstate", go);
  listen(keyTable);
  new ResizeObserver(() => s.view === "stacks" && icicle.paint()).observe(root);
  go();
  theme(draw);
}

declare global {
  interface Window {
    strandline: unknown;
  }
}

window.strandline = { state: () => ({ s, doc, picture: doc ? picture.state() : null, settled: doc !== undefined && drawing === 0, columns: slice?.of.moment }) };
begin().catch((e: Error) => banner(e.message));
