// The page of a recording of `strandline trace`. What it shows is held against the
// recording itself, and against what diagnose reports about it.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { execFileSync, spawnSync } from "node:child_process";
import { pause, type Tab } from "./browser.ts";
import { clean, figure, forceColors, openShows, shoot, startedAgain, styles } from "./checks.ts";
import { browser, scenarios, skip } from "./recorded.ts";
import { binary, example, json, serve } from "./server.ts";

const server = example("munmap-leak/server.trace");
const folder = mkdtempSync(join(tmpdir(), "strandline-recordings-"));

after(() => rmSync(folder, { recursive: true }));

const settled = "window.strandline?.state().settled";

const scenario = scenarios("recording", settled, 60_000);

interface Held {
  bytes: number;
  count: number;
}

/** What stacks hold after each mark of a recording, and after its last judgment if that is later. */
function courses(file: string): { marks: any[]; held: Map<number, Held>[]; document: any } {
  const marks: any[] = [];
  const held: Map<number, Held>[] = [];
  let document: any = null;
  const now = new Map<number, Held>();
  for (const line of readFileSync(file, "utf8").trim().split("\n").map((l) => JSON.parse(l))) {
    if (line.document) document = line.document;
    if (!line.mark) continue;
    for (const s of line.mark.stacks ?? []) now.set(s.id, { bytes: s.live_bytes, count: s.live_count });
    marks.push(line.mark);
    held.push(new Map(now));
  }
  return { marks, held, document };
}

const sum = (held: Map<number, Held>): number => [...held.values()].reduce((n, h) => n + h.bytes, 0);

/** The rows of the table: label and bytes. */
const rows = (tab: Tab): Promise<[string, number][]> => tab.eval("[...document.querySelectorAll('#view tbody tr:has(.name)')].map(r => [r.querySelector('.name').textContent, Number(r.querySelector('td').dataset.bytes)])");

/** A recording with the given lines. */
function recording(name: string, lines: object[], began = 1_700_000_000_000_000): string {
  const file = join(folder, name);
  writeFileSync(file, [{ schema: "strandline.recording/1", pid: 7, name: "made", rung: "bpf", began_us: began }, ...lines].map((l) => JSON.stringify(l)).join("\n") + "\n");
  return file;
}

const frame = (fn: string, line?: number): object => ({ function: fn, file: line ? "/srv/app.py" : null, line: line ?? null, object: line ? null : "/lib/libx.so" });

/** Three lines: one leaks, one comes and goes, one rests; two stacks are of one line. */
function several(): string {
  const lines: object[] = [[1, "leak", 10], [2, "leak", 10], [3, "wave", 20], [4, "rest", 30]].map(([id, fn, line]) => ({ stack: { id, call: "mmap", complete: id !== 2, frames: [frame(`inner_${id}`), frame(String(fn), Number(line)), frame("main", 99)] } }));
  const at = (k: number): object[] => [
    { id: 1, live_bytes: (k + 1) << 20, live_count: k + 1 },
    ...(k === 0 ? [{ id: 2, live_bytes: 4096, live_count: 1 }, { id: 4, live_bytes: 30 << 20, live_count: 3 }] : []),
    { id: 3, live_bytes: (k % 5) << 20, live_count: k % 5 },
  ];
  for (let k = 0; k < 60; k++) lines.push({ mark: { at_seconds: k, rss_bytes: (100 + k) << 20, anonymous_bytes: k << 20, file_bytes: k > 30 ? -(1 << 20) : 0, shared_bytes: 0, drops: k >= 40 ? 77 : 0, stacks: at(k) } });
  lines.push({ document: { schema: "strandline.trace/1", pid: 7, rung: "bpf", duration_seconds: 50, rss_bytes: 1, growth: {}, ledger: {}, stacks: [], findings: [{ kind: "mmap-leak", severity: "problem", confidence: 1, title: "it leaks", site: { file: "/srv/app.py", line: 10, function: "leak" }, bytes: 50 << 20, evidence: { stacks: [1], calls: 5 } }] } });
  return recording("several.trace", lines);
}

scenario("growth, with the figures of diagnose", () => server, async (tab) => {
  const { marks, document } = courses(server);
  const want = json("diagnose", server);
  const state = await tab.state();
  assert.deepEqual(state.doc.findings.map((f: any) => [f.kind, f.title, f.bytes, f.confidence]), want.findings.map((f: any) => [f.kind, f.title, f.bytes, f.confidence]));
  assert.equal(state.doc.verdict, want.verdict);
  assert.equal(state.doc.moments, marks.length + 1);
  assert.equal(await figure(tab, "[data-figure=held]"), document.stacks.reduce((n: number, s: any) => n + s.live_bytes, 0));
  const top = document.stacks[0];
  assert.deepEqual((await rows(tab))[0], ["server.py:16 decode_step", top.live_bytes]);
  assert.equal(state.picture.figures["grew by"], document.rss_growth_bytes);
  assert.equal(state.picture.figures["in findings"], want.findings[0].bytes);
  assert.equal(await figure(tab, "#judged dd"), document.rss_bytes);
  const printed = spawnSync(binary, ["diagnose", "-v", server]).stdout.toString();
  const named = await tab.eval<[string, string, string][]>("[...document.querySelectorAll('#cursor dt')].map(e => [e.textContent.replace(/^of it /, ''), e.nextSibling.textContent, e.title])");
  const classes = named.filter(([name]) => ["anonymous", "file", "shared"].includes(name));
  assert.ok(printed.includes(classes.map(([name, grew]) => `${name} ${grew}`).join(", ")), "the page and the command have one name for each class of growth");
  assert.ok(classes.every(([, , means]) => means), "and the page says what it means");
  await tab.click("[data-key^='row']");
  await tab.until(`${settled} && document.querySelector("#place")`);
  assert.equal(await figure(tab, "#place dd"), top.live_bytes);
  assert.equal(await tab.eval("document.querySelector('[data-complete]').dataset.complete"), String(top.complete));
  await tab.eval("[...document.querySelectorAll('#inspector .stack button')].forEach(b => b.click())");
  assert.equal(await tab.eval("document.querySelectorAll('#detail .stack li').length"), top.frames.length);
  assert.ok(!(await tab.eval<string>("location.href")).includes("t="), "the secret left the address");
});

scenario("what is held at each moment", several, async (tab) => {
  const { marks, held } = courses(several());
  const state = await tab.state();
  assert.equal(state.doc.moments, marks.length, "a judgment before the end is not a moment");
  assert.match(await tab.eval("document.getElementById('coverage').title"), /last judgment, at 50 s/);
  await tab.key("Home");
  for (const k of [0, 1, 2, 3]) {
    await tab.until(`${settled} && strandline.state().picture.column === ${k}`);
    assert.equal(await figure(tab, "[data-figure=held]"), sum(held[k]!));
    const of = (ids: number[]): number => ids.reduce((n, id) => n + held[k]!.get(id)!.bytes, 0);
    const shown = new Map(await rows(tab));
    assert.deepEqual([shown.get("app.py:10 leak"), shown.get("app.py:20 wave"), shown.get("app.py:30 rest")], [of([1, 2]), of([3]), of([4])]);
    const drawn = (await tab.state()).picture.entries;
    assert.equal(drawn.reduce((n: number, e: any) => n + e.bytes, 0), sum(held[k]!), "what is drawn is what is held");
    assert.ok(drawn[0].grows && !drawn.at(-1).grows, "what a finding names lies below");
    await tab.key("ArrowRight");
  }
  await tab.key("?");
  await tab.until("document.getElementById('keys').open");
  await tab.key("Escape");
  await tab.until("!document.getElementById('keys').open");
  await tab.key("g"); // by stack
  await tab.until(`${settled} && strandline.state().s.g === "stack"`);
  assert.equal((await rows(tab)).length, 4);
  // A click in the picture puts the cursor there and shows the band.
  const [x, y] = await at(tab, 0.75, 0.97);
  await tab.mouse("mouseMoved", x, y);
  await tab.until("!document.getElementById('tooltip').hidden");
  const shown = await tab.eval<string>("document.getElementById('tooltip').innerText");
  assert.match(shown, /app\.py:10 leak/);
  assert.match(shown, /first seen at .*, last at 59 s/);
  await tab.mouse("mousePressed", x, y);
  await tab.mouse("mouseReleased", x, y);
  await tab.until(`${settled} && strandline.state().s.sel !== null`);
  const { column } = (await tab.state()).picture;
  assert.ok(Math.abs(column - 44) <= 1, `the cursor is on ${column}`);
  assert.equal(await figure(tab, "#place dd"), held[column]!.get(1)!.bytes);
  assert.match(await tab.eval("document.getElementById('cursor').innerText"), /events lost\s+77/);
});

/** A point of the picture, as shares of it. */
async function at(tab: Tab, x: number, y: number): Promise<[number, number]> {
  const { box } = (await tab.state()).picture;
  const [left, top] = await tab.eval<[number, number]>("(r => [r.left, r.top])(document.querySelector('#rail .box').getBoundingClientRect())");
  return [left + box.left + x * box.width, top + box.top + y * box.height];
}

scenario("what grew in a selection", several, async (tab) => {
  const { held } = courses(several());
  const [x0, y0] = await at(tab, 0.25, 0.5);
  const [x1] = await at(tab, 0.5, 0.5);
  await tab.drag(x0, y0, x1, y0);
  await tab.until(`${settled} && strandline.state().s.range`);
  const [a, b] = (await tab.state()).s.range;
  assert.ok(b - a > 10 && b - a < 20, `${a} to ${b}`);
  assert.equal(await figure(tab, "[data-figure=held]"), sum(held[b]!) - sum(held[a]!));
  const shown = new Map(await rows(tab));
  assert.equal(shown.get("app.py:10 leak"), held[b]!.get(1)!.bytes - held[a]!.get(1)!.bytes);
  assert.equal(shown.get("app.py:30 rest"), 0);
  await tab.key("2"); // the stacks of it
  await tab.until(`${settled} && document.querySelector("[data-figure=flame]")`);
  const grew = [1, 2, 3, 4].map((id) => held[b]!.get(id)!.bytes - held[a]!.get(id)!.bytes);
  assert.equal(await figure(tab, "[data-figure=flame]"), grew.reduce((n, v) => n + Math.max(0, v), 0));
  await tab.key("f");
  await tab.until(`${settled} && strandline.state().s.win`);
  assert.deepEqual((await tab.state()).picture.win, [a, b]);
  await tab.key("0");
  await tab.key("Escape");
  await tab.until(`${settled} && strandline.state().s.range === null`);
});

scenario("from a finding to its stack, and back", several, async (tab) => {
  await tab.key("3");
  await tab.until(`${settled} && document.querySelector(".findings")`);
  await tab.click("[data-key=show]");
  await tab.until(`${settled} && strandline.state().s.view === "timeline"`);
  const { s } = await tab.state();
  assert.deepEqual([s.range, s.of, s.stack], [[0, 59], "range", 1]);
  assert.equal(await tab.eval("document.querySelector('tbody tr[aria-selected] .name').textContent"), "app.py:10 leak");
  assert.match(await tab.eval("document.getElementById('inspector').innerText"), /Complete: it reaches/);
  await tab.eval("document.querySelector(\"[data-key^='stack ']:not([aria-current])\").click()");
  await tab.until(`${settled} && strandline.state().s.stack === 2`);
  assert.match(await tab.eval("document.getElementById('inspector').innerText"), /Cut: its outermost frames/);
  await tab.eval("history.go(-2)");
  await tab.until(`${settled} && strandline.state().s.view === "findings"`);
});

scenario("search, and one band alone", several, async (tab) => {
  const { held } = courses(several());
  await tab.key("/");
  await tab.type("inner_[34]$|wave");
  await tab.until(`${settled} && document.querySelectorAll("#view tbody tr").length === 1`);
  assert.deepEqual((await rows(tab)).map((r) => r[0]), ["app.py:20 wave"]);
  await tab.type("(");
  await tab.until(`${settled} && document.getElementById("search").getAttribute("aria-invalid") === "true"`);
  assert.equal((await rows(tab)).length, 1, "the last result stays");
  await tab.key("Escape");
  await tab.until(`${settled} && document.querySelectorAll("#view tbody tr").length === 3`);
  await tab.key("Escape");
  await tab.click("[data-key^='row']"); // what holds most
  await tab.until(`${settled} && strandline.state().s.sel`);
  await tab.key("z");
  await tab.until(`${settled} && strandline.state().s.alone`);
  await tab.key("End"); // it rests at the last judgment, which is earlier
  await tab.until(`${settled} && strandline.state().s.k !== null`);
  const drawn = (await tab.state()).picture.entries;
  assert.equal(drawn.reduce((n: number, e: any) => n + e.bytes, 0), held.at(-1)!.get(1)!.bytes + held.at(-1)!.get(2)!.bytes);
  await tab.click("[data-key='sort 2']");
  await tab.until(settled);
  const pieces = await tab.eval<number[]>("[...document.querySelectorAll('#view tbody tr')].map(r => Number(r.querySelectorAll('td')[2].textContent))");
  assert.deepEqual(pieces, [...pieces].sort((a, b) => b - a));
});

scenario("the address holds what is looked at", several, async (tab, url) => {
  for (const key of ["2", "g", "Home", "ArrowRight", "ArrowUp", "]", "w"]) {
    await tab.key(key);
    await tab.until(settled);
  }
  await pause(400);
  const hash = await tab.eval<string>("location.hash");
  const { s } = await tab.state();
  assert.ok(s.view === "stacks" && s.range && s.win && s.sel, hash);
  const other = await browser.open(`${url}${hash}`);
  await other.until(settled);
  const there = (await other.state()).s;
  assert.deepEqual({ ...there, win: null }, { ...s, win: null });
  assert.ok(there.win.every((v: number, i: number) => Math.abs(v - s.win[i]) < 0.001));
  await other.close();
  const strange = await browser.open(`${url}#v=nothing&k=99999999&r=9-1&w=x&s=none&z=1&gs=5&fd=7&more=1`);
  await strange.until(settled);
  assert.deepEqual(strange.problems, []);
  await strange.close();
});

scenario("memory of the GPU's driver, by owner", () => {
  const lines: object[] = [];
  for (let k = 0; k < 20; k++) lines.push({ mark: { at_seconds: k, rss_bytes: 1 << 20, stacks: [], gpu: [{ owner: "libengine.so", memory: "device", live_bytes: (k + 1) << 23, live_count: k + 1 }, ...(k === 3 ? [{ owner: "NCCL", memory: "device", live_bytes: 5 << 20, live_count: 1 }] : [])] } });
  const stack = { id: 4, live_bytes: 20 << 23, live_count: 20, call: "cuMemAlloc_v2", complete: true, owner: "libengine.so", memory: "device", trend: [1, 2, 3], frames: [frame("cuMemAlloc_v2"), frame("serve", 5)] };
  lines.push({ document: { duration_seconds: 19.5, stacks: [], gpu: { libraries: ["libcuda.so.1"], owners: [{ owner: "libengine.so", memory: "device", live_bytes: 20 << 23, live_count: 20 }, { owner: "NCCL", memory: "device", live_bytes: 5 << 20, live_count: 1 }], stacks: [stack], devices: [{ names: ["0"], at_seconds: 19, used_bytes: 1 << 30, total_bytes: 2 ** 34, own_bytes: null, parts: [{ part: "traced", owner: "libengine.so", bytes: 20 << 23 }, { part: "others", count: 1, bytes: 7 << 20 }, { part: "remainder", bytes: 3 << 20 }], notes: ["a note"] }] }, findings: [{ kind: "driver-leak", severity: "problem", confidence: 1, title: "libengine.so took 160 MiB", evidence: { stacks: [4] } }] } });
  return recording("gpu.trace", lines);
}, async (tab) => {
  await tab.until(`${settled} && document.querySelector(".gpu")`); // it arrives where the worst finding is seen
  assert.equal(await tab.eval("document.querySelectorAll('.gpu .sw.s10').length"), 1);
  assert.deepEqual((await rows(tab)).slice(0, 2), [["libengine.so", 20 << 23], ["NCCL", 5 << 20]]);
  const last = await tab.eval<string>("document.querySelector('.gpu table:last-child').innerText");
  assert.match(last, /GPU memory of device 0 at 19 s: 1 GiB used of 16 GiB/);
  assert.match(last, /libengine\.so, since the trace began\s+160 MiB\s+1 other process\s+7 MiB[^]*a note/);
  await tab.key("Home");
  await tab.until(`${settled} && strandline.state().picture.column === 0`);
  assert.deepEqual((await rows(tab)).slice(0, 2), [["libengine.so", 1 << 23], ["NCCL", 0]]);
  await tab.key("4");
  await tab.until(`${settled} && document.querySelector("[data-key=show]")`);
  await tab.click("[data-key=show]");
  await tab.until(`${settled} && strandline.state().s.view === "gpu"`);
  assert.match(await tab.eval("document.getElementById('inspector').innerText"), /app\.py:5 serve/);
});

/** A recording of so many moments that the page asks for those that it looks at. */
function many(): string {
  const lines: object[] = [];
  for (let k = 0; k < 20_000; k++) lines.push({ mark: { at_seconds: k, rss_bytes: 1 << 20, stacks: [{ id: 1 + (k % 300), live_bytes: 1000 + k, live_count: 1 }, ...(k === 12_345 ? [{ id: 999, live_bytes: 1 << 30, live_count: 1 }] : k === 12_346 ? [{ id: 999, live_bytes: 0, live_count: 0 }] : [])] } });
  return recording("many.trace", lines);
}

scenario("many moments: the overview keeps the peaks, a window has all", many, async (tab) => {
  const { marks, held } = courses(join(folder, "many.trace"));
  const { columns } = await tab.state();
  assert.ok(columns.length < 1300 && columns.includes(12_345) && columns.at(-1) === marks.length - 1);
  assert.equal((await tab.state()).doc.others, 101);
  assert.match(await tab.eval("document.getElementById('tools').innerText"), /of 20,000 moments/);
  await tab.eval("location.hash = '#w=12300-12500&k=12346'");
  await tab.until(`${settled} && strandline.state().columns.includes(12346) && strandline.state().picture.column >= 0 && document.querySelector("[data-figure=held]")`);
  assert.equal(await figure(tab, "[data-figure=held]"), sum(held[12_346]!));
  assert.equal((await rows(tab)).reduce((n, r) => n + r[1], 0), sum(held[12_346]!), "rows and what is left out are all");
});

scenario("a program that was started again: the page says so, and keeps what it shows", many, async (tab, _, file, server) => {
  const before = (await tab.state()).picture.figures;
  await startedAgain(tab, server, ["view", file], async () => {
    await tab.eval("location.hash = '#w=12300-12500'");
  });
  assert.match(await tab.eval("document.getElementById('banner').textContent"), /What is here stays\.$/);
  await tab.eval("location.hash = '#'");
  await tab.until(`${settled} && strandline.state().s.win === null`);
  assert.deepEqual((await tab.state()).picture.figures, before);
});

test("a recording that was cut off shows what there is, and says so", { skip, timeout: 60_000 }, async () => {
  const file = join(folder, "cut.trace");
  const whole = readFileSync(server);
  for (const [share, why] of [[0.6, /only partly readable: line \d+|the last line is cut off|unexpected end/], [0.005, /no moment|partly/]] as const) {
    writeFileSync(file, whole.subarray(0, Math.max(Math.round(whole.length * share), whole.indexOf(10) + 5)));
    const running = await serve(file);
    const tab = await browser.open(running.url);
    await tab.until(settled);
    assert.equal(await tab.eval("document.getElementById('coverage').textContent"), "partial");
    assert.match(await tab.eval("document.body.innerText"), why);
    await clean(tab);
    await shoot(tab, `recording cut ${share}`);
    await tab.close();
    await running.stop();
  }
});

scenario("what no trace writes", () => {
  const odd = "\u0000\u001b[31m\u202e</script><img src=x onerror=alert(1)>\n".repeat(3);
  return recording("odd.trace", [
    { stack: { id: 1, call: odd, frames: Array.from({ length: 5000 }, (_, i) => ({ function: `${odd}${i}`, file: odd, line: -5, object: odd })) } },
    { stack: { id: 2, call: "brk", frames: [frame("x".repeat(50_000))] } },
    { mark: { at_seconds: 1e300, rss_bytes: -5, anonymous_bytes: -1e15, drops: 9, stacks: [{ id: 1, live_bytes: 9e15, live_count: -3 }, { id: 2, live_bytes: 7 }, { id: 99, live_bytes: 8 }] } },
    { mark: { at_seconds: -3, drops: 3, stacks: [{ id: 1, live_bytes: -1 }] } },
    { mark: {} },
    { document: { duration_seconds: 2e9, gpu: { owners: [{}], stacks: [{}, { live_count: 1, owner: odd }], devices: [{}, { parts: [{}], names: [odd] }] }, findings: [{}, { title: odd, kind: odd, severity: odd, stack: [{}], site: { file: odd }, evidence: { stacks: ["x", -1, 1e300], x: odd, nested: [[1]] }, trend: [], remedies: [{}] }] } },
  ], 9e18);
}, async (tab) => {
  for (const key of ["2", "3", "4", "1", "Home", "ArrowRight", "ArrowUp", "w", "z", "g", "End"]) {
    await tab.key(key);
    await tab.until(settled);
  }
  await tab.click("[data-key^='row']");
  await tab.until(settled);
});

scenario("a process that was only polled", () => {
  const file = recording("polled.trace", [1, 2, 3].map((k) => ({ mark: { at_seconds: k, rss_bytes: k << 20, anonymous_bytes: k << 20, stacks: [] } })));
  writeFileSync(file, readFileSync(file, "utf8").replace('"bpf"', '"polling"'));
  return file;
}, async (tab) => {
  assert.match(await tab.eval("document.getElementById('view').innerText"), /only polled/);
  assert.equal((await tab.state()).picture.figures["grew by"], 3 << 20);
});

for (const dark of [false, true]) {
  scenario(`no view has a violation of accessibility, ${dark ? "dark" : "light"}`, several, async (tab) => {
    for (const key of ["2", "3", "1"]) {
      await tab.key(key);
      await tab.until(settled);
      await clean(tab);
    }
    await tab.click("[data-key^='row']");
    await tab.until(settled);
    await tab.key("?");
    await clean(tab);
    await tab.key("Escape");
  }, { dark });
}

scenario("forced colors keep swatches, and show which view is open", several, async (tab) => {
  await forceColors(tab);
  for (const key of ["2", "3", "1"]) {
    await tab.key(key);
    await tab.until(settled);
    await openShows(tab);
    await clean(tab);
  }
  assert.ok(new Set(await styles(tab, "#view tbody .sw", "backgroundColor")).size > 1, "swatches");
});

scenario("narrow", several, async (tab) => {
  for (const key of ["2", "3", "1"]) {
    await tab.key(key);
    await tab.until(settled);
    assert.ok(await tab.eval("document.documentElement.scrollWidth <= innerWidth"), `view ${key} is not wider than the window`);
  }
}, { width: 800, height: 700 });

test("saved as a file it needs no program", { skip, timeout: 60_000 }, async () => {
  const file = join(folder, "saved.html");
  execFileSync(binary, ["view", several(), "--html", file]);
  const tab = await browser.open(`file://${file}`);
  await tab.until(settled);
  const { held, marks } = courses(several());
  const judged = await tab.eval<number>("strandline.state().doc.judged_seconds");
  assert.equal(await figure(tab, "[data-figure=held]"), sum(held[marks.findLastIndex((m) => m.at_seconds <= judged)]!), "it rests at the last judgment, as the card does");
  await tab.key("End");
  await tab.until(`${settled} && strandline.state().s.k !== null`);
  assert.equal(await figure(tab, "[data-figure=held]"), sum(held.at(-1)!));
  await tab.key("w");
  await tab.until(settled);
  await tab.key("3");
  await tab.until(`${settled} && document.querySelector(".findings")`);
  await clean(tab);
  await tab.close();
});
