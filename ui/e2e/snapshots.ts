// Snapshots, made up: of one process after each of its steps.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { MiB } from "./made.ts";

const start = 0x7f0000000000;

/** A snapshot after so many steps of a program that keeps 1 MiB a step at line 9, and 32 MiB from its second step on at line 5. */
function after(steps: number): object {
  const events: object[] = [];
  const blocks: { address: number; size: number; requested_size: number; state: string; frames: object[] }[] = [];
  const frames = (line: number): object[] => [{ filename: "/a/train.py", line, name: "step" }];
  const event = (action: string, addr: number, size: number, line: number): void => void events.push({ action, addr, size, stream: 0, time_us: 1000 + 10 * events.length, frames: frames(line) });
  let at = start;
  const keep = (size: number, line: number): void => {
    event("alloc", at, size, line);
    blocks.push({ address: at, size, requested_size: size, state: "active_allocated", frames: frames(line) });
    at += size;
  };
  event("segment_alloc", start, 256 * MiB, 1);
  for (let step = 0; step < steps; step++) {
    if (step === 1) keep(32 * MiB, 5);
    keep(MiB, 9);
    for (const action of ["alloc", "free_requested", "free_completed"]) event(action, start + 200 * MiB, 8 * MiB, 7);
  }
  const used = at - start;
  blocks.push({ address: at, size: 256 * MiB - used, requested_size: 0, state: "inactive", frames: [] });
  return { segments: [{ device: 0, address: start, total_size: 256 * MiB, allocated_size: used, active_size: used, requested_size: used, stream: 0, segment_type: "large", is_expandable: false, frames: [], blocks }], device_traces: [events] };
}

/** Writes the snapshots after the first steps. */
export function steps(folder: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => {
    const file = join(folder, `made-${String(i + 1).padStart(2, "0")}.json`);
    writeFileSync(file, JSON.stringify(after(i + 1)));
    return file;
  });
}

/** The snapshots of two ranks, each of a device of its own, under long names. */
export function ranksOfTheirOwn(folder: string): string[] {
  return [0, 1].map((rank) => {
    const made = after(3 + rank) as { segments: { device: number }[]; device_traces: object[][] };
    for (const s of made.segments) s.device = rank;
    if (rank) made.device_traces.unshift([]);
    const file = join(folder, `${"ab"[rank]}-run-of-a-model-with-a-name-that-is-longer-than-the-room-for-it.rank${rank}.json`);
    writeFileSync(file, JSON.stringify(made));
    return file;
  });
}

/** A snapshot whose history contradicts its segments: what is kept is in none of them. */
export function contradicting(folder: string): string {
  const made = after(3) as { segments: { blocks: { address: number; size: number; requested_size: number; state: string; frames: object[] }[] }[] };
  const [segment] = made.segments;
  Object.assign(segment!, { allocated_size: 0, active_size: 0, requested_size: 0, blocks: [{ address: start, size: 256 * MiB, requested_size: 0, state: "inactive", frames: [] }] });
  const file = join(folder, "contradicting.json");
  writeFileSync(file, JSON.stringify(made));
  return file;
}
