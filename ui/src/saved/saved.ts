// Answers that were saved in the page, for a file that needs no engine: a script before
// the page's own, which finds its transport to them. What is held of a device stands in its
// `held`; all else is refused with a sentence.

import { decodeTile, type Device, type Held, type Hit } from "../base/wire.ts";

type Place = [part: number, from: number, length: number];

const lacks: Record<string, string> = {
  tile: "This saved page lacks this picture",
  alone: "This saved page cannot show that alone",
  alloc: "This saved page has the largest allocations only",
  at: "This saved page does not know what was live then",
  range: "This saved page does not know what was allocated between two events",
  diff: "This saved page does not contain differences between two events",
  simulate: "This saved page contains only the runs under the suggested settings, over the whole history",
  search: "This saved page does not contain runs under other settings",
  fits: "This saved page does not contain the least capacity",
  csv: "This saved page contains no tables to save",
  flame: "This saved page contains stacks for a few events only: the keys , and . step through them",
  state: "This saved page contains the allocator for a few events only: the keys , and . step through them",
};

/** Is thrown where there is no answer. */
const refusal = (error: string, status: number): Response => new Response(JSON.stringify({ error }), { status });

class Saved {
  private readonly index = unpack("index").then((bytes) => JSON.parse(new TextDecoder().decode(bytes)) as Record<string, Place>);
  private readonly parts = new Map<number, Promise<Uint8Array<ArrayBuffer>>>();

  readonly ask = async (question: string): Promise<Response> => {
    const [path, query = ""] = question.split("?");
    const name = path!.slice("api/".length);
    const q = new URLSearchParams(query);
    if (name === "session" && q.has("since")) return new Promise(() => {}); // nothing ever changes
    if (q.get("u") === "requested") q.delete("u");
    try {
      return new Response(await this.answer(name, q));
    } catch (e) {
      if (!(e instanceof Response)) throw e;
      return e;
    }
  };

  private async answer(name: string, q: URLSearchParams): Promise<BodyInit> {
    switch (name) {
      case "tile":
        return this.tile(q);
      case "state":
        return JSON.stringify(await this.state(q));
      case "next":
        return JSON.stringify({ event: next((await this.held(q)).next[q.get("to")!] ?? [], Number(q.get("k")), q.has("back")) });
      case "hit":
        return JSON.stringify(await this.hit(Number(q.get("k")), Number(q.get("y")), q));
      case "find":
        return JSON.stringify({ keys: await this.find(q) });
    }
    q.delete("limit");
    return this.must(name, q);
  }

  /** An answer as it was saved. */
  private async look(name: string, q: URLSearchParams): Promise<Uint8Array<ArrayBuffer> | undefined> {
    q.sort();
    const place = (await this.index)[`${name}?${q}`];
    if (!place) return undefined;
    const [part, from, length] = place;
    let bytes = this.parts.get(part);
    if (!bytes) this.parts.set(part, (bytes = unpack(String(part))));
    return (await bytes).subarray(from, from + length);
  }

  private async must(name: string, q: URLSearchParams, lack = name): Promise<Uint8Array<ArrayBuffer>> {
    const found = await this.look(name, q);
    if (!found) throw refusal(`${lacks[lack] ?? "This saved page has no answer to that"}; open the snapshot with strandline view for all of it.`, 404);
    return found;
  }

  private async read<T>(name: string, q: URLSearchParams): Promise<T> {
    return JSON.parse(new TextDecoder().decode(await this.must(name, q))) as T;
  }

  private async held(q: URLSearchParams): Promise<Held> {
    return (await this.read<Device>("device", only(q, ["f", "d"]))).held!;
  }

  /** A tile holds the same whatever the scale, and bands have totals too. */
  private async tile(q: URLSearchParams): Promise<Uint8Array<ArrayBuffer>> {
    const of = (kind: string): URLSearchParams => only(q, ["f", "d", "g", "x", "L", "i", "solo"], { kind });
    const singles = q.get("kind") === "alloc" ? await this.look("tile", of("alloc")) : undefined;
    return singles ?? this.must("tile", of("band"), q.get("solo") ? "alone" : "tile");
  }

  /** The state is saved apart from its groups, which depend on the grouping. */
  private async state(q: URLSearchParams): Promise<unknown> {
    const { group, strands } = await this.read<{ group: number[]; strands: unknown }>("state", only(q, ["f", "d", "g", "k"]));
    const state = await this.read<{ blocks: object }>("state", only(q, ["f", "d", "k"]));
    return { ...state, blocks: { ...state.blocks, group }, strands };
  }

  /** Looks in the tiles of allocations for what is drawn at a height after an event. */
  private async hit(k: number, y: number, q: URLSearchParams): Promise<Hit> {
    for (let level = 0; level <= 4; level++) {
      const bytes = await this.look("tile", only(q, ["f", "d", "g", "solo"], { x: "ev", kind: "alloc", L: level, i: Math.floor(k / (256 * 2 ** level)) }));
      const t = bytes && decodeTile(bytes.slice().buffer);
      const c = t?.witness.indexOf(k) ?? -1;
      if (!t || c < 0) continue;
      for (let r = 0; r < t.m; r++) {
        if (t.c0[r]! > c || c >= t.c1[r]! || y < t.y0[r]! || y >= t.y0[r]! + t.height[r]!) continue;
        if (await this.look("alloc", only(q, ["f", "d"], { i: t.alloc[r]! }))) return { alloc: t.alloc[r]! };
      }
    }
    return { alloc: null };
  }

  private async find(q: URLSearchParams): Promise<string[]> {
    let pattern: RegExp;
    try {
      pattern = new RegExp(q.get("q")!, "i");
    } catch (e) {
      throw refusal((e as Error).message, 400);
    }
    const { groups } = await this.read<{ groups: { key: string; label: string; file?: string; function?: string }[] }>("bands", only(q, ["f", "d", "g"]));
    return groups.filter((g) => [g.label, g.file, g.function].some((text) => text && pattern.test(text))).map((g) => g.key);
  }
}

/** Some of the parameters, and others. */
const only = (q: URLSearchParams, names: string[], more: Record<string, string | number> = {}): URLSearchParams =>
  new URLSearchParams([...[...q].filter(([name]) => names.includes(name)), ...Object.entries(more).map(([name, v]) => [name, String(v)])]);

function next(events: number[], k: number, back: boolean): number | null {
  return (back ? events.findLast((e) => e < k) : events.find((e) => e > k)) ?? null;
}

/** What a script element of the page holds: base64 of deflate. */
async function unpack(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const el = document.getElementById(`saved-${name}`)!;
  const text = atob(el.textContent!);
  el.remove();
  const packed = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) packed[i] = text.charCodeAt(i);
  const plain = new Response(packed).body!.pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(plain).arrayBuffer());
}

window.strandlineTransport = new Saved().ask;
