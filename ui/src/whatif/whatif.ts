// What if: the recorded requests run under other settings, laid over the real run.

import { fresh, Latest, link, Refused, type Params } from "../base/ask.ts";
import { button, field as input, note, refill, scroll, select, textLink } from "../base/controls.ts";
import { command, fill, h } from "../base/dom.ts";
import { bytes, count, delta, duration, placeOf, plural } from "../base/format.ts";
import { Sorting, table, type Column, type Row } from "../base/table.ts";
import type { Page } from "../session/page.ts";
import { goTo } from "../rail/moves.ts";
import type { Scene } from "../rail/scene.ts";
import type { Fits, Outcome, Reclaim, Replay } from "../base/api.ts";
import { conf, parts, type Fields } from "./conf.ts";
import { Runs, type Run } from "../session/runs.ts";

/** Runs whose curves are drawn, and their colors: slots that can be distinguished as lines. */
const mostDrawn = 6;
const slots = [0, 3, 7, 6, 2, 5];

const looksWanted = 1024;

/** Settings in short. */
const nameOf = (conf: string): string => conf || "the defaults";

/** A size as the engine reads it, without rounding. */
const size = (n: number): string => (n % 2 ** 30 === 0 ? `${n / 2 ** 30}GiB` : n % 2 ** 20 === 0 ? `${n / 2 ** 20}MiB` : String(n));

/** A run in the table. */
interface Line extends Row {
  conf: string | null; // null: as recorded
  outcome: Outcome | null;
  why: string | undefined;
  number: number; // of those that are drawn; 0: as recorded
  fits: number | null | undefined;
}

/** What the calls of the driver of a run come to. */
const costs = <R>(of: (r: R) => Outcome | null): Column<R>[] => [
  { name: "driver calls", of: (r) => of(r)?.driver_calls ?? 0, show: (r) => (of(r) ? count(of(r)!.driver_calls) : "–"), wide: true },
  { name: "est. cost", of: (r) => of(r)?.driver_ms_estimate ?? 0, show: (r) => (of(r) ? duration(of(r)!.driver_ms_estimate * 1000) : "–"), wide: true },
];

export class WhatIf {
  private readonly by = new Sorting(() => this.draw());
  private replay: Replay | null = null;
  private of = "";
  private error = "";
  private draft = "";
  private shown = "";
  private readonly close = new Latest(250);
  private stretch: [number, number] | null = null;
  private readonly runs: Runs;
  private readonly sought = new Set<string>(); // settings whose least capacity was asked for

  constructor(
    private readonly page: Page,
    private readonly scene: Scene,
    private readonly root: HTMLElement,
    private readonly announce: (s: string) => void,
  ) {
    this.runs = new Runs(() => {
      this.curves();
      if (this.page.s.view === "whatif") this.update();
    });
  }

  /** The view was emptied for another one. */
  enter(): void {
    this.shown = "";
  }

  /** It is left: no run is waited for. */
  leave(): void {
    this.runs.want([]);
  }

  /** Asks again after the engine was away. */
  retry(): void {
    this.error = "";
    this.runs.forgive();
    if (this.page.s.view === "whatif") this.update();
  }

  private get device(): Params {
    return { f: this.page.f, d: this.page.d };
  }

  /** What is different in all runs. */
  private get bounds(): Params {
    const { fraction, empty, without } = this.page.s;
    return { capacity: this.capacity || undefined, fraction: fraction || undefined, empty: empty || undefined, without: without.split(",").map((x) => x.trim()).filter(Boolean).join("\n") || undefined };
  }

  private get capacity(): string {
    return this.page.s.capacity ?? (this.replay?.capacity ? size(this.replay.capacity) : "");
  }

  private get sets(): string[] {
    return (this.page.s.sets ?? this.replay?.try ?? []).slice(0, mostDrawn);
  }

  private get under(): Params {
    return { ...this.device, under: this.page.s.under };
  }

  /** The run under the policy that was found, once there is one. */
  private get kept(): Params | null {
    const policy = this.page.s.under ? this.runs.get<Reclaim>("reclaim", this.under)?.policy : null;
    return policy ? { ...this.device, own: 1, empty: policy } : null;
  }

  private params(set: string): Params {
    return { ...this.device, set, ...this.bounds };
  }

  private looks(): Params {
    return { n: looksWanted, from: this.stretch?.[0], to: this.stretch?.[1] };
  }

  update(): void {
    const { page } = this;
    const { file, device } = page;
    if (!device || !file) return fill(this.root);
    const of = `${page.f} ${page.d}`;
    if (of !== this.of) {
      this.of = of;
      this.replay = null;
      this.error = "";
      this.shown = "";
      this.stretch = null;
      this.draft = "";
      this.sought.clear();
    }
    const known = file.blocks === "ready" || file.blocks === "unknown";
    if (device.events > 0 && known && !this.replay && !this.error) {
      this.error = "…";
      fresh<Replay>("replay", this.device).then(
        (v) => {
          if (of !== this.of) return;
          this.replay = v;
          this.error = "";
          this.page.figures.replay = v;
          this.update();
        },
        (e: Error) => {
          if (of !== this.of) return;
          this.error = e instanceof Refused ? e.message : "the replay failed";
          this.update();
        },
      );
    }
    if (!this.replay) return this.note(device.events === 0 ? "There is no history to run under other settings, only the state at one moment." : this.error && this.error !== "…" ? this.error : "Replaying the history under its own settings, to see whether the allocator is reproduced …");
    if (this.replay.lost) return this.note(`The state at the beginning is not one an allocator can be in, so nothing can be run from it: ${this.replay.first_difference}`);
    this.follow();
    this.want();
    this.curves();
    this.draw();
  }

  private note(text: string): void {
    this.page.curves = [];
    this.shown = "";
    fill(this.root, note(text));
  }

  /** Once the window rests, the course is asked for again for what is seen. */
  private follow(): void {
    const seen = this.page.s.win ? this.scene.events : null;
    if (JSON.stringify(seen) === JSON.stringify(this.stretch)) return this.close.cancel();
    this.close.ask(
      () => Promise.resolve(seen),
      (v) => {
        this.stretch = v;
        this.want();
      },
    );
  }

  private want(): void {
    if (!this.replay || this.page.s.view !== "whatif") return;
    const jobs: [string, Params][] = [];
    for (const stretch of this.stretch ? [{ n: looksWanted }, this.looks()] : [this.looks()]) {
      if (this.replay.exact) jobs.push(["simulate", { ...this.device, recorded: 1, ...stretch }]);
      for (const set of this.sets) jobs.push(["simulate", { ...this.params(set), ...stretch }]);
    }
    if (this.page.s.under) jobs.push(["reclaim", this.under]);
    const { kept } = this;
    if (kept) jobs.push(["simulate", { ...kept, n: looksWanted }]);
    if (this.page.s.search) jobs.push(["search", { ...this.device, ...this.bounds }]);
    for (const set of this.sets) if (this.seeks(set)) jobs.push(["fits", this.params(set)]);
    this.runs.want(jobs);
  }

  /** Whether a run is quick enough that the dozen which find the least capacity are run unasked. */
  private get quick(): boolean {
    return this.runs.took > 0 && this.runs.took < 1500;
  }

  /** Whether the least capacity of a run is looked for: of quick ones, and where it was asked for. */
  private seeks(set: string): boolean {
    return this.quick || this.sought.has(set);
  }

  /** A run as it is seen: of the whole until that of the window is there. */
  private run(params: Params): Run | undefined {
    return this.runs.get<Run>("simulate", { ...params, ...this.looks() }) ?? this.runs.get<Run>("simulate", { ...params, n: looksWanted });
  }

  /** Hands the picture its curves. */
  private curves(): void {
    const { page } = this;
    const recorded = this.replay?.exact ? this.run({ ...this.device, recorded: 1 }) : undefined;
    const drawn = this.sets.map((set, i) => ({ run: this.run(this.params(set)), number: i + 1, slot: slots[i]!, name: nameOf(set) })).filter((c) => c.run);
    const before = [page.recorded, page.kept, ...page.curves.flatMap((c) => [c.run, c.slot])];
    page.curves = drawn.map((c) => ({ ...c, run: c.run! }));
    page.recorded = recorded ?? null;
    page.kept = this.kept && (this.run(this.kept) ?? null);
    page.figures.kept = page.kept?.outcome.peak_reserved_bytes ?? null;
    const after = [page.recorded, page.kept, ...page.curves.flatMap((c) => [c.run, c.slot])];
    if (before.length !== after.length || before.some((v, i) => v !== after[i])) page.notify("curves");
  }

  private rows(): Line[] {
    const line = (conf: string | null, number: number, params: Params): Line => {
      const fits = conf === null ? undefined : this.runs.get<Fits>("fits", params);
      const why = this.runs.why("simulate", { ...params, ...this.looks() }) ?? this.runs.why("simulate", { ...params, n: looksWanted });
      return { key: conf ?? "recorded", label: conf === null ? "as recorded" : `run ${number}: ${nameOf(conf)}`, slot: number ? slots[number - 1]! : -1, conf, number, outcome: this.run(params)?.outcome ?? null, why, fits: fits && fits.smallest_capacity_bytes };
    };
    return [line(null, 0, { ...this.device, recorded: this.replay!.exact ? 1 : 0 }), ...this.sets.map((set, i) => line(set, i + 1, this.params(set)))];
  }

  private draw(): void {
    const r = this.replay!;
    const { s } = this.page;
    const rows = this.rows();
    const found = s.search ? this.runs.get<{ runs: Outcome[] }>("search", { ...this.device, ...this.bounds })?.runs : undefined;
    const searchWhy = s.search ? this.runs.why("search", { ...this.device, ...this.bounds }) : undefined;
    this.page.figures.runs = rows.map((x) => ({ settings: x.conf, drawn: x.number - 1, fits: x.fits ?? null, ...x.outcome }));
    this.page.figures.search = found ?? null;
    const kept = this.runs.get<Reclaim>("reclaim", this.under);
    const keptWhy = this.runs.why("reclaim", this.under);
    const shows = JSON.stringify([r, rows, found?.length, this.capacity, s.fraction, s.empty, s.without, s.under, kept, keptWhy, s.search, searchWhy, this.runs.working, this.sought.size, this.draft, this.by]);
    if (shows === this.shown) return;
    this.shown = shows;
    refill(this.root, h("div", { class: "whatif" }, this.form(), scroll("Runs", [this.fidelity(), this.table(rows), s.under ? this.policy(kept, keptWhy) : null, this.searched(found, searchWhy), this.notes(rows)], { class: "runs scroll" })));
  }

  private fidelity(): HTMLElement {
    const r = this.replay!;
    if (r.exact)
      return h("p", { class: "fidelity" }, h("b", { class: "good" }, "Replayed exactly"), ` under its own settings (${nameOf(r.settings)}): ${plural(r.events, "event")}, all ${count(r.driver_calls.recorded)} calls of the driver and all ${plural(r.segments.recorded, "segment")} at the end. What other settings do follows from the same requests.`);
    return h(
      "p",
      { class: "fidelity" },
      h("b", { class: "warning" }, "Not replayed exactly"),
      `: ${count(r.driver_calls.reproduced)} of ${count(r.driver_calls.recorded)} calls of the driver, ${count(r.segments.reproduced)} of ${plural(r.segments.recorded, "segment")}. First difference: ${r.first_difference}. Take the runs below as an approximation.`,
    );
  }

  private table(rows: Line[]): HTMLElement {
    const recorded = rows[0]!.outcome;
    const had = recorded?.peak_reserved_bytes ?? this.page.device!.peak_reserved?.bytes ?? null;
    const change = ({ conf, outcome }: Line): number | null => (had === null || conf === null || !outcome ? null : outcome.peak_reserved_bytes - had);
    const rescued = ({ conf, outcome }: Line): boolean => conf !== null && !!recorded?.oom && !!outcome && !outcome.oom;
    const columns: Column<Line>[] = [
      { name: "peak reserved", of: (r) => r.outcome?.peak_reserved_bytes ?? (r.number ? 0 : (had ?? 0)), show: (r) => (r.outcome?.oom ? "runs out" : r.outcome ? bytes(r.outcome.peak_reserved_bytes) : r.number ? (r.why ?? "running …") : bytes(had)), class: (r) => (r.outcome?.oom || r.why ? "danger" : ""), bytes: true },
      { name: "change", of: (r) => change(r) ?? 0, show: (r) => (change(r) === null ? "–" : rescued(r) ? "fits" : change(r) === 0 ? "the same" : delta(change(r)!)), class: (r) => (rescued(r) ? "good" : ""), bytes: true },
      { name: "stranded", of: (r) => r.outcome?.peak_stranded_bytes ?? 0, show: (r) => bytes(r.outcome?.peak_stranded_bytes), bytes: true, wide: true },
      { name: "fits in", of: (r) => r.fits ?? 0, show: (r) => (r.fits === undefined ? (r.number && this.seeks(r.conf!) ? "…" : "–") : bytes(r.fits)), bytes: true, node: (r) => (r.fits === undefined && r.outcome && r.number && !this.seeks(r.conf!) ? textLink(`fits ${r.conf}`, "find", () => (this.sought.add(r.conf!), this.update())) : null) },
      ...costs<Line>((r) => r.outcome),
      ...(link.saved ? [] : [{ name: "remove", of: () => 0, show: () => "", node: (r: Line) => (r.number ? button(`drop ${r.conf}`, "×", () => this.set({ sets: this.sets.filter((c) => c !== r.conf) }), { class: "icon", "aria-label": `Remove ${nameOf(r.conf!)}`, title: "Remove" }) : null) }]),
    ];
    return table<Line>({ name: "run", rows, columns, by: this.by, onrow: (r) => this.show(r) });
  }

  /** What the search found, the best first. */
  private searched(found: Outcome[] | undefined, why: string | undefined): Node[] {
    if (!this.page.s.search) return [];
    if (!found) return [h("p", { class: "muted pad" }, why ?? "Trying the sensible settings …")];
    const capacity = found[0]?.capacity_bytes;
    const rows = found.map((of) => ({ key: of.settings, label: nameOf(of.settings) + (of.settings === this.replay!.settings ? " (the file's)" : ""), slot: -1, of }));
    const columns: Column<(typeof rows)[0]>[] = [
      { name: "peak reserved", of: (r) => r.of.peak_reserved_bytes, show: (r) => (r.of.oom ? "runs out" : bytes(r.of.peak_reserved_bytes)), class: (r) => (r.of.oom ? "danger" : ""), bytes: true },
      { name: "stranded", of: (r) => r.of.peak_stranded_bytes, show: (r) => bytes(r.of.peak_stranded_bytes), bytes: true },
      ...costs<(typeof rows)[0]>((r) => r.of),
    ];
    return [h("p", { class: "muted pad" }, `${count(found.length)} settings tried${capacity ? ` in ${bytes(capacity)}` : ""}, the best first; click to lay one over the picture`), table({ name: "settings", rows, columns, onrow: (r) => this.add(r.of.settings) })];
  }

  /** The policy of empty_cache that keeps reserved memory under a size. */
  private policy(found: Reclaim | undefined, why: string | undefined): Node {
    if (!found) return h("p", { class: "muted pad" }, why ? h("span", { class: "danger" }, why) : "Trying policies …");
    return h("div", { class: "pad", id: "kept" }, h("p", {}, found.text), found.policy ? command(`strandline record --reclaim ${/^[\w=.]+$/.test(found.policy) ? found.policy : `'${found.policy}'`} -- CMD…`) : null, found.notes.map((n) => h("p", { class: "muted" }, n)));
  }

  private notes(rows: Line[]): Node[] {
    const seen = new Set<string>();
    for (const x of rows) {
      for (const n of x.outcome?.notes ?? []) seen.add(n);
      const o = x.outcome?.oom;
      if (!o || x.conf === null) continue;
      const by = o.site ? ` by ${placeOf(o.site)}` : "";
      seen.add(`${nameOf(x.conf)}: out of memory at event ${count(o.event)}, where ${bytes(o.bytes)} was requested${by} while ${bytes(o.active_bytes)} of ${bytes(o.reserved_bytes)} reserved is active`);
    }
    for (const n of this.replay!.assumed) seen.add(`assumed: ${n}`);
    return [...seen].map((n) => h("p", { class: "muted pad" }, n));
  }

  private set(change: Partial<Page["s"]>): void {
    this.page.store.set(change, true);
  }

  private add(text: string): void {
    const set = text.trim();
    if (this.sets.includes(set)) return this.announce("it is in the picture already");
    this.set({ sets: [...this.sets, set].slice(-mostDrawn) });
  }

  /** Puts the cursor where a run shows most. */
  private show(x: Line): void {
    const run = x.conf === null ? this.page.recorded : this.run(this.params(x.conf));
    let k = x.outcome?.oom?.event ?? (x.conf === null ? this.page.device!.peak_reserved?.event : undefined);
    if (k === undefined && run) {
      const { event, bytes } = run.steps;
      k = event[bytes.indexOf(run.outcome.peak_reserved_bytes)];
    }
    if (k !== undefined) goTo(this.scene, Math.max(0, k));
  }

  /** A saved page has runs, but nothing to make others with. */
  private noForm(): HTMLElement {
    const file = this.page.file?.name ?? "";
    return h(
      "div",
      { class: "settings" },
      h("h2", {}, "other runs"),
      h("p", {}, "This saved page contains the runs under the suggested settings. Those under your own are made from the snapshot:"),
      h("pre", {}, `strandline view ${file}\nstrandline simulate ${file} \\\n  --set max_split_size_mb:128`),
    );
  }

  private form(): HTMLElement {
    if (link.saved) return this.noForm();
    const { s } = this.page;
    const f = parts(this.draft);
    const value = (e: globalThis.Event): string => (e.target as HTMLInputElement).value.trim();
    const text = h("input", {
      id: "conf", type: "text", "data-key": "conf", value: this.draft, spellcheck: "false", autocomplete: "off", placeholder: "PYTORCH_CUDA_ALLOC_CONF",
      oninput: (e: globalThis.Event) => { this.draft = value(e); },
      onkeydown: (e: globalThis.Event) => { if ((e as KeyboardEvent).key === "Enter") this.add(this.draft); },
    });
    const edit = (change: Partial<Fields>): void => {
      this.draft = conf({ ...parts(this.draft), ...change });
      this.draw();
    };
    const row = (label: string, title: string, control: Node): HTMLElement => h("label", { class: "field", title }, h("span", {}, label), control);
    const policies: [string, string][] = [["", "as recorded"], ["every=1step", "every step"], ["every=10steps", "every 10 steps"], ["every=30s", "every 30 s"], ["every=5000events", "every 5000 events"]];
    for (const name of new Set(this.page.device!.scopes.filter((x) => x.lane === "notes").map((x) => x.name))) if (policies.length < 14) policies.push([`after=${name}`, `after ${name}`]);
    if (!policies.some(([p]) => p === s.empty)) policies.push([s.empty, s.empty]);
    return h(
      "form",
      { class: "settings", "aria-label": "Settings", onsubmit: (e: globalThis.Event) => e.preventDefault() },
      h("h2", {}, "another run"),
      h("label", { class: "field check" }, h("input", { type: "checkbox", "data-key": "expandable", checked: f.expandable, onchange: (e: globalThis.Event) => edit({ expandable: (e.target as HTMLInputElement).checked }) }), h("span", {}, "expandable segments")),
      row("max split size, MiB", "max_split_size_mb: larger blocks are not split", input("split", f.split, "any", (split) => edit({ split }), "numeric")),
      row("roundup divisions", "roundup_power2_divisions: requests are rounded up to steps between powers of two", select("roundup", f.roundup, ["", "1", "2", "4", "8", "16"].map((v) => [v, v || "none"]), (roundup) => edit({ roundup }))),
      row("collect garbage above", "garbage_collection_threshold: a share of the limit, which capacity and fraction give", input("collect", f.collect, "never", (collect) => edit({ collect }), "decimal")),
      h("label", { class: "field text" }, h("span", {}, "as text"), text),
      h("div", { class: "acts" }, button("add", this.draft ? "add this run" : "add the defaults", () => this.add(this.draft), { class: "push" }), textLink("search", s.search ? "close the search" : "try the sensible ones", () => this.set({ search: !s.search }), { "aria-pressed": String(s.search) })),
      h("h2", {}, "in all runs"),
      row("capacity", "What PyTorch can have, such as 79GiB: the device's memory less what others hold", input("capacity", s.capacity ?? (this.replay!.capacity ? bytes(this.replay!.capacity) : ""), "no bound", (capacity) => this.set({ capacity }))),
      this.replay!.capacity ? h("p", { class: "hint" }, this.capacity === size(this.replay!.capacity) ? "as the out-of-memory error shows" : textLink("as recorded", `the out-of-memory error shows ${bytes(this.replay!.capacity)}`, () => this.set({ capacity: null }))) : null,
      row("fraction of it", "set_per_process_memory_fraction()", input("fraction", s.fraction, "all", (fraction) => this.set({ fraction }), "decimal")),
      row("call empty_cache", "torch.cuda.empty_cache(), beside the calls that are recorded", select("empty", s.empty, policies, (empty) => this.set({ empty }))),
      h("label", { class: "field text", title: "As if what these lines allocate were freed, checkpointed or offloaded" }, h("span", {}, "without what is allocated at"), input("without", s.without, "train.py:131, or a function", (without) => this.set({ without }))),
      h("h2", {}, "keep reserved memory"),
      row("under", "Looks for the fewest calls of empty_cache that keep reserved memory under a size", input("under", s.under, "40GiB", (under) => this.set({ under }))),
    );
  }
}
