// Measures what the page takes, in Chromium without a GPU:
//
//   npm run measure -- FILE…
//   npm run measure -- FOLDER           of many files: the overview of them
//   npm run measure -- --site FILE…     dropped on the static site
//
// STRANDLINE_MINUTES is how long it is used beyond that, to see that the tab does not
// grow. STRANDLINE names the program (else ../strandline), STRANDLINE_SITE the folder
// of the site. Times are those of the
// page's own marks and of input events as the browser stamps them. On a machine that others
// use, `chrt -r 5 npm run measure …` keeps their work out of the figures.

import { readFileSync, statSync } from "node:fs";
import { Browser, pause, type Tab } from "./browser.ts";
import { host, serve, site } from "./server.ts";

const stamps = `
  window.delays = []; window.long = []; window.frames = [];
  const request = window.requestAnimationFrame.bind(window);
  window.requestAnimationFrame = (draw) => request((t) => { const from = performance.now(); draw(t); frames.push(performance.now() - from); });
  let at = 0;
  for (const type of ["wheel", "pointermove", "keydown"]) addEventListener(type, (e) => { if (!at) at = e.timeStamp; }, { capture: true, passive: true });
  new PerformanceObserver((list) => {
    for (const m of list.getEntriesByName("strandline:painted")) if (at && m.startTime >= at) { delays.push(m.startTime - at); at = 0; }
  }).observe({ type: "mark" });
  new PerformanceObserver((list) => { for (const e of list.getEntries()) long.push(e.duration); }).observe({ type: "longtask" });
`;

const quantile = (of: number[], q: number): number => [...of].sort((a, b) => a - b)[Math.min(of.length - 1, Math.floor(of.length * q))] ?? NaN;
const ms = (v: number): string => `${v.toFixed(1)} ms`;
const mib = (v: number): string => `${(v / 2 ** 20).toFixed(1)} MiB`;

async function spread(tab: Tab, name: string, act: (i: number) => Promise<void>, n: number): Promise<void> {
  await tab.eval("delays.length = long.length = frames.length = 0");
  for (let i = 0; i < n; i++) {
    await act(i);
    await pause(16);
  }
  await pause(300);
  const { delays, long, frames } = await tab.eval<Record<"delays" | "long" | "frames", number[]>>("({ delays, long, frames })");
  const longest = long.length ? `, ${long.length} tasks over 50 ms, longest ${ms(Math.max(...long))}` : "";
  console.log(`${name}: input to painted p50 ${ms(quantile(delays, 0.5))}, p95 ${ms(quantile(delays, 0.95))}, max ${ms(Math.max(...delays))} (${delays.length} paints, script p50 ${ms(quantile(frames, 0.5))}, p95 ${ms(quantile(frames, 0.95))}${longest})`);
}

/** What shows a file: when it was asked to, and how it ends. */
interface Shown {
  after: string;
  began: number;
  pid?: number;
  stop: () => unknown;
}

async function byServer(tab: Tab, file: string): Promise<Shown> {
  const began = Date.now();
  const server = await serve(file);
  await tab.send("Page.navigate", { url: server.url });
  return { after: "the command", began, pid: server.pid, stop: server.stop };
}

async function bySite(tab: Tab, file: string): Promise<Shown> {
  if (!site) throw new Error("STRANDLINE_SITE names no folder");
  const opened = Date.now();
  const server = await host(site);
  await tab.send("Page.navigate", { url: server.url });
  await tab.until("document.querySelector('#drop [role=status]')?.textContent === ''");
  console.log(`site: ready for files ${ms(Date.now() - opened)} after it was opened, received ${mib(tab.received)}`);
  const began = Date.now();
  await tab.drop(file);
  return { after: "the drop", began, stop: server.stop };
}

async function measure(file: string, show: typeof bySite): Promise<void> {
  const browser = await Browser.start();
  console.log(file);
  const tab = await browser.open("about:blank");
  await tab.send("Page.addScriptToEvaluateOnNewDocument", { source: stamps });
  const { after, began, pid, stop } = await show(tab, file);
  const rows = statSync(file).isDirectory();
  const mark = `performance.getEntriesByName('strandline:first-${rows ? "rows" : "picture"}')`;
  await tab.until(`${mark}.length`, 60_000);
  const first = await tab.eval<number>(`performance.timeOrigin + ${mark}[0].startTime`);
  if (rows) await wall(tab, first - began, began);
  else await picture(tab, first - began, began, after);
  if (pid) {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const kib = (name: string): number => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)?.[1]) * 1024;
    console.log(`server: ${mib(kib("VmRSS"))}, at most ${mib(kib("VmHWM"))}`);
  }
  if (tab.problems.length) console.log(tab.problems.join("\n"));
  await tab.close();
  await browser.close();
  await stop();
}

/** The picture of one file: until it is there, and what moving over it takes. */
async function picture(tab: Tab, took: number, began: number, after: string): Promise<void> {
  await tab.settled();
  const all = Date.now();
  console.log(`first picture: ${ms(took)} after ${after} (all shown by ${ms(all - began)})`);
  const { left, top, width, height, map } = (await tab.state()).picture.box;
  const rail = await tab.eval<number>("document.querySelector('#rail .box').getBoundingClientRect().top");
  const x = left + width * 0.7;
  const y = rail + top + height / 2;
  await tab.mouse("mouseMoved", x, y);
  await spread(tab, "zoom in by wheel", () => tab.wheel(x, y, -120), 30);
  await spread(tab, "zoom out by wheel", () => tab.wheel(x, y, 120), 30);
  await tab.key("w");
  await tab.key("w");
  await tab.key("w");
  await tab.settled();
  await tab.mouse("mousePressed", left + 100, rail + map + 10, { buttons: 1 });
  await spread(tab, "drag on the map", (i) => tab.mouse("mouseMoved", left + 100 + 12 * i, rail + map + 10, { buttons: 1 }), 60);
  await tab.mouse("mouseReleased", left + 820, rail + map + 10);
  await spread(tab, "hover", (i) => tab.mouse("mouseMoved", left + 100 + 10 * i, y), 60);
  await spread(tab, "pan by key", (i) => tab.key(i % 20 < 10 ? "a" : "d"), 20);
  await tab.settled();
  await heap(tab, "page");
  const minutes = Number(process.env.STRANDLINE_MINUTES ?? 0);
  for (let half = 1; half <= 2 * minutes; half++) {
    await use(tab, x, y, 30_000);
    await heap(tab, `after ${half / 2} min of use`);
  }
}

/** The overview of many files: until it is there, and what scrolling it takes. */
async function wall(tab: Tab, took: number, began: number): Promise<void> {
  await tab.until("strandline.state().figures.findings && strandline.state().figures.wall.every(r => r[1] !== null)");
  const all = Date.now();
  const n = await tab.eval<number>("strandline.state().figures.wall.length");
  console.log(`first rows of ${n}: ${ms(took)} after the command (all of them and the findings by ${ms(all - began)})`);
  const scroll = await tab.eval<number[]>(`(async () => {
    const el = document.querySelector(".wall .scroll"), out = [];
    for (let n = 0; n < 120; n++) out.push(await new Promise((done) => requestAnimationFrame(() => {
      const from = performance.now();
      el.scrollTop = (n * 137) % el.scrollHeight;
      el.dispatchEvent(new Event("scroll"));
      el.offsetHeight;
      done(performance.now() - from);
    })));
    return out;
  })()`);
  console.log(`a step of scrolling: p50 ${ms(quantile(scroll, 0.5))}, p95 ${ms(quantile(scroll, 0.95))}`);
}

async function heap(tab: Tab, when: string): Promise<void> {
  await tab.settled();
  await tab.eval("delays.length = long.length = frames.length = 0"); // what this program keeps there
  await tab.send("HeapProfiler.collectGarbage");
  const { usedSize, backingStorageSize } = await tab.send("Runtime.getHeapUsage");
  const { metrics } = await tab.send("Performance.getMetrics");
  const metric = (name: string): number => metrics.find((m: { name: string; value: number }) => m.name === name)?.value ?? NaN;
  console.log(`${when}: heap ${mib(usedSize)}, arrays ${mib(backingStorageSize)}, ${metric("Nodes")} nodes, ${metric("JSEventListeners")} listeners, the tab's process ${mib(await resident(tab))}, received ${mib(tab.received)}`);
}

/** The resident memory of the largest process that draws a tab. */
async function resident(tab: Tab): Promise<number> {
  const { processInfo } = await tab.browser.send("SystemInfo.getProcessInfo");
  const kib = processInfo.filter((p: { type: string }) => p.type === "renderer").map((p: { id: number }) => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${p.id}/status`, "utf8"))?.[1] ?? 0));
  return Math.max(0, ...kib) * 1024;
}

/** Zooms, pans, hovers, pins and turns from view to view for a while, and ends in the timeline. */
async function use(tab: Tab, x: number, y: number, ms: number): Promise<void> {
  for (const end = Date.now() + ms; Date.now() < end; ) {
    for (let i = 0; i < 12; i++) await tab.wheel(x, y, i % 4 < 2 ? -240 : 240);
    await tab.clickAt(x - 40, y);
    for (const key of ["a", "d", "p", "n", "b", "g", "x", "x", "2", "3", "1", "Escape", "0"]) {
      await tab.key(key);
      await pause(120);
    }
  }
  for (const key of ["Escape", "Escape", "0"]) await tab.key(key);
}

async function main(): Promise<void> {
  const files = process.argv.slice(2);
  const onSite = files[0] === "--site";
  if (onSite) files.shift();
  for (const file of files) await measure(file, onSite ? bySite : byServer);
}

void main();
