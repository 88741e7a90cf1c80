// What if: the recorded requests run under other settings, laid over the real run.

import { fresh, Latest, link, Refused, type Params } from "../base/ask.ts";
import { fill, h } from "../base/dom.ts";
import { bytes, count, delta, duration, plural } from "../base/format.ts";
import { terms } from "../base/terms.ts";
import type { Page } from "../session/page.ts";
import type { Rail } from "../rail/rail.ts";
import type { Outcome, Replay } from "../base/api.ts";
import { Runs, type Run } from "../session/runs.ts";

/** Runs whose curves are drawn, and their colors: slots that can be distinguished as lines. */
const mostDrawn = 6;
const slots = [0, 3, 7, 6, 2, 5];

const looksWanted = 1024;

/** Settings in short, as a column shows them. */
const nameOf = (conf: string): string => conf || "the defaults";

/** The same, with places where a line may break. */
const broken = (conf: string): string => nameOf(conf).replaceAll(",", ",\u200b");

/** The options that have a field of their own. */
interface Fields {
  expandable: boolean;
  split: string;
  roundup: string;
  collect: string;
  others: string[];
}

/** Takes the text of settings apart. */
export function parts(conf: string): Fields {
  const f: Fields = { expandable: false, split: "", roundup: "", collect: "", others: [] };
  // A comma inside brackets belongs to a list.
  for (const option of conf.match(/[^,[]+(\[[^\]]*\]?)?/g) ?? []) {
    const [name, value] = [option.slice(0, option.indexOf(":")).trim(), option.slice(option.indexOf(":") + 1).trim()];
    if (name === "expandable_segments") f.expandable = value === "True";
    else if (name === "max_split_size_mb") f.split = value;
    else if (name === "roundup_power2_divisions" && /^\d+$/.test(value)) f.roundup = value;
    else if (name === "garbage_collection_threshold") f.collect = value;
    else if (option.trim()) f.others.push(option.trim());
  }
  return f;
}

/** Puts it together again. */
export function conf(f: Fields): string {
  const out = [...f.others];
  if (f.expandable) out.push("expandable_segments:True");
  if (f.split) out.push(`max_split_size_mb:${f.split}`);
  if (f.roundup) out.push(`roundup_power2_divisions:${f.roundup}`);
  if (f.collect) out.push(`garbage_collection_threshold:${f.collect}`);
  return out.join(",");
}

/** A size as the engine reads it, without rounding. */
const size = (n: number): string => (n % 2 ** 30 === 0 ? `${n / 2 ** 30}GiB` : n % 2 ** 20 === 0 ? `${n / 2 ** 20}MiB` : String(n));

/** A row of the table. */
interface Row {
  conf: string | null; // null: as recorded
  outcome: Outcome | null;
  why?: string | undefined;
  drawn: number; // index of its color; −1: not drawn
  fits?: number | null | undefined;
}

export class WhatIf {
  private replay: Replay | null = null;
  private of = "";
  private error = "";
  private draft = "";
  private shown = "";
  private readonly close = new Latest(250);
  private stretch: [number, number] | null = null;
  private readonly runs: Runs;

  constructor(
    private readonly page: Page,
    private readonly rail: Rail,
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
    const { fraction, empty } = this.page.s;
    return { capacity: this.capacity || undefined, fraction: fraction || undefined, empty: empty || undefined };
  }

  private get capacity(): string {
    return this.page.s.capacity ?? (this.replay?.capacity ? size(this.replay.capacity) : "");
  }

  private get sets(): string[] {
    return (this.page.s.sets ?? this.replay?.try ?? []).slice(0, mostDrawn);
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
    fill(this.root, h("p", { class: "note" }, text));
  }

  /** Once the window rests, the course is asked for again for what is seen. */
  private follow(): void {
    const seen = this.page.s.win ? this.rail.events : null;
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
    if (this.page.s.search) jobs.push(["search", { ...this.device, ...this.bounds }]);
    if (this.quick) for (const set of this.sets) jobs.push(["fits", this.params(set)]);
    this.runs.want(jobs);
  }

  /** Whether a run is quick enough that the dozen which find the least capacity are run unasked. */
  private get quick(): boolean {
    return this.runs.took > 0 && this.runs.took < 1500;
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
    const before = [page.recorded, ...page.curves.flatMap((c) => [c.run, c.slot])];
    page.curves = drawn.map((c) => ({ ...c, run: c.run! }));
    page.recorded = recorded ?? null;
    const after = [page.recorded, ...page.curves.flatMap((c) => [c.run, c.slot])];
    if (before.length !== after.length || before.some((v, i) => v !== after[i])) page.notify("curves");
  }

  private rows(): Row[] {
    const recorded = this.replay!.exact ? this.run({ ...this.device, recorded: 1 }) : undefined;
    const rows: Row[] = [{ conf: null, outcome: recorded?.outcome ?? null, drawn: -1 }];
    this.sets.forEach((set, i) => {
      const found = this.runs.get<{ smallest_capacity_bytes: number | null }>("fits", this.params(set));
      const run = this.run(this.params(set));
      rows.push({ conf: set, outcome: run?.outcome ?? null, why: this.runs.why("simulate", { ...this.params(set), ...this.looks() }) ?? this.runs.why("simulate", { ...this.params(set), n: looksWanted }), drawn: i, fits: found && found.smallest_capacity_bytes });
    });
    return rows;
  }

  private draw(): void {
    const r = this.replay!;
    const { s } = this.page;
    const rows = this.rows();
    const found = s.search ? this.runs.get<{ runs: Outcome[] }>("search", { ...this.device, ...this.bounds })?.runs : undefined;
    const searchWhy = s.search ? this.runs.why("search", { ...this.device, ...this.bounds }) : undefined;
    this.page.figures.runs = rows.map((x) => ({ settings: x.conf, drawn: x.drawn, fits: x.fits ?? null, ...x.outcome }));
    this.page.figures.search = found ?? null;
    const shows = JSON.stringify([r, rows, found?.length, this.capacity, s.fraction, s.empty, s.search, searchWhy, this.runs.working, this.draft]);
    if (shows === this.shown) return;
    this.shown = shows;
    const scrolled = this.root.querySelector(".runs")?.scrollTop ?? 0;
    fill(this.root, h("div", { class: "whatif" }, this.form(), h("div", { class: "runs scroll", tabindex: "0", role: "group", "aria-label": "Runs" }, this.fidelity(), this.table(rows), this.searched(found, searchWhy), this.notes(rows))));
    this.root.querySelector(".runs")!.scrollTop = scrolled;
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

  private table(rows: Row[]): HTMLElement {
    const dev = this.page.device!;
    const recorded = rows[0]!.outcome;
    const had = recorded?.peak_reserved_bytes ?? dev.peak_reserved?.bytes ?? null;
    const head: [string, boolean][] = [["peak reserved", false], ["change", false], ["stranded", true], ["fits in", false], ["driver calls", true], ["est. cost", true]];
    const cells = (x: Row): Node[] => {
      const o = x.outcome;
      const cell = (text: string, n?: number, wide = false): Node => h("td", { class: wide && "wide", "data-bytes": n, title: n === undefined ? undefined : `${n} bytes` }, text);
      if (x.conf === null && !o) return [cell(bytes(had), had ?? undefined), ...head.slice(1).map(([, wide]) => cell("–", undefined, wide))];
      if (!o) return [h("td", { colspan: head.length, class: "left" }, x.why ? h("span", { class: "danger" }, x.why) : "running …")];
      const change = had === null || x.conf === null ? null : o.peak_reserved_bytes - had;
      const fits = x.fits === undefined ? (x.conf === null ? "–" : this.quick ? "…" : h("button", { type: "button", class: "link", "data-key": `fits ${x.conf}`, onclick: () => this.runs.want([["fits", this.params(x.conf!)]]) }, "find")) : bytes(x.fits);
      return [
        o.oom && !o.oom.recorded ? h("td", { class: "danger", "data-bytes": o.peak_reserved_bytes }, "runs out") : o.oom ? h("td", { class: "danger", "data-bytes": o.peak_reserved_bytes, title: "as it did when it was recorded" }, "runs out") : cell(bytes(o.peak_reserved_bytes), o.peak_reserved_bytes),
        change === null ? cell("–") : recorded?.oom && !o.oom ? h("td", { class: "good", "data-bytes": change, title: "It ran out of memory when it was recorded" }, "fits") : cell(change === 0 ? "the same" : delta(change), change),
        cell(bytes(o.peak_stranded_bytes), o.peak_stranded_bytes, true),
        h("td", {}, fits),
        cell(count(o.driver_calls), undefined, true),
        cell(duration(o.driver_ms_estimate * 1000), undefined, true),
      ];
    };
    return h(
      "table",
      {},
      h("caption", { class: "unseen" }, "What came of the runs"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "run"), head.map(([t, wide]) => h("th", { scope: "col", class: wide && "wide", title: terms[t] }, t)), h("th", { scope: "col" }, h("span", { class: "unseen" }, "remove")))),
      h(
        "tbody",
        {},
        rows.map((x) =>
          h(
            "tr",
            { "data-run": x.conf ?? "recorded" },
            h(
              "th",
              { scope: "row" },
              h(
                "button",
                { type: "button", "data-key": `run ${x.conf ?? ""}`, title: x.outcome?.oom ? "Put the cursor where it runs out of memory" : "Put the cursor on its peak", onclick: () => this.show(x) },
                x.conf === null ? h("span", { class: "line recorded" }) : h("span", { class: `badge s${slots[x.drawn]}` }, String(x.drawn + 1)),
                h("span", { class: "name" }, x.conf === null ? "as recorded" : broken(x.conf)),
              ),
            ),
            cells(x),
            h("td", {}, x.conf === null || link.saved ? null : h("button", { type: "button", class: "icon", "data-key": `drop ${x.conf}`, "aria-label": `Remove ${nameOf(x.conf)}`, title: "Remove", onclick: () => this.set({ sets: this.sets.filter((c) => c !== x.conf) }) }, "×")),
          ),
        ),
      ),
    );
  }

  /** What the search found, the best first. */
  private searched(found: Outcome[] | undefined, why: string | undefined): Node | null {
    const { s } = this.page;
    if (!s.search) return null;
    if (!found) return h("p", { class: "muted pad" }, why ?? "Trying the sensible settings …");
    const capacity = found[0]?.capacity_bytes;
    return h(
      "table",
      { id: "searched" },
      h("caption", {}, `${count(found.length)} settings tried${capacity ? ` in ${bytes(capacity)}` : ""}, the best first; click to lay one over the picture`),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "settings"), ["peak reserved", "stranded", "driver calls", "est. cost"].map((t) => h("th", { scope: "col", title: terms[t] }, t)))),
      h(
        "tbody",
        {},
        found.map((o) =>
          h(
            "tr",
            {},
            h("th", { scope: "row" }, h("button", { type: "button", "data-key": `add ${o.settings}`, onclick: () => this.add(o.settings) }, h("span", { class: "name" }, broken(o.settings), o.settings === this.replay!.settings ? " (the file's)" : ""))),
            o.oom ? h("td", { class: "danger" }, "runs out") : h("td", { "data-bytes": o.peak_reserved_bytes }, bytes(o.peak_reserved_bytes)),
            h("td", { "data-bytes": o.peak_stranded_bytes }, bytes(o.peak_stranded_bytes)),
            h("td", {}, count(o.driver_calls)),
            h("td", {}, duration(o.driver_ms_estimate * 1000)),
          ),
        ),
      ),
    );
  }

  private notes(rows: Row[]): Node[] {
    const seen = new Set<string>();
    for (const x of rows) {
      for (const n of x.outcome?.notes ?? []) seen.add(n);
      const o = x.outcome?.oom;
      if (!o || x.conf === null) continue;
      const by = o.site ? ` by ${o.site.file.slice(o.site.file.lastIndexOf("/") + 1)}:${o.site.line} ${o.site.function}` : "";
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
  private show(x: Row): void {
    const run = x.conf === null ? this.page.recorded : this.run(this.params(x.conf));
    let k = x.outcome?.oom?.event ?? (x.conf === null ? this.page.device!.peak_reserved?.event : undefined);
    if (k === undefined && run) {
      const { event, bytes } = run.steps;
      k = event[bytes.indexOf(run.outcome.peak_reserved_bytes)];
    }
    if (k === undefined) return;
    this.page.store.set({ k: Math.max(0, k) });
    this.rail.reveal(Math.max(0, k));
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
    const field = (label: string, title: string, input: Node): HTMLElement => h("label", { class: "field", title }, h("span", {}, label), input);
    const small = (key: string, v: string, placeholder: string, act: (v: string) => void, mode = "numeric"): HTMLElement =>
      h("input", { type: "text", inputmode: mode, "data-key": key, value: v, placeholder, autocomplete: "off", spellcheck: "false", onchange: (e: globalThis.Event) => act(value(e)) });
    const policies: [string, string][] = [["", "as recorded"], ["every=1step", "every step"], ["every=10steps", "every 10 steps"], ["every=30s", "every 30 s"], ["every=5000events", "every 5000 events"]];
    for (const name of new Set(this.page.device!.scopes.filter((x) => x.lane === "notes").map((x) => x.name))) if (policies.length < 14) policies.push([`after=${name}`, `after ${name}`]);
    if (!policies.some(([p]) => p === s.empty)) policies.push([s.empty, s.empty]);
    return h(
      "form",
      { class: "settings", "aria-label": "Settings", onsubmit: (e: globalThis.Event) => e.preventDefault() },
      h("h2", {}, "another run"),
      h("label", { class: "field check" }, h("input", { type: "checkbox", "data-key": "expandable", checked: f.expandable, onchange: (e: globalThis.Event) => edit({ expandable: (e.target as HTMLInputElement).checked }) }), h("span", {}, "expandable segments")),
      field("max split size, MiB", "max_split_size_mb: larger blocks are not split", small("split", f.split, "any", (split) => edit({ split }))),
      field(
        "roundup divisions",
        "roundup_power2_divisions: requests are rounded up to steps between powers of two",
        h("select", { "data-key": "roundup", onchange: (e: globalThis.Event) => edit({ roundup: value(e) }) }, ["", "1", "2", "4", "8", "16"].map((v) => h("option", { value: v, selected: v === f.roundup }, v || "none"))),
      ),
      field("collect garbage above", "garbage_collection_threshold: a share of the limit, which capacity and fraction give", small("collect", f.collect, "never", (collect) => edit({ collect }), "decimal")),
      h("label", { class: "field text" }, h("span", {}, "as text"), text),
      h("div", { class: "acts" }, h("button", { type: "button", class: "push", "data-key": "add", onclick: () => this.add(this.draft) }, this.draft ? "add this run" : "add the defaults"), h("button", { type: "button", class: "link", "data-key": "search", "aria-pressed": String(s.search), onclick: () => this.set({ search: !s.search }) }, s.search ? "close the search" : "try the sensible ones")),
      h("h2", {}, "in all runs"),
      field("capacity", "What PyTorch can have, such as 79GiB: the device's memory less what others hold", small("capacity", s.capacity ?? (this.replay!.capacity ? bytes(this.replay!.capacity) : ""), "no bound", (capacity) => this.set({ capacity }), "text")),
      this.replay!.capacity ? h("p", { class: "hint" }, this.capacity === size(this.replay!.capacity) ? "as the out-of-memory error shows" : h("button", { type: "button", class: "link", "data-key": "as recorded", onclick: () => this.set({ capacity: null }) }, `the out-of-memory error shows ${bytes(this.replay!.capacity)}`)) : null,
      field("fraction of it", "set_per_process_memory_fraction()", small("fraction", s.fraction, "all", (fraction) => this.set({ fraction }), "decimal")),
      field("call empty_cache", "torch.cuda.empty_cache(), beside the calls that are recorded", h("select", { "data-key": "empty", onchange: (e: globalThis.Event) => this.set({ empty: value(e) }) }, policies.map(([p, name]) => h("option", { value: p, selected: p === s.empty }, name)))),
    );
  }
}
