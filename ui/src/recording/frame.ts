// The frame of the page of a recording: name, tabs, tools, banner.

import { byId, fill, h, swatch } from "../base/dom.ts";
import { chip, choice, choices } from "../base/controls.ts";
import { otherFiles } from "../base/drops.ts";
import { badge, banner, type Tab } from "../base/frame.ts";
import { base, count, plural, time } from "../base/format.ts";
import { picture } from "./picture.ts";
import { doc, layers, rangeWords, s, set, slice, whole } from "./model.ts";
import { views, type State, type View } from "./state.ts";

const has = (v: View): boolean => v !== "gpu" || doc.gpu.length > 0 || doc.owners.length > 0 || doc.summary.gpu !== undefined;

export const shownViews = (): Tab[] => (Object.keys(views) as View[]).filter(has).map((key) => ({ key, name: views[key], n: key === "findings" ? doc.findings.length + doc.findings_left_out : 0 }));

export const go = (view: string): void => set({ view: view as View }, true);

export function head(): void {
  document.title = `${base(doc.file)} – strandline`;
  fill(byId("files"), h("span", { id: "name", title: doc.file }, base(doc.file)), h("span", { class: "muted" }, `${doc.name}, process ${doc.pid}`), otherFiles());
  const partial = doc.partial !== null;
  badge(partial ? "damaged" : doc.rung === "polling" ? "late" : "exact", partial ? "partial" : `seen by ${doc.rung}`, coverage());
  if (partial) banner(coverage());
}

export const polled = "The process was only polled: it is seen how it grew, and not what mapped the memory.";

/** What the recording is good for. */
function coverage(): string {
  const out = [doc.partial !== null ? `This recording is only partly readable: ${doc.partial}. What comes before that is shown.` : "The whole recording was read."];
  const end = whole.of.seconds[whole.n - 1] ?? 0;
  if (doc.judged_seconds === null) out.push("It ends before memory was judged for the first time: there are no findings, and resident memory is unknown.");
  else if (doc.judged_seconds < end) out.push(`Findings and resident bytes are those of the last judgment, at ${time(doc.judged_seconds)}; memory is known up to ${time(end)}.`);
  if (doc.rung === "polling") out.push(polled);
  const d = doc.summary;
  if (d.drops + d.stack_drops > 0) out.push(`${plural(d.drops, "event")} and ${plural(d.stack_drops, "stack")} were lost; sums were set right by the kernel's list.`);
  return out.join(" ");
}

export function tools(): void {
  const by = (g: State["g"], label: string): Node => choice(`by ${g}`, label, s.g === g, () => set({ g, sel: null, stack: null }, true));
  const scale = (y: "mapped" | "resident"): Node => choice(`y ${y}`, y, picture.fits === y, () => set({ y }, true), null, { title: y === "mapped" ? "Scale to all that is mapped (y)" : "Scale to the growth of resident memory: what is only reserved is cut off (y)" });
  const group = layers.groups.find((x) => x.key === s.sel);
  const seen = slice.of.moment.length;
  const of = slice === whole ? doc.moments : slice.of.to - slice.of.from + 1;
  fill(
    byId("tools"),
    choices("bands by ", [by("line", "own line"), by("stack", "stack")]),
    s.alone ? null : choices("as high as ", [scale("mapped"), scale("resident")]),
    group ? chip("alone", [swatch(group.slot), s.alone ? "show all" : "show alone"], s.alone ? "Show all (z)" : "Show it alone, on its own scale (z)", () => set({ alone: !s.alone }, true), s.alone) : null,
    s.range ? chip("range", `selected: ${rangeWords(s.range)} ×`, "Drop the selection (Esc)", () => set({ range: null, of: "cursor" }, true)) : null,
    s.win ? chip("all", `seen: ${time(picture.win[0])} – ${time(picture.win[1])} ×`, "Show all of time (0)", () => set({ win: null }, true)) : null,
    h("span", {}, seen === of ? plural(of, "moment") : `${count(seen)} of ${plural(of, "moment")}: those at which most was mapped or resident`),
    h("span", { class: "legend" }, h("span", {}, h("i", { class: "res" }), "growth of resident memory"), layers.bands.kept ? h("span", {}, h("i", { class: "kept" }), "below: what findings name") : null, h("span", {}, h("i", { class: "steady" }), "pale: no finding")),
  );
}
