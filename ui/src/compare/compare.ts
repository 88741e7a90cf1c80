// Compare: one row of picture a file, all to one scale, and what grew.

import { Once } from "../base/ask.ts";
import { choice, note, refill, scroll, select } from "../base/controls.ts";
import type { Comparison, Process, Site } from "../base/api.ts";
import { fill, h } from "../base/dom.ts";
import { bytes, bytesOrDash, count, delta, placeOf, plural, short } from "../base/format.ts";
import type { Page } from "../session/page.ts";
import { csv, csvButton } from "../base/save.ts";
import { Sorting, table, type Column, type Row } from "../base/table.ts";
import { byFunction } from "./runs.ts";
import { Strips } from "./strips.ts";

interface SiteRow extends Row {
  site: Site;
  keys: string[]; // of what is drawn of it
}

const mostColumns = 12; // of files, and fewer where there is no room
const columnWidth = 76;

export class Compare {
  private readonly once = new Once<Comparison>("compare", (v) => this.take(v), () => this.draw());
  private readonly by = new Sorting(() => this.draw());
  private readonly strips: Strips;

  constructor(
    private readonly page: Page,
    private readonly root: HTMLElement,
    tooltip: HTMLElement,
  ) {
    const shown = () => {
      const process = this.once.answer && this.shown();
      return process ? { process, apart: this.across || this.runs(process), runs: this.runs(process) } : undefined;
    };
    this.strips = new Strips(page, root, tooltip, shown, (f) => this.name(f));
  }

  update(): void {
    const { session } = this.page;
    if ((session?.files.length ?? 0) > 1 && session!.findings === "ready") this.once.ask(); // both are judged at once
    this.draw();
  }

  private take({ groups }: Comparison): void {
    this.page.figures.survivors = groups.map((g) => g.survivors);
    this.page.figures.compare = groups.map((g) => ({ files: g.files.length, sites: g.sites.map((s) => ({ line: s.line, file: s.file, bytes: s.bytes, bytes_per_step: s.bytes_per_step, survivors: s.survivors })) }));
    this.draw();
  }

  private name(f: number): string {
    return this.page.session?.files.find((x) => x.f === f)?.name ?? String(f);
  }

  /** Whether the newest files of all processes are compared: so it begins where there are several. */
  private get across(): boolean {
    const { group } = this.page.s;
    return group === -1 || (group === null && this.once.answer!.groups.length > 1);
  }

  /** What is compared. */
  private shown(): Process | undefined {
    const { groups } = this.once.answer!;
    return this.across ? acrossOf(groups) : groups[this.page.s.group ?? 0];
  }

  /** Whether the files are separate runs, which have no growth from one to the next. */
  private runs(g: Process): boolean {
    return !this.across && (this.page.s.runs ?? separate(g));
  }

  private draw(): void {
    if (this.page.s.view !== "compare") return;
    if (!this.once.answer) return fill(this.root, note(this.once.error || "Reading the other files …"));
    const g = this.shown();
    if (!g) return fill(this.root, note("There is nothing to compare: each file belongs to a different process."));
    const { found } = this.page;
    const slots = this.strips.slots();
    const { across } = this;
    const runs = this.runs(g);
    const rows: SiteRow[] = (this.page.s.peaks ? this.strips.peaks({ process: g, apart: across || runs, runs }) : runs ? byFunction(g.sites) : g.sites)
      .filter((s) => !found || found.has(s.key))
      .map((site) => {
        const keys = runs ? this.strips.keys(site) : [site.key];
        const label = site.file ? placeOf({ ...site, file: site.file }) : site.missing!;
        return { key: site.key, label, slot: slots.get(keys[0]!) ?? -1, site, keys, selected: keys.some((k) => this.page.s.solo.includes(k)) };
      });
    if (runs) rows.sort((a, b) => apart(b.site) - apart(a.site));
    const last = across || runs ? [this.spread(runs && g.files.length === 2)] : this.growth();
    if (!across && !runs) rows.sort((a, b) => last[0]!.of(b) - last[0]!.of(a));
    const columns = [...this.files(g), ...last];
    const processes = this.once.answer.groups;
    const names = processes.map((x, i): [number, string] => [i, x.process ?? `process ${i}`]);
    refill(
      this.root,
      h(
        "div",
        { class: "bar" },
        across ? null : choice("runs", runs ? "separate runs" : "steps of one process", runs, () => this.page.store.set({ runs: !runs }, true), null, { title: "Separate runs are drawn from their starts and compared by their difference; steps of one process by growth" }),
        h("span", {}, across ? `${plural(g.files.length, "process", "processes")}, what the newest file of each holds` : `${plural(g.files.length, "file")}, what each holds`),
        h("span", { class: "choice" }, ([false, true] as const).map((on) => choice(on ? "at peaks" : "at snapshots", on ? "each site's peak" : "at its snapshot", this.page.s.peaks === on, () => this.page.store.set({ peaks: on }, true), null, { title: on ? "Most bytes of each site in each file" : "What each file holds at its snapshot" }))),
        processes.length > 1 ? select("process", across ? -1 : processes.indexOf(g), [...names, [-1, "the newest of each process"]], (group) => this.page.store.set({ group, runs: null }, true), "process") : null,
        h("div", { class: "end" }, csvButton("compare", () => csv("site", rows, columns))),
      ),
      h("div", { class: "rows", tabindex: "0", role: "group", "aria-label": "Files" }, this.strips.canvas(g.files.length)),
      scroll("Sites", table<SiteRow>({ name: across || runs ? "site, most different first" : "site, most growth first", rows: rows.slice(0, 300), total: rows.length, columns, by: this.by, onrow: (r) => this.page.store.set({ solo: r.selected ? [] : r.keys }, true) })),
    );
    this.strips.paint();
    void this.strips.load(() => this.draw());
  }

  /** What each file holds: a column a file or, of many files, the first and the last one and a strip of all. */
  private files(g: Process): Column<SiteRow>[] {
    const names = g.files.map((f) => this.name(f.f));
    const last = g.files.length - 1;
    const of = (i: number): Column<SiteRow> => ({ name: short(names[i]!, names), of: (r) => r.site.bytes[i]!, show: (r) => bytesOrDash(r.site.bytes[i]!), bytes: true });
    if (g.files.length <= Math.min(mostColumns, (this.root.clientWidth - 400) / columnWidth)) return names.map((_, i) => of(i));
    const strip: Column<SiteRow> = { name: `all ${count(g.files.length)}`, of: (r) => Math.max(...r.site.bytes), show: (r) => r.site.bytes.join(" "), node: (r) => heat(r.site.bytes, names) };
    return [of(0), strip, of(last)];
  }

  /** The difference of two runs, the last less the first, or how far ranks and runs are apart. */
  private spread(two: boolean): Column<SiteRow> {
    const of = ({ site }: SiteRow): number => (two ? site.bytes[1]! - site.bytes[0]! : apart(site));
    return { name: two ? "difference" : "spread", of, show: (r) => (of(r) === 0 ? "–" : two ? delta(of(r)) : bytes(of(r))), bytes: true };
  }

  /** How a site grew, as the findings judge it: what was made once did not grow. */
  private growth(): Column<SiteRow>[] {
    const judged = new Map(this.page.findings.filter((f) => f.bytes_per_step && f.severity !== "info").map((f) => [f.where?.keys[0], f.bytes_per_step!]));
    const a = (r: SiteRow): number => Math.round(judged.get(r.key) ?? 0);
    const allocations = ({ site }: SiteRow): number => site.count[site.count.length - 1]!;
    return [
      { name: "growth per file", of: a, show: (r) => (a(r) === 0 ? "–" : delta(a(r))), bytes: true },
      { name: "survivors", of: (r) => r.site.survivors, show: (r) => (r.site.survivors ? count(r.site.survivors) : "–"), wide: true },
      { name: "allocations", of: allocations, show: (r) => (allocations(r) ? count(allocations(r)) : "–"), wide: true },
    ];
  }
}

/** Reports whether nothing of any file lives on in the next: then they are not steps of one process. */
export function separate(g: Process): boolean {
  const known = g.survivors.filter((s) => s.bytes.length > 1);
  return known.length > 0 && known.every((s) => s.bytes.every((row, i) => i + 1 >= s.bytes.length || row[i + 1] === 0));
}

/** A cell a file, the darker the more it holds of the most. */
function heat(values: number[], names: string[]): HTMLElement {
  const most = Math.max(1, ...values);
  return h("span", { class: "heat", role: "img", "aria-label": `from ${bytes(values[0])} to ${bytes(values[values.length - 1])}` }, values.map((v, i) => {
    const cell = h("i", { title: `${names[i]}: ${bytes(v)}` });
    cell.style.opacity = String(0.06 + (0.94 * v) / most);
    return cell;
  }));
}

/** How far the files are apart in a site. */
const apart = ({ bytes }: Site): number => Math.max(...bytes) - Math.min(...bytes);

/** The newest files of all processes as one group, the sites that differ most first. */
export function acrossOf(groups: Process[]): Process {
  const sites = new Map<string, Site>();
  groups.forEach((g, i) => {
    for (const s of g.sites) {
      let row = sites.get(s.key);
      if (!row) sites.set(s.key, (row = { ...s, bytes: groups.map(() => 0), count: groups.map(() => 0), survivors: 0, bytes_per_step: 0 }));
      row.bytes[i] = s.bytes[s.bytes.length - 1]!;
      row.count[i] = s.count[s.count.length - 1]!;
    }
  });
  const out = [...sites.values()];
  for (const s of out) s.bytes_per_step = Math.max(...s.bytes) - Math.min(...s.bytes); // the spread
  out.sort((a, b) => b.bytes_per_step - a.bytes_per_step);
  return { process: null, files: groups.map((g) => g.files[g.files.length - 1]!), sites: out, survivors: [] };
}
