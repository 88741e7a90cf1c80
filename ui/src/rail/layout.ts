// Where the parts of the rail stand.

import type { Page } from "../session/page.ts";
import { left, right } from "../picture/canvas.ts";

export const axisHeight = 20;
export const mapHeight = 34;
export const captionHeight = 20; // above what a lane draws
export const laneHeight = captionHeight + 48; // of what is not in use, in What if

export interface Layout {
  width: number; // of the picture, CSS pixels
  steps: number; // y of the lanes, or -1
  notes: number;
  noteRows: number;
  grows: number;
  growRows: number;
  top: number; // of the picture
  height: number;
  lane: number; // of what is not in use; -1: none
  map: number; // -1: none
  whole: number; // height of the rail
}

/** The layout of the view that is chosen, in a rail of some width. */
export function layoutOf(page: Page, room: number): Layout {
  const { view } = page.s;
  const runs = view === "whatif";
  const compact = view !== "timeline" && !runs;
  const l: Layout = { width: Math.max(100, room - left - right), steps: -1, notes: -1, noteRows: 0, grows: -1, growRows: 0, top: 0, height: 64, lane: -1, map: -1, whole: 0 };
  const lanes = view === "timeline" ? placeLanes(page, l, room < 1100) : 2;
  l.top = lanes + (compact ? 14 : 18); // room for the flags of marks
  const empty = page.device?.events === 0; // then words stand in the picture
  l.height = compact ? 64 : empty ? 150 : Math.max(150, Math.min(620, Math.round(innerHeight * (runs ? 0.36 : 0.515)) - lanes - 18 - 40));
  l.whole = l.top + l.height + axisHeight;
  if (runs) {
    l.lane = l.whole + 4;
    l.whole = l.lane + laneHeight;
  }
  if (!compact) {
    l.map = l.whole + 4;
    l.whole = l.map + mapHeight + 12;
  } else l.whole += 4;
  return l;
}

/** Places the lanes above the picture, and returns where they end. */
function placeLanes({ device, bands }: Page, l: Layout, narrow: boolean): number {
  let y = 2;
  if (device?.scopes.some((s) => s.lane === "steps")) {
    l.steps = y;
    y += 18;
  }
  l.noteRows = Math.min(narrow ? 1 : 3, noteRows(device?.scopes ?? []).rows);
  if (l.noteRows > 0) {
    l.notes = y;
    y += 18 * l.noteRows;
  }
  l.growRows = Math.min(narrow ? 1 : 3, bands?.lanes.length ?? 0);
  if (l.growRows > 0) {
    l.grows = y;
    y += 22 * l.growRows;
  }
  return y;
}

/** Rows for annotations that may lie inside each other: each goes to the first row that is free. */
export function noteRows(scopes: { lane: string; from: number; to: number }[]): { rows: number; row: number[] } {
  const ends: number[] = [];
  const row = scopes.map((s) => {
    if (s.lane !== "notes") return -1;
    let r = ends.findIndex((end) => end <= s.from);
    if (r < 0) r = ends.length;
    ends[r] = s.to;
    return r;
  });
  return { rows: ends.length, row };
}
