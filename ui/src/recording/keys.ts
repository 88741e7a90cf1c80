// The keys of the page of a recording.

import type { Key } from "../base/keys.ts";
import { timeKeys } from "../picture/time.ts";
import { picture } from "./elements.ts";
import { at, s, set, whole } from "./model.ts";

export function keyTable(): Key[] {
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
