// Drives Chromium over its debugging pipe: no port, no package.

import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";

type Params = Record<string, unknown>;
type Listener = (method: string, params: any, session: string | undefined) => void;

export const chromium = [process.env.CHROMIUM ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => p && existsSync(p));

export const pause = (ms: number): Promise<void> => new Promise((r) => setTimeout(r, ms));

export class Browser {
  private id = 0;
  private waiting = new Map<number, { done: (v: any) => void; fail: (e: Error) => void }>();
  private listeners: Listener[] = [];
  private rest = "";

  private constructor(
    private readonly child: ChildProcess,
    private readonly profile: string,
  ) {
    const out = child.stdio[4] as Readable;
    out.setEncoding("utf8");
    out.on("data", (text: string) => {
      this.rest += text;
      for (let end = this.rest.indexOf("\0"); end >= 0; end = this.rest.indexOf("\0")) {
        this.receive(JSON.parse(this.rest.slice(0, end)));
        this.rest = this.rest.slice(end + 1);
      }
    });
  }

  static async start(): Promise<Browser> {
    if (!chromium) throw new Error("Chromium is missing");
    const profile = mkdtempSync(join(tmpdir(), "strandline-chromium-"));
    const args = ["--headless=new", "--disable-gpu", "--no-sandbox", "--no-first-run", "--hide-scrollbars", "--disable-background-networking", "--disable-extensions", "--force-color-profile=srgb", `--user-data-dir=${profile}`, "--remote-debugging-pipe", "about:blank"];
    const child = spawn(chromium, args, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    const b = new Browser(child, profile);
    await b.send("Browser.getVersion");
    return b;
  }

  private receive(m: { id?: number; result?: unknown; error?: { message: string }; method?: string; params?: unknown; sessionId?: string }): void {
    if (m.id === undefined) {
      for (const l of this.listeners) l(m.method!, m.params, m.sessionId);
      return;
    }
    const w = this.waiting.get(m.id);
    this.waiting.delete(m.id);
    if (m.error) w?.fail(new Error(m.error.message));
    else w?.done(m.result);
  }

  send(method: string, params: Params = {}, sessionId?: string): Promise<any> {
    const id = ++this.id;
    (this.child.stdio[3] as Writable).write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((done, fail) => this.waiting.set(id, { done, fail }));
  }

  on(l: Listener): void {
    this.listeners.push(l);
  }

  async open(url: string, width = 1440, height = 900, dark = false): Promise<Tab> {
    const { browserContextId } = await this.send("Target.createBrowserContext");
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank", browserContextId, width, height });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const tab = new Tab(this, sessionId, targetId, url === "about:blank" ? "" : new URL(url).origin);
    await tab.start(url, width, height, dark);
    return tab;
  }

  async close(): Promise<void> {
    const gone = new Promise((r) => this.child.once("exit", r));
    await this.send("Browser.close").catch(() => {});
    await gone;
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

const codes: Record<string, number> = { Enter: 13, Escape: 27, Tab: 9, ArrowLeft: 37, ArrowUp: 38, ArrowRight: 39, ArrowDown: 40, Home: 36, End: 35, " ": 32 };

export class Tab {
  readonly problems: string[] = []; // console messages, exceptions, requests to elsewhere
  readonly requests: string[] = []; // but for data and blobs
  received = 0;

  constructor(
    readonly browser: Browser,
    readonly session: string,
    private readonly target: string,
    private readonly origin: string,
  ) {}

  send(method: string, params: Params = {}): Promise<any> {
    return this.browser.send(method, params, this.session);
  }

  async start(url: string, width: number, height: number, dark: boolean): Promise<void> {
    this.browser.on((method, p, session) => {
      if (session !== this.session) return;
      if (method === "Runtime.consoleAPICalled") this.problems.push(`console.${p.type}: ${p.args.map((a: any) => a.value ?? a.description).join(" ")}`);
      if (method === "Runtime.exceptionThrown") this.problems.push(`exception: ${p.exceptionDetails.exception?.description ?? p.exceptionDetails.text}`);
      if (method === "Log.entryAdded") this.problems.push(`log: ${p.entry.text} ${p.entry.url ?? ""}`);
      if (method === "Network.dataReceived") this.received += p.encodedDataLength;
      if (method === "Network.requestWillBeSent" && !/^(data|blob|about):/.test(p.request.url)) {
        this.requests.push(p.request.url);
        if (this.origin && new URL(p.request.url).origin !== this.origin) this.problems.push(`request to ${p.request.url}`);
      }
    });
    for (const domain of ["Page", "Runtime", "Log", "Performance"]) await this.send(`${domain}.enable`);
    await this.send("Network.enable", { maxTotalBufferSize: 0, maxResourceBufferSize: 0 }); // the tab keeps no answers for this program
    await this.send("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: false });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
    await this.send("Page.navigate", { url });
  }

  async eval<T = any>(expression: string): Promise<T> {
    const r = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description ?? r.exceptionDetails.text);
    return r.result.value as T;
  }

  /** Waits until an expression is true. */
  async until(expression: string, ms = 60000): Promise<void> {
    const end = Date.now() + ms;
    for (;;) {
      if (await this.eval<boolean>(`!!(${expression})`).catch(() => false)) return;
      if (Date.now() > end) throw new Error(`after ${ms} ms this is still not so: ${expression}; the page says: ${await this.eval<string>("document.body?.innerText.slice(0, 400)").catch(() => "nothing")}`);
      await pause(25);
    }
  }

  /** Waits until the picture is drawn from the tiles that it asked for, and the numbers beside it are there. */
  async settled(): Promise<void> {
    await this.until("window.strandline && (s => s.ready && s.picture.settled && s.event?.event === s.k && (s.alloc === null || s.pinned?.alloc === s.alloc))(strandline.state())");
    await pause(120);
    await this.until("strandline.state().picture.settled");
  }

  state(): Promise<any> {
    return this.eval("strandline.state()");
  }

  async mouse(type: "mouseMoved" | "mousePressed" | "mouseReleased", x: number, y: number, extra: Params = {}): Promise<void> {
    await this.send("Input.dispatchMouseEvent", { type, x, y, button: type === "mouseMoved" ? (extra.buttons ? "left" : "none") : "left", clickCount: type === "mouseMoved" ? 0 : 1, ...extra });
  }

  async clickAt(x: number, y: number, extra: Params = {}): Promise<void> {
    await this.mouse("mouseMoved", x, y);
    await this.mouse("mousePressed", x, y, { buttons: 1, ...extra });
    await this.mouse("mouseReleased", x, y, extra);
  }

  async drag(x0: number, y0: number, x1: number, y1: number): Promise<void> {
    await this.mouse("mouseMoved", x0, y0);
    await this.mouse("mousePressed", x0, y0, { buttons: 1 });
    for (let i = 1; i <= 6; i++) await this.mouse("mouseMoved", x0 + ((x1 - x0) * i) / 6, y0 + ((y1 - y0) * i) / 6, { buttons: 1 });
    await this.mouse("mouseReleased", x1, y1);
  }

  wheel(x: number, y: number, deltaY: number, extra: Params = {}): Promise<void> {
    return this.send("Input.dispatchMouseEvent", { type: "mouseWheel", x, y, deltaX: 0, deltaY, ...extra });
  }

  /** Drops files on the middle of the page. */
  async drop(...files: string[]): Promise<void> {
    const data = { items: [], files, dragOperationsMask: 1 };
    for (const type of ["dragEnter", "dragOver", "drop"]) await this.send("Input.dispatchDragEvent", { type, x: 600, y: 400, data });
  }

  async click(selector: string): Promise<void> {
    await this.until(`document.querySelector(${JSON.stringify(selector)})`);
    const at = await this.eval<[number, number]>(`(r => [r.left + Math.min(r.width / 2, 60), r.top + r.height / 2])(document.querySelector(${JSON.stringify(selector)}).getBoundingClientRect())`);
    await this.clickAt(at[0], at[1]);
  }

  async key(key: string, modifiers = 0): Promise<void> {
    const text = key.length === 1 ? key : key === "Enter" ? "\r" : undefined;
    const code = codes[key] ?? key.toUpperCase().charCodeAt(0);
    await this.send("Input.dispatchKeyEvent", { type: text ? "keyDown" : "rawKeyDown", key, text, modifiers, windowsVirtualKeyCode: code });
    await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, modifiers, windowsVirtualKeyCode: code });
  }

  async type(text: string): Promise<void> {
    await this.send("Input.insertText", { text });
  }

  async screenshot(path: string): Promise<void> {
    const { data } = await this.send("Page.captureScreenshot", { format: "png" });
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, Buffer.from(data, "base64"));
  }

  close(): Promise<void> {
    return this.browser.send("Target.closeTarget", { targetId: this.target });
  }
}
