// The figures of evidence in words.

import { command, h } from "../base/dom.ts";
import { base, count } from "../base/format.ts";

/** Keys of evidence that do not say by themselves what they count. */
const evidenceWords: Record<string, string> = {
  assumed_bytes: "whose release may have been missed",
  beyond_bytes: "more than the driver counts",
  early_bytes: "grown at first, and not counted",
  echo_bytes: "of the backward pass, the same sizes",
  events_of_kind: "errors of this kind",
  exact: "replayed exactly",
  file_bytes: "of files",
  lost: "times that something was freed",
  lost_bytes: "lost to rounding",
  older_bytes: "in older memory",
  outlived: "times that nothing was freed",
  overhead_bytes: "reserved above what the peak explains",
  owner: "requested by",
  passing_bytes: "activations and temporaries at the peak",
  peak_waiting_bytes: "most deferred frees at once",
  place_bytes: "of this site at the peak",
  pytorch_bytes: "of PyTorch's allocator",
  request_bytes: "the failed request",
  rounds: "intervals with growth that lasted",
  rate_percent: "growth per second, %",
  seconds: "watched",
  seconds_to_limit: "time until the limit",
  settled_seconds: "time until it settled",
  sharable_bytes: "less free, were the pools one",
  taken_though_free_bytes: "taken from the driver although enough was free",
  tiny_count: "requests below 512 bytes",
  tiny_lost_bytes: "lost to requests below 512 bytes",
  unknown_bytes: "of unknown sites",
  unnamed_bytes: "stack unknown",
  unseen_bytes: "calls not seen",
  unsplit_bytes: "lost to blocks that were not split",
  waiting_bytes: "deferred frees",
  waiting_count: "deferred frees, in number",
};

/** A kind of finding in words. */
export const kindName = (kind: string): string => (kind === "oom" ? "out of memory" : kind.replaceAll("-", " "));

/** A text in which commands stand between backquotes. */
export const marked = (text: string): (Node | string)[] => text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));

/** What to do, as a sentence; a command at its end is ready to be copied. */
export function remedy(text: string): Node[] {
  const [, sentence, toPaste] = /^(.*?):? `([^`]+)`$/s.exec(text) ?? [];
  return [h("p", { class: "fix" }, marked(sentence ?? text)), ...(toPaste ? [command(toPaste)] : [])];
}

/** A key of evidence in words. */
export const evidenceName = (key: string): string =>
  evidenceWords[key] ?? key.replace(/^rate_/, "growth_").replace(/_bounds/, ",_in_9_of_10_cases").replace(/_percent$/, ",_%").replace(/_bytes(?=_|$)/, "").replaceAll("_", " ");

/** What keeps tensors alive, as evidence.held_by has it. */
export interface Holder {
  path: string;
  share: number;
  file?: string;
  line?: number | null;
  node?: string;
  chain_length?: number | null;
  grew?: number | null;
}

/** The holders in the evidence of a finding, of most tensors first. */
export const holders = (evidence: Record<string, unknown> | null | undefined): Holder[] => (Array.isArray(evidence?.held_by) ? (evidence.held_by as Holder[]) : []);

/** What a holder is, beside its path: the graph that it ends, and the line that puts tensors there. */
export function holderWords(x: Holder): string {
  const words: string[] = [];
  if (x.chain_length) words.push(`ends a chain of ${count(x.chain_length)} ${x.node ?? "nodes"}${x.grew ? `, ${count(x.grew)} more than in the snapshot before` : ""}`);
  if (x.file) words.push(`${base(x.file)}${x.line ? `:${x.line}` : ""}`);
  return words.join(" · ");
}
