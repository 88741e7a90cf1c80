// The inspector of a recording: the cursor, what was chosen, and its stack.

import { button, textLink } from "../base/controls.ts";
import { byId, fill, h, swatch } from "../base/dom.ts";
import { bytes, count, delta, percent, plural, utc, time } from "../base/format.ts";
import { stackList } from "../base/stack.ts";
import { traceTerms } from "../base/hostterms.ts";
import { largest, rows } from "../base/terms.ts";
import { curve, fullCard, shortCard, verdict } from "../findings/card.ts";
import { go } from "./findings.ts";
import { heldBy, others, type Group } from "./bands.ts";
import { memoryWords } from "./gpu.ts";
import { markSlot } from "../picture/palette.ts";
import { at, doc, layers, peakOf, pinned, rest, s, set, view, when, whole } from "./model.ts";
import type { GPUStack, Stack } from "../base/api.ts";

const row = rows(traceTerms);

export function inspector(): void {
  const group = layers.groups.find((g) => g.key === s.sel);
  const chosen = view() === "gpu" && s.gpu !== null && doc.gpu[s.gpu] ? driverStack(doc.gpu[s.gpu]!) : group && whole.n ? place(group) : null;
  card(group, view() === "gpu" && chosen !== null);
  fill(byId("detail"), chosen ?? [], cursor(), chosen ? [] : summary());
}

/** The card of the verdict; in short where another place than its own is chosen. */
function card(chosen: Group | undefined, other: boolean): void {
  const root = byId("verdict");
  const i = pinned();
  const f = doc.findings[i];
  byId("inspector").hidden = view() === "findings";
  verdict(doc.card, () => set({ finding: null, ...(view() === "findings" ? { view: "timeline" } : {}) }, true));
  if ((root.hidden = s.finding === -1)) return;
  const c = f?.card ?? doc.card;
  const own = chosen?.slot === markSlot;
  if (other || (chosen && !own)) return shortCard(root, c, () => set({ finding: s.finding, sel: null, stack: null, gpu: null }, true));
  const place = layers.groups.find((g) => g.slot === markSlot);
  const values = place && whole.n > 1 ? Float64Array.from({ length: rest() + 1 }, (_, k) => heldBy(place, whole, k).bytes) : f?.trend;
  const all = (n: number): void => set({ view: "findings", finding: n }, true);
  const acts = f ? [f.stacks.length ? textLink("show", f.kind === "driver-leak" ? "show where it is taken" : "show in the timeline", () => go(i, f.kind === "driver-leak" ? "gpu" : "timeline")) : null, textLink("evidence", "the evidence", () => all(i))] : [];
  fullCard(root, c, doc.findings, i, { who: f?.process ?? "", curve: f && values && values.length > 1 ? curve(values, "0 s", time(whole.of.seconds[rest()] ?? 0)) : null, acts }, (n) => (n < 0 ? set({ finding: n }, true) : go(n, "timeline")), all);
}

/** The state at the cursor. */
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
      row("of it anonymous", delta(w.anonymous_bytes[c]!), w.anonymous_bytes[c]!),
      row("file", delta(w.file_bytes[c]!), w.file_bytes[c]!),
      row("shared", delta(w.shared_bytes[c]!), w.shared_bytes[c]!),
      w.drops[c]! > 0 ? row("events lost", count(w.drops[c]!)) : [],
    ),
  ];
}

/** What the last judgment states about the whole. */
function summary(): Node[] {
  if (doc.judged_seconds === null) return [];
  const d = doc.summary;
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
    h("div", { class: "head" }, swatch(group.slot, !group.grows), group.label),
    h(
      "dl",
      { id: "place" },
      row("held here", bytes(here.bytes), here.bytes),
      row("pieces", count(here.count)),
      row("most", bytes(peakOf(group)), peakOf(group)),
      group.first === null ? [] : [row("first seen", when(group.first)), row("last seen", when(group.last))],
    ),
  ];
  if (group.key === others) return [...out, h("p", { class: "muted" }, `The largest ${plural(doc.stacks.length, "stack")} are shown one by one; strandline export --to folded writes all of them.`)];
  const chosen = sorted.find((i) => doc.stacks[i]!.id === s.stack) ?? sorted[0]!;
  const pick = ({ i }: { i: number }): Node => button(`stack ${i}`, h("span", { class: "name" }, inner(doc.stacks[i]!)), () => set({ stack: doc.stacks[i]!.id }, true), { class: "pick", "aria-current": i === chosen ? "true" : undefined });
  if (sorted.length > 1) out.push(h("h2", {}, plural(sorted.length, "stack")), ...largest(sorted.map((i) => ({ i, bytes: held(i) })), 12, pick, "stack"));
  return [...out, ...stack(doc.stacks[chosen]!)];
}

/** What distinguishes a stack from others of the same line: the call, and who made it. */
function inner(x: Stack): string {
  const named = x.frames.find((f) => f.function && !f.function.includes("+0x"));
  return `${x.call} ${named ? named.function : "stack not captured"}`;
}

function stack(x: Stack): Node[] {
  const left = x.frames_left_out > 0 ? h("p", { class: "muted" }, `${plural(x.frames_left_out, "more frame")} are left out.`) : null;
  return [
    h("h2", {}, "stack"),
    h("p", { "data-complete": String(x.complete) }, !x.frames.length ? "The stack was not captured." : x.complete ? "Complete: it reaches the start of the thread." : "Cut: its outermost frames are missing."),
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
    h("div", { class: "head" }, swatch(x.slot), x.label),
    h("dl", { id: "place" }, row("held", bytes(x.live_bytes), x.live_bytes), row("pieces", count(x.live_count)), row("memory", memoryWords[x.memory] ?? x.memory), row("by", x.owner)),
    ...(x.trend && x.trend.length > 1 ? [curve(x.trend, "first", "last")] : []),
    ...stack(x),
  ];
}
