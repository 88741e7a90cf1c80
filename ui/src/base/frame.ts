// The frame of all pages: banner, tabs, badge, search, keys, what is saved and shared.

import { link } from "./ask.ts";
import { button } from "./controls.ts";
import { byId, fill, printable } from "./dom.ts";
import { takeDrops } from "./drops.ts";
import { count } from "./format.ts";
import { listen, showKeys, type Key } from "./keys.ts";
import { picture, save } from "./save.ts";
import { keyCommands, palette, share, sharing, type Command } from "./share.ts";
import { termList } from "./terms.ts";

/** Says something above all; nothing hides it. */
export function banner(text: string, wrong = true): void {
  const el = byId("banner");
  el.hidden = text === "";
  el.className = wrong ? "error" : "";
  el.textContent = printable(text);
}

declare global {
  interface Window {
    strandline: unknown; // what the page shows, for tests and for the curious
  }
}

/** How a page is drawn: once, however much changes before the next frame. */
export const drawing = {
  frame: 0,
  draw: (): void => {}, // what the page does
  ask: (): void => {
    drawing.frame ||= requestAnimationFrame(() => {
      drawing.frame = 0;
      drawing.draw();
    });
  },
};

let saying = 0;

/** Announces to screen readers what came of it, once the hand rests. */
export function announce(text: () => string | undefined): void {
  clearTimeout(saying);
  saying = window.setTimeout(() => (byId("live").textContent = text() ?? ""), 500);
}

export interface Tab {
  key: string;
  name: string;
  n?: number; // how much is there
}

/** The views, of which one is open. */
export function tabs(of: Tab[], open: string, go: (key: string) => void): void {
  fill(byId("tabs"), of.map(({ key, name, n }, i) => button(`view ${key}`, n ? `${name} ${count(n)}` : name, () => go(key), { "aria-current": open === key ? "page" : undefined, title: `${name} (${i + 1})` })));
}

/** A word on what the file is good for, and sentences that a click shows. */
export function badge(kind: string, word: string, sentences: string, toggle: (sentences: string) => void = (text) => banner(byId("banner").textContent === printable(text) ? "" : text, kind === "damaged")): void {
  const el = byId("coverage");
  el.hidden = false;
  el.dataset.kind = kind;
  el.textContent = word;
  el.title = sentences;
  el.onclick = () => toggle(sentences);
}

/** What a page gives to its frame. */
export interface Framed {
  views: () => Tab[];
  go: (view: string) => void;
  keys: () => Key[]; // beside those of the frame
  help: string; // what the pointer does
  terms: Record<string, string>;
  name: () => string; // of the file
  title: () => string; // of the picture
  pictures: () => HTMLCanvasElement[];
  gifts?: () => Command[]; // to be saved beside the picture and the page
  places: () => Command[]; // to turn to
  link: () => string;
  search: (q: string) => void;
  say?: (text: string) => void; // in the banner
}

/** Sets the frame up, once for a page. */
export function frame(of: Framed): void {
  const savePicture = async (): Promise<void> => {
    const color = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name);
    const png = await picture(of.title(), of.pictures(), color("--page"), color("--ink"));
    if (png) save(`${of.name()}.png`, png);
  };
  const gifts = (): Command[] => [
    { key: "png", name: "Picture", does: "this view as PNG", off: !of.pictures().length, act: savePicture },
    ...(of.gifts?.() ?? []),
    ...sharing(of.name(), of.link, (text) => announce(() => text)),
  ];
  const give = (): void => share(gifts());
  const help = (): void => showKeys(keys(), of.help, ...termList(of.terms));
  const search = byId<HTMLInputElement>("search");
  const keys = (): Key[] => [
    ...of.views().map(({ key }, i, all) => ({ keys: [String(i + 1)], show: i ? "" : `1 … ${all.length}`, does: "views", act: () => of.go(key) })),
    ...of.keys(),
    { keys: ["/"], show: "/", does: "search by regular expression", act: () => search.focus() },
    { keys: ["e"], show: "e", does: "save the picture, the table or the page, copy the link", act: give },
    { keys: [], show: "⌘K", does: "all commands, views, files and findings", act: () => {} },
    { keys: ["?"], show: "?", does: "this help", act: help },
  ];
  search.addEventListener("input", () => of.search(search.value));
  search.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" && e.key !== "Escape") return;
    e.preventDefault();
    if (e.key === "Escape") of.search((search.value = ""));
    search.blur();
  });
  byId("help").addEventListener("click", help);
  byId("export").addEventListener("click", give);
  link.changed = () => banner(link.lost ? `${link.why} What is here stays.` : "");
  takeDrops(of.say ?? banner);
  listen(keys);
  palette(() => [
    ...of.views().map(({ key, name }) => ({ key, name, does: "view", act: () => of.go(key) })),
    ...of.places(),
    ...gifts().map((c) => ({ ...c, name: `Save or share: ${c.name}` })),
    ...keyCommands(keys()),
  ]);
}

/** Shows in the field of the search what is searched for, and why that is no expression. */
export function searched(q: string, wrong: string | null): void {
  const el = byId<HTMLInputElement>("search");
  if (el !== document.activeElement) el.value = q;
  if (wrong) el.setAttribute("aria-invalid", "true");
  else el.removeAttribute("aria-invalid");
  el.title = wrong ?? "";
}

/** A search as a pattern; null if there is none, or it is not one, of which failed is told. */
export function pattern(q: string, failed: (why: string) => void = () => {}): RegExp | null {
  try {
    return q ? new RegExp(q, "i") : null;
  } catch (e) {
    failed((e as Error).message);
    return null;
  }
}
