// The tiles that the page has, and those that it asks for.

import { ask, Refused } from "../base/ask.ts";
import { decodeTile, type Kind, type Tile } from "../base/wire.ts";

export const bucketsPerTile = 256;

/** What all tiles of one picture have in common. */
export interface Picture {
  f: number;
  d: number;
  g: string;
  u: string;
  x: "ev" | "us";
  solo: string;
}

export interface Want {
  picture: Picture;
  kind: Kind;
  level: number;
  i: number;
  y: number;
}

const pictureKey = (p: Picture): string => `${p.f} ${p.d} ${p.g} ${p.u} ${p.x} ${p.solo}`;
const wantKey = (w: Want): string => `${pictureKey(w.picture)} ${w.kind} ${w.level} ${w.i} ${w.y}`;
const placeKey = (level: number, i: number): number => level * 2 ** 40 + i;

const keepBytes = 48 << 20;
const atOnce = 4;

/** The tiles of a level that cover places from … to − 1. */
export function cover(picture: Picture, kind: Kind, level: number, from: number, to: number, y: number): Want[] {
  const places = bucketsPerTile * 2 ** level;
  const first = Math.max(0, Math.floor(from / places));
  return Array.from({ length: Math.max(0, Math.ceil(to / places) - first) }, (_, i) => ({ picture, kind, level, i: first + i, y }));
}

/** Asks for a tile. */
export async function tileOf({ picture: p, level, i, y, kind }: Want, signal?: AbortSignal): Promise<Tile> {
  const answer = await ask("tile", { f: p.f, d: p.d, g: p.g, u: p.u, x: p.x, L: level, i, y, kind, solo: p.solo }, signal);
  return decodeTile(await answer.arrayBuffer());
}

export class Tiles {
  private have = new Map<string, { tile: Tile; picture: string; place: number }>();
  // The best tile at a place, whatever its kind and threshold: what is drawn until the right one comes.
  private best = new Map<string, Map<number, Tile>>();
  private flying = new Map<string, AbortController>();
  private wanted: Want[] = [];
  private idle: Want[] = [];
  private refused = new Set<string>();
  private bytes = 0;

  constructor(
    private readonly arrived: () => void,
    private readonly failed: (e: Refused) => void,
  ) {}

  /** Sets what the picture needs now, most urgent first, and what it may need next. Anything else in flight is canceled. */
  want(now: Want[], next: Want[]): void {
    this.wanted = now;
    this.idle = next;
    const keys = new Set([...now, ...next].map(wantKey));
    for (const [key, abort] of this.flying) if (!keys.has(key)) abort.abort();
    this.pump();
  }

  /** Reports whether all that the picture needs is there. */
  get settled(): boolean {
    return this.wanted.every((w) => this.have.has(wantKey(w)) || this.refused.has(wantKey(w)));
  }

  get size(): number {
    return this.bytes;
  }

  /** The tile of a want, if it is there. */
  find(w: Want): Tile | undefined {
    const key = wantKey(w);
    const entry = this.have.get(key);
    if (!entry) return undefined;
    this.have.delete(key); // the last used stands last
    this.have.set(key, entry);
    return entry.tile;
  }

  /** Finds the best tile that there is of a picture at any place. */
  of(p: Picture): (level: number, bucket: number) => Tile | undefined {
    const best = this.best.get(pictureKey(p));
    return (level, bucket) => best?.get(placeKey(level, Math.floor(bucket / bucketsPerTile)));
  }

  /** Reports whether any tile of a picture is there. */
  any(p: Picture): boolean {
    return (this.best.get(pictureKey(p))?.size ?? 0) > 0;
  }

  private pump(): void {
    const lacks = (w: Want): boolean => {
      const key = wantKey(w);
      return !this.have.has(key) && !this.flying.has(key) && !this.refused.has(key);
    };
    for (const w of this.wanted) if (this.flying.size < atOnce && lacks(w)) void this.load(w);
    if (this.flying.size > 0) return;
    const w = this.idle.find(lacks);
    if (w) void this.load(w);
  }

  private async load(w: Want): Promise<void> {
    const key = wantKey(w);
    const abort = new AbortController();
    this.flying.set(key, abort);
    try {
      this.keep(w, await tileOf(w, abort.signal));
    } catch (e) {
      if (!abort.signal.aborted) {
        this.refused.add(key);
        if (e instanceof Refused) this.failed(e);
        else throw e;
      }
    } finally {
      this.flying.delete(key);
      this.pump();
    }
    if (!abort.signal.aborted) this.arrived();
  }

  /** Asks again for what was refused. */
  forgive(): void {
    this.refused.clear();
    this.pump();
  }

  private keep(w: Want, tile: Tile): void {
    const picture = pictureKey(w.picture);
    const place = placeKey(w.level, w.i);
    let best = this.best.get(picture);
    if (!best) this.best.set(picture, (best = new Map()));
    if (w.kind !== "total" || !best.has(place)) best.set(place, tile);
    this.have.set(wantKey(w), { tile, picture, place });
    this.bytes += tile.size;
    for (const [key, old] of this.have) {
      if (this.bytes <= keepBytes) break;
      this.have.delete(key);
      this.bytes -= old.tile.size;
      const at = this.best.get(old.picture);
      if (at?.get(old.place) === old.tile) at.delete(old.place);
    }
  }
}
