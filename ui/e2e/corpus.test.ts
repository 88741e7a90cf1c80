// The figures of the page beside those of the commands, file by file: of the
// repository's examples, and of all snapshots below the folder that
// STRANDLINE_CORPUS names.

import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Browser, chromium, type Tab } from "./browser.ts";
import { example, json, lacks, recorded, serve } from "./server.ts";

let browser: Browser;
before(async () => {
  if (chromium) browser = await Browser.start();
});
after(() => browser?.close());

/** What the timeline shows in its elements. */
const timeline = `({
  figures: Object.fromEntries([...document.querySelectorAll("#rail [data-figure], #rail .flag")].map(e => [e.dataset.figure ?? "peak", Number(e.dataset.bytes)])),
  peak: Number(document.querySelector("#rail .flag")?.dataset.event ?? NaN),
  rows: [...document.querySelectorAll("#view tbody tr[data-site]")].map(tr => [tr.dataset.site, Number(tr.querySelector("td[data-bytes]").dataset.bytes)]),
  more: Number(document.querySelector("#view tbody .more td[data-bytes]")?.dataset.bytes ?? 0),
})`;

/** What the inspector of the allocator's state shows. */
const heap = `Object.fromEntries([...document.querySelectorAll("#inspector [data-figure^=heap-]")].map(e => [e.dataset.figure.slice(5), Number(e.dataset.bytes)]))`;

const sum = (of: number[]): number => of.reduce((a, b) => a + b, 0);

/** Sums bytes by site, unknown ones together. */
function bySite(of: [{ file?: string | null; line?: number | null; function?: string | null } | undefined, number][]): Record<string, number> {
  const out: Record<string, number> = {};
  for (const [g, n] of of) {
    const name = g?.file ? `${g.file}:${g.line ?? 0} ${g.function ?? ""}` : "unknown";
    out[name] = (out[name] ?? 0) + n;
  }
  return out;
}

/** Compares what the page shows of one device of the file that is open with what inspect prints. */
async function compare(tab: Tab, f: number, path: string, d: any, faults: boolean): Promise<void> {
  await tab.eval(`location.hash = "#f=${f}&d=${d.device}"`);
  await tab.until(`(s => s.f === ${f} && s.d === ${d.device} && s.view === "timeline" && s.ready && document.querySelector("#view tbody") && (strandline.device().events === 0 || s.picture.settled && s.event?.event === s.k))(strandline.state())`);
  const shown = await tab.eval<any>(timeline);
  const { k } = await tab.state();
  const at = json("inspect", path, "--at", String(k), "--device", String(d.device)).at;
  assert.equal(sum(shown.rows.map((r: any) => r[1])) + shown.more, at.requested_bytes, "what is live at the cursor");
  if (shown.more === 0) {
    const groups = new Map((await tab.eval<any[]>("strandline.bands().groups")).map((g) => [g.key, g]));
    const positive = (of: Record<string, number>): Record<string, number> => Object.fromEntries(Object.entries(of).filter(([, n]) => n !== 0));
    assert.deepEqual(positive(bySite(shown.rows.map(([key, n]: any) => [groups.get(key), n]))), positive(bySite(at.sites.map((s: any) => [s, s.bytes]))), "by site");
  }
  const events = await tab.eval<number>("strandline.device().events");
  assert.equal(events, d.events ?? 0, "events");
  if (events > 0) {
    const { figures } = shown;
    // The segments of a file that is cut short are not known, and those of one that was edited may contradict its history.
    const end = d.segments > 0 && !faults ? d.requested_bytes : json("inspect", path, "--at", String(events - 1), "--device", String(d.device)).at.requested_bytes;
    assert.equal(figures["gutter-active"], end, "requested at the end");
    if (d.segments > 0) assert.equal(figures["gutter-reserved"], d.reserved_bytes, "reserved at the end");
    if (d.peak_requested_bytes > 0 && d.peak_requested_event !== null) assert.deepEqual([figures.peak, shown.peak], [d.peak_requested_bytes, d.peak_requested_event], "the peak");
  }
  await tab.eval(`location.hash = "#f=${f}&d=${d.device}&v=allocator&k=${events - 1}"`);
  await tab.until(`strandline.state().figures.heap?.event === ${events - 1} && document.querySelector("#inspector [data-figure=heap-reserved]")`);
  const state = await tab.eval<Record<string, number>>(heap);
  assert.deepEqual([state.reserved, state.allocated! + (state.pending ?? 0)], [d.reserved_bytes, d.active_bytes], "the allocator's state");
  if (!faults) assert.equal(state.stranded! + state.releasable!, d.reserved_bytes - d.active_bytes, "free memory");
}

function corpus(name: string, files: string[], skip: string | false): void {
  test(`the page's figures are inspect's: ${name}`, { skip: !chromium ? "Chromium is missing" : skip, timeout: 1_800_000 }, async (t) => {
    const server = await serve(...files);
    const tab = await browser.open(server.url);
    try {
      await tab.until("window.strandline && localStorage.getItem('strandline-session')");
      const session = `fetch("api/session", { headers: { "Strandline-Session": localStorage.getItem("strandline-session") } }).then(r => r.json())`;
      await tab.until(`${session}.then(s => s.findings === "ready" && s.files.every(f => f.blocks === "ready" || f.blocks === "unknown" || f.state === "failed"))`, 600_000);
      const { files: read } = await tab.eval<any>(session);
      let figures = 0;
      for (const { f, path, state } of read) {
        if (state === "failed") continue;
        await t.test(path.split("/").slice(-2).join("/"), async () => {
          const { devices, notes } = json("inspect", path);
          for (const d of devices) await compare(tab, f, path, d, notes.length > 0);
          figures++;
        });
      }
      assert.ok(figures > 0);
      const want = json("diagnose", ...files).findings;
      await tab.eval(`location.hash = "#v=findings"`);
      await tab.until("strandline.state().figures.findings");
      assert.deepEqual((await tab.state()).figures.findings, want.map((f: any) => ({ kind: f.kind, bytes: f.bytes ?? null, title: f.title })));
      assert.deepEqual(tab.problems, []);
    } finally {
      await tab.close();
      await server.stop();
    }
  });
}

const snapshots = (folder: string): string[] => readdirSync(folder).filter((n) => /\.(pickle|json)(\.gz|\.zst)?$/.test(n)).sort().map((n) => join(folder, n));
const folders = readdirSync(example(""), { withFileTypes: true }).filter((x) => x.isDirectory()).map((x) => x.name);
corpus("examples", folders.sort().flatMap((x) => snapshots(example(x))), false);

const all = recorded("");
const missing = lacks(all) && "STRANDLINE_CORPUS names no folder of recorded snapshots";
corpus("torch", missing ? [] : snapshots(all).filter((n) => n.endsWith(".pickle")), missing);
corpus("wild", missing ? [] : snapshots(join(all, "../wild")), missing);
