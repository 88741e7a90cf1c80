// What the page gives away: pictures, tables, links.

import { textLink } from "./controls.ts";
import { ask } from "./ask.ts";
import { h } from "./dom.ts";
import type { Column, Row } from "./table.ts";

/** Hands the browser a file to save. */
export function save(name: string, what: Blob): void {
  const a = h("a", { href: URL.createObjectURL(what), download: name });
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 1000);
}

/** Makes links to tables work where the engine is not asked over HTTP. */
export function fetchLinks(failed: (e: Error) => void): void {
  addEventListener("click", (e) => {
    const a = e.target instanceof Element ? e.target.closest<HTMLAnchorElement>("a[href^='api/']") : null;
    if (!a) return;
    e.preventDefault();
    const [path, query] = a.getAttribute("href")!.split("?");
    ask(path!.slice("api/".length), Object.fromEntries(new URLSearchParams(query))).then(async (answer) => save(a.download, await answer.blob()), failed);
  });
}

/** A table as CSV, with bytes and counts as plain numbers. */
export function csv<R extends Row>(name: string, rows: R[], columns: Column<R>[]): string {
  const lines = [[name, ...columns.map((c) => (c.bytes && c.name !== "bytes" ? `${c.name} (bytes)` : c.name))], ...rows.map((r) => [r.label, ...columns.map((c) => String(c.of(r)))])];
  return lines.map((cells) => cells.map(cell).join(",")).join("\r\n") + "\r\n";
}

/** A cell that no spreadsheet takes for a formula. */
export function cell(text: string): string {
  const plain = /^[=+@\t\r]/.test(text) || (text.startsWith("-") && Number.isNaN(Number(text))) ? `'${text}` : text;
  return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
}

/** A button that saves what is shown as CSV. */
export const csvButton = (name: string, text: () => string): HTMLElement =>
  textLink("csv", "save CSV", () => save(`strandline-${name}.csv`, new Blob([text()], { type: "text/csv" })));

/** Canvases one below the other, as one picture. */
export async function picture(title: string, parts: HTMLCanvasElement[], ground: string, ink: string): Promise<Blob | null> {
  const ratio = devicePixelRatio;
  const head = Math.round(30 * ratio);
  const out = document.createElement("canvas");
  out.width = Math.max(1, ...parts.map((p) => p.width));
  out.height = parts.reduce((sum, p) => sum + p.height + head / 3, head);
  const g = out.getContext("2d")!;
  g.fillStyle = ground;
  g.fillRect(0, 0, out.width, out.height);
  g.fillStyle = ink;
  g.font = `${13 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
  g.textBaseline = "middle";
  g.fillText(title, 12 * ratio, head / 2);
  let y = head;
  for (const p of parts) {
    if (p.width && p.height) g.drawImage(p, 0, y);
    y += p.height + head / 3;
  }
  return new Promise((done) => out.toBlob(done, "image/png"));
}
