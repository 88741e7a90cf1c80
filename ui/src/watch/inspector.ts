// The inspector: what the subject holds at the cursor, how that was judged, what to do,
// and who it is.

import { textLink } from "../base/controls.ts";
import { byId, fill, h, swatch } from "../base/dom.ts";
import { bytes, count, delta, utc } from "../base/format.ts";
import { watchTerms } from "../base/hostterms.ts";
import { rows } from "../base/terms.ts";
import { fullCard, verdict } from "../findings/card.ts";
import { moment } from "./bands.ts";
import { loadAt } from "./load.ts";
import { anew } from "./state.ts";
import { doc, engine, judged, s, seen, set, spot, subject, view } from "./model.ts";

const row = rows(watchTerms, "data-part");

export function inspector(light: (name: string | null) => void): void {
  const x = subject();
  card();
  if (!x) return fill(byId("detail"));
  fill(byId("detail"), h("div", { class: "head" }, x.label, x.label.startsWith(x.place) ? null : h("span", { class: "muted" }, x.place)), cursor(light), load(), selection(), facts());
}

/** What is held at the cursor. */
function cursor(light: (name: string | null) => void): Node[] {
  const at = spot();
  if (!at) return [h("p", { class: "muted" }, "Loading its course.")];
  const c = at.column;
  if (c < 0) return [h("h2", {}, "cursor"), h("p", { class: "muted" }, `Not seen at ${moment(s.k ?? 0)}.`)];
  const { of } = at.course;
  const n = of.samples[c]!;
  const part = (name: string, slot: number, v: number): Node[] => {
    const named = h("span", {}, swatch(slot), ` ${name}`);
    named.addEventListener("mouseenter", () => light(name));
    named.addEventListener("mouseleave", () => light(null));
    return row(named, bytes(v), v, name);
  };
  return [
    h("h2", {}, s.k === null ? "last sample" : "cursor"),
    h(
      "dl",
      { id: "cursor" },
      h("dt", {}, "time"),
      h("dd", { title: doc.began_us ? utc(doc.began_us + of.at[c]! * 1e6) : undefined }, moment(of.at[c]!)),
      row("all", bytes(of.max_bytes[c]!), of.max_bytes[c]!, "all"),
      at.course.parts.filter((p) => !Number.isNaN(p.values[c]!) && (p.name !== "others" || p.values[c]! > 0)).map((p) => part(p.name, p.slot, p.values[c]!)),
      n > 1 && of.min_bytes[c] !== of.max_bytes[c] ? row(`lowest of ${count(n)} samples`, bytes(of.min_bytes[c]!), of.min_bytes[c]!) : [],
    ),
  ];
}

/** What the engine had to do at the cursor. */
function load(): Node[] {
  if (!doc.load) return [];
  const at = loadAt(engine.whole, s.k);
  const shown = at.map(([name, text]) => row(name, text, undefined, name));
  const why = doc.load.note || "It was not known then.";
  return [h("h2", {}, `load of ${doc.load.engine || "the engine"}`), at.length ? h("dl", { id: "load" }, shown) : h("p", { class: "muted" }, why)];
}

/** By how much it grew in the selection. */
function selection(): Node[] {
  const { course } = seen;
  if (!s.range || !course?.n) return [];
  const [a, b] = s.range.map((t) => course.at(t)) as [number, number];
  if (b < 0) return [];
  const from = course.of.max_bytes[Math.max(0, a)]!;
  const to = course.of.max_bytes[b]!;
  const seconds = s.range[1] - s.range[0];
  return [h("h2", {}, "selection"), h("dl", { id: "selection" }, h("dt", {}, "time"), h("dd", {}, moment(seconds)), row("grew by", delta(to - from), to - from), row("a minute", delta(((to - from) / seconds) * 60)))];
}

/** The card of the finding that is drawn, or of the verdict on all. */
function card(): void {
  const root = byId("verdict");
  const f = judged();
  const x = subject();
  byId("inspector").hidden = view() === "findings";
  verdict(doc.reading ? null : doc.card, () => set({ finding: null, ...(view() === "findings" ? { view: null } : {}) }, true));
  if ((root.hidden = s.finding === -1)) return;
  const i = f ? doc.findings.indexOf(f) : -1;
  const show = (n: number): void => set({ view: "findings", finding: n, sub: doc.findings[n]!.subject, ...anew }, true);
  const go = (n: number): void => {
    const of = doc.findings[n]?.subject ?? null;
    const kind = doc.subjects.find((y) => y.key === of)?.kind;
    set(n < 0 ? { finding: n } : { finding: n, win: null, range: null, ...(kind ? { view: kind, sub: of } : {}) }, true);
  };
  const others = new Set(doc.findings.map((y) => y.subject)).size > 1;
  const left = x?.left ? h("p", {}, `The limit is reached ${x.left} (in 9 of 10 cases), if it goes on like this.`) : null;
  const own = !f && x?.verdict ? { word: "NOTE", title: x.verdict } : null;
  fullCard(root, f?.card ?? own ?? (doc.reading ? { word: "UNKNOWN", title: "The recording is still being read." } : doc.card), doc.findings, i, {
    who: others ? (x?.label ?? "") : "", curve: left,
    acts: f ? [textLink("whole finding", "the evidence", () => show(i))] : [],
  }, go, show);
}

function facts(): Node[] {
  const x = subject()!;
  return [
    h("h2", {}, "about"),
    h(
      "dl",
      {},
      x.facts.flatMap(([name, value]) => row(name, value)),
      row("seen", `${moment(x.first)} – ${moment(x.last)}${x.ended ? ", ended" : ""}`),
      row("most", bytes(x.peak_bytes), x.peak_bytes),
      x.limit_bytes === null ? [] : row("limit", bytes(x.limit_bytes), x.limit_bytes),
    ),
  ];
}
