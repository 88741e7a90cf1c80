// The keys of the page of a recording.

import type { Key } from "../base/keys.ts";
import { picture } from "./elements.ts";
import { at, s, set, whole } from "./model.ts";

export function keyTable(): Key[] {
  const step = (by: number) => (e: KeyboardEvent) => picture.move(by * (e.shiftKey ? 10 : 1));
  const wide = (e: KeyboardEvent): number => (e.shiftKey ? 4 : 1);
  return [
    { keys: ["ArrowLeft"], show: "←  →", does: "the cursor, by moments (shift: ten)", act: step(-1) },
    { keys: ["ArrowRight"], show: "", does: "", act: step(1) },
    { keys: ["Home"], show: "Home  End", does: "the first, the last moment", act: () => set({ k: 0 }) },
    { keys: ["End"], show: "", does: "", act: () => set({ k: whole.of.moment[whole.n - 1] ?? null }) },
    { keys: ["ArrowUp"], show: "↑  ↓", does: "the next band at the cursor", act: () => picture.next(true) },
    { keys: ["ArrowDown"], show: "", does: "", act: () => picture.next(false) },
    { keys: ["w"], show: "w  s", does: "zoom (shift: more)", act: (e) => picture.zoomBy(0.8 ** wide(e)) },
    { keys: ["s"], show: "", does: "", act: (e) => picture.zoomBy(1.25 ** wide(e)) },
    { keys: ["a"], show: "a  d", does: "move (shift: more)", act: (e) => picture.pan(-0.1 * wide(e)) },
    { keys: ["d"], show: "", does: "", act: (e) => picture.pan(0.1 * wide(e)) },
    { keys: ["0"], show: "0", does: "all of time", act: () => set({ win: null }) },
    { keys: ["["], show: "[  ]", does: "the selection begins, ends at the cursor", act: () => setEnd(0) },
    { keys: ["]"], show: "", does: "", act: () => setEnd(1) },
    { keys: ["f"], show: "f", does: "fit the selection", act: () => picture.fit() },
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
