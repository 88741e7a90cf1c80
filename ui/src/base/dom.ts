// A few lines in place of a framework: the page has one picture, drawn by
// hand, and tables of a few hundred rows at most that are rebuilt.

type Attrs = Record<string, string | number | boolean | undefined | EventListener>;
type Child = Node | string | null | undefined | false | Child[];

// What moves text elsewhere or turns the direction of a line around, as names in somebody's file can.
const acting = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Text of unknown origin as it can be in a line. */
export const printable = (text: string): string => text.replace(acting, "\ufffd");

/** Makes an element. Attributes that begin with "on" are listeners; false and undefined ones are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attrs?: Attrs, ...children: Child[]): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") el.addEventListener(name.slice(2), value);
    else el.setAttribute(name, value === true ? "" : name === "title" || name === "aria-label" ? printable(String(value)) : String(value));
  }
  append(el, children);
  return el;
}

function append(el: Element, children: Child[]): void {
  for (const c of children) {
    if (Array.isArray(c)) append(el, c);
    else if (c !== null && c !== undefined && c !== false) el.append(typeof c === "string" ? printable(c) : c);
  }
}

/** Replaces what is in el, keeping the focus on the element of the same data-key. */
export function fill(el: Element, ...children: Child[]): void {
  const focused = document.activeElement;
  const key = focused instanceof HTMLElement && el.contains(focused) ? focused.dataset.key : undefined;
  el.replaceChildren();
  append(el, children);
  if (key === undefined) return;
  for (const c of el.querySelectorAll<HTMLElement>("[data-key]")) {
    if (c.dataset.key === key) return c.focus({ preventScroll: true });
  }
}

/** An element of index.html. */
export function byId<T extends HTMLElement = HTMLElement>(id: string): T {
  const el = document.getElementById(id);
  if (!el) throw new Error(`index.html lacks #${id}`);
  return el as T;
}

/** Puts a tooltip beside the pointer, inside the window. */
export function placeTip(tip: HTMLElement, x: number, y: number): void {
  const [w, high] = [tip.offsetWidth, tip.offsetHeight];
  const tx = x + 16 + w > innerWidth ? x - w - 12 : x + 16;
  const ty = y + 18 + high > innerHeight ? y - high - 10 : y + 18;
  tip.style.transform = `translate(${Math.max(4, tx)}px,${Math.max(4, ty)}px)`;
}

/** A name that loses its middle where room is short: both the file and the function are still to be seen. Its two parts are drawn beside the name itself, which is what is read aloud, found and copied. */
export function cut(label: string): HTMLElement {
  const shown = printable(label).replace(/\s/g, " "); // it stays on its line
  const line = shown.search(/:\d+( |$)/); // the line stays with the function
  let at = line > 0 && shown.length - line <= 28 ? line : Math.max(Math.ceil(shown.length / 2), shown.length - 20);
  if (/^[\udc00-\udfff]/.test(shown.slice(at))) at++; // not within a character
  return h("span", { class: "name cut", title: label, "data-begin": shown.slice(0, at), "data-end": shown.slice(at) }, h("span", { class: "unseen" }, label));
}
