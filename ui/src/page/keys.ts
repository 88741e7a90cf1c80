// The keys of the page of snapshots, and where they lead.

import { fresh, link } from "../base/ask.ts";
import { byId } from "../base/dom.ts";
import type { Key } from "../base/keys.ts";
import { fit, goTo, pan, pinBand, step, stepBand, switchX, zoomBy } from "../rail/moves.ts";
import { announce, page, refused, scene, store } from "./elements.ts";
import { nextAxis } from "./top.ts";

const jumps: Record<string, string> = { oom: "out-of-memory error", segment: "segment event" };

export async function next(to: string, back: boolean): Promise<void> {
  const { event } = await fresh<{ event: number | null }>("next", { f: page.f, d: page.d, k: page.k, to, back: back ? 1 : undefined });
  if (event === null) {
    const none = `There is no ${back ? "earlier" : "later"} ${jumps[to] ?? to}.`;
    announce(none);
    return refused(new Error(none));
  }
  goTo(scene, event);
}

const go = (k: number | null | undefined): void => void (k !== null && k !== undefined && k >= 0 && goTo(scene, k));

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
  { keys: ["j", "k"], show: "j  k", does: "set mark A, mark B: the table shows the difference", act: (_, b) => store.set({ [b ? "b" : "a"]: page.k, range: null }) },
  { keys: ["l"], show: "l", does: "each allocation at every zoom, or bands", act: () => store.set({ each: !page.s.each }, true) },
];

/** The keys; of says what the views and the frame do. */
export const keyTable = (of: { play: () => void; unfold: () => void; table: () => void; rail: () => void }): Key[] => [
  { keys: ["w", "s"], show: "w  s", does: "zoom in, out (shift: ×4)", act: (e, out) => zoomBy(scene, (e.shiftKey ? 4 : 1.5) ** (out ? 1 : -1)) },
  { keys: ["a", "d"], show: "a  d", does: "pan (shift: ×4)", act: (e, right) => pan(scene, (e.shiftKey ? 0.8 : 0.2) * (right ? 1 : -1)) },
  { keys: ["ArrowLeft", "ArrowRight"], show: "←  →", does: "cursor to the next column", act: (_, right) => step(scene, right ? 1 : -1) },
  { keys: ["ArrowUp", "ArrowDown"], show: "↑  ↓", does: "next band in the stack at the cursor", act: (_, down) => stepBand(scene, down ? -1 : 1) },
  { keys: ["Enter"], show: "Enter", does: "pin what the band shows", act: () => pinBand(scene) },
  { keys: ["Home", "End"], show: "Home  End", does: "first, last event", act: (_, end) => go(end ? (page.device?.events ?? 0) - 1 : 0) },
  { keys: ["0"], show: "0", does: "the whole file", act: () => store.set({ win: null }) },
  { keys: ["f"], show: "f", does: "fit the selection, or the lifetime of the pinned allocation", act: () => fit(scene) },
  { keys: ["p"], show: "p", does: "next peak (shift: back)", act: (e) => next("peak", e.shiftKey) },
  { keys: ["o"], show: "o", does: "next out-of-memory error (shift: back)", act: (e) => next("oom", e.shiftKey) },
  { keys: ["m"], show: "m", does: "next mark (shift: back)", act: (e) => next("mark", e.shiftKey) },
  { keys: [",", "."], show: ",  .", does: "segment event before, after", act: (_, after) => next("segment", !after) },
  { keys: ["[", "]"], show: "[  ]", does: "one event back, on", act: (_, on) => go(Math.max(0, Math.min(page.beside(on ? 1 : -1), (page.device?.events ?? 1) - 1))) },
  { keys: [" "], show: "space", does: "play segment events, stop (allocator)", act: of.play },
  { keys: ["u"], show: "u", does: "show free segments, fold them (allocator)", act: of.unfold },
  { keys: ["b", "n"], show: "b  n", does: "allocation, free of the pinned one", act: (_, free) => go(free ? page.pinned?.death : page.pinned?.birth) },
  { keys: ["z"], show: "z", does: "the pinned site alone, or all again", act: () => solo() },
  ...(link.saved ? [] : asked()),
  { keys: ["x"], show: "x", does: "events or time", act: () => switchX(scene) },
  { keys: ["y"], show: "y", does: "as high as the peak reserved, the peak, or what is seen", act: nextAxis },
  { keys: ["g"], show: "g", does: "next grouping", act: () => nextGrouping() },
  { keys: ["t"], show: "t", does: "the picture as a table (timeline)", act: of.table },
  { keys: ["c"], show: "c", does: "copy file:line of the pinned allocation", act: () => document.querySelector<HTMLElement>("#inspector [data-key='copy line']")?.click() },
  { keys: ["i"], show: "i", does: "inspector on, off", act: () => byId("inspector").classList.toggle("off") },
  { keys: ["h"], show: "h", does: "rail on, off", act: of.rail },
  { keys: ["Escape"], show: "Esc", does: "step back out", act: () => stepOut() },
];

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
