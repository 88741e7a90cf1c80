// The views below the picture: the table at the cursor, the allocator, and sites.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pause } from "./browser.ts";
import { device, figure } from "./checks.ts";
import { answer, fields, folder, identity, last, listed, point, scenario } from "./scenario.ts";
import { MiB } from "./made.ts";
import { events, example, json, recorded } from "./server.ts";

scenario("the table at the peak sums to what inspect lists there", [last], async ({ tab }) => {
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

scenario("what waits for a stream is distinguished", [recorded("w07_streams_pools.default.pending.pickle")], async ({ tab }) => {
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
  assert.equal(lines[0], "purpose,bytes,share,kept (bytes),allocations");
  assert.equal(lines.slice(1).reduce((n, line) => n + Number(fields(line)[1]), 0), at.requested_bytes);
}, { fragment: "#v=sites", dark: true });

scenario("a search filters sites; an invalid pattern keeps the last result", [last], async ({ tab }) => {
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

scenario("what is releasable of an expandable segment is drawn as that", [recorded("w06_oom.expandable.recovered.pickle")], async ({ tab }) => {
  const state = await tab.eval<any>(answer("'api/state?k=' + (strandline.device().events - 1)"));
  const segments = state.segments.filter((s: any) => s.expandable && s.releasable > 0);
  assert.ok(segments.length > 0, "the file has some");
  for (const s of segments) assert.equal(s.ranges.reduce((n: number, [a, b]: [number, number]) => n + b - a, 0), s.releasable);
  await tab.key("End");
  await tab.until("strandline.state().figures.heap?.event === strandline.device().events - 1");
  await pause(200);
  // The hatch of what is releasable has stripes of its own color.
  const seen = await tab.eval<number>(`(c => { const d = c.getContext("2d").getImageData(0, 0, c.width, c.height).data; let n = 0; for (let i = 0; i < d.length; i += 4) if (d[i] === 0xf1 && d[i + 1] === 0xf3 && d[i + 2] === 0xf6) n++; return n; })(document.querySelector(".heap canvas"))`);
  assert.ok(seen > 400, `${seen} pixels are drawn as releasable`);
}, { fragment: "#v=allocator" });

scenario("an allocation of an autograd thread is called that", [example("change/after.pickle.gz")], async ({ tab }) => {
  const event = await tab.eval<any>(answer("'api/event?k=' + strandline.state().k"));
  assert.equal(event.missing, "autograd thread");
  await tab.until("/autograd thread: allocated by a thread of the backward pass/.test(document.getElementById('inspector').textContent)");
});

const causes = join(folder, "causes.json");
writeFileSync(causes, JSON.stringify({
  segments: [{ device: 0, address: 4096, total_size: 4 * MiB, allocated_size: 3 * MiB, active_size: 3 * MiB, stream: 0, segment_type: "large", blocks: [0, 1, 2].map((i) => ({ address: 4096 + i * MiB, size: MiB, requested_size: MiB, state: "active_allocated" })).concat([{ address: 4096 + 3 * MiB, size: MiB, requested_size: MiB, state: "inactive" }]) }],
  device_traces: [[1, 2].map((i) => ({ action: "alloc", addr: 4096 + i * MiB, size: MiB, stream: 0, time_us: 1000 + i, frames: i === 1 ? [{ filename: "/a/train.py", line: 7, name: "step" }] : [] }))],
}));
const off = join(folder, "off.json");
writeFileSync(off, JSON.stringify({ segments: [], device_traces: [[0, 1].map((i) => ({ action: "alloc", addr: 4096 * (i + 1), size: 512, stream: 0, time_us: 1000 + i, frames: [] }))] }));

for (const [file, labels] of [[causes, ["autograd thread", "before the recording", "train.py:7 step"]], [off, ["stacks off"]]] as const) {
  scenario(`what has no stack is named by its cause: ${labels.join(", ")}`, [file], async ({ tab }) => {
    await tab.key("End");
    await tab.settled();
    await tab.until("strandline.state().figures.rows?.length");
    assert.deepEqual((await tab.state()).figures.rows.map((r: any) => r.label).sort(), labels);
    const { sites } = json("inspect", file, "--at", "1").at;
    assert.deepEqual(sites.filter((s: any) => s.missing).map((s: any) => s.missing).sort(), labels.filter((l) => !l.includes(":")), "as the command names them");
  });
}

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

scenario("by purpose, what leaks is called that", [last], async ({ tab }) => {
  const { evidence } = json("diagnose", last).findings.find((f: any) => f.kind === "peak");
  assert.ok(evidence.leaked_bytes > 0);
  assert.equal((await tab.state()).k, evidence.event);
  await tab.until("strandline.state().figures.rows?.some(r => r.label === 'leaked')");
  const { figures } = await tab.state();
  assert.equal(figures.rows.find((r: any) => r.label === "leaked").bytes, evidence.leaked_bytes);
  assert.equal(figures.rows.find((r: any) => r.label === "other")?.bytes ?? 0, (evidence.by_purpose.other ?? 0) - evidence.leaked_bytes);
}, { fragment: "#g=purpose" });

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

const late = join(folder, "late.json");
writeFileSync(late, JSON.stringify({
  segments: [4096, 1 << 20].map((address) => ({ device: 0, address, total_size: 2048, allocated_size: 2048, active_size: 2048, stream: 0, segment_type: "small", blocks: [{ address, size: 2048, requested_size: 2048, state: "active_allocated" }] })),
  device_traces: [["segment_alloc", "alloc"].map((action, i) => ({ action, addr: 1 << 20, size: 2048, stream: 0, time_us: 1000 + i, frames: [{ filename: "/a/train.py", line: 7, name: "step" }] }))],
}));

scenario("a segment that is older than the recording is called that", [late], async ({ tab }) => {
  await tab.until("document.querySelectorAll('#takers dd').length === 2");
  assert.deepEqual(await tab.eval("[...document.querySelectorAll('#takers dt')].map(e => e.textContent).sort()"), ["before the recording × 1", "train.py:7 step × 1"]);
  await tab.eval(`location.hash = "#v=allocator&seg=0x1000"`);
  await tab.until("/before the recording: allocated before/.test(document.getElementById('inspector').textContent)");
}, { fragment: "#v=allocator" });

const noted = join(folder, "noted.json");
const notes = (i: number): object => ({ action: "alloc", addr: 4096 * (i + 1), size: 512, stream: 0, time_us: 1000 + i, frames: [{ filename: "/a/train.py", line: 7, name: "step" }], user_metadata: `batch ${i}`, compile_context: `${i}/1` });
writeFileSync(noted, JSON.stringify({ segments: [], device_traces: [[0, 1, 2].map(notes)] }));

scenario("texts of the program and the compiler are with their event and allocation", [noted], async ({ tab }) => {
  await tab.eval(`location.hash = "#k=1&p=1"`);
  await tab.until("document.getElementById('pinned') && strandline.state().event?.event === 1");
  for (const id of ["cursor", "pinned"]) assert.match(await tab.eval(`document.getElementById("${id}").innerText`), /metadata\s+batch 1\s+compile context\s+1\/1/);
});

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

const expandable = example("varied-lengths/expandable.pickle.gz");

scenario("reserved memory is banded by who took it from the driver", [expandable], async ({ tab }) => {
  const d = device(expandable);
  await tab.click("[data-key='u reserved']");
  await tab.until("strandline.state().u === 'reserved'");
  await tab.settled();
  assert.equal(await figure(tab, "#rail .flag"), d.peak_reserved_bytes);
  const s = await tab.state();
  const taken = await tab.eval<any[]>(`${answer(`"api/state?k=${s.k}"`)}.then(v => v.takers)`);
  const reserved = taken.reduce((n, t) => n + t.bytes, 0);
  const shown = await listed(tab);
  const want: Record<string, number> = {};
  for (const t of taken) want[identity(t.site ?? {})] = (want[identity(t.site ?? {})] ?? 0) + t.bytes;
  assert.deepEqual(shown.sites, want);
  assert.equal(shown.sum, reserved);
  const column = await tab.eval<any>(`strandline.column(${s.k})`);
  assert.ok(column.max >= reserved, "the picture reaches what is reserved");
  // A part can be pinned, and was taken by a call of the driver.
  await tab.clickAt(...(await point(tab, column.witness, column.max / 2)));
  await tab.until("strandline.state().pinned && document.getElementById('pinned')");
  const { pinned } = await tab.state();
  const { action } = await tab.eval<any>(answer(`"api/event?k=${pinned.birth}"`));
  assert.match(action, /^segment_(alloc|map)$/);
  // What is no property of a segment is not offered, and the way back is whole.
  assert.deepEqual(await tab.eval("[...document.querySelector('[data-key=g]').options].map(o => o.value)"), ["line", "function", "file", "stack", "size"]);
  await tab.click("[data-key='u requested']");
  await tab.until("strandline.state().u === 'requested'");
  await tab.settled();
  assert.equal(await figure(tab, "#rail .flag"), d.peak_requested_bytes);
});

const single = join(folder, "single.json");
const turned = "step\u202e\u2066gnp";
writeFileSync(single, JSON.stringify({
  segments: [{ device: 0, address: 4096, total_size: 1021 * MiB, allocated_size: 1021 * MiB, active_size: 1021 * MiB, stream: 0, segment_type: "large", blocks: [{ address: 4096, size: 1021 * MiB, requested_size: 1021 * MiB, state: "active_allocated" }] }],
  device_traces: [["segment_alloc", "alloc"].map((action, i) => ({ action, addr: 4096, size: 1021 * MiB, stream: 0, time_us: 1000 + i, frames: [{ filename: "/a/\u202etrain.py", line: 7, name: turned }] }))],
}));

scenario("one is not written as several, and figures have no needless zeros", [single], async ({ tab }) => {
  let all = "";
  for (const view of ["allocator", "sites", "compare", "whatif", "findings", "timeline"]) {
    if (!(await tab.eval(`!!document.querySelector("[data-key='view ${view}']")`))) continue;
    await tab.click(`[data-key='view ${view}']`);
    await tab.settled();
    all += ` ${await tab.eval("document.body.innerText + [...document.querySelectorAll('[title]')].map((e) => ' ' + e.title).join('')")}`;
  }
  assert.match(all, /\b1021 MiB\b/);
  assert.match(all, /\b1 (segment|block|allocation|file|stack|site)\b/);
  assert.deepEqual(all.match(/(?<![\d.,:])1 (segments|blocks|allocations|files|stacks|sites|events|steps|runs|tensors|bytes|places|requests|frames|ranks|processes|problems|warnings|notes)\b/g), null);
  assert.deepEqual(all.match(/\d\.\d*0 [KMGT]?i?B\b/g), null);
});

scenario("names cannot turn text around, in the picture or beside it", [single], async ({ tab }) => {
  await tab.eval(`(p => { const draw = p.fillText; window.drawn = []; p.fillText = function (text, ...at) { drawn.push(text); return draw.call(this, text, ...at); } })(CanvasRenderingContext2D.prototype)`);
  for (const view of ["allocator", "sites", "timeline"]) {
    await tab.click(`[data-key='view ${view}']`);
    await tab.settled();
    await tab.key("Home");
    await tab.key("End");
    await tab.settled();
    const texts = [...(await tab.eval<string[]>("drawn")), await tab.eval<string>("document.documentElement.textContent + [...document.querySelectorAll('[title], [aria-label]')].map((e) => e.title + e.ariaLabel).join('')")];
    assert.ok(texts.some((t) => t.includes("step\ufffd\ufffdgnp")), `the name is in ${view}`);
    assert.deepEqual(texts.filter((t) => /[\u202a-\u202e\u2066-\u2069]/.test(t)), []);
  }
  assert.ok((await tab.eval<string[]>("drawn")).some((t) => t.includes("\ufffd")), "the picture has the name");
});

scenario("between two marks, the stacks are red where they grew and blue where they shrank", [last], async ({ tab }) => {
  await tab.until("document.querySelector('[data-key=\"of diff\"][aria-pressed=true]') && document.querySelectorAll('#view tbody tr').length > 1");
  const flame = await tab.eval<any>(answer("'api/flame?a=400&b=2400'"));
  const at = (k: number): number => json("inspect", last, "--at", String(k)).at.requested_bytes;
  assert.equal(flame.nodes.net[0], at(2400) - at(400));
  assert.match(await tab.eval("document.querySelector('#view tbody').innerText"), /normalise[\s\S]*MiB[\s\S]*\u2212/, "some places hold less");
  const colors = await tab.eval<number[]>(`(() => {
    const c = document.querySelector(".icicle canvas"), px = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
    let red = 0, blue = 0;
    for (let i = 0; i < px.length; i += 4) if (px[i + 3] && px[i] > px[i + 2] + 60) red++; else if (px[i + 3] && px[i + 2] > px[i] + 60) blue++;
    return [red, blue];
  })()`);
  assert.ok(colors[0]! > 1000, `${colors}`);
}, { fragment: "#v=sites&a=400&b=2400&o=diff" });

scenario("a block of the allocator is named under the pointer, by a click and by its address", [last], async ({ tab }) => {
  await tab.until("strandline.state().figures.heap && document.querySelector('.heap canvas')");
  const state = await tab.eval<any>(answer("'api/state?k=' + strandline.state().k"));
  const big = state.blocks.size.map((n: number, i: number) => [n, i]).filter(([, i]: number[]) => state.blocks.state[i!] === "a" && state.blocks.alloc[i!] >= 0).sort((a: number[], b: number[]) => b[0]! - a[0]!)[0][1];
  const segment = state.segments.find((s: any) => big >= s.first && big < s.first + s.blocks);
  const address = `0x${(BigInt(segment.address) + BigInt(state.blocks.offset[big])).toString(16)}`;
  await tab.eval(`(s => { s.value = ${JSON.stringify(address)}; s.dispatchEvent(new Event("input")) })(document.getElementById("search"))`);
  await tab.until(`strandline.state().pinned?.alloc === ${state.blocks.alloc[big]} && document.querySelector('#pinned')`);
  const { pinned } = await tab.state();
  assert.equal(pinned.address, address);
  const text = await tab.eval<string>("document.getElementById('detail').innerText");
  for (const part of [address, `event ${pinned.birth.toLocaleString("en")}`]) assert.ok(text.includes(part), `${part} is in ${text}`);
  assert.ok(await tab.eval("document.querySelectorAll('#detail .stack li').length > 0"));
  // Its life is walked: to its birth.
  await tab.key("b");
  await tab.until(`strandline.state().k === ${pinned.birth}`);
}, { fragment: "#v=allocator" });
