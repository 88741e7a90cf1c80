// Findings: what `diagnose` says, and the way to its evidence.

import { fresh } from "../base/ask.ts";
import { fill, h } from "../base/dom.ts";
import { base, bytes, count } from "../base/format.ts";
import type { Page } from "../page/page.ts";
import type { Rail } from "../rail/rail.ts";
import { stackList, type AnyFrame } from "../base/stack.ts";
import type { Origin } from "../base/wire.ts";

interface Remedy {
  kind: string;
  text: string;
  setting?: string;
}

/** A finding as `diagnose` tells it. */
export interface Told {
  kind: string;
  severity: "problem" | "warning" | "info";
  confidence: number;
  title: string;
  detail?: string[];
  basis?: string;
  device: number | null;
  process?: string;
  site: { file: string | null; line: number | null; function: string | null } | null;
  stack?: AnyFrame[];
  origins?: Origin[]; // of its frames
  bytes?: number;
  count?: number;
  bytes_per_step?: number;
  sites?: { file: string | null; line: number | null; function: string | null; bytes: number; count: number }[];
  trend?: number[];
  evidence?: Record<string, unknown>;
  remedies?: Remedy[];
}

export interface Finding extends Told {
  where?: { f: number; d: number; g: string; keys: string[]; event: number | null };
}

interface Answer {
  verdict: string;
  findings: Finding[];
}

const severities = { problem: "problem", warning: "warning", info: "note" };

export class Findings {
  private answer: Answer | null = null;
  private error = "";
  private asking = false;

  constructor(
    private readonly page: Page,
    private readonly rail: Rail,
    private readonly root: HTMLElement,
  ) {}

  /** Asks for the findings once there are any: the picture shows where they are, whatever the view. */
  load(): void {
    const state = this.page.session?.findings;
    if (!this.answer && !this.asking && state === "ready") {
      this.asking = true;
      fresh<Answer>("findings").then(
        (v) => {
          this.answer = v;
          this.page.findings = v.findings;
          this.page.tell("findings");
          this.page.figures.findings = v.findings.map((f) => ({ kind: f.kind, bytes: f.bytes ?? null, title: f.title }));
          this.draw();
        },
        (e: Error) => {
          this.error = e.message;
          this.draw();
        },
      );
    }
  }

  update(): void {
    this.load();
    this.draw();
  }

  private draw(): void {
    if (this.page.s.view !== "findings") return;
    const state = this.page.session?.findings;
    if (this.error) return fill(this.root, h("p", { class: "note" }, this.error));
    if (!this.answer) return fill(this.root, h("p", { class: "note" }, state === "failed" ? "The files could not be judged." : "Reading all files and judging them …"));
    const { findings, verdict } = this.answer;
    if (!findings.length) return fill(this.root, h("p", { class: "note" }, verdict === "ok" ? "Nothing is wrong with what these files tell." : "These files tell too little for a judgement."));
    const chosen = Math.min(this.page.s.finding ?? 0, findings.length - 1);
    fill(this.root, h("div", { class: "findings" }, findingList(findings, chosen, (i) => this.go(i), (f) => this.owner(f)), this.detail(findings[chosen]!)));
  }

  /** Whose finding it is, where there are several processes or devices. */
  private owner(f: Finding): Node | null {
    const devices = new Set(this.page.session?.files.flatMap((x) => x.devices));
    const names = [f.process, devices.size > 1 ? `device ${f.device}` : null].filter((x) => x);
    return names.length ? h("span", { class: "muted" }, ` · ${names.join(", ")}`) : null;
  }

  /** Takes the picture to the evidence of a finding. */
  private go(i: number, view?: "timeline" | "allocator"): void {
    const w = this.answer!.findings[i]?.where;
    const change = w ? { f: w.f, d: w.d, g: w.g, solo: w.keys.slice(0, 20), alloc: null, range: null, ...(w.event !== null && w.event !== undefined ? { k: w.event } : {}) } : {};
    this.page.store.set({ ...change, finding: i, ...(view ? { view } : {}) }, true);
    if (w?.event != null && this.page.device) this.rail.reveal(w.event);
    if (!view) this.draw();
  }

  /** Lays a run under other settings over that of the finding's file. */
  private tryOut(f: Finding, set: string): void {
    const w = f.where;
    this.page.store.set({ ...(w ? { f: w.f, d: w.d } : {}), view: "whatif", sets: [set], capacity: null, fraction: "", empty: "", win: null }, true);
  }

  private detail(f: Finding): HTMLElement {
    const i = this.answer!.findings.indexOf(f);
    return article(
      f,
      [f.where ? h("button", { type: "button", class: "link", "data-key": "show", onclick: () => this.go(i, "timeline") }, "show in the timeline") : null, f.where && ofAllocator.includes(f.kind) ? h("button", { type: "button", class: "link", "data-key": "show allocator", onclick: () => this.go(i, "allocator") }, "show in the allocator") : null],
      (setting) => (settingOf(setting) !== null ? h("button", { type: "button", class: "link", "data-key": `try ${setting}`, onclick: () => this.tryOut(f, settingOf(setting)!) }, "run it in What if") : null),
    );
  }
}

/** The list of findings; go is told which one is chosen. */
export function findingList<F extends Told>(findings: F[], chosen: number, go: (i: number) => void, owner: (f: F) => Node | null): HTMLElement {
  return h(
    "ol",
    { "aria-label": "Findings" },
    findings.map((f, i) =>
      h(
        "li",
        {},
        h(
          "button",
          { type: "button", "data-key": `finding ${i}`, "aria-current": i === chosen ? "true" : undefined, onclick: () => go(i) },
          h("div", { class: `sev ${f.severity}` }, `${severities[f.severity] ?? f.severity} · ${f.kind.replaceAll("-", " ")}`, f.bytes ? h("span", { class: "muted", "data-bytes": f.bytes }, ` · ${bytes(f.bytes)}`) : null, owner(f)),
          h("div", {}, f.title),
          f.site?.file ? h("div", { class: "mono muted" }, placeOf(f.site)) : null,
        ),
      ),
    ),
  );
}

/** A place on one line; native code has no line. */
const placeOf = (s: { file: string | null; line: number | null; function: string | null }): string => `${base(s.file ?? "")}${s.line ? `:${s.line}` : ""} ${s.function}`;

/** All of a finding, with what can be done about it on the page. */
export function article(f: Told, acts: (Node | null)[], act: (setting: string) => Node | null): HTMLElement {
  return h(
    "article",
    { tabindex: "0", "aria-label": "Finding" },
    h("h2", {}, f.title),
    (f.detail ?? []).map((d) => h("p", {}, d)),
    h("div", { class: "acts" }, acts),
    f.trend && f.trend.length > 1 ? [h("h3", {}, "live bytes over time"), spark(f.trend)] : null,
    f.remedies?.length ? [h("h3", {}, "what to do"), f.remedies.map((r) => [h("p", {}, r.text), r.setting ? [h("pre", { tabindex: "0" }, r.setting), act(r.setting)] : null])] : null,
    f.stack?.length ? [h("h3", {}, "stack"), stackList(f.stack.map((x, n) => ({ ...x, origin: f.origins?.[n] })), "")] : null,
    f.sites && f.sites.length > 1 ? [h("h3", {}, "places"), h("dl", {}, f.sites.slice(0, 20).map((s) => [h("dt", { "data-bytes": s.bytes }, bytes(s.bytes)), h("dd", {}, s.file ? placeOf(s) : "stack unknown", h("span", { class: "muted" }, ` × ${count(s.count)}`))]))] : null,
    f.evidence ? [h("h3", {}, "evidence"), evidence(f.evidence)] : null,
    f.basis ? h("p", { class: "muted" }, `Confidence ${Math.round(f.confidence * 100)} %: ${f.basis}`) : null,
  );
}

/** Kinds of findings whose evidence is the state of segments and blocks. */
const ofAllocator = ["oom", "fragmentation"];

/** The allocator's settings in a remedy: PYTORCH_CUDA_ALLOC_CONF=… or the options alone; null if it is of something else. */
export function settingOf(text: string): string | null {
  const conf = text.replace(/^(export )?PYTORCH_(CUDA_)?ALLOC_CONF=/, "").replace(/^["']|["']$/g, "");
  return /^[a-z0-9_]+:[^=\s]+$/.test(conf) ? conf : null;
}

function evidence(e: Record<string, unknown>): HTMLElement {
  const rows: Node[] = [];
  const show = (name: string, v: unknown): string => {
    if (typeof v === "number") return /bytes/.test(name) ? bytes(v) : count(v);
    if (Array.isArray(v)) return v.length > 12 ? `${v.slice(0, 12).map((x) => show(name, x)).join(", ")} …` : v.map((x) => show(name, x)).join(", ");
    return String(v);
  };
  for (const [name, v] of Object.entries(e)) {
    const flat = Array.isArray(v) ? v.every((x) => typeof x !== "object") : typeof v !== "object";
    if (v === null || !flat) continue;
    const values = show(name, v).split(", ");
    rows.push(h("dt", {}, name.replace(/_bytes$/, "").replace(/_bytes_/, " ").replaceAll("_", " ")), h("dd", {}, values.map((x, i) => [i ? ", " : "", h("span", { class: "whole" }, x)])));
  }
  return h("dl", {}, rows);
}

/** A small line from zero, with its first and last value. */
export function spark(values: number[]): HTMLElement {
  const [w, high] = [420, 56];
  const most = Math.max(1, ...values);
  const points = values.map((v, i) => `${((i / (values.length - 1)) * (w - 4) + 2).toFixed(1)},${(high - 2 - (v / most) * (high - 6)).toFixed(1)}`);
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("width", String(w));
  svg.setAttribute("height", String(high));
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `from ${bytes(values[0]!)} to ${bytes(values[values.length - 1]!)}`);
  const line = document.createElementNS(ns, "polyline");
  line.setAttribute("points", points.join(" "));
  line.setAttribute("fill", "none");
  line.setAttribute("stroke", "currentColor");
  line.setAttribute("stroke-width", "1.5");
  svg.append(line);
  return h("div", { class: "spark" }, svg, h("div", { class: "muted" }, `${bytes(values[0]!)} → ${bytes(values[values.length - 1]!)}`));
}
