// Timelines of a step: its phases side by side, each stacked by what makes the
// memory, under the line where the GPU ends. Of reinforcement learning there is one
// for each way of sharing the GPU, of training one with the moments that may peak.

import { bytes } from "../base/format.ts";
import { fill, h } from "../base/dom.ts";
import { box, colorOf } from "./bars.ts";
import { sizes, ticks } from "./words.ts";
import type { Moment, Part, StepPlan, Way } from "./wire.ts";

export interface Layer {
  name: string;
  color: string;
  bottom: number;
  bytes: number;
  may: boolean;
}

/** What a phase is stacked of, in the order of the components in all phases: below what is sure, above it what may come on top. */
export function layers(phase: Moment, components: Part[]): Layer[] {
  const order = components.map((c) => c.name);
  const parts = [...phase.components].sort((a, b) => order.indexOf(a.name) - order.indexOf(b.name));
  let bottom = 0;
  const out: Layer[] = [];
  for (const may of [false, true]) {
    for (const p of parts) {
      const bytes = may ? p.high_bytes - p.low_bytes : p.low_bytes;
      if (bytes <= 0) continue;
      out.push({ name: p.name, color: colorOf(p.name, order.indexOf(p.name)), bottom, bytes, may });
      bottom += bytes;
    }
  }
  return out;
}

/** What timelines that are to be compared share. */
interface Frame {
  components: Part[]; // in the order in which they are stacked
  total: number; // bytes, where the GPU ends
  most: number; // bytes of the whole height
  tooltip: HTMLElement;
}

/** A height that holds all phases, and their labels. */
const height = (total: number, phases: Moment[]): number => 1.06 * Math.max(total, ...phases.map((p) => p.high_bytes));

/** The ways of sharing the GPU. */
export function timelines(plan: StepPlan, fraction: string, tooltip: HTMLElement): HTMLElement {
  const frame = { components: plan.components, total: plan.total_bytes, most: height(plan.total_bytes, plan.ways.flatMap((w) => w.phases)), tooltip };
  const hover = (name: string | null): void => {
    for (const el of document.querySelectorAll<HTMLElement>("[data-layer]")) el.classList.toggle("dim", name !== null && el.dataset.layer !== name);
  };
  return h("div", {}, h("div", { class: "ways" }, plan.ways.map((w) => {
    const id = `way-${w.name.replaceAll(" ", "-")}`;
    return h("section", { class: "way", "aria-labelledby": id }, h("h3", { id }, w.name, " ", h("b", { class: verdictClass[w.verdict], "data-verdict": w.verdict }, w.verdict)), h("p", {}, largest(w, fraction)), plot(w.phases, w.highest, frame));
  })), legend(plan, hover));
}

/** The moments of a training step. */
export function moments(list: Moment[], largest: number, total: number, tooltip: HTMLElement): HTMLElement {
  const known = new Map(list.flatMap((m) => m.components).map((c) => [c.name, c]));
  return plot(list, largest, { components: [...known.values()], total, most: height(total, list), tooltip });
}

function plot(phases: Moment[], highest: number, frame: Frame): HTMLElement {
  const { total, most } = frame;
  const lines = ticks(most, 4);
  return h(
    "div",
    { class: "plot" },
    h("div", { class: "scale", "aria-hidden": "true" }, lines.filter((t) => Math.abs(t - total) / most > 0.07).map((t) => box("", { bottom: t / most }, bytes(t))), box("end", { bottom: total / most }, bytes(total))),
    h(
      "div",
      { class: "phases" },
      lines.map((t) => box("tick", { bottom: t / most })),
      phases.map((p, i) => phase(p, i === highest, frame)),
      box("end", { bottom: total / most }),
    ),
  );
}

export const verdictClass = { fits: "good", "may fit": "warning", "does not fit": "danger", "does not run": "danger" };

function largest(way: Way, fraction: string): (Node | string)[] {
  if (way.largest_memory_fraction === null) return [`no ${fraction} fits: ${way.binding}`];
  const value = String(Number(way.largest_memory_fraction.toPrecision(3)));
  return ["fits up to ", h("code", { "data-fraction": way.largest_memory_fraction }, `${fraction} ${value}`), `: ${bytes(way.kv_bytes ?? 0)} of KV cache (${way.binding})`];
}

function phase(p: Moment, top: boolean, { components, total, most, tooltip }: Frame): HTMLElement {
  const stack = layers(p, components);
  const range = sizes(p.low_bytes, p.high_bytes);
  const listed = p.components.map((c) => `${c.name} ${sizes(c.low_bytes, c.high_bytes)}`).join(", ");
  const show = (e: Event): void => explain(tooltip, p, components, e.currentTarget as HTMLElement);
  const hide = (): void => void (tooltip.hidden = true);
  const over = p.low_bytes > total ? "over" : p.high_bytes > total ? "near" : "";
  const peak = box(`peak ${over}`, { bottom: p.high_bytes / most }, h("b", {}, top ? h("span", { "aria-hidden": "true" }, "▲ ") : null, range));
  return h(
    "button",
    { type: "button", class: "phase", "data-phase": p.name, "data-low": p.low_bytes, "data-high": p.high_bytes, onmouseenter: show, onfocus: show, onmouseleave: hide, onblur: hide },
    h("span", { class: "name" }, p.name),
    " ",
    h(
      "span",
      { class: "pile" },
      stack.map((l) => {
        const el = box(`bar ${l.may ? "may " : ""}${l.color}`, { bottom: l.bottom / most, height: l.bytes / most });
        el.dataset.layer = l.name;
        return el;
      }),
      peak,
    ),
    h("span", { class: "unseen" }, `${top ? ", the highest" : ""}: ${listed}`),
  );
}

/** Lists the parts of a phase beside it. */
function explain(tooltip: HTMLElement, p: Moment, components: Part[], at: HTMLElement): void {
  const order = components.map((c) => c.name);
  fill(
    tooltip,
    h("div", { class: "head" }, p.name, h("span", {}, sizes(p.low_bytes, p.high_bytes))),
    h("dl", {}, p.components.map((c) => [h("dt", {}, h("span", { class: `sw ${colorOf(c.name, order.indexOf(c.name))}` }), c.name), h("dd", {}, sizes(c.low_bytes, c.high_bytes))])),
  );
  tooltip.hidden = false;
  const box = at.getBoundingClientRect();
  const { width, height } = tooltip.getBoundingClientRect();
  const left = box.right + 8 + width < innerWidth ? box.right + 8 : box.left - 8 - width;
  tooltip.style.left = `${Math.max(4, left)}px`;
  tooltip.style.top = `${Math.max(4, Math.min(box.top + 20, innerHeight - height - 4))}px`;
}

/** The components, with what they rest on; pointing at one shows it alone. */
function legend(plan: StepPlan, hover: (name: string | null) => void): HTMLElement {
  return h(
    "table",
    { class: "parts" },
    h("caption", {}, "What makes the memory"),
    h("thead", { class: "unseen" }, h("tr", {}, ["part", "size", "what it rests on"].map((t) => h("th", { scope: "col" }, t)))),
    h(
      "tbody",
      {},
      plan.components.map((c, i) =>
        h(
          "tr",
          { onmouseenter: () => hover(c.name), onmouseleave: () => hover(null) },
          h("th", { scope: "row" }, h("span", { class: "label" }, h("span", { class: `sw ${colorOf(c.name, i)}` }), c.name)),
          h("td", {}, sizes(c.low_bytes, c.high_bytes)),
          h("td", { class: "left" }, c.source ?? ""),
        ),
      ),
    ),
  );
}
