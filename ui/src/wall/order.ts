// The order of the rows of the wall, and which of them are shown.

import type { Finding } from "../base/api.ts";
import { pattern } from "../base/frame.ts";

export interface Ranked {
  severity: Finding["severity"] | null; // of its worst finding
  place: number; // of that among all findings
  peak: number;
  text: string; // that the search looks in
}

export type Only = "all" | "problem" | "warning" | "info" | "none";

const weight = { problem: 0, warning: 1, info: 2 };

/** The rows that are outliers come first: by their findings, in the order of these, then by how far their peak is from that of the row in the middle. */
export function outliersFirst<R extends Ranked>(rows: R[]): R[] {
  const peaks = rows.map((r) => r.peak).sort((a, b) => a - b);
  const middle = Math.max(1, peaks[peaks.length >> 1] ?? 1);
  const far = (r: Ranked): number => Math.round(Math.abs(Math.log2(Math.max(1, r.peak) / middle)) * 8); // in steps of 9 %
  const rank = (r: Ranked): number => (r.severity ? weight[r.severity] : 3);
  const asks = (r: Ranked): number => (rank(r) < 2 ? r.place : 0);
  return [...rows].sort((a, b) => rank(a) - rank(b) || asks(a) - asks(b) || far(b) - far(a));
}

/** The rows of a kind that match a search. One that is no expression leaves all. */
export function filtered<R extends Ranked>(rows: R[], only: Only, q: string): R[] {
  const found = pattern(q);
  return rows.filter((r) => (only === "all" || (r.severity ?? "none") === only) && (!found || found.test(r.text)));
}
