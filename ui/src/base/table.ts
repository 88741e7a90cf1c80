// Tables of groups: sortable, real tables, one row a group.

import { button } from "./controls.ts";
import { cut, h, swatch } from "./dom.ts";
import { terms } from "./terms.ts";

export interface Column<R> {
  name: string;
  of: (r: R) => number;
  show: (r: R) => string;
  node?: (r: R) => Node | null; // instead of the text, which is what the table saves
  class?: (r: R) => string;
  bytes?: boolean; // the cell carries its bytes for programs that read the page
  wide?: boolean; // left out where there is little room
}

export interface Row {
  key: string;
  label: string;
  slot: number;
  dim?: boolean;
  selected?: boolean;
  lit?: boolean;
  fixed?: boolean; // it cannot be chosen
}

/** The order that the reader gives to a table: by a column, or −1: as it came. */
export class Sorting {
  up = false;

  constructor(
    private readonly changed: () => void,
    public column = -1,
  ) {}

  turn(column: number): void {
    this.up = this.column === column && !this.up;
    this.column = column;
    this.changed();
  }
}

export interface Shown<R extends Row> {
  name: string; // what the rows are, for the first column and for screen readers
  rows: R[];
  columns: Column<R>[];
  by?: Sorting; // none: as it came
  onrow?: (row: R) => void;
  onlight?: (key: string | null) => void;
  more?: { label: string; cells: string[]; bytes?: number } | undefined;
  total?: number; // rows in all, if more than there are
}

export function sorted<R extends Row>(rows: R[], columns: Column<R>[], sort: number, up: boolean): R[] {
  const c = columns[sort];
  if (!c) return rows;
  return [...rows].sort((a, b) => (up ? c.of(a) - c.of(b) : c.of(b) - c.of(a)));
}

export function table<R extends Row>(t: Shown<R>): HTMLElement {
  const { column = -1, up = false } = t.by ?? {};
  const head = h(
    "tr",
    {},
    h("th", { scope: "col" }, t.name),
    t.columns.map((c, i) =>
      h(
        "th",
        { scope: "col", class: c.wide && "wide", "aria-sort": column === i ? (up ? "ascending" : "descending") : undefined },
        button(`sort ${i}`, [c.name.length > 24 ? cut(c.name) : c.name, column === i ? (up ? " ↑" : " ↓") : ""], () => t.by?.turn(i), { title: terms[c.name] ?? (c.name.length > 24 ? c.name : undefined) }),
      ),
    ),
  );
  const body = sorted(t.rows, t.columns, column, up).map((r) =>
    h(
      "tr",
      {
        "data-site": r.key,
        class: [r.dim && "dim", r.lit && "lit"].filter(Boolean).join(" ") || undefined,
        "aria-selected": r.selected ? "true" : undefined,
        onmouseenter: t.onlight && (() => t.onlight!(r.key)),
        onmouseleave: t.onlight && (() => t.onlight!(null)),
      },
      h(
        "th",
        { scope: "row" },
        button(`row ${r.key}`, [swatch(r.slot), cut(r.label)], () => t.onrow?.(r), { disabled: r.fixed, title: r.fixed ? `${r.label}: this saved page cannot show it alone` : r.label, "aria-pressed": String(!!r.selected) }),
      ),
      t.columns.map((c) => h("td", { class: [c.wide && "wide", c.class?.(r)].filter(Boolean).join(" ") || undefined, "data-bytes": c.bytes ? c.of(r) : undefined, title: c.bytes && c.of(r) ? `${c.of(r)} bytes` : undefined }, c.node?.(r) ?? c.show(r))),
    ),
  );
  const { more } = t;
  const others = more && h(
    "tr",
    { class: "more" },
    h("th", { scope: "row" }, h("span", { class: "name" }, more.label)),
    t.columns.map((c, i) => h("td", { class: c.wide && "wide", "data-bytes": i === 0 ? more.bytes : undefined }, more.cells[i] ?? "")),
  );
  return h("table", { "aria-rowcount": (t.total ?? t.rows.length) + (more ? 2 : 1) }, h("caption", { class: "unseen" }, t.name), h("thead", {}, head), h("tbody", {}, body, others));
}
