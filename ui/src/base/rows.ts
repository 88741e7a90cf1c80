// A long table of rows of one height, of which only those in sight are elements.

import { scroll } from "./controls.ts";
import { fill, h, own, type Child } from "./dom.ts";

const beyond = 12; // rows above and below

export class LongTable {
  readonly root: HTMLElement;
  private readonly head = h("tr", {});
  private readonly body = h("tbody", {});
  private readonly table: HTMLElement;
  private made = new Map<number, HTMLElement>(); // rows, by their place
  private n = 0;
  private drawn = "";

  constructor(
    name: string,
    private readonly height: number, // of a row, in px
    private readonly row: (i: number) => HTMLElement,
  ) {
    this.table = h("table", {}, h("caption", { class: "unseen" }, name), h("thead", {}, this.head), this.body);
    this.root = own(scroll(name, this.table));
    for (const change of ["scroll", "resize"]) addEventListener(change, () => this.root.isConnected && this.draw(), { capture: true, passive: true }); // on a phone the page scrolls
  }

  /** Shows other rows, under the names of their columns. */
  show(n: number, ...head: Child[]): void {
    this.n = n;
    this.made.clear();
    this.drawn = "";
    this.table.setAttribute("aria-rowcount", String(n + 1));
    fill(this.head, head);
    this.draw();
  }

  private draw(): void {
    const above = this.root.scrollTop + Math.max(0, -this.root.getBoundingClientRect().top);
    const from = Math.max(0, Math.floor(above / this.height) - beyond);
    const to = Math.min(this.n, from + Math.ceil(Math.min(this.root.clientHeight || innerHeight, innerHeight) / this.height) + 2 * beyond);
    if (this.drawn === `${from} ${to}`) return;
    this.drawn = `${from} ${to}`;
    const row = (i: number): HTMLElement => {
      const made = this.made.get(i) ?? own(this.row(i));
      this.made.set(i, made);
      return made;
    };
    fill(this.body, this.gap(from), Array.from({ length: Math.max(0, to - from) }, (_, i) => row(from + i)), this.gap(this.n - to));
  }

  private gap(rows: number): HTMLElement | null {
    if (rows <= 0) return null;
    const tr = h("tr", { class: "gap", "aria-hidden": "true" });
    tr.style.height = `${rows * this.height}px`;
    return tr;
  }
}
