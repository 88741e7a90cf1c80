// A few lines in place of a framework: the page has one picture, drawn by
// hand, and tables of a few hundred rows at most.

export type Attrs = Record<string, string | number | boolean | undefined | EventListener>;
export type Child = Node | string | null | undefined | false | Child[];

// What moves text elsewhere or turns the direction of a line around, as names in somebody's file can.
const acting = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Text of unknown origin as it can be in a line. */
export const printable = (text: string): string => text.replace(acting, "\ufffd");

/** Makes an element. Attributes that begin with "on" are its listeners; false and undefined ones are left out. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, attrs?: Attrs, ...children: Child[]): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  for (const [name, value] of Object.entries(attrs ?? {})) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") {
      listening.set(el, [...(listening.get(el) ?? []), name]);
      (el as unknown as Record<string, EventListener>)[name] = value;
    } else el.setAttribute(name, value === true ? "" : name === "title" || name === "aria-label" ? printable(String(value)) : String(value));
  }
  el.append(...nodes(children));
  return el;
}

const listening = new WeakMap<Element, string[]>(); // the listeners of an element
const owned = new WeakSet<Node>();

/** Keeps an element as it is: it is put into the page and taken from it, but never made into another. */
export function own<E extends Element>(el: E): E {
  owned.add(el);
  return el;
}

function nodes(children: Child[], out: Node[] = []): Node[] {
  for (const c of children) {
    if (Array.isArray(c)) nodes(c, out);
    else if (c !== null && c !== undefined && c !== false) out.push(typeof c === "string" ? document.createTextNode(printable(c)) : c);
  }
  return out;
}

const keyOf = (n: Node): string | undefined => (n instanceof HTMLElement ? (n.dataset.key ?? n.dataset.site) : undefined);

/** Makes the children of el into others. What stays the same is not touched, and what has the same data-key moves: it keeps the focus, its scroll and what is selected in it. */
export function fill(el: Element, ...children: Child[]): void {
  patch(el, nodes(children));
}

function patch(el: Element, next: Node[]): void {
  const wanted = new Set(next);
  const keyed = new Map<string, Node>();
  for (const n of el.childNodes) {
    const key = keyOf(n);
    if (key !== undefined && !wanted.has(n)) keyed.set(key, n);
  }
  let at = el.firstChild;
  for (const n of next) {
    const key = keyOf(n);
    const old = owned.has(n) || n === at ? n : key !== undefined ? keyed.get(key) : at && !wanted.has(at) && keyOf(at) === undefined ? at : undefined;
    const use = old && old !== n && turn(old, n) ? old : n;
    if (use === old && key !== undefined) keyed.delete(key);
    if (use === at) at = at.nextSibling;
    else el.insertBefore(use, at);
  }
  while (at) {
    const after: ChildNode | null = at.nextSibling;
    at.remove();
    at = after;
  }
}

/** Makes a node into another, if they are of a kind. */
function turn(old: Node, to: Node): boolean {
  if (old instanceof Text && to instanceof Text) {
    if (old.data !== to.data) old.data = to.data;
    return true;
  }
  if (!(old instanceof Element && to instanceof Element) || old.tagName !== to.tagName || owned.has(old) || old.id !== to.id) return false;
  const typing = old.matches("input:focus") && old.getAttribute("value") === to.getAttribute("value"); // what is in it is kept
  for (const { name } of [...old.attributes]) if (!to.hasAttribute(name) && name !== "style") old.removeAttribute(name);
  for (const { name, value } of to.attributes) if (name !== "style" && old.getAttribute(name) !== value) old.setAttribute(name, value);
  // A page may set styles, but not as attributes; that of a canvas is set when it is drawn.
  if (old instanceof HTMLElement && to instanceof HTMLElement && !(old instanceof HTMLCanvasElement) && old.style.cssText !== to.style.cssText) old.style.cssText = to.style.cssText;
  const [from, on] = [old, to] as unknown as Record<string, EventListener | null>[];
  for (const name of listening.get(old) ?? []) from![name] = null;
  const names = listening.get(to) ?? [];
  for (const name of names) from![name] = on![name]!;
  listening.set(old, names);
  patch(old, [...to.childNodes]);
  if (old instanceof HTMLInputElement || old instanceof HTMLSelectElement) {
    const given = to as HTMLInputElement;
    if (!typing && old.value !== given.value) old.value = given.value;
    if (old instanceof HTMLInputElement) old.checked = given.checked;
  }
  return true;
}

/** A button that puts a text on the clipboard, and says so; where the page may not, it selects the text before it. */
export function copyButton(text: string, label = "copy", key = `copy ${text}`): HTMLElement {
  const copy = (e: Event): void => {
    const el = e.currentTarget as HTMLElement;
    const say = (words: string): void => {
      el.textContent = words;
      setTimeout(() => (el.textContent = label), 2000);
    };
    (navigator.clipboard?.writeText(text) ?? Promise.reject()).then(() => say("copied"), () => {
      if (el.previousElementSibling) getSelection()?.selectAllChildren(el.previousElementSibling);
    });
  };
  return h("button", { type: "button", class: "link", "data-key": key, "data-copy": text, "aria-label": label === "copy" ? `Copy ${text}` : undefined, onclick: copy }, label);
}

/** A command with a button that copies it. */
export const command = (text: string, key?: string, label?: string): HTMLElement => h("div", { class: "command" }, h("pre", { tabindex: "0", "aria-label": label }, text), copyButton(text, "copy", key));

/** A swatch in the color of a slot, paler for what was freed. */
export const swatch = (slot: number, freed = false): HTMLElement => h("span", { class: `sw s${slot}${freed ? " freed" : ""}` });

/** Makes an element of a drawing. */
export function svg(tag: string, attrs: Record<string, string | number>, ...children: Node[]): SVGElement {
  const el = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attrs)) el.setAttribute(name, String(value));
  el.append(...children);
  return el;
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
export function cut(label: string, title = label): HTMLElement {
  const shown = printable(label).replace(/\s/g, " "); // it stays on its line
  const line = shown.search(/:\d+( |$)/); // the line stays with the function
  let at = line > 0 && shown.length - line <= 28 ? line : Math.max(Math.ceil(shown.length / 2), shown.length - 20);
  if (/^[\udc00-\udfff]/.test(shown.slice(at))) at++; // not within a character
  return h("span", { class: "name cut", title, "data-begin": shown.slice(0, at), "data-end": shown.slice(at) }, h("span", { class: "unseen" }, label));
}
