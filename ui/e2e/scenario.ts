// A scenario on the page that `strandline view` serves, in a real Chromium. What the
// page must show comes from running the commands with --json; each scenario also
// fails on any console message, any request to elsewhere, and any violation that axe
// finds.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { Browser, chromium, pause, type Tab } from "./browser.ts";
import { clean, shoot } from "./checks.ts";
import { example, lacks, serve, type Server } from "./server.ts";

export const leak = [example("image-leak/step-2.pickle"), example("image-leak/step-3.pickle"), example("image-leak/step-4.pickle")];
export const last = leak[2]!;

let browser: Browser;
before(async () => (browser = await Browser.start()));
after(() => browser.close());

export interface Page {
  tab: Tab;
  server: Server;
}

interface Options {
  fragment?: string;
  dark?: boolean;
  width?: number;
  empty?: boolean; // a file without events
}

export function scenario(name: string, files: string[], act: (p: Page, t: TestContext) => Promise<void>, o: Options = {}): void {
  const skip = !chromium ? "Chromium is missing" : files.some(lacks) ? "STRANDLINE_CORPUS names no folder of recorded snapshots" : false;
  test(name, { skip, timeout: 180_000 }, async (t) => {
    const server = await serve(...files);
    let tab: Tab | undefined;
    try {
      tab = await browser.open(server.url + (o.fragment ?? ""), o.width ?? 1440, 900, o.dark);
      if (o.empty) await tab.until("window.strandline && strandline.device()");
      else await tab.settled();
      await act({ tab, server }, t);
      await pause(60);
      await clean(tab);
    } finally {
      if (tab) await shoot(tab, name);
      await tab?.close();
      await server.stop();
    }
  });
}

/** An expression for the engine's answer to a question, which is an expression too. */
export const answer = (question: string): string => `fetch(${question}, { headers: { "Strandline-Session": localStorage.getItem("strandline-session") } }).then(r => r.json())`;

export const identity = (s: any): string => (s.file ? `${s.file}:${s.line} ${s.function}` : "unknown");

/** The place of the page of a point in the picture: an event, and bytes from below. */
export async function point(tab: Tab, event: number, bytes: number): Promise<[number, number]> {
  const s = await tab.state();
  const column = await tab.eval<any>(`strandline.column(${event})`);
  const rail = await tab.eval<{ x: number; y: number }>("(r => ({ x: r.left, y: r.top }))(document.querySelector('#rail .box').getBoundingClientRect())");
  const { left, top, height } = s.picture.box;
  return [rail.x + left + column.x + column.pixels / 2, rail.y + top + height * (1 - bytes / s.picture.axis)];
}

/** Sums by site of what the page lists, with the bytes it keeps to itself. */
export async function listed(tab: Tab): Promise<{ sites: Record<string, number>; more: number; sum: number }> {
  const s = await tab.state();
  const groups = await tab.eval<any[]>("strandline.bands().groups");
  const by = new Map(groups.map((g) => [g.key, g]));
  const sites: Record<string, number> = {};
  for (const r of s.figures.rows) {
    const id = identity(by.get(r.key));
    sites[id] = (sites[id] ?? 0) + r.bytes;
  }
  const more = s.figures.more.bytes as number;
  return { sites, more, sum: Object.values(sites).reduce((a, b) => a + b, 0) + more };
}

/** The fields of a line of CSV. */
export const fields = (line: string): string[] => [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(,|$)/g)].map((m) => m[1]!);

/** A folder for files that scenarios make. */
export const folder = mkdtempSync(join(tmpdir(), "strandline-e2e-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** A snapshot whose end was torn off. */
export const torn = join(folder, "torn.pickle");
writeFileSync(torn, readFileSync(last).subarray(0, Math.floor(readFileSync(last).length * 0.8)));
