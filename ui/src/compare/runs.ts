// Runs of different code: lines move, so their places are matched by function.

import type { Site } from "../base/api.ts";

export interface Place {
  file?: string | null;
  function?: string | null;
  missing?: string;
}

/** What a place is matched by: its function and the end of its path, as `compare --runs` does. */
export const loose = (s: Place): string => (s.file ? `${s.file.split("/").slice(-2).join("/")} ${s.function}` : (s.missing ?? ""));

/** Sites by function, each at its line in the newest file that holds some of it. */
export function byFunction(sites: Site[]): Site[] {
  const newest = (s: Site): number => s.bytes.findLastIndex((n) => n > 0);
  const rows = new Map<string, Site>();
  for (const s of sites) {
    const there = rows.get(loose(s));
    const sum = (a: number[], b: number[] = []): number[] => a.map((n, i) => n + (b[i] ?? 0));
    rows.set(loose(s), { ...(there && newest(there) >= newest(s) ? there : s), bytes: sum(s.bytes, there?.bytes), count: sum(s.count, there?.count), survivors: s.survivors + (there?.survivors ?? 0) });
  }
  return [...rows.values()];
}
