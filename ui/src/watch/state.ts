// What the reader looks at in a recording of a watch. The address holds it.

import { Address, amount, flag, number, oneOf, some, span, text } from "../base/address.ts";
import type { Span } from "../base/scale.ts";
import type { Subject } from "../base/api.ts";

export const views = { process: "Processes", container: "Containers", device: "Devices", findings: "Findings" } as const;
export type View = keyof typeof views;

/** The kinds of subjects, each of which has a view. */
export const kinds: readonly Subject["kind"][] = ["process", "container", "device"];

export interface State {
  view: View | null; // null: that of the worst finding
  sub: string | null; // a subject, null for the first of the view
  k: number | null; // the time of the cursor in seconds, null for the last sample
  range: Span | null; // seconds
  win: Span | null; // what the picture shows, in seconds; null for all
  alone: boolean; // the picture shows what was judged alone
  mapped: boolean; // it shows the mappings of a process, if they are known
  ahead: boolean | null; // it reaches as far as the limit; null: if that is near
  finding: number | null;
  q: string;
}

export const first: State = { view: null, sub: null, k: null, range: null, win: null, alone: false, mapped: false, ahead: null, finding: null, q: "" };

/** A subject as the picture shows it anew. */
export const anew = { win: null, range: null, ahead: null, alone: false } as const;

export const address = new Address<State>(first, {
  view: some(oneOf("v", Object.keys(views) as View[])), sub: some(text("s")), k: some(amount("k")), range: some(span("r")), win: some(span("w")),
  alone: flag("z"), mapped: flag("m"), ahead: some(flag("a")), finding: some(number("fd")), q: text("q"),
});
