// What the page of a recording shows: the recording, and what the reader looks
// at, which the address holds.

import { time } from "../base/format.ts";
import { fresh, Latest, link, type Refused } from "../base/ask.ts";
import { Store } from "../base/address.ts";
import { byId } from "../base/dom.ts";
import { banner, drawing, pattern, searched } from "../base/frame.ts";
import { lastAt, type Span } from "../base/scale.ts";
import { groupsOf, heldBy, layersOf, others, Slice, type Group, type Layers } from "./bands.ts";
import { pinnedOf } from "../base/names.ts";
import { markSlot } from "../picture/palette.ts";
import { highest } from "./picture.ts";
import { address, type State, type View } from "./state.ts";
import type { Recording, Window } from "../base/api.ts";

export const root = byId("view");
export let doc: Recording;
export let whole: Slice; // all of time
export let slice: Slice; // what is seen, or all
export const store = new Store(address);
export let s: State = store.now;
export let layers: Layers;
export let query: RegExp | null = null; // the last search that was one
export let found: Set<string> | null = null; // the groups that match it
const finer = new Latest(60);

/** The finding that is pinned, by its place; −1 if none is. */
export const pinned = (): number => pinnedOf(doc.findings, s.finding);

/** The view that is shown: memory of the GPU's driver is in none of the bands. */
export const view = (): View => s.view ?? (doc.findings[pinnedOf(doc.findings, null)]?.kind === "driver-leak" ? "gpu" : "timeline");

/** Puts the bands together, those of the pinned finding in the color of the mark. */
function lay(): void {
  const stacks = doc.findings[pinned()]?.stacks ?? [];
  const groups = groupsOf(doc, s.g);
  for (const g of groups) if (g.stacks.some((i) => stacks.includes(doc.stacks[i]?.id ?? -1))) g.slot = markSlot;
  layers = layersOf(doc, groups, highest(whole.growth));
}

/** Takes the engine's answers, before anything is drawn. */
export function load(answer: Recording, moments: Window): void {
  doc = answer;
  whole = slice = new Slice(moments);
  lay();
  search();
  look();
  store.on((now, before) => {
    s = now;
    if (s.g !== before.g || s.finding !== before.finding) lay();
    if (s.g !== before.g || s.q !== before.q) search();
    if (String(s.win) !== String(before.win)) look();
  });
}

/** Changes what is looked at. A step is one to which Back returns. */
export const set = (change: Partial<State>, step = false): void => store.set(change.sel === null ? { ...change, alone: false } : change, step);

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
      drawing.ask();
    },
    (e) => (e as Refused).status !== 404 && !link.lost && banner(e.message), // a saved page holds the whole alone
  );
}

/** The column of the whole at which the cursor rests: that of the last judgment, whose figures the card has, or the last one. */
export const rest = (): number => Math.max(0, doc.judged_seconds === null ? whole.n - 1 : lastAt(whole.of.seconds, doc.judged_seconds + 1e-3));

/** Where to read what is held at a moment: the finer moments, if they reach there. */
export function at(moment: number | null): { slice: Slice; column: number } {
  const k = moment ?? whole.of.moment[rest()] ?? 0;
  const from = slice.n && k >= slice.of.from && k <= slice.of.to ? slice : whole;
  return { slice: from, column: from.column(k) };
}

function search(): void {
  let wrong: string | null = null;
  const q = pattern(s.q, (why) => (wrong = why));
  if (!wrong) [query, found] = [q, q && new Set(layers.groups.filter((g) => q.test(g.text)).map((g) => g.key))];
  searched(s.q, wrong);
}

export function rangeWords([a, b]: Span): string {
  const t = (k: number): string => {
    const { slice, column } = at(k);
    return time(slice.of.seconds[column] ?? 0);
  };
  return `${t(a)} – ${t(b)}`;
}

/** What each stack holds at the cursor, or by how much that grew in the range. */
export function amounts(): { bytes: number; count: number }[] {
  const end = at(s.of === "range" && s.range ? s.range[1] : s.k);
  const start = s.of === "range" && s.range ? at(s.range[0]) : null;
  return end.slice.stacks.map((held, i) => ({
    bytes: held.bytes[end.column]! - (start?.slice.stacks[i]!.bytes[start.column] ?? 0),
    count: held.count[end.column]! - (start?.slice.stacks[i]!.count[start.column] ?? 0),
  }));
}

export const growing = (): boolean => s.of === "range" && s.range !== null;

export const when = (seconds: number | null): string => (seconds === null ? "–" : time(seconds));

const peaks = new WeakMap<Group, number>();

/** The most that a group held. */
export function peakOf(g: Group): number {
  let most = peaks.get(g);
  if (most === undefined) {
    most = g.peak;
    if (g.stacks.length > 1 || g.key === others) for (let c = 0; c < whole.n; c++) most = Math.max(most, heldBy(g, whole, c).bytes);
    peaks.set(g, most);
  }
  return most;
}
