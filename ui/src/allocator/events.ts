// The events of a device as a list that scrolls and can be searched. Only the rows
// in sight are elements.

import { button } from "../base/controls.ts";
import { fresh, json, Latest, link } from "../base/ask.ts";
import { fill, h, own } from "../base/dom.ts";
import { bytes, count } from "../base/format.ts";
import { actions } from "../base/names.ts";
import type { Event } from "../base/wire.ts";
import type { Page } from "../session/page.ts";

const rowHigh = 24;
const most = 8e6; // pixels that browsers scroll through; longer lists are scrolled in proportion
const chunk = 100; // events asked for at once
const around = 6; // events before and after the cursor's in a saved page, which has no others

export class EventList {
  readonly root: HTMLElement;
  private readonly list = h("ol", { class: "events" });
  private readonly box = h("div", { class: "events-box", tabindex: "0", role: "group", "aria-label": "Events", onscroll: () => this.draw() }, this.list);
  private readonly status = h("p", { class: "muted", role: "status" });
  private readonly input = h("input", { type: "search", placeholder: "action, line, address or size", autocomplete: "off", spellcheck: "false", "data-key": "find event" });
  private readonly asking = new Latest(20);
  private readonly finding = new Latest(150);
  private rows = new Map<number, Event>();
  private found: Event[] | null = null; // what the search found, from the start
  private of = "";
  private k = -1;

  constructor(private readonly page: Page) {
    this.input.addEventListener("input", () => this.search());
    this.input.addEventListener("keydown", (e) => {
      if (e.key === "Escape") this.input.value = "";
      if (e.key === "Escape" || e.key === "Enter") this.search();
    });
    this.root = own(h("div", {}, link.saved ? null : h("label", { class: "search" }, h("span", { class: "unseen" }, "Find events by regular expression"), this.input), this.status, this.box));
  }

  /** Shows the list with an event in its middle, unless that is in sight. */
  show(k: number): void {
    const { f, d, u } = this.page;
    const of = `${f} ${d} ${u}`;
    const other = of !== this.of;
    if (other) {
      this.rows.clear();
      this.asking.cancel();
      this.of = of;
      this.input.value = "";
      this.search();
    }
    const moved = k !== this.k;
    this.k = k;
    if ((moved || other) && !this.found) this.reveal();
    this.draw();
  }

  /** Searches for a text. */
  seek(q: string): void {
    this.input.value = q;
    this.search();
  }

  /** The place that it is scrolled to, which it loses when it is put elsewhere. */
  get top(): number {
    return this.box.scrollTop;
  }

  set top(v: number) {
    this.box.scrollTop = v;
  }

  private get events(): number {
    return this.page.device?.events ?? 0;
  }

  /** Pixels of the whole list, as far as browsers scroll. */
  private get high(): number {
    return Math.min(most, this.events * rowHigh);
  }

  private get inSight(): number {
    return Math.max(1, Math.floor(this.box.clientHeight / rowHigh));
  }

  /** The first event in sight. */
  private get first(): number {
    const { high } = this;
    if (high === this.events * rowHigh) return Math.floor(this.box.scrollTop / rowHigh);
    return Math.round((this.box.scrollTop / Math.max(1, high - this.box.clientHeight)) * (this.events - this.inSight));
  }

  private reveal(): void {
    const { first, inSight } = this;
    if (this.k >= first + 1 && this.k < first + inSight - 1) return;
    this.list.style.height = `${this.high}px`;
    const from = Math.max(0, this.k - inSight / 2);
    this.box.scrollTop = this.events * rowHigh <= most ? from * rowHigh : (from / Math.max(1, this.events - inSight)) * (most - this.box.clientHeight);
  }

  private draw(): void {
    const shown = this.found ?? this.here();
    const scrolls = !this.found && !link.saved;
    this.list.style.height = scrolls ? `${this.high}px` : "";
    this.list.style.paddingTop = scrolls ? `${Math.min(this.box.scrollTop - (this.box.scrollTop % rowHigh), this.high - shown.length * rowHigh)}px` : "";
    fill(
      this.list,
      shown.map((e) =>
        h(
          "li",
          {},
          button(`event ${e.event}`, [h("span", { class: "n" }, count(e.event)), h("span", { class: "name" }, actions[e.action!] ?? e.action ?? "…"), h("span", {}, bytes(e.bytes))], () => this.page.store.set({ k: e.event }), { "aria-current": e.event === this.k ? "true" : undefined, title: e.address ?? undefined }),
        ),
      ),
    );
  }

  /** The events in sight; those that are not there yet are asked for. */
  private here(): (Event | { event: number; action: null; bytes: null; address: null })[] {
    const { events } = this;
    const [from, to] = link.saved ? this.near() : [this.first, Math.min(events, this.first + this.inSight + 1)];
    const out = [];
    let lacks = -1;
    for (let k = from; k < to; k++) {
      const e = this.rows.get(k);
      if (!e && lacks < 0) lacks = k;
      out.push(e ?? { event: k, action: null, bytes: null, address: null });
    }
    if (lacks >= 0) {
      const { f, d, u } = this.page;
      const start = link.saved ? from : lacks - (lacks % chunk);
      const params = { f, d, u, from: start, to: link.saved ? to - 1 : Math.min(events, start + chunk) - 1 };
      this.asking.ask(
        () => json<{ events: Event[] }>("events", params),
        (v) => {
          if (this.rows.size > 50 * chunk) this.rows.clear();
          for (const e of v.events) this.rows.set(e.event, e);
          this.draw();
        },
      );
    }
    return out;
  }

  /** The events that a saved page has around the cursor's. */
  private near(): [number, number] {
    const from = Math.max(0, Math.min(this.k - around, this.events - 2 * around - 1));
    return [from, Math.min(this.events, from + 2 * around + 1)];
  }

  private search(): void {
    const q = this.input.value;
    const done = (found: Event[] | null, text: string): void => {
      this.found = found;
      fill(this.status, text);
      this.box.scrollTop = 0;
      if (!found) this.reveal();
      this.draw();
      this.page.figures.eventsFound = found?.map((e) => e.event) ?? null;
    };
    if (!q) {
      this.finding.cancel();
      return done(null, "");
    }
    const { f, d, u } = this.page;
    const params = { f, d, u, from: 0, to: this.events - 1, q };
    this.finding.ask(
      () => fresh<{ events: Event[]; more?: number }>("events", params),
      (v) => done(v.events, v.events.length ? (v.more ? `the first ${count(v.events.length)} of ${count(v.events.length + v.more)}` : `${count(v.events.length)} found`) : "none found"),
      (e) => fill(this.status, e.message),
    );
  }
}
