// What all scenarios look at.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Tab } from "./browser.ts";
import { json } from "./server.ts";

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

/** The bytes that an element shows. */
export const figure = (tab: Tab, selector: string): Promise<number> => tab.eval(`Number(document.querySelector(${JSON.stringify(selector)})?.dataset.bytes ?? NaN)`);

/** What inspect prints about a file's first device. */
export const device = (file: string): any => json("inspect", file).devices[0];
