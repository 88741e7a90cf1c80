// The order of the ranks of a job, and when they ended.

import type { JobRank } from "../base/api.ts";

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
