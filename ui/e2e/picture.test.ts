// The picture of memory over events: bands, zoom, cursor, marks and the tooltip.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { pause, type Tab } from "./browser.ts";
import { device, figure } from "./checks.ts";
import { last, listed, point, scenario } from "./scenario.ts";
import { example, json, recorded } from "./server.ts";

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

scenario("a click on a band shows its stack without scrolling", [last], async ({ tab }) => {
  const d = device(last);
  await tab.clickAt(...(await point(tab, d.peak_requested_event, d.peak_requested_bytes * 0.3)));
  await tab.until("strandline.state().pinned && document.querySelector('#inspector .stack li')");
  const { top, bottom } = await tab.eval<any>("(r => ({ top: r.top, bottom: r.bottom }))(document.querySelector('#inspector .stack li').getBoundingClientRect())");
  assert.ok(top > 0 && bottom < 500, `the stack stands at ${top} – ${bottom}`);
  assert.equal(await tab.eval("document.querySelector('#inspector .stack .own .path').textContent"), (await tab.state()).pinned.stack.find((f: any) => f.origin === "own").file);
}, { width: 1400 });

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

scenario("a tooltip goes when a key shows another moment, and no moment is called -1", [last], async ({ tab }) => {
  const d = device(last);
  for (const key of ["Home", "w", "a", "2"]) {
    await tab.mouse("mouseMoved", ...(await point(tab, (await tab.state()).k, 1)).map((v, i) => v - 3 + 3 * i) as [number, number]);
    await tab.mouse("mouseMoved", ...(await point(tab, (await tab.state()).k, d.peak_requested_bytes * 0.01)));
    await tab.until("!document.getElementById('tooltip').hidden");
    await tab.key(key);
    await tab.until("document.getElementById('tooltip').hidden");
    await tab.settled();
  }
  await tab.eval("location.hash = '#k=-1'");
  await tab.until("strandline.state().k <= 0");
  await tab.settled();
  await tab.until("/^before the first event, /.test(document.getElementById('live').textContent)"); // what is read aloud, later
  assert.doesNotMatch(await tab.eval("document.body.innerText"), /[-\u2212\u2013]1\b(?! )/);
});

scenario("every term has its meaning on hover, and the glossary is with the keys", [last], async ({ tab }) => {
  await tab.key("?");
  const terms = await tab.eval<[string, string][]>("[...document.querySelectorAll('#keys .terms dt')].map(e => [e.textContent, e.nextSibling.textContent])");
  assert.ok(terms.length > 20, `${terms.length} terms`);
  await tab.key("Escape");
  const means = new Map(terms);
  for (const view of ["timeline", "allocator", "whatif"]) {
    await tab.click(`[data-key='view ${view}']`);
    await tab.settled();
    if (view === "whatif") await tab.until("document.querySelector('.runs thead')");
    const shown = await tab.eval<[string, string][]>("[...document.querySelectorAll('#inspector dt, #view thead th')].map(e => [e.textContent.replace(/ [↓↑]$/, ''), e.title || e.querySelector('[title]')?.title || ''])");
    for (const [name, title] of shown) if (means.has(name)) assert.equal(title, means.get(name), `${name} in ${view}`);
  }
  const small = await tab.eval<string[]>("[...document.querySelectorAll('#rail .flag, #rail .pin')].filter(e => e.getBoundingClientRect().height < 24).map(e => e.textContent)");
  assert.deepEqual(small, [], "flags have 24 pixels");
});

scenario("a jump to what is not there says so, until the cursor moves", [last], async ({ tab }) => {
  await tab.key("o");
  await tab.until("/^There is no later out-of-memory error/.test(document.getElementById('banner').textContent)");
  await tab.key("Home");
  await tab.until("document.getElementById('banner').hidden");
});

scenario("the inspector shows settings and capacity, and the picture has its line", [example("out-of-memory/oom.pickle")], async ({ tab }) => {
  const file = example("out-of-memory/oom.pickle");
  assert.match(await tab.eval("document.getElementById('recorded').innerText"), new RegExp(`settings\\s+${json("inspect", file).allocator_conf || "the defaults"}`));
  const [d] = json("simulate", file).devices;
  assert.equal(await figure(tab, "#recorded [data-bytes]"), d.assumed.capacity);
  assert.ok((await tab.state()).picture.axis > d.assumed.capacity, "the line is in the picture");
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

scenario("a change of the pixel ratio makes the picture sharp again", [last], async ({ tab }) => {
  await tab.send("Emulation.setDeviceMetricsOverride", { width: 1440, height: 900, deviceScaleFactor: 2, mobile: false });
  await tab.key("ArrowLeft");
  await tab.until("devicePixelRatio === 2 && [...document.querySelectorAll('#rail canvas')].every(c => c.width === Math.round(c.clientWidth * 2))");
  await tab.settled();
  assert.equal((await tab.eval<any>(`strandline.column(${device(last).peak_requested_event})`)).max, device(last).peak_requested_bytes);
});
