// The overview of many files.

import assert from "node:assert/strict";
import { copyFileSync, linkSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { clean } from "./checks.ts";
import { browser, skip } from "./recorded.ts";
import { example, json, serve } from "./server.ts";

const folder = mkdtempSync(join(tmpdir(), "strandline-wall-"));
after(() => rmSync(folder, { recursive: true }));

test("many files are rows, the outliers first, of which those in sight are in the table", { skip, timeout: 120_000 }, async () => {
  const steps = [2, 3, 4].map((n) => join(folder, `rank0_step${n}.pickle`));
  steps.forEach((path, i) => copyFileSync(example(`image-leak/step-${i + 2}.pickle`), path));
  const plain = join(folder, "rank1_step1.pickle.gz");
  copyFileSync(example("logits/step-3.pickle.gz"), plain);
  for (let rank = 2; rank <= 61; rank++) linkSync(plain, join(folder, `rank${rank}_step1.pickle.gz`));
  const want = json("diagnose", folder);
  const server = await serve(folder);
  const tab = await browser.open(server.url);
  try {
    await tab.until("document.querySelectorAll('.wall tbody tr').length > 0");
    console.log(`# first rows of 64 files after ${Math.round(performance.now() - server.started)} ms`);
    await tab.until("strandline.state().figures.wall?.length === 64 && strandline.state().figures.wall.some(r => r[2])");
    const { wall } = (await tab.state()).figures;
    assert.equal(wall[0][2], want.findings[0].title);
    assert.match(await tab.eval("document.querySelector('.wall tbody tr').innerText"), /rank0.*leak/is);
    assert.ok((await tab.eval<number>("document.querySelectorAll('.wall tbody tr').length")) < 64);
    const spent = await tab.eval<number>(`(() => {
      const el = document.querySelector('.wall .scroll');
      const from = performance.now();
      for (let n = 0; n < 100; n++) (el.scrollTop = (n * 137) % el.scrollHeight, el.dispatchEvent(new Event('scroll')), el.offsetHeight);
      return (performance.now() - from) / 100;
    })()`);
    console.log(`# ${spent.toFixed(1)} ms for each step of scrolling`);
    await clean(tab);
    await tab.eval("document.querySelector('.wall .scroll').scrollTop = 0");
    await tab.click("[data-key='only problem']");
    const found = want.findings.filter((f: any) => f.severity === "problem");
    await tab.until(`document.querySelectorAll('.wall tbody tr').length === ${new Set(found.map((f: any) => f.process)).size}`);
    await tab.click(`[data-key='open ${wall[0][0]} ${wall[0][1]}']`);
    await tab.settled();
    assert.equal((await tab.state()).f, wall[0][0]);
    assert.equal((await tab.state()).view, "timeline");
  } finally {
    await tab.close();
    await server.stop();
  }
});
