// What all scenarios look at.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pause, type Tab } from "./browser.ts";
import { json, start, type Server } from "./server.ts";

const axe = readFileSync("node_modules/axe-core/axe.min.js", "utf8");

/** No console message, no request to elsewhere, nothing that axe finds. */
export async function clean(tab: Tab): Promise<void> {
  const found = await tab.eval<{ id: string; nodes: { target: string[]; failureSummary: string }[] }[]>(`${axe}; axe.run(document, { resultTypes: ["violations"] }).then(r => r.violations)`);
  assert.deepEqual(found.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target.join(" ")} (${n.failureSummary})`).join("; ")}`), []);
  assert.deepEqual(tab.problems, []);
}

/** Keeps a picture of the page, if STRANDLINE_SHOTS names a folder for them. */
export async function shoot(tab: Tab, name: string): Promise<void> {
  const shots = process.env.STRANDLINE_SHOTS;
  if (shots) await tab.screenshot(join(shots, `${name.replace(/[^a-z0-9]+/gi, "-")}.png`));
}

/** That so many runs and the least capacity of each are there, which a slow machine looks for on a click only. */
export const fitted = (n: number, and = "true"): string =>
  `(document.querySelector("[data-key^='fits ']")?.click(), (r => r?.length === ${n} && r.every(x => x.drawn < 0 || x.fits && ${and}))(strandline.state().figures.runs))`;

/** The bytes that an element shows. */
export const figure = (tab: Tab, selector: string): Promise<number> => tab.eval(`Number(document.querySelector(${JSON.stringify(selector)})?.dataset.bytes ?? NaN)`);

/** What inspect prints about a file's first device. */
export const device = (file: string): any => json("inspect", file).devices[0];

/** Shows the page in a system's own few colors. */
export async function forceColors(tab: Tab): Promise<void> {
  await tab.send("Emulation.setEmulatedMedia", { features: [{ name: "forced-colors", value: "active" }] });
  await tab.until("matchMedia('(forced-colors: active)').matches");
}

/** What a style of all elements that match is. */
export const styles = (tab: Tab, selector: string, what: string): Promise<string[]> => tab.eval(`[...document.querySelectorAll(${JSON.stringify(selector)})].map(e => getComputedStyle(e).${what})`);

/** The view that is open is told from the others where colors are the system's. */
export async function openShows(tab: Tab): Promise<void> {
  const [open] = await styles(tab, "#tabs [aria-current]", "borderBottomColor");
  assert.ok(open && !(await styles(tab, "#tabs button:not([aria-current])", "borderBottomColor")).includes(open), `the open view has ${open}`);
}

/** Ends a program and starts it again at the same port: once the page asks, it must say so, and ask no more by itself. */
export async function startedAgain(tab: Tab, server: Server, command: string[], ask: () => Promise<void>): Promise<void> {
  await server.stop();
  const again = await start(...command, "--no-open", "--listen", new URL(server.url).port);
  try {
    await ask();
    await tab.until("/an earlier run of strandline.*printed\\./.test(document.getElementById('banner').textContent)");
    assert.doesNotMatch(await tab.eval("document.body.innerText"), /403/);
    await tab.until("!document.getElementById('banner').hidden");
    const refused = (): number => tab.problems.filter((p) => /403/.test(p)).length;
    for (const end = Date.now() + 60_000; !refused() && Date.now() < end; ) await pause(25);
    const asked = tab.requests.length;
    await pause(2500); // two turns of a page that follows
    assert.ok(tab.requests.length <= asked + 1, `${tab.requests.length - asked} questions to a program that never answers`);
    tab.problems.splice(0, tab.problems.length, ...tab.problems.filter((p) => !/403 \(Forbidden\)|Failed to load resource: net::ERR_/.test(p)));
  } finally {
    await again.stop();
  }
}
