// The card of a verdict: what is wrong, where, how sure that is and what to do, as the
// commands print it.

import { button, textLink } from "../base/controls.ts";
import type { Card, Finding } from "../base/api.ts";
import { byId, command, fill, h, svg } from "../base/dom.ts";
import { bytes, plural } from "../base/format.ts";
import { pinnedOf } from "../base/names.ts";
import { stackList } from "../base/stack.ts";
import { holders, holderWords, remedy } from "./words.ts";

/** A finding, of a session or of a recording. */
export type Judgment = Omit<Finding, "where">;

/** What stands on a card beside the words of the finding. */
export interface Beside {
  who?: string; // whose finding it is, where that is not obvious
  curve?: Node | null;
  freed?: Node | null; // what it would save
  acts?: (Node | null)[];
}

export const chip = (word: string): HTMLElement => h("span", { class: "word", "data-word": word }, word);

/** The verdict in a word, and what it is about in large type. */
export function head({ word, line, title, sure }: Card, who = ""): Node[] {
  return [
    h("p", { class: "chips" }, chip(word), sure ? h("span", {}, sure) : null, who ? h("span", { class: "muted" }, who) : null),
    h("h2", { class: "what" }, line ? line.split(/(?<=[_:/.])(?=[^\s])/).map((part, i) => [i ? h("wbr") : null, part]) : title || "nothing is said of it"),
    ...(line ? [h("p", { class: "how" }, title)] : []),
  ];
}

/** Writes the verdict on all into the head of the page, where a click shows its card. */
export function verdict(c: Card | null, act: () => void): void {
  const word = byId("word");
  word.hidden = !c;
  if (c) word.dataset.word = word.textContent = c.word;
  word.onclick = act;
}

/** Draws a card in full, which a button closes, with buttons for the other findings that ask for something, or for all notes. */
export function fullCard(root: HTMLElement, c: Card, findings: (Judgment & { card: Card })[], pinned: number, beside: Beside, go: (i: number) => void, all: (i: number) => void): void {
  const asks = pinnedOf(findings, null) >= 0;
  const notes = findings.flatMap((f, i) => (f.severity === "info" ? [i] : []));
  const others = [...findings.keys()].filter((i) => i !== pinned && !(asks && findings[i]!.severity === "info"));
  const most = 4;
  fill(
    root,
    button("close card", "×", () => go(-1), { class: "icon close", "aria-label": "Close the card", title: "Close (Esc)" }),
    cardOf(c, findings[pinned] ?? null, beside),
    others.length
      ? [
          h("h3", {}, asks ? "other findings" : "notes"),
          h("ol", { class: "others" }, others.slice(0, most).map((i) => h("li", {}, button(`other ${i}`, [chip(findings[i]!.card.word), h("span", { class: "name" }, findings[i]!.card.line ? [findings[i]!.card.line, h("span", { class: "muted" }, ` ${findings[i]!.card.title}`)] : findings[i]!.card.title)], () => go(i), { title: findings[i]!.title })))),
        ]
      : null,
    h("div", { class: "acts" }, others.length > most ? textLink("more findings", plural(others.length - most, "more finding"), () => all(others[most]!)) : null, asks && notes.length ? textLink("notes", plural(notes.length, "note"), () => all(notes[0]!)) : null),
  );
}

/** A card in short: a button that shows it in full. */
export const shortCard = (root: HTMLElement, c: Card, act: () => void): void => fill(root, button("verdict", head(c), act, { class: "short" }));

/** A card in full. Of a verdict without a finding there is only what the words say. */
export function cardOf(c: Card, f: Judgment | null, { who, curve, freed, acts }: Beside): Node[] {
  const out: (Node | null)[] = [
    ...head(c, who),
    ...[c.fact, c.note].map((text) => (text ? h("p", {}, text) : null)),
    curve ?? null,
    c.course ? h("p", { class: "course" }, c.course) : null,
    freed ?? null,
    ...toDo(c),
    ...(f ? [...stackOf(f, c.via), ...keptBy(f)] : []),
    ...(c.why ? [h("h3", {}, "why"), h("p", {}, c.why)] : []),
    ...(c.next ? [h("h3", {}, "next"), command(c.next)] : []),
    acts?.length ? h("div", { class: "acts" }, acts) : null,
  ];
  return out.filter((n) => n !== null);
}

/** What to do first, ready to paste. */
function toDo({ fix, paste, effect }: Card): Node[] {
  if (!fix) return [];
  return [h("h3", {}, "to do"), ...remedy(fix), ...(paste?.length ? [command(paste.join("\n"))] : []), ...(effect ? [h("p", { class: "good" }, effect)] : [])];
}

/** The stack of a finding, innermost first. */
export function stackOf(f: Judgment, via = ""): Node[] {
  if (!f.stack?.length) return via ? [h("h3", {}, "stack"), h("p", { class: "mono" }, `← ${via}`)] : [];
  return [h("h3", {}, "stack"), stackList(f.stack.map((x, n) => ({ ...x, origin: f.origins?.[n] })), "")];
}

/** Who keeps the tensors of a leak, where the recorder looked. */
export function keptBy(f: Judgment): Node[] {
  const held = holders(f.evidence as Record<string, unknown> | undefined);
  if (!held.length) return [];
  return [h("h3", {}, "kept by"), h("dl", { class: "held" }, held.slice(0, 8).map((x) => [h("dt", {}, `${Math.round(100 * x.share)} %`), h("dd", {}, h("span", { class: "mono" }, x.path), h("span", { class: "muted" }, ` ${holderWords(x)}`))]))];
}

/** A curve from zero, with its axes: bytes up to the highest value, and from where to where it goes. */
export function curve(values: ArrayLike<number>, from: string, to: string, calm = false): HTMLElement {
  const n = values.length;
  let most = 1;
  for (let i = 0; i < n; i++) most = Math.max(most, values[i]!);
  const points = Array.from({ length: n }, (_, i) => `${((100 * i) / Math.max(1, n - 1)).toFixed(2)},${(40 - (39 * values[i]!) / most).toFixed(2)}`);
  const drawn = svg(
    "svg",
    { viewBox: "0 0 100 40", preserveAspectRatio: "none", "aria-hidden": "true" },
    svg("polygon", { points: `0,40 ${points.join(" ")} 100,40` }),
    svg("polyline", { points: points.join(" ") }),
  );
  return h("div", { class: calm ? "curve calm" : "curve", role: "img", "aria-label": `from ${bytes(values[0])} to ${bytes(values[n - 1])}, at most ${bytes(most)}` }, h("span", {}, bytes(most)), h("span", {}, "0"), drawn, h("span", {}, from), h("span", {}, to));
}
