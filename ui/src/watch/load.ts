// The load of an inference engine, in a strip below the memory: its requests as bands, and
// how full its KV cache is as a line.

import { h } from "../base/dom.ts";
import { count } from "../base/format.ts";
import { clipped, gutterName, left, rect, write } from "../picture/canvas.ts";
import { css, type Palette } from "../picture/palette.ts";
import type { Course } from "./bands.ts";

/** The height of the strip with the room above it, in pixels. */
export const loadHeight = 72;
const room = 14;

const running = "running requests";
const waiting = "waiting requests";
const cache = "KV cache in use";

const valuesOf = (of: Course, name: string): Float64Array | undefined => of.parts.find((p) => p.name === name)?.values;

/** What is known of the load at a time, null for the last sample: names and texts. */
export function loadAt(of: Course | null, seconds: number | null): [name: string, text: string][] {
  if (!of?.n) return [];
  const c = seconds === null ? of.n - 1 : of.at(seconds);
  if (c < 0 || (seconds !== null && seconds > of.end(c))) return [];
  return [running, waiting, cache].flatMap((name): [string, string][] => {
    const v = valuesOf(of, name)?.[c] ?? NaN;
    return Number.isNaN(v) ? [] : [[name, name === cache ? `${Math.round(v / 1e4)}%` : count(v)]];
  });
}

export const loadRows = (of: Course | null, seconds: number): Node[] => loadAt(of, seconds).map(([name, text]) => h("div", {}, `${name} ${text}`));

/** Where the strip is drawn. */
export interface Strip {
  top: number;
  width: number;
  win: [number, number];
  px: (seconds: number) => number;
  colors: Palette;
}

/** Draws the strip; most is what its bands reach. */
export function drawLoad(g: CanvasRenderingContext2D, of: Course, { top, width, win, px, colors }: Strip): { most: number } {
  const high = loadHeight - room;
  const y0 = top + loadHeight;
  const columns = Array.from({ length: of.n }, (_, c) => c).filter((c) => of.end(c) >= win[0] && of.of.from[c]! <= win[1]);
  const most = Math.max(1, ...columns.map((c) => of.of.max_bytes[c]!));
  const bands = [[running, colors.accent], [waiting, colors.slots[4]!]] as const;
  clipped(g, left, top, width, loadHeight + 1, () => {
    for (const c of columns) {
      const x0 = px(of.of.from[c]!);
      const wide = Math.max(px(of.end(c)) - x0, 1);
      let below = 0;
      for (const [name, color] of bands) {
        const v = valuesOf(of, name)?.[c] ?? NaN;
        if (!(v > 0)) continue;
        rect(g, color, x0, y0 - ((below + v) / most) * high, wide, (v / most) * high, 0.6);
        below += v;
      }
    }
    const full = valuesOf(of, cache);
    g.strokeStyle = css(colors.ink);
    g.lineWidth = 1.5;
    g.beginPath();
    let end = NaN;
    for (const c of full ? columns : []) {
      const v = full![c]!;
      if (Number.isNaN(v)) continue;
      const y = y0 - (v / 1e6) * high;
      const x = px(of.of.from[c]!);
      if (x > end + 1 || Number.isNaN(end)) g.moveTo(x, y); // after a gap
      else g.lineTo(x, y);
      end = px(of.end(c));
      g.lineTo(end, y);
    }
    g.stroke();
  });
  rect(g, colors.hair, left, y0, width, 1);
  words(g, of, columns[columns.length - 1], most, top, y0, width, colors);
  return { most };
}

/** The scale at the left, and the last values at the right. */
function words(g: CanvasRenderingContext2D, of: Course, last: number | undefined, most: number, top: number, y0: number, width: number, colors: Palette): void {
  gutterName(g, count(most), top + room + 4, colors);
  gutterName(g, "requests", (top + room + y0) / 2 + 2, colors);
  gutterName(g, "0", y0 - 4, colors);
  if (last === undefined) return;
  const x = left + width + 8;
  loadAt(of, of.of.at[last]!).forEach(([name, text], i) => {
    const [words, ink] = name === cache ? [`KV cache ${text}`, colors.ink] : [`${text} ${name.split(" ")[0]}`, colors.muted];
    write(g, words, x, top + room + 6 + 17 * i, ink);
  });
}
