// What is asked for: a mode and the flags that are given. The address holds it.

import type { Field, Mode } from "./wire.ts";

export interface Asked {
  mode: Mode;
  flags: Record<string, string>; // those that are given; the others have the command's defaults
}

export const modes: Record<Mode, string> = { serve: "Serve", train: "Train", rl: "RL step" };

/** What the page begins with. */
export const first: Record<Mode, Record<string, string>> = {
  serve: { model: "Llama-3.1-8B", gpu: "H100" },
  train: { model: "Llama-3.1-8B", gpu: "H100", gpus: "8" },
  rl: { model: "Qwen2.5-32B", gpu: "H200", gpus: "8", "rollout-tp": "4", seq: "8192" },
};

export function encode(a: Asked): string {
  return `#${new URLSearchParams({ mode: a.mode, ...a.flags })}`;
}

/** Reads an address. What no mode has a field for is left out. */
export function decode(hash: string, fields: Record<Mode, Field[]>): Asked {
  const q = new URLSearchParams(hash.replace(/^#/, ""));
  const named = q.get("mode") as Mode;
  const mode = Object.hasOwn(modes, named ?? "") ? named : "serve";
  const flags: Record<string, string> = {};
  for (const f of fields[mode]) {
    const value = q.get(f.name);
    if (value !== null) flags[f.name] = value;
  }
  return { mode, flags: flags.model === undefined ? { ...first[mode], ...flags } : flags };
}

/** Sets a flag, or takes it back where the value is the default. */
export function set(a: Asked, f: Field, value: string): Asked {
  const { [f.name]: _, ...others } = a.flags;
  const given = value !== "" && value !== f.default;
  return { mode: a.mode, flags: given ? { ...others, [f.name]: value } : others };
}

/** Another mode, with what both have: model and GPUs, and flags of the same name. */
export function turn(a: Asked, mode: Mode, fields: Record<Mode, Field[]>): Asked {
  const flags: Record<string, string> = {};
  for (const name of ["model", "gpu", "gpus", "capacity"]) if (a.flags[name] !== undefined) flags[name] = a.flags[name];
  const begin = Object.fromEntries(Object.entries(first[mode]).filter(([name]) => !(name in flags) && !["model", "gpu", "gpus", "rollout-tp"].includes(name)));
  const known = new Set(fields[mode].map((f) => f.name));
  return { mode, flags: Object.fromEntries(Object.entries({ ...flags, ...begin }).filter(([name]) => known.has(name))) };
}

const plain = /^[\w./:=,@%+-]+$/;
const quoted = (text: string): string => (plain.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

/** The command that prints the same. */
export function command(a: Asked, fields: Field[]): string {
  const words = ["strandline", "plan", ...(a.mode === "serve" ? [] : [a.mode])];
  for (const f of fields) {
    const value = a.flags[f.name];
    if (value === undefined) continue;
    words.push(f.kind === "bool" ? `--${f.name}${value === "true" ? "" : `=${value}`}` : `--${f.name} ${quoted(value)}`);
  }
  return words.join(" ");
}
