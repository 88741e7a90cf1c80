// The figures of evidence in words.

import { h } from "../base/dom.ts";
import { base, count } from "../base/format.ts";

export const evidenceWords: Record<string, string> = {
  allocations_after: "allocations that followed",
  bytes_at_checkpoints: "live at each checkpoint",
  checkpoint_events: "checkpoints at events",
  count_at_checkpoints: "allocations at each checkpoint",
  device_free_bytes: "free on the device",
  echo_bytes: "of the backward pass, the same sizes",
  events_of_kind: "errors of this kind",
  exact: "replayed exactly",
  file_count: "files",
  intervals: "intervals between checkpoints",
  kept_for_backward_bytes: "kept for the backward pass",
  largest_free_bytes: "largest free piece",
  lost: "times that something was freed",
  lost_bytes: "lost to rounding",
  next_peak_event: "the next peak, at event",
  outlived: "times that nothing was freed",
  overhead_bytes: "reserved above what the peak explains",
  passing_bytes: "activations and temporaries at the peak",
  peak_reserved_bytes: "most reserved",
  peak_waiting_bytes: "most deferred frees at once",
  peak_without_bytes: "the peak without it",
  place_bytes: "of this site at the peak",
  private_active_bytes: "active in private pools",
  private_free_bytes: "free in private pools",
  private_reserved_bytes: "reserved by private pools",
  request_bytes: "the failed request",
  rounds: "intervals with growth that lasted",
  rate_bytes_per_second: "growth per second",
  seconds: "watched",
  seconds_to_limit: "time until the limit",
  sharable_bytes: "less free, were the pools one",
  taken_though_free_bytes: "taken from the driver although enough was free",
  tiny_count: "requests below 512 bytes",
  tiny_lost_bytes: "lost to requests below 512 bytes",
  unknown_bytes: "of unknown sites",
  unknown_count: "allocations of unknown sites",
  unsplit_bytes: "lost to blocks that were not split",
  waiting_bytes: "deferred frees",
  waiting_count: "deferred frees, in number",
};

/** A kind of finding in words. */
export const kindName = (kind: string): string => (kind === "oom" ? "out of memory" : kind.replaceAll("-", " "));

/** A text in which commands stand between backquotes. */
export const marked = (text: string): (Node | string)[] => text.split("`").map((part, i) => (i % 2 ? h("code", {}, part) : part));

/** A key of evidence in words. */
export const evidenceName = (key: string, words: Record<string, string>): string => words[key] ?? key.replace(/_bytes$/, "").replace(/_bytes_/, " ").replaceAll("_", " ");

/** What keeps tensors alive, as evidence.held_by has it. */
export interface Holder {
  kind: string;
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
