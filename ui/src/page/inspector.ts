// The inspector: what is pinned or what the cursor's event did, its stack first,
// and the figures at the cursor.

import { textLink } from "../base/controls.ts";
import { copyButton, fill, h, swatch } from "../base/dom.ts";
import { bytes, count, duration, plural, since, utc } from "../base/format.ts";
import { actions, fates, purposes } from "../base/names.ts";
import { stackList } from "../base/stack.ts";
import { measureName, noStack, row } from "../base/terms.ts";
import type { Alloc, Event, Frame, Group } from "../base/wire.ts";
import { fit, goTo } from "../rail/moves.ts";
import type { Scene } from "../rail/scene.ts";
import { lastAt } from "../base/scale.ts";
import type { Page } from "../session/page.ts";

/** Draws what stands below the card: what is pinned, or what the reader put the cursor on, and the figures there. */
export function inspector(page: Page, scene: Scene, root: HTMLElement): void {
  const { device, pinned, s } = page;
  if (!device) return fill(root);
  // Figures of another event than the cursor's would be wrong under its number.
  const event = page.event?.event === page.k ? page.event : null;
  const solo = s.solo.map((k) => page.group(k)).filter((g) => g !== undefined);
  fill(
    root,
    s.alloc !== null ? (pinned ? allocation(page, scene, pinned) : [h("h2", {}, "pinned allocation"), h("p", { class: "muted" }, "…")]) : page.carded && page.finding >= 0 ? [] : [solo.map(site), event?.bytes ? happened(event) : []],
    device.events > 0 ? cursor(page, event) : atSnapshot(page),
    s.view === "whatif" && page.curves.length > 0 ? runsHere(page) : [],
    s.alloc === null ? thisFile(page) : [],
    s.alloc === null && s.view !== "whatif" && !solo.length && device.events > 0 ? h("p", { class: "muted hint" }, "Click a band to see the allocation and its stack; ", h("kbd", {}, "?"), " names the keys and the terms.") : null,
  );
}

/** The figures after the cursor's event; dashes until they are known. */
function cursor(page: Page, event: Event | null): Node[] {
  const start = page.device!.time?.start_us ?? null;
  const live = event && (page.segments ? event.requested : event.live);
  const unused = event && event.reserved - live!;
  const figure = (name: string, n: number | null): Node[] => row(name, bytes(n), n ?? undefined);
  return [
    h("h2", {}, "after the cursor's event"),
    h(
      "dl",
      { id: "cursor", "aria-busy": event ? undefined : "true" },
      row("event", page.k < 0 ? "before the first" : `${count(page.k)}${event?.action ? ` · ${actions[event.action] ?? event.action}` : ""}`),
      event ? texts(event) : [],
      start === null ? [] : row("time", event?.time_us == null ? "–" : h("span", { title: utc(event.time_us) }, since(event.time_us - start))),
      figure(measureName[page.segments ? "requested" : page.u], live),
      figure("reserved", event && event.reserved),
      row("unused", unused === null ? "–" : textLink("unused", bytes(unused), () => page.store.set({ view: "allocator" }, true), { title: "See why in the allocator's segments" }), unused ?? undefined),
    ),
  ];
}

function atSnapshot({ device }: Page): Node[] {
  const { end } = device!;
  return [h("h2", {}, "at the snapshot"), h("dl", {}, row("reserved", bytes(end.reserved), end.reserved), row("requested", bytes(end.requested), end.requested))];
}

function runsHere(page: Page): Node[] {
  return [
    h("h2", {}, "reserved here, run by run"),
    h(
      "dl",
      { id: "runs-here" },
      page.curves.map(({ run, number, slot }) => {
        const v = run.steps.bytes[Math.max(0, lastAt(run.steps.event, page.k))]!;
        return [h("dt", {}, h("span", { class: `badge s${slot}` }, String(number))), h("dd", { "data-bytes": v, title: `${v} bytes` }, bytes(v))];
      }),
    ),
  ];
}

/** What the file records about how it was made. */
function thisFile({ device }: Page): Node[] {
  const { torch_version: version, settings, most_events: most, capacity } = device!;
  if (!version) return [];
  return [
    h("h2", {}, "this file"),
    h(
      "dl",
      { id: "recorded" },
      row("PyTorch", version),
      row("settings", settings === null ? "not recorded" : settings || "the defaults"),
      most === null ? [] : row("recorded at most", plural(most, "event")),
      capacity == null ? [] : row("capacity", bytes(capacity), capacity),
    ),
  ];
}

/** The texts that the program or the compiler gave to an event. */
const texts = (of: Alloc | Event): Node[] => [...(of.user_metadata ? row("metadata", of.user_metadata) : []), ...(of.compile_context && of.compile_context !== "N/A" ? row("compile context", of.compile_context) : [])];

/** A site that is shown alone. */
function site(g: Group): Node[] {
  return [
    h("h2", {}, "site"),
    h("div", { class: "head" }, swatch(g.slot), g.label),
    ...(g.file ? [h("p", { class: "path" }, `${g.file}${g.line ? `:${g.line}` : ""}`)] : []),
    h("dl", {}, row("site peak", bytes(g.peak.bytes), g.peak.bytes), row("at event", count(g.peak.event)), row("kept", bytes(g.kept), g.kept), row("allocations", count(g.allocations))),
  ];
}

/** What the cursor's event did. */
function happened(event: Event): Node[] {
  const oom = event.action === "oom";
  return [
    h("h2", {}, `event ${count(event.event)} · ${actions[event.action!] ?? "event"}`),
    h("div", { class: "head" }, bytes(event.bytes), oom ? " requested" : ""),
    stackList(event.stack, noStack(event.missing)),
    h("div", { class: "acts" }, event.stack?.length ? copyLine(event.stack) : null, oom ? null : h("span", { class: "muted mono" }, event.address)),
  ];
}

export function allocation(page: Page, scene: Scene, a: Alloc): Node[] {
  const link = (k: number, key: string): Node => textLink(`go ${key}`, `event ${count(k)}`, () => goTo(scene, k));
  const group = page.group(a.keys[page.s.g] ?? "");
  const lived = a.born_us !== null && a.died_us !== null ? duration(a.died_us - a.born_us) : null;
  return [
    h("h2", {}, page.segments ? "pinned part of a segment" : "pinned allocation"),
    h("div", { class: "head" }, swatch(group?.slot ?? -1, a.fate !== "kept"), group?.label ?? ""),
    h("p", {}, `${bytes(a.bytes)}, ${fates[a.fate]}`),
    h("h2", {}, page.segments ? "taken from the driver at" : "allocated at"),
    stackList(a.stack, noStack(a.missing)),
    h(
      "div",
      { class: "acts" },
      a.stack?.length ? copyLine(a.stack) : null,
      textLink("fit", "fit its life", () => fit(scene)),
      group && page.hasAlone(group.key) ? textLink("solo", "show its site alone", () => page.store.set({ solo: [group.key] }, true)) : null,
    ),
    ...(a.free_stack?.length ? [h("h2", {}, "freed at"), stackList(a.free_stack, "")] : []),
    h("h2", {}, page.segments ? "this part" : "this allocation"),
    h(
      "dl",
      { id: "pinned", "data-alloc": a.alloc },
      row(page.segments ?? "requested", bytes(a.bytes), a.bytes),
      a.block !== null && a.block !== a.bytes ? row("block", bytes(a.block), a.block) : [],
      row("allocated", a.birth < 0 ? "before the recording" : link(a.birth, "birth")),
      row("freed", a.freed === null ? "–" : link(a.freed, "freed")),
      a.death !== null && a.death !== a.freed ? row("released", link(a.death, "death")) : [],
      lived ? row("lived", lived) : [],
      row("address", a.address),
      row("pool", `${a.pool}, stream ${a.stream}`),
      a.purpose ? row("purpose", purposes[a.purpose] ?? a.purpose) : [],
      texts(a),
    ),
  ];
}

/** A button that copies the line that a reader would edit. */
function copyLine(frames: Frame[]): HTMLElement {
  const f = frames.find((x) => x.origin === "own") ?? frames[0]!;
  return copyButton(`${f.file}:${f.line}`, "copy file:line", "copy line");
}

