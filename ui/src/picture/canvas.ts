// What all pictures of the page share: their left edge, and how canvases are set up.

import { printable } from "../base/dom.ts";
import { css, type Palette, type RGB } from "./palette.ts";

/** Pixels from the left, where the names of rows and the axis of bytes stand. */
export const left = 72;

/** Pixels from the right, where values at the end stand. */
export const right = 114;

/** Makes a canvas so large, in CSS pixels. */
export function size(canvas: HTMLCanvasElement, w: number, high: number): void {
  canvas.style.width = `${w}px`;
  canvas.style.height = `${high}px`;
  canvas.width = Math.round(w * devicePixelRatio);
  canvas.height = Math.round(high * devicePixelRatio);
}

export const fontOf = (el: Element): string => `11px ${getComputedStyle(el).fontFamily}`;

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
  g.textBaseline = "middle";
  return g;
}

/** Fills a rectangle; a share lets through what is below. */
export function rect(g: CanvasRenderingContext2D, ink: RGB, x: number, y: number, w: number, high: number, share = 1): void {
  g.globalAlpha = share;
  g.fillStyle = css(ink);
  g.fillRect(x, y, w, high);
  g.globalAlpha = 1;
}

/** Frames a rectangle. */
export function outline(g: CanvasRenderingContext2D, ink: RGB, width: number, x: number, y: number, w: number, high: number): void {
  g.strokeStyle = css(ink);
  g.lineWidth = width;
  g.strokeRect(x, y, w, high);
}

/** A mark that stands on a foot and points at its tip. */
export function triangle(g: CanvasRenderingContext2D, ink: RGB, x: number, foot: number, tip: number): void {
  g.fillStyle = css(ink);
  g.beginPath();
  g.moveTo(x - 4.5, foot);
  g.lineTo(x + 4.5, foot);
  g.lineTo(x, tip);
  g.fill();
}

/** Draws inside a rectangle only. */
export function clipped(g: CanvasRenderingContext2D, x: number, y: number, w: number, high: number, draw: () => void): void {
  g.save();
  g.beginPath();
  g.rect(x, y, w, high);
  g.clip();
  draw();
  g.restore();
}

/** Fills a rectangle with slanting lines on a ground. */
export function hatch(g: CanvasRenderingContext2D, x: number, y: number, w: number, high: number, ground: RGB, line: RGB): void {
  clipped(g, x, y, w, high, () => {
    rect(g, ground, x, y, w, high);
    g.strokeStyle = css(line);
    g.lineWidth = 1;
    g.beginPath();
    for (let d = Math.floor(x / 6) * 6 - high; d < x + w; d += 6) {
      g.moveTo(d, y + high);
      g.lineTo(d + high, y);
    }
    g.stroke();
  });
}

/** A text that loses its middle where room is short; nothing where there is none. */
export function inRoom(g: CanvasRenderingContext2D, text: string, room: number): string {
  const all = [...printable(text)];
  const wide = g.measureText(text).width;
  if (wide <= room) return text;
  for (let n = Math.floor((all.length * room) / wide); n > 1; n--) {
    const shown = `${all.slice(0, Math.ceil(n / 2)).join("")}…${all.slice(all.length - Math.floor(n / 2)).join("")}`;
    if (g.measureText(shown).width <= room) return shown;
  }
  return "";
}

/** Words on a ground of their own, from a place to the right, at a height. */
export function plate(g: CanvasRenderingContext2D, text: string, x: number, y: number, ink: RGB, ground: RGB): void {
  rect(g, ground, x - 4, y - 8, g.measureText(text).width + 8, 16, 0.88);
  write(g, text, x, y, ink);
}

/** Writes text into a picture, where names of somebody's file must not turn a line around either. */
export function write(g: CanvasRenderingContext2D, text: string, x: number, y: number, ink: RGB, align: CanvasTextAlign = "left"): void {
  g.fillStyle = css(ink);
  g.textAlign = align;
  g.fillText(printable(text), x, y);
}

/** Writes the name of a row, or a tick, beside the left edge. */
export const gutterName = (g: CanvasRenderingContext2D, name: string, y: number, c: Palette): void => write(g, name, left - 6, y, c.muted, "right");

/** Layers, the data at a place and the others over all, as one picture. */
export function layered(data: HTMLCanvasElement, top: number, ...over: HTMLCanvasElement[]): { out: HTMLCanvasElement; g: CanvasRenderingContext2D } {
  const out = document.createElement("canvas");
  [out.width, out.height] = [over[0]!.width, over[0]!.height];
  const g = out.getContext("2d")!;
  g.drawImage(data, left * devicePixelRatio, top * devicePixelRatio);
  for (const layer of over) g.drawImage(layer, 0, 0);
  return { out, g };
}
