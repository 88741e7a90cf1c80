// Writes tiles into the pixels of one image. Nothing overlaps, so the cost is
// bounded by the pixels, and no canvas calls are made per shape.

import { pixelAt, placeAt, type Span } from "../base/scale.ts";
import { rectPending, stripOfBands, type Tile } from "../base/wire.ts";

/** Pixels x0 … x1 − 1 show bucket c of a tile. */
export interface Run {
  x0: number;
  x1: number;
  tile: Tile;
  c: number;
}

/** Finds the tile that shows a bucket of a level. */
export type Lookup = (level: number, bucket: number) => Tile | undefined;

/**
 * Cuts a window into runs of pixels that show the same bucket. Where the tile
 * of the level is not there yet, a coarser one is stretched, or finer ones are
 * sampled.
 */
export function runs(win: Span, width: number, level: number, coarsest: number, lookup: Lookup): Run[] {
  const out: Run[] = [];
  let x = 0;
  while (x < width) {
    const found = findAt(placeAt(x, win, width), level, coarsest, lookup);
    if (!found) {
      x++;
      continue;
    }
    const { tile, c } = found;
    const end = (tile.first + c + 1) * 2 ** tile.level;
    const x1 = Math.min(width, Math.max(x + 1, pixelAt(end, win, width)));
    out.push({ x0: x, x1, tile, c });
    x = x1;
  }
  const last = findAt(win[1] - (win[1] - win[0]) * 1e-9, level, coarsest, lookup);
  if (last && last.tile.level === level) keepLast(out, last.tile, last.c);
  return out;
}

/** Gives the last bucket a pixel where it has none: it may be cut short, and an error is the last event of many files. */
function keepLast(rs: Run[], tile: Tile, c: number): void {
  const last = rs[rs.length - 1];
  if (!last || last.tile.level !== tile.level || last.tile.first + last.c >= tile.first + c) return;
  const wide = rs.findLastIndex((r) => r.x1 - r.x0 > 1);
  if (wide < 0) return;
  const end = last.x1;
  rs[wide]!.x1--;
  for (const r of rs.slice(wide + 1)) {
    r.x0--;
    r.x1--;
  }
  rs.push({ x0: end - 1, x1: end, tile, c });
}

function findAt(place: number, level: number, coarsest: number, lookup: Lookup): { tile: Tile; c: number } | undefined {
  const at = (l: number): { tile: Tile; c: number } | undefined => {
    const bucket = Math.floor(place / 2 ** l);
    const tile = lookup(l, bucket);
    const c = tile ? bucket - tile.first : -1;
    return tile && c >= 0 && c < tile.n ? { tile, c } : undefined;
  };
  const here = at(level);
  if (here) return here;
  for (let d = 1; d <= 40; d++) {
    const found = (level - d >= 0 && d <= 2 ? at(level - d) : undefined) ?? (level + d <= coarsest ? at(level + d) : undefined);
    if (found) return found;
    if (level + d > coarsest && d > 2) break;
  }
  return undefined;
}

/**
 * Widens by one pixel to both sides each bucket that is narrower than three
 * pixels and stands clearly above its neighbor, so that a spike of one event
 * is seen at any zoom. Runs are given and returned from left to right.
 */
export function widen(rs: Run[], clearly: number): void {
  const height = (r: Run): number => r.tile.max[r.c]!;
  const narrow = rs.map((r) => r.x1 - r.x0 < 3);
  for (let i = 0; i < rs.length; i++) {
    if (!narrow[i]) continue;
    const r = rs[i]!;
    const left = rs[i - 1];
    const right = rs[i + 1];
    if (left && left.x1 === r.x0 && left.x1 > left.x0 && height(r) - height(left) > clearly) {
      left.x1--;
      r.x0--;
    }
    if (right && right.x0 === r.x1 && right.x1 > right.x0 && height(r) - height(right) > clearly) {
      right.x0++;
      r.x1++;
    }
  }
}

/** The colors of the picture, as pixels. */
export interface Paint {
  background: number;
  grid: number;
  spare: number;
  total: number; // all that lives, where bands are not known yet
  top: number;
  kept: number; // the kept line
  low: number; // the dotted line through the lowest totals
  band: Uint32Array; // by band
  band2: Uint32Array; // its second shade, which parts neighbors
  edge: Uint32Array;
  strip: [number, number, number]; // strips of small bands, by fate
  keptBands: number; // how many bands are kept; they are the lowest
  pendingFrom: number; // the first pending band
}

export interface Frame {
  width: number;
  height: number;
  win: Span;
  top: number; // bytes at the upper edge
  gridAt: number[]; // bytes at which grid lines stand
  scale: number; // device pixels to a CSS pixel
}

/** Draws runs into pixels of frame.width × frame.height. */
export function blit(px: Uint32Array, frame: Frame, rs: Run[], paint: Paint): void {
  const { width, height } = frame;
  px.fill(paint.background);
  for (const g of frame.gridAt) {
    const y = rowOf(g, frame);
    if (y >= 0 && y < height) px.fill(paint.grid, y * width, (y + 1) * width);
  }
  for (let i = 0; i < rs.length; ) {
    const tile = rs[i]!.tile;
    let j = i;
    while (j < rs.length && rs[j]!.tile === tile) j++;
    const part = rs.slice(i, j);
    for (const r of part) spare(px, frame, r, paint);
    if (tile.kind === "alloc") rects(px, frame, part, paint);
    else for (const r of part) column(px, frame, r, paint);
    i = j;
  }
  lines(px, frame, rs, paint);
}

/** Draws runs onto a canvas at a place, by an image that is used again where it fits. */
export function paintRuns(g: CanvasRenderingContext2D, frame: Frame, rs: Run[], paint: Paint, image: ImageData | null, x = 0, y = 0): ImageData {
  const { width, height } = frame;
  const pixels = image?.width === width && image.height === height ? image : new ImageData(width, height);
  blit(new Uint32Array(pixels.data.buffer), frame, rs, paint);
  g.putImageData(pixels, x, y);
  return pixels;
}

/** The pixel row whose upper edge stands for a number of bytes. */
export function rowOf(bytes: number, frame: Frame): number {
  return frame.height - Math.round((bytes / frame.top) * frame.height);
}

function block(px: Uint32Array, width: number, x0: number, x1: number, y0: number, y1: number, color: number): void {
  for (let y = y0; y < y1; y++) {
    const row = y * width;
    for (let x = x0; x < x1; x++) px[row + x] = color;
  }
}

/** Stripes, for what is freed and waits for a stream. */
function hatch(px: Uint32Array, width: number, x0: number, x1: number, y0: number, y1: number, one: number, two: number): void {
  for (let y = y0; y < y1; y++) {
    const row = y * width;
    for (let x = x0; x < x1; x++) px[row + x] = (x + y) % 6 < 2 ? two : one;
  }
}

function spare(px: Uint32Array, frame: Frame, r: Run, paint: Paint): void {
  const from = Math.max(0, rowOf(r.tile.reserved[r.c]!, frame));
  const to = Math.max(0, rowOf(r.tile.max[r.c]!, frame));
  for (let y = from; y < to; y++) {
    const row = y * frame.width;
    for (let x = r.x0; x < r.x1; x++) if (px[row + x] === paint.background) px[row + x] = paint.spare;
  }
}

function column(px: Uint32Array, frame: Frame, r: Run, paint: Paint): void {
  const { tile, c, x0, x1 } = r;
  const { width, height } = frame;
  if (tile.kind === "total") {
    block(px, width, x0, x1, Math.max(0, rowOf(tile.max[c]!, frame)), height, paint.total);
    return;
  }
  const rows = height / frame.top;
  const edge = 4 * frame.scale;
  let sum = 0;
  let below = height;
  for (let e = 0; e < tile.m && below > 0; e++) {
    sum += tile.height[e * tile.n + c]!;
    const above = Math.max(0, height - Math.round(sum * rows));
    if (above >= below) continue;
    const id = tile.id[e]!;
    if (id < 0) {
      block(px, width, x0, x1, above, below, paint.strip[fateOf(bandOf(id), paint)]!);
    } else if (id >= paint.pendingFrom) {
      hatch(px, width, x0, x1, above, below, paint.band[id]!, paint.background);
    } else {
      block(px, width, x0, x1, above, below, paint.band[id]!);
      if (below - above >= edge) block(px, width, x0, x1, above, above + 1, paint.edge[id]!);
    }
    below = above;
  }
}

const fateOf = (band: number, paint: Paint): 0 | 1 | 2 => (band < paint.keptBands ? 0 : band < paint.pendingFrom ? 1 : 2);

/** Draws the rectangles of a tile of allocations inside the pixels of its runs. */
function rects(px: Uint32Array, frame: Frame, part: Run[], paint: Paint): void {
  const { width, height } = frame;
  const tile = part[0]!.tile;
  // starts[c] is the first pixel of column c; columns without pixels begin where the next one does.
  const starts = new Int32Array(tile.n + 1).fill(-1);
  for (const r of part) if (starts[r.c] === -1) starts[r.c] = r.x0;
  let next = part[part.length - 1]!.x1;
  for (let c = tile.n; c >= 0; c--) {
    if (starts[c] === -1) starts[c] = next;
    else next = starts[c]!;
  }
  const rows = height / frame.top;
  const edge = 3 * frame.scale;
  for (let i = 0; i < tile.c0.length; i++) {
    const x0 = starts[tile.c0[i]!]!;
    const x1 = starts[tile.c1[i]!]!;
    const base = tile.y0[i]!;
    const above = Math.max(0, height - Math.round((base + tile.height[i]!) * rows));
    const below = Math.max(0, height - Math.round(base * rows));
    if (x1 <= x0 || above >= below) continue;
    const band = tile.band[i]!;
    const flag = tile.flag[i]!;
    if (flag & stripOfBands) {
      block(px, width, x0, x1, above, below, paint.strip[fateOf(band, paint)]!);
    } else if (flag & rectPending) {
      hatch(px, width, x0, x1, above, below, paint.band[band]!, paint.background);
    } else {
      const shade = flag || tile.alloc[i]! % 2 === 0 ? paint.band[band]! : paint.band2[band]!;
      block(px, width, x0, x1, above, below, shade);
      if (flag) for (let y = above; y < below; y += 3) block(px, width, x0, x1, y, y + 1, paint.edge[band]!);
      else if (below - above >= edge) block(px, width, x0, x1, above, above + 1, paint.edge[band]!);
    }
  }
}

/** The first band of an entry of a tile. */
const bandOf = (id: number): number => (id < 0 ? -1 - id : id);

/** The bytes of every column that are alive at the snapshot, as drawn. */
function keptColumns(tile: Tile, keptBands: number): Float64Array {
  const out = new Float64Array(tile.n);
  const entries = tile.kind === "band" ? tile.m : 0;
  for (let e = 0; e < entries && bandOf(tile.id[e]!) < keptBands; e++) for (let c = 0; c < tile.n; c++) out[c]! += tile.height[e * tile.n + c]!;
  for (let i = 0; i < tile.c0.length; i++) {
    if (tile.band[i]! >= keptBands) continue;
    const top = tile.y0[i]! + tile.height[i]!;
    for (let c = tile.c0[i]!; c < tile.c1[i]!; c++) if (top > out[c]!) out[c] = top;
  }
  return out;
}

const keptCache = new WeakMap<Tile, { of: number; kept: Float64Array }>();

/** The height of the kept line in a bucket; undefined where bands are not known. */
export function keptLine(tile: Tile, c: number, keptBands: number): number | undefined {
  if (tile.kind === "total") return undefined;
  let entry = keptCache.get(tile);
  if (!entry || entry.of !== keptBands) {
    keptCache.set(tile, (entry = { of: keptBands, kept: keptColumns(tile, keptBands) }));
  }
  return entry.kept[c]!;
}

/** The top line, the dotted low line and the kept line, joined from run to run. */
function lines(px: Uint32Array, frame: Frame, rs: Run[], paint: Paint): void {
  const { width, height } = frame;
  const thin = Math.max(1, Math.round(frame.scale));
  let topBefore = -1;
  let keptBefore = -1;
  let end = -1;
  for (const r of rs) {
    if (r.x1 <= r.x0) continue;
    const { tile, c } = r;
    if (end !== r.x0) topBefore = keptBefore = -1;
    end = r.x1;
    const top = Math.max(0, Math.min(height - thin, rowOf(tile.max[c]!, frame)));
    const low = rowOf(tile.min[c]!, frame);
    if (low - top > 3 * frame.scale && low < height) {
      for (let x = r.x0; x < r.x1; x++) if (x % 3 === 0 && low >= 0) px[low * width + x] = paint.low;
    }
    const kept = keptLine(tile, c, paint.keptBands);
    if (kept !== undefined && kept > 0) {
      const y = Math.min(height - 2 * thin, rowOf(kept, frame) - thin);
      if (y >= 0) {
        block(px, width, r.x0, r.x1, y, y + 2 * thin, paint.kept);
        if (keptBefore >= 0) block(px, width, r.x0, Math.min(r.x1, r.x0 + thin), Math.min(y, keptBefore), Math.max(y, keptBefore) + 2 * thin, paint.kept);
      }
      keptBefore = Math.max(0, y);
    } else keptBefore = -1;
    if (rowOf(tile.max[c]!, frame) >= 0 && tile.max[c]! > 0) {
      block(px, width, r.x0, r.x1, top, top + thin, paint.top);
    }
    if (topBefore >= 0) block(px, width, r.x0, Math.min(r.x1, r.x0 + thin), Math.min(top, topBefore), Math.max(top, topBefore) + thin, paint.top);
    topBefore = top;
  }
}

/** What is drawn at a height (bytes from below) of a run. */
export interface Drawn {
  band: number; // the first band
  bands: number; // more than one: a strip of small bands
  alloc: number | null;
  allocs: number; // of a strip of small allocations
  from: number;
  bytes: number;
}

/** All that is drawn in a bucket, bottom to top. */
export function stackOf(tile: Tile, c: number): Drawn[] {
  const out: Drawn[] = [];
  if (tile.kind === "band") {
    let sum = 0;
    for (let e = 0; e < tile.m; e++) {
      const bytes = tile.height[e * tile.n + c]!;
      const id = tile.id[e]!;
      if (bytes > 0) out.push({ band: bandOf(id), bands: id < 0 ? tile.count[e]! : 1, alloc: null, allocs: 0, from: sum, bytes });
      sum += bytes;
    }
  } else if (tile.kind === "alloc") {
    for (let i = 0; i < tile.c0.length; i++) {
      if (tile.c0[i]! > c || tile.c1[i]! <= c) continue;
      const flag = tile.flag[i]!;
      const strip = (flag & stripOfBands) !== 0;
      out.push({
        band: tile.band[i]!,
        bands: strip ? 2 : 1,
        alloc: tile.alloc[i] === 4294967295 ? null : tile.alloc[i]!,
        allocs: tile.count[i]!,
        from: tile.y0[i]!,
        bytes: tile.height[i]!,
      });
    }
    out.sort((a, b) => a.from - b.from);
  }
  return out;
}

/** Where a label may stand: the left end of the widest comfortable place, in pixels. */
export interface Place {
  x: number;
  y: number;
  band: number;
  height: number;
}

/**
 * Finds for each band a place where its label is inside it all along. The
 * leftmost place that is nearly as high as the best one is taken.
 */
export function labelPlaces(rs: Run[], frame: Frame, bands: number, widthOf: (band: number) => number, least: number): Place[] {
  const every = Math.max(1, Math.round(4 * frame.scale));
  const columns = Math.floor(frame.width / every);
  const tops = new Map<number, Int16Array>();
  const bottoms = new Map<number, Int16Array>();
  const array = (m: Map<number, Int16Array>, band: number, fill: number): Int16Array => {
    let a = m.get(band);
    if (!a) m.set(band, (a = new Int16Array(columns).fill(fill)));
    return a;
  };
  let i = 0;
  let last: { tile: Tile; c: number; stack: Drawn[] } | undefined;
  for (let col = 0; col < columns; col++) {
    const x = col * every;
    while (i < rs.length - 1 && rs[i]!.x1 <= x) i++;
    const r = rs[i];
    if (!r || r.x0 > x || r.x1 <= x || r.tile.kind === "total") continue;
    if (!last || last.tile !== r.tile || last.c !== r.c) last = { tile: r.tile, c: r.c, stack: stackOf(r.tile, r.c) };
    for (const s of last.stack) {
      if (s.bands > 1 || s.band >= bands) continue;
      const top = Math.max(0, rowOf(s.from + s.bytes, frame));
      const bottom = Math.max(0, rowOf(s.from, frame));
      const t = array(tops, s.band, -1);
      const b = array(bottoms, s.band, -1);
      if (t[col] === -1 || top < t[col]!) t[col] = top;
      if (bottom > b[col]!) b[col] = bottom;
    }
  }
  const out: Place[] = [];
  for (const [band, t] of tops) {
    const b = bottoms.get(band)!;
    const need = Math.ceil((widthOf(band) + 14) / every);
    let best: Place | undefined;
    for (let from = 0; from + need <= columns; from++) {
      let top = -1;
      let bottom = 32767;
      let col = from;
      for (; col < from + need; col++) {
        if (t[col] === -1) break;
        if (t[col]! > top) top = t[col]!;
        if (b[col]! < bottom) bottom = b[col]!;
        if (bottom - top < least) break;
      }
      if (col < from + need) {
        if (t[col] === -1) from = col;
        continue;
      }
      const height = bottom - top;
      if (!best || height > best.height * 1.6) best = { x: from * every, y: (top + bottom) / 2, band, height };
    }
    if (best) out.push(best);
  }
  return out;
}
