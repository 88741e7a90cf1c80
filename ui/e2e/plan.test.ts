// The page of `strandline plan --page`. What it shows is held against what the
// command prints.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Browser, chromium, type Tab } from "./browser.ts";
import { clean, forceColors, openShows, shoot, startedAgain, styles } from "./checks.ts";
import { json, start, type Server } from "./server.ts";

const skip = chromium ? false : "Chromium is missing";

let browser: Browser;
before(async () => {
  if (!skip) browser = await Browser.start();
});
after(async () => {
  if (!skip) await browser.close();
});

const settled = "window.strandline?.state().settled";

interface Look {
  width?: number;
  height?: number;
  dark?: boolean;
}

/** Opens the page of a command; at its end nothing is on the console, and axe finds nothing. */
function scenario(name: string, args: string[], act: (tab: Tab, server: Server) => Promise<void>, look: Look = {}): void {
  test(name, { skip, timeout: 180_000 }, async () => {
    const server = await start(...args, "--page", "--no-open");
    const tab = await browser.open(server.url, look.width, look.height, look.dark);
    try {
      await tab.until(settled);
      await act(tab, server);
      await clean(tab);
    } finally {
      await shoot(tab, `plan ${name}`);
      await tab.close();
      await server.stop();
    }
  });
}

const field = (flag: string): string => `[data-key='flag ${flag}']`;

/** Types into a field, in place of what is there. */
async function type(tab: Tab, flag: string, text: string): Promise<void> {
  await tab.eval(`(e => (e.focus(), e.select()))(document.querySelector(${JSON.stringify(field(flag))}))`);
  await tab.type(text);
  await tab.until(`${settled} && strandline.state().asked.flags[${JSON.stringify(flag)}] === ${JSON.stringify(text)}`);
}

async function choose(tab: Tab, flag: string, value: string): Promise<void> {
  await tab.eval(`(e => { e.value = ${JSON.stringify(value)}; e.dispatchEvent(new Event("change", { bubbles: true })) })(document.querySelector(${JSON.stringify(field(flag))}))`);
  await tab.until(settled);
}

/** The parts that the page shows: name, low and high. */
const shown = (tab: Tab, table = ".bars"): Promise<[string, number, number][]> =>
  tab.eval(`[...document.querySelector(${JSON.stringify(table)}).querySelectorAll("[data-part]")].map(e => [e.dataset.part, Number(e.dataset.low), Number(e.dataset.high)])`);

const planned = (parts: any[]): [string, number, number][] => parts.map((c) => [c.name, c.low_bytes, c.high_bytes]);

const deepseek = ["plan", "--model", "DeepSeek-R1", "--gpu", "H200", "--gpus", "16"];

scenario("a server's memory", deepseek, async (tab) => {
  const want = json(...deepseek);
  assert.deepEqual(await shown(tab), planned(want.components));
  assert.equal(await tab.eval("document.querySelector('.verdict').dataset.verdict"), want.verdict);
  assert.equal(await tab.eval("document.querySelector('[aria-label=\"Flags to paste\"]').textContent"), want.flags.join(" "));
  assert.equal(await tab.eval("document.querySelector('[aria-label=\"The same in a terminal\"]').textContent"), `strandline ${deepseek.join(" ")}`);
  assert.ok(!(await tab.eval<string>("location.href")).includes("t="), "the secret left the address");
  const ends = await tab.eval<number[]>("[...document.querySelectorAll('.track')].map(t => Math.max(...[...t.querySelectorAll('.bar')].map(b => b.getBoundingClientRect().right)) - t.getBoundingClientRect().right)");
  for (const e of ends) assert.ok(e < 1, "no bar leaves the picture of a set-up that fits");
});

scenario("a program that was started again: the page says so, and keeps what it shows", deepseek, async (tab, server) => {
  const before = await shown(tab);
  await startedAgain(tab, server, [...deepseek, "--page"], async () => {
    await tab.eval(`(e => (e.focus(), e.select()))(document.querySelector(${JSON.stringify(field("gpus"))}))`);
    await tab.type("8");
  });
  assert.match(await tab.eval("document.getElementById('banner').textContent"), /What is here stays\.$/);
  assert.deepEqual(await shown(tab), before);
  assert.ok(await tab.eval("!!document.querySelector('.stale')"), "and marks that it is not of the fields");
});

scenario("typing changes the bars", deepseek, async (tab) => {
  const before = await shown(tab);
  await type(tab, "gpus", "8");
  const want = json("plan", "--model", "DeepSeek-R1", "--gpu", "H200", "--gpus", "8");
  assert.notDeepEqual(planned(want.components), before);
  assert.deepEqual(await shown(tab), planned(want.components));
  await choose(tab, "kv-dtype", "fp8");
  await type(tab, "max-model-len", "32768");
  const then = json("plan", "--model", "DeepSeek-R1", "--gpu", "H200", "--gpus", "8", "--kv-dtype", "fp8", "--max-model-len", "32768");
  assert.deepEqual(await shown(tab), planned(then.components));
  assert.equal((await tab.state()).plan.kv.tokens[1], then.kv.tokens[1]);
  // many values in a row, each before the answer to the one before: the last one's plan stays
  await tab.eval(`(() => {
    const e = document.querySelector(${JSON.stringify(field("max-model-len"))});
    for (let n = 30000; n < 30020; n++) {
      e.value = n;
      e.dispatchEvent(new Event("input", { bubbles: true }));
    }
  })()`);
  await tab.until(settled);
  const last = json("plan", "--model", "DeepSeek-R1", "--gpu", "H200", "--gpus", "8", "--kv-dtype", "fp8", "--max-model-len", "30019");
  assert.equal((await tab.state()).asked.flags["max-model-len"], "30019");
  assert.deepEqual(await shown(tab), planned(last.components));
});

scenario("what cannot be is reported, and the last plan stays", deepseek, async (tab) => {
  const before = await shown(tab);
  await tab.eval(`(e => (e.focus(), e.select()))(document.querySelector(${JSON.stringify(field("tp"))}))`);
  await tab.type("7");
  await tab.until("!document.getElementById('banner').hidden");
  assert.match(await tab.eval("document.getElementById('banner').textContent"), /16 GPUs|--tp/);
  assert.deepEqual(await shown(tab), before);
  assert.equal(await tab.eval("document.activeElement.getAttribute('aria-invalid')"), "true");
  await type(tab, "tp", "8");
  assert.equal(await tab.eval("document.getElementById('banner').hidden"), true);
  await tab.until("!document.querySelector('#answer.stale')");
});

const rl = ["plan", "rl", "--model", "Qwen2.5-32B", "--gpu", "H200", "--gpus", "8", "--rollout-tp", "4", "--seq", "8192"];

scenario("a step of reinforcement learning", rl, async (tab) => {
  const want = json(...rl);
  const phases = await tab.eval("[...document.querySelectorAll('.way')].map(w => [...w.querySelectorAll('[data-phase]')].map(p => [p.dataset.phase, Number(p.dataset.low), Number(p.dataset.high)]))");
  assert.deepEqual(phases, want.ways.map((w: any) => planned(w.phases)));
  const fractions = await tab.eval("[...document.querySelectorAll('[data-fraction]')].map(e => Number(e.dataset.fraction))");
  assert.deepEqual(fractions, want.ways.map((w: any) => w.largest_memory_fraction));
  // What is over the line in the picture is over the GPU's end in the figures.
  const over = await tab.eval<boolean[]>(`[...document.querySelectorAll('.phase')].map(p => {
    const end = p.parentElement.querySelector(':scope > .end').getBoundingClientRect().top;
    return Math.min(...[...p.querySelectorAll('.bar')].map(b => b.getBoundingClientRect().top)) < end - 1;
  })`);
  const beyond = want.ways.flatMap((w: any) => w.phases.map((p: any) => p.high_bytes - want.total_bytes));
  over.forEach((o, i) => Math.abs(beyond[i]) > want.total_bytes / 100 && assert.equal(o, beyond[i] > 0));
  await tab.eval("document.querySelector('[data-phase=update]').focus()");
  const tip = await tab.eval<string>("document.getElementById('tooltip').innerText");
  for (const c of want.ways[0].phases[2].components) assert.ok(tip.includes(c.name), `${c.name} is shown`);
  await type(tab, "gpus", "16");
  assert.deepEqual((await tab.state()).plan, json(...rl.map((a) => (a === "8" ? "16" : a))));
});

scenario("a training step, found by keys alone", ["plan", "--model", "Llama-3.1-8B", "--gpu", "H100", "--gpus", "8"], async (tab) => {
  await tab.key("2");
  await tab.until(`${settled} && strandline.state().asked.mode === "train"`);
  const want = json("plan", "train", "--model", "Llama-3.1-8B", "--gpu", "H100", "--gpus", "8");
  assert.deepEqual(await shown(tab), planned(want.moments[want.largest].components));
  await tab.key("m");
  assert.equal(await tab.eval("document.activeElement.dataset.key"), "flag model");
  await tab.key("Escape");
  await tab.key("?");
  assert.ok(await tab.eval("document.getElementById('keys').open"));
  await tab.key("Escape");
  await tab.until("!document.getElementById('keys').open");
  await choose(tab, "checkpointing", "none");
  const none = json("plan", "train", "--model", "Llama-3.1-8B", "--gpu", "H100", "--gpus", "8", "--checkpointing", "none");
  assert.deepEqual((await tab.state()).plan, none);
  await tab.eval("history.back()");
  await tab.until(`${settled} && strandline.state().asked.mode === "serve"`);
});

scenario("the address holds the set-up", rl, async (tab, server) => {
  await type(tab, "seq", "2048");
  await tab.until("location.hash.includes('seq=2048')");
  const hash = await tab.eval<string>("location.hash");
  const { asked, plan } = await tab.state();
  const other = await browser.open(server.url.replace(/#.*/, hash));
  await other.until(settled);
  const there = await other.state();
  assert.deepEqual([there.asked, there.plan], [asked, plan]);
  await other.close();
});

scenario("the most that fits", ["plan", "--model", "Qwen3-32B", "--gpu", "H100", "--gpus", "2", "--solve", "requests"], async (tab) => {
  const want = json("plan", "--model", "Qwen3-32B", "--gpu", "H100", "--gpus", "2", "--solve", "requests");
  assert.deepEqual(await tab.eval("[...document.querySelectorAll('[data-solved] [data-value]')].map(e => Number(e.dataset.value))"), want.answers.map((a: any) => a.value));
  await tab.click("[data-key='format fp8']");
  await tab.until(`${settled} && strandline.state().asked.flags.quant === "fp8"`);
});

scenario("dark", deepseek, async () => {}, { dark: true });
scenario("a step in the dark", rl, async () => {}, { dark: true });
scenario("training in the dark, and what cannot be planned", ["plan", "train", "--model", "Qwen2.5-7B", "--gpu", "RTX-4090"], async (tab) => {
  await clean(tab);
  await tab.eval("(e => { e.value = 'No-Such-Model'; e.dispatchEvent(new Event('input', { bubbles: true })) })(document.querySelector(\"[data-key='flag model']\"))");
  await tab.until("/No-Such-Model/.test(document.getElementById('banner').textContent) && document.querySelector('.stale')");
}, { dark: true });
for (const [name, args] of [["a server", deepseek], ["a step", rl]] as const) {
  scenario(`forced colors keep the bars of ${name}, and show what is planned`, args, async (tab) => {
    await forceColors(tab);
    await openShows(tab);
    const bars = await styles(tab, "#answer .bar:not(.may)", "backgroundColor");
    const page = (await styles(tab, "#answer", "backgroundColor"))[0]!;
    assert.ok(bars.length > 2 && !bars.includes(page), `bars have ${bars} on ${page}`);
    await clean(tab);
  });
}
scenario("narrow", rl, async (tab) => {
  assert.ok(await tab.eval("document.documentElement.scrollWidth <= innerWidth && document.getElementById('answer').scrollWidth <= document.getElementById('answer').clientWidth"));
}, { width: 1000, height: 700 });

/** Labels that stand on each other, of one axis or row. */
const collisions = `["#answer .axis div", "#answer .scale", "#answer .phases"].flatMap(s => [...document.querySelectorAll(s)]).flatMap(axis => {
  const labels = [...axis.querySelectorAll("i, .name")].filter(e => e.textContent && e.offsetParent).map(e => [e.textContent, e.getBoundingClientRect()]);
  return labels.flatMap(([a, x], n) => labels.slice(n + 1).filter(([, y]) => x.left < y.right - 1 && y.left < x.right - 1 && x.top < y.bottom - 1 && y.top < x.bottom - 1).map(([b]) => a + " on " + b));
})`;

for (const [name, args] of [["a server's plan", deepseek], ["a step's plan", rl]] as const) {
  for (const width of [900, 1400]) {
    scenario(`labels of ${name} do not collide at ${width} pixels`, args, async (tab) => {
      assert.ok(await tab.eval<number>("document.querySelectorAll('#answer .axis i, #answer .scale i').length") > 3, "there are labels");
      assert.deepEqual(await tab.eval(collisions), []);
    }, { width });
  }
}
