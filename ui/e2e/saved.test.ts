// The page as one file, opened from the disk: it asks nobody for anything.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Browser, chromium, type Tab } from "./browser.ts";
import { clean, device, figure, shoot } from "./checks.ts";
import { example, json, lacks, recorded, run } from "./server.ts";

const leak = [2, 3, 4].map((n) => example(`image-leak/step-${n}.pickle`));
const last = leak[2]!;
const large = recorded("w12_llm.logits.step4.pickle");
const folder = mkdtempSync(join(tmpdir(), "strandline-saved-"));

let browser: Browser;
before(async () => {
  if (chromium) browser = await Browser.start();
});
after(async () => {
  rmSync(folder, { recursive: true });
  await browser?.close();
});

const pages = new Map<string, string>();

/** The page of some files, saved once. */
function saved(files: string[]): string {
  const key = files.join(" ");
  const path = pages.get(key) ?? join(folder, `${pages.size}.html`);
  if (!pages.has(key)) json("view", "--html", path, ...files);
  pages.set(key, path);
  return path;
}

function scenario(name: string, files: string[], act: (tab: Tab) => Promise<void>, fragment = ""): void {
  const skip = !chromium ? "Chromium is missing" : files.some(lacks) ? "STRANDLINE_CORPUS names no folder of recorded snapshots" : false;
  test(name, { skip, timeout: 180_000 }, async () => {
    const url = `file://${saved(files)}`;
    const tab = await browser.open(url + fragment);
    try {
      await tab.settled();
      await act(tab);
      await clean(tab);
      assert.deepEqual(tab.requests.filter((r) => r.split("#")[0] !== url), []);
    } finally {
      await shoot(tab, name);
      await tab.close();
    }
  });
}

for (const file of [last, large]) {
  scenario(`a saved page shows what inspect prints, ${file.replace(/.*\//, "")}`, [file], async (tab) => {
    const d = device(file);
    assert.equal(await figure(tab, "#rail .flag"), d.peak_requested_bytes);
    assert.equal(await tab.eval("Number(document.querySelector('#rail .flag').dataset.event)"), d.peak_requested_event);
    assert.equal(await figure(tab, "[data-figure=gutter-active]"), d.requested_bytes);
    assert.equal(await figure(tab, "[data-figure=gutter-reserved]"), d.reserved_bytes);
    const at = json("inspect", file, "--at", String(d.peak_requested_event)).at;
    const { figures, k } = await tab.state();
    assert.equal(k, d.peak_requested_event);
    assert.equal(figures.rows.reduce((n: number, r: any) => n + r.bytes, figures.more.bytes), at.requested_bytes);
    await tab.click("#view tbody tr:first-child button");
    await tab.settled();
    const s = await tab.state();
    assert.equal((await tab.eval<any>(`strandline.column(${s.k})`)).max, figures.rows[0].bytes, "the picture shows this site alone");
    await tab.key("Escape");
    assert.match(await tab.eval("document.getElementById('held').title"), /strandline view/);
  });

  scenario(`a saved page has the allocator at the end and steps back from it, ${file.replace(/.*\//, "")}`, [file], async (tab) => {
    const d = device(file);
    await tab.until("strandline.state().figures.heap");
    const { heap } = (await tab.state()).figures;
    assert.deepEqual([heap.event, heap.reserved, heap.allocated, heap.segments], [d.events - 1, d.reserved_bytes, d.allocated_bytes, d.segments]);
    assert.equal(heap.strands, heap.stranded);
    const seen = [heap];
    for (let i = 0; i < 10; i++) {
      const k = (await tab.state()).k;
      await tab.key(",");
      await tab.until(`strandline.state().k < ${k} && strandline.state().figures.heap.event === strandline.state().k`);
      seen.push((await tab.state()).figures.heap);
    }
    for (const was of seen.slice(0, -1).reverse()) {
      await tab.key(".");
      await tab.until(`strandline.state().k === ${was.event} && strandline.state().figures.heap.event === ${was.event}`);
      assert.deepEqual((await tab.state()).figures.heap, was);
    }
  }, `#v=allocator&k=${lacks(file) ? 0 : device(file).events - 1}`);
}

scenario("a saved page zooms to single allocations at the peak", [large], async (tab) => {
  const d = device(large);
  for (let i = 0; i < 14; i++) {
    await tab.key("w");
    await tab.settled();
    const c = await tab.eval<any>(`strandline.column(${d.peak_requested_event})`);
    assert.deepEqual([c.witness, c.max], [d.peak_requested_event, d.peak_requested_bytes]);
  }
  const { picture } = await tab.state();
  assert.deepEqual([picture.kind, await tab.eval("document.getElementById('banner').hidden")], ["alloc", true]);
  const column = await tab.eval<any>(`strandline.column(${d.peak_requested_event})`);
  const top = column.entries.reduce((a: any, b: any) => (b.bytes > a.bytes ? b : a));
  const rail = await tab.eval<{ x: number; y: number }>("(r => ({ x: r.left, y: r.top }))(document.querySelector('#rail .box').getBoundingClientRect())");
  const { left, top: above, height } = picture.box;
  await tab.clickAt(rail.x + left + column.x + column.pixels / 2, rail.y + above + height * (1 - (top.from + top.bytes / 2) / picture.axis));
  await tab.until("strandline.state().pinned");
  const { pinned } = await tab.state();
  const want = json("inspect", large, "--alloc", String(pinned.birth)).alloc;
  assert.equal(pinned.bytes, want.bytes);
});

scenario("a saved page says where it has no finer picture, and keeps what it has", [large], async (tab) => {
  const d = device(large);
  await tab.eval(`location.hash = '#w=${Math.floor(d.events / 8)}_${Math.floor(d.events / 8) + 64}&k=${Math.floor(d.events / 8)}'`);
  await tab.settled();
  const { k, picture } = await tab.state();
  assert.ok(picture.level > 0, "the level that it holds");
  assert.match(await tab.eval("document.getElementById('window').textContent"), /no finer in this saved page/);
  assert.ok((await tab.eval<number[]>("strandline.device().held.events")).includes(k), "the cursor stands where it can");
  await tab.key("]");
  await tab.until(`strandline.state().k > ${k}`);
});

scenario("a saved page does not offer what it cannot do", [last], async (tab) => {
  const offered = (): Promise<string[]> => tab.eval("[...document.querySelectorAll('#view [data-key], #tools [data-key]')].filter((e) => !e.disabled).map((e) => e.dataset.key)");
  const none = ["mode range", "mode diff", "csv", "of range", "each", "u reserved", "conf", "add", "search", "capacity", "fraction", "find event"];
  for (const view of ["timeline", "allocator", "whatif", "findings"]) {
    await tab.click(`[data-key='view ${view}']`);
    await tab.settled();
    assert.deepEqual((await offered()).filter((key) => none.includes(key)), [], view);
  }
  await tab.click("[data-key='view sites']");
  await tab.until("document.querySelector('[data-key=\"of kept\"]')");
  assert.ok(!(await offered()).includes("of range"));
  await tab.click("[data-key='view timeline']");
  await tab.key("?");
  assert.doesNotMatch(await tab.eval("document.getElementById('keys').innerText"), /mark A|each allocation/);
  await tab.key("Escape");
  for (const key of ["j", "Home", "k"]) await tab.key(key);
  await tab.until("document.querySelectorAll('#view tbody tr').length > 0 && !document.querySelector('#view .note')");
  // Only what it has a picture of can be chosen.
  const { alone } = await tab.eval<any>("strandline.device().held");
  const enabled = await tab.eval<string[]>("[...document.querySelectorAll('#view tbody button:not(:disabled)')].map(e => e.dataset.key.slice('row '.length))");
  assert.ok(enabled.length > 0 && enabled.every((key) => alone.includes(key)), `${enabled}`);
  await tab.key("g");
  await tab.settled();
  await tab.until("document.querySelectorAll('#view tbody tr').length > 0 && !document.querySelector('#view tbody button:not(:disabled)')");
  // A link to more than it has is refused in words.
  await tab.eval("location.hash = '#v=whatif&set=!max_split_size_mb:128'");
  await tab.until("/This saved page contains only the runs.*strandline view/.test(document.querySelector('.runs')?.textContent)");
});

scenario("a saved page compares, judges and finds", leak, async (tab) => {
  const want = json("diagnose", ...leak).findings;
  await tab.click("[data-key='view findings']");
  await tab.until("strandline.state().figures.findings");
  assert.deepEqual((await tab.state()).figures.findings, want.map((f: any) => ({ kind: f.kind, bytes: f.bytes ?? null, title: f.title })));
  await tab.click("[data-key='finding 0']");
  await tab.settled();
  assert.ok((await tab.state()).solo.length > 0);
  assert.equal(await tab.eval("document.getElementById('banner').hidden"), true);
  await tab.click("[data-key='view compare']");
  await tab.until("strandline.state().figures.compare");
  assert.equal((await tab.state()).figures.compare[0].sites[0].bytes_per_step, json("compare", ...leak).groups[0].sites[0].bytes_per_step);
  await tab.click("[data-key='view timeline']");
  await tab.key("Escape");
  await tab.key("/");
  await tab.type("FORWARD$");
  await tab.until("strandline.state().figures.found > 0");
});

scenario("a saved page has time and other groupings", [last], async (tab) => {
  await tab.key("x");
  await tab.until("strandline.state().x === 'us'");
  await tab.settled();
  for (let i = 0; i < 6; i++) {
    await tab.key("g");
    await tab.settled();
    await tab.until("document.querySelectorAll('#view tbody tr').length > 0");
  }
  assert.equal(await tab.eval("document.getElementById('banner').hidden"), true);
});

const varied = example("varied-lengths/default.pickle.gz");

scenario("a saved page has the runs to try first", [varied], async (tab) => {
  await tab.until("strandline.state().figures.runs?.[1]?.fits", 20000);
  const [, run] = (await tab.state()).figures.runs;
  const [want] = json("simulate", varied, "--set", run.settings).runs;
  assert.deepEqual([run.peak_reserved_bytes, run.fits], [want.devices[0].peak_reserved_bytes, want.devices[0].smallest_capacity_bytes]);
  assert.match(await tab.eval("document.querySelector('.settings').textContent"), /strandline simulate default\.pickle\.gz/);
}, "#v=whatif");

test("a saved page is small enough for a ticket", { skip: lacks(large) && "STRANDLINE_CORPUS names no folder of recorded snapshots" }, () => {
  assert.ok(statSync(saved([large])).size < 5 << 20);
});

test("a saved page depends on its files alone: by one processor or several, early or late, it is the same", () => {
  const page = (processors: string): string => {
    const path = join(folder, `by-${processors}.html`);
    run(["view", "--html", path, last], { GOMAXPROCS: processors, TZ: processors === "1" ? "Asia/Tokyo" : "UTC" });
    return readFileSync(path, "utf8");
  };
  const one = page("1");
  assert.ok(one.length > 100_000);
  assert.ok(one === page("4"), "two saved pages of the same files differ");
});
