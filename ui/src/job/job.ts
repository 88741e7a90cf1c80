// Job: the verdict on a job of many ranks, and how each of them ended.

import { Once } from "../base/ask.ts";
import { button, choice, note, textLink } from "../base/controls.ts";
import { cut, fill, h } from "../base/dom.ts";
import { base, bytes, count, plural, time } from "../base/format.ts";
import type { Job as Answer, JobRank } from "../base/api.ts";
import { LongTable } from "../base/rows.ts";
import type { Page } from "../session/page.ts";

export class JobView {
  private readonly once = new Once<Answer>("job", (v) => this.take(v), () => this.update());
  private by: By = "time";
  private rows: JobRank[] = [];
  private chosen: number | null = null; // a rank
  private latest = 0; // seconds
  private shown: By[] = []; // the columns that have something in them
  private readonly table = new LongTable("Ranks", 22, (i) => this.row(this.rows[i]!, i));

  constructor(
    private readonly page: Page,
    private readonly root: HTMLElement,
    private readonly arrive: () => void,
  ) {}

  /** Asks for the verdict once there is one. */
  load(): void {
    if (this.page.session?.job && this.page.session.findings === "ready") this.once.ask();
  }

  private take(v: Answer): void {
    this.page.figures.job = { cause: v.cause, rank: v.first.rank, failed: v.failed };
    this.latest = Math.max(...v.ranks.map((r) => r.seconds ?? 0));
    this.shown = (Object.keys(columns) as By[]).filter((by) => v.ranks.some((r) => columns[by][1](r) != null));
    this.arrive();
    this.update();
  }

  update(): void {
    const { answer, error } = this.once;
    if (this.page.s.view !== "job") return;
    if (!answer) return fill(this.root, note(error || "Reading all files and judging them …"));
    if (!this.root.querySelector(".job")) {
      fill(this.root, h("div", { class: "job" }, this.verdict(answer), this.table.root, h("div", { class: "rank", role: "status" })));
      this.sort(this.by);
    }
    this.detail();
  }

  private verdict(j: Answer): HTMLElement {
    const line = (name: string, ...text: (Node | string)[]): Node[] => [h("dt", {}, name), h("dd", {}, text)];
    const at = [j.site, j.text && j.line ? `${base(j.text)}:${j.line}` : ""].filter(Boolean).join(", ");
    return h(
      "header",
      { "data-state": j.word },
      h("h2", {}, `${j.word}: ${j.title}`),
      h(
        "dl",
        {},
        at ? line("at", h("span", { class: "mono" }, at)) : null,
        line("why", j.why),
        j.followers ? line("others", `${plural(j.followers, "rank")} only followed`) : null,
        j.missing.length ? line("missing", `no whole text of ${plural(j.missing.length, "rank")}: ${j.missing.slice(0, 16).join(", ")}${j.missing.length > 16 ? ", …" : ""}`) : null,
        j.fix ? line("fix", j.fix) : null,
        j.again ? line("again", j.again) : null,
        j.attempts > 1 ? line("attempts", `the last of ${count(j.attempts)}`) : null,
      ),
      j.quote ? h("pre", { tabindex: "0" }, j.quote) : null,
    );
  }

  private sort(by: By): void {
    this.by = by;
    const of = columns[by][1];
    const compare = (a: ReturnType<typeof of>, b: ReturnType<typeof of>): number => Number(a == null) - Number(b == null) || (a! < b! ? -1 : a! > b! ? 1 : 0);
    this.rows = this.once.answer!.ranks;
    if (by !== "time") this.rows = [...this.rows].sort((a, b) => compare(of(a), of(b)));
    this.table.show(this.rows.length, this.shown.map((by) => h("th", { scope: "col", "aria-sort": this.by === by ? "ascending" : undefined }, button(`by ${by}`, [columns[by][0], this.by === by ? " ↓" : ""], () => this.sort(by)))));
  }

  private row(r: JobRank, i: number): HTMLElement {
    const place = h("i", {});
    // Others follow after milliseconds, or after the half hour of a time-out.
    if (r.seconds !== null) place.style.left = `${this.latest > 0 ? (100 * Math.log1p(1000 * r.seconds)) / Math.log1p(1000 * this.latest) : 0}%`;
    const cells: Record<By, Node> = {
      rank: h("th", { scope: "row" }, choice(`rank ${r.rank}`, String(r.rank), r.rank === this.chosen, () => this.choose(r))),
      node: h("td", {}, r.node ?? ""),
      time: h("td", { class: "when" }, r.seconds === null ? "" : [h("span", { class: "track", "aria-hidden": "true" }, place), time(r.seconds)]),
      end: h("td", {}, r.role === "first" ? h("b", {}, r.end ?? "first") : (r.end ?? "")),
      step: h("td", {}, r.step === null ? "" : count(r.step)),
      peak: h("td", { "data-bytes": r.peak_bytes }, r.peak_bytes ? bytes(r.peak_bytes) : ""),
      text: h("td", { class: "text" }, r.text ? cut(`${base(r.text)}${r.line ? `:${r.line}` : ""}`) : ""),
    };
    return h(
      "tr",
      { class: r.role, "aria-rowindex": i + 2, "aria-selected": r.rank === this.chosen ? "true" : undefined },
      this.shown.map((by) => cells[by]),
    );
  }

  private choose(r: JobRank): void {
    this.chosen = r.rank === this.chosen ? null : r.rank;
    this.sort(this.by);
    this.detail();
  }

  /** Shows the end of the chosen rank, and the way to its snapshots. */
  private detail(): void {
    const r = this.rows.find((x) => x.rank === this.chosen);
    const el = this.root.querySelector(".job .rank");
    if (!el) return;
    if (!r) return fill(el);
    const files = this.page.session?.files ?? [];
    const own = files.filter((f) => f.state === "ready" && (f.path === r.text || new RegExp(`^rank[ _-]?${r.rank}$`, "i").test(f.process ?? "")));
    fill(
      el,
      h("b", {}, `rank ${r.rank}`),
      r.node ? ` on ${r.node}` : "",
      r.text ? [" · ", h("span", { class: "mono" }, `${r.text}${r.line ? `:${r.line}` : ""}`)] : "",
      own.map((f) => textLink(`file ${f.f}`, f.name, () => this.page.store.set({ view: "timeline", f: f.f, print: null, d: null, k: null, win: null }, true))),
      r.quote ? h("pre", { tabindex: "0" }, r.quote) : null,
    );
  }
}

type By = "rank" | "node" | "time" | "end" | "step" | "peak" | "text";

/** The columns, and what the rows are sorted by, those without it last. They come by time, the first one first; of memory the most comes first, of steps the lowest. */
const columns: Record<By, [name: string, of: (r: JobRank) => string | number | null | undefined]> = {
  rank: ["rank", (r) => r.rank],
  node: ["node", (r) => r.node],
  time: ["after the first", (r) => r.seconds],
  end: ["ended by", (r) => r.end],
  step: ["last step", (r) => r.step],
  peak: ["most memory", (r) => (r.peak_bytes ? -r.peak_bytes : null)],
  text: ["text", (r) => r.text],
};
