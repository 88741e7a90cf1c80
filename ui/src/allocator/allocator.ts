// The allocator's state after one event: every segment and block to one scale.

import { note, scroll, textLink } from "../base/controls.ts";
import { fresh, json, Latest, link, url } from "../base/ask.ts";
import { fill, h, placeTip, swatch } from "../base/dom.ts";
import { bytes, count, placeOf, plural } from "../base/format.ts";
import type { Alloc } from "../base/wire.ts";
import type { Page } from "../session/page.ts";
import { goTo } from "../rail/moves.ts";
import type { Scene } from "../rail/scene.ts";
import { addressed, blockAt, pins, sections, type Heap } from "./heap.ts";
import { HeapInspector } from "./inspect.ts";
import { paint, type Spot, type View } from "./paint.ts";

export class Allocator {
  private readonly asking = new Latest(30);
  private asked = "";
  private of = ""; // file and device of the state
  private heap: Heap | null = null;
  private error = "";
  private readonly inspector: HeapInspector;
  private view: View | null = null; // as it was drawn last
  private readonly hovering = new Latest(60);
  private sought = ""; // the search whose block was pinned
  private unfolded = false;
  private playing = 0;

  constructor(
    private readonly page: Page,
    private readonly scene: Scene,
    private readonly root: HTMLElement,
    private readonly tooltip: HTMLElement,
    private readonly jump: (to: string, back: boolean) => void,
    pinned: () => Node[],
  ) {
    this.inspector = new HeapInspector(page, pinned);
    new ResizeObserver(() => this.root.querySelector(".heap") && this.paint()).observe(root);
  }

  enter(): void {
    this.inspector.show(this.of === this.shown ? this.heap : null);
  }

  private get shown(): string {
    return `${this.page.f} ${this.page.d}`;
  }

  update(): void {
    const { page } = this;
    if (!page.device || !page.bands) {
      this.asking.cancel();
      this.asked = "";
      return fill(this.root);
    }
    const params = { ...page.base, k: page.device.events === 0 ? -1 : page.k };
    const key = `${url("state", params)} ${page.file?.blocks}`; // once sizes are known, more of it is exact
    if (key !== this.asked) {
      this.asked = key;
      if (this.of !== this.shown) {
        this.heap = null; // one of another file would be wrong under this one's name
        delete page.figures.heap;
        fill(this.root);
      }
      this.of = this.shown;
      this.asking.ask(
        () => fresh<Heap>("state", params),
        (v) => {
          this.heap = v;
          this.error = "";
          this.find();
          const { reserved, allocated, pending, free, releasable, stranded } = v;
          page.figures.heap = { event: v.event, reserved, allocated, pending, free, releasable, stranded, strands: v.strands.reduce((n, s) => n + s.bytes, 0), segments: v.segments.length, pools: sections(v, true).map((x) => ({ name: x.name, reserved: x.reserved, active: x.used, segments: x.segments.length })) };
          this.draw();
        },
        (e) => {
          this.error = e.message;
          this.heap = null;
          this.draw();
        },
      );
    }
    this.find();
    if (!this.root.querySelector(".heap, .note")) this.draw();
    else {
      this.paint();
      this.inspector.show(this.heap);
    }
  }

  private draw(): void {
    if (this.page.s.view !== "allocator") return;
    const { heap } = this;
    if (!heap) return fill(this.root, note(this.error || "Building the allocator's state …"));
    const canvas = h("canvas", {
      role: "img", "aria-label": `${plural(heap.segments.length, "segment")}, ${bytes(heap.reserved)} reserved, ${bytes(heap.allocated)} allocated; the inspector lists them`,
      onclick: (e) => this.click(e as MouseEvent), onpointermove: (e) => this.point(e as PointerEvent), onpointerleave: () => (this.tooltip.hidden = true),
    });
    fill(
      this.root,
      h(
        "div",
        { class: "bar" },
        h("span", {}, heap.event < 0 ? "state at the snapshot" : ["state after event ", h("b", {}, count(heap.event)), ` of ${count(this.page.device!.events)}`]),
        this.page.device!.events === 0
          ? null
          : h(
              "span",
              { class: "jumps", role: "group", "aria-label": "Jump to" },
              textLink("segment back", "‹", () => this.jump("segment", true), { title: "Segment event before (,)", "aria-label": "Segment event before (,)" }),
              "segment event",
              textLink("segment", "›", () => this.jump("segment", false), { title: "Next segment event (.)", "aria-label": "Next segment event (.)" }),
              textLink("peak", "peak", () => this.jump("peak", false), { title: "Next peak (p)" }),
              this.page.device!.marks.some((m) => m.kind === "oom") ? textLink("oom", "error", () => this.jump("oom", false), { title: "Next out-of-memory error (o)" }) : null,
              matchMedia("(prefers-reduced-motion: reduce)").matches ? null : textLink("play", this.playing ? "stop" : "play", () => this.play(), { title: "Play segment events (space)" }),
            ),
        h("span", { id: "row-scale", class: "wide" }),
        heap.exact ? null : h("span", { title: heap.notes.join(" ") }, "block sizes of what is gone are lower bounds"),
        h(
          "div",
          { class: "end" },
          textLink("unfold", "fold or show free segments", () => this.unfold()),
          link.saved ? null : h("a", { href: url("csv", { table: "state", ...this.page.base, k: heap.event }), download: "strandline-state.csv", "data-key": "csv" }, "save CSV"),
        ),
      ),
      scroll("Segments and blocks", canvas, { class: "scroll heap" }),
    );
    this.paint();
    this.inspector.show(this.heap);
  }

  /** Folds the wholly free segments to one line each group, or shows them all. */
  unfold(): void {
    this.unfolded = !this.unfolded;
    this.paint();
  }

  /** Plays segment events, four a second; not where motion is unwanted. */
  play(): void {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    if (this.playing) {
      clearInterval(this.playing);
      this.playing = 0;
      return this.draw();
    }
    this.playing = window.setInterval(() => {
      if (this.page.s.view !== "allocator") return this.play();
      json<{ event: number | null }>("next", { f: this.page.f, d: this.page.d, k: this.page.k, to: "segment" }).then(({ event }) => {
        if (event === null) return this.playing ? this.play() : undefined;
        goTo(this.scene, event);
      }, () => {});
    }, 250);
    this.draw();
  }

  private paint(): void {
    if (!this.heap) return;
    this.view = { page: this.page, root: this.root, heap: this.heap, unfolded: this.unfolded, spots: [] };
    paint(this.view);
  }

  private spotAt(e: MouseEvent): (Spot & { block: number }) | undefined {
    const r = (e.currentTarget as HTMLElement).getBoundingClientRect();
    const x = e.clientX - r.left;
    const y = e.clientY - r.top;
    const s = this.view?.spots.find((s) => x >= s.x0 && x < s.x1 && y >= s.y0 && y < s.y1);
    return s && { ...s, block: s.segment < 0 ? -1 : blockAt(this.heap!, s.segment, s.from + (x - s.x0) / s.scale) };
  }

  /** Pins a segment, and of it a block. */
  private pin(segment: number, block: number): void {
    const { address } = this.heap!.segments[segment]!;
    const alloc = block < 0 ? -1 : this.heap!.blocks.alloc[block]!;
    this.page.store.set({ segment: address, alloc: alloc < 0 ? null : alloc }, true);
  }

  private click(e: MouseEvent): void {
    const s = this.spotAt(e);
    if (s && s.segment < 0) {
      this.unfolded = true;
      return this.paint();
    }
    if (s) this.pin(s.segment, s.block);
    else this.page.store.set({ segment: null, alloc: null }, true);
  }

  /** Pins the block that the search names by its address, or lists what became of that. */
  private find(): void {
    const { q } = this.page.s;
    if (!this.heap || q === this.sought) return;
    this.sought = q;
    const at = addressed(this.heap, q);
    if (at) this.pin(at.segment, at.block);
    else if (/^0x[0-9a-f]+$/i.test(q)) this.inspector.seek(q);
  }

  private point(e: PointerEvent): void {
    const s = this.spotAt(e);
    const t = this.tooltip;
    t.hidden = !s || s.segment < 0;
    this.hovering.cancel();
    if (!s || s.segment < 0) return;
    const heap = this.heap!;
    const seg = heap.segments[s.segment]!;
    const by = pins(heap, this.page.bands!.groups, s.segment);
    const sum = by.reduce((n, p) => n + p.bytes, 0);
    const segment = [
      h("div", { class: s.block < 0 ? "head" : "muted" }, `${s.block < 0 ? "" : "in a "}${bytes(seg.size)} segment`),
      h("div", { class: "mono" }, `${seg.address} · ${seg.type} · stream ${seg.stream}`),
      h("div", {}, seg.stranded > 0 ? `${bytes(seg.stranded)} cannot be returned because ${plural(by.length, "block")} (${bytes(sum)}) ${by.length === 1 ? "is" : "are"} active` : by.length ? "full" : "free"),
    ];
    const show = (...block: Node[]): void => {
      t.replaceChildren(...block, ...segment, ...(s.block < 0 ? by.slice(0, 6).map((p) => h("div", {}, swatch(p.slot), ` ${p.label} · ${bytes(p.bytes)}`)) : []), ...(s.block < 0 && by.length > 6 ? [h("div", { class: "muted" }, `${count(by.length - 6)} more`)] : []));
      placeTip(t, e.clientX, e.clientY);
    };
    if (s.block < 0) return show();
    const { blocks } = heap;
    const group = this.page.bands!.groups[blocks.group[s.block]!];
    const address = `0x${(BigInt(seg.address) + BigInt(blocks.offset[s.block]!)).toString(16)}`;
    const name = [h("div", { class: "head" }, swatch(group?.slot ?? -1), ` ${group?.label ?? "unknown"}`), h("div", { "data-bytes": blocks.size[s.block] }, `block of ${bytes(blocks.size[s.block]!)} for ${bytes(blocks.requested[s.block]!)}${blocks.state[s.block] === "p" ? ", freed and awaiting a stream" : ""}`), h("div", { class: "mono" }, address)];
    show(...name);
    const i = blocks.alloc[s.block]!;
    if (i >= 0) this.hovering.ask(() => json<Alloc>("alloc", { f: this.page.f, d: this.page.d, i }), (a) => {
      if (t.hidden) return;
      const frames = (a.stack ?? []).filter((f) => f.origin === "own").slice(0, 4);
      show(...name, h("div", {}, `${a.birth < 0 ? "older than the recording" : `event ${count(a.birth)}`} → ${a.death === null ? "still alive" : `event ${count(a.death)}`}`), ...frames.map((f) => h("span", { class: "mono own" }, placeOf(f))));
    });
  }
}
