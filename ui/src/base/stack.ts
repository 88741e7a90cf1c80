// Stacks: own frames bold, runs of library frames folded to one line.

import { h } from "./dom.ts";
import { base } from "./format.ts";
import type { Frame } from "./wire.ts";

/** A frame, of which it may not be known whose code it is. */
export type AnyFrame = Omit<Frame, "origin"> & { origin?: Frame["origin"] | undefined };

/** Runs of frames: own ones stand alone, neighbors of other known origins together. */
export function fold(frames: AnyFrame[]): { own: boolean; frames: AnyFrame[] }[] {
  const out: { own: boolean; frames: AnyFrame[] }[] = [];
  for (const f of frames) {
    const own = f.origin === "own";
    const last = out[out.length - 1];
    if (last && f.origin && !own && !last.own && last.frames[0]!.origin) last.frames.push(f);
    else out.push({ own, frames: [f] });
  }
  return out;
}

export function stackList(frames: AnyFrame[] | null | undefined, none: string): HTMLElement {
  if (!frames?.length) return h("p", { class: "muted" }, none);
  const line = (f: AnyFrame, own: boolean): HTMLElement =>
    h("li", { class: own ? "own" : undefined, title: `${f.file}:${f.line}` }, h("span", { class: "where" }, f.line > 0 ? `${base(f.file)}:${f.line}` : base(f.file)), ` ${f.function}`, f.file.includes("/") ? h("div", { class: "path" }, f.file) : null);
  const list = h("ol", { class: "stack" });
  for (const run of fold(frames)) {
    if (run.own || run.frames.length < 2) {
      for (const f of run.frames) list.append(line(f, run.own));
      continue;
    }
    const kinds = [...new Set(run.frames.map((f) => f.origin))].join(" and ");
    const libraries = [...new Set(run.frames.map((f) => /[^/]+\.so\b/.exec(f.file)?.[0] ?? ""))].filter(Boolean);
    list.append(h("li", {}, h("button", { type: "button", onclick: (e) => (e.currentTarget as HTMLElement).parentElement!.replaceWith(...run.frames.map((f) => line(f, false))) }, `⋯ ${run.frames.length} ${kinds} frames${libraries.length ? ` of ${libraries.slice(0, 3).join(", ")}${libraries.length > 3 ? ", …" : ""}` : ""}`)));
  }
  return list;
}
