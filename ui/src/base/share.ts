// What all pages give away: the page as one file, the link, and what each adds; and the
// palette of all that a page can do.

import { button } from "./controls.ts";
import { ask, engine } from "./ask.ts";
import { fill, h } from "./dom.ts";
import type { Key } from "./keys.ts";
import { save } from "./save.ts";

export interface Command {
  key: string;
  name: string;
  does: string;
  act: () => unknown;
  off?: boolean; // there is nothing to do at present
}

function dialog(id: string, label: string): HTMLDialogElement {
  const there = document.querySelector<HTMLDialogElement>(`#${id}`);
  if (there) return there;
  const made = h("dialog", { id, "aria-label": label });
  document.body.append(made);
  return made;
}

/** The page as one file, and its link: what a page of this file gives away under its name. said announces what came of it. */
export function sharing(file: string, link: () => string, said: (text: string) => void): Command[] {
  const copy = (): void => {
    const text = location.href.replace(/#.*$/, "") + link();
    navigator.clipboard?.writeText(text).then(
      () => said("the link is copied"),
      () => said("the browser does not let pages copy"),
    );
  };
  const page = (): void => {
    said("saving the page …");
    ask("page").then(async (a) => (save(`${file}.html`, await a.blob()), said("the page is saved")), (e: Error) => said(e.message));
  };
  return [
    ...(engine ? [] : [{ key: "page", name: "Page", does: "as one file, which opens in any browser", act: page }]), // only the program writes it
    { key: "link", name: "Link", does: "to this view, without the secret", act: copy },
  ];
}

/** Opens the menu of what can be saved. */
export function share(commands: Command[]): void {
  const d = dialog("give", "Save or share");
  fill(
    d,
    h("h2", {}, "Save or share"),
    commands.map((c) => button(c.key, [h("b", {}, c.name), ` ${c.does}`], () => (d.close(), c.act()), { class: "item", disabled: c.off })),
    h("button", { type: "button", class: "link", onclick: () => d.close() }, "close"),
  );
  d.showModal();
}

/** Those of the commands that have all words of a text. */
export function matching(commands: Command[], text: string): Command[] {
  const words = text.toLowerCase().split(/\s+/);
  return commands.filter((c) => !c.off && words.every((w) => `${c.name} ${c.does}`.toLowerCase().includes(w)));
}

/** Keys as commands. */
export const keyCommands = (keys: Key[]): Command[] =>
  keys.filter((k) => k.does && k.keys.length && !/^(\d|\?|Escape)/.test(k.keys[0]!)).map((k) => ({ key: `key ${k.keys[0]}`, name: k.does, does: k.show, act: () => k.act(new KeyboardEvent("keydown", { key: k.keys[0]! }), false) }));

/** Opens the palette of commands on ⌘K and Ctrl-K. */
export function palette(list: () => Command[]): void {
  addEventListener("keydown", (e) => {
    if (e.key.toLowerCase() !== "k" || !(e.metaKey || e.ctrlKey) || e.altKey || document.querySelector("dialog[open]")) return;
    e.preventDefault();
    open(list());
  });
}

function open(all: Command[]): void {
  const most = 40;
  const d = dialog("palette", "Commands");
  const items = h("ul", { role: "listbox", id: "palette-items", "aria-label": "Commands" });
  const input = h("input", { type: "text", role: "combobox", "aria-label": "Command, view, file or finding", "aria-expanded": "true", "aria-controls": "palette-items", placeholder: "view, file, finding …", autocomplete: "off", spellcheck: "false" });
  let found: Command[] = [];
  let at = 0;
  const run = (c: Command | undefined): void => {
    if (c) d.close(), c.act();
  };
  const draw = (): void => {
    input.setAttribute("aria-activedescendant", found.length ? `palette-${at}` : "");
    fill(items, found.map((c, i) => h("li", { id: `palette-${i}`, role: "option", "aria-selected": String(i === at), "data-key": `command ${c.key}`, onclick: () => run(c) }, c.name, h("span", { class: "muted" }, ` ${c.does}`))));
    items.children[at]?.scrollIntoView({ block: "nearest" });
  };
  const look = (): void => {
    found = matching(all, input.value).slice(0, most);
    at = 0;
    draw();
  };
  input.addEventListener("input", look);
  input.addEventListener("keydown", (e) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
    if (e.key === "Enter") run(found[at]);
    else if (by && found.length) (at = (at + by + found.length) % found.length), draw();
    else return;
    e.preventDefault();
  });
  fill(d, input, items);
  look();
  d.showModal();
  input.focus();
}
