// The terms of the page: one name for one number, as in docs/glossary.md.

import { h, type Attrs, type Child } from "./dom.ts";
import { bytes, percent, plural } from "./format.ts";

export const terms: Record<string, string> = {
  requested: "what the program requested, before rounding",
  allocated: "blocks that the program holds, after rounding",
  active: "allocated, or freed and awaiting a stream",
  reserved: "all segments: what PyTorch took from the driver",
  unused: "reserved, and no part of it requested: free memory, and rounding",
  free: "reserved, and in no block that is allocated or awaits a stream",
  rounding: "the difference between blocks and the requests that they serve",
  releasable: "free memory that torch.cuda.empty_cache() would return to the driver",
  stranded: "free memory that empty_cache() would not return, because other blocks of its segment are active",
  "deferred frees": "freed, and waiting until another stream has caught up",
  kept: "alive at the snapshot",
  "freed later": "live here, and freed before the snapshot",
  "site peak": "the most that this site had at once, at whatever event",
  survivors: "allocations of the first file that live in the last",
  "growth per file": "from one file to the next, as the findings judge it: what was made once and stays does not grow",
  peak: "the moment at which most was live at once",
  segment: "one reservation from the driver",
  block: "a piece of a segment, with what the allocator added to the request",
  pool: "the segments from which a request may be served",
  capacity: "what PyTorch could have: reserved memory and what the driver had left when memory ran out",
  "peak reserved": "the most that a run reserves",
  "fits in": "the least capacity in which a run does not run out of memory",
  "driver calls": "how often PyTorch takes memory from the driver or gives it back",
  "est. cost": "what the calls of the driver take, estimated",
  settings: "PYTORCH_CUDA_ALLOC_CONF: what the allocator was configured with",
  metadata: "the text that the program set with torch.cuda.memory._set_memory_metadata()",
  "compile context": "what torch.compile was at when it allocated",
  purpose: "what the memory is for: parameters, gradients, optimizer state, activations …",
  site: "the innermost line of the program's own code in a stack",
  "before the recording": "allocated before the recording began, so its stack is unknown",
  "stacks off": "recorded without stacks",
  "autograd thread": "allocated by a thread of the backward pass, which has no Python frames",
};

/** The list of terms beside the keys. */
export const termList = (of: Record<string, string>): Node[] => [h("h2", {}, "Terms"), h("dl", { class: "terms" }, Object.entries(of).map(([name, means]) => [h("dt", {}, name), h("dd", {}, means)]))];

/** What a measure of bytes is called. */
export const measureName = { requested: "requested", allocated: "active", reserved: "reserved" } as const;

/** Makes the figures of a list, under names that show what they mean. */
export const rows = (of: Record<string, string>, mark = "data-figure") => (name: string | Node, value: string | Node, n?: number, id?: string): Node[] => [
  h("dt", { title: of[typeof name === "string" ? name.replace(/^of it /, "") : id!] }, name),
  h("dd", { "data-bytes": n, [mark]: id, title: n === undefined ? undefined : `${n} bytes` }, value),
];

export const row = /* @__PURE__ */ rows(terms);

/** The first of a list with their bytes, of which the title gives the share of a whole, and those of the others together. */
export function largest<T extends { bytes: number }>(list: T[], most: number, name: (x: T, i: number) => Child, others: string, whole?: number, more: Attrs = {}): Node[] {
  const rest = list.slice(most);
  return [
    h("dl", { class: "names", ...more }, list.slice(0, most).map((x, i) => [h("dt", {}, name(x, i)), h("dd", { "data-bytes": x.bytes, title: whole && percent(x.bytes, whole) }, bytes(x.bytes))])),
    ...(rest.length ? [h("p", { class: "muted" }, `${plural(rest.length, `more ${others}`)}, ${bytes(rest.reduce((n, x) => n + x.bytes, 0))}`)] : []),
  ];
}

/** Why there is no stack, in a sentence. */
export const noStack = (missing: string | undefined): string => (missing && terms[missing] ? `${missing}: ${terms[missing]}` : "No stack was recorded.");
