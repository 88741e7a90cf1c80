// What all parts of the page share: the store, and what the engine reported about
// the file, device and grouping that are chosen.

import { fresh, Refused } from "../base/ask.ts";
import { Store, type State } from "./store.ts";
import type { Card, Finding, Findings } from "../base/api.ts";
import { pinnedOf } from "../base/names.ts";
import { markSlot } from "../picture/palette.ts";
import { runOf, type Run } from "./runs.ts";
import type { Alloc, Band, Bands, Device, Event, Group, Session, SessionFile } from "../base/wire.ts";

const ownSlot = new WeakMap<Group, number>(); // of groups that are marked

export class Page {
  readonly store = new Store();
  session: Session | null = null;
  device: Device | null = null;
  bands: Bands | null = null;
  problem: string | null = null; // why the picture cannot be shown
  unknownSites = 0; // of the link, in this file
  found: Set<string> | null = null; // groups that match the search
  searchError: string | null = null;
  lit: string | null = null; // group under the pointer, anywhere
  event: Event | null = null; // the cursor's event
  pinned: Alloc | null = null;
  findings: Finding[] = []; // of all files
  verdict: Card | null = null; // on them; null until they are judged
  curves: Curve[] = []; // runs laid over the picture
  recorded: Run | null = null; // the recorded run, as an exact replay has it
  kept: Run | null = null; // the run under the policy that keeps reserved memory under a size
  freed: { key: string; run: Run } | null = null; // the run without the lines of a finding
  readonly figures: Record<string, unknown> = {}; // last numbers shown, for tests

  private loading = "";
  private listeners: ((what: Change) => void)[] = [];

  get s(): State {
    return this.store.now;
  }

  on(listener: (what: Change) => void): void {
    this.listeners.push(listener);
  }

  notify(what: Change): void {
    if (what === "findings") this.mark(this.bands?.groups ?? []);
    for (const l of this.listeners) l(what);
  }

  /** The file that is shown: the newest, or where the worst finding is, unless the reader or a link chose another. */
  get f(): number {
    const { f, print } = this.s;
    const linked = print === null ? undefined : this.session?.files.find((x) => x.fingerprint?.startsWith(print));
    return linked?.f ?? f ?? this.chosen;
  }

  /** Whether the link is of a file that is not among those that were read. */
  get strange(): boolean {
    const { print } = this.s;
    const files = this.session?.files ?? [];
    return print !== null && files.length > 0 && files.every((x) => x.state === "ready" || x.state === "failed") && !files.some((x) => x.fingerprint?.startsWith(print));
  }

  get file(): SessionFile | undefined {
    return this.session?.files.find((f) => f.f === this.f);
  }

  /** The device that is chosen, as PyTorch counts it. */
  get d(): number | undefined {
    const of = this.file?.devices ?? [];
    const wish = this.s.d ?? (this.f === this.chosen ? this.device0 : null) ?? this.file?.main ?? null;
    return wish !== null && of.includes(wish) ? wish : of[0];
  }

  /** The measure of bytes: that of blocks only where it is known. */
  get u(): State["u"] {
    return this.s.u !== "allocated" || this.file?.blocks === "ready" ? this.s.u : "requested";
  }

  /** The measure, where it changes what an allocation is: of reserved memory it is a part of a segment. */
  get segments(): "reserved" | undefined {
    return this.u === "reserved" ? this.u : undefined;
  }

  /** The parameters that most questions share. */
  get base(): { f: number; d: number | undefined; g: string } {
    return { f: this.f, d: this.d, g: this.s.g };
  }

  /** The cursor: where the reader put it, else the out-of-memory error or the peak. */
  get k(): number {
    const dev = this.device;
    if (!dev) return -1;
    if (this.s.k !== null) return this.near(Math.min(Math.max(this.s.k, -1), dev.events - 1));
    const oom = dev.marks.findLast((m) => m.kind === "oom");
    return this.near(oom ? oom.event : (dev.peak?.event ?? -1));
  }

  /** The event where the cursor can stand that is nearest to k: any, but for saved pages. */
  near(k: number): number {
    const events = this.device?.held?.events;
    if (!events) return k;
    const i = events.findIndex((e) => e >= k);
    if (i <= 0) return events.at(i) ?? k;
    return events[i]! - k < k - events[i - 1]! ? events[i]! : events[i - 1]!;
  }

  /** The event where the cursor can be before or after it. */
  beside(by: 1 | -1): number {
    const events = this.device?.held?.events;
    if (!events) return this.k + by;
    return events[events.indexOf(this.k) + by] ?? this.k;
  }

  /** The finest level that there is of a part of the picture: all, but for saved pages. */
  finest(x: "ev" | "us", solo: boolean, from: number, to: number): number {
    const held = this.device?.held;
    if (!held) return 0;
    if (solo) return held.levels.alone ?? 0;
    const near = x === "ev" && this.s.g === "line" ? (held.near ?? []).filter((n) => n.from <= from && to <= n.to) : [];
    return Math.min(held.levels[`${x} ${this.s.g}`] ?? 0, ...near.map((n) => n.level));
  }

  /** Reports whether there is a picture of a group alone: all have one, but in saved pages. */
  hasAlone(key: string): boolean {
    const held = this.device?.held;
    return !held || (this.s.x === "ev" && held.alone.includes(key));
  }

  /** Lights a group up wherever it is drawn. */
  lightUp(key: string | null): void {
    if (key === this.lit) return;
    this.lit = key;
    this.notify("lit");
  }

  /** Shows a group alone, or if it is, all again. */
  toggleAlone(key: string): void {
    const { solo } = this.s;
    this.store.set({ solo: solo.length === 1 && solo[0] === key ? [] : [key] }, true);
  }

  group(key: string): Group | undefined {
    return this.bands?.groups.find((g) => g.key === key);
  }

  /** The finding that is pinned, by its place in the list; −1 if none is. */
  get finding(): number {
    return pinnedOf(this.findings, this.s.finding);
  }

  /** Whether the card of the verdict stands in full: nothing else is pinned, and the cursor was not put elsewhere. */
  get carded(): boolean {
    const { s } = this;
    const event = this.findings[this.finding]?.where?.event ?? null;
    return s.finding !== -1 && s.alloc === null && s.segment === null && (s.k === null || s.k === event) && s.solo.every((key) => this.group(key)?.slot === markSlot) && ["timeline", "sites", "compare", "wall"].includes(s.view);
  }

  /** Whether there is nothing to be inspected. */
  get bare(): boolean {
    const { s } = this;
    return s.view === "findings" || s.view === "job" || (s.finding === -1 && s.alloc === null && s.segment === null && s.k === null && !s.solo.length && s.view !== "allocator" && s.view !== "whatif");
  }

  /** Gives the groups that the pinned finding is about the color of the mark, and all others their own. */
  mark(groups: Group[]): void {
    const f = this.findings[this.finding];
    const sites = f ? [...(f.site ? [f.site] : []), ...(f.sites ?? [])] : [];
    for (const g of groups) {
      if (!ownSlot.has(g)) ownSlot.set(g, g.slot);
      const about = !!g.file && sites.some((x) => x.file === g.file && (g.line === undefined || x.line === g.line) && (g.function === undefined || x.function === g.function));
      g.slot = about ? markSlot : ownSlot.get(g)!;
    }
  }

  /** The lines of the pinned finding that could be freed, with line breaks between them; none where the picture is not of its file. */
  get places(): string {
    const where = this.findings[this.finding]?.where;
    return where && where.f === this.f && (where.d === null || where.d === this.d) ? where.places.join("\n") : "";
  }

  /** The run as if the lines of the pinned finding were freed, where it is known and wished for. */
  get ghost(): Run | null {
    return this.s.ghost && this.places !== "" && this.freed?.key === this.ghostKey ? this.freed.run : null;
  }

  private get ghostKey(): string {
    return `${this.f} ${this.d} ${this.places}`;
  }

  /** Runs the history without the lines of the pinned finding, once it is known that the allocator is reproduced; a saved page has such runs only. */
  askGhost(): void {
    const { places, ghostKey: key } = this;
    const exact = this.file?.blocks === "ready" || !!this.device?.held;
    if (!places || !this.device?.events || !this.s.ghost || this.s.view !== "timeline" || this.asked === key || !exact) return;
    this.asked = key;
    runOf({ f: this.f, d: this.d, own: 1, without: places }).then((run) => {
      if (run.outcome.peak_reserved_bytes === this.device?.peak_reserved.bytes) return; // it needs the same segments
      this.freed = { key, run };
      this.notify("ghost");
    }, () => {}); // a saved page may lack it
  }

  private asked = "";

  bandGroup(band: Band): Group {
    return this.bands!.groups[band.group]!;
  }

  /** Loads what the state names and is not there yet. */
  load(): void {
    const file = this.file;
    const usable = file && (file.state === "ready" || file.state === "totals");
    const key = usable ? `${this.f} ${this.d} ${this.s.g} ${this.u} ${file.state} ${file.blocks}` : file?.state === "judged" ? "judged" : (file?.error ?? "");
    if (key === this.loading) return;
    this.loading = key;
    const lacks = (problem: string | null): void => {
      this.device = this.bands = this.event = this.pinned = null;
      this.problem = problem;
      this.notify("device");
    };
    if (!usable) return lacks(file?.state === "judged" ? "There is no picture of this file. Findings has what was found in it." : (file?.error ?? null));
    if (this.d === undefined) return lacks("This file has no device: neither a segment nor an event is in it.");
    this.problem = null;
    const still = (): boolean => this.loading === key;
    const fail = (e: Error): void => {
      if (!still()) return;
      if (e instanceof Refused && (e.status === 409 || e.status === 0)) this.loading = "";
      this.problem = e.message;
      this.notify("device");
    };
    const { f, d, g } = this.base;
    const { u } = this;
    if (this.loadedDevice !== `${f} ${d}`) this.device = null;
    if (this.loadedBands !== `${f} ${d} ${g} ${u}`) this.bands = null;
    fresh<Device>("device", { f, d, u }).then((dev) => {
      if (!still()) return;
      this.device = dev;
      this.loadedDevice = `${f} ${d}`;
      if (!dev.groupings.includes(this.s.g) && dev.groupings.length) this.store.set({ g: dev.groupings[0]! });
      this.notify("device");
    }, fail);
    if (file.state !== "ready") return;
    fresh<Bands>("bands", { f, d, g, u }).then((bands) => {
      if (!still()) return;
      this.bands = bands;
      this.mark(bands.groups);
      this.loadedBands = `${f} ${d} ${g} ${u}`;
      const known = new Set(bands.groups.map((x) => x.key));
      this.unknownSites = this.s.solo.filter((k) => !known.has(k)).length;
      this.notify("bands");
    }, fail);
  }

  private loadedDevice = "";
  private loadedBands = "";
  private chosen = -1; // the file to begin with
  private device0: number | null = null; // and its device, where a finding names one
  private touched = false; // the reader has done something: no picture changes by itself

  /** Whether the reader has done nothing yet. */
  get untouched(): boolean {
    return !this.touched;
  }

  constructor() {
    const touch = (): void => void (this.touched = true);
    for (const what of ["pointerdown", "keydown", "wheel"]) addEventListener(what, touch, { once: true, capture: true, passive: true });
    this.store.print = () => this.file?.fingerprint?.slice(0, 12) ?? null;
  }

  /** Takes the findings. A page that nobody has touched turns to the worst one. */
  judged({ findings, card }: Findings): void {
    this.findings = findings;
    this.verdict = card;
    const where = findings.find((f) => f.severity === "problem")?.where;
    const { s } = this;
    if (where && !this.touched && s.f === null && s.print === null && s.d === null && s.k === null && s.win === null && (where.f !== this.f || (where.d !== null && where.d !== this.d))) {
      this.chosen = where.f;
      this.device0 = where.d;
      this.notify("session");
    }
    if (!this.touched && this.file?.state === "judged" && s.view === "timeline") this.store.set({ view: "findings" }); // there is no picture of it
    this.notify("findings");
  }

  /** Follows the session for as long as the page lives. */
  async follow(): Promise<void> {
    let since: number | undefined;
    let known = "";
    let at = 0;
    for (;;) {
      try {
        const next = await fresh<Session>("session", { since });
        since = next.version;
        if (!this.touched && this.device0 === null && this.findings.length === 0) this.chosen = newest(next, this.chosen);
        else if (!next.files.some((f) => f.f === this.chosen)) this.chosen = newest(next, -1); // it turned out not to be a snapshot
        this.session = next;
        if (next.replaced) return this.touched ? this.notify("session") : location.reload(); // of a recording that is still written
        // Progress is drawn a few times a second: the files are read on the same machine.
        const states = `${next.findings} ${next.order} ${next.files.map((f) => [f.state, f.blocks])}`;
        if (states === known && performance.now() - at < 300) continue;
        known = states;
        at = performance.now();
        this.notify("session");
      } catch (e) {
        if (!(e instanceof Refused)) throw e;
        if (e.status === 403) return; // the program is another run's, and never answers this page
        await new Promise((r) => setTimeout(r, 1000));
      }
    }
  }
}

/** The file to begin with: the last one that was named, but of many the first, which is read first. One that holds nothing gives way. */
function newest(session: Session, now: number): number {
  const { files, order } = session;
  const holds = (f: number | undefined): boolean => files.some((x) => x.f === f && x.state !== "failed" && (x.peak === null || x.peak > 0 || x.events !== 0));
  if (holds(now)) return now;
  const wish = order.at(-1) ?? (files.length <= 8 ? files.at(-1)?.f : files[0]?.f) ?? 0;
  return holds(wish) ? wish : (files.findLast((x) => holds(x.f))?.f ?? wish);
}

/** A run that is laid over the picture. */
export interface Curve {
  run: Run;
  number: number;
  slot: number;
  name: string;
}

export type Change = "session" | "device" | "bands" | "found" | "lit" | "event" | "pinned" | "curves" | "curve" | "ghost" | "findings" | "drawn" | "theme";
