// The words of a verdict on a job, and the order of its ranks.

import { plural } from "../base/format.ts";
import type { Job, JobRank } from "../base/api.ts";

/** The verdict in a line, as `diagnose` prints it. */
export function title(j: Job): string {
  const of = `a job of ${plural(j.world_size, "rank")}`;
  if (j.cause === "none") return `OK: ${of} came to its end`;
  const { rank, node, confidence } = j.first;
  const perhaps = confidence < 0.5 ? "perhaps " : "";
  const place = node === null ? "" : ` on ${node}`;
  const who = rank !== null ? `${perhaps}rank ${rank}${place} fell first` : node !== null ? `${perhaps}node ${node} fell first` : "no rank fell first";
  const cause: Record<string, string> = { unknown: "the cause is unknown", "not-memory": "not out of memory" };
  return `${j.failed ? "FAILED" : "UNKNOWN"}: ${of}: ${who}; ${cause[j.cause] ?? j.cause.replaceAll("-", " ")} (${Math.round(100 * j.confidence)}% sure)`;
}

/** A time after the first end. */
export function when(seconds: number): string {
  if (seconds === 0) return "0 s";
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 2 : 1)} s`;
  return seconds < 6000 ? `${(seconds / 60).toFixed(1)} min` : `${(seconds / 3600).toFixed(1)} h`;
}

export type By = "time" | "rank" | "node" | "end" | "step" | "peak" | "text";

/** The rows by a column. They come by time, the first one first; those with the most memory come first, and of steps the lowest. */
export function order(rows: JobRank[], by: By): JobRank[] {
  const of: Record<By, (r: JobRank) => string | number> = {
    time: () => 0,
    rank: (r) => r.rank,
    node: (r) => r.node ?? "~",
    end: (r) => r.end ?? "~",
    step: (r) => r.step ?? Infinity,
    peak: (r) => -(r.peak_bytes ?? 0),
    text: (r) => r.text ?? "~",
  };
  const key = of[by];
  return [...rows].sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
}
