// What the reader looks at in a recording of a watch. The address holds it.

import type { Span } from "../base/scale.ts";
import type { Subject } from "./wire.ts";

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

export function encode(s: State): string {
  const q = new URLSearchParams();
  const put = (name: string, value: string | number | null): void => {
    if (value !== null && value !== "") q.set(name, String(value));
  };
  const span = (v: Span | null): string | null => v && v.map((t) => Number(t.toFixed(3))).join("-");
  put("v", s.view);
  put("s", s.sub);
  put("k", s.k);
  put("r", span(s.range));
  put("w", span(s.win));
  put("z", s.alone ? 1 : null);
  put("m", s.mapped ? 1 : null);
  put("a", s.ahead === null ? null : Number(s.ahead));
  put("fd", s.finding);
  put("q", s.q);
  return `#${q}`;
}

/** Reads an address. What is unknown or cannot be is left out. */
export function decode(hash: string): State {
  const q = new URLSearchParams(hash.replace(/^#/, ""));
  const number = (name: string): number | null => (/^\d{1,12}(\.\d{1,6})?$/.test(q.get(name) ?? "") ? Number(q.get(name)) : null);
  const span = (name: string): Span | null => {
    const m = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(q.get(name) ?? "");
    return m && Number(m[1]) < Number(m[2]) ? [Number(m[1]), Number(m[2])] : null;
  };
  const ahead = q.get("a");
  return {
    view: (Object.keys(views) as View[]).find((v) => v === q.get("v")) ?? null,
    sub: q.get("s"),
    k: number("k"),
    range: span("r"),
    win: span("w"),
    alone: q.get("z") === "1",
    mapped: q.get("m") === "1",
    ahead: ahead === "1" ? true : ahead === "0" ? false : null,
    finding: q.get("fd") === "-1" ? -1 : number("fd"),
    q: q.get("q") ?? "",
  };
}
