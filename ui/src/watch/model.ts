// What the page of a watch shows: the recording by what is known of it so far, the course
// of one subject, and what the reader looks at, which the address holds.

import { Store } from "../base/address.ts";
import { type Course, grows, isOfLevel, type Judged } from "./bands.ts";
import { Follower } from "./follow.ts";
import { address, kinds, type State, type View } from "./state.ts";
import type { Subject, Watch, WatchFinding } from "../base/api.ts";

export let doc: Watch;
export const store = new Store(address);
export let s: State = store.now;

/** The subject, and the load of the engine, if there is one. */
export const seen = new Follower();
export const engine = new Follower();
/** Reports whether what is drawn is not yet that of the last answer. */
export const asking = (): boolean => seen.asking || engine.asking;

/** Reports whether the mappings of the subject are drawn in place of its kinds of memory. */
export const mapped = (): boolean => s.mapped && !!subject()?.mappings;

/** The view that is shown. */
export function view(): View {
  if (s.view !== null) return s.view;
  const worst = doc.findings.find((f) => f.subject !== null && f.severity !== "info");
  return subjectOf(worst?.subject ?? null)?.kind ?? kinds.find((k) => doc.subjects.some((x) => x.kind === k)) ?? "process";
}

const subjectOf = (key: string | null): Subject | undefined => doc.subjects.find((x) => x.key === key);

/** The subject that the picture shows. */
export function subject(): Subject | undefined {
  const v = view();
  if (v === "findings") return subjectOf(s.sub) ?? subjectOf(doc.findings[s.finding ?? 0]?.subject ?? null) ?? doc.subjects[0];
  return subjectOf(s.sub) ?? doc.subjects.find((x) => x.kind === v);
}

/** The finding whose curve is drawn: the chosen one, or the worst of the subject. */
export function judged(): WatchFinding | undefined {
  const key = subject()?.key;
  const chosen = s.finding === null ? undefined : doc.findings[s.finding];
  return key === undefined ? undefined : chosen?.subject === key ? chosen : doc.findings.find((f) => f.subject === key && f.fit) ?? doc.findings.find((f) => f.subject === key);
}

/** What is drawn as a judgment: that of the finding, or that of all that the subject has in use. */
export function drawn(): Judged | null {
  if (mapped()) return null;
  const f = judged();
  const x = subject();
  const e = f?.evidence as Partial<Judged["e"]> | undefined;
  if (f?.fit && isOfLevel(e)) return { fit: f.fit, e, parts: f.parts };
  return x?.fit && isOfLevel(x.judged) ? { fit: x.fit, e: x.judged, parts: x.judged_parts } : null;
}

/** Reports whether the picture reaches as far as the limit: as wished, or where that is nearer than the recording is long. */
export function ahead(): boolean {
  const e = drawn()?.e;
  if (!e?.seconds_to_limit) return false;
  const [, latest] = e.seconds_to_limit;
  return s.ahead ?? (grows(e) && latest !== null && latest <= (e.seconds ?? 0));
}

/** Takes a newer answer. */
export function load(answer: Watch): void {
  doc = answer;
  look();
}

/** Asks for what is drawn, where it is not that of now. */
function look(): void {
  seen.look(mapped() ? subject()?.mappings : subject()?.key, doc.version, s.win);
  engine.look(doc.load?.key, doc.version, s.win);
}

store.on((now) => {
  s = now;
  look();
});

/** Changes what is looked at. A step is one to which Back returns. */
export const set = (change: Partial<State>, step = false): void => store.set(change, step);

/** Where the cursor is: in what is seen, or if that does not reach there in the whole. The column is −1 if the subject was not seen then. */
export function spot(): { course: Course; column: number } | null {
  const { course, whole } = seen;
  if (!course?.n || !whole?.n) return null;
  if (s.k === null) return { course: whole, column: whole.n - 1 };
  const inside = course.of.from[0]! <= s.k && s.k <= course.end(course.n - 1);
  const of = inside ? course : whole;
  const c = of.at(s.k);
  return { course: of, column: c >= 0 && s.k <= of.end(c) ? c : -1 };
}
