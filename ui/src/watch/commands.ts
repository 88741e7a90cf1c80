// The commands in a remedy, ready to paste.

import { h } from "../base/dom.ts";
import type { WatchFinding } from "./wire.ts";

/** What a remedy names between backquotes. */
export const commandsOf = (f: WatchFinding): string[] => [...new Set((f.remedies ?? []).flatMap((r) => [...r.text.matchAll(/`([^`]+)`/g)].map((m) => m[1]!)).concat((f.remedies ?? []).flatMap((r) => r.setting ?? [])))];

/** A command with a button that copies it. */
export function command(text: string): HTMLElement {
  const copy = (e: Event): void => {
    const button = e.currentTarget as HTMLElement;
    const done = (): void => {
      button.textContent = "copied";
    };
    if (navigator.clipboard) return void navigator.clipboard.writeText(text).then(done, () => select(button));
    select(button);
  };
  return h("div", { class: "command" }, h("pre", { tabindex: "0" }, text), h("button", { type: "button", class: "link", "data-key": `copy ${text}`, "aria-label": `Copy ${text}`, onclick: copy }, "copy"));
}

/** Where the page may not copy, it selects the text. */
function select(button: HTMLElement): void {
  const pre = button.previousElementSibling;
  if (pre) getSelection()?.selectAllChildren(pre);
}
