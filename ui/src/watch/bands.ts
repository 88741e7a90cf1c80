// The course of one subject as bands of a picture, and the curve of its judgment.

import { time } from "../base/format.ts";
import { stackOf } from "../picture/blit.ts";
import { lastAt } from "../base/scale.ts";
import { markSlot } from "../picture/palette.ts";
import { bandsOf, tileOf as tile } from "../picture/plot.ts";
import type { Bands, Tile } from "../base/wire.ts";
import type { FindingLevelsEvidence as Evidence, Fit, Levels } from "../base/api.ts";

export const others = "others";

/** The color of a part that all processes have; parts of containers and devices take the others in turn. */
export const slots: Record<string, number> = {
  anonymous: 0, shared: 4, file: 2, allocated: 0, cached: 5, other: 4, "not divided": 0,
  "processes that have ended": -1, "not attributed to any process": -1, "everything else": -1,
};

/** A part of what is stacked, by columns. NaN is what is not known. */
export interface Part {
  name: string;
  slot: number;
  readonly own: number; // the slot where nothing is found of it
  beside: boolean; // it is drawn as a line, and not stacked
  values: Float64Array;
}

/** The course of a subject. Columns are in the order of time, and can have gaps between them. */
export class Course {
  readonly n: number;
  readonly parts: Part[];

  constructor(readonly of: Levels) {
    this.n = of.from.length;
    let turn = 0;
    this.parts = of.parts.map((p, i) => ({ name: p.name, slot: 0, own: slots[p.name] ?? turn++ % 10, beside: p.beside, values: Float64Array.from(of.bytes[i]!, (v) => v ?? NaN) }));
    const rest = Float64Array.from(of.max_bytes, (total, c) => this.parts.reduce((left, p) => (p.beside || Number.isNaN(p.values[c]!) ? left : left - p.values[c]!), total));
    if (rest.some((v) => v > 0)) this.parts.push({ name: others, slot: 0, own: -1, beside: false, values: rest.map((v) => Math.max(0, v)) });
  }

  /** Gives the parts that a finding is about the color of the mark, and all others their own. */
  mark(names: string[]): void {
    for (const p of this.parts) p.slot = names.includes(p.name) ? markSlot : p.own;
  }

  /** The last column that begins no later than a time; −1 if none does. */
  at(seconds: number): number {
    return lastAt(this.of.from, seconds);
  }

  /** Where column c ends: a sample holds until the next one. The last one is seen for a moment. */
  end(c: number): number {
    const { from, to } = this.of;
    if (to[c]! > from[c]!) return to[c]!;
    const whole = (to[this.n - 1] ?? 0) - (from[0] ?? 0);
    return Math.min(from[c]! + (whole > 0 ? whole / 400 : 1), from[c + 1] ?? Infinity);
  }
}

export interface Layers {
  parts: Part[]; // from below; judged ones first
  bands: Bands; // as the painter knows them
}

/** The bands of a course. What was judged lies below, and alone if so wished. */
export function layersOf(course: Course, judged: string[], alone: boolean): Layers {
  const below = (p: Part): number => (judged.includes(p.name) ? 0 : 1);
  const stacked = course.parts.filter((p) => !p.beside && (!alone || judged.includes(p.name)));
  const parts = stacked.map((p, i) => ({ p, i })).sort((a, b) => below(a.p) - below(b.p) || a.i - b.i).map((x) => x.p);
  return { parts, bands: bandsOf(parts.map((p) => ({ key: p.name, label: p.name, slot: p.slot })), parts.map((_, group) => ({ group, fate: "kept" })), 0) };
}

/** The picture of a course for the painter. Its highest and lowest totals are those of all samples in a column. */
export function tileOf(course: Course, l: Layers, alone: boolean): Tile {
  const { max_bytes: max, min_bytes: min } = course.of;
  return tile(course.n, l.parts.map((p) => [p.values]), alone ? {} : { max: Float64Array.from(max), min: Float64Array.from(min), reserved: Float64Array.from(max) });
}

/** Reports whether what was judged is drawn from zero: all, the lowest bands, or a line. */
export function standsOnZero(l: Layers, judged: string[], course: Course): boolean {
  if (!judged.length || judged.every((name) => course.parts.some((p) => p.name === name && p.beside))) return true;
  return l.parts.slice(0, judged.length).every((p) => judged.includes(p.name)) && l.parts.length >= judged.length;
}

/** What is drawn in a column, from below. */
export const entriesOf = (tile: Tile, l: Layers, c: number): { name: string; from: number; bytes: number }[] =>
  stackOf(tile, c).map((d) => ({ name: l.parts[d.band]!.name, from: d.from, bytes: d.bytes }));

/** A curve that was fitted, the figures of that judgment, and the parts that it is of. */
export interface Judged {
  fit: Fit;
  e: Evidence;
  parts: string[];
}

/** Whether evidence is of a series whose level is known. */
export const isOfLevel = (e: Partial<Evidence> | null | undefined): e is Evidence => typeof e?.verdict === "string" && typeof e.level_bytes === "number";

export const grows = ({ verdict }: Evidence): boolean => verdict === "growth" || verdict === "sawtooth-growth";

/** A moment of the recording, to the second: 5 h 33 min 12 s. */
export function moment(seconds: number): string {
  if (seconds < 3600) return time(seconds);
  const whole = Math.round(seconds);
  return [[Math.floor(whole / 86400), "d"], [Math.floor(whole / 3600) % 24, "h"], [Math.floor(whole / 60) % 60, "min"], [whole % 60, "s"]].filter(([n]) => n).map(([n, unit]) => `${n} ${unit}`).join(" ");
}

/** A tick of the axis of time, where the next one is so many seconds away. */
export function timeTick(seconds: number, every: number): string {
  if (seconds === 0) return "0";
  if (every >= 60 || seconds < 60) return time(seconds);
  const two = (n: number): string => String(Math.floor(n)).padStart(2, "0");
  const rest = seconds % 60;
  const s = every < 1 ? rest.toFixed(2).padStart(5, "0") : two(rest + 1e-6);
  return seconds < 3600 ? `${Math.floor(seconds / 60)}:${s} min` : `${Math.floor(seconds / 3600)}:${two((seconds / 60) % 60)}:${s}`;
}
