// Runs of the history under other settings: asked for one after another, kept,
// and drawn as curves.

import { ask, fresh, Refused, type Params } from "../base/ask.ts";
import { lastAt } from "../base/scale.ts";
import type { Outcome } from "../base/api.ts";

/** What came of a run: its figures, each change of reserved memory, and memory after some events. */
export interface Run {
  outcome: Outcome;
  steps: Course;
  looks: Int32Array; // events
  unused: Float64Array; // reserved less allocated after each of them
  stranded: Float64Array; // free in segments in use
}

/** Values that hold from an event on; the first from before the first one. */
export interface Course {
  event: Int32Array;
  bytes: Float64Array;
}

/** Reads an answer to `simulate`. Throws if it is not one. */
export function decodeRun(buf: ArrayBuffer): Run {
  const view = new DataView(buf);
  if (buf.byteLength < 16 || view.getUint32(0, false) !== 0x534c4331) throw new Error("the engine's answer is not a run");
  const [steps, looks, text] = [4, 8, 12].map((at) => view.getUint32(at, true)) as [number, number, number];
  let at = 16;
  const events = (n: number): Int32Array => {
    const out = new Int32Array(buf, at, n);
    at = (at + 4 * n + 7) & ~7;
    return out;
  };
  const values = (n: number): Float64Array => {
    const out = new Float64Array(buf, at, n);
    at += 8 * n;
    return out;
  };
  const course = { event: events(steps), bytes: values(steps) };
  const look = events(looks);
  const reserved = values(looks);
  const unused = values(looks).map((v, i) => reserved[i]! - v);
  values(looks); // active
  const stranded = values(looks);
  const outcome = JSON.parse(new TextDecoder().decode(new Uint8Array(buf, at, text))) as Outcome;
  return { outcome, steps: course, looks: look, unused, stranded };
}

/** The highest value after one of the events from … to − 1. */
export function highest(events: Int32Array, bytes: Float64Array, from: number, to: number): number {
  let i = Math.max(0, lastAt(events, from));
  let most = bytes[i] ?? 0;
  for (i++; i < events.length && events[i]! < to; i++) if (bytes[i]! > most) most = bytes[i]!;
  return most;
}

/** Asks for a run. */
export const runOf = async (params: Params, signal?: AbortSignal): Promise<Run> => decodeRun(await (await ask("simulate", params, signal)).arrayBuffer());

/** The runs that the page has. The engine does one at a time; so does this, that other questions find a way. */
export class Runs {
  private readonly have = new Map<string, unknown>();
  private readonly failed = new Map<string, string>();
  private wanted: { key: string; name: string; params: Params }[] = [];
  private busy: { key: string; abort: AbortController } | null = null;
  took = 0; // ms of the last run

  constructor(private readonly changed: () => void) {}

  /** Sets what is wanted, most urgent first. What is running and no longer wanted is canceled. */
  want(jobs: [string, Params][]): void {
    this.wanted = jobs.map(([name, params]) => ({ key: keyOf(name, params), name, params }));
    if (this.busy && !this.wanted.some((j) => j.key === this.busy!.key)) this.busy.abort.abort();
    void this.next();
  }

  get<T>(name: string, params: Params): T | undefined {
    return this.have.get(keyOf(name, params)) as T | undefined;
  }

  why(name: string, params: Params): string | undefined {
    return this.failed.get(keyOf(name, params));
  }

  get working(): boolean {
    return this.busy !== null;
  }

  private async next(): Promise<void> {
    if (this.busy) return;
    const job = this.wanted.find((j) => !this.have.has(j.key) && !this.failed.has(j.key));
    if (!job) return;
    const abort = new AbortController();
    this.busy = { key: job.key, abort };
    try {
      const from = performance.now();
      if (job.name === "simulate") {
        this.have.set(job.key, await runOf(job.params, abort.signal));
        this.took = performance.now() - from;
      } else this.have.set(job.key, await fresh(job.name, job.params, abort.signal));
      if (this.have.size > 60) this.have.delete(this.have.keys().next().value!);
    } catch (e) {
      if (!abort.signal.aborted) {
        if (!(e instanceof Refused)) throw e;
        this.failed.set(job.key, e.message);
      }
    } finally {
      this.busy = null;
      this.changed();
      void this.next();
    }
  }

  /** Asks again for what was refused. */
  forgive(): void {
    this.failed.clear();
    void this.next();
  }
}

const keyOf = (name: string, params: Params): string => `${name} ${JSON.stringify(params)}`;
