// Bars of a GPU's memory: each part where the one before it ends, what may come on
// top of it hatched. They are boxes placed in percent, so that they need no redrawing.

import { bytes } from "../base/format.ts";
import { h } from "../base/dom.ts";
import { sizes, ticks } from "./words.ts";
import type { Part } from "./wire.ts";

/** The colors of parts that are known, the same in all modes. */
const slots: Record<string, number> = {
  weights: 0, "KV cache": 2, activations: 4, "CUDA graphs": 3, "non-torch": 6,
  parameters: 0, gradients: 3, "optimizer states": 5, "master weights": 7, "logits and loss": 1, "gathered parameters": 2,
  "block at work": 8, "lm_head's gradient": 9, "embedding's gradient": 9, "optimizer temporaries": 6,
  "trainer weights": 0, optimizer: 5, "training activations": 4, "trainer's cache": 8, "log-prob pass": 1, "rollout weights": 7,
  "rollout KV cache": 2, "rollout graphs": 9, "rollout activations": 4, "sync buffers": 1, "contexts and NCCL": 6,
};

/** The class with the color of a part; unknown ones follow in order. */
export function colorOf(name: string, index: number): string {
  if (name === "slack") return "rest";
  return `s${slots[name] ?? index % 10}`;
}

/** A box that is placed in percent; styles in attributes are against the page's policy. */
export function box(cls: string, at: Partial<Record<"left" | "width" | "bottom" | "height", number>>, ...inside: (Node | string)[]): HTMLElement {
  const el = h("i", { class: cls }, ...inside);
  for (const [name, share] of Object.entries(at)) el.style.setProperty(name, `${100 * share}%`);
  return el;
}

export interface Bar {
  name: string;
  color: string;
  left: number; // bytes
  low: number;
  high: number;
  source: string;
}

/** Where the bars begin: each in the middle of the end of the one before it. */
export function bars(parts: Part[]): Bar[] {
  let left = 0;
  return parts.map((p, i) => {
    const bar = { name: p.name, color: colorOf(p.name, i), left, low: p.low_bytes, high: p.high_bytes, source: p.source ?? "" };
    left += p.low_bytes + (p.high_bytes - p.low_bytes) / 2;
    return bar;
  });
}

/** A table of parts with their bars; total is where the GPU ends. */
export function barTable(parts: Part[], total: number, caption: string): HTMLElement {
  const list = bars(parts);
  const most = Math.max(total, ...list.map((b) => b.left + b.high)) || 1;
  const lines = ticks(most, 5);
  const grid = (): HTMLElement[] => [...lines.slice(1).map((t) => box("tick", { left: t / most })), box("end", { left: total / most })];
  return h(
    "table",
    { class: "bars" },
    h("caption", {}, caption),
    h("colgroup", {}, h("col", { class: "part" }), h("col", { class: "size" }), h("col")),
    h(
      "tbody",
      {},
      list.map((b) =>
        h(
          "tr",
          { title: b.source },
          h("th", { scope: "row" }, h("span", { class: "label" }, h("span", { class: `sw ${b.color}` }), b.name)),
          h("td", { "data-part": b.name, "data-low": b.low, "data-high": b.high }, sizes(b.low, b.high)),
          h("td", { class: "track" }, h("div", {}, grid(), b.low > 0 ? box(`bar ${b.color}`, { left: b.left / most, width: b.low / most }) : "", b.high > b.low ? box(`bar may ${b.color}`, { left: (b.left + b.low) / most, width: (b.high - b.low) / most }) : "")),
        ),
      ),
    ),
    h("tfoot", { "aria-hidden": "true" }, h("tr", {}, h("td", {}), h("td", {}), h("td", { class: "axis" }, h("div", {}, lines.map((t) => ({ t, away: Math.abs(t - total) / most })).filter((x) => x.away > 0.08).map(({ t, away }) => box(away > 0.16 ? "" : "close", { left: t / most }, bytes(t))), box("end", { left: total / most }, bytes(total)))))),
  );
}
