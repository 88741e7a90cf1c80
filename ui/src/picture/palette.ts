// Colors. They stand in app.css, as custom properties; canvases read them here.

export interface RGB {
  r: number;
  g: number;
  b: number;
}

export function parse(hex: string): RGB {
  const v = parseInt(hex.trim().slice(1), 16);
  return { r: (v >> 16) & 255, g: (v >> 8) & 255, b: v & 255 };
}

export const mix = (a: RGB, b: RGB, share: number): RGB => ({
  r: Math.round(a.r * share + b.r * (1 - share)),
  g: Math.round(a.g * share + b.g * (1 - share)),
  b: Math.round(a.b * share + b.b * (1 - share)),
});

/** A pixel of ImageData, on a little-endian machine (all that run browsers). */
export const pixel = (c: RGB): number => ((255 << 24) | (c.b << 16) | (c.g << 8) | c.r) >>> 0;

export const css = (c: RGB): string => `rgb(${c.r},${c.g},${c.b})`;

/** Relative luminance as WCAG has it. */
export function luminance(c: RGB): number {
  const f = (v: number): number => {
    const s = v / 255;
    return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * f(c.r) + 0.7152 * f(c.g) + 0.0722 * f(c.b);
}

export function contrast(a: RGB, b: RGB): number {
  const [x, y] = [luminance(a), luminance(b)];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

const white: RGB = { r: 255, g: 255, b: 255 };
const black: RGB = { r: 17, g: 17, b: 17 };

/** White or near-black, whichever is easier to read on a fill. */
export const textOn = (fill: RGB): RGB => (contrast(white, fill) >= contrast(black, fill) ? white : black);

/** How strongly what was freed keeps the color of its site. */
export const wash = 0.42;

const names = ["page", "panel", "ink", "muted", "hair", "accent", "danger", "good", "reserved", "top", "spare", "neutral", "stranded", "stranded-text", "whole", "whole-line"] as const;

/** The colors by the names of their properties, and those of sites. */
export type Palette = Record<(typeof names)[number], RGB> & { slots: RGB[] };

/** The palette of the theme that is on. */
export function palette(): Palette {
  const style = getComputedStyle(document.documentElement);
  const c = (name: string): RGB => parse(style.getPropertyValue(`--${name}`));
  const slots = [...Array.from({ length: markSlot }, (_, i) => c(`s${i}`)), c("mark")];
  return { ...(Object.fromEntries(names.map((name) => [name, c(name)])) as Record<(typeof names)[number], RGB>), slots };
}

/** The slot of what the pinned finding is about. */
export const markSlot = 10;

/** The full color of a site. */
export const siteColor = (p: Palette, slot: number): RGB => p.slots[slot] ?? p.neutral;
