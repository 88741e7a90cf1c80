// The findings of a recording.

import { textLink } from "../base/controls.ts";
import { h } from "../base/dom.ts";
import { findingsView } from "../findings/article.ts";
import { cardOf } from "../findings/card.ts";
import { doc, layers, root, s, set, whole } from "./model.ts";
import type { RecordedFinding } from "../base/api.ts";
import type { View } from "./state.ts";

export function findings(): void {
  const show = ({ kind, stacks }: RecordedFinding): string => (kind === "driver-leak" ? "show where it is taken" : stacks.length ? "show in the timeline" : "");
  findingsView(root, doc.findings, doc.card, s.finding, {
    go: (n) => go(n, "findings"),
    acts: (f, i) => [show(f) ? textLink("show", show(f), () => go(i, f.kind === "driver-leak" ? "gpu" : "timeline")) : null],
  }, doc.judged_seconds === null ? [cardOf(doc.card, null, {}), h("p", {}, "This recording ends before memory was judged for the first time.")] : null);
}

/** Takes the page to the stack of a finding, and to the time in which it holds something. */
export function go(i: number, to: View): void {
  const f = doc.findings[i]!;
  if (f.kind === "driver-leak") {
    const place = doc.gpu.findIndex((x) => f.stacks.includes(x.id));
    return set({ finding: i, view: to, gpu: place < 0 ? null : place }, true);
  }
  const at = doc.stacks.findIndex((x) => x.id === f.stacks[0]);
  const group = layers.groups.find((g) => g.stacks.includes(at));
  if (at < 0 || !group || !whole.n) return set({ finding: i, view: to, sel: null, stack: null, range: null, of: "cursor" }, true);
  const { first_seconds: from, last_seconds: until } = doc.stacks[at]!;
  const { moment, seconds } = whole.of;
  const near = (t: number): number => moment[Math.max(0, seconds.findLastIndex((v) => v <= t))]!;
  set({ finding: i, view: to, sel: group.key, stack: doc.stacks[at]!.id, range: [near(from ?? 0), near(until ?? 0)], of: "range", k: near(until ?? 0) }, true);
}
