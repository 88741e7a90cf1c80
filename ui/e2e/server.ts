// The program under test: its commands, and its server.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";

const root = join(process.cwd(), "..");
export const binary = process.env.STRANDLINE ?? join(root, "strandline");
const corpus = process.env.STRANDLINE_CORPUS ?? "no-corpus";
export const example = (name: string): string => join(root, "examples", name);
export const recorded = (name: string): string => join(corpus, "torch", name);
export const lacks = (file: string): boolean => file.startsWith("no-corpus");

/** What a command prints as JSON, whatever its verdict. */
export function json(...args: string[]): any {
  try {
    return JSON.parse(execFileSync(binary, [...args, "--json"], { maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }).toString());
  } catch (e) {
    const { status, stdout } = e as { status?: number; stdout?: Buffer };
    if ((status === 1 || status === 3) && stdout?.length) return JSON.parse(stdout.toString());
    throw e;
  }
}

/** Runs a command to its end, whatever its verdict. */
export function run(args: string[], environment: Record<string, string>): void {
  const { status, stderr } = spawnSync(binary, args, { env: { ...process.env, ...environment } });
  if (status !== 0 && status !== 1) throw new Error(`strandline ${args[0]}: status ${status}, ${stderr}`);
}

/** The events of a file, as export writes them: a record of texts each. */
export function events(file: string): Record<string, string>[] {
  const [head, ...lines] = execFileSync(binary, ["export", file, "--to", "csv", "-o", "-"], { maxBuffer: 1 << 28 }).toString().trimEnd().split("\n");
  const names = head!.split(",");
  return lines.map((line) => Object.fromEntries(cells(line).map((cell, i) => [names[i]!, cell])));
}

const cells = (line: string): string[] => [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,]*))/g)].map((m) => m[1]?.replaceAll('""', '"') ?? m[2] ?? "");

/** The static site, as `go run ./cmd/site` builds it. */
export const site = process.env.STRANDLINE_SITE;

const types: Record<string, string> = { html: "text/html", js: "text/javascript", css: "text/css" };

/** Any web server: it gives the files of a folder. */
export async function host(folder: string): Promise<{ url: string; asked: string[]; stop: () => void }> {
  const asked: string[] = [];
  const server = createServer((request, answer) => {
    asked.push(request.url!);
    const name = basename(request.url!.split("?")[0]!) || "index.html";
    try {
      const body = readFileSync(join(folder, name));
      answer.setHeader("content-type", types[name.split(".").at(-1)!] ?? "application/octet-stream");
      answer.end(body);
    } catch {
      answer.statusCode = 404;
      answer.end();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, asked, stop: () => (server.closeAllConnections(), server.close()) };
}

export interface Server {
  url: string;
  pid: number;
  started: number;
  stop: () => Promise<void>;
}

export const serve = (...files: string[]): Promise<Server> => start("view", "--no-open", ...files);

/** Starts a command that serves a page. */
export async function start(...args: string[]): Promise<Server> {
  const started = performance.now();
  const child = spawn(binary, args, { stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  for await (const line of lines) {
    const url = /http:\/\/\S+/.exec(line)?.[0];
    if (!url) continue;
    child.stdout.resume();
    return {
      url,
      pid: child.pid!,
      started,
      stop: async () => {
        if (child.exitCode !== null || child.signalCode !== null) return; // its exit was before
        child.kill("SIGINT");
        await once(child, "exit");
      },
    };
  }
  throw new Error(`strandline ${args[0]} printed no address`);
}
