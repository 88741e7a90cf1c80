// A model's own config.json: it is dropped on either page, and planned in this browser.
// From one page to the other it is in the storage of the tab, which is sent nowhere.

import { encode, first } from "../plan/state.ts";
import type { Picked } from "../base/drops.ts";
import type { Config } from "./local.ts";

const key = "strandline-model";
const most = 1 << 20; // in bytes; the longest known have some 100 KiB

/** The config.json of a model among files: one that was named, or that of a folder in which no snapshot is. */
export async function configOf(picked: Picked[]): Promise<Config | null> {
  if (picked.some((p) => /\.(pickle|pkl)(\.\w+)?$/.test(p.path))) return null;
  for (const { path, file, named } of picked) {
    if (!(named ? /\.json$/ : /(^|\/)config\.json$/).test(path) || file.size > most) continue;
    const text = await file.text();
    if (isModel(text)) return { path, text };
  }
  return null;
}

function isModel(text: string): boolean {
  try {
    const doc = JSON.parse(text) as Record<string, unknown> | null;
    return typeof doc?.model_type === "string" || Array.isArray(doc?.architectures);
  } catch {
    return false;
  }
}

/** The model that was dropped in this tab, if any. */
export const dropped = (): Config | null => JSON.parse(sessionStorage.getItem(key) ?? "null") as Config | null;

/** Goes to the page of plans, to a model. */
export function planOf(config: Config): void {
  sessionStorage.setItem(key, JSON.stringify(config));
  const there = new URL(`plan.html${encode({ mode: "serve", flags: { ...first.serve, model: config.path } })}`, location.href);
  if (there.pathname !== location.pathname) return location.assign(there);
  history.replaceState(null, "", there);
  location.reload();
}
