// What each page gives away, and its palette of commands.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { after, test } from "node:test";
import { clean } from "./checks.ts";
import { frame, GiB, MiB, process, sample } from "./made.ts";
import { browser, skip } from "./recorded.ts";
import { example, json, serve } from "./server.ts";

const folder = mkdtempSync(join(tmpdir(), "strandline-share-"));
after(() => rmSync(folder, { recursive: true }));

const watched = join(folder, "node.strandline");
writeFileSync(watched, frame(Array.from({ length: 200 }, (_, k) => sample(k, [process({ pid: 7, host: [GiB + k * 8 * MiB, 0, 0] })]))));
const ready = "window.strandline && (strandline.state().settled || strandline.state().figures?.findings)";

for (const file of [example("image-leak/step-4.pickle"), example("munmap-leak/server.trace"), watched]) {
  test(`the page of ${file.split("/").at(-1)} is saved from itself, and its palette finds a finding`, { skip, timeout: 120_000 }, async () => {
    const server = await serve(file);
    const tab = await browser.open(server.url);
    const { findings } = json("diagnose", file);
    try {
      await tab.until(ready);
      await tab.eval("window.saved = []; URL.createObjectURL = (b) => (saved.push(b), 'data:,'); HTMLAnchorElement.prototype.click = () => {}; dispatchEvent(new KeyboardEvent('keydown', { key: 'k', ctrlKey: true, bubbles: true }))");
      await tab.until("document.querySelector('#palette[open] li[aria-selected=true]')");
      await clean(tab);
      await tab.eval(`(e => { e.value = ${JSON.stringify(findings[0].title)}; e.dispatchEvent(new Event('input', { bubbles: true })) })(document.querySelector('#palette input'))`);
      await tab.key("Enter");
      await tab.until(`!document.querySelector('#palette[open]') && document.querySelector('article')?.textContent.includes(${JSON.stringify(findings[0].title)})`);
      await tab.until(`(document.querySelector('#palette[open], #give[open]') || document.getElementById('export').click(), document.querySelector('#give [data-key=page]:not(:disabled)'))`);
      await clean(tab);
      await tab.until("saved.length || (document.querySelector('#give[open] [data-key=page]') ?? document.getElementById('export')).click()"); // until all is judged
      const out = join(folder, "saved.html");
      writeFileSync(out, await tab.eval<string>("saved[0].text()"));
      const copy = await browser.open(pathToFileURL(out).href);
      await copy.until(ready);
      await copy.eval("document.querySelector(\"[data-key='view findings']\").click()");
      await copy.until(`document.querySelector('article')?.textContent.includes(${JSON.stringify(findings[0].title)})`);
      assert.equal(await copy.eval("document.documentElement.dataset.engine"), "saved");
      await copy.close();
    } finally {
      await tab.close();
      await server.stop();
    }
  });
}
