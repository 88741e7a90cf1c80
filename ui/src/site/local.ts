// The engine in a worker of this page, for the static site: the same questions
// and answers as over HTTP, as messages. Files go to the worker and nowhere else.

import type { Transport } from "../base/ask.ts";

export interface Picked {
  path: string;
  file: File;
  named: boolean; // by the reader himself; else it lay in a folder
}

/** The config.json of a model. */
export interface Config {
  path: string;
  text: string;
}

interface Message {
  ready?: true;
  ended?: true;
  problem?: string;
  id: number;
  status: number;
  type: string;
  body: ArrayBuffer;
}

export class Local {
  private readonly waiting = new Map<number, (answer: Response) => void>();
  private id = 0;
  private worker: Worker | null = null;
  private begin: () => void = () => {};
  private readonly begun = new Promise<void>((done) => (this.begin = done));
  private lost = ""; // why there will be no answer

  /** Loads the program and starts it. */
  async start(): Promise<void> {
    const [script, program] = await Promise.all([get("worker.js"), get("strandline.wasm.deflate")]);
    const plain = program.body!.pipeThrough(new DecompressionStream("deflate-raw"));
    const compiled = await WebAssembly.compileStreaming(new Response(plain, { headers: { "content-type": "application/wasm" } }));
    // A worker of a blob is under the policy of this page.
    const blob = URL.createObjectURL(new Blob([await script.blob()], { type: "text/javascript" }));
    const worker = new Worker(blob);
    await new Promise<void>((ready, failed) => {
      worker.onmessage = ({ data }: MessageEvent<Message>) => (data.ready ? ready() : this.receive(data));
      worker.onerror = (e) => failed(new Error(e.message));
      worker.postMessage(compiled);
    });
    URL.revokeObjectURL(blob);
    this.worker = worker;
  }

  /** Has the program plan: well-known models, and one that was dropped. */
  plan(model: Config | null): void {
    this.worker!.postMessage({ plan: true, model });
    this.begin();
  }

  /** Answers all questions with the reason why there is no answer. */
  lose(why: string): void {
    this.lost = why;
    for (const done of this.waiting.values()) done(this.none());
    this.waiting.clear();
    this.begin();
  }

  private none(): Response {
    return new Response(JSON.stringify({ error: this.lost }), { status: 403 });
  }

  open(picked: Picked[]): void {
    this.worker!.postMessage({ files: picked.map((p) => p.file), paths: picked.map((p) => p.path), named: picked.map((p) => p.named) });
    this.begin();
  }

  /** Shows the recording of a trace in a page of its own, in place of this one; what this one has asked is never answered. */
  async record(picked: Picked): Promise<void> {
    const page = await (await get("recording.html")).text();
    this.worker!.postMessage({ files: [picked.file], paths: [picked.path], named: [true], recording: true });
    window.strandlineTransport = this.put;
    document.open(); // takes the listeners of this page away, too
    document.write(page);
    document.close();
  }

  /** Puts a question to the worker, once it has files. */
  readonly ask: Transport = async (question, signal) => {
    await this.begun;
    signal?.throwIfAborted();
    return this.put(question, signal);
  };

  private readonly put: Transport = (question, signal) => {
    const [path, query = ""] = question.split("?");
    const id = ++this.id;
    return new Promise((done, fail) => {
      if (this.lost) return done(this.none());
      this.waiting.set(id, done);
      signal?.addEventListener("abort", () => {
        if (this.waiting.delete(id)) this.worker!.postMessage({ id });
        fail(signal.reason as Error);
      });
      this.worker!.postMessage({ id, name: path!.slice("api/".length), query });
    });
  };

  private receive(m: Message): void {
    if (m.problem) return void dispatchEvent(new CustomEvent("problem", { detail: m.problem }));
    if (m.ended) return this.lose("The reader has ended: it may have needed more memory than a browser gives. The program itself, strandline view, has no such bound.");
    const { status, type, body } = m;
    this.waiting.get(m.id)?.(new Response(body, { status, headers: { "content-type": type } }));
    this.waiting.delete(m.id);
  }
}

async function get(name: string): Promise<Response> {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name}: the server answered ${answer.status}`);
  return answer;
}
