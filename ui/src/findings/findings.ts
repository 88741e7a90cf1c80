// Findings: what `diagnose` reports, and the way to its evidence.

import { fresh } from "../base/ask.ts";
import { fill, h } from "../base/dom.ts";
import { deviceName } from "../base/format.ts";
import type { Page } from "../session/page.ts";
import type { Rail } from "../rail/rail.ts";
import { article, findingList } from "./article.ts";
import { verdictStrip } from "./strip.ts";
import type { Finding } from "./wire.ts";

interface Answer {
  verdict: string;
  findings: Finding[];
}

/** Kinds of findings whose evidence is the state of segments and blocks. */
const ofAllocator = ["oom", "fragmentation"];

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
          this.page.judged(v.findings);
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

  /** Draws the strip above the picture. */
  strip(root: HTMLElement): void {
    const devices = new Set(this.page.session?.files.flatMap((x) => x.devices));
    verdictStrip(root, this.answer?.findings ?? null, this.answer?.verdict ?? "", devices.size > 1, (i) => this.page.store.set({ view: "findings", finding: i }, true));
  }

  private draw(): void {
    if (this.page.s.view !== "findings") return;
    if (this.error) return fill(this.root, h("p", { class: "note" }, this.error));
    if (!this.answer) return fill(this.root, h("p", { class: "note" }, "Reading all files and judging them …"));
    const { findings, verdict } = this.answer;
    if (!findings.length) return fill(this.root, h("p", { class: "note" }, verdict === "ok" ? "Nothing wrong was found in these files." : "These files contain too little for a judgment."));
    const chosen = Math.min(this.page.s.finding ?? 0, findings.length - 1);
    fill(this.root, h("div", { class: "findings" }, findingList(findings, chosen, (i) => this.go(i), (f) => this.owner(f)), this.detail(findings[chosen]!)));
  }

  /** Whose finding it is, where there are several processes or devices. */
  private owner(f: Finding): Node | null {
    const devices = new Set(this.page.session?.files.flatMap((x) => x.devices));
    const names = [f.process, devices.size > 1 && f.device !== null ? deviceName(f.device) : null].filter((x) => x);
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

/** The allocator's settings in a remedy: PYTORCH_CUDA_ALLOC_CONF=… or the options alone; null if it is of something else. */
export function settingOf(text: string): string | null {
  const conf = text.replace(/^(export )?PYTORCH_(CUDA_)?ALLOC_CONF=/, "").replace(/^["']|["']$/g, "");
  return /^[a-z0-9_]+:[^=\s]+$/.test(conf) ? conf : null;
}
