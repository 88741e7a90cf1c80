// The files of a session, links to what is shown, and what can be saved.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Browser, chromium, pause } from "./browser.ts";
import { device, figure, startedAgain } from "./checks.ts";
import { answer, fields, folder, last, leak, listed, point, scenario, torn } from "./scenario.ts";
import { example, json, recorded, serve } from "./server.ts";
import { contradicting } from "./snapshots.ts";

scenario("a link gives the same state to another person", [last], async ({ tab, server }) => {
  await tab.eval("location.hash = '#w=400_800&k=600&y=active'");
  await tab.settled();
  await tab.click("#view tbody tr:first-child button");
  await tab.settled();
  const { link, solo, k } = await tab.state();
  assert.equal(link, await tab.eval("location.hash"));
  const other = await tab.browser.open(server.url + link);
  await other.settled();
  assert.deepEqual((({ link, solo, k }) => ({ link, solo, k }))(await other.state()), { link, solo, k });
  await other.eval("location.reload()");
  await pause(100);
  await other.settled();
  assert.equal((await other.state()).link, link);
  assert.deepEqual(other.problems, []);
  await other.close();
  const strange = await tab.browser.open(`${server.url}#nonsense=1&s=0123456789ab&k=600`);
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
  assert.ok(pixels > 20, `${pixels} colors in the picture`);
  await tab.key("e");
  await tab.click("[data-key=link]");
  await tab.until("window.copied");
  assert.equal(await tab.eval("copied"), await tab.eval("location.origin + '/' + strandline.state().link"));
});

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

scenario("a link opens its file among others, and says where it is not there", [leak[0]!, leak[1]!], async ({ tab, server }) => {
  await tab.eval(`(s => { s.value = "0"; s.dispatchEvent(new Event("change")) })(document.querySelector("[data-key=file]"))`);
  await tab.settled();
  const { link } = await tab.state();
  assert.match(link, /f=x[0-9a-f]{12}/);
  const others = await serve(leak[2]!, leak[0]!);
  const other = await tab.browser.open(others.url + link);
  await other.settled();
  await other.until(`document.querySelector("[data-key=file]")?.selectedOptions[0].textContent === "step-2.pickle"`);
  await other.close();
  await others.stop();
  const without = await serve(leak[2]!);
  const strange = await tab.browser.open(without.url + link);
  await strange.until("/of a file that is not open here/.test(document.getElementById('banner').textContent)");
  await strange.close();
  await without.stop();
  assert.ok(server.url);
});

scenario("a link holds the zoom of Sites and what Compare shows", leak, async ({ tab, server }) => {
  const through = async (ready: string, what: string): Promise<void> => {
    await tab.until(`location.hash === strandline.state().link`);
    const other = await tab.browser.open(server.url + (await tab.state()).link);
    await other.until(ready);
    assert.deepEqual(await other.eval(what), await tab.eval(what));
    await other.close();
  };
  await tab.click("[data-key='view sites']");
  await tab.until("document.querySelector('.icicle canvas') && strandline.state().figures.flame");
  const box = await tab.eval<{ x: number; y: number }>("(r => ({ x: r.left, y: r.top }))(document.querySelector('.icicle canvas').getBoundingClientRect())");
  await tab.clickAt(box.x + 100, box.y + 45);
  await tab.until("strandline.state().zoom > 0");
  await through("window.strandline && strandline.state().zoom > 0 && document.querySelector('.icicle canvas')", "strandline.state().zoom");
  await tab.click("[data-key='view compare']");
  await tab.click("[data-key=runs]");
  await tab.click("[data-key='at peaks']");
  // The growth can be there before the figures of the files, which are dashes until then.
  const filled = "document.querySelector('[data-key=\"at peaks\"]')?.ariaPressed === 'true' && /^[^–]* [KMG]iB[^–]*$/.test(document.querySelector('#view tbody tr')?.textContent)";
  await tab.until(filled);
  await through(filled, "[document.querySelector('[data-key=runs]').textContent, document.querySelector('#view tbody tr').textContent]");
});

const nothing = join(folder, "nothing.json");
writeFileSync(nothing, JSON.stringify({ segments: [], device_traces: [[]] }));

scenario("a folder opens on what matters: not on an empty file", [leak[2]!, nothing], async ({ tab }) => {
  assert.equal(await tab.eval("document.querySelector('[data-key=file]').selectedOptions[0].textContent"), "step-4.pickle");
});

const all = [0, 1, 2, 3].flatMap((r) => [2, 4, 6].map((s) => example(`ranks/rank${r}-step-${s}.pickle`)));

scenario("four ranks open on the one that leaks, which the card names, and are compared at once", all, async ({ tab }) => {
  const [worst] = json("diagnose", ...all).findings;
  assert.equal(worst.kind, "leak");
  await tab.until("strandline.state().figures.findings && document.querySelector('#verdict .word')");
  await tab.settled();
  assert.ok((await tab.eval<string>("document.querySelector('[data-key=file]').selectedOptions[0].textContent")).startsWith(worst.process));
  const strip = await tab.eval<string>("document.getElementById('verdict').innerText");
  for (const part of [worst.process, "95.5 KiB", `w16_ranks.py:${worst.site.line}`]) assert.ok(strip.includes(part), `${part} is in ${strip}`);
  await tab.click("[data-key='view compare']");
  await tab.until("document.querySelector('[data-key=process]')?.value === '-1' && document.querySelectorAll('#view tbody tr').length > 0");
  assert.deepEqual(await tab.eval("[...document.querySelectorAll('#view thead th')].map(e => e.textContent).filter(t => /rank/.test(t)).length"), 4);
});

scenario("a file that is dropped is opened beside the others", [last], async ({ tab }) => {
  await tab.drop(leak[0]!);
  await tab.until(`document.querySelector("[data-key=file]")?.selectedOptions[0].textContent === "step-2.pickle"`);
  await tab.settled();
  assert.equal(await figure(tab, "#rail .flag"), device(leak[0]!).peak_requested_bytes);
  // Then another takes its place, and the file of the start stays.
  await tab.drop(leak[1]!);
  await tab.until(`document.querySelector("[data-key=file]")?.selectedOptions[0].textContent === "step-3.pickle"`);
  await tab.settled();
  assert.equal(await figure(tab, "#rail .flag"), device(leak[1]!).peak_requested_bytes);
  assert.deepEqual((await tab.eval<string[]>("[...document.querySelector('[data-key=file]').options].map(o => o.textContent)")).sort(), ["step-3.pickle", "step-4.pickle"]);
});

scenario("a file that contradicts itself says so", [contradicting(folder)], async ({ tab }) => {
  const [fault] = json("inspect", contradicting(folder)).notes;
  assert.match(fault, /neither freed in the history nor in a segment/);
  await tab.until("!document.getElementById('banner').hidden");
  assert.equal(await tab.eval("document.getElementById('banner').textContent"), `The file contradicts itself, so figures may be wrong: ${fault}`);
  assert.equal(await tab.eval("document.getElementById('coverage').dataset.kind"), "damaged");
});

scenario("a program that was started again is not this page's: it says so, and keeps what it shows", [last], async ({ tab, server }) => {
  await startedAgain(tab, server, ["view", last], async () => {});
  assert.match(await tab.eval("document.getElementById('banner').textContent"), /What is here stays\.$/);
  assert.equal(await figure(tab, "#rail .flag"), device(last).peak_requested_bytes);
});

scenario("the size of a block that an early question has no answer to is shown once the replay is done", [last], async ({ tab }) => {
  const sizes = await tab.eval<{ block: number; bytes: number }[]>(`Promise.all([...Array(40).keys()].map((i) => ${answer("'api/alloc?i=' + i")}))`);
  const i = sizes.findIndex((a) => a.block > a.bytes);
  assert.ok(i >= 0, "a block is larger than what was requested");
  const shown = `[...document.querySelectorAll("#pinned dd")].map((e) => Number(e.dataset.bytes))`;
  // The page meets a program that has not replayed the history: its answers are the engine's, less what it would not know.
  await tab.send("Page.addScriptToEvaluateOnNewDocument", { source: `
    const door = fetch, done = new Promise((r) => (window.replay = () => (window.known = true, r())));
    let sessions = 0;
    window.fetch = async (q, o) => {
      const name = /^api\\/(\\w+)/.exec(q)?.[1];
      const held = name === "session" && sessions++ > 0 && !window.known;
      if (held) await done;
      const answer = await door(held ? "api/session" : q, o);
      if ((name !== "session" && name !== "alloc") || window.known) return answer;
      const doc = await answer.json();
      if (name === "alloc") doc.block = null;
      else for (const f of doc.files) f.blocks = "working";
      return new Response(JSON.stringify(doc));
    };` });
  await tab.eval(`location.hash = "#p=${i}"`);
  await tab.eval("location.reload()");
  await tab.until("window.replay && window.strandline && document.getElementById('pinned')");
  assert.ok(!(await tab.eval<number[]>(shown)).includes(sizes[i]!.block), "the size of the block is not known yet");
  await tab.eval("replay()");
  await tab.until(`${shown}.includes(${sizes[i]!.block})`);
});

test("a folder that is still written to is live: newer snapshots are shown, or offered once it was touched", { skip: !chromium && "Chromium is missing", timeout: 180_000 }, async () => {
  const dir = join(folder, "written");
  mkdirSync(dir);
  const manifest = (more: object): void => writeFileSync(join(dir, "strandline.json"), JSON.stringify({ schema: "strandline.record/1", command: ["python"], started: "2026-01-05T12:00:00Z", processes: [], notes: [], ...more }));
  manifest({});
  copyFileSync(leak[0]!, join(dir, "step-2.pickle"));
  const server = await serve(dir);
  const browser = await Browser.start();
  const tab = await browser.open(server.url);
  try {
    await tab.settled();
    await tab.until("document.querySelector('#files .live')");
    copyFileSync(leak[1]!, join(dir, "step-3.pickle"));
    await tab.until("document.querySelector('#files select')?.options.length === 2 && strandline.state().ready", 60_000);
    await tab.settled();
    await tab.key("i"); // the reader is at work
    copyFileSync(leak[2]!, join(dir, "step-4.pickle"));
    await tab.click("[data-key=newer]");
    await tab.until("window.strandline && document.querySelector('#files select')?.options.length === 3 && strandline.state().ready", 60_000);
    assert.equal(await tab.eval("document.getElementById('word').textContent"), "LEAK");
    await tab.drop(example("peak/step-2.pickle")); // it stays while more is written
    await tab.until("window.strandline && document.querySelector('#files select')?.options.length === 4 && strandline.state().ready", 60_000);
    copyFileSync(leak[0]!, join(dir, "step-1.pickle"));
    await tab.until("document.querySelector('[data-key=newer]') || document.querySelector('#files select')?.options.length === 5", 60_000);
    await tab.eval("document.querySelector('[data-key=newer]')?.click()");
    await tab.until("window.strandline && document.querySelector('#files select')?.options.length === 5 && strandline.state().ready", 60_000);
    manifest({ ended: "2026-01-05T12:10:00Z" });
    await tab.until("!document.querySelector('#files .live')", 60_000);
    assert.deepEqual(tab.problems, []);
  } finally {
    await tab.close();
    await browser.close();
    await server.stop();
  }
});
