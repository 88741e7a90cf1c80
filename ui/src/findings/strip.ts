// The strip above the picture: the worst finding in one line, and the way to it.

import { fill, h } from "../base/dom.ts";
import { base, bytes, deviceName, plural } from "../base/format.ts";
import type { FindingPlace, FindingSite, Judgment } from "./wire.ts";
import { kindBefore, marked } from "./words.ts";

const shown: [key: string, name: string][] = [
  ["request_bytes", "the failed request"],
  ["largest_free_bytes", "largest free piece"],
  ["device_free_bytes", "free on the device"],
];

/** The figures of an out-of-memory error that show why it failed. */
function failed(f: Judgment): Node[] {
  if (f.kind !== "oom") return [];
  return shown.flatMap(([key, name]) => {
    const v = f.evidence?.[key];
    return typeof v === "number" ? [h("span", { class: "figure" }, `${name} `, h("b", { "data-bytes": v, "data-key": key }, bytes(v)))] : [];
  });
}

/** Verdicts in words, for strips whose worst finding is a note. */
const judged: Record<string, string> = { ok: "No leak found.", unknown: "Too little is recorded to judge growth." };

/** The remedy to try first: a setting that was tried on the recording and helps, else the first. */
function remedyFirst({ remedies }: Judgment): string | undefined {
  const tried = remedies?.find((r) => r.effect && !r.effect.runs_out && ((r.effect.left_bytes ?? 0) > 0 || r.effect.saves_bytes > 0));
  return tried?.setting ? `${tried.setting}: ${tried.text}` : remedies?.[0]?.text;
}

/** What to do first, and the finding that says so: where a leak is why memory ran out, what that finding advises, since a setting only puts it off. */
export function toDo(findings: Judgment[]): { text: string; of: number } | null {
  const [worst] = findings;
  if (!worst) return null;
  const leaks = (worst.kind === "oom" ? worst.evidence?.leaks : undefined) as FindingPlace[] | undefined;
  const [first] = worst.remedies ?? [];
  if (leaks?.length && first?.kind === "code" && !first.setting) {
    const most = leaks.reduce((a, b) => (b.bytes > a.bytes ? b : a));
    const at = (x: FindingSite | null): boolean => x?.file === most.file && x.line === most.line && x.function === most.function;
    const of = findings.findIndex((f) => f !== worst && f.process === worst.process && f.remedies?.length && (at(f.site) || f.sites?.some(at)));
    if (of > 0) return { text: findings[of]!.remedies![0]!.text, of };
  }
  // What helps another device or process is not what to do about this one.
  const of = findings.findIndex((f) => f.remedies?.length && f.process === worst.process && (f.device ?? worst.device) === (worst.device ?? f.device));
  const text = findings[of] && remedyFirst(findings[of]);
  return text ? { text, of } : null;
}

/** What a remedy is good for. */
function purposeOf({ kind, severity }: Judgment): string {
  if (kind === "history" || kind === "growth") return "to judge growth: ";
  return severity === "info" ? "if memory is short: " : "to do: ";
}

/** Draws the strip; go is called with the finding that is chosen. What has not been judged is not shown. */
export function verdictStrip(root: HTMLElement, findings: Judgment[] | null, verdict: string, many: boolean, go: (i: number) => void): void {
  root.hidden = findings === null;
  if (!findings) return;
  const [worst] = findings;
  root.dataset.severity = worst?.severity ?? "ok";
  if (!worst) return fill(root, h("span", {}, verdict === "ok" ? "Nothing found to be wrong." : "Too little is recorded for a judgment."));
  const where = worst.site?.file ? `${base(worst.site.file)}${worst.site.line ? `:${worst.site.line}` : ""} ${worst.site.function ?? ""}` : "";
  const who = [worst.process, many && worst.device !== null ? deviceName(worst.device) : ""].filter(Boolean).join(", ");
  const others = findings.length - 1;
  const todo = toDo(findings);
  const record = worst.severity === "info" ? findings.findIndex((f) => f.kind === "history" && f.remedies?.length) : -1;
  const title = worst.brief?.title || worst.title;
  const said = (text: string): boolean => title.includes(text);
  fill(
    root,
    h("button", { type: "button", class: "worst", "data-key": "verdict", title: `${worst.title}. Show the finding.`, onclick: () => go(0) }, h("span", { class: "lines" }, h("b", {}, kindBefore(worst)), title)),
    failed(worst),
    worst.bytes && !said(bytes(worst.bytes)) ? h("span", { class: "figure", "data-bytes": worst.bytes }, bytes(worst.bytes)) : null,
    where && !said(where) ? h("span", { class: "mono", title: worst.site!.file ?? "" }, where) : null,
    who ? h("span", {}, who) : null,
    worst.severity === "info" && judged[verdict] ? h("span", { "data-key": "judged" }, judged[verdict]) : null,
    h(
      "span",
      { class: "rest" },
      todo ? h("button", { type: "button", class: "worst", "data-key": "remedy", title: todo.text.replaceAll("`", ""), onclick: () => go(todo.of) }, h("span", { class: "lines" }, h("b", {}, purposeOf(findings[todo.of]!)), marked(todo.text))) : null,
      record > 0 && record !== todo?.of ? h("button", { type: "button", class: "link", "data-key": "record", onclick: () => go(record) }, "how to record more") : null,
      others > 0 ? h("button", { type: "button", class: "link", "data-key": "more findings", onclick: () => go(1) }, plural(others, "other finding")) : null,
    ),
  );
}
