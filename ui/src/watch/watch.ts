// The page of `strandline view` of a watch's recording: what each process, container and
// device held over time, and how that was judged. While the recording is written, the
// page follows it. All figures are the program's.

import { fresh, link, Refused } from "../base/ask.ts";
import { byId, fill, h } from "../base/dom.ts";
import { chip } from "../base/controls.ts";
import { otherFiles } from "../base/drops.ts";
import { announce, badge, banner, drawing, frame, pattern, searched, tabs } from "../base/frame.ts";
import { base, bytes, duration, plural } from "../base/format.ts";
import type { Key } from "../base/keys.ts";
import { watchTerms } from "../base/hostterms.ts";
import type { Command } from "../base/share.ts";
import { theme } from "../base/theme.ts";
import { timeKeys } from "../picture/time.ts";
import { moment } from "./bands.ts";
import { inspector } from "./inspector.ts";
import { ahead, asking, doc, drawn, engine, judged, load, mapped, s, seen, set, spot, store, subject, view } from "./model.ts";
import { Picture } from "./picture.ts";
import { anew, type View } from "./state.ts";
import { listed, mainView, shownViews } from "./tables.ts";
import type { Watch } from "../base/api.ts";

const picture = new Picture(byId("rail"), byId("tooltip"));

drawing.draw = () => {
  const { course, whole } = seen;
  byId("rail").hidden = !course?.n;
  const f = judged();
  for (const x of [course, whole]) x?.mark(f && f.severity !== "info" && s.finding !== -1 ? f.parts : []);
  if (course?.n && whole) picture.draw({ doc, subject: subject()!, course, whole, load: engine.course, finding: judged(), judged: drawn(), ahead: ahead(), s, spot: spot(), set });
  head();
  tabs(shownViews(), view(), go);
  tools();
  mainView();
  inspector((name) => picture.light(name));
  let wrong: string | null = null;
  pattern(s.q, (why) => (wrong = why));
  searched(s.q, wrong);
};

/** What the recording is good for, in a word and in sentences. */
function coverage(): [kind: string, word: string, sentences: string] {
  const whatIs = `${plural(doc.samples, "sample")} over ${moment(doc.seconds)}.`;
  if (doc.partial !== null) return ["damaged", "partial", `This recording is only partly readable: ${doc.partial}. The rest of it is shown. ${whatIs}`];
  if (doc.reading) return ["late", "reading", `The recording is still being read. So far ${whatIs}`];
  if (!doc.following) return ["exact", "whole", `The whole recording was read: ${whatIs}`];
  const age = Date.now() / 1000 - doc.began_us / 1e6 - doc.seconds;
  const usual = doc.samples > 1 ? doc.seconds / (doc.samples - 1) : 1;
  if (doc.samples && age > 10 + 5 * usual) return ["exact", "no new samples", `The whole recording was read: ${whatIs} The last sample was taken ${duration(age * 1e6)} ago; later ones will be shown when they are written.`];
  return ["live", "live", `Samples are shown as they are written. ${whatIs}`];
}

function head(): void {
  document.title = `${base(doc.file)} – strandline`;
  fill(byId("files"), h("span", { id: "name", title: doc.file }, base(doc.file)), h("span", { class: "muted" }, `${plural(doc.samples, "sample")}, ${moment(doc.seconds)}`), otherFiles());
  badge(...coverage());
}

function go(view: string): void {
  const v = view as View;
  const stays = v === "findings" || subject()?.kind === v;
  set({ view: v, ...(stays ? {} : { sub: null, finding: null, ...anew }) }, true);
}

function tools(): void {
  const of = drawn();
  const e = of?.e;
  const x = subject();
  const { course } = seen;
  const more = course?.of.samples.some((n) => n > 1 && course.n > 600) ?? false;
  fill(
    byId("tools"),
    h("span", {}, x ? (x.label.startsWith(x.place) ? x.label : `${x.label}, ${x.place}`) : ""),
    of && stackable() ? chip("alone", s.alone ? "show all" : `${of.parts.join(" + ")} alone`, "What was judged alone, or all (z)", () => set({ alone: !s.alone }, true), s.alone) : null,
    x?.mappings ? chip("mapped", s.mapped ? "by kind" : "by mapping", "Its mappings that grow, by address, or its kinds of memory (m)", () => set({ mapped: !s.mapped, alone: false }, true), s.mapped) : null,
    e?.seconds_to_limit ? chip("ahead", ahead() ? "to the last sample" : "as far as the limit", "As far as the limit, or to the last sample (l)", () => set({ ahead: !ahead(), win: null }, true), ahead()) : null,
    s.range ? chip("range", `selected: ${moment(s.range[0])} – ${moment(s.range[1])} ×`, "Drop the selection (Esc)", () => set({ range: null }, true)) : null,
    s.win ? chip("all", `seen: ${moment(Math.max(0, s.win[0]))} – ${moment(s.win[1])} ×`, "Show all of time (0)", () => set({ win: null }, true)) : null,
    more ? h("span", {}, "each column shows its highest sample") : null,
    of ? h("span", { class: "legend" }, h("span", {}, h("i", { class: "fit" }), "fitted, with its interval"), e?.limit_bytes ? h("span", {}, h("i", { class: "limit" }), "limit") : null) : null,
  );
}

/** Reports whether what was judged can be stacked alone: it is a part of the total. */
const stackable = (): boolean => !!drawn()?.parts.length && drawn()!.parts.every((name) => seen.course?.parts.some((p) => p.name === name && !p.beside));

// ---- keys

function keyTable(): Key[] {
  return [
    ...timeKeys(picture, () => seen.course?.n, "sample"),
    { keys: ["ArrowUp", "ArrowDown"], show: "↑  ↓", does: "the one above, below in the table", act: (_, down) => neighbor(down ? 1 : -1) },
    { keys: ["l"], show: "l", does: "as far as the limit, or to the last sample", act: () => drawn()?.e.seconds_to_limit && set({ ahead: !ahead(), win: null }, true) },
    { keys: ["z"], show: "z", does: "what was judged alone, or all", act: () => stackable() && set({ alone: !s.alone }, true) },
    { keys: ["m"], show: "m", does: "mappings by address, or kinds of memory", act: () => subject()?.mappings && set({ mapped: !mapped(), alone: false }, true) },
    { keys: ["Escape"], show: "Esc", does: "step back out", act: out },
  ];
}

/** Goes to the next subject of the table. */
function neighbor(by: number): void {
  const all = view() === "findings" ? [] : listed();
  const at = all.findIndex((x) => x.key === subject()?.key);
  const to = all[Math.max(0, Math.min(all.length - 1, at + by))];
  if (to) set({ sub: to.key, finding: null, ...anew });
}

function out(): void {
  if (s.range) set({ range: null }, true);
  else if (s.alone) set({ alone: false }, true);
  else if (s.win) set({ win: null }, true);
  else if (s.k !== null) set({ k: null });
}

/** All that can be turned to. */
const places = (): Command[] => [
  ...doc.findings.map((f, i) => ({ key: `finding ${i}`, name: f.title, does: f.kind, act: () => set({ view: "findings", finding: i, sub: f.subject, ...anew }, true) })),
  ...doc.subjects.map((x) => ({ key: `subject ${x.key}`, name: x.label, does: x.place, act: () => set({ sub: x.key, finding: null, ...anew }, true) })),
];

// ---- begin

/** Where the cursor is, in words. */
function where(): string | undefined {
  const at = spot();
  return at && at.column >= 0 ? `${subject()?.label}, ${moment(at.course.of.at[at.column]!)}: ${bytes(at.course.of.max_bytes[at.column]!)}` : undefined;
}

/** Takes newer answers as long as they come. */
async function follow(): Promise<void> {
  for (;;) {
    const began = performance.now();
    try {
      load(await fresh<Watch>("watch", { since: doc.version }));
      drawing.ask();
    } catch (e) {
      if (!(e instanceof Refused)) throw e;
      if (e.status === 403) return; // the program is another run's, and never answers this page
      // the link shows to the reader that it is away; another try follows
    }
    const least = 1000;
    await new Promise((r) => setTimeout(r, Math.max(least - (performance.now() - began), doc.reading ? 200 : least / 2)));
  }
}

async function begin(): Promise<void> {
  load(await fresh<Watch>("watch"));
  const name = base(doc.file);
  frame({
    views: shownViews, go, keys: keyTable, terms: watchTerms,
    help: "Drag on the picture to select, click for a moment, turn the wheel to zoom. The address holds all that is chosen.",
    name: () => name, title: () => `${name} · ${subject()?.label}, ${subject()?.place}`, pictures: () => (seen.course?.n ? [picture.canvas()] : []), places,
    link: () => store.link, search: (q) => set({ q }),
  });
  store.on(() => (drawing.ask(), announce(where)));
  if (doc.partial !== null) banner(coverage()[2]);
  theme(drawing.ask);
  if (!link.saved && (doc.reading || doc.following)) void follow();
}

window.strandline = {
  state: () => ({ s, doc, view: doc ? view() : null, subject: doc ? subject() : null, judged: doc ? judged() : null, picture: seen.course?.n ? picture.state() : null, settled: doc !== undefined && !doc.reading && !drawing.frame && !asking(), levels: seen.course?.of }),
};

begin().catch((e: Error) => banner(e.message));

