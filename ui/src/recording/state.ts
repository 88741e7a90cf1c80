// What the reader looks at in a recording. The address holds it.

import type { By } from "./bands.ts";
import type { Span } from "../base/scale.ts";

export const views = { timeline: "Timeline", stacks: "Stacks", gpu: "GPU driver", findings: "Findings" } as const;
export type View = keyof typeof views;

export interface State {
  view: View;
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

export const first: State = { view: "timeline", g: "line", k: null, range: null, of: "cursor", y: null, win: null, sel: null, alone: false, stack: null, gpu: null, finding: null, q: "" };

export function encode(s: State): string {
  const q = new URLSearchParams();
  const put = (name: string, value: string | number | null, otherwise: string | null = null): void => {
    if (value !== null && value !== otherwise) q.set(name, String(value));
  };
  put("v", s.view, first.view);
  put("g", s.g, first.g);
  put("k", s.k);
  put("r", s.range && s.range.join("-"));
  put("of", s.of, first.of);
  put("y", s.y);
  put("w", s.win && s.win.map((v) => Number(v.toFixed(3))).join("-"));
  put("s", s.sel);
  put("z", s.alone ? 1 : null);
  put("st", s.stack);
  put("gs", s.gpu);
  put("fd", s.finding);
  put("q", s.q, "");
  return `#${q}`;
}

/** Reads an address. What is unknown or cannot be is left out. */
export function decode(hash: string): State {
  const q = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name: string): number | null => (/^\d{1,15}$/.test(q.get(name) ?? "") ? Number(q.get(name)) : null);
  const span = (name: string): Span | null => {
    const m = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(q.get(name) ?? "");
    return m && Number(m[1]) <= Number(m[2]) ? [Number(m[1]), Number(m[2])] : null;
  };
  const one = <T extends string>(name: string, list: readonly T[], otherwise: T): T => list.find((v) => v === q.get(name)) ?? otherwise;
  const range = span("r");
  const win = span("w");
  return {
    view: one("v", Object.keys(views) as View[], first.view),
    g: one("g", ["line", "stack"], first.g),
    k: number("k"),
    range: range && (range.map(Math.floor) as Span),
    of: one("of", ["cursor", "range"], first.of),
    y: (["mapped", "resident"] as const).find((v) => v === q.get("y")) ?? null,
    win: win && win[1] > win[0] ? win : null,
    sel: q.get("s"),
    alone: q.get("z") === "1" && q.get("s") !== null,
    stack: number("st"),
    gpu: number("gs"),
    finding: q.get("fd") === "-1" ? -1 : number("fd"),
    q: q.get("q") ?? "",
  };
}
