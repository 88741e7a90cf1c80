// The controls of all pages: each button and choice is made here, so that it looks, reads
// aloud and is found alike everywhere.

import { fill, h, type Attrs, type Child } from "./dom.ts";

/** A button, by the name that keeps it the same element when the page is drawn again. */
export const button = (key: string, label: Child, act: (() => unknown) | undefined, more: Attrs = {}): HTMLElement => h("button", { type: "button", "data-key": key, onclick: act && (() => void act()), ...more }, label);

/** A button that reads as a link. */
export const textLink = (key: string, label: Child, act: () => unknown, more: Attrs = {}): HTMLElement => button(key, label, act, { class: "link", ...more });

/** One of several, or a switch: on or off. why: that it cannot be chosen at present. */
export const choice = (key: string, label: Child, on: boolean, act: () => unknown, why?: string | null, more: Attrs = {}): HTMLElement =>
  button(key, label, act, { "aria-pressed": String(on), disabled: !!why, title: why ?? undefined, ...more });

/** Something that was chosen, in a frame: a click drops it. */
export const chip = (key: string, label: Child, title: string, act: () => unknown, on?: boolean): HTMLElement => button(key, label, act, { class: "chip", title, "aria-pressed": on === undefined ? undefined : String(on) });

/** A group of choices under a name. */
export const choices = (name: string, of: Child[], wide = false): HTMLElement => h("span", { class: wide ? "choice wide" : "choice", role: "group", "aria-label": name }, name, of);

const valueOf = (e: Event): string => (e.target as HTMLInputElement | HTMLSelectElement).value.trim();

export function select<T extends string | number>(key: string, value: T, options: [value: T, text: string][], act: (v: T) => void, label?: string): HTMLElement {
  return h("select", { "data-key": key, "aria-label": label, onchange: (e) => act(options.find(([v]) => String(v) === valueOf(e))![0]) }, options.map(([v, text]) => h("option", { value: v, selected: v === value }, text)));
}

/** A field of text that acts once it is left. */
export const field = (key: string, value: string, placeholder: string, act: (v: string) => void, mode = "text"): HTMLElement =>
  h("input", { type: "text", inputmode: mode, "data-key": key, value, placeholder, autocomplete: "off", spellcheck: "false", onchange: (e) => act(valueOf(e)) });

/** A scrolling part of a view, which the keys reach. */
export const scroll = (name: string, of: Child, more: Attrs = {}): HTMLElement => h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": name, ...more }, of);

/** Fills a view whose table stays where it was scrolled to. */
export function refill(root: HTMLElement, ...parts: Child[]): void {
  const top = root.querySelector(".scroll")?.scrollTop ?? 0;
  fill(root, parts);
  const now = root.querySelector(".scroll");
  if (now) now.scrollTop = top;
}

/** A sentence in place of a view. */
export const note = (text: Child): HTMLElement => h("p", { class: "note" }, text);
