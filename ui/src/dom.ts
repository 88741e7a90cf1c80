// A few lines in place of a framework: the page has one picture, drawn by
// hand, and tables of at most some hundred rows that are built anew.

type Attrs = Record<string, string | number | boolean | undefined | EventListener>;
type Child = Node | string | null | undefined | false | Child[];

/** Makes an element. Attributes that begin with "on" are listeners; false and undefined ones are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attrs?: Attrs, ...children: Child[]): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") el.addEventListener(name.slice(2), value);
    else el.setAttribute(name, value === true ? "" : String(value));
  }
  append(el, children);
  return el;
}

function append(el: Element, children: Child[]): void {
  for (const c of children) {
    if (Array.isArray(c)) append(el, c);
    else if (c !== null && c !== undefined && c !== false) el.append(c);
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
