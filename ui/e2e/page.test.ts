// The page in a real Chromium. What it must show comes from running the
// commands with --json; each scenario also fails on any console message, any
// request to elsewhere, and any violation that axe finds.

import assert from "node:assert/strict";
import { readFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test, type TestContext } from "node:test";
import { Browser, chromium, pause, type Tab } from "./browser.ts";
import { clean, device, figure, shoot } from "./checks.ts";
import { events, example, json, lacks, recorded, serve, type Server } from "./server.ts";

const leak = [example("image-leak/step-2.pickle"), example("image-leak/step-3.pickle"), example("image-leak/step-4.pickle")];
const last = leak[2]!;

let browser: Browser;
before(async () => (browser = await Browser.start()));
after(() => browser.close());

interface Page {
  tab: Tab;
  server: Server;
}

interface Options {
  fragment?: string;
  dark?: boolean;
  width?: number;
  empty?: boolean; // a file without events
}

function scenario(name: string, files: string[], act: (p: Page, t: TestContext) => Promise<void>, o: Options = {}): void {
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
const answer = (question: string): string => `fetch(${question}, { headers: { "Strandline-Session": localStorage.getItem("strandline-session") } }).then(r => r.json())`;

const identity = (s: any): string => (s.file ? `${s.file}:${s.line} ${s.function}` : "unknown");

/** The place of the page of a point in the picture: an event, and bytes from below. */
async function point(tab: Tab, event: number, bytes: number): Promise<[number, number]> {
  const s = await tab.state();
  const column = await tab.eval<any>(`strandline.column(${event})`);
  const rail = await tab.eval<{ x: number; y: number }>("(r => ({ x: r.left, y: r.top }))(document.querySelector('#rail .box').getBoundingClientRect())");
  const { left, top, height } = s.picture.box;
  return [rail.x + left + column.x + column.pixels / 2, rail.y + top + height * (1 - bytes / s.picture.axis)];
}

/** Sums by site of what the page lists, with the bytes it keeps to itself. */
async function listed(tab: Tab): Promise<{ sites: Record<string, number>; more: number; sum: number }> {
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

scenario("the picture opens with the peak and the sums of inspect", [last], async ({ tab }) => {
  const d = device(last);
  assert.equal(await figure(tab, "#rail .flag"), d.peak_requested_bytes);
  assert.equal(await tab.eval("Number(document.querySelector('#rail .flag').dataset.event)"), d.peak_requested_event);
  assert.equal(await figure(tab, "[data-figure=gutter-active]"), d.requested_bytes);
  assert.equal(await figure(tab, "[data-figure=gutter-reserved]"), d.reserved_bytes);
  assert.equal(await figure(tab, "[data-figure=gutter-kept]"), d.requested_bytes);
  assert.equal((await tab.state()).k, d.peak_requested_event);
  const marks = await tab.eval<string[]>("performance.getEntriesByType('mark').map(m => m.name)");
  assert.ok(marks.includes("strandline:first-picture") && marks.includes("strandline:painted"));
  assert.ok(!(await tab.eval<string>("location.href")).includes("t="), "the secret left the address");
});

scenario("the table at the peak sums to what inspect says lives there", [last], async ({ tab }) => {
  const at = json("inspect", last, "--at", String(device(last).peak_requested_event)).at;
  const shown = await listed(tab);
  const want: Record<string, number> = {};
  for (const s of at.sites) want[identity(s)] = (want[identity(s)] ?? 0) + s.bytes;
  assert.deepEqual(shown.sites, want);
  assert.equal(shown.sum, at.requested_bytes);
  await tab.click("#view tbody tr:first-child button");
  await tab.settled();
  const s = await tab.state();
  assert.equal(s.solo.length, 1);
  const column = await tab.eval<any>(`strandline.column(${s.k})`);
  assert.equal(column.max, at.sites[0].bytes, "the picture shows this site alone");
  await tab.key("Escape");
  assert.deepEqual((await tab.state()).solo, []);
});

scenario("the picture can be read as a table", [last], async ({ tab }) => {
  const d = device(last);
  await tab.key("t");
  await tab.until("document.querySelector('#view tbody tr')");
  const { twin } = (await tab.state()).figures;
  assert.equal(Math.max(...twin.map((p: any) => p.max)), d.peak_requested_bytes);
  assert.equal(twin.find((p: any) => p.max === d.peak_requested_bytes).witness, d.peak_requested_event);
  assert.equal(Math.max(...twin.map((p: any) => p.reserved)), d.peak_reserved_bytes);
  assert.deepEqual([twin[0].from, twin.at(-1).to], [0, d.events - 1]);
  for (const [i, p] of twin.slice(1).entries()) assert.equal(p.from, twin[i].to + 1);
  await tab.click("#view tbody tr:nth-child(3) button");
  assert.equal((await tab.state()).k, twin[2].witness);
  await tab.eval("location.hash = '#w=400_800'");
  await tab.until("(t => t[0].from >= 396 && t[0].from <= 400 && t.at(-1).to <= 804)(strandline.state().figures.twin)");
});

scenario("bytes can be those of blocks", [last], async ({ tab }) => {
  const d = device(last);
  await tab.until("document.querySelector(\"[data-key='u allocated']:not(:disabled)\")", 20000);
  await tab.click("[data-key='u allocated']");
  await tab.until(`Number(document.querySelector("[data-figure=gutter-kept]").dataset.bytes) === ${d.allocated_bytes}`);
  assert.equal(await figure(tab, "[data-figure=gutter-active]"), d.active_bytes);
  await tab.settled();
  const s = await tab.state();
  assert.equal((await listed(tab)).sum, s.event.live);
  assert.ok(s.event.live > s.event.requested);
});

scenario("the keyboard alone does the same", [last], async ({ tab }) => {
  const d = device(last);
  await tab.key("End");
  await tab.until(`strandline.state().k === ${d.events - 1}`);
  for (let i = 0; i < 40 && (await tab.state()).k !== d.peak_requested_event; i++) {
    const { k } = await tab.state();
    await tab.key("P", 8);
    await tab.until(`strandline.state().k < ${k}`);
  }
  assert.equal((await tab.state()).k, d.peak_requested_event);
  await tab.until(`document.querySelector("#view tbody tr")`);
  for (let i = 0; i < 60; i++) {
    await tab.key("Tab");
    if (await tab.eval(`document.activeElement.matches("#view tbody tr:first-child button")`)) break;
  }
  await tab.key("Enter");
  await tab.settled();
  assert.equal((await tab.state()).solo.length, 1);
  await tab.key("?");
  assert.ok(await tab.eval("document.getElementById('keys').open && document.querySelectorAll('#keys kbd').length > 30"));
  await tab.key("Escape");
  assert.equal(await tab.eval("document.getElementById('keys').open"), false);
});

for (const [name, line] of [["w12_llm.logits.step4", true], ["w12_llm.none.step4", false], ["w01_train.default.step4", false]] as const) {
  scenario(`growth lanes of ${name}`, [recorded(`${name}.pickle`)], async ({ tab }) => {
    const lanes = await tab.eval<number>("document.querySelectorAll('#rail .lane').length");
    if (!line) return assert.equal(lanes, 0);
    const { expect } = JSON.parse(readFileSync(recorded(`${name}.json`), "utf8"));
    assert.equal(lanes, 1);
    await tab.click("#rail .lane");
    await tab.settled();
    const s = await tab.state();
    const group = await tab.eval<any>(`strandline.bands().groups.find(g => g.key === ${JSON.stringify(s.solo[0])})`);
    assert.equal(group.line, expect.leaks[0].line);
    assert.equal(group.kept, expect.leaks[0].total[1]);
  });
}

/** The tops of bands that are drawn whole in the column of an event. */
async function tops(tab: Tab, event: number): Promise<{ tops: Map<number, number>; total: number; max: number; witness: number }> {
  const c = await tab.eval<any>(`strandline.column(${event})`);
  const out = new Map<number, number>();
  for (const e of c.entries) if (e.bands === 1) out.set(e.band, Math.min(out.get(e.band) ?? 1e9, e.top));
  return { tops: out, total: c.total, max: c.max, witness: c.witness };
}

scenario("a band stays where it is under zoom", [last], async ({ tab }) => {
  const d = device(last);
  let before = await tops(tab, d.peak_requested_event);
  for (let i = 0; i < 9; i++) {
    await tab.key("w");
    await tab.settled();
    const now = await tops(tab, d.peak_requested_event);
    assert.equal(now.witness, d.peak_requested_event);
    assert.equal(now.max, d.peak_requested_bytes);
    assert.ok(Math.abs(now.total - d.peak_requested_bytes) < d.peak_requested_bytes * 1e-6, `drawn ${now.total}`);
    let compared = 0;
    for (const [band, top] of now.tops) {
      if (!before.tops.has(band)) continue;
      compared++;
      assert.ok(Math.abs(before.tops.get(band)! - top) <= 1, `band ${band} moved from ${before.tops.get(band)} to ${top}`);
    }
    assert.ok(compared > 0);
    before = now;
  }
  assert.equal((await tab.state()).picture.kind, "alloc");
});

scenario("the tooltip names the event of the peak, however far out", [recorded("w12_llm.logits.step4.pickle")], async ({ tab }) => {
  const d = device(recorded("w12_llm.logits.step4.pickle"));
  const column = await tab.eval<any>(`strandline.column(${d.peak_requested_event})`);
  assert.ok(column.pixels >= 2, `the peak is ${column.pixels} px wide`);
  await tab.mouse("mouseMoved", ...(await point(tab, d.peak_requested_event, d.peak_requested_bytes * 0.99)));
  await tab.until("!document.getElementById('tooltip').hidden");
  assert.equal(await tab.eval("Number(document.getElementById('tooltip').dataset.event)"), d.peak_requested_event);
});

scenario("two steps are two clicks, and what changed between them", [recorded("w12_llm.logits.step4.pickle")], async ({ tab }) => {
  const file = recorded("w12_llm.logits.step4.pickle");
  const scopes = (await tab.eval<any[]>("strandline.device().scopes")).filter((s) => s.lane === "steps");
  const { box } = (await tab.state()).picture;
  const rail = await tab.eval<{ x: number; y: number }>("(r => ({ x: r.left, y: r.top }))(document.querySelector('#rail .box').getBoundingClientRect())");
  const at = (s: any): [number, number] => [rail.x + box.left + (((s.from + s.to) / 2) / device(file).events) * box.width, rail.y + box.steps + 9];
  const [one, other] = [scopes[1], scopes[3]];
  await tab.mouse("mouseMoved", ...at(one));
  await tab.until(`document.querySelector("#tooltip .head")?.textContent === ${JSON.stringify(one.name)}`);
  await tab.clickAt(...at(one));
  await tab.until("strandline.state().range");
  assert.deepEqual((await tab.state()).range, [one.from, one.to]);
  await tab.clickAt(...at(other), { modifiers: 8 });
  await tab.until("strandline.state().a !== null");
  const s = await tab.state();
  assert.deepEqual([s.a, s.b, s.range], [one.to, other.to, null]);
  await tab.until("document.querySelector(\"[data-key='mode diff'][aria-pressed=true]\")");
  const live = (k: number): number => json("inspect", file, "--at", String(k)).at.requested_bytes;
  assert.equal(await figure(tab, "[data-figure=whole]"), live(other.to) - live(one.to));
});

scenario("a click pins an allocation; b and n go to its birth and death", [last], async ({ tab }) => {
  const d = device(last);
  const column = await tab.eval<any>(`strandline.column(${d.peak_requested_event})`);
  const top = column.entries.at(-1);
  const [x, y] = await point(tab, d.peak_requested_event, top.from + top.bytes / 2);
  await tab.mouse("mouseMoved", x, y);
  await tab.until("!document.getElementById('tooltip').hidden");
  await tab.clickAt(x, y);
  await tab.until("strandline.state().pinned");
  const { pinned } = await tab.state();
  assert.notEqual(pinned.death, null, "what is on top was freed");
  const want = json("inspect", last, "--alloc", String(pinned.birth)).alloc;
  assert.equal(pinned.bytes, want.bytes);
  const frames = (of: any[] | null): string[] => (of ?? []).map((f) => `${f.file}:${f.line} ${f.function}`);
  assert.deepEqual(frames(pinned.stack), frames(want.stack));
  assert.deepEqual(frames(pinned.free_stack), frames(want.free_stack));
  await tab.key("b");
  assert.equal((await tab.state()).k, pinned.birth);
  await tab.key("n");
  assert.equal((await tab.state()).k, pinned.death);
  await tab.settled();
  assert.equal(await figure(tab, "#pinned [data-bytes]"), want.bytes);
});

scenario("x goes to time and back with the same cursor and window", [last], async ({ tab }) => {
  await tab.eval("location.hash = '#w=400_800&k=600'");
  await tab.settled();
  await tab.key("x");
  await tab.until("strandline.state().x === 'us'");
  await tab.settled();
  await tab.key("x");
  await tab.until("strandline.state().x === 'ev'");
  await tab.settled();
  const s = await tab.state();
  assert.equal(s.k, 600);
  assert.ok(Math.abs(s.win[0] - 400) <= 4 && Math.abs(s.win[1] - 800) <= 4, `the window is ${s.win}`);
});

scenario("what waits for a stream is told apart", [recorded("w07_streams_pools.default.pending.pickle")], async ({ tab }) => {
  const { expect } = JSON.parse(readFileSync(recorded("w07_streams_pools.default.pending.json"), "utf8"));
  const file = recorded("w07_streams_pools.default.pending.pickle");
  const pending = await tab.eval<number>("strandline.device().pending");
  const inspected = device(file);
  assert.equal((await tab.eval<any[]>("strandline.bands().bands")).some((b) => b.fate === "pending"), true);
  assert.ok(pending > 0 && pending <= expect.awaiting_free_bytes, `${pending} bytes wait`);
  await tab.click("[data-key='view allocator']");
  await tab.until("strandline.state().figures.heap");
  const { heap } = (await tab.state()).figures;
  assert.equal(heap.reserved, inspected.reserved_bytes);
});

scenario("the allocator's state sums to inspect's", [last], async ({ tab }) => {
  const d = device(last);
  await tab.until("strandline.state().figures.heap");
  const heap = (await tab.state()).figures.heap;
  assert.deepEqual([heap.reserved, heap.allocated, heap.segments], [d.reserved_bytes, d.allocated_bytes, d.segments]);
  assert.equal(heap.strands, heap.stranded);
  assert.equal(heap.free, heap.stranded + heap.releasable);
  assert.equal(heap.reserved, heap.allocated + heap.pending + heap.free);
  assert.equal(await figure(tab, "[data-figure=heap-stranded]"), heap.stranded);
  await tab.key(",");
  await tab.until(`strandline.state().figures.heap.event === strandline.state().k && strandline.state().k !== ${d.events - 1}`);
  const from = (await tab.state()).figures.heap;
  for (const [key, n] of [[",", 3], [".", 3]] as const) {
    for (let i = 0; i < n; i++) {
      const k = (await tab.state()).k;
      await tab.key(key);
      await tab.until(`strandline.state().k !== ${k} && strandline.state().figures.heap.event === strandline.state().k`);
    }
  }
  assert.deepEqual((await tab.state()).figures.heap, from);
}, { fragment: `#v=allocator&k=${device(last).events - 1}` });

for (const file of [example("graphs/captured.pickle"), example("varied-lengths/expandable.pickle.gz"), recorded("w09_two_devices.default.end.pickle")]) {
  const name = file.slice(file.lastIndexOf("/") + 1);
  scenario(`pools and streams of ${name} have the sums of inspect --pools`, [file], async ({ tab }) => {
    const want = json("inspect", file, "--pools", "--device", "0").pools.map((p: any) => ({ name: `${p.pool === "default" ? "" : `${p.pool} · `}stream ${p.stream} · ${p.type} pool${p.expandable ? " · expandable" : ""}`, reserved: p.reserved_bytes, active: p.active_bytes, segments: p.segments }));
    await tab.key("End");
    await tab.until(`strandline.state().figures.heap?.event === ${device(file).events - 1}`);
    const by = (a: any, b: any): number => (a.name < b.name ? -1 : 1);
    assert.deepEqual((await tab.state()).figures.heap.pools.sort(by), want.sort(by));
  }, { fragment: "#v=allocator" });
}

scenario("sites show the same bytes as the table", [last], async ({ tab }) => {
  const at = json("inspect", last, "--at", String(device(last).peak_requested_event)).at;
  await tab.until("document.querySelector('.icicle canvas')");
  assert.equal(await figure(tab, "[data-figure=flame]"), at.requested_bytes);
  await tab.click("[data-key='of kept']");
  await tab.until(`Number(document.querySelector("[data-figure=flame]").dataset.bytes) === ${device(last).requested_bytes}`);
  // By file and by function the same bytes, and by purpose those of inspect.
  for (const g of ["file", "function"]) {
    await tab.eval(`location.hash = "#v=sites&g=${g}&k=${at.event}"`);
    await tab.until(`document.querySelector("#view thead th").textContent === "${g} in a stack"`);
    await tab.until(`Math.max(...[...document.querySelectorAll("#view tbody td:nth-child(2)")].map(e => Number(e.dataset.bytes))) === ${at.requested_bytes}`);
  }
  await tab.eval(`location.hash = "#v=sites&g=purpose&k=${at.event}"`);
  await tab.until(`[...document.querySelectorAll("#view tbody td:nth-child(2)")].reduce((n, e) => n + Number(e.dataset.bytes), 0) === ${at.requested_bytes}`);
  await tab.eval("window.saved = []; URL.createObjectURL = (b) => (saved.push(b), 'data:,'); HTMLAnchorElement.prototype.click = () => {}");
  await tab.click("[data-key=csv]");
  const lines = (await tab.eval<string>("saved[0].text()")).trim().split("\r\n");
  assert.equal(lines[0], "purpose,bytes,share,alive at snapshot (bytes),allocations");
  assert.equal(lines.slice(1).reduce((n, line) => n + Number(fields(line)[1]), 0), at.requested_bytes);
}, { fragment: "#v=sites", dark: true });

scenario("compare shows compare's numbers", leak, async ({ tab }) => {
  const want = json("compare", ...leak).groups[0];
  await tab.until("strandline.state().figures.compare", 20000);
  const got = (await tab.state()).figures.compare[0];
  assert.equal(got.files, want.files.length);
  assert.deepEqual(got.sites, want.sites.map((s: any) => ({ line: s.line, file: s.file, bytes: s.bytes, bytes_per_step: s.bytes_per_step, survivors: s.survivors })));
  await tab.until("document.querySelectorAll('#view tbody tr').length > 0");
  const first = await tab.eval<number[]>("[...document.querySelectorAll('#view tbody tr:first-child td[data-bytes]')].map(e => Number(e.dataset.bytes))");
  assert.deepEqual(first, [...want.sites[0].bytes, want.sites[0].bytes_per_step]);
  // All of the first file that lives on is of the allocations that compare follows to the end.
  const [{ bytes, event }] = (await tab.state()).figures.survivors[0];
  assert.equal(bytes[0][0], device(leak[0]!).requested_bytes);
  assert.ok(bytes[0][2] > 0 && bytes[0][2] <= bytes[0][1] && bytes[0][1] <= bytes[0][0]);
  assert.equal(event[0][2], device(leak[0]!).events, "the file before is the beginning of the later one");
}, { fragment: "#v=compare" });

const ranks = [0, 1].flatMap((r) => [4, 6].map((s) => example(`ranks/rank${r}-step-${s}.pickle`)));

scenario("ranks stand beside each other", ranks, async ({ tab }) => {
  await tab.until("document.querySelector('[data-key=process]')", 20000);
  await tab.eval(`(s => { s.value = "-1"; s.dispatchEvent(new Event("change")) })(document.querySelector("[data-key=process]"))`);
  await tab.until("/most different/.test(document.querySelector('#view thead th').textContent)");
  const rows = await tab.eval<number[][]>("[...document.querySelectorAll('#view tbody tr')].map(r => [...r.querySelectorAll('td[data-bytes]')].map(e => Number(e.dataset.bytes)))");
  assert.deepEqual([0, 1].map((i) => rows.reduce((n, r) => n + r[i]!, 0)), [device(ranks[1]!).requested_bytes, device(ranks[3]!).requested_bytes]);
  for (const [a, b, spread] of rows) assert.equal(spread, Math.abs(a! - b!));
}, { fragment: "#v=compare" });

scenario("a finding of one of several ranks names it", ranks, async ({ tab }) => {
  const want = json("diagnose", ...ranks).findings;
  await tab.until("strandline.state().figures.findings", 20000);
  const got = await tab.eval<string[]>("[...document.querySelectorAll('.findings li .sev')].map(e => e.textContent)");
  assert.deepEqual(got.map((t) => /rank\d/.exec(t)?.[0]), want.map((f: any) => f.process));
}, { fragment: "#v=findings" });

scenario("findings are diagnose's, and lead to the evidence and back", leak, async ({ tab }) => {
  const want = json("diagnose", ...leak).findings;
  await tab.until("strandline.state().figures.findings", 20000);
  const got = (await tab.state()).figures.findings;
  assert.equal(await tab.eval("document.querySelector('[data-key=file]').selectedOptions[0].textContent"), "step-4.pickle", "the newest file is shown first");
  assert.deepEqual(got, want.map((f: any) => ({ kind: f.kind, bytes: f.bytes ?? null, title: f.title })));
  const at = (await tab.state()).link;
  await tab.until("document.querySelector(\"[data-key='finding 0']\")");
  await tab.click("[data-key='finding 0']");
  await tab.settled();
  const s = await tab.state();
  assert.equal(s.finding, 0);
  assert.ok(s.solo.length > 0, "the site of the leak is shown alone");
  const group = await tab.eval<any>(`strandline.bands().groups.find(g => g.key === ${JSON.stringify(s.solo[0])})`);
  assert.equal(identity(group), identity(want[0].site));
  await tab.click("[data-key=show]");
  await tab.settled();
  assert.equal((await tab.state()).view, "timeline");
  await tab.eval("history.go(-2)");
  await tab.until(`strandline.state().link === ${JSON.stringify(at)}`);
  // They are pinned to their places in the picture.
  await tab.click("[data-key='view timeline']");
  await tab.settled();
  await tab.click("[data-key='pin 1']");
  await tab.until("strandline.state().view === 'findings' && strandline.state().finding === 1");
}, { fragment: "#v=findings" });

scenario("a failed request leads to the allocator as it was then", [example("out-of-memory/oom.pickle")], async ({ tab }) => {
  const [oom] = json("diagnose", example("out-of-memory/oom.pickle")).findings;
  assert.equal(oom.kind, "oom");
  assert.equal((await tab.state()).k, oom.evidence.event, "the cursor begins where memory ran out");
  await tab.until("document.querySelector(\"[data-key='show allocator']\")");
  await tab.click("[data-key='show allocator']");
  await tab.until(`strandline.state().figures.heap?.event === ${oom.evidence.event}`);
  const { heap } = (await tab.state()).figures;
  assert.deepEqual([heap.reserved, heap.allocated + heap.pending], [oom.evidence.reserved_bytes, oom.evidence.active_bytes]);
  // The events beside it lead on, and the remedy can be run.
  await tab.click(`[data-key='event ${oom.evidence.event - 1}']`);
  await tab.until(`strandline.state().figures.heap?.event === ${oom.evidence.event - 1}`);
  await tab.click("[data-key='view findings']");
  await tab.click("[data-key^='try ']");
  await tab.until("strandline.state().figures.runs?.[1]?.peak_reserved_bytes");
  const s = await tab.state();
  assert.deepEqual([s.view, s.sets], ["whatif", ["expandable_segments:True"]]);
  const want = json("simulate", example("out-of-memory/oom.pickle"), "--search").runs.find((r: any) => r.settings === "expandable_segments:True").devices[0];
  assert.deepEqual([s.figures.runs[1].peak_reserved_bytes, s.figures.runs[1].oom], [want.peak_reserved_bytes, null]);
}, { fragment: "#v=findings", dark: true });

const varied = example("varied-lengths/default.pickle.gz");

scenario("what if tells what simulate tells, and draws it to scale", [varied], async ({ tab, server }) => {
  const want = json("simulate", varied, "--set", "expandable_segments:True", "--set", "max_split_size_mb:128", "--capacity", "3GiB");
  const told = (o: any, d: any): any => [o.settings ?? "", d.peak_reserved_bytes, d.peak_allocated_bytes, d.peak_stranded_bytes, d.oom?.event ?? null, d.driver_calls, d.alloc_retries, d.smallest_capacity_bytes];
  await tab.until("strandline.state().figures.runs?.length === 2 && strandline.state().figures.runs[1].fits", 30000);
  assert.equal((await tab.state()).figures.runs[1].settings, "expandable_segments:True", "the settings to try first are run unasked");
  assert.match(await tab.eval("document.querySelector('.fidelity').textContent"), /^Replayed exactly/);
  const field = async (key: string, text: string): Promise<void> => {
    await tab.eval(`(e => { e.focus(); e.select(); })(document.querySelector("[data-key='${key}']"))`);
    await tab.type(text);
    await tab.key("Enter");
    await tab.eval("document.activeElement.blur()");
  };
  await field("conf", "max_split_size_mb:128");
  await field("capacity", "3GiB");
  await tab.until("(r => r?.length === 3 && r.every(x => x.drawn < 0 || x.fits && x.capacity_bytes === 3221225472))(strandline.state().figures.runs)", 30000);
  const s = await tab.state();
  const got = s.figures.runs;
  assert.deepEqual(got.slice(1).map((r: any) => told(r, { ...r, smallest_capacity_bytes: r.fits })), want.runs.map((r: any) => told(r, r.devices[0])));
  assert.equal(got[0].peak_reserved_bytes, want.devices[0].peak_reserved_bytes);
  assert.equal(got[0].peak_stranded_bytes, want.devices[0].peak_stranded_bytes);
  // The highest row of the curve's colour is where its peak belongs.
  const row = await tab.eval<number>(`(() => {
    const c = document.querySelectorAll("#rail canvas")[1], g = c.getContext("2d"), { left, top, width, height } = strandline.state().picture.box;
    const want = getComputedStyle(document.documentElement).getPropertyValue("--s0").trim().match(/[0-9a-f]{2}/g).map(x => parseInt(x, 16));
    const px = g.getImageData(left, top, width, height).data;
    for (let i = 0; i < px.length; i += 4) if (px[i + 3] === 255 && want.every((v, j) => Math.abs(px[i + j] - v) < 3)) return Math.floor(i / 4 / width);
  })()`);
  const high = s.picture.box.height * (1 - got[1].peak_reserved_bytes / s.picture.axis);
  assert.ok(Math.abs(row - high) <= 2, `row ${row}, want ${high}`);
  // What is seen through a link is the same.
  await tab.until(`location.hash === ${JSON.stringify(s.link)}`);
  const other = await browser.open(server.url + s.link);
  await other.until("(r => r?.length === 3 && r.every(x => x.drawn < 0 || x.fits))(strandline.state().figures.runs)", 30000);
  assert.deepEqual((await other.state()).figures.runs, got);
  await other.close();
  await tab.click("[data-key='search']");
  await tab.until("strandline.state().figures.search", 30000);
  const best = json("simulate", varied, "--search", "--capacity", "3GiB");
  assert.deepEqual((await tab.state()).figures.search.map((r: any) => [r.settings, r.peak_reserved_bytes]), best.runs.map((r: any) => [r.settings, r.devices[0].peak_reserved_bytes]));
}, { fragment: "#v=whatif" });

scenario("what if takes the memory that an error shows, and says which settings run out", [example("out-of-memory/oom.pickle")], async ({ tab }) => {
  const want = json("simulate", example("out-of-memory/oom.pickle"), "--set", "", "--capacity", String(json("simulate", example("out-of-memory/oom.pickle")).devices[0].assumed.capacity));
  await tab.until("strandline.state().figures.runs?.[1]?.oom");
  const [recorded, own] = (await tab.state()).figures.runs;
  assert.equal(own.oom.event, want.runs[0].devices[0].oom.event);
  assert.equal(recorded.oom.event, own.oom.event);
  await tab.click("[data-key='run ']");
  assert.equal((await tab.state()).k, own.oom.event);
}, { fragment: "#v=whatif&set=!", dark: true });

scenario("a search filters sites; a pattern that is none keeps the last result", [last], async ({ tab }) => {
  const at = json("inspect", last, "--at", String(device(last).peak_requested_event)).at;
  const want = at.sites.filter((s: any) => s.function && /forward$/.test(s.function)).reduce((n: number, s: any) => n + s.bytes, 0);
  await tab.key("/");
  await tab.type("forward$");
  await tab.until("document.getElementById('matches')");
  assert.equal((await tab.state()).figures.matched, want);
  await tab.key("/");
  await tab.type("(");
  await tab.until("document.getElementById('search').getAttribute('aria-invalid') === 'true'");
  assert.match(await tab.eval("document.getElementById('banner').textContent"), /Search: /);
  assert.equal((await tab.state()).figures.matched, want);
  tab.problems.splice(0, tab.problems.length, ...tab.problems.filter((p) => !/400 \(Bad Request\)/.test(p)));
});

scenario("a link gives the same state to another person", [last], async ({ tab, server }) => {
  await tab.eval("location.hash = '#w=400_800&k=600&y=active'");
  await tab.settled();
  await tab.click("#view tbody tr:first-child button");
  await tab.settled();
  const { link, solo, k } = await tab.state();
  assert.equal(link, await tab.eval("location.hash"));
  const other = await browser.open(server.url + link);
  await other.settled();
  assert.deepEqual((({ link, solo, k }) => ({ link, solo, k }))(await other.state()), { link, solo, k });
  await other.eval("location.reload()");
  await pause(100);
  await other.settled();
  assert.equal((await other.state()).link, link);
  assert.deepEqual(other.problems, []);
  await other.close();
  const strange = await browser.open(`${server.url}#nonsense=1&s=0123456789ab&k=600`);
  await strange.settled();
  assert.match(await strange.eval("document.getElementById('banner').textContent"), /1 site of the link is not in this file/);
  await strange.close();
});

scenario("a range of events is selected by dragging, and saved as CSV", [last], async ({ tab }) => {
  const [x0, y] = await point(tab, 600, 1);
  const [x1] = await point(tab, 1200, 1);
  await tab.drag(x0, y - 20, x1, y - 20);
  await tab.until("strandline.state().range && document.querySelector(\"[data-key='mode range'][aria-pressed=true]\")");
  await pause(200);
  const s = await tab.state();
  assert.ok(Math.abs(s.range[0] - 600) <= 4 && Math.abs(s.range[1] - 1200) <= 6, String(s.range));
  const csv = await tab.eval<string>("fetch(document.querySelector('[data-key=csv]').href, { headers: { 'Strandline-Session': localStorage.getItem('strandline-session') } }).then(r => r.text())");
  const bytes = csv.trim().split("\n");
  const column = bytes[0]!.split(",").indexOf("bytes");
  const sum = (await listed(tab)).sum;
  assert.ok(column >= 0, bytes[0]);
  assert.equal(bytes.slice(1).reduce((n, line) => n + Number(fields(line)[column]), 0), sum);
  await tab.key("f");
  await tab.settled();
  assert.ok((await tab.state()).picture.win[0] > 500);
  await tab.eval("window.saved = []; URL.createObjectURL = (b) => (saved.push(b), 'data:,'); HTMLAnchorElement.prototype.click = () => {}; navigator.clipboard.writeText = (t) => { window.copied = t; return Promise.resolve(); }");
  await tab.key("e");
  await tab.click("[data-key=png]");
  await tab.until("saved.length === 1");
  assert.ok(await tab.eval<number>("saved[0].size") > 20000, "the picture is not empty");
  const pixels = await tab.eval<number>("createImageBitmap(saved[0]).then(i => { const c = document.createElement('canvas'); c.width = i.width; c.height = i.height; const g = c.getContext('2d'); g.drawImage(i, 0, 0); return new Set(new Uint32Array(g.getImageData(0, 0, i.width, i.height).data.buffer)).size })");
  assert.ok(pixels > 20, `${pixels} colours in the picture`);
  await tab.key("e");
  await tab.click("[data-key=link]");
  await tab.until("window.copied");
  assert.equal(await tab.eval("copied"), await tab.eval("location.origin + '/' + strandline.state().link"));
});

/** The fields of a line of CSV. */
const fields = (line: string): string[] => [...line.matchAll(/("(?:[^"]|"")*"|[^,]*)(,|$)/g)].map((m) => m[1]!);

const folder = mkdtempSync(join(tmpdir(), "strandline-e2e-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const torn = join(folder, "torn.pickle");
writeFileSync(torn, readFileSync(last).subarray(0, Math.floor(readFileSync(last).length * 0.8)));

scenario("what if warns where the file's own run is not reproduced", [torn], async ({ tab }) => {
  const [d] = json("simulate", torn).devices;
  assert.equal(d.exact, false);
  await tab.until("strandline.state().figures.runs?.[1]?.peak_reserved_bytes");
  assert.match(await tab.eval("document.querySelector('.fidelity').textContent"), new RegExp(`^Not replayed exactly: ${d.driver_calls.reproduced} of ${d.driver_calls.recorded} calls`));
  assert.equal((await tab.state()).figures.runs[0].peak_reserved_bytes ?? null, null, "nothing is told of a recorded run that is not known");
}, { fragment: "#v=whatif" });

scenario("a torn file says so, and shows what is left", [torn], async ({ tab }) => {
  const d = json("inspect", torn).devices[0];
  await tab.until("!document.getElementById('banner').hidden");
  assert.match(await tab.eval("document.getElementById('banner').textContent"), /Read in part.*the sums at all events may be too high by up to \d/);
  assert.equal(await tab.eval("document.getElementById('coverage').dataset.kind"), "damaged");
  assert.equal(await tab.eval("strandline.device().events"), d.events);
  for (const view of ["allocator", "sites", "whatif", "findings", "timeline"]) {
    await tab.click(`[data-key='view ${view}']`);
    await pause(250);
  }
  assert.ok(await tab.eval("document.querySelectorAll('#view tbody tr').length > 0"), "the table is there again");
});

scenario("a file without history says what to do", [recorded("w10_nothing.default.unrecorded.pickle")], async ({ tab }) => {
  await tab.until("document.querySelector('#rail .empty pre')");
  await tab.until("/^live at the snapshot/.test(document.querySelector('#view .choice [aria-pressed=true]')?.textContent)");
  for (const view of ["allocator", "sites", "whatif", "findings", "timeline"]) {
    await tab.click(`[data-key='view ${view}']`);
    await pause(250);
  }
  assert.equal((await listed(tab)).sum, device(recorded("w10_nothing.default.unrecorded.pickle")).requested_bytes);
}, { empty: true });

scenario("a file of two devices opens on the one with the higher peak", [recorded("w09_two_devices.default.end.pickle")], async ({ tab }) => {
  const { devices } = json("inspect", recorded("w09_two_devices.default.end.pickle"));
  const [low, high] = [...devices].sort((a, b) => a.peak_requested_bytes - b.peak_requested_bytes);
  assert.equal(await tab.eval("strandline.device().device"), high.device);
  assert.equal(await figure(tab, "#rail .flag"), high.peak_requested_bytes);
  await tab.eval(`(s => { s.value = "${low.device}"; s.dispatchEvent(new Event("change")) })(document.querySelector("[data-key=device]"))`);
  await tab.until(`strandline.device()?.device === ${low.device}`);
  await tab.settled();
  assert.equal(await figure(tab, "#rail .flag"), low.peak_requested_bytes);
});

scenario("the strip names the worst finding, and leads to it", [recorded("w06_oom.default.oom.pickle")], async ({ tab }) => {
  const [worst, ...others] = json("diagnose", recorded("w06_oom.default.oom.pickle")).findings;
  await tab.until("!document.getElementById('verdict').hidden");
  assert.match(await tab.eval("document.getElementById('verdict').textContent"), new RegExp(worst.title.slice(0, 40)));
  for (const key of ["request_bytes", "largest_free_bytes", "device_free_bytes"]) assert.equal(await figure(tab, `#verdict [data-key=${key}]`), worst.evidence[key], key);
  assert.equal(await tab.eval("document.querySelector(\"[data-key='view findings']\").textContent"), `Findings ${others.length + 1}`);
  await tab.click("#verdict .worst");
  await tab.until("strandline.state().view === 'findings'");
  assert.equal(await tab.eval("document.querySelector('.findings article h2').textContent"), worst.title);
  assert.ok(!/_|\b(passing|echo)\b/.test(await tab.eval("[...document.querySelectorAll('.findings article dt')].map(e => e.textContent).join(' ')")), "evidence is in words");
});

scenario("what is releasable of an expandable segment is drawn as that", [recorded("w06_oom.expandable.recovered.pickle")], async ({ tab }) => {
  const state = await tab.eval<any>(answer("'api/state?k=' + (strandline.device().events - 1)"));
  const segments = state.segments.filter((s: any) => s.expandable && s.releasable > 0);
  assert.ok(segments.length > 0, "the file has some");
  for (const s of segments) assert.equal(s.ranges.reduce((n: number, [a, b]: [number, number]) => n + b - a, 0), s.releasable);
  await tab.key("End");
  await tab.until("strandline.state().figures.heap?.event === strandline.device().events - 1");
  await pause(200);
  // The hatch of what is releasable has stripes of its own colour.
  const seen = await tab.eval<number>(`(c => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === 0xf1 && d[i + 1] === 0xf3 && d[i + 2] === 0xf6) n++; return n; })(document.querySelector(".heap canvas"))`);
  assert.ok(seen > 400, `${seen} pixels are drawn as releasable`);
}, { fragment: "#v=allocator" });

scenario("a link opens its file among others, and says where it is not there", [leak[0]!, leak[1]!], async ({ tab, server }) => {
  await tab.eval(`(s => { s.value = "0"; s.dispatchEvent(new Event("change")) })(document.querySelector("[data-key=file]"))`);
  await tab.settled();
  const { link } = await tab.state();
  assert.match(link, /f=x[0-9a-f]{12}/);
  const others = await serve(leak[2]!, leak[0]!);
  const other = await browser.open(others.url + link);
  await other.settled();
  await other.until(`document.querySelector("[data-key=file]")?.selectedOptions[0].textContent === "step-2.pickle"`);
  await other.close();
  await others.stop();
  const without = await serve(leak[2]!);
  const strange = await browser.open(without.url + link);
  await strange.until("/of a file that is not open here/.test(document.getElementById('banner').textContent)");
  await strange.close();
  await without.stop();
  assert.ok(server.url);
});

scenario("two runs begin together, and are told apart by their difference", [example("change/before.pickle.gz"), example("change/after.pickle.gz")], async ({ tab }) => {
  await tab.until("document.querySelector('[data-key=runs]')", 20000);
  assert.equal(await tab.eval("document.querySelector('[data-key=runs]').textContent"), "separate runs");
  const heads = await tab.eval<string[]>("[...document.querySelectorAll('#view thead th')].map(e => e.textContent)");
  assert.ok(heads.includes("difference") && !heads.includes("growth a step"), `${heads}`);
}, { fragment: "#v=compare" });

scenario("an allocation of an autograd thread is called that", [example("change/after.pickle.gz")], async ({ tab }) => {
  const event = await tab.eval<any>(answer("'api/event?k=' + strandline.state().k"));
  assert.equal(event.missing, "autograd thread");
  await tab.until("/autograd thread: allocated by a thread of the backward pass/.test(document.getElementById('inspector').textContent)");
});

scenario("a click on a band shows its stack without scrolling", [last], async ({ tab }) => {
  const d = device(last);
  await tab.clickAt(...(await point(tab, d.peak_requested_event, d.peak_requested_bytes * 0.3)));
  await tab.until("strandline.state().pinned && document.querySelector('#inspector .stack li')");
  const { top, bottom } = await tab.eval<any>("(r => ({ top: r.top, bottom: r.bottom }))(document.querySelector('#inspector .stack li').getBoundingClientRect())");
  assert.ok(top > 0 && bottom < 500, `the stack stands at ${top} – ${bottom}`);
  assert.equal(await tab.eval("document.querySelector('#inspector .stack .own .path').textContent"), (await tab.state()).pinned.stack.find((f: any) => f.origin === "own").file);
});

scenario("figures of another event than the cursor's are not shown", [last], async ({ tab }) => {
  await tab.eval(`(f => { window.fetch = (q, o) => String(q).startsWith("api/event?") ? new Promise(() => {}) : f(q, o) })(window.fetch)`);
  await tab.key("Home");
  await tab.until("strandline.state().k === 0");
  await pause(100);
  const shown = await tab.eval<string>("document.getElementById('cursor').innerText");
  assert.match(shown, /requested\s+–\s+reserved\s+–\s+unused\s+–/);
  assert.equal(await tab.eval("document.querySelector('#cursor').getAttribute('aria-busy')"), "true");
});

scenario("the last event keeps its mark where x is time", [recorded("w06_oom.default.oom.pickle")], async ({ tab }) => {
  const marks = await tab.eval<any[]>("strandline.device().marks.filter(m => m.kind === 'oom')");
  await tab.eval("location.hash = '#x=us'");
  await tab.until("strandline.state().x === 'us'");
  await tab.settled();
  const { box } = (await tab.state()).picture;
  const rail = await tab.eval<{ x: number; y: number }>("(r => ({ x: r.left, y: r.top }))(document.querySelector('#rail .box').getBoundingClientRect())");
  for (const m of marks) {
    const x = await tab.eval<number>(`strandline.pixel(${m.event})`);
    assert.ok(x >= 0 && x <= box.width, `the mark of event ${m.event} stands at ${x}`);
    await tab.mouse("mouseMoved", rail.x + box.left + x, rail.y + box.top - 4);
    await tab.until(`document.querySelector("#tooltip .head")?.textContent === ${JSON.stringify(m.label)}`);
  }
});

scenario("a search finds what is not live at the cursor, by frames and in any case", [last], async ({ tab }) => {
  await tab.key("Home");
  await tab.settled();
  const frames = await tab.eval<any[]>("strandline.bands().groups");
  const site = frames.find((g) => g.function);
  await tab.eval(`(s => { s.value = ${JSON.stringify(site.function.toUpperCase())}; s.dispatchEvent(new Event("input")) })(document.getElementById("search"))`);
  await tab.until(`strandline.state().figures.rows?.some(r => r.key === ${JSON.stringify(site.key)})`);
  const { address } = await tab.eval<any>(answer("'api/event?k=' + strandline.device().peak.event"));
  await tab.eval(`(s => { s.value = ${JSON.stringify(address)}; s.dispatchEvent(new Event("input")) })(document.getElementById("search"))`);
  const holders = await tab.eval<string[]>(`${answer("'api/alloc?k=' + strandline.device().peak.event")}.then(a => Object.values(a.keys))`);
  await tab.until(`strandline.state().figures.rows.some(r => ${JSON.stringify(holders)}.includes(r.key)) && strandline.state().figures.rows.length < ${frames.length}`);
});

scenario("a narrow window has no horizontal scroll", [last], async ({ tab }) => {
  assert.equal(await tab.eval("document.documentElement.scrollWidth <= innerWidth && document.getElementById('top').scrollWidth <= innerWidth"), true);
}, { width: 1000 });

scenario("half as wide it keeps the name of the file and all buttons", [last], async ({ tab }) => {
  for (const view of ["timeline", "allocator", "sites", "whatif", "findings"]) {
    await tab.click(`[data-key='view ${view}']`);
    await tab.settled();
    assert.equal(await tab.eval("document.documentElement.scrollWidth <= innerWidth"), true, view);
    assert.deepEqual(await tab.eval(`["#files > *", "#tabs [aria-current]", "#help"].map(s => document.querySelector(s).getBoundingClientRect()).map(r => r.width > 20 && r.right <= innerWidth)`), [true, true, true], view);
  }
}, { width: 700 });

scenario("a jump to what is not there says so, until the cursor moves", [last], async ({ tab }) => {
  await tab.key("o");
  await tab.until("/^There is no later out-of-memory error/.test(document.getElementById('banner').textContent)");
  await tab.key("Home");
  await tab.until("document.getElementById('banner').hidden");
});

scenario("by purpose, what leaks is called that", [last], async ({ tab }) => {
  const { evidence } = json("diagnose", last).findings.find((f: any) => f.kind === "peak");
  assert.ok(evidence.leaked_bytes > 0);
  assert.equal((await tab.state()).k, evidence.event);
  await tab.until("strandline.state().figures.rows?.some(r => r.label === 'leaked')");
  const { figures } = await tab.state();
  assert.equal(figures.rows.find((r: any) => r.label === "leaked").bytes, evidence.leaked_bytes);
  assert.equal(figures.rows.find((r: any) => r.label === "other")?.bytes ?? 0, (evidence.by_purpose.other ?? 0) - evidence.leaked_bytes);
}, { fragment: "#g=purpose" });

scenario("compare has axes, names what is under the pointer, and opens its file there", leak, async ({ tab }) => {
  await tab.until("strandline.state().figures.strips?.rows.length === 3 && strandline.state().figures.compare", 20000);
  await pause(300);
  const { rows, left, room, events } = (await tab.state()).figures.strips;
  const box = await tab.eval<{ x: number; y: number }>("(r => ({ x: r.left, y: r.top }))(document.querySelector('.rows canvas').getBoundingClientRect())");
  const row = rows[1];
  const at: [number, number] = [box.x + left + ((row.offset + 900) / events) * room, box.y + row.y + row.high * 0.9];
  await tab.mouse("mouseMoved", ...at);
  await tab.until("!document.getElementById('tooltip').hidden");
  assert.match(await tab.eval("document.querySelector('#tooltip .head').textContent"), /step-3/);
  const event = await tab.eval<number>("Number(document.getElementById('tooltip').dataset.event)");
  assert.ok(Math.abs(event - 900) <= 32, `the column shows event ${event}`);
  await tab.click("[data-key='at peaks']");
  const shown = await tab.eval<number[]>("[...document.querySelectorAll('#view tbody tr:first-child td[data-bytes]')].slice(0, 3).map(e => Number(e.dataset.bytes))");
  const site = await tab.eval<string>("document.querySelector('#view tbody tr').dataset.site");
  for (const [i, file] of leak.entries()) {
    const group = await tab.eval<any>(`${answer(`"api/bands?f=${rows[i].f}"`)}.then(b => b.groups.find(g => g.key === ${JSON.stringify(site)}))`);
    const live = json("inspect", file, "--at", String(group.peak.event)).at.sites.find((s: any) => identity(s) === identity(group));
    assert.equal(shown[i], live.bytes, file);
  }
  await tab.clickAt(...at);
  await tab.until("strandline.state().view === 'timeline'");
  await tab.settled();
  const s = await tab.state();
  assert.deepEqual([s.k, s.f], [event, row.f]);
}, { fragment: "#v=compare" });

scenario("the list of events scrolls through the file, and finds by action, line and address", [last], async ({ tab }) => {
  const all = events(last);
  await tab.until("document.querySelector('.events [aria-current]')", 20000);
  const shown = (): Promise<[number, string][]> => tab.eval("[...document.querySelectorAll('.events li')].map(li => [Number(li.querySelector('.n').textContent.replaceAll(',', '')), li.querySelector('.name').textContent])");
  await tab.eval("document.querySelector('.events-box').scrollTop = 24 * 1000");
  await tab.until("[...document.querySelectorAll('.events .n')].some(e => e.textContent === '1,005') && !document.querySelector('.events').textContent.includes('…')");
  for (const [k] of await shown()) assert.ok(k >= 1000 && k < 1020, `event ${k} is listed`);
  const find = async (q: string, want: number[]): Promise<void> => {
    await tab.eval(`(s => { s.value = ${JSON.stringify(q)}; s.dispatchEvent(new Event("input")) })(document.querySelector("[data-key='find event']"))`);
    await tab.until(`JSON.stringify(strandline.state().figures.eventsFound) === ${JSON.stringify(JSON.stringify(want))}`);
  };
  const where = (is: (e: Record<string, string>) => boolean): number[] => all.filter(is).map((e) => Number(e.event));
  const taken = where((e) => e.action === "segment_alloc");
  assert.ok(taken.length > 0);
  await find("segment_alloc", taken);
  await find(all[5]!.addr!, where((e) => e.addr === all[5]!.addr));
  await tab.click(`[data-key='event ${where((e) => e.addr === all[5]!.addr)[0]}']`);
  await tab.until(`strandline.state().k === ${where((e) => e.addr === all[5]!.addr)[0]}`);
  await find("", null as unknown as number[]);
}, { fragment: "#v=allocator" });

scenario("a segment shows who took it from the driver, and reserved memory is shared among them", [last], async ({ tab }) => {
  const d = device(last);
  await tab.key("End");
  await tab.until(`strandline.state().figures.heap?.event === ${d.events - 1} && document.querySelectorAll('#takers dd').length > 0`);
  const sum = await tab.eval<number>("[...document.querySelectorAll('#takers dd')].reduce((n, e) => n + Number(e.dataset.bytes), 0)");
  assert.equal(sum, d.reserved_bytes);
  const taken = events(last).filter((e) => e.action === "segment_alloc");
  const { segments } = (await tab.state()).figures.heap;
  assert.equal(segments, taken.length - events(last).filter((e) => e.action === "segment_free").length);
  const by = taken.at(-1)!;
  await tab.eval(`location.hash = "#v=allocator&k=${d.events - 1}&seg=0x${Number(by.addr).toString(16)}"`);
  await tab.until("document.querySelector('#inspector .stack .own .where')");
  assert.equal(await tab.eval("document.querySelector('#inspector .stack .own .where').textContent"), `${by.file!.split("/").at(-1)}:${by.line}`);
}, { fragment: "#v=allocator" });

scenario("the inspector tells settings and capacity, and the picture has its line", [example("out-of-memory/oom.pickle")], async ({ tab }) => {
  const file = example("out-of-memory/oom.pickle");
  assert.match(await tab.eval("document.getElementById('recorded').innerText"), new RegExp(`settings\\s+${json("inspect", file).allocator_conf || "the defaults"}`));
  const [d] = json("simulate", file).devices;
  assert.equal(await figure(tab, "#recorded [data-bytes]"), d.assumed.capacity);
  assert.ok((await tab.state()).picture.axis > d.assumed.capacity, "the line is in the picture");
});

const noted = join(folder, "noted.json");
const notes = (i: number): object => ({ action: "alloc", addr: 4096 * (i + 1), size: 512, stream: 0, time_us: 1000 + i, frames: [{ filename: "/a/train.py", line: 7, name: "step" }], user_metadata: `batch ${i}`, compile_context: `${i}/1` });
writeFileSync(noted, JSON.stringify({ segments: [], device_traces: [[0, 1, 2].map(notes)] }));

scenario("texts of the program and the compiler are with their event and allocation", [noted], async ({ tab }) => {
  await tab.eval(`location.hash = "#k=1&p=1"`);
  await tab.until("document.getElementById('pinned') && strandline.state().event?.event === 1");
  for (const id of ["cursor", "pinned"]) assert.match(await tab.eval(`document.getElementById("${id}").innerText`), /metadata\s+batch 1\s+compile context\s+1\/1/);
});

scenario("each allocation is drawn at every zoom where the reader wants it", [recorded("w12_llm.logits.step4.pickle")], async ({ tab }) => {
  const file = recorded("w12_llm.logits.step4.pickle");
  const peak = device(file).peak_requested_event;
  assert.equal((await tab.state()).picture.kind, "band");
  await tab.key("l");
  await tab.until("strandline.state().picture.kind === 'alloc'");
  await tab.settled();
  assert.match((await tab.state()).link, /each=1/);
  const { entries, max } = await tab.eval<any>(`strandline.column(${peak})`);
  assert.ok(Math.abs(entries.reduce((n: number, e: any) => n + e.bytes, 0) - max) < max / 1000, "they fill the column, to a quarter of a pixel each");
  const alone = entries.filter((e: any) => e.alloc !== null);
  assert.ok(alone.length > 10, `${alone.length} allocations are drawn alone`);
  const top = alone.reduce((a: any, b: any) => (b.bytes > a.bytes ? b : a));
  await tab.clickAt(...(await point(tab, peak, top.from + top.bytes / 2)));
  await tab.until(`strandline.state().pinned?.alloc === ${top.alloc}`);
  assert.equal((await tab.state()).pinned.bytes, top.bytes);
  await tab.key("l");
  await tab.until("strandline.state().picture.kind === 'band'");
});

scenario("nothing overlaps or scrolls sideways at 900 pixels, whatever the view", leak, async ({ tab }) => {
  for (const view of ["timeline", "allocator", "sites", "compare", "whatif", "findings"]) {
    await tab.click(`[data-key='view ${view}']`);
    await tab.settled();
    await pause(400);
    const wrong = await tab.eval<string[]>(`[...document.querySelectorAll("body *")].filter(e => e.offsetParent && !e.closest(".unseen, .skip, #tooltip")).flatMap(e => { const r = e.getBoundingClientRect(); const how = getComputedStyle(e).overflowX; return (r.width && r.right > innerWidth + 1) || ((how === "auto" || how === "scroll") && e.scrollWidth > e.clientWidth + 1) ? [e.tagName + "#" + e.id + "." + e.className] : []; })`);
    assert.deepEqual(wrong, [], view);
    const top = await tab.eval<[number, number][]>(`[...document.querySelectorAll("#top > *")].filter(e => e.offsetParent && !e.closest("#tabs")).map(e => e.getBoundingClientRect()).filter(r => r.top < 40).map(r => [r.left, r.right]).sort((a, b) => a[0] - b[0])`);
    for (const [i, r] of top.slice(1).entries()) assert.ok(r[0] >= top[i]![1] - 0.5, `${view}: ${JSON.stringify(top)}`);
  }
}, { width: 900 });

scenario("a change of the pixel ratio makes the picture sharp again", [last], async ({ tab }) => {
  await tab.send("Emulation.setDeviceMetricsOverride", { width: 1440, height: 900, deviceScaleFactor: 2, mobile: false });
  await tab.key("ArrowLeft");
  await tab.until("devicePixelRatio === 2 && [...document.querySelectorAll('#rail canvas')].every(c => c.width === Math.round(c.clientWidth * 2))");
  await tab.settled();
  assert.equal((await tab.eval<any>(`strandline.column(${device(last).peak_requested_event})`)).max, device(last).peak_requested_bytes);
});

scenario("forced colors keep swatches, and show which view is open", [last], async ({ tab }) => {
  await tab.send("Emulation.setEmulatedMedia", { features: [{ name: "forced-colors", value: "active" }] });
  await pause(200);
  const colors = (selector: string, what: string): Promise<string[]> => tab.eval(`[...document.querySelectorAll(${JSON.stringify(selector)})].map(e => getComputedStyle(e).${what})`);
  assert.ok(new Set(await colors("tbody .sw", "backgroundColor")).size > 3);
  const [open] = await colors("#tabs [aria-current]", "borderBottomColor");
  assert.ok(!(await colors("#tabs button:not([aria-current])", "borderBottomColor")).includes(open!));
});

scenario("a printed sheet has the verdict, the picture, the whole table and no controls", [last], async ({ tab }) => {
  await tab.send("Emulation.setEmulatedMedia", { media: "print" });
  await pause(200);
  const seen = (selector: string): Promise<boolean> => tab.eval(`[...document.querySelectorAll(${JSON.stringify(selector)})].some(e => e.offsetParent)`);
  for (const part of ["#verdict", "#rail canvas", "#view tbody tr:last-child", "#cursor"]) assert.ok(await seen(part), part);
  for (const part of ["#tabs", "#right", "#view .bar .end"]) assert.ok(!(await seen(part)), part);
  const { scrolls, inked } = await tab.eval<any>(`({ scrolls: [...document.querySelectorAll("#main *")].filter(e => e.scrollHeight > e.clientHeight + 2 && ["auto", "scroll", "hidden"].includes(getComputedStyle(e).overflowY) && !e.closest(".unseen, th")).map(e => e.className), inked: new Set(document.querySelector("#rail canvas").getContext("2d").getImageData(0, 200, 600, 1).data).size })`);
  assert.deepEqual(scrolls, []);
  assert.ok(inked > 10, "the picture is drawn");
  const { data } = await tab.send("Page.printToPDF", { preferCSSPageSize: true, printBackground: true });
  assert.ok(data.length > 20_000, `the sheet has ${data.length} characters`);
});

for (const dark of [false, true]) {
  scenario(`no view has a violation of accessibility, ${dark ? "dark" : "light"}`, leak, async ({ tab }) => {
    for (const view of ["timeline", "allocator", "sites", "compare", "whatif", "findings"]) {
      await tab.click(`[data-key='view ${view}']`);
      await tab.settled();
      await pause(300);
      await clean(tab);
    }
    await tab.key("?");
    await clean(tab);
    await tab.key("Escape");
    await tab.key("e");
    await clean(tab);
    await tab.key("Escape");
  }, { dark });
}

scenario("a file that is dropped does not take the page away, and its command is named", [last], async ({ tab }) => {
  await tab.drop(leak[0]!);
  await tab.until("/strandline view step-2.pickle$/.test(document.getElementById('banner').textContent)");
  assert.equal(await figure(tab, "#rail .flag"), device(last).peak_requested_bytes);
});

scenario("where room is short a name loses its middle, not its end", [last], async ({ tab }) => {
  const name = await tab.eval<any>(`(e => { e.style.width = "120px"; const [a, b] = e.children; return { text: e.textContent, cut: a.scrollWidth > a.clientWidth, end: b.getBoundingClientRect().right <= e.getBoundingClientRect().right + 1, title: e.parentElement.title }; })(document.querySelector("#view tbody .cut"))`);
  assert.deepEqual([name.cut, name.end, name.title], [true, true, name.text]);
}, { width: 900 });

scenario("an answer that comes when the grouping has changed is dropped", [last], async ({ tab }) => {
  await tab.eval(`(f => { window.fetch = async (q, o) => { const r = await f(q, o); if (/^api\\/(at|bands|state)\\?/.test(String(q))) await new Promise(r => setTimeout(r, String(q).startsWith("api/bands") ? 500 : 150)); return r; } })(window.fetch)`);
  for (const view of ["1", "2"]) {
    await tab.key(view);
    for (let i = 0; i < 3; i++) {
      await tab.key("a");
      await tab.key("Home");
      await pause(60);
      await tab.key("g");
      await pause(700);
      await tab.key("End");
    }
  }
  await tab.key("1");
  await tab.settled();
  await tab.until("document.querySelectorAll('#view tbody tr').length > 0");
});
