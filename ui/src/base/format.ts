// How numbers are written: by the rules of the command's package units, so that
// a figure reads the same on the page and in a terminal. Only the minus sign is
// a printer's one here.

const binary = ["B", "KiB", "MiB", "GiB", "TiB"];
const minus = "\u2212";

const sign = (n: number): string => (n < 0 ? minus : "");

/** The number of decimals that makes three significant digits. */
const places = (x: number): number => (x < 9.995 ? 2 : x < 99.95 ? 1 : 0);

function rounded(x: number): number {
  const scale = 10 ** places(x);
  return Math.round(x * scale) / scale;
}

/** Three significant digits, or all before the point, and no zeros at the end of a fraction. */
const number = (x: number): string => decimal(rounded(x), places(x));

function decimal(x: number, digits: number): string {
  const [whole, fraction] = x.toFixed(digits).split(".") as [string, string?];
  const rest = (fraction ?? "").replace(/0+$/, "");
  return (whole.length > 4 ? grouped(whole) : whole) + (rest && `.${rest}`);
}

const grouped = (digits: string): string => digits.replace(/\B(?=(\d{3})+$)/g, ",");

/** Bytes in the largest binary unit of which there is at least one: 312 B, 52 KiB, 661 MiB, 13.1 GiB. */
export function bytes(n: number | null | undefined): string {
  if (n === null || n === undefined || Number.isNaN(n)) return "–";
  let size = Math.abs(n);
  let unit = 0;
  for (; rounded(size) >= 1024 && unit < binary.length - 1; unit++) size /= 1024;
  return `${sign(n)}${number(size)} ${binary[unit]}`;
}

/** As bytes, but nothing is a dash: for tables, where zeros are noise. */
export const bytesOrDash = (n: number): string => (n === 0 ? "–" : bytes(n));

/** A difference, always with its sign. */
export const delta = (n: number): string => (n > 0 ? `+${bytes(n)}` : bytes(n));

/** From what to what bytes have grown: 1.02 → 3.61 GiB, 512 MiB → 3.61 GiB. */
export function growth(from: number, to: number): string {
  const [a, b] = [bytes(from), bytes(to)];
  const [digits, unit] = a.split(" ");
  return `${from === 0 || b.endsWith(` ${unit}`) ? digits : a} → ${b}`;
}

/** An integer in groups of three: 1,216,335. */
export const count = (n: number): string => sign(n) + grouped(String(Math.abs(Math.trunc(n))));

/** A count of things in words: 1 file, 1,200 files. */
export const plural = (n: number, one: string, many = `${one}s`): string => `${count(n)} ${n === 1 ? one : many}`;

/** A share of a whole: 38%, <0.1%; a dash for nothing. */
export function percent(part: number, whole: number): string {
  if (!(whole > 0) || part === 0) return "–";
  const p = Math.abs(part / whole) * 100;
  if (p < 0.1) return `${sign(part)}<0.1%`;
  if (p < 100 && rounded(p) >= 100) return `${sign(part)}>99.9%`;
  return `${sign(part)}${number(p)}%`;
}

/** One decimal below 10, whole numbers above. */
function tenths(x: number): number {
  const r = Math.round(x * 10) / 10;
  return r < 10 ? r : Math.round(x);
}

const small: [number, string, number][] = [[1, "µs", 1000], [1e3, "ms", 1000], [1e6, "s", 60]];

/** Microseconds in at most two units: 350 ms, 1.2 s, 3 min 20 s, 2 h 5 min. */
export function duration(us: number): string {
  const size = Math.abs(us);
  for (const [unit, name, most] of small) {
    const x = tenths(size / unit);
    if (x < most) return `${sign(us)}${decimal(x, 1)} ${name}`;
  }
  const s = Math.round(size / 1e6);
  if (s < 3600) return sign(us) + pair(s, 60, "min", "s");
  if (size < 86400e6 - 30e6) return sign(us) + pair(Math.round(s / 60), 60, "h", "min");
  return sign(us) + pair(Math.round(s / 3600), 24, "d", "h");
}

/** A time since something began, in seconds. */
export const time = (seconds: number): string => (seconds === 0 ? "0 s" : duration(seconds * 1e6));

/** n of the small unit as whole large ones and the rest. */
function pair(n: number, perLarge: number, large: string, little: string): string {
  const rest = n % perLarge;
  return `${count(Math.floor(n / perLarge))} ${large}${rest > 0 ? ` ${rest} ${little}` : ""}`;
}

/** A moment after the first event: +12.418 s. */
export const since = (us: number): string => `+${(us / 1e6).toFixed(3)} s`;

/** A moment as UTC, for tooltips; nothing where a file claims one that no calendar has. */
export function utc(us: number): string {
  const at = new Date(us / 1000);
  return Number.isNaN(at.getTime()) ? "" : at.toISOString().replace("T", " ").replace("Z", " UTC");
}

/** The name of a device's index; -1 is the host's pinned memory. */
export const deviceName = (d: number): string => (d < 0 ? "pinned host memory" : `device ${d}`);

/** The last part of a path. */
export const base = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** A place of code: file, line if there is one, and function. */
export const placeOf = (f: { file: string; line: number | null; function: string | null }): string => `${base(f.file)}${f.line && f.line > 0 ? `:${f.line}` : ""} ${f.function}`;

/** A name without what all names share at both ends: step2 of w12.step2.pickle. */
export function short(name: string, all: string[]): string {
  if (all.length < 2) return name;
  let a = 0;
  while (all.every((n) => n.length > a && n[a] === all[0]![a])) a++;
  while (a > 0 && /[\p{L}\p{N}]/u.test(name[a - 1]!)) a--;
  let b = 0;
  while (all.every((n) => n.length - b > a && n[n.length - 1 - b] === all[0]![all[0]!.length - 1 - b])) b++;
  while (b > 0 && /[\p{L}\p{N}]/u.test(name[name.length - b]!)) b--;
  return name.slice(a, name.length - b) || name;
}
