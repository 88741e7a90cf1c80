// The page of `strandline view RECORDING`: how memory grew while `strandline
// trace` watched, and the stacks behind it. All figures are the program's.

import { fresh } from "../base/ask.ts";
import { note } from "../base/controls.ts";
import { fill } from "../base/dom.ts";
import { base, bytes, time } from "../base/format.ts";
import { announce, banner, drawing, frame, tabs } from "../base/frame.ts";
import { traceTerms } from "../base/hostterms.ts";
import { theme } from "../base/theme.ts";
import { heldBy } from "./bands.ts";
import { findings } from "./findings.ts";
import { go, head, shownViews, tools } from "./frame.ts";
import { gpu } from "./gpu.ts";
import { inspector } from "./inspector.ts";
import { at, doc, found, layers, load, rest, root, s, set, slice, store, view, whole } from "./model.ts";
import { icicle, stacks, timeline } from "./places.ts";
import { timeKeys } from "../picture/time.ts";
import type { Key } from "../base/keys.ts";
import { picture } from "./picture.ts";
import type { Recording, Window } from "../base/api.ts";

drawing.draw = () => {
  picture.draw({ doc, slice, whole, layers, s, tall: view() === "timeline", rest: whole.of.moment[rest()] ?? 0, found, set });
  tabs(shownViews(), view(), go);
  tools();
  main();
  inspector();
};

/** Where the cursor is, in words. */
function where(): string | undefined {
  if (!whole.n) return undefined;
  const { slice, column } = at(s.k);
  const group = layers.groups.find((g) => g.key === s.sel);
  return `${time(slice.of.seconds[column]!)}: ${bytes(slice.of.live_bytes[column]!)} mapped${group ? `, ${group.label} ${bytes(heldBy(group, slice, column).bytes)}` : ""}`;
}

function main(): void {
  const v = view();
  if (!whole.n && v !== "findings") return fill(root, note("There is no moment in this recording: it ended before the first one."));
  if (v === "timeline") timeline();
  else if (v === "stacks") stacks();
  else if (v === "gpu") gpu();
  else findings();
}

function keyTable(): Key[] {
  return [
    ...timeKeys(picture, () => whole.n, "moment"),
    { keys: ["ArrowUp", "ArrowDown"], show: "↑  ↓", does: "the next band at the cursor", act: (_, down) => picture.next(!down) },
    { keys: ["[", "]"], show: "[  ]", does: "the selection begins, ends at the cursor", act: (_, end) => setEnd(end ? 1 : 0) },
    { keys: ["z"], show: "z", does: "the chosen band alone, or all", act: () => s.sel !== null && set({ alone: !s.alone }, true) },
    { keys: ["g"], show: "g", does: "bands by own line, or by stack", act: () => set({ g: s.g === "line" ? "stack" : "line", sel: null, stack: null }, true) },
    { keys: ["y"], show: "y", does: "scale to mapped or to resident memory", act: () => set({ y: picture.fits === "mapped" ? "resident" : "mapped" }, true) },
    { keys: ["Escape"], show: "Esc", does: "step back out", act: out },
  ];
}

/** Puts an end of the range at the cursor. */
function setEnd(end: 0 | 1): void {
  const { slice, column } = at(s.k);
  const k = slice.of.moment[column] ?? 0;
  const other = s.range ? s.range[1 - end]! : end ? 0 : (whole.of.moment[whole.n - 1] ?? 0);
  set({ range: [Math.min(k, other), Math.max(k, other)], of: "range" }, true);
}

function out(): void {
  if (s.alone) set({ alone: false }, true);
  else if (s.range) set({ range: null, of: "cursor" }, true);
  else if (s.sel !== null) set({ sel: null, stack: null }, true);
}

async function begin(): Promise<void> {
  const [answer, moments] = await Promise.all([fresh<Recording>("recording"), fresh<Window>("window")]);
  load(answer, moments);
  const name = base(doc.file);
  frame({
    views: shownViews, go, keys: keyTable, terms: traceTerms,
    help: "Drag on the picture to select, click for a moment and a band, turn the wheel to zoom. The address holds all that is chosen.",
    name: () => name, title: () => `${name} · ${doc.name}, process ${doc.pid}`, pictures: () => [picture.canvas()],
    places: () => doc.findings.map((f, i) => ({ key: `finding ${i}`, name: f.title, does: f.kind, act: () => set({ view: "findings", finding: i }, true) })),
    link: () => store.link, search: (q) => set({ q }),
  });
  head();
  store.on(() => (drawing.ask(), announce(where)));
  new ResizeObserver(() => view() === "stacks" && icicle.paint()).observe(root);
  theme(drawing.ask);
}

window.strandline = { state: () => ({ s, doc, picture: doc ? picture.state() : null, settled: doc !== undefined && !drawing.frame, columns: slice?.of.moment }) };

begin().catch((e: Error) => banner(e.message));
