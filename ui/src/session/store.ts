// What the reader looks at in snapshots.

import { Address, flag, number, oneOf, some, span, Store as Stored, text, type Field } from "../base/address.ts";

export type View = "job" | "wall" | "timeline" | "allocator" | "sites" | "compare" | "whatif" | "findings";
export type YMode = "reserved" | "active" | "window" | number;
export type Source = "cursor" | "range" | "kept" | "diff";

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
  ghost: boolean; // whether the run without the lines of the pinned finding is drawn over the picture
  sets: string[] | null; // settings of the runs laid over the picture; null: the page chooses
  capacity: string | null; // of all runs, as it is typed; null: what an error in the file shows
  fraction: string;
  empty: string; // policy of empty_cache
  without: string; // places whose allocations are left out of all runs, with commas between them
  under: string; // the size under which reserved memory is to be kept
  lane: "unused" | "stranded"; // below the runs: reserved less allocated, or what is stranded
  search: boolean; // whether the sensible settings are tried
  zoom: number; // the box that fills the width of the stacks
  group: number | null; // what is compared; null: the page chooses
  peaks: boolean; // whether Compare shows each site's peak in each file, not what its snapshot holds
  runs: boolean | null; // whether files that are compared are separate runs; null: the page decides
}

export const views: View[] = ["job", "wall", "timeline", "allocator", "sites", "compare", "whatif", "findings"];

export const initial: State = {
  view: "timeline", d: null, g: "line", u: "requested", x: "ev", each: false, y: "reserved", win: null, k: null, range: null, solo: [], alloc: null, a: null, b: null,
  of: "cursor", q: "", segment: null, finding: null, ghost: true, sets: null, capacity: null, fraction: "", empty: "", without: "", under: "", lane: "stranded", search: false,
  zoom: 0, group: null, peaks: false, runs: null, f: null, print: null,
};

const axis: Field<YMode> = { name: "y", write: String, read: (t) => oneOf("y", ["reserved", "active", "window"]).read(t) ?? number("y", /^[1-9]\d{0,14}$/).read(t) };
const solo: Field<string[]> = { name: "s", write: (v) => v.join("."), read: (t) => t.split(".").filter((k) => /^[0-9a-f]{12}$/.test(k)) };
const sets: Field<string[]> = { name: "set", write: (v) => v.map((c) => `!${c}`).join(""), read: (t) => t.split("!").slice(1, 7).filter((c) => c.length < 400) };
const print: Field<string> = { name: "f", write: (v) => `x${v}`, read: (t) => /^x([0-9a-f]{4,40})$/.exec(t)?.[1] };

const address = new Address<State>(initial, {
  view: oneOf("v", views), d: some(number("d")), g: text("g", /^[a-z]{1,20}$/), u: oneOf("u", ["requested", "allocated", "reserved"]), x: oneOf("x", ["ev", "us"]), each: flag("each"), y: axis,
  win: some(span("w")), k: some(number("k")), range: some(span("r")), solo, alloc: some(number("p")), a: some(number("a")), b: some(number("b")), of: oneOf("o", ["cursor", "range", "kept", "diff"]), q: text("q"),
  segment: some(text("seg", /^0x[0-9a-f]{1,16}$/)), finding: some(number("n")), ghost: flag("gh"), sets: some(sets), capacity: some(text("cap", /^/, 40)), fraction: text("part", /^/, 20), empty: text("empty", /^/, 80),
  without: text("out"), under: text("under", /^/, 40), lane: oneOf("lane", ["unused", "stranded"]), search: flag("try"), zoom: number("z", /^\d{1,15}$/), group: some(number("cg")), peaks: flag("cp"), runs: some(flag("cr")),
  f: some(number("f")), print: some(print),
});

/** The address of a state. The file is named by its fingerprint where that is known: numbers differ from session to session. */
export function encode(s: State, known: string | null = null): string {
  const file = known ?? s.print;
  if (s.f === null && s.print === null && address.encode(s) === "") return "";
  return address.encode(file === null ? s : { ...s, f: null, print: file });
}

export const decode = (fragment: string): State => address.decode(fragment);

/** The one store. */
export class Store extends Stored<State> {
  print = (): string | null => null; // the fingerprint of the file that is shown

  constructor() {
    super({ encode: (s, now) => encode(s, s.f === now?.f ? (this.print?.() ?? null) : null), decode });
  }

  override set(change: Partial<State>, step = false): void {
    super.set("f" in change ? { ...change, print: null } : change, step);
  }
}
