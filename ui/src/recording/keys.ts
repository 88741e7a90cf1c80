// The keys of the page of a recording, and their help.

import { byId } from "../base/dom.ts";
import { base } from "../base/format.ts";
import { showKeys, type Key } from "../base/keys.ts";
import { picture as compose, save } from "../base/save.ts";
import { keyCommands, share, sharing, type Command } from "../base/share.ts";
import { termList, traceTerms } from "../base/terms.ts";
import { picture } from "./elements.ts";
import { shownViews } from "./frame.ts";
import { at, doc, s, set, whole } from "./model.ts";
import { views } from "./state.ts";

export function keyTable(): Key[] {
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
    { keys: ["["], show: "[  ]", does: "the selection begins, ends at the cursor", act: () => setEnd(0) },
    { keys: ["]"], show: "", does: "", act: () => setEnd(1) },
    { keys: ["f"], show: "f", does: "fit the selection", act: () => picture.fit() },
    { keys: ["z"], show: "z", does: "the chosen band alone, or all", act: () => s.sel !== null && set({ alone: !s.alone }, true) },
    { keys: ["g"], show: "g", does: "bands by own line, or by stack", act: () => set({ g: s.g === "line" ? "stack" : "line", sel: null, stack: null }, true) },
    { keys: ["y"], show: "y", does: "scale to mapped or to resident memory", act: () => set({ y: picture.fits === "mapped" ? "resident" : "mapped" }, true) },
    { keys: ["/"], show: "/", does: "search, a regular expression", act: () => byId("search").focus() },
    { keys: ["e"], show: "e", does: "save the picture or the page, copy the link", act: give },
    { keys: ["Escape"], show: "Esc", does: "step back out", act: out },
    { keys: ["?"], show: "?", does: "these keys", act: help },
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
  const field = document.activeElement;
  if (field instanceof HTMLInputElement) return s.q ? ((field.value = ""), set({ q: "" })) : field.blur();
  if (s.alone) set({ alone: false }, true);
  else if (s.range) set({ range: null, of: "cursor" }, true);
  else if (s.sel !== null) set({ sel: null, stack: null }, true);
}

async function savePicture(): Promise<void> {
  const style = getComputedStyle(document.documentElement);
  const png = await compose(`${base(doc.file)} · ${doc.name}, process ${doc.pid}`, [picture.canvas()], style.getPropertyValue("--page"), style.getPropertyValue("--ink"));
  if (png) save(`strandline-${base(doc.file)}.png`, png);
}

const gifts = (): Command[] => [{ key: "png", name: "Picture", does: "as PNG", act: savePicture }, ...sharing(base(doc.file), () => location.hash, (text) => (byId("live").textContent = text))];

export const give = (): void => share(gifts());

/** All that can be done or turned to. */
export function commands(): Command[] {
  return [
    ...shownViews().map((v) => ({ key: v, name: views[v], does: "view", act: () => set({ view: v }, true) })),
    ...doc.findings.map((f, i) => ({ key: `finding ${i}`, name: f.title, does: f.kind, act: () => set({ view: "findings", finding: i }, true) })),
    ...gifts().map((c) => ({ ...c, name: `Save or share: ${c.name}` })),
    ...keyCommands(keyTable()),
  ];
}

export function help(): void {
  showKeys(keyTable(), "Drag on the picture to select, click for a moment and a band, turn the wheel to zoom. The address holds all that is chosen.", ...termList(traceTerms));
}
