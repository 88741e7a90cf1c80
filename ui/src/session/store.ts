// What the reader looks at. All of it is in the fragment of the URL, which
// no browser sends anywhere.

export type View = "job" | "wall" | "timeline" | "allocator" | "sites" | "compare" | "whatif" | "findings";
export type YMode = "reserved" | "active" | "window" | number;
export type Source = "cursor" | "range" | "kept";

export interface State {
  view: View;
  f: number | null; // null: the page chooses
  print: string | null; // the fingerprint of the file of a link, which goes before its number
  d: number | null; // null: the file's first device
  g: string;
  u: "requested" | "allocated" | "reserved"; // what bytes are: of allocations, of their blocks, or of segments
  x: "ev" | "us";
  each: boolean; // whether allocations are drawn one by one at every zoom
  y: YMode; // a number: the bytes at the top of the axis
  win: [number, number] | null; // places that the picture shows; null: all
  k: number | null; // the cursor's event; null: where the page puts it
  range: [number, number] | null; // selected events, both included
  solo: string[]; // keys of groups
  alloc: number | null; // the pinned allocation
  a: number | null; // events of the marks A and B
  b: number | null;
  of: Source; // what the sites are of
  q: string; // the search
  segment: string | null; // address of the pinned segment
  finding: number | null;
  sets: string[] | null; // settings of the runs laid over the picture; null: the page chooses
  capacity: string | null; // of all runs, as it is typed; null: what an error in the file shows
  fraction: string;
  empty: string; // policy of empty_cache
  lane: "unused" | "stranded"; // below the runs: reserved less allocated, or what is stranded
  search: boolean; // whether the sensible settings are tried
  zoom: number; // the box that fills the width of the stacks
  group: number | null; // what is compared; null: the page chooses
  peaks: boolean; // whether Compare shows each site's peak in each file, not what its snapshot holds
  runs: boolean | null; // whether files that are compared are separate runs; null: the page decides
}

export const views: View[] = ["job", "wall", "timeline", "allocator", "sites", "compare", "whatif", "findings"];

export const initial: State = {
  view: "timeline",
  f: null,
  print: null,
  d: null,
  g: "line",
  u: "requested",
  x: "ev",
  each: false,
  y: "reserved",
  win: null,
  k: null,
  range: null,
  solo: [],
  alloc: null,
  a: null,
  b: null,
  of: "cursor",
  q: "",
  segment: null,
  finding: null,
  sets: null,
  capacity: null,
  fraction: "",
  empty: "",
  lane: "stranded",
  search: false,
  zoom: 0,
  group: null,
  peaks: false,
  runs: null,
};

/**
 * The state as a fragment, without what is as at the start. The file is named by
 * its fingerprint where that is known: numbers differ from session to session.
 */
export function encode(s: State, print: string | null = null): string {
  const out: string[] = [];
  const put = (name: string, v: string | number | null, unless: string | number | null): void => {
    if (v !== unless && v !== null) out.push(`${name}=${encodeURIComponent(v)}`);
  };
  const span = (w: [number, number] | null): string | null => (w ? `${w[0]}_${w[1]}` : null);
  put("v", s.view, initial.view);
  put("d", s.d, null);
  put("g", s.g, initial.g);
  put("u", s.u, initial.u);
  put("x", s.x, initial.x);
  put("each", s.each ? 1 : null, null);
  put("y", s.y, initial.y);
  put("w", span(s.win), null);
  put("k", s.k, null);
  put("r", span(s.range), null);
  put("s", s.solo.join("."), "");
  put("p", s.alloc, null);
  put("a", s.a, null);
  put("b", s.b, null);
  put("o", s.of, initial.of);
  put("q", s.q, "");
  put("seg", s.segment, null);
  put("n", s.finding, null);
  if (s.sets) put("set", s.sets.map((c) => `!${c}`).join(""), null);
  put("cap", s.capacity, null);
  put("part", s.fraction, "");
  put("empty", s.empty, "");
  put("lane", s.lane, initial.lane);
  put("try", Number(s.search), 0);
  put("z", s.zoom, 0);
  put("cg", s.group, null);
  put("cp", Number(s.peaks), 0);
  put("cr", s.runs === null ? null : Number(s.runs), null);
  const file = print ?? s.print;
  if (s.f !== null || s.print || out.length) put("f", file === null ? s.f : `x${file}`, null);
  return out.length ? `#${out.join("&")}` : "";
}

/** The state of a fragment. What is unknown or makes no sense is left out. */
export function decode(fragment: string): State {
  const q = new URLSearchParams(fragment.replace(/^#/, ""));
  const s: State = { ...initial, solo: [] };
  const int = (name: string): number | null => {
    const v = q.get(name);
    return v !== null && /^-?\d{1,15}$/.test(v) ? Number(v) : null;
  };
  const span = (name: string): [number, number] | null => {
    const m = /^(-?[\d.]{1,20})_(-?[\d.]{1,20})$/.exec(q.get(name) ?? "");
    if (!m) return null;
    const w: [number, number] = [Number(m[1]), Number(m[2])];
    return Number.isFinite(w[0]) && Number.isFinite(w[1]) && w[0] <= w[1] ? w : null;
  };
  const oneOf = <T extends string>(name: string, of: readonly T[], otherwise: T): T => {
    const v = q.get(name) as T | null;
    return v !== null && of.includes(v) ? v : otherwise;
  };
  s.view = oneOf("v", views, s.view);
  s.f = int("f");
  s.print = /^x([0-9a-f]{4,40})$/.exec(q.get("f") ?? "")?.[1] ?? null;
  s.d = int("d");
  if (/^[a-z]{1,20}$/.test(q.get("g") ?? "")) s.g = q.get("g")!;
  s.u = oneOf("u", ["requested", "allocated", "reserved"] as const, s.u);
  s.x = oneOf("x", ["ev", "us"] as const, s.x);
  s.each = q.get("each") === "1";
  const y = q.get("y");
  if (y === "active" || y === "window") s.y = y;
  else if (int("y") !== null && int("y")! > 0) s.y = int("y")!;
  s.win = span("w");
  s.k = int("k");
  s.range = span("r");
  s.solo = (q.get("s") ?? "").split(".").filter((k) => /^[0-9a-f]{12}$/.test(k));
  s.alloc = int("p");
  s.a = int("a");
  s.b = int("b");
  s.of = oneOf("o", ["cursor", "range", "kept"] as const, s.of);
  s.q = q.get("q") ?? "";
  if (/^0x[0-9a-f]{1,16}$/.test(q.get("seg") ?? "")) s.segment = q.get("seg");
  s.finding = int("n");
  const sets = q.get("set");
  if (sets !== null) s.sets = sets.split("!").slice(1, 7).filter((c) => c.length < 400);
  s.capacity = q.get("cap")?.slice(0, 40) ?? null;
  s.fraction = (q.get("part") ?? "").slice(0, 20);
  s.empty = (q.get("empty") ?? "").slice(0, 80);
  s.lane = oneOf("lane", ["unused", "stranded"] as const, s.lane);
  s.search = q.get("try") === "1";
  s.zoom = Math.max(0, int("z") ?? 0);
  s.group = int("cg");
  s.peaks = q.get("cp") === "1";
  s.runs = q.has("cr") ? q.get("cr") === "1" : null;
  return s;
}

type Listener = (now: State, before: State) => void;

/** The one store. All are notified of a change; the URL follows at rest, or at once as a step for Back. */
export class Store {
  now: State;
  print = (): string | null => null; // the fingerprint of the file that is shown
  private listeners: Listener[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor() {
    this.now = decode(location.hash);
    addEventListener("popstate", () => this.replace(decode(location.hash)));
    addEventListener("hashchange", () => {
      if (location.hash !== this.link) this.replace(decode(location.hash));
    });
  }

  /** The fragment of what is shown. */
  get link(): string {
    return encode(this.now, this.print());
  }

  on(listener: Listener): void {
    this.listeners.push(listener);
  }

  set(change: Partial<State>, push = false): void {
    if ("f" in change) change = { ...change, print: null };
    const before = this.now;
    if (push) this.write("pushState", { ...before, ...change });
    else this.later();
    this.now = { ...before, ...change };
    for (const l of this.listeners) l(this.now, before);
  }

  private replace(s: State): void {
    clearTimeout(this.timer);
    const before = this.now;
    this.now = s;
    for (const l of this.listeners) l(s, before);
  }

  private later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write("replaceState", this.now), 250);
  }

  private write(how: "pushState" | "replaceState", s: State): void {
    // A move that still waits for its rest belongs to the step before.
    if (how === "pushState") history.replaceState(null, "", location.pathname + this.link);
    clearTimeout(this.timer);
    history[how](null, "", location.pathname + encode(s, s.f === this.now.f ? this.print() : null));
  }
}
