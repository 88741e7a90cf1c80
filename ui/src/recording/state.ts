// What the reader looks at in a recording. The address holds it.

import { Address, amount, flag, number, oneOf, some, span, text } from "../base/address.ts";
import type { Span } from "../base/scale.ts";
import type { By } from "./bands.ts";

export const views = { timeline: "Timeline", stacks: "Stacks", gpu: "GPU driver", findings: "Findings" } as const;
export type View = keyof typeof views;

export interface State {
  view: View | null; // null: that which shows the worst finding
  g: By;
  k: number | null; // the moment of the cursor, null for the last
  range: Span | null; // moments
  of: "cursor" | "range"; // what tables show
  y: "mapped" | "resident" | null; // what the height of the picture holds; null: what shows most
  win: Span | null; // what the picture shows, in seconds; null for all
  sel: string | null; // a group
  alone: boolean; // the picture shows it alone
  stack: number | null; // one of its stacks
  gpu: number | null; // a stack of the GPU's driver, by place
  finding: number | null;
  q: string;
}

export const first: State = { view: null, g: "line", k: null, range: null, of: "cursor", y: null, win: null, sel: null, alone: false, stack: null, gpu: null, finding: null, q: "" };

export const address = new Address<State>(first, {
  view: some(oneOf("v", Object.keys(views) as View[])), g: oneOf("g", ["line", "stack"]), k: some(amount("k")), range: some(span("r")), of: oneOf("of", ["cursor", "range"]),
  y: some(oneOf("y", ["mapped", "resident"])), win: some(span("w")), sel: some(text("s")), alone: flag("z"), stack: some(amount("st")), gpu: some(amount("gs")), finding: some(number("fd")), q: text("q"),
});
