// How numbers are written, one way on the whole page.

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const thin = "\u202f"; // narrow, and no line breaks there
const minus = "\u2212";

/** Bytes with a binary unit: 312 B, 52.0 KiB, 661.3 MiB, 13.03 GiB. */
export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined || Number.isNaN(n)) return "–";
  const sign = n < 0 ? minus : "";
  let v = Math.abs(n);
  if (v < 1024) return `${sign}${Math.round(v)} B`;
  let unit = 0;
  while (unit < units.length - 1 && v >= 1023.95) {
    v /= 1024;
    unit++;
  }
  return `${sign}${v.toFixed(unit >= 3 ? 2 : 1)} ${units[unit]}`;
}

/** As bytes, but nothing is a dash: for tables, where zeros are noise. */
export const bytesOrDash = (n: number): string => (n === 0 ? "–" : bytes(n));

/** A difference, always with its sign. */
export const delta = (n: number): string => (n > 0 ? `+${bytes(n)}` : bytes(n));

/** From what to what bytes have grown, in one unit: 1.02 → 3.61 GiB. */
export function growth(from: number, to: number): string {
  const told = bytes(to);
  const unit = units.indexOf(told.split(" ")[1]!);
  return `${from === 0 ? 0 : (from / 1024 ** unit).toFixed(unit >= 3 ? 2 : unit > 0 ? 1 : 0)} → ${told}`;
}

/** An integer in groups of three: 1 216 335. */
export function count(n: number): string {
  const digits = String(Math.abs(Math.trunc(n)));
  return (n < 0 ? minus : "") + digits.replace(/\B(?=(\d{3})+$)/g, thin);
}

/** A share of a whole in percent: 38.0 %, < 0.1 %. */
export function percent(part: number, whole: number): string {
  if (!(whole > 0) || part === 0) return "–";
  const p = (100 * part) / whole;
  return p < 0.1 ? "< 0.1 %" : `${p.toFixed(1)} %`;
}

/** Microseconds in the largest unit that keeps three digits: 23 µs, 1.43 s, 12 min 4 s. */
export function duration(us: number): string {
  const v = Math.abs(us);
  const sign = us < 0 ? minus : "";
  if (v < 1e3) return `${sign}${Math.round(v)} µs`;
  if (v < 1e6) return `${sign}${digits3(v / 1e3)} ms`;
  if (v < 60e6) return `${sign}${digits3(v / 1e6)} s`;
  const s = Math.round(v / 1e6);
  if (s < 3600) return `${sign}${Math.floor(s / 60)} min ${s % 60} s`;
  return `${sign}${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
}

const digits3 = (v: number): string => String(Number(v.toPrecision(3)));

/** A moment after the first event: +12.418 s. */
export const since = (us: number): string => `+${(us / 1e6).toFixed(3)} s`;

/** A moment as UTC, for tooltips; nothing where a file claims one that no calendar has. */
export function utc(us: number): string {
  const at = new Date(us / 1000);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString().replace("T", " ").replace("Z", " UTC");
}

/** The last part of a path. */
export const base = (path: string): string => path.slice(path.lastIndexOf("/") + 1);
