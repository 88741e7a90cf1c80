// What all pictures of the page share: their left edge, and how canvases are set up.

import { printable } from "../base/dom.ts";
import { css, type Palette } from "./palette.ts";

/** Pixels from the left, where the names of rows and the axis of bytes stand. */
export const left = 64;

/** Pixels from the right, where values at the end stand. */
export const right = 114;

export function size(canvas: HTMLCanvasElement, x: number, y: number, w: number, hgt: number, ratio: number): void {
  place(canvas, x, y);
  canvas.style.width = `${w}px`;
  canvas.style.height = `${hgt}px`;
  canvas.width = Math.round(w * ratio);
  canvas.height = Math.round(hgt * ratio);
}

export function place(el: HTMLElement, x: number, y: number): void {
  el.style.left = `${x}px`;
  el.style.top = `${y}px`;
}

export function begin(canvas: HTMLCanvasElement): CanvasRenderingContext2D {
  const g = canvas.getContext("2d")!;
  g.setTransform(1, 0, 0, 1, 0, 0);
  g.clearRect(0, 0, canvas.width, canvas.height);
  g.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  return g;
}

/** Writes text into a picture, where names of somebody's file must not turn a line around either. */
export function write(g: CanvasRenderingContext2D, text: string, x: number, y: number): void {
  g.fillText(printable(text), x, y);
}

export function gutterName(g: CanvasRenderingContext2D, name: string, y: number, c: Palette): void {
  g.textAlign = "right";
  g.textBaseline = "middle";
  g.fillStyle = css(c.muted);
  write(g, name, left - 6, y);
}
