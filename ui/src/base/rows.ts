// The rows of a long table that are in sight, with room for the others.

import { fill, h } from "./dom.ts";

const beyond = 12; // rows above and below

/** Puts those of n rows of a height in px that are in sight into the body of the table in scroll. drawn is what is in it, which the next call is given. */
export function window(scroll: HTMLElement, n: number, height: number, drawn: string, row: (i: number) => HTMLElement): string {
  const from = Math.max(0, Math.floor(scroll.scrollTop / height) - beyond);
  const to = Math.min(n, from + Math.ceil((scroll.clientHeight || innerHeight) / height) + 2 * beyond);
  const key = `${from} ${to}`;
  if (key !== drawn) fill(scroll.querySelector("tbody")!, gap(from, height), Array.from({ length: Math.max(0, to - from) }, (_, i) => row(from + i)), gap(n - to, height));
  return key;
}

function gap(rows: number, height: number): HTMLElement | null {
  if (rows <= 0) return null;
  const tr = h("tr", { class: "gap", "aria-hidden": "true" });
  tr.style.height = `${rows * height}px`;
  return tr;
}
