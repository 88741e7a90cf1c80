// The page of a recording of `strandline watch`. What it shows is held against what
// diagnose reports about the same file, and against the samples in it.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { Tab } from "./browser.ts";
import { clean, figure, forceColors, openShows, shoot, startedAgain, styles } from "./checks.ts";
import { began, device, frame, GiB, MiB, process as made, sample, write } from "./made.ts";
import { browser, scenarios, skip } from "./recorded.ts";
import { binary, json, serve } from "./server.ts";

const folder = mkdtempSync(join(tmpdir(), "strandline-watches-"));

after(() => rmSync(folder, { recursive: true }));

const settled = "window.strandline?.state().settled && strandline.state().picture";

const scenario = scenarios("watch", settled, 120_000);

const container = "4f5a".repeat(16);
const wave = (k: number, of: number): number => ((k * 7919) % of) * 4096; // noise

/** What a node with four processes holds at a second: a leak of tensors, a cache that fills, a leak on the host, and one that ends. */
function moment(k: number): object {
  const leak = 8 * GiB + k * 6 * MiB + wave(k, 512);
  const cached = Math.round(6 * GiB * (1 - Math.exp(-k / 60)));
  const host = 4 * GiB + k * 5 * MiB + wave(k, 256);
  const processes = [
    made({ pid: 100, name: "train", host: [2 * GiB + wave(k, 64), 600 * MiB, 128 * MiB], devices: [{ device: 0, used: leak + GiB + 500 * MiB, allocated: leak, cached: GiB }] }),
    made({ pid: 200, name: "serve", host: [3 * GiB, 500 * MiB, 0], devices: [{ device: 1, used: 10 * GiB + cached + 500 * MiB, allocated: 10 * GiB, cached }] }),
    made({ pid: 300, name: "loader", group: "/pods/a", container, host: [host, 200 * MiB, 64 * MiB] }),
    ...(k < 200 ? [made({ pid: 400, name: "short", group: "/pods/a", container, host: [GiB, 0, 0] })] : []),
  ];
  const devices = [
    device(0, 80 * GiB, [[100, leak + GiB + 500 * MiB, "live"], [77, 300 * MiB, "gone"]], 200 * MiB),
    device(1, 80 * GiB, [[200, 10 * GiB + cached + 500 * MiB, "live"]], 150 * MiB),
  ];
  return sample(k, processes, devices, [{ name: "/pods/a", used_bytes: host + 64 * MiB + (k < 200 ? GiB : 0), limit_bytes: 8 * GiB }], { total_bytes: 256 * GiB, available_bytes: 200 * GiB - k * 5 * MiB }, k < 200 ? [] : [400]);
}

const samples = Array.from({ length: 400 }, (_, k) => moment(k));
let nodeFile = "";
const node = (): string => (nodeFile ||= write(join(folder, "node.strandline"), samples));

/** The rows of the table: label, place where there are several, and bytes. */
const rows = (tab: Tab): Promise<[string, number][]> => tab.eval("[...document.querySelectorAll('#view tbody tr:has(.name)')].map(r => [r.querySelector('.name').textContent, Number(r.querySelector('td[data-bytes]').dataset.bytes)])");

/** What the inspector shows at the cursor, by part. */
const held = (tab: Tab): Promise<Record<string, number>> => tab.eval("Object.fromEntries([...document.querySelectorAll('#cursor dd[data-part]')].map(d => [d.dataset.part, Number(d.dataset.bytes)]))");

/** A point of the picture, as shares of it. */
async function at(tab: Tab, x: number, y: number): Promise<[number, number]> {
  const { box } = (await tab.state()).picture;
  const [left, top] = await tab.eval<[number, number]>("(r => [r.left, r.top])(document.querySelector('#rail .box').getBoundingClientRect())");
  return [left + box.left + x * box.width, top + box.top + y * box.height];
}

scenario("findings and figures are those of diagnose", node, async (tab, _, file) => {
  const want = json("diagnose", file);
  const { doc, subject, judged, picture } = await tab.state();
  const plain = ({ card, origins, subject, parts, fit, ...f }: any): any => f;
  assert.deepEqual(doc.findings.map(plain), want.findings);
  assert.equal(doc.verdict, want.verdict);
  assert.equal(doc.samples, 400);
  assert.equal(subject.label, "100 train", "the worst finding is shown first");
  assert.equal(judged.title, want.findings[0].title);
  // The curve is that of the evidence.
  const e = want.findings[0].evidence;
  assert.equal(e.column, "device 0 allocated");
  assert.deepEqual(picture.judged, { verdict: "growth", level: e.level_bytes, bounds: e.level_bounds_bytes, until: 399, limit: e.limit_bytes, reached: e.seconds_to_limit });
  const { seconds, level_bytes, low_bytes, high_bytes } = judged.fit;
  const last = seconds.indexOf(399);
  assert.ok(Math.abs(level_bytes[last] - e.level_bytes) < 64 * MiB, `${level_bytes[last]} is far from ${e.level_bytes}`);
  assert.ok(low_bytes.every((v: number, i: number) => v <= level_bytes[i] && level_bytes[i] <= high_bytes[i]));
  // The strip and the inspector show it, with the command.
  assert.match(await tab.eval("document.getElementById('verdict').innerText"), /LEAK[^]*memory allocated by PyTorch of pid 100 \(train\) keeps growing/);
  assert.equal(await tab.eval("document.querySelector('#inspector .command pre').textContent"), 'strandline diagnose -- "$(strandline snapshot --pid 100)"');
  // What is held is what the last sample has.
  const s: any = moment(399);
  const d = s.processes[0].devices[0];
  assert.deepEqual(await held(tab), { all: d.used_bytes, allocated: d.allocated_bytes, cached: d.cached_bytes, other: d.other_bytes });
  assert.deepEqual(picture.entries.map((x: any) => [x.name, x.bytes]), [["allocated", d.allocated_bytes], ["cached", d.cached_bytes], ["other", d.other_bytes]].map(([n, v]) => [n, Math.fround(v)]));
  assert.ok(!(await tab.eval<string>("location.href")).includes("t="), "the secret left the address");
});

scenario("any moment, by key and by hand", node, async (tab) => {
  await tab.key("Home");
  for (const k of [0, 1, 2]) {
    await tab.until(`${settled} && strandline.state().picture.column === ${k}`);
    const d = (moment(k) as any).processes[0].devices[0];
    assert.deepEqual(await held(tab), { all: d.used_bytes, allocated: d.allocated_bytes, cached: d.cached_bytes, other: d.other_bytes });
    await tab.key("ArrowRight");
  }
  const [x, y] = await at(tab, 0.5, 0.95);
  await tab.mouse("mouseMoved", x, y);
  await tab.until("!document.getElementById('tooltip').hidden");
  const shown = await tab.eval<string>("document.getElementById('tooltip').innerText");
  const t = Number(/at (\d+) min (\d+) s/.exec(shown)?.slice(1).reduce((n, v, i) => n + Number(v) * (i ? 1 : 60), 0));
  const d = (moment(t) as any).processes[0].devices[0];
  assert.ok(shown.includes(d.allocated_bytes.toLocaleString("en-US")), `${shown} does not contain ${d.allocated_bytes}`);
  assert.ok(shown.includes(new Date(began + t * 1000).toISOString().slice(11, 19)), shown);
  await tab.clickAt(x, y);
  await tab.until(`${settled} && strandline.state().s.k === ${t}`);
  // A selection, and the window on it.
  const [x1] = await at(tab, 0.75, 0.5);
  await tab.drag(x, y, x1, y);
  await tab.until(`${settled} && strandline.state().s.range`);
  const [a, b] = (await tab.state()).s.range;
  const used = (k: number): number => (moment(k) as any).processes[0].devices[0].used_bytes;
  assert.equal(await figure(tab, "#selection dd[data-bytes]"), used(Math.floor(b)) - used(Math.floor(a)));
  await tab.key("f");
  await tab.until(`${settled} && strandline.state().s.win`);
  const { win } = (await tab.state()).picture;
  assert.ok(Math.abs(win[0] - a) < 0.01 && Math.abs(win[1] - b) < 0.01);
  await tab.wheel(x, y, 200);
  await tab.until(`${settled} && strandline.state().s.win?.[0] < ${a}`);
  for (const key of ["0", "Escape", "End"]) await tab.key(key);
  await tab.until(`${settled} && strandline.state().s.range === null && strandline.state().s.win === null && strandline.state().s.k === null`);
  await tab.key("?");
  await tab.until("document.getElementById('keys').open");
  await tab.key("Escape");
});

scenario("by process, by container and by device", node, async (tab) => {
  const s: any = moment(399);
  const processes = new Map(await rows(tab));
  assert.ok(processes.has("100 train") && processes.has("400 short"), [...processes.keys()].join());
  await tab.key("2");
  await tab.until(`${settled} && strandline.state().view === "container" && strandline.state().subject.kind === "container"`);
  const host = s.processes[2].host;
  const resident = host.anonymous_bytes + host.file_bytes + host.shared_bytes;
  assert.deepEqual(await held(tab), { all: resident, "300 loader": resident, "the control group's own count": s.rest.groups[0].used_bytes });
  const box = await tab.state();
  assert.equal(box.subject.limit_bytes, 8 * GiB);
  assert.equal(box.picture.judged.limit, 8 * GiB, "the limit of its control group, in its own count");
  await tab.key("3");
  await tab.until(`${settled} && strandline.state().subject.key === "d0"`);
  const d = s.rest.devices[0];
  assert.deepEqual(await held(tab), { all: d.used_bytes, "100 train": d.processes[0].used_bytes, "processes that have ended": d.unowned_bytes, "not attributed to any process": d.remainder_bytes });
  const drawn = (await tab.state()).picture.entries;
  assert.equal(drawn.reduce((n: number, x: any) => n + x.bytes, 0), d.used_bytes, "every byte of the device is drawn");
  // All that the device has in use is judged, too, and drawn.
  const { subject, picture } = await tab.state();
  assert.equal(subject.judged.verdict, "growth");
  assert.equal(picture.judged.level, subject.judged.level_bytes);
  assert.equal(picture.judged.limit, 80 * GiB);
  assert.match(await tab.eval("document.querySelector('#view tbody tr[aria-selected]').innerText"), /in use \+36\d MiB a minute\s+in \d/);
  await tab.key("ArrowDown");
  await tab.until(`${settled} && strandline.state().subject.key !== "d0"`);
});

/** A server with an engine beside its leak, whose mappings were looked at twice, and which did not answer for a while. */
const served = (k: number): object => {
  const grown = k < 20 ? 0 : k < 40 ? 2 : 6;
  const heap = (1000 + 5 * k) * MiB;
  const mappings = [
    { start: 0x7f0000000000, end: 0x7f0000000000 + heap, kind: "anonymous", resident_bytes: grown * 90 * MiB, grown_bytes: grown * 90 * MiB },
    { start: 0x555500000000, end: 0x555600000000, kind: "heap", name: "[heap]", resident_bytes: grown * 20 * MiB, grown_bytes: grown * 10 * MiB },
  ];
  const p = { ...made({ pid: 500, name: "vllm", host: [heap, 400 * MiB, 0] }), ...(grown ? { grown: { seconds: grown, classes: [], mappings } } : {}) };
  const known = k < 50 || k >= 60;
  const load = { engine: known ? "vllm" : "", running_requests: known ? k % 17 : null, waiting_requests: known ? 3 : null, kv_cache_used_ratio: known ? k / 200 : null, finished_requests: null, prompt_tokens: null, output_tokens: null, ...(known ? {} : { note: "no answer within 10s" }) };
  return { ...sample(k, [p]), load };
};
const servedFile = (): string => write(join(folder, "served.strandline"), Array.from({ length: 100 }, (_, k) => served(k)));

scenario("the load of an engine below the memory, and mappings by address", servedFile, async (tab) => {
  const load = (): Promise<Record<string, string>> => tab.eval("Object.fromEntries([...document.querySelectorAll('#load dd[data-part]')].map(d => [d.dataset.part, d.textContent]))");
  await tab.until("strandline.state().picture.load");
  assert.deepEqual(await load(), { "running requests": String(99 % 17), "waiting requests": "3", "KV cache in use": "50%" });
  assert.deepEqual((await tab.state()).picture.load, { most: 19 });
  // Each row shows how it is split.
  const parts = await tab.eval<number[]>("[...document.querySelectorAll('#view tr[aria-selected] .shares .sw')].map(x => Number(x.style.flexGrow))");
  assert.deepEqual(parts.map((n: number) => Math.round(n / MiB)), [1495, 400]); // the browser rounds
  // While the engine did not answer, nothing is drawn, and the inspector shows that.
  const [x, y] = await at(tab, 55 / 100 / 1.08, 0.9);
  await tab.clickAt(x, y);
  await tab.until(`${settled} && strandline.state().s.k > 50 && strandline.state().s.k < 59`);
  assert.deepEqual(await load(), {});
  assert.match(await tab.eval("document.getElementById('inspector').innerText"), /It was not known then/);
  await tab.key("End");
  // Its mappings, with what each held at the last look.
  await tab.key("m");
  await tab.until(`${settled} && strandline.state().s.mapped && strandline.state().levels?.key === "p500-500-mappings"`);
  const resident = (1495 + 400) * MiB;
  assert.deepEqual(await held(tab), { all: resident, "7f0000000000 anonymous": 540 * MiB, "555500000000 heap": 120 * MiB, others: resident - 660 * MiB });
  assert.equal((await tab.state()).picture.judged, null);
  await tab.key("Home");
  await tab.until(`${settled} && strandline.state().picture.column === 0`);
  assert.equal((await held(tab))["7f0000000000 anonymous"], 180 * MiB);
  await tab.key("m");
  await tab.until(`${settled} && strandline.state().levels?.key === "p500-500-host"`);
});

scenario("a cache that fills levels off, with its level", node, async (tab, _, file) => {
  const all = json("diagnose", file).findings;
  const i = all.findIndex((f: any) => f.evidence?.column === "device 1 reserved");
  assert.equal(all[i].evidence.verdict, "plateau");
  await tab.key("4");
  await tab.until(`${settled} && document.querySelector("[data-key='finding ${i}']")`);
  await tab.eval(`document.querySelector("[data-key='finding ${i}']").click()`);
  await tab.until(`${settled} && strandline.state().picture.judged?.verdict === "plateau"`);
  const { picture, subject } = await tab.state();
  assert.equal(subject.label, "200 serve");
  assert.deepEqual(picture.judged.bounds, all[i].evidence.level_bounds_bytes);
  assert.match(await tab.eval("document.querySelector('.findings article').innerText"), /this is not a leak/);
  await tab.key("z"); // what was judged alone
  await tab.until(`${settled} && strandline.state().s.alone`);
  const entries = (await tab.state()).picture.entries;
  assert.deepEqual(entries.map((x: any) => x.name), ["allocated", "cached"]);
  await tab.click("[data-key=show]");
  await tab.until(`${settled} && strandline.state().view === "process"`);
  await tab.eval("history.back()");
  await tab.until(`${settled} && strandline.state().view === "findings"`);
});

scenario("as far as the limit", node, async (tab, _, file) => {
  const f = json("diagnose", file).findings.find((x: any) => x.evidence?.column === "anonymous" && x.severity === "problem");
  await tab.eval("[...document.querySelectorAll('#view tbody tr')].find(r => r.querySelector('.name').textContent === '300 loader').querySelector('button').click()");
  await tab.until(`${settled} && strandline.state().subject.label === "300 loader" && strandline.state().picture.judged`);
  const before = (await tab.state()).picture;
  const far = before.judged.reached[1] > 399;
  assert.deepEqual(before.judged.reached, f.evidence.seconds_to_limit);
  if (far) await tab.key("l");
  await tab.until(`${settled} && strandline.state().picture.win[1] > ${399 + f.evidence.seconds_to_limit[1]}`);
  const { picture } = await tab.state();
  assert.ok(picture.axis >= f.evidence.limit_bytes, "the limit is in the picture");
  const [x, y] = await at(tab, 0.9, 0.5);
  await tab.mouse("mouseMoved", x, y);
  await tab.until("!document.getElementById('tooltip').hidden");
  assert.match(await tab.eval("document.getElementById('tooltip').innerText"), /expected: .*GiB[\s\S]*in 9 of 10 cases[\s\S]*after the last sample/);
  await tab.key("l");
  await tab.until(`${settled} && strandline.state().picture.win[1] < ${399 + f.evidence.seconds_to_limit[0]}`);
});

scenario("the address holds what is looked at, and search", node, async (tab, url) => {
  await tab.key("/");
  await tab.type("loader|short");
  await tab.until(`${settled} && document.querySelectorAll("#view tbody tr").length === 2`);
  await tab.type("(");
  await tab.until("document.getElementById('search').getAttribute('aria-invalid') === 'true'");
  await tab.key("Escape");
  await tab.key("Escape");
  for (const key of ["Home", "ArrowRight", "w", "ArrowDown"]) {
    await tab.key(key);
    await tab.until(settled);
  }
  await tab.until("location.hash.includes(`s=${strandline.state().subject.key}`)");
  const hash = await tab.eval<string>("location.hash");
  const { s, subject } = await tab.state();
  const other = await browser.open(`${url}${hash}`);
  await other.until(settled);
  const there = await other.state();
  assert.equal(there.subject.key, subject.key);
  assert.deepEqual({ ...there.s, win: null }, { ...s, win: null });
  await other.close();
  const strange = await browser.open(`${url}#v=nothing&k=99999999&r=9-1&w=x&s=none&z=1&a=7&fd=99&more=1`);
  await strange.until(settled);
  assert.deepEqual(strange.problems, []);
  await strange.close();
});

scenario("dark", node, async (tab) => {
  for (const key of ["2", "3", "4", "1"]) {
    await tab.key(key);
    await tab.until(settled);
    await clean(tab);
  }
}, { dark: true });

scenario("forced colors keep swatches and shares, and show which view is open", node, async (tab) => {
  await forceColors(tab);
  for (const key of ["2", "3", "4", "1"]) {
    await tab.key(key);
    await tab.until(settled);
    await openShows(tab);
    await clean(tab);
  }
  assert.ok(new Set(await styles(tab, "#view tbody .sw", "backgroundColor")).size > 1, "swatches");
  const page = (await styles(tab, "body", "backgroundColor"))[0]!;
  const shares = await styles(tab, "#view .shares .sw", "backgroundColor");
  assert.ok(shares.length > 0 && !shares.includes(page), `shares have ${shares} on ${page}`);
});

scenario("900 pixels wide", node, async (tab) => {
  for (const key of ["1", "2", "3", "4"]) {
    await tab.key(key);
    await tab.until(settled);
    assert.ok(await tab.eval("document.documentElement.scrollWidth <= innerWidth"), `view ${key} is not wider than the window`);
    await clean(tab);
    await shoot(tab, `watch narrow ${key}`);
  }
}, { width: 900, height: 700 });

scenario("printed, all of it is on paper", node, async (tab) => {
  const { data } = await tab.send("Page.printToPDF", { printBackground: true });
  const pages = Buffer.from(data, "base64").toString("latin1").match(/\/Type \/Page\b/g)?.length ?? 0;
  assert.ok(pages >= 1 && pages <= 4, `${pages} pages`);
  await tab.send("Emulation.setEmulatedMedia", { media: "print" });
  assert.ok(await tab.eval("document.getElementById('inspector').scrollHeight <= document.getElementById('inspector').clientHeight + 1"), "nothing is cut off");
  assert.equal(await tab.eval("getComputedStyle(document.body).overflow"), "visible");
});

/** A day at a sample a second, of which one second is a spike. */
function day(): string {
  const n = 20_000;
  const file = join(folder, "day.strandline");
  const one = (k: number): object => sample(k, [made({ pid: 5, host: [GiB + wave(k, 3000) + (k === 12_345 ? 40 * GiB : 0), 0, 0] })]);
  return write(file, Array.from({ length: n }, (_, k) => one(k)));
}

scenario("a spike of one sample among many is seen, and its figures are exact", day, async (tab) => {
  const { picture, doc, levels } = await tab.state();
  assert.equal(doc.samples, 20_000);
  assert.ok(levels.from.length <= 1200, `${levels.from.length} columns`);
  const spike = 41 * GiB + wave(12_345, 3000);
  assert.equal(Math.max(...levels.max_bytes), spike);
  assert.equal(levels.at[levels.max_bytes.indexOf(spike)], 12_345);
  assert.equal(levels.samples.reduce((a: number, b: number) => a + b, 0), 20_000);
  assert.equal(picture.highest, spike, "it has a pixel");
  // Nearer, there are finer columns.
  const [x, y] = await at(tab, 12_345 / 20_000, 0.5);
  for (let i = 0; i < 4; i++) await tab.wheel(x, y, -1500);
  await tab.until(`${settled} && strandline.state().levels.from.length && strandline.state().levels.from[0] > 1000`);
  const near = (await tab.state()).levels;
  assert.ok(near.samples.every((v: number) => v <= Math.max(...levels.samples)));
});

/** A recording whose end was torn off in the middle of a sample, with a damaged frame before. */
function torn(): string {
  const file = write(join(folder, "torn.strandline"), samples.slice(0, 300), 100);
  const whole = readFileSync(file);
  const second = whole.indexOf("strandline", whole.indexOf("strandline") + 10);
  writeFileSync(file, whole);
  // In the second frame a line is not JSON.
  const text = readFileSync(file);
  const bad = text.indexOf("at_seconds", text.indexOf('"at_seconds"', second + 5000));
  text.fill(0x7b, bad - 1, bad + 11);
  writeFileSync(file, text);
  truncateSync(file, statSync(file).size - 700);
  return file;
}

scenario("torn, it opens with what can be read", torn, async (tab, _, file) => {
  const want = json("diagnose", file);
  const { doc } = await tab.state();
  assert.match(want.processes[0].basis[0], new RegExp(`${doc.samples} samples`));
  assert.ok(doc.samples < 300 && doc.samples > 150, `${doc.samples} samples`);
  assert.equal(doc.findings.length, want.findings.length);
  assert.equal(await tab.eval("document.getElementById('coverage').textContent"), "partial");
  assert.match(await tab.eval("document.getElementById('banner').innerText"), /only partly readable/);
});

test("while it is written, the page follows it", { skip, timeout: 120_000 }, async () => {
  const file = join(folder, "growing.strandline");
  const whole = frame(samples.slice(0, 400), false);
  const ends: number[] = [];
  for (let i = 0; i < samples.length; i++) ends.push(i < samples.length - 1 ? whole.indexOf(`{"time":"${(samples[i + 1] as any).time}"`) - 3 : whole.length);
  writeFileSync(file, whole.subarray(0, ends[9]!));
  const running = await serve(file);
  const tab = await browser.open(`${running.url}#s=p100-100-device0`);
  try {
    await tab.until(`${settled} && strandline.state().doc.samples === 10`);
    assert.equal((await tab.state()).doc.verdict, "unknown");
    let from = ends[9]!;
    for (const n of [11, 60, 399]) {
      appendFileSync(file, whole.subarray(from, ends[n - 1]!));
      from = ends[n - 1]!;
      await tab.until(`${settled} && strandline.state().doc.samples === ${n}`);
      const d = (moment(n - 1) as any).processes[0].devices[0];
      await tab.until(`document.querySelector("#cursor dd[data-part=all]")?.dataset.bytes === "${d.used_bytes}"`);
    }
    await tab.until(`${settled} && strandline.state().doc.findings.some(f => f.severity === "problem") && strandline.state().doc.verdict === "leak"`);
    const want = json("diagnose", file);
    await tab.until(`JSON.stringify(strandline.state().doc.findings.map(f => f.title)) === ${JSON.stringify(JSON.stringify(want.findings.map((f: any) => f.title)))}`);
    // It was thinned, and is read again.
    const thinner = join(folder, "thinner");
    writeFileSync(thinner, frame(samples.filter((_, k) => k % 2 === 0), false));
    execFileSync("mv", [thinner, file]);
    await tab.until(`${settled} && strandline.state().doc.samples === 200`);
    await clean(tab);
  } finally {
    await shoot(tab, "watch followed");
    await tab.close();
    await running.stop();
  }
});

const open = (): string => write(join(folder, "open.strandline"), samples.slice(0, 100), 600, false);

scenario("a program that was started again: the page that followed says so, and keeps what it shows", open, async (tab, _, file, server) => {
  const { doc, subject } = await tab.state();
  assert.equal(doc.following, true);
  const shown = await rows(tab);
  await startedAgain(tab, server, ["view", file], async () => {});
  assert.match(await tab.eval("document.getElementById('banner').textContent"), /What is here stays\.$/);
  assert.deepEqual([(await tab.state()).doc.samples, await rows(tab)], [100, shown]);
  await tab.key("Home"); // what it holds can still be looked at
  await tab.until(`${settled} && strandline.state().picture.column === 0`);
  const first = (moment(0) as any).processes.find((p: any) => `${p.pid} ${p.name}` === subject.label);
  assert.equal((await held(tab)).all, first.devices[0].used_bytes);
});

test("a watch of a real process, live", { skip, timeout: 180_000 }, async () => {
  const file = join(folder, "live.strandline");
  // It holds what it grows by, 256 KiB each 20 ms, and ends with this process.
  const program = "const held = []; setInterval(() => held.push(Buffer.alloc(1 << 18, 1)), 20); process.stdin.resume().on('end', () => process.exit()); console.log('ready')";
  const leak = spawn(globalThis.process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "ignore"] });
  await once(leak.stdout!, "data");
  const watch = spawn(binary, ["watch", "--pid", String(leak.pid), "--interval", "100ms", "--out", file], { stdio: ["ignore", "pipe", "inherit"] });
  await once(watch.stdout!, "data");
  const running = await serve(file);
  const tab = await browser.open(running.url);
  try {
    await tab.until(`${settled} && strandline.state().doc.samples >= 20`);
    assert.equal((await tab.state()).subject.facts.find((f: string[]) => f[0] === "process ID")[1], String(leak.pid));
    await tab.until("document.getElementById('coverage').textContent === 'live'");
    const { samples, seconds } = (await tab.state()).doc;
    await tab.until(`strandline.state().doc.samples > ${samples + 20} && strandline.state().doc.seconds > ${seconds}`);
    await tab.until(`strandline.state().doc.findings.some(f => f.subject && f.evidence?.column === "anonymous" && f.kind === "leak")`);
    watch.kill("SIGKILL");
    await once(watch, "exit");
    const want = json("diagnose", file);
    await tab.until(`strandline.state().doc.findings.length === ${want.findings.length} && JSON.stringify(strandline.state().doc.findings.map(f => f.evidence?.level_bytes)) === ${JSON.stringify(JSON.stringify(want.findings.map((f: any) => f.evidence?.level_bytes)))}`);
    await clean(tab);
  } finally {
    await shoot(tab, "watch live");
    leak.kill("SIGKILL");
    watch.kill("SIGKILL");
    await tab.close();
    await running.stop();
  }
});

test("saved as a file it needs no program", { skip, timeout: 60_000 }, async () => {
  const file = join(folder, "saved.html");
  execFileSync(binary, ["view", node(), "--html", file]);
  const tab = await browser.open(`file://${file}`);
  await tab.until(settled);
  const { doc, subject } = await tab.state();
  assert.equal(subject.label, "100 train");
  assert.deepEqual(doc.findings.map((f: any) => f.title), json("diagnose", node()).findings.map((f: any) => f.title));
  for (const key of ["2", "3", "4", "1", "w"]) {
    await tab.key(key);
    await tab.until(settled);
  }
  await clean(tab);
  await tab.close();
});
