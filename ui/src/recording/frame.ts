// The frame of the page of a recording: name, tabs, tools, banner.

import { byId, fill, h } from "../base/dom.ts";
import { otherFiles } from "../base/drops.ts";
import { base, count, plural } from "../base/format.ts";
import { time } from "./bands.ts";
import { picture } from "./elements.ts";
import { doc, layers, rangeWords, s, set, slice, whole } from "./model.ts";
import { views, type State, type View } from "./state.ts";

export function banner(text: string, wrong = true): void {
  const el = byId("banner");
  el.hidden = text === "";
  el.className = wrong ? "error" : "";
  el.textContent = text;
}

const has = (v: View): boolean => v !== "gpu" || doc.gpu.length > 0 || doc.owners.length > 0 || doc.document.gpu !== undefined;

export const shownViews = (): View[] => (Object.keys(views) as View[]).filter(has);

export function tabs(): void {
  fill(
    byId("tabs"),
    shownViews().map((v, i) => h("button", { type: "button", "data-key": `view ${v}`, "aria-current": s.view === v ? "page" : undefined, title: `${views[v]} (${i + 1})`, onclick: () => set({ view: v }, true) }, views[v] + (v === "findings" && doc.findings.length ? ` ${doc.findings.length + doc.findings_left_out}` : ""))),
  );
}

export function head(): void {
  document.title = `${base(doc.file)} – strandline`;
  fill(byId("files"), h("span", { id: "name", title: doc.file }, base(doc.file)), h("span", { class: "muted" }, `${doc.name}, process ${doc.pid}`), otherFiles());
  const badge = byId("coverage");
  badge.hidden = false;
  badge.dataset.kind = doc.partial !== null ? "damaged" : doc.rung === "polling" ? "late" : "exact";
  badge.textContent = doc.partial !== null ? "partial" : `seen by ${doc.rung}`;
  badge.title = coverage();
  badge.onclick = () => banner(byId("banner").hidden ? coverage() : "", doc.partial !== null);
  if (doc.partial !== null) banner(coverage());
}

export const polled = "The process was only polled: it is seen how it grew, and not what mapped the memory.";

/** What the recording is good for. */
function coverage(): string {
  const out = [doc.partial !== null ? `This recording is only partly readable: ${doc.partial}. What comes before that is shown.` : "The whole recording was read."];
  const end = whole.of.seconds[whole.n - 1] ?? 0;
  if (doc.judged_seconds === null) out.push("It ends before memory was judged for the first time: there are no findings, and resident memory is unknown.");
  else if (doc.judged_seconds < end) out.push(`Findings and resident bytes are those of the last judgment, at ${time(doc.judged_seconds)}; memory is known up to ${time(end)}.`);
  if (doc.rung === "polling") out.push(polled);
  const d = doc.document;
  if (d.drops + d.stack_drops > 0) out.push(`${plural(d.drops, "event")} and ${plural(d.stack_drops, "stack")} were lost; sums were set right by the kernel's list.`);
  return out.join(" ");
}

export function tools(): void {
  const by = (g: State["g"], label: string): Node => h("button", { type: "button", "data-key": `by ${g}`, "aria-pressed": String(s.g === g), onclick: () => set({ g, sel: null, stack: null }, true) }, label);
  const scale = (y: "mapped" | "resident"): Node => h("button", { type: "button", "data-key": `y ${y}`, "aria-pressed": String(picture.fits === y), title: y === "mapped" ? "Scale to all that is mapped (y)" : "Scale to the growth of resident memory: what is only reserved is cut off (y)", onclick: () => set({ y }, true) }, y);
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
    h("span", {}, seen === of ? plural(of, "moment") : `${count(seen)} of ${plural(of, "moment")}: those at which most was mapped or resident`),
    h("span", { class: "legend" }, h("span", {}, h("i", { class: "res" }), "growth of resident memory"), layers.bands.kept ? h("span", {}, h("i", { class: "kept" }), "below: what findings name") : null, h("span", {}, h("i", { class: "steady" }), "pale: no finding")),
  );
}
