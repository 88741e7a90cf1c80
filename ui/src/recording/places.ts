// What is held at the cursor or grew in the selection: the table of places and
// the icicle of their stacks.

import { choice, note, refill, scroll, textLink } from "../base/controls.ts";
import { byId, h } from "../base/dom.ts";
import { bytes, bytesOrDash, count, delta, percent, placeOf, plural, time } from "../base/format.ts";
import { drawing } from "../base/frame.ts";
import { csv, csvButton } from "../base/save.ts";
import { Sorting, table, type Column, type Row } from "../base/table.ts";
import { Icicle } from "../picture/icicle.ts";
import { flameOf, type Group } from "./bands.ts";
import { picture } from "./picture.ts";
import { polled } from "./frame.ts";
import { amounts, at, doc, found, growing, layers, peakOf, query, rangeWords, root, s, set, slice, when } from "./model.ts";
import type { State } from "./state.ts";

const by = new Sorting(drawing.ask, 0);

interface Place extends Row {
  bytes: number;
  count: number;
  group: Group;
  peak: number;
}

function source(): HTMLElement {
  const { slice, column } = at(s.k);
  const one = (of: State["of"], label: string, ready = true): Node => choice(`of ${of}`, label, (growing() ? "range" : "cursor") === of, () => set({ of }, true), null, { disabled: !ready });
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
  const list = table<Place>({ name, rows, columns, by, onrow: (r) => set({ sel: s.sel === r.key ? null : r.key, stack: null }, true), onlight: (key) => picture.light(key) });
  return { total, grew, csv: csvButton("growth", () => csv(name, rows, columns)), table: scroll("Places", list) };
}

export function timeline(): void {
  const p = places();
  refill(root, h("div", { class: "bar" }, source(), h("span", { "data-bytes": p.total, "data-figure": "held" }, p.grew ? `${delta(p.total)} in all` : `${bytes(p.total)} mapped`), h("div", { class: "end" }, p.csv)), layers.groups.length ? p.table : note(doc.rung === "polling" ? polled : "No memory that was mapped since the trace began stayed until a mark."));
}

export const icicle = new Icicle({
  tooltip: byId("tooltip"),
  pieces: "pieces",
  slot: (f) => doc.stacks.find((x) => x.label === placeOf(f))?.slot ?? -1,
  found: () => query,
});

let flamed = "";

export function stacks(): void {
  const held = amounts().map((a, i) => (found && !layers.groups.some((g) => g.stacks.includes(i) && found!.has(g.key)) ? { bytes: 0, count: 0 } : a));
  const key = JSON.stringify([s.of, s.k, s.range, s.q, slice.of.from, slice.of.to, s.g]);
  const flame = flameOf(doc, held);
  if (key !== flamed) icicle.show(flame);
  flamed = key;
  const shrunk = held.reduce((sum, a) => sum + Math.min(0, a.bytes), 0);
  const p = places();
  refill(
    root,
    h(
      "div",
      { class: "bar" },
      source(),
      h("span", { "data-bytes": flame.bytes, "data-figure": "flame" }, `${bytes(flame.bytes)} in ${plural(flame.count, "piece")}`),
      shrunk < 0 ? h("span", {}, `what shrank is not drawn: ${delta(shrunk)}`) : null,
      h("div", { class: "end" }, p.csv, textLink("fold", icicle.folded ? "unfold library frames" : "fold library frames", () => (icicle.refold(), drawing.ask()), { "aria-pressed": String(icicle.folded) })),
    ),
    flame.bytes > 0 ? icicle.element(root) : note(growing() ? "Nothing grew there." : "No mapping made since is there."),
    p.table,
  );
  icicle.paint();
}
