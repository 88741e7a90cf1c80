// What the reader looks at, in the fragment of the address, which no browser sends anywhere:
// one notation for all pages, and the store that it follows.

/** A field of the address: its name there, its text, and its value. What makes no sense reads as undefined. */
export interface Field<T> {
  name: string;
  write: (v: T) => string | null;
  read: (text: string) => T | undefined;
}

type Span = [number, number];

/** A text of a pattern, cut to at most so many characters. */
export const text = (name: string, pattern = /^/, most = 1000): Field<string> => ({ name, write: (v) => v, read: (t) => (pattern.test(t) ? t.slice(0, most) : undefined) });

/** The same, or none. */
export const some = <T>(f: Field<T>): Field<T | null> => ({ name: f.name, write: (v) => (v === null ? null : f.write(v)), read: f.read });

export const number = (name: string, pattern = /^-?\d{1,15}$/): Field<number> => ({ name, write: String, read: (t) => (pattern.test(t) ? Number(t) : undefined) });

/** A time in seconds or a count, not negative. */
export const amount = (name: string): Field<number> => number(name, /^\d{1,15}(\.\d{1,6})?$/);

export const flag = (name: string): Field<boolean> => ({ name, write: (v) => String(Number(v)), read: (t) => (t === "1" ? true : t === "0" ? false : undefined) });

export const oneOf = <T extends string>(name: string, of: readonly T[]): Field<T> => ({ name, write: (v) => v, read: (t) => of.find((v) => v === t) });

/** A stretch, from and to; a hyphen between them was written by earlier versions. */
export const span = (name: string): Field<Span> => ({
  name,
  write: (v) => v.map((x) => Number(x.toFixed(3))).join("_"),
  read: (t) => {
    const [, from, to] = (/^(-?\d[\d.]{0,20})[_-](-?\d[\d.]{0,20})$/.exec(t) ?? []).map(Number);
    return from !== undefined && to !== undefined && from <= to ? [from, to] : undefined;
  },
});

/** The address of states: without what is as at the start, and read without what is unknown. */
export class Address<S extends object> {
  constructor(
    readonly first: S,
    private readonly fields: { [K in keyof S]: Field<S[K]> },
  ) {}

  encode(s: S): string {
    const out: string[] = [];
    for (const key in this.fields) {
      const { name, write } = this.fields[key];
      const value = write(s[key]);
      if (value !== null && value !== write(this.first[key])) out.push(`${name}=${encodeURIComponent(value)}`);
    }
    return out.length ? `#${out.join("&")}` : "";
  }

  decode(fragment: string): S {
    const q = new URLSearchParams(fragment.replace(/^#/, ""));
    const s = { ...this.first };
    for (const key in this.fields) {
      const { name, read } = this.fields[key];
      const value = q.has(name) ? read(q.get(name)!) : undefined;
      if (value !== undefined) s[key] = value;
    }
    return s;
  }
}

type Listener<S> = (now: S, before: S) => void;

/** The state of a page. All are notified of a change; the address follows at rest, or at once as a step for Back. */
export class Store<S extends object> {
  now: S;
  private readonly listeners: Listener<S>[] = [];
  private resting: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly address: { encode: (s: S, now?: S) => string; decode: (fragment: string) => S },
  ) {
    this.now = address.decode(location.hash);
    const read = (): void => {
      clearTimeout(this.resting);
      this.take(address.decode(location.hash));
    };
    addEventListener("popstate", read);
    addEventListener("hashchange", () => location.hash !== this.link && read());
  }

  /** The fragment of what is shown. */
  get link(): string {
    return this.address.encode(this.now, this.now);
  }

  on(listener: Listener<S>): void {
    this.listeners.push(listener);
  }

  set(change: Partial<S>, step = false): void {
    const next = { ...this.now, ...change };
    const link = this.address.encode(next, this.now);
    const steps = step && link !== this.link;
    if (steps) {
      this.write("replaceState", this.link); // a move that still waits for its rest belongs to the step before
      this.write("pushState", link);
    }
    clearTimeout(this.resting);
    if (!steps) this.resting = setTimeout(() => this.write("replaceState", this.link), 250); // browsers count how often
    this.take(next);
  }

  private take(next: S): void {
    const before = this.now;
    this.now = next;
    for (const l of this.listeners) l(next, before);
  }

  private write(how: "pushState" | "replaceState", link: string): void {
    history[how](null, "", location.pathname + link);
  }
}
