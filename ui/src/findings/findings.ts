// Findings: what `diagnose` reports, the card of the one that is pinned, and the way to its
// evidence.

import type { Finding, Findings as Answer } from "../base/api.ts";
import { engine, Once } from "../base/ask.ts";
import { fill, h } from "../base/dom.ts";
import { note, textLink } from "../base/controls.ts";
import { bytes, count, deviceName } from "../base/format.ts";
import { levelFor } from "../base/scale.ts";
import type { Page } from "../session/page.ts";
import { reveal } from "../rail/moves.ts";
import type { Scene } from "../rail/scene.ts";
import { bucketsPerTile, tileOf } from "../picture/tiles.ts";
import { findingsView } from "./article.ts";
import { curve, fullCard, shortCard, verdict } from "./card.ts";

/** Kinds of findings whose evidence is the state of segments and blocks. */
const ofAllocator = ["oom", "fragmentation"];

export class Findings {
  private readonly once = new Once<Answer>("findings", (v) => this.take(v), () => this.draw());
  private curveOf = ""; // the line whose curve is there
  private values: ArrayLike<number> | null = null;

  constructor(
    private readonly page: Page,
    private readonly scene: Scene,
    private readonly root: HTMLElement,
  ) {}

  /** Asks for the findings once all files are judged. */
  load(): void {
    if (this.page.session?.findings === "ready") this.once.ask();
  }

  private take(v: Answer): void {
    this.page.figures.findings = v.findings.map((f) => ({ kind: f.kind, bytes: f.bytes ?? null, title: f.title }));
    this.page.judged(v);
    this.draw();
  }

  update(): void {
    this.load();
    this.draw();
  }

  /** Draws the card of the verdict: in full, or where something else is pinned, what it is in short. */
  card(root: HTMLElement, full: boolean): void {
    const { page } = this;
    const f = page.findings[page.finding];
    const card = f?.card ?? page.verdict;
    root.hidden = !card || page.s.finding === -1;
    verdict(page.verdict ?? card ?? null, () => this.pin(null));
    if (!card || root.hidden) return;
    if (!full) return shortCard(root, card, () => this.pin(page.finding < 0 ? null : page.finding));
    const all = (i: number): void => page.store.set({ view: "findings", finding: i }, true);
    const acts = f ? [f.where ? textLink("show", "show in the timeline", () => this.go(page.finding, "timeline")) : null, textLink("evidence", "the evidence", () => all(page.finding))] : [];
    fullCard(root, card, page.findings, page.finding, { who: f ? this.owner(f) : "", curve: f ? this.curve(f) : null, freed: f ? this.freed() : null, acts }, (i) => this.pin(i), all);
  }

  /** What the peak would be if the lines of the finding were freed, and the switch of its line in the picture. */
  private freed(): Node | null {
    const { s, places, ghost, device, store } = this.page;
    const peak = device?.peak_reserved?.bytes;
    const toggle = textLink("ghost", s.ghost ? "hide the dotted line" : "draw it as if this were freed", () => store.set({ ghost: !s.ghost }, true), { "aria-pressed": String(s.ghost) });
    if (!places || s.view !== "timeline" || (s.ghost && !ghost)) return null;
    const words = ghost && peak ? [`If ${places.includes("\n") ? "these lines were" : "this line were"} freed: a peak of `, h("b", { "data-bytes": ghost.outcome.peak_reserved_bytes, "data-figure": "freed" }, bytes(ghost.outcome.peak_reserved_bytes)), ` reserved, not ${bytes(peak)} · `] : [];
    return h("p", { class: "good" }, words, toggle);
  }

  /** Pins a finding; −1: none. */
  pin(i: number | null): void {
    this.page.store.set({ finding: i, alloc: null, segment: null, solo: [], k: this.page.findings[i ?? -1]?.where?.event ?? null, ...(this.page.s.view === "findings" ? { view: "timeline" } : {}) }, true);
  }

  /** The line of a finding over the history of its file, as far as that is known. */
  private curve(f: Finding): Node | null {
    const { page } = this;
    const { device } = page;
    const w = f.where;
    if (!w || !device?.events || w.f !== page.f || (w.d !== null && w.d !== page.d) || !w.keys.length || !f.site) return f.trend && f.trend.length > 1 ? curve(f.trend, "first", "last") : null;
    const keys = w.keys.join(",");
    const key = `${w.f} ${page.d} ${keys}`;
    if (key !== this.curveOf) {
      this.curveOf = key;
      this.values = null;
      const level = levelFor(device.events, bucketsPerTile);
      if (!device.held) tileOf({ picture: { f: w.f, d: page.d!, g: w.g, u: "requested", x: "ev", solo: keys }, kind: "total", level, i: 0, y: 0 }).then((t) => {
        if (key !== this.curveOf) return;
        this.values = f.bytes_per_step ? t.min.map((v, i) => (i < t.n - 1 ? v : t.last[i]!)) : t.max; // of what grows, what stays
        page.notify("curve");
      }, () => {});
    }
    const values = this.values ?? page.bands?.lanes.find((l) => page.bands!.groups[l.group]!.key === keys)?.points ?? (engine === "saved" ? f.trend : undefined);
    return values && values.length > 1 && Math.max(...Array.from(values)) > 0 ? curve(values, values === f.trend ? "first" : "event 0", values === f.trend ? "last" : count(device.events)) : null;
  }

  private draw(): void {
    if (this.page.s.view !== "findings") return;
    const { answer, error } = this.once;
    if (!answer) return fill(this.root, note(error || "Reading all files and judging them …"));
    findingsView(this.root, answer.findings, answer.card, this.page.s.finding, {
      go: (i) => this.go(i),
      owner: (f) => this.owner(f),
      acts: ({ where, kind }, i) => [where ? textLink("show", "show in the timeline", () => this.go(i, "timeline")) : null, where && ofAllocator.includes(kind) ? textLink("show allocator", "show in the allocator", () => this.go(i, "allocator")) : null],
      act: (f, setting) => (f.where && settingOf(setting) !== null ? textLink(`try ${setting}`, "run it in What if", () => this.tryOut(f, settingOf(setting)!)) : null),
    });
  }

  /** Whose finding it is, where that is not obvious: its process, and its device unless there is only device 0. */
  private owner(f: Finding): string {
    const devices = new Set(this.page.session?.files.flatMap((x) => x.devices));
    return [f.process, f.device !== null && (f.device || devices.size > 1) ? deviceName(f.device) : ""].filter(Boolean).join(", ");
  }

  /** Takes the picture to the evidence of a finding, and pins it. */
  private go(i: number, view?: "timeline" | "allocator"): void {
    const w = this.once.answer!.findings[i]?.where;
    const change = w ? { f: w.f, d: w.d, g: w.g, solo: w.keys.slice(0, 20), alloc: null, segment: null, range: null, ...(w.event !== null && w.event !== undefined ? { k: w.event } : {}) } : {};
    this.page.store.set({ ...change, finding: i, ...(view ? { view } : {}) }, true);
    if (w?.event != null && this.page.device) reveal(this.scene, w.event);
    if (!view) this.draw();
  }

  /** Lays a run under other settings over that of the finding's file. */
  private tryOut(f: Finding, set: string): void {
    const w = f.where;
    this.page.store.set({ ...(w ? { f: w.f, d: w.d } : {}), view: "whatif", sets: [set], capacity: null, fraction: "", empty: "", win: null }, true);
  }
}

/** The allocator's settings in a remedy: PYTORCH_CUDA_ALLOC_CONF=… or the options alone; null if it is of something else. */
export function settingOf(text: string): string | null {
  const conf = text.replace(/^(export )?PYTORCH_(CUDA_)?ALLOC_CONF=/, "").replace(/^["']|["']$/g, "");
  return /^[a-z0-9_]+:[^=\s]+$/.test(conf) ? conf : null;
}
