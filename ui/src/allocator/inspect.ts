// The inspector beside the allocator's segments.

import { json, Latest } from "../base/ask.ts";
import { byId, fill, h } from "../base/dom.ts";
import { bytes, count, percent, plural } from "../base/format.ts";
import { actions } from "../base/names.ts";
import { row } from "../base/terms.ts";
import type { Event } from "../base/wire.ts";
import type { Page } from "../page/page.ts";
import { pins, type Heap } from "./heap.ts";

const around = 6; // events that are listed before and after the state's
const mostPins = 30;
const mostStrands = 10;

export class HeapInspector {
  private heap: Heap | null = null;
  private readonly listing = new Latest(30);
  private listed: { key: string; events: Event[] } = { key: "", events: [] };

  constructor(private readonly page: Page) {}

  /** Shows a state, or nothing. */
  show(heap: Heap | null): void {
    this.heap = heap;
    if (!heap) return fill(byId("inspector"));
    const { segment } = this.page.s;
    fill(
      byId("inspector"),
      sums(heap),
      segment === null ? [] : this.pinned(heap, segment),
      heap.strands.length ? this.strands(heap) : [],
      this.events(heap),
      heap.notes.length ? [h("h2", {}, "notes"), heap.notes.map((n) => h("p", { class: "muted" }, n))] : [],
    );
  }

  /** The pinned segment, and the blocks that keep it. */
  private pinned(heap: Heap, address: string): Node[] {
    const title = h("h2", {}, "segment pinned");
    const i = heap.segments.findIndex((s) => s.address === address);
    const s = heap.segments[i];
    if (!s) return [title, h("p", { class: "muted" }, `${address} does not exist at this event.`)];
    const by = pins(heap, this.page.bands!.groups, i);
    const sum = by.reduce((n, p) => n + p.bytes, 0);
    const one = by.length === 1;
    return [
      title,
      h("p", { class: "mono" }, `${s.address} · ${bytes(s.size)} · ${s.type}`),
      s.stranded > 0 ? h("p", {}, `${bytes(s.stranded)} cannot be returned because ${count(by.length)} ${one ? "block" : "blocks"} (${bytes(sum)}) ${one ? "is" : "are"} in use:`) : h("p", {}, `${count(by.length)} ${one ? "block" : "blocks"}, ${bytes(sum)} in use`),
      h("dl", { class: "names" }, by.slice(0, mostPins).map((p) => [h("dt", {}, h("button", { type: "button", class: "link", "data-key": `pin ${p.alloc}`, disabled: p.alloc < 0, onclick: () => this.follow(p.alloc) }, h("span", { class: `sw s${p.slot}` }), h("span", { class: "name" }, p.label))), h("dd", { "data-bytes": p.bytes }, bytes(p.bytes))])),
      ...(by.length > mostPins ? [h("p", { class: "muted" }, `${count(by.length - mostPins)} more`)] : []),
    ];
  }

  private strands(heap: Heap): Node[] {
    const { page } = this;
    const groups = page.bands?.groups ?? [];
    const rest = heap.strands.slice(mostStrands);
    return [
      h("h2", {}, "who strands memory"),
      h(
        "dl",
        { id: "strands", class: "names" },
        heap.strands.slice(0, mostStrands).map((s) => [
          h("dt", {}, h("button", { type: "button", class: "link", "data-key": `strand ${s.key}`, onclick: () => page.store.set({ solo: page.s.solo[0] === s.key ? [] : [s.key] }, true) }, h("span", { class: `sw s${groups[s.group]?.slot ?? -1}` }), h("span", { class: "name" }, `${groups[s.group]?.label ?? "unknown"} × ${count(s.count)}`))),
          h("dd", { "data-bytes": s.bytes, title: percent(s.bytes, heap.stranded) }, bytes(s.bytes)),
        ]),
      ),
      ...(rest.length ? [h("p", { class: "muted" }, `${plural(rest.length, "more site")}, ${bytes(rest.reduce((n, s) => n + s.bytes, 0))}`)] : []),
    ];
  }

  /** The events around the state's, each a way to its state. */
  private events(heap: Heap): Node[] {
    const { page } = this;
    const k = heap.event;
    const events = page.device!.events;
    if (events === 0) return [];
    const from = Math.max(0, Math.min(k - around, events - 2 * around - 1));
    const key = `${page.f} ${page.d} ${page.u} ${from}`;
    if (key !== this.listed.key) {
      this.listing.ask(
        () => json<{ events: Event[] }>("events", { f: page.f, d: page.d, u: page.u, from, to: Math.min(events - 1, from + 2 * around) }),
        (v) => {
          this.listed = { key, events: v.events };
          if (page.s.view === "allocator") this.show(this.heap);
        },
      );
    }
    return [
      h("h2", {}, "events here"),
      h(
        "ol",
        { class: "events" },
        this.listed.events.map((e) =>
          h(
            "li",
            {},
            h(
              "button",
              { type: "button", "data-key": `event ${e.event}`, "aria-current": e.event === k ? "true" : undefined, onclick: () => page.store.set({ k: e.event }) },
              h("span", { class: "n" }, count(e.event)),
              h("span", { class: "name" }, actions[e.action] ?? e.action),
              h("span", {}, bytes(e.bytes)),
            ),
          ),
        ),
      ),
    ];
  }

  /** Shows the allocation of a block in the timeline. */
  private follow(alloc: number): void {
    this.page.store.set({ alloc, view: "timeline" }, true);
  }
}

function sums(heap: Heap): Node[] {
  const line = (name: string, v: number, id: string): Node[] => row(name, bytes(v), v, id);
  return [
    h("h2", {}, "after the cursor's event"),
    h(
      "dl",
      {},
      line("reserved", heap.reserved, "heap-reserved"),
      line("allocated", heap.allocated, "heap-allocated"),
      heap.pending ? line("deferred frees", heap.pending, "heap-pending") : [],
      heap.slack ? line("rounding", heap.slack, "heap-slack") : [],
      line("stranded", heap.stranded, "heap-stranded"),
      line("releasable", heap.releasable, "heap-releasable"),
    ),
  ];
}
