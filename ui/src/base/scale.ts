// Axes: from places to pixels, which level of tiles fits, where ticks stand.

import { bytes } from "./format.ts";

export type Span = [number, number];

/** The level at which a bucket of 2^L places is at least one pixel wide, and under two where possible. */
export function levelFor(places: number, pixels: number): number {
  return Math.max(0, Math.ceil(Math.log2(places / Math.max(1, pixels)) - 1e-9));
}

// The center of a pixel leans right by this much of it, so that rounding never
// puts a boundary and the center on it in two orders.
const lean = 1e-6;

/** The first pixel whose center lies at or behind a place. */
export function pixelAt(place: number, win: Span, width: number): number {
  return Math.ceil(((place - win[0]) / (win[1] - win[0])) * width - 0.5 - lean);
}

/** The place at the center of a pixel. */
export const placeAt = (pixel: number, win: Span, width: number): number => win[0] + ((pixel + 0.5 + lean) / width) * (win[1] - win[0]);

/** A window that stays inside [0, end] and is no shorter than least. */
export function clamp(win: Span, end: number, least: number): Span {
  const length = Math.min(Math.max(win[1] - win[0], Math.min(least, end)), end);
  const center = (win[0] + win[1]) / 2;
  const from = Math.min(Math.max(win[1] - win[0] === length ? win[0] : center - length / 2, 0), end - length);
  return [from, from + length];
}

/** Zooms by a factor (under 1: in) around a place that keeps its pixel. */
export function zoom(win: Span, around: number, factor: number): Span {
  return [around - (around - win[0]) * factor, around + (win[1] - around) * factor];
}

/** A window moved by a share of its length. */
export function shifted(win: Span, share: number): Span {
  const d = share * (win[1] - win[0]);
  return [win[0] + d, win[1] + d];
}

/** Round steps, 1-2-5, of which at most n fit. */
export function niceStep(length: number, n: number): number {
  const raw = length / Math.max(1, n);
  const ten = 10 ** Math.floor(Math.log10(raw));
  for (const m of [1, 2, 5]) if (m * ten >= raw * (1 - 1e-9)) return m * ten;
  return 10 * ten;
}

/** Multiples of a step inside a window. */
export function ticks(from: number, to: number, step: number): number[] {
  const out: number[] = [];
  for (let i = Math.ceil(from / step - 1e-9); i * step <= to * (1 + 1e-12); i++) out.push(i * step);
  return out;
}

/** The step of a byte axis: a power of two, at most n steps. */
export function byteStep(top: number, n: number): number {
  return 2 ** Math.max(0, Math.ceil(Math.log2(top / n)));
}

/** A tick of a byte axis: 24 GiB, 512 KiB, 0. */
export const byteTick = (n: number): string => (n === 0 ? "0" : bytes(n));

/** Round steps of time, of which at most n fit, in seconds. */
export function timeStep(win: Span, n: number): number {
  const least = (win[1] - win[0]) / Math.max(1, n);
  for (const s of [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200]) if (s >= least) return s;
  return 86400 * Math.max(1, Math.ceil(least / 86400));
}

/** The last place of a sorted list whose value is not above one; −1 if all are. */
export function lastAt(list: ArrayLike<number>, value: number): number {
  let lo = 0;
  let hi = list.length;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (list[mid]! <= value) lo = mid + 1;
    else hi = mid;
  }
  return lo - 1;
}
