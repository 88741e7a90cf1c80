// The one transport to the engine: a name, parameters, an answer.

export type Params = Record<string, string | number | undefined>;

/** An answer that is an error: a sentence, and the status it came with (0: the engine is gone). */
export class Refused extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

let secret: Promise<string> | undefined;
const token = typeof location === "undefined" ? null : new URLSearchParams(location.search).get("t"); // before the page writes its own address

/** The secret that shows who asks. The first address has a token for it, which does not stay there; the origin's storage keeps it for other tabs and later. */
async function enter(): Promise<string> {
  if (token) {
    const answer = await fetch("api/enter", { headers: { "Strandline-Token": token } }).catch((e: unknown) => {
      secret = undefined; // another try
      throw e;
    });
    history.replaceState(history.state, "", location.pathname + location.hash);
    if (answer.ok) localStorage.setItem("strandline-session", await answer.text());
  }
  return localStorage.getItem("strandline-session") ?? "";
}

/** The header that shows who asks. */
export const secretHeader = async (): Promise<Record<string, string>> => ({ "Strandline-Session": await (secret ??= enter()) });

/** Puts a question, as url() writes it. */
export type Transport = (question: string, signal?: AbortSignal) => Promise<Response>;

declare global {
  interface Window {
    strandlineTransport?: Transport; // of a page without a server: a script before the page's own makes it
  }
}

/** What answers in place of a server: "saved", "worker". */
export const engine = globalThis.document?.documentElement.dataset.engine;

const silent = "strandline does not answer: it may have been stopped.";

/** The way to the engine. */
export const link = {
  transport: globalThis.window?.strandlineTransport ?? (async (question, signal) => fetch(question, { headers: await secretHeader(), signal: signal ?? null })) as Transport,
  saved: engine === "saved", // the page holds its answers, but not all of them
  lost: false,
  why: "",
  /** Is called whenever the engine answers again, no longer, or for another reason. */
  changed: (): void => {},
};

export const url = (name: string, params: Params = {}): string => {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(params)) if (v !== undefined && v !== "") q.set(k, String(v));
  const s = q.toString();
  return `api/${name}${s ? `?${s}` : ""}`;
};

export async function ask(name: string, params: Params = {}, signal?: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await link.transport(url(name, params), signal);
  } catch (e) {
    if (signal?.aborted) throw e;
    reach(silent);
    throw new Refused(silent, 0);
  }
  if (answer.ok) {
    reach("");
    return answer;
  }
  const reply = (await answer.json().catch(() => ({}))) as { error?: string };
  reach(answer.status === 403 ? reply.error || silent : "");
  throw new Refused(reply.error ?? `the engine answered ${answer.status}`, answer.status);
}

/** Keeps why the engine does not answer; empty, it does. */
function reach(why: string): void {
  if (link.why === why) return;
  link.lost = !!why;
  link.why = why;
  link.changed();
}

const kept = new Map<string, Promise<unknown>>();
const keptAtMost = 200;

/** A JSON answer. The engine gives the same answer to the same question, so the last ones are kept. */
export function json<T>(name: string, params: Params = {}): Promise<T> {
  const key = url(name, params);
  let answer = kept.get(key) as Promise<T> | undefined;
  if (!answer) {
    answer = fresh<T>(name, params);
    answer.catch(() => kept.delete(key));
    if (kept.size >= keptAtMost) kept.delete(kept.keys().next().value!);
  }
  kept.delete(key);
  kept.set(key, answer);
  return answer;
}

/** A JSON answer that may change. */
export async function fresh<T>(name: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  const answer = await ask(name, params, signal);
  try {
    return (await answer.json()) as T;
  } catch (e) {
    if (signal?.aborted) throw e;
    reach(silent); // it ended in the middle of its answer
    throw new Refused(silent, 0);
  }
}

/** Runs the last of many questions once the hand rests, and drops answers that came too late. */
export class Latest {
  private turn = 0;
  private key = "";
  private timer: ReturnType<typeof setTimeout> | undefined;
  constructor(private readonly rest: number) {}

  /** Asks, and reports it, unless the last question had the same key. */
  once<T>(key: string, question: () => Promise<T>, answer: (v: T) => void, failed?: (e: Error) => void): boolean {
    if (key === this.key) return false;
    this.ask(question, answer, failed);
    this.key = key;
    return true;
  }

  ask<T>(question: () => Promise<T>, answer: (v: T) => void, failed: (e: Error) => void = () => {}): void {
    const turn = ++this.turn;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      question().then(
        (v) => turn === this.turn && answer(v),
        (e: Error) => turn === this.turn && failed(e),
      );
    }, this.rest);
  }

  cancel(): void {
    this.turn++;
    this.key = "";
    clearTimeout(this.timer);
  }
}

/** A question that a page puts once, and its answer. */
export class Once<T> {
  answer: T | null = null;
  error = "";
  private asked = false;

  constructor(
    private readonly name: string,
    private readonly came: (v: T) => void,
    private readonly failed: () => void,
  ) {}

  /** Asks, unless it was asked before. */
  ask(): void {
    if (this.asked) return;
    this.asked = true;
    fresh<T>(this.name).then((v) => this.came((this.answer = v)), (e: Error) => {
      this.error = e.message;
      this.failed();
    });
  }
}
