// What all pictures of the page share: their left edge, and how canvases are set up.

import { printable } from "../base/dom.ts";
import { css, type Palette } from "./palette.ts";

/** Pixels from the left, where the names of rows and the axis of bytes stand. */
export const left = 72;

/** Pixels from the right, where values at the end stand. */
export const right = 114;

export function size(canvas: HTMLCanvasElement, x: number, y: number, w: number, hgt: number, ratio: number): void {
  place(canvas, x, y);
  canvas.style.width = `${w}px`;
  canvas.style.height = `${hgt}px`;
  canvas.width = Math.round(w * ratio);
  canvas.height = Math.round(hgt * ratio);
}

const sheetWidth = 1160; // CSS pixels, at which words have the size of those below the picture

/** While the page is printed, shows a picture and all that is written on it as one image, which fits the sheet; then draws it again. */
export function onPaper(root: HTMLElement, picture: () => HTMLCanvasElement, again: () => void): void {
  addEventListener("paper", (e) => {
    const paper = (e as CustomEvent<boolean>).detail && root.clientWidth > 0;
    root.classList.toggle("printed", paper);
    root.querySelector(".sheet")?.remove();
    if (!paper) return again();
    root.style.width = `${sheetWidth}px`;
    const sheet = picture();
    root.style.width = "";
    sheet.className = "sheet";
    root.append(sheet);
  });
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

/** Layers, the data at a place and the others over all, as one picture. */
export function layered(data: HTMLCanvasElement, top: number, ...over: HTMLCanvasElement[]): { out: HTMLCanvasElement; g: CanvasRenderingContext2D } {
  const out = document.createElement("canvas");
  [out.width, out.height] = [over[0]!.width, over[0]!.height];
  const g = out.getContext("2d")!;
  g.drawImage(data, left * devicePixelRatio, top * devicePixelRatio);
  for (const layer of over) g.drawImage(layer, 0, 0);
  return { out, g };
}
