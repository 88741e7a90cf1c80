// The key table. The help is made from it.

import { byId, fill, h } from "./dom.ts";

export interface Key {
  keys: string[]; // as event.key has them; shift is shown by the key itself or by `shift`
  show: string;
  does: string;
  act: (e: KeyboardEvent, second: boolean) => unknown; // the second of its keys, or a later one, was pressed
}

/** Opens the help: the keys, and what else there is to know. */
export function showKeys(table: Key[], ...more: (Node | string)[]): void {
  const dialog = byId<HTMLDialogElement>("keys");
  const shown = table.filter((k) => k.show);
  fill(
    dialog,
    h("h2", { id: "keys-title" }, "Keys"),
    h("div", { class: "cols" }, shown.map((k) => h("div", {}, h("span", {}, k.show.split("  ").map((x, i) => [i ? " " : "", h("kbd", {}, x)])), h("span", {}, k.does)))),
    more.map((x) => (typeof x === "string" ? h("p", { class: "muted" }, x) : x)),
    h("button", { type: "button", class: "link", onclick: () => dialog.close() }, "close"),
  );
  dialog.showModal();
  dialog.scrollTop = 0; // the focus is on the button at its end
}

/** Keys act only if no field has the focus, no dialog is open and no modifier of the browser's is held. */
export function listen(table: () => Key[]): void {
  addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented || document.querySelector("dialog[open]")) return;
    const at = e.target instanceof Element ? e.target : null;
    const field = at?.closest("input, select, textarea");
    if (field && e.key !== "Escape") return;
    // Enter and space press what has the focus.
    if ((e.key === "Enter" || e.key === " ") && at?.closest("button, a, summary")) return;
    const name = e.key.length === 1 ? e.key.toLowerCase() : e.key;
    const found = table().find((k) => k.keys.includes(e.key) || k.keys.includes(name));
    if (!found) return;
    e.preventDefault();
    found.act(e, e.key !== found.keys[0] && name !== found.keys[0]);
  });
}
