// Figures of a plan in words.

import { bytes, count, duration } from "../base/format.ts";
import { niceStep, ticks as stepsOf } from "../base/scale.ts";
import type { Model, Pair } from "./wire.ts";

/** A range of sizes, one size where both ends read the same: 81.7–88 GiB. */
export function sizes(low: number, high: number): string {
  const [a, b] = [bytes(low), bytes(high)];
  if (a === b) return a;
  const [x, unit] = a.split(" ");
  return `${b.endsWith(` ${unit}`) ? x : a}–${b}`;
}

export const counts = ([low, high]: Pair): string => (low === high ? count(low) : `${count(low)}–${count(high)}`);

/** A range of times, in microseconds. */
export function times([low, high]: Pair): string {
  const [a, b] = [duration(low), duration(high)];
  if (a === b) return a;
  const unit = a.slice(a.lastIndexOf(" "));
  return `${b.endsWith(unit) ? a.slice(0, -unit.length) : a}–${b}`;
}

/** A number of parameters as people call it: 671B. */
export function billions(n: number): string {
  const [v, unit] = n >= 1e12 ? [n / 1e12, "T"] : n >= 1e9 ? [n / 1e9, "B"] : [n / 1e6, "M"];
  return `${Number(v.toPrecision(3))}${unit}`;
}

export function modelWords(m: Model): string {
  const active = m.active_parameters < 0.6 * m.parameters ? `, ${billions(m.active_parameters)} active` : "";
  return `${billions(m.parameters)} parameters${active}, ${m.format}, ${m.layers} layers, ${bytes(m.checkpoint_bytes)} on disk`;
}

const one = (v: number): string => v.toFixed(1);

/** How many requests run at once. */
export const requests = ([low, high]: Pair): string => (one(low) === one(high) ? one(low) : `${one(low)}–${one(high)}`);

/** The ticks of an axis from zero: round, in binary gigabytes, and not too many of them. */
export const ticks = (most: number, wanted: number): number[] => stepsOf(0, most, niceStep(most / 2 ** 30, wanted) * 2 ** 30);
