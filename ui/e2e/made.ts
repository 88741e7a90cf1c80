// Recordings, made up: lines of JSON in zstd frames of raw blocks, as any packer may
// write them.

import { writeFileSync } from "node:fs";

const kinds = { trace: 0x5d, watch: 0x5e };

const marker = (kind: keyof typeof kinds) => Buffer.from([kinds[kind], 0x2a, 0x4d, 0x18, 10, 0, 0, 0, ...Buffer.from("strandline")]);

function block(data: Buffer, last: boolean): Buffer {
  const head = (data.length << 3) | Number(last);
  return Buffer.concat([Buffer.from([head & 255, (head >> 8) & 255, head >> 16]), data]);
}

/** A frame as a watch writes it. */
export const frame = (lines: object[], ended = true, run = 1) => framed("watch", [{ schema: "strandline.recording/3", of: "watch", run }, ...lines], ended);

/** A frame of a recording: each line is a block. Without an end it is still being written. */
export function framed(kind: keyof typeof kinds, lines: object[], ended = true): Buffer {
  const parts: Buffer[] = [marker(kind), Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x68])]; // a window of 8 MiB
  for (const l of lines) {
    const data = Buffer.from(`${JSON.stringify(l)}\n`);
    for (let at = 0; at < data.length; at += 1 << 16) parts.push(block(data.subarray(at, at + (1 << 16)), false));
  }
  if (ended) parts.push(block(Buffer.alloc(0), true));
  return Buffer.concat(parts);
}

export const MiB = 1 << 20;
export const GiB = 2 ** 30;

/** When the made watches began. */
export const began = Date.UTC(2026, 0, 5, 12);

/** A sample: what is not given is unknown. Processes that ended are named by their ids. */
export function sample(at: number, processes: object[], devices: object[] = [], groups: object[] = [], machine: object | null = null, ended: number[] = []): object {
  return { time: new Date(began + at * 1000).toISOString(), at_seconds: at, processes, ended: ended.map((pid) => ({ PID: pid, Started: pid })), rest: { devices, groups, machine } };
}

export interface Made {
  pid: number;
  name?: string;
  group?: string;
  container?: string;
  age?: number;
  host?: [anonymous: number, file: number, shared: number];
  devices?: { device: number; used: number | null; allocated?: number; cached?: number }[];
}

export function process(p: Made): object {
  const [anonymous, file, shared] = p.host ?? [0, 0, 0];
  return {
    pid: p.pid, started_ticks: p.pid, age_at_first_seconds: p.age ?? 100_000, name: p.name ?? "python", command: `${p.name ?? "python"} train.py --pid ${p.pid}`, state: "sleeping", container: p.container ?? null, group: p.group,
    host: p.host ? { anonymous_bytes: anonymous, file_bytes: file, shared_bytes: shared, swapped_bytes: 0, pinned_bytes: 0 } : null,
    devices: (p.devices ?? []).map((d) => ({ device: d.device, used_bytes: d.used, allocated_bytes: d.allocated ?? null, cached_bytes: d.cached ?? null, other_bytes: d.allocated === undefined || d.used === null ? null : d.used - d.allocated - d.cached! })),
  };
}

export function device(index: number, total: number, held: [pid: number, bytes: number, owner: string][], remainder: number): object {
  const used = held.reduce((n, h) => n + h[1], remainder);
  return {
    device: index, uuid: `GPU-${index}`, used_bytes: used, free_bytes: total - used, total_bytes: total, processes: held.map(([pid, n, owner]) => ({ pid, used_bytes: n, owner })),
    unowned_bytes: held.filter((h) => h[2] === "gone").reduce((n, h) => n + h[1], 0), remainder_bytes: remainder,
  };
}

/** Writes samples as a recording, of frames of so many. */
export function write(file: string, samples: object[], perFrame = 600, ended = true): string {
  const frames: Buffer[] = [];
  for (let i = 0; i < samples.length; i += perFrame) frames.push(frame(samples.slice(i, i + perFrame), ended || i + perFrame < samples.length));
  writeFileSync(file, Buffer.concat(frames));
  return file;
}
