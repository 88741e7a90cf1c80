// The inspector beside the allocator's segments.

import { textLink } from "../base/controls.ts";
import { byId, cut, fill, h, swatch } from "../base/dom.ts";
import { bytes, count, placeOf } from "../base/format.ts";
import { stackList } from "../base/stack.ts";
import { largest, noStack, row } from "../base/terms.ts";
import type { Page } from "../session/page.ts";
import { EventList } from "./events.ts";
import { pins, type Heap } from "./heap.ts";

const mostPins = 30;
const mostStrands = 10;

export class HeapInspector {
  private readonly events: EventList;

  constructor(
    private readonly page: Page,
    private readonly block: () => Node[], // what is known of the pinned one
  ) {
    this.events = new EventList(page);
  }

  /** Lists the events of an address. */
  seek(address: string): void {
    this.events.seek(address);
  }

  /** Shows a state, or nothing. */
  show(heap: Heap | null): void {
    if (!heap) return fill(byId("detail"));
    const { segment } = this.page.s;
    const { top } = this.events;
    fill(
      byId("detail"),
      sums(heap, this.page.device?.events ?? 0),
      this.page.s.alloc === null ? [] : this.block(),
      segment === null ? [] : this.pinned(heap, segment),
      heap.strands.length ? this.strands(heap) : [],
      this.takers(heap),
      this.page.device!.events > 0 ? [h("h2", {}, "events"), this.events.root] : [],
      heap.notes.length ? [h("h2", {}, "notes"), heap.notes.map((n) => h("p", { class: "muted" }, n))] : [],
    );
    this.events.top = top;
    this.events.show(heap.event);
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
      s.stranded > 0 ? h("p", {}, `${bytes(s.stranded)} cannot be returned because ${count(by.length)} ${one ? "block" : "blocks"} (${bytes(sum)}) ${one ? "is" : "are"} active:`) : h("p", {}, `${count(by.length)} ${one ? "block" : "blocks"}, ${bytes(sum)} active`),
      ...largest(by, mostPins, (p) => textLink(`pin ${p.alloc}`, [swatch(p.slot), cut(p.label)], () => this.follow(p.alloc), { disabled: p.alloc < 0 }), "block"),
      h("h2", {}, "taken from the driver at"),
      stackList(heap.stacks[s.stack] ?? null, noStack(s.missing)),
    ];
  }

  /** Reserved memory by the line that made the allocator take it from the driver. */
  private takers(heap: Heap): Node[] {
    if (heap.takers.length === 0) return [];
    const label = ({ site, missing }: Heap["takers"][0]): string => (site ? placeOf(site) : missing!);
    return [
      h("h2", {}, "who took it from the driver"),
      h("div", { class: "shares", "aria-hidden": "true" }, heap.takers.map((t, i) => {
        const part = h("i", { class: `sw s${i < 10 && t.site ? i : -1}`, title: `${label(t)}: ${bytes(t.bytes)}` });
        part.style.flexGrow = String(t.bytes);
        return part;
      })),
      ...largest(heap.takers, mostStrands, (t, i) => [swatch(t.site ? i : -1), cut(`${label(t)} × ${count(t.count)}`, t.site?.file && `${t.site.file}:${t.site.line} ${t.site.function}`)], "line", heap.reserved, { id: "takers" }),
    ];
  }

  private strands(heap: Heap): Node[] {
    const { page } = this;
    const groups = page.bands?.groups ?? [];
    const name = (s: Heap["strands"][0]): Node => textLink(`strand ${s.key}`, [swatch(groups[s.group]?.slot ?? -1), cut(`${groups[s.group]?.label ?? "unknown"} × ${count(s.count)}`)], () => page.toggleAlone(s.key));
    return [h("h2", {}, "what strands memory"), ...largest(heap.strands, mostStrands, name, "site", heap.stranded, { id: "strands" })];
  }

  /** Shows the allocation of a block in the timeline. */
  private follow(alloc: number): void {
    this.page.store.set({ alloc, view: "timeline" }, true);
  }
}

function sums(heap: Heap, events: number): Node[] {
  const line = (name: string, v: number, id: string): Node[] => row(name, bytes(v), v, id);
  return [
    h("h2", {}, events ? "after the cursor's event" : "at the snapshot"),
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
