// Words for what the engine's short names mean.

import { count } from "./format.ts";
import type { Fate } from "./wire.ts";

export const groupings: Record<string, string> = {
  line: "own line",
  function: "function",
  file: "file",
  stack: "full stack",
  purpose: "purpose",
  pool: "pool and stream",
  size: "size class",
  annotation: "annotation",
};

/** The names of purposes in words, where those differ; as package purpose has them. */
export const purposes: Record<string, string> = { optimizer: "optimizer state", kv_cache: "KV cache", communication: "communication buffers", unknown: "of unknown purpose" };

export const fates: Record<Fate, string> = {
  kept: "alive at the snapshot",
  freed: "freed before the snapshot",
  pending: "freed, awaiting a stream",
};

/** Nodes of a tree of stacks that are not frames: why there is no stack. */
export const missing: Record<number, string> = {
  [-2]: "stacks off",
  [-3]: "autograd thread",
  [-4]: "before the recording",
  [-5]: "stack not captured",
};

export const coverages: Record<string, string> = {
  exact: "exact",
  ring: "cut ring",
  late: "late start",
  damaged: "damaged",
  state: "state only",
};

export const actions: Record<string, string> = {
  alloc: "allocation",
  free_requested: "free requested",
  free_completed: "free completed",
  free: "free",
  segment_alloc: "segment taken from the driver",
  segment_free: "segment given back to the driver",
  segment_map: "pages mapped",
  segment_unmap: "pages unmapped",
  snapshot: "snapshot",
  oom: "out of memory",
  user_defined: "annotation",
};

/** What lives at an event, as a button shows it. */
export const liveAt = (k: number, events: number): string => (k >= 0 ? `live at ${count(k)}` : events ? "live before the first event" : "live at the snapshot");

/** The finding that is pinned, by its place in a list: the chosen one, or on arrival the worst that asks for something, which what is not recorded does not; −1 if none is. */
export function pinnedOf(findings: { severity: string; kind: string }[], chosen: number | null): number {
  if (chosen !== null) return chosen < findings.length ? chosen : -1;
  return findings.findIndex((f) => f.severity !== "info" && f.kind !== "history");
}
