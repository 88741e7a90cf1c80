// The subjects of a view as a table, and the findings.

import { note, refill, scroll, textLink } from "../base/controls.ts";
import { byId, h, swatch } from "../base/dom.ts";
import { bytes, bytesOrDash, time } from "../base/format.ts";
import { drawing, pattern, type Tab } from "../base/frame.ts";
import { csv, csvButton } from "../base/save.ts";
import { Sorting, table, type Column, type Row } from "../base/table.ts";
import { findingsView } from "../findings/article.ts";
import { markSlot } from "../picture/palette.ts";
import { slots } from "./bands.ts";
import { doc, s, set, subject, view } from "./model.ts";
import { anew, kinds, views, type View } from "./state.ts";
import type { Subject } from "../base/api.ts";

const by = new Sorting(drawing.ask);

interface Line extends Row {
  of: Subject;
}

const ranks: Record<string, number> = { problem: 3, warning: 2, info: 1 };
const marks: Record<string, number> = { problem: markSlot, warning: 4 };

/** The subjects that the view lists. */
export function listed(): Subject[] {
  const v = view();
  const q = pattern(s.q);
  return doc.subjects.filter((x) => x.kind === v && (!q || q.test([x.label, x.place, ...x.facts.map((f) => f.join(" "))].join("\n"))));
}

const names: Record<View, string> = { process: "process", container: "container", device: "device", findings: "finding" };

/** What a subject held of each kind: "allocated 8 GiB, cached 1 GiB". */
const splitText = (r: Line): string => r.of.split.map((p) => `${p.name} ${bytes(p.bytes)}`).join(", ");

export function subjects(root: HTMLElement): void {
  const v = view();
  const rows: Line[] = listed().map((x) => ({ key: x.key, label: x.label, slot: marks[x.severity ?? ""] ?? -1, dim: x.ended, selected: x.key === subject()?.key, of: x }));
  const words = (r: Line): HTMLElement => h("span", { class: r.of.severity ?? "", title: r.of.verdict || undefined }, r.of.verdict || (r.of.ended ? "ended" : "–"));
  const places = v === "process" && new Set(rows.map((r) => r.of.place)).size > 1;
  const split = (r: Line): HTMLElement => {
    const parts = r.of.split.filter((p) => p.bytes > 0);
    return h("span", { class: "shares", title: splitText(r) }, parts.map((p) => {
      const share = swatch(slots[p.name] ?? -1);
      share.style.flexGrow = String(p.bytes);
      return share;
    }));
  };
  const columns: Column<Line>[] = [
    ...(places ? [{ name: "where", of: (r: Line) => (r.of.place === "host" ? -1 : Number(r.of.place.replace(/\D/g, ""))), show: (r: Line) => r.of.place }] : []),
    { name: "bytes", of: (r) => r.of.now_bytes, show: (r) => bytesOrDash(r.of.now_bytes), bytes: true },
    ...(v === "process" ? [{ name: "split", of: (r: Line) => r.of.split[0]?.bytes ?? 0, show: splitText, node: split, wide: true }] : []),
    { name: "most", of: (r) => r.of.peak_bytes, show: (r) => bytesOrDash(r.of.peak_bytes), bytes: true, wide: true },
    ...(rows.some((r) => r.of.limit_bytes !== null) ? [{ name: "limit", of: (r: Line) => r.of.limit_bytes ?? 0, show: (r: Line) => bytesOrDash(r.of.limit_bytes ?? 0), bytes: true }] : []),
    { name: "seen for", of: (r) => r.of.last - r.of.first, show: (r) => time(r.of.last - r.of.first), wide: true },
    { name: "verdict", of: (r) => ranks[r.of.severity ?? ""] ?? 0, show: (r) => r.of.verdict, node: words },
    { name: "limit reached", of: (r) => (r.of.left ? 1 : 0), show: (r) => r.of.left || "–", wide: true },
  ];
  const list = table<Line>({ name: names[v], rows, columns, by, total: rows.length, onrow: (r) => set({ sub: r.key, finding: null, ...anew }, true) });
  const left = doc.subjects_left_out ? `, ${doc.subjects_left_out} smaller ones are left out` : "";
  refill(
    root,
    h("div", { class: "bar" }, h("span", {}, `${rows.length} listed${left}`), h("div", { class: "end" }, csvButton(names[v], () => csv(names[v], rows, columns)))),
    rows.length ? scroll("Subjects", list) : note(s.q ? "Nothing matches the search." : doc.samples ? "There is none in this recording." : "There is no sample in this recording yet."),
  );
}

function findings(root: HTMLElement): void {
  findingsView(root, doc.findings.map((f) => ({ ...f, trend: [] })), doc.card, s.finding, {
    go: (n) => set({ view: "findings", finding: n, sub: doc.findings[n]!.subject, ...anew }, true),
    acts: ({ subject }, finding) => {
      const view = doc.subjects.find((x) => x.key === subject)?.kind;
      return [view ? textLink("show", "show its table", () => set({ view, sub: subject, finding, win: null, range: null }, true)) : null];
    },
  }, doc.reading ? "The recording is still being read." : null);
}

/** The views that have something to list. */
export const shownViews = (): Tab[] => [...kinds.filter((k) => doc.subjects.some((x) => x.kind === k)), "findings" as const].map((key) => ({ key, name: views[key], n: key === "findings" ? doc.findings.length + doc.findings_left_out : 0 }));

export function mainView(): void {
  const root = byId("view");
  if (view() === "findings") findings(root);
  else subjects(root);
}

