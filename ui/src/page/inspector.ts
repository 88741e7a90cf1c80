// The inspector: the cursor, what is pinned, and where it came from.

import { fill, h } from "../base/dom.ts";
import { base, bytes, count, duration, since, utc } from "../base/format.ts";
import { actions, fates } from "../base/names.ts";
import type { Page } from "./page.ts";
import type { Rail } from "../rail/rail.ts";
import { lastAt } from "../whatif/runs.ts";
import { stackList } from "../base/stack.ts";
import type { Alloc, Frame } from "../base/wire.ts";

const row = (name: string, value: string | Node, n?: number): Node[] => [
  h("dt", {}, name),
  h("dd", { "data-bytes": n, title: n === undefined ? undefined : `${n} bytes` }, value),
];

export function inspector(page: Page, rail: Rail, root: HTMLElement): void {
  const { device, event, pinned, s } = page;
  if (!device) return fill(root);
  const out: (Node | string)[] = [];
  if (device.events > 0) {
    const start = device.time?.start_us ?? null;
    out.push(
      h("h2", {}, "cursor"),
      h(
        "dl",
        { id: "cursor" },
        row("event", page.k < 0 ? "before the first" : `${count(page.k)}${event?.action ? ` · ${actions[event.action] ?? event.action}` : ""}`),
        event?.time_us != null && start !== null ? row("time", h("span", { title: utc(event.time_us) }, since(event.time_us - start))) : [],
        event ? row("active", bytes(event.live), event.live) : [],
        event ? row("reserved", bytes(event.reserved), event.reserved) : [],
        event ? row("not in use", h("button", { type: "button", class: "link", "data-key": "unused", title: "See why in the allocator's segments", onclick: () => page.store.set({ view: "allocator" }, true) }, bytes(event.reserved - event.live)), event.reserved - event.live) : [],
      ),
    );
  } else {
    out.push(h("h2", {}, "at the snapshot"), h("dl", {}, row("reserved", bytes(device.end.reserved), device.end.reserved), row("asked for", bytes(device.end.requested), device.end.requested)));
  }
  if (s.view === "whatif" && page.curves.length > 0) {
    out.push(
      h("h2", {}, "reserved here, run by run"),
      h(
        "dl",
        { id: "runs-here" },
        page.curves.map(({ run, number, slot }) => {
          const v = run.steps.bytes[Math.max(0, lastAt(run.steps.event, page.k))]!;
          return [h("dt", {}, h("span", { class: `badge s${slot}` }, String(number))), h("dd", { "data-bytes": v, title: `${v} bytes` }, bytes(v))];
        }),
      ),
    );
  }
  if (pinned && s.alloc !== null) out.push(...allocation(page, rail, pinned));
  else {
    const solo = s.solo.map((k) => page.group(k)).filter((g) => g !== undefined);
    for (const g of solo) {
      out.push(
        h("h2", {}, "site"),
        h("div", { class: "head" }, h("span", { class: `sw s${g.slot}` }), g.label),
        h("dl", {}, row("peak", bytes(g.peak.bytes), g.peak.bytes), row("at event", count(g.peak.event)), row("alive at snapshot", bytes(g.kept), g.kept), row("allocations", count(g.allocations))),
        g.file ? h("p", { class: "mono muted" }, `${g.file}${g.line ? `:${g.line}` : ""}`) : "",
      );
    }
    if (event && event.bytes > 0) {
      out.push(
        h("h2", {}, `this ${actions[event.action] ?? "event"}`),
        h("dl", {}, row(event.action === "oom" ? "asked for" : "size", bytes(event.bytes), event.bytes), event.action === "oom" ? [] : row("address", event.address)),
        h("h2", {}, "stack"),
        stackList(event.stack, "No stack was recorded with this event."),
        event.stack?.length ? h("div", { class: "acts" }, copyButton(event.stack)) : "",
      );
    }
    if (!solo.length && device.events > 0) out.push(h("p", { class: "muted" }, "Click into the picture to pin an allocation; ", h("kbd", {}, "?"), " names the keys."));
  }
  fill(root, ...out);
}

function allocation(page: Page, rail: Rail, a: Alloc): Node[] {
  const go = (k: number): void => {
    page.store.set({ k });
    rail.reveal(k);
  };
  const link = (k: number, key: string): Node => h("button", { type: "button", class: "link", "data-key": `go ${key}`, onclick: () => go(k) }, count(k));
  const group = page.group(a.keys[page.s.g] ?? "");
  const lived = a.born_us !== null && a.died_us !== null ? duration(a.died_us - a.born_us) : null;
  return [
    h("h2", {}, "pinned allocation"),
    h("div", { class: "head" }, h("span", { class: `sw s${group?.slot ?? -1} ${a.fate === "kept" ? "" : "freed"}` }), group?.label ?? ""),
    h(
      "dl",
      { id: "pinned", "data-alloc": a.alloc },
      row("size", bytes(a.bytes), a.bytes),
      a.block !== null && a.block !== a.bytes ? row("block", bytes(a.block), a.block) : [],
      row("born", a.birth < 0 ? "before the recording" : link(a.birth, "birth")),
      row("freed", a.freed === null ? "–" : link(a.freed, "freed")),
      a.death !== null && a.death !== a.freed ? row("completed", link(a.death, "death")) : [],
      row("fate", fates[a.fate]),
      lived ? row("lived", lived) : [],
      row("address", a.address),
      row("pool", `${a.pool}, stream ${a.stream}`),
      a.purpose ? row("purpose", a.purpose) : [],
    ),
    h("h2", {}, "made by"),
    stackList(a.stack, "no stack was recorded"),
    ...(a.free_stack?.length ? [h("h2", {}, "freed by"), stackList(a.free_stack, "")] : []),
    h(
      "div",
      { class: "acts" },
      a.stack ? copyButton(a.stack) : null,
      h("button", { type: "button", class: "link", "data-key": "fit", onclick: () => rail.fit() }, "fit its life"),
      group ? h("button", { type: "button", class: "link", "data-key": "solo", onclick: () => page.store.set({ solo: [group.key] }, true) }, "show its site alone") : null,
    ),
  ];
}

/** Copies the line that a reader would edit. */
export function copyLine(frames: Frame[]): string {
  const f = frames.find((x) => x.origin === "own") ?? frames[0]!;
  const text = `${f.file}:${f.line}`;
  void navigator.clipboard?.writeText(text);
  return `${base(f.file)}:${f.line}`;
}

function copyButton(frames: Frame[]): HTMLElement {
  const b = h("button", { type: "button", class: "link", onclick: () => (b.textContent = `copied ${copyLine(frames)}`) }, "copy file:line");
  return b;
}
