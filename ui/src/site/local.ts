// The engine in a worker of this page, for the static site: the same questions
// and answers as over HTTP, as messages. Files go to the worker and nowhere else.

import type { Transport } from "../base/ask.ts";
import type { Picked } from "../base/drops.ts";

/** The config.json of a model. */
export interface Config {
  path: string;
  text: string;
}

interface Message {
  ready?: true;
  ended?: true;
  problem?: string;
  opened?: string; // the document that shows the files
  refused?: string; // why they are not opened
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
  private told: (m: Message) => void = () => {}; // what became of the files
  private opened = 0; // how often files were
  private turn = 0; // of the document that is shown

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

  /** Opens files, or says in a sentence why not. Those that another document shows, or that come in place of others, take the place of this page. */
  async open(picked: Picked[]): Promise<void> {
    const index = await new Promise<string>((done, failed) => {
      this.told = (m) => (m.opened ? done(m.opened) : failed(new Error(m.refused)));
      this.worker!.postMessage({ files: picked.map((p) => p.file), paths: picked.map((p) => p.path), named: picked.map((p) => p.named) });
    });
    if (index === "index.html" && !this.opened++) return this.begin();
    this.opened++;
    const page = await (await get(index)).text();
    const turn = ++this.turn;
    window.strandlineTransport = (question, signal) => (turn === this.turn ? this.put(question, signal) : new Promise(() => {}));
    history.replaceState(null, "", location.pathname);
    document.open(); // takes the listeners of this page away, too; what it asks is never answered
    document.write(page);
    document.close();
  }

  /** Puts a question to the worker, once it has files. */
  readonly ask: Transport = async (question, signal) => {
    await this.begun;
    signal?.throwIfAborted();
    return this.turn ? new Promise(() => {}) : this.put(question, signal);
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
    if (m.opened || m.refused) return this.told(m);
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
