// The page of `strandline view RECORDING`: how memory grew while `strandline
// trace` watched, and the stacks behind it. All figures are the program's.

import { fresh, link } from "../base/ask.ts";
import { byId, fill, h } from "../base/dom.ts";
import { takeDrops } from "../base/drops.ts";
import { bytes } from "../base/format.ts";
import { listen } from "../base/keys.ts";
import { palette } from "../base/share.ts";
import { theme } from "../base/theme.ts";
import { heldBy, time } from "./bands.ts";
import { picture, root } from "./elements.ts";
import { findings } from "./findings.ts";
import { banner, head, tabs, tools } from "./frame.ts";
import { gpu } from "./gpu.ts";
import { inspector } from "./inspector.ts";
import { commands, give, help, keyTable } from "./keys.ts";
import { at, doc, found, fromAddress, hooks, layers, load, s, set, slice, whole } from "./model.ts";
import { icicle, stacks, timeline } from "./places.ts";
import type { Recording, Window } from "./wire.ts";

const live = byId("live");

let drawing = 0;

/** Draws once, however much changes before the next frame. */
function draw(): void {
  cancelAnimationFrame(drawing);
  drawing = requestAnimationFrame(() => {
    drawing = 0;
    picture.draw({ doc, slice, whole, layers, s, found, set });
    tabs();
    tools();
    view();
    inspector();
  });
}

let saying = 0;

/** Announces to screen readers where the cursor is, once the hand rests. */
function announce(): void {
  clearTimeout(saying);
  saying = window.setTimeout(() => {
    if (!whole.n) return;
    const { slice, column } = at(s.k);
    const group = layers.groups.find((g) => g.key === s.sel);
    live.textContent = `${time(slice.of.seconds[column]!)}: ${bytes(slice.of.live_bytes[column]!)} mapped${group ? `, ${group.label} ${bytes(heldBy(group, slice, column).bytes)}` : ""}`;
  }, 500);
}

function view(): void {
  if (!whole.n && s.view !== "findings") return fill(root, h("p", { class: "note" }, "There is no moment in this recording: it ended before the first one."));
  if (s.view === "timeline") timeline();
  else if (s.view === "stacks") stacks();
  else if (s.view === "gpu") gpu();
  else findings();
}

async function begin(): Promise<void> {
  takeDrops(banner);
  hooks.changed = () => (draw(), announce());
  hooks.draw = draw;
  hooks.failed = (why) => link.lost || banner(why);
  link.changed = () => banner(link.lost ? `${link.why} What is here stays.` : "");
  const [answer, moments] = await Promise.all([fresh<Recording>("recording"), fresh<Window>("window")]);
  load(answer, moments);
  head();
  const field = byId<HTMLInputElement>("search");
  field.addEventListener("input", () => set({ q: field.value }));
  byId("help").addEventListener("click", help);
  byId("export").addEventListener("click", give);
  const go = (): void => {
    fromAddress();
    field.value = s.q;
  };
  addEventListener("popstate", go);
  listen(keyTable);
  palette(commands);
  new ResizeObserver(() => s.view === "stacks" && icicle.paint()).observe(root);
  go();
  theme(draw);
}

declare global {
  interface Window {
    strandline: unknown;
  }
}

window.strandline = { state: () => ({ s, doc, picture: doc ? picture.state() : null, settled: doc !== undefined && drawing === 0, columns: slice?.of.moment }) };

begin().catch((e: Error) => banner(e.message));
