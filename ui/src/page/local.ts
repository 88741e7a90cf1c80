// The engine in a worker of this page, for the static site: the same questions
// and answers as over HTTP, as messages. Files go to the worker and nowhere else.

import { link, Refused } from "../base/ask.ts";

export interface Picked {
  path: string;
  file: File;
  named: boolean; // by the reader himself; else it lay in a folder
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

interface Waiting {
  done: (answer: Response) => void;
  fail: (e: Error) => void;
}

declare global {
  interface Window {
    strandlineDoor?: (question: string, signal?: AbortSignal) => Promise<Response>;
  }
}

export class Local {
  private readonly waiting = new Map<number, Waiting>();
  private id = 0;
  private worker: Worker | null = null;
  private begin: () => void = () => {};
  private readonly begun = new Promise<void>((done) => (this.begin = done));

  constructor(private readonly problem: (text: string) => void) {}

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

  open(picked: Picked[]): void {
    this.worker!.postMessage({ files: picked.map((p) => p.file), paths: picked.map((p) => p.path), named: picked.map((p) => p.named) });
    this.begin();
  }

  /** Shows the recording of a trace in a page of its own, in place of this one; what this one has asked is never answered. */
  async record(picked: Picked): Promise<void> {
    const page = await (await get("recording.html")).text();
    this.worker!.postMessage({ files: [picked.file], paths: [picked.path], named: [true], recording: true });
    window.strandlineDoor = this.put;
    document.open(); // takes the listeners of this page away, too
    document.write(page);
    document.close();
  }

  /** Puts a question to the worker, once it has files. */
  readonly ask = async (question: string, signal?: AbortSignal): Promise<Response> => {
    await this.begun;
    signal?.throwIfAborted();
    return this.put(question, signal);
  };

  private readonly put = (question: string, signal?: AbortSignal): Promise<Response> => {
    const [path, query = ""] = question.split("?");
    const id = ++this.id;
    return new Promise((done, fail) => {
      this.waiting.set(id, { done, fail });
      signal?.addEventListener("abort", () => {
        if (this.waiting.delete(id)) this.worker!.postMessage({ id });
        fail(signal.reason as Error);
      });
      this.worker!.postMessage({ id, name: path!.slice("api/".length), query });
    });
  };

  private receive(m: Message): void {
    if (m.problem) return this.problem(m.problem);
    if (m.ended) {
      link.why = "The reader has ended: it may have needed more memory than a browser gives. The program itself, strandline view, has no such bound";
      for (const w of this.waiting.values()) w.fail(new Refused(link.why, 0));
      return this.waiting.clear();
    }
    const { status, type, body } = m;
    this.waiting.get(m.id)?.done(new Response(body, { status, headers: { "content-type": type } }));
    this.waiting.delete(m.id);
  }
}

async function get(name: string): Promise<Response> {
  const answer = await fetch(name);
  if (!answer.ok) throw new Error(`${name}: the server answered ${answer.status}`);
  return answer;
}
