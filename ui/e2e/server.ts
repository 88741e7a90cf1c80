// The program under test: its commands, and its server.

import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

const root = join(process.cwd(), "..");
export const binary = process.env.STRANDLINE ?? join(root, "strandline");
const corpus = process.env.STRANDLINE_CORPUS ?? "no-corpus";
export const example = (name: string): string => join(root, "examples", name);
export const recorded = (name: string): string => join(corpus, "torch", name);
export const lacks = (file: string): boolean => file.startsWith("no-corpus");

/** What a command says as JSON, whatever its judgement. */
export function json(...args: string[]): any {
  try {
    return JSON.parse(execFileSync(binary, [...args, "--json"], { maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "ignore"] }).toString());
  } catch (e) {
    const { status, stdout } = e as { status?: number; stdout?: Buffer };
    if ((status === 1 || status === 3) && stdout?.length) return JSON.parse(stdout.toString());
    throw e;
  }
}

export interface Server {
  url: string;
  pid: number;
  started: number;
  stop: () => Promise<void>;
}

export async function serve(...files: string[]): Promise<Server> {
  const started = performance.now();
  const child = spawn(binary, ["view", "--no-open", ...files], { stdio: ["ignore", "pipe", "inherit"] });
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
        child.kill("SIGINT");
        if (child.exitCode === null) await once(child, "exit");
      },
    };
  }
  throw new Error("strandline view printed no address");
}
