// The findings that the page, a saved page and the static site list beside those of
// diagnose, in their order: of all recordings below the folder that STRANDLINE_RECORDINGS
// names, each a folder or a file.

import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { Browser, chromium, type Tab } from "./browser.ts";
import { host, json, serve, site } from "./server.ts";

const below = process.env.STRANDLINE_RECORDINGS;
const skip = !chromium ? "Chromium is missing" : below ? false : "STRANDLINE_RECORDINGS names no folder of recordings";
const scratch = mkdtempSync(join(tmpdir(), "strandline-parity-"));

let browser: Browser;
before(async () => {
  if (!skip) browser = await Browser.start();
});
after(async () => {
  rmSync(scratch, { recursive: true });
  await browser?.close();
});

type Listed = [severity: string, title: string, place: string][];

/** What the findings of a page list, once all are judged; of a page without findings its card. */
async function listed(tab: Tab): Promise<Listed> {
  await tab.until("document.querySelector('.findings')", 120_000);
  return tab.eval("[...document.querySelectorAll('.findings > ol button')].map(b => [b.querySelector('.sev').classList[1], b.children[1].textContent, b.querySelector('.mono')?.textContent ?? ''])");
}

function diagnosed(path: string): Listed {
  const place = (s: any): string => (s?.file ? `${basename(s.file)}${s.line ? `:${s.line}` : ""} ${s.function}` : "");
  return json("diagnose", path).findings.map((f: any) => [f.severity, f.title, place(f.site)]);
}

const doors: Record<string, (path: string) => Promise<Listed>> = {
  async page(path) {
    const server = await serve(path);
    const tab = await browser.open(`${server.url}#v=findings`);
    try {
      return await listed(tab);
    } finally {
      await tab.close();
      await server.stop();
    }
  },
  async saved(path) {
    const file = join(scratch, "page.html");
    json("view", "--html", file, path);
    const tab = await browser.open(`file://${file}#v=findings`);
    try {
      return await listed(tab);
    } finally {
      await tab.close();
    }
  },
  async site(path) {
    const server = await host(site!);
    const tab = await browser.open(`${server.url}#v=findings`);
    try {
      await tab.until("document.querySelector('#drop [role=status]')?.textContent === ''", 120_000);
      await tab.drop(path);
      return await listed(tab);
    } finally {
      await tab.close();
      server.stop();
    }
  },
};

for (const name of skip ? [] : readdirSync(below!).filter((n) => !n.endsWith(".log")).sort((a, b) => a.localeCompare(b, "en", { numeric: true }))) {
  test(`${name} has the findings of diagnose on the page, saved and on the site`, { timeout: 600_000 }, async () => {
    const path = join(below!, name);
    let want: Listed;
    try {
      want = diagnosed(path);
    } catch {
      await assert.rejects(serve(path), /printed no address/); // what diagnose cannot read, no page shows
      return;
    }
    for (const [door, list] of Object.entries(doors)) if (door !== "site" || site) assert.deepEqual(await list(path), want, door);
  });
}
