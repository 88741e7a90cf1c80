// A job of many ranks: the page, the saved page and the static site show the verdict of diagnose.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Browser, chromium, type Tab } from "./browser.ts";
import { clean, shoot } from "./checks.ts";
import { host, json, serve, site } from "./server.ts";

const root = mkdtempSync(join(tmpdir(), "strandline-job-"));
const folder = join(root, "logs");
mkdirSync(folder);
const ranks = 128;
const leaks = 13;
const two = (n: number): string => String(n).padStart(2, "0");
for (let r = 0; r < ranks; r++) {
  const lines = [`2026-03-01 09:59:00 INFO rank ${r} of world_size=${ranks} starts`];
  for (let i = 0; i < 8; i++) lines.push(`2026-03-01 10:0${i}:00 INFO [rank ${r}] step ${10 * i} memory allocated: ${(40 + (r === leaks ? 5 * i : 0)).toFixed(2)} GiB`);
  const end = (second: number, text: string): number => lines.push(`[rank${r}]:[E301 10:08:${two(second)}.000 a.cpp:1] end`, `[rank${r}]: Traceback (most recent call last):`, `[rank${r}]:   File "/home/u/train.py", line 88, in forward`, `[rank${r}]: ${text}`);
  if (r === leaks) end(1, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 80.00 GiB of which 1.00 GiB is free. Including non-PyTorch memory, this process has 79.00 GiB memory in use. Of the allocated memory 77.00 GiB is allocated by PyTorch, and 500.00 MiB is reserved by PyTorch but unallocated.");
  else end(5 + (r % 50), "torch.distributed.DistBackendError: NCCL error in: NCCLUtils.hpp:317, remote process exited or there was a network error");
  writeFileSync(join(folder, `rank_${r}.log`), `${lines.join("\n")}\n`);
}

let browser: Browser;
before(async () => {
  if (chromium) browser = await Browser.start();
});
after(async () => {
  rmSync(root, { recursive: true });
  await browser?.close();
});

const judged = "strandline.state().figures.job && document.querySelector('.job tbody tr')";

/** What every door must show. */
async function shows(tab: Tab): Promise<void> {
  await tab.until(judged);
  const { job } = json("diagnose", folder);
  assert.deepEqual([job.cause, job.first.rank, job.failed], ["leak", leaks, true]);
  assert.match(await tab.eval("document.querySelector('.job h2').textContent"), new RegExp(`FAILED: a job of ${ranks} ranks: rank ${leaks} fell first; leak`));
  const text = await tab.eval<string>("document.querySelector('.job header').innerText");
  for (const part of [job.why, job.fix, job.again, "train.py:88"]) assert.ok(text.includes(part), part);
  const rows = (): Promise<string[]> => tab.eval("[...document.querySelectorAll('.job tbody th')].map(x => x.textContent)");
  assert.equal((await rows())[0], String(leaks));
  assert.ok((await rows()).length < 100, "rows out of sight are not in the table");
  await tab.eval("document.querySelector('.job .scroll').scrollTop = 1e6");
  await tab.until(`[...document.querySelectorAll('.job tbody th')].at(-1)?.textContent === '${job.ranks.at(-1).rank}'`);
  await tab.eval("document.querySelector('.job .scroll').scrollTop = 0");
  await tab.until(`document.querySelector('.job tbody th')?.textContent === '${leaks}'`);
  await tab.click(`[data-key='rank ${leaks}']`);
  assert.match(await tab.eval("document.querySelector('.job .rank').innerText"), /rank_13\.log:\d+[^]*CUDA out of memory/);
  await tab.click("[data-key='by rank']");
  await tab.until("document.querySelector('.job tbody th')?.textContent === '0'");
}

test("the page of a job begins with its verdict", { skip: !chromium && "Chromium is missing", timeout: 180_000 }, async () => {
  const server = await serve(folder);
  const tab = await browser.open(server.url);
  try {
    await shows(tab);
    await clean(tab);
  } finally {
    await shoot(tab, "a job");
    await tab.close();
    await server.stop();
  }
});

test("a saved page has the verdict on a job", { skip: !chromium && "Chromium is missing", timeout: 180_000 }, async () => {
  const path = join(root, "job.html");
  json("view", "--html", path, folder);
  const tab = await browser.open(`file://${path}`);
  try {
    await shows(tab);
    await clean(tab);
  } finally {
    await tab.close();
  }
});

test("a folder of a job that is dropped on the site has a verdict", { skip: !chromium ? "Chromium is missing" : !site && "STRANDLINE_SITE names no folder with the built site", timeout: 180_000 }, async () => {
  const server = await host(site!);
  const tab = await browser.open(server.url);
  try {
    await tab.until("document.querySelector('#drop [role=status]')?.textContent === ''");
    await tab.drop(folder);
    await shows(tab);
    await clean(tab);
  } finally {
    await tab.close();
    server.stop();
  }
});
