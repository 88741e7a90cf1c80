// A list of findings and one of them in full, for the pages of snapshots and of
// recordings.

import { button } from "../base/controls.ts";
import { json } from "../base/ask.ts";
import { command, fill, h, type Child } from "../base/dom.ts";
import { base, bytes, count, duration, placeOf } from "../base/format.ts";
import { purposes } from "../base/names.ts";
import type { Card, Lines } from "../base/api.ts";
import { cardOf, curve, head, keptBy, stackOf, type Judgment } from "./card.ts";
import { evidenceName, kindName, marked, remedy } from "./words.ts";

const severities = { problem: "problem", warning: "warning", info: "note" };

/** What a page adds to its findings. */
interface Added<F> {
  go: (i: number) => void; // a finding is chosen
  owner?: (f: F) => string; // whose it is
  acts: (f: F, i: number) => (Node | null)[]; // what can be done about it
  act?: (f: F, setting: string) => Node | null; // with a setting of a remedy
}

/** All findings, the chosen one in full; of none what the verdict says. */
export function findingsView<F extends Judgment & { card: Card }>(root: HTMLElement, findings: F[], card: Card, finding: number | null, added: Added<F>, none: Child = null): void {
  const i = Math.max(0, Math.min(finding ?? 0, findings.length - 1));
  const f = findings[i];
  fill(root, h("div", { class: "findings" }, f ? [findingList(findings, i, added), article(f, i, added)] : h("article", {}, none ?? cardOf(card, null, {}))));
}

/** The list of findings. */
function findingList<F extends Judgment>(findings: F[], chosen: number, { go, owner }: Added<F>): HTMLElement {
  return h(
    "ol",
    { "aria-label": "Findings" },
    findings.map((f, i) =>
      h(
        "li",
        {},
        button(`finding ${i}`, [h("div", { class: `sev ${f.severity}` }, `${severities[f.severity] ?? f.severity} · ${kindName(f.kind)}`, f.bytes ? h("span", { class: "muted", "data-bytes": f.bytes }, ` · ${bytes(f.bytes)}`) : null, owner?.(f) ? h("span", { class: "muted" }, ` · ${owner(f)}`) : null), h("div", {}, f.title), f.site?.file ? h("div", { class: "mono muted" }, placeOf(f.site)) : null], () => go(i), { "aria-current": i === chosen ? "true" : undefined }),
      ),
    ),
  );
}

/** All of a finding, with what can be done about it on the page. */
function article<F extends Judgment & { card: Card }>(f: F, i: number, { owner, acts, act }: Added<F>): HTMLElement {
  return h(
    "article",
    { tabindex: "0", "aria-label": "Finding" },
    head(f.card, owner?.(f)),
    ...[f.card.title !== f.title && f.title, f.severity !== "info" && f.card.course, f.card.fact].map((text) => (text ? h("p", {}, text) : null)),
    f.card.why ? h("p", { class: "muted" }, f.card.why) : null,
    h("div", { class: "acts" }, acts(f, i)),
    f.remedies?.length ? [h("h3", {}, "what to do"), f.remedies.map((r) => [remedy(r.text), r.detail ? h("p", { class: "muted" }, marked(r.detail)) : null, r.setting ? [command(r.setting), act?.(f, r.setting)] : null])] : null,
    f.card.next ? [h("h3", {}, "next"), command(f.card.next)] : null,
    f.detail?.length ? [h("h3", {}, "in detail"), f.detail.map((d) => h("p", {}, marked(d)))] : null,
    evident(f.evidence),
    f.site?.file && f.site.line ? excerpt(f.site.file, f.site.line) : null,
    f.trend && f.trend.length > 1 ? [h("h3", {}, "live bytes over time"), curve(f.trend, "first", "last", f.severity === "info")] : null,
    keptBy(f),
    stackOf(f),
    f.sites && f.sites.length > 1 ? [h("h3", {}, "places"), h("dl", {}, f.sites.slice(0, 20).map((s) => [h("dt", { "data-bytes": s.bytes }, bytes(s.bytes)), h("dd", {}, s.file ? placeOf(s) : "stack unknown", h("span", { class: "muted" }, ` × ${count(s.count)}`))]))] : null,
    f.evidence ? [h("h3", {}, "evidence"), evidence(f.evidence)] : null,
    f.basis ? h("p", { class: "muted" }, `Confidence ${Math.round(f.confidence * 100)} %: ${f.basis}`) : null,
  );
}

/** The line of a text that shows a finding. */
const evident = (e: Record<string, unknown> | undefined): Node | null => (typeof e?.file === "string" && typeof e.line === "number" ? excerpt(e.file, e.line) : null);

/** Lines of a text or of source code around one, where they are at hand. */
function excerpt(path: string, line: number): HTMLElement {
  const el = h("div", { class: "excerpt", hidden: true });
  json<Lines>("lines", { path, line }).then(
    ({ from, lines }) => {
      if (!lines.length) return; // they are not at hand
      el.hidden = false;
      const row = (text: string, i: number): Node => h(from + i === line ? "b" : "span", {}, `${String(from + i).padStart(6)}  ${text}\n`);
      fill(el, h("h3", {}, `${base(path)}:${line}`), h("pre", { tabindex: "0" }, lines.map(row)));
    },
    () => {}, // so in saved pages
  );
  return el;
}

/** Evidence that stands elsewhere in words, or means nothing to a reader, as numbers of stacks. */
const unshown = ["confidence", "stacks", "messages", "of", "cause", "outcome", "statement"];

function evidence(e: Record<string, unknown>): HTMLElement {
  const rows: Node[] = [];
  const show = (name: string, v: unknown): string => {
    if (v === null) return name === "seconds_to_limit" ? "never" : "–";
    if (typeof v === "number") {
      if (/seconds(_to_limit)?$/.test(name)) return duration(v * 1e6);
      if (name === "growing") return `${Math.round(v * 100)}%`;
      return /bytes/.test(name) ? bytes(v) : Number.isInteger(v) ? count(v) : String(Number(v.toPrecision(3)));
    }
    if (typeof v === "boolean") return v ? "yes" : "no";
    if (Array.isArray(v)) return v.length > 12 ? `${v.slice(0, 12).map((x) => show(name, x)).join(", ")} …` : v.map((x) => show(name, x)).join(", ");
    return name === "files" ? base(String(v)) : String(v);
  };
  for (const [name, v] of Object.entries(e)) {
    if (v === null || unshown.includes(name) || (Array.isArray(v) && v.some((x) => typeof x === "object" && x !== null))) continue;
    const parts = typeof v === "object" && !Array.isArray(v) ? Object.entries(v) : null;
    if (parts?.some(([, x]) => typeof x !== "number")) continue;
    const values = parts ? parts.sort((a, b) => b[1] - a[1]).map(([k, x]) => `${bytes(x)} ${purposes[k] ?? k}`) : show(name, v).split(", ");
    if (name === "by_purpose" || !parts) rows.push(h("dt", {}, evidenceName(name)), h("dd", {}, values.map((x, i) => [i ? ", " : "", h("span", { class: "whole" }, x)])));
  }
  return h("dl", {}, rows);
}
