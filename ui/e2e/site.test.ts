// The static site: the page with the engine in a worker, behind a server that
// gives files and nothing else.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Browser, chromium, pause, type Tab } from "./browser.ts";
import { clean, device, figure, fitted, shoot } from "./checks.ts";
import { frame, framed, GiB, MiB, process, sample } from "./made.ts";
import { example, host, json, site } from "./server.ts";

const skip = !chromium ? "Chromium is missing" : !site ? "STRANDLINE_SITE names no folder with the built site" : false;
const leak = [2, 3, 4].map((n) => example(`image-leak/step-${n}.pickle`));
const last = leak[2]!;
const folder = mkdtempSync(join(tmpdir(), "strandline-site-"));

let browser: Browser;
let server: Awaited<ReturnType<typeof host>>;
before(async () => {
  if (skip) return;
  browser = await Browser.start();
  server = await host(site!);
});
after(async () => {
  rmSync(folder, { recursive: true });
  if (skip) return;
  await browser.close();
  server.stop();
});

const idle = "document.querySelector('#drop [role=status]')?.textContent === ''";

/** Opens the site, and asserts that once it is loaded it asks nobody for anything. */
function scenario(name: string, act: (tab: Tab) => Promise<void>): void {
  test(name, { skip, timeout: 180_000 }, async () => {
    const tab = await browser.open(server.url);
    try {
      await tab.until(idle);
      const asked = server.asked.length;
      await act(tab);
      await clean(tab);
      assert.deepEqual(server.asked.slice(asked), [], "no request after loading");
      assert.deepEqual(new Set(tab.requests.map((r) => new URL(r).pathname)), new Set(["/", "/app.css", "/app.js", "/site.js", "/worker.js", "/strandline.wasm.deflate"]));
    } finally {
      await shoot(tab, name);
      await tab.close();
    }
  });
}

scenario("the site begins by asking for files", async (tab) => {
  assert.match(await tab.eval("document.getElementById('drop').innerText"), /sent nowhere/);
});

scenario("a dropped file shows what inspect prints", async (tab) => {
  const d = device(last);
  await tab.drop(last);
  await tab.settled();
  assert.equal(await figure(tab, "#rail .flag"), d.peak_requested_bytes);
  assert.equal(await figure(tab, "[data-figure=gutter-active]"), d.requested_bytes);
  assert.equal(await figure(tab, "[data-figure=gutter-reserved]"), d.reserved_bytes);
  const at = json("inspect", last, "--at", String(d.peak_requested_event)).at;
  const { figures } = await tab.state();
  assert.equal(figures.rows.reduce((n: number, r: any) => n + r.bytes, figures.more.bytes), at.requested_bytes);
  assert.equal(figures.rows[0].bytes, at.sites[0].bytes);
  for (let i = 0; i < 9; i++) await tab.key("w");
  await tab.settled();
  assert.equal((await tab.state()).picture.kind, "alloc");
  await tab.key("End");
  await tab.click("[data-key='view allocator']");
  await tab.until(`strandline.state().figures.heap?.event === ${d.events - 1}`);
  const { heap } = (await tab.state()).figures;
  assert.deepEqual([heap.reserved, heap.allocated, heap.segments], [d.reserved_bytes, d.allocated_bytes, d.segments]);
  await tab.until("document.querySelector(\"[data-key='u allocated']:not(:disabled)\")");
});

scenario("a table is saved without a server", async (tab) => {
  await tab.drop(last);
  await tab.settled();
  await tab.eval("URL.createObjectURL = (make => blob => { blob.text().then(text => window.saved = text); return make.call(URL, blob) })(URL.createObjectURL)");
  await tab.send("Browser.setDownloadBehavior", { behavior: "deny" });
  await tab.click("[data-key=csv]");
  await tab.until("window.saved");
  const rows = (await tab.eval<string>("saved")).trimEnd().split("\n");
  assert.equal(rows.length - 1, (await tab.state()).figures.rows.length);
});

scenario("several files are compared and judged", async (tab) => {
  const want = json("diagnose", ...leak).findings;
  await tab.drop(...leak);
  await tab.until("document.querySelector(\"[data-key='view findings']\")");
  await tab.click("[data-key='view findings']");
  await tab.until("strandline.state().figures.findings", 20000);
  assert.deepEqual((await tab.state()).figures.findings, want.map((f: any) => ({ kind: f.kind, bytes: f.bytes ?? null, title: f.title })));
  await tab.click("[data-key='view compare']");
  await tab.until("strandline.state().figures.compare");
  assert.equal((await tab.state()).figures.compare[0].sites[0].bytes_per_step, json("compare", ...leak).groups[0].sites[0].bytes_per_step);
});

scenario("What if runs under settings of one's own, without a server", async (tab) => {
  const file = example("varied-lengths/default.pickle.gz");
  await tab.drop(file);
  await tab.settled();
  await tab.click("[data-key='view whatif']");
  for (const [key, text] of [["conf", "max_split_size_mb:128"], ["capacity", "3GiB"]] as const) {
    await tab.until(`document.querySelector("[data-key='${key}']")`);
    await tab.eval(`(e => { e.focus(); e.select(); })(document.querySelector("[data-key='${key}']"))`);
    await tab.type(text);
    for (const search of ["true", "false"]) { // the page is drawn again while one types
      await tab.eval(`document.querySelector("[data-key='search']").click()`);
      await tab.until(`document.querySelector("[data-key='search']").ariaPressed === "${search}"`);
    }
    await tab.key("Enter");
    await tab.eval("document.activeElement.blur()");
  }
  await tab.until(fitted(3, "x.capacity_bytes === 3221225472"));
  const [own] = json("simulate", file, "--set", "max_split_size_mb:128", "--capacity", "3GiB").runs;
  const run = (await tab.state()).figures.runs[2];
  assert.deepEqual([run.settings, run.peak_reserved_bytes, run.fits], [own.settings, own.devices[0].peak_reserved_bytes, own.devices[0].smallest_capacity_bytes]);
});

scenario("files can be picked", async (tab) => {
  const { root } = await tab.send("DOM.getDocument");
  const { nodeId } = await tab.send("DOM.querySelector", { nodeId: root.nodeId, selector: "#drop input" });
  await tab.send("DOM.setFileInputFiles", { nodeId, files: [last] });
  await tab.settled();
  assert.equal(await figure(tab, "#rail .flag"), device(last).peak_requested_bytes);
  await tab.click("#other");
  await tab.until(idle);
  server.asked.length = 0;
});

scenario("a folder is read, and what is not a snapshot in it is left out", async (tab) => {
  await tab.drop(example("image-leak"));
  await tab.settled();
  assert.deepEqual(await tab.eval("[...document.querySelector('[data-key=file]').options].map(o => o.textContent)"), leak.map((_, i) => `step-${i + 2}.pickle`));
});

const torn = join(folder, "torn.pickle");
writeFileSync(torn, readFileSync(last).subarray(0, Math.floor(readFileSync(last).length * 0.8)));

scenario("a torn file on the site says so, and shows what is left", async (tab) => {
  await tab.drop(torn);
  await tab.settled();
  assert.match(await tab.eval("document.getElementById('banner').textContent"), /Read in part/);
  assert.equal(await tab.eval("strandline.device().events"), device(torn).events);
});

const none = join(folder, "notes.pickle");
writeFileSync(none, "this is not a pickle");

scenario("what is not a snapshot is named", async (tab) => {
  await tab.drop(none);
  await tab.until("/notes\\.pickle/.test(document.querySelector('#rail .empty')?.textContent)");
});

const empty = join(folder, "empty");
mkdirSync(empty);
writeFileSync(join(empty, "notes.txt"), "nothing here");

scenario("a folder without a snapshot says so", async (tab) => {
  await tab.drop(empty);
  await tab.until("!document.getElementById('banner').hidden");
});

scenario("the worker may not call out either", async (tab) => {
  const worker = new Promise<string>((done) => tab.browser.on((method, p, session) => method === "Target.attachedToTarget" && session === tab.session && done(p.sessionId)));
  await tab.send("Target.setAutoAttach", { autoAttach: true, waitForDebuggerOnStart: false, flatten: true });
  const session = await worker;
  const elsewhere = await host(site!);
  const { result } = await tab.browser.send("Runtime.evaluate", { expression: `fetch("${elsewhere.url}app.js").then(() => "answered", () => "refused")`, awaitPromise: true, returnByValue: true }, session);
  await pause(50);
  elsewhere.stop();
  assert.equal(result.value, "refused");
  assert.deepEqual(elsewhere.asked, []);
  for (const p of tab.problems.splice(0)) assert.match(p, /Content Security Policy/);
});

test("the form of plans is answered in the browser, with what the command prints", { skip, timeout: 180_000 }, async () => {
  const tab = await browser.open(server.url, 1440, 1000);
  try {
    await tab.until(idle);
    await tab.click("#drop a[href='plan.html']");
    const settled = "window.strandline?.state().settled";
    await tab.until(settled);
    const asked = server.asked.length;
    for (const args of [
      ["--model", "DeepSeek-R1", "--gpu", "H200", "--gpus", "16", "--formats"],
      ["--model", "Llama-3.3-70B", "--gpu", "L4", "--formats"],
      ["train", "--model", "Qwen2.5-7B", "--gpu", "RTX-4090", "--lora", "16", "--lora-base", "nf4"],
      ["rl", "--model", "Qwen2.5-32B", "--gpu", "H200", "--gpus", "8", "--rollout-tp", "4", "--seq", "8192"],
    ]) {
      const mode = args[0]!.startsWith("--") ? "serve" : args[0]!;
      const words = args.filter((w) => w !== mode && w !== "--formats");
      const q = new URLSearchParams({ mode });
      for (let i = 0; i < words.length; i += 2) q.set(words[i]!.slice(2), words[i + 1]!);
      await tab.eval(`history.pushState(null, "", "#${q}"), dispatchEvent(new PopStateEvent("popstate"))`);
      await tab.until(`${settled} && strandline.state().shown.mode === "${mode}" && strandline.state().shown.flags.model === "${q.get("model")}"`);
      assert.deepEqual((await tab.state()).plan, json("plan", ...args));
      await clean(tab);
    }
    await tab.eval("(e => { e.value = 'No-Such-Model'; e.dispatchEvent(new Event('input', { bubbles: true })) })(document.querySelector(\"[data-key='flag model']\"))");
    await tab.until("/No-Such-Model/.test(document.getElementById('banner').textContent)");
    assert.deepEqual(server.asked.slice(asked), [], "no request after loading");
    await shoot(tab, "site plan");
    await tab.click("#top a[href='./']");
    await tab.until(idle);
  } finally {
    await tab.close();
  }
});

test("a model's own config.json is planned in the browser, with what the command prints", { skip, timeout: 180_000 }, async () => {
  const dir = join(folder, "mine");
  mkdirSync(dir);
  const config = join(dir, "config.json");
  writeFileSync(config, JSON.stringify({ architectures: ["Qwen2ForCausalLM"], model_type: "qwen2", hidden_size: 2560, intermediate_size: 6912, num_hidden_layers: 30, num_attention_heads: 20, num_key_value_heads: 4, vocab_size: 151936, max_position_embeddings: 32768, tie_word_embeddings: true, torch_dtype: "bfloat16" }));
  const own = (path: string) => {
    const plan = json("plan", "--model", config, "--gpu", "H100", "--formats");
    assert.equal(plan.model.name, config);
    return { ...plan, model: { ...plan.model, name: path } };
  };
  const tab = await browser.open(server.url, 1440, 1000);
  const settled = "window.strandline?.state().settled && document.title.includes('config.json')";
  try {
    await tab.until(idle);
    await tab.drop(dir); // a folder as published models have it, here without weights
    await tab.until(settled);
    assert.deepEqual((await tab.state()).plan, own("mine/config.json"));
    await clean(tab);
    await shoot(tab, "site own model");
    await tab.drop(config); // the same on the page of plans
    await tab.until(`${settled} && strandline.state().shown.flags.model === "config.json"`);
    assert.deepEqual((await tab.state()).plan, own("config.json"));
    await tab.drop(last);
    await tab.until("/step-4.pickle is not the config.json of a model/.test(document.getElementById('banner').textContent)");
    await clean(tab);
  } finally {
    await tab.close();
  }
});

const trace = example("munmap-leak/server.trace");

test("the recording of a trace has a page of its own, by the same engine", { skip, timeout: 60_000 }, async () => {
  const tab = await browser.open(server.url);
  await tab.until(idle);
  await tab.drop(trace, last);
  await tab.until("/viewed on its own/.test(document.querySelector('#drop [role=status]').textContent)");
  const asked = server.asked.length;
  await tab.drop(trace);
  await tab.until("window.strandline?.state().settled");
  const want = json("diagnose", trace);
  const { doc } = await tab.state();
  assert.deepEqual(doc.findings.map((f: any) => [f.title, f.bytes]), want.findings.map((f: any) => [f.title, f.bytes]));
  assert.equal(await figure(tab, "[data-figure=held]"), want.findings[0].bytes);
  for (const key of ["2", "3", "1", "Home", "?", "Escape"]) await tab.key(key);
  await tab.until("strandline.state().settled && strandline.state().picture.column === 0");
  await clean(tab);
  assert.deepEqual(server.asked.slice(asked).filter((p) => p !== "/app.css" && p !== "/site.js").sort(), ["/recording.css", "/recording.html", "/recording.js"], "only the page's own files are asked for");
  await shoot(tab, "site recording");
  await tab.click("#other");
  await tab.until(idle);
  const [head, ...lines] = readFileSync(trace, "utf8").trimEnd().split("\n").map((l) => JSON.parse(l));
  const packed = join(folder, "packed.trace");
  writeFileSync(packed, framed("trace", [{ ...head, schema: "strandline.recording/3", of: "trace" }, ...lines]));
  await tab.drop(packed);
  await tab.until("window.strandline?.state().settled");
  assert.equal(await figure(tab, "[data-figure=held]"), want.findings[0].bytes);
  await tab.close();
  const cut = join(folder, "other.trace");
  writeFileSync(cut, '{"schema":"strandline.recording/99","pid":1}\n');
  const other = await browser.open(server.url);
  await other.until(idle);
  await other.drop(cut);
  await other.until("/not a recording of strandline trace/.test(document.querySelector('#drop [role=status]').textContent)");
  await other.close();
});

test("all that diagnose judges is dropped on any page, in place of what it shows", { skip, timeout: 120_000 }, async () => {
  const dir = join(folder, "kinds");
  mkdirSync(dir);
  const made = (name: string, text: string | Buffer): string => (writeFileSync(join(dir, name), text), join(dir, name));
  const log = made("job.log", "step 1\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.00 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.\n");
  const watched = made("node.strandline", frame(Array.from({ length: 200 }, (_, k) => sample(k, [process({ pid: 7, host: [GiB + k * 8 * MiB, 0, 0] })]))));
  const python = made("train.py", "import os\nprint(1)\n");
  const tab = await browser.open(server.url);
  const titles = (page: string): string => `JSON.stringify(strandline.state().${page}?.findings.map(f => f.title))`;
  try {
    await tab.until(idle);
    for (const [file, shown] of [[log, titles("figures")], [watched, titles("doc")], [last, titles("figures")], [trace, titles("doc")], [log, titles("figures")], [example("image-leak"), titles("figures")]] as const) {
      const want = json("diagnose", file).findings.map((f: any) => f.title);
      await tab.drop(file);
      await tab.until(`window.strandline && ${shown} === ${JSON.stringify(JSON.stringify(want))}`);
      await clean(tab);
    }
    await tab.drop(python);
    await tab.until("/train.py: it is a text of 2 lines/.test(document.body.innerText)");
    await tab.drop(trace, last);
    await tab.until("/viewed on its own/.test(document.getElementById('banner').textContent)");
  } finally {
    await tab.close();
  }
});
