// The colors of a picture, from the bands of a file.

import type { Paint } from "./blit.ts";
import { mix, pixel, siteColor, wash, type Palette, type RGB } from "./palette.ts";
import type { Bands } from "../base/wire.ts";

/** The color of a band: its site's, paler for what was freed. */
export function fillOf(bands: Bands, i: number, c: Palette): RGB {
  const band = bands.bands[i]!;
  const full = siteColor(c, bands.groups[band.group]!.slot);
  return band.fate === "freed" ? mix(full, c.page, wash) : full;
}

/** Makes the colors; bands of groups that do not match the search fade, and those beside a lit one a little. */
export function paintFor(bands: Bands | null, c: Palette, lit: string | null, found: Set<string> | null): Paint {
  const n = bands?.bands.length ?? 0;
  const freed = pixel(mix(c.neutral, c.page, 0.36));
  const paint: Paint = {
    background: pixel(c.page),
    grid: pixel(mix(c.hair, c.page, 0.55)),
    spare: pixel(c.spare),
    total: pixel(mix(c.neutral, c.page, 0.55)),
    top: pixel(c.top),
    kept: pixel(c.ink),
    low: pixel(c.top),
    band: new Uint32Array(n),
    band2: new Uint32Array(n),
    edge: new Uint32Array(n),
    strip: [pixel(mix(c.neutral, c.page, 0.8)), freed, freed],
    keptBands: bands?.kept ?? 0,
    pendingFrom: n,
  };
  for (let i = n - 1; i >= 0; i--) {
    const band = bands!.bands[i]!;
    const { key } = bands!.groups[band.group]!;
    if (band.fate === "pending") paint.pendingFrom = i;
    const share = found && !found.has(key) ? 0.15 : lit && lit !== key ? 0.72 : 1;
    const fill = mix(fillOf(bands!, i, c), c.page, share);
    paint.band[i] = pixel(fill);
    paint.band2[i] = pixel(mix(fill, c.ink, 1 - 0.1 * share));
    paint.edge[i] = pixel(mix(fill, c.page, 0.6));
  }
  return paint;
}
