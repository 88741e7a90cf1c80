// What the engine answers about a recording of `strandline trace`, as types.

import type { Told } from "../findings/wire.ts";
import type { Frame } from "../base/wire.ts";

export interface Stack {
  id: number; // 0: not copied
  key: string; // of its site; empty if there is none
  label: string;
  slot: number;
  call: string;
  complete: boolean;
  grows: boolean; // a finding says so
  peak_bytes: number;
  first_seconds: number | null; // at which it holds something
  last_seconds: number | null;
  resident_bytes: number | null; // at the last judgement, as the next
  assumed_bytes: number;
  made_bytes: number;
  calls: number;
  frames: Frame[];
  frames_left_out: number;
}

export interface Owner {
  owner: string;
  memory: string;
}

export interface GPUStack extends Stack, Owner {
  live_bytes: number;
  live_count: number;
  trend: number[] | null;
}

/** What the memory of a device is, as far as it is known. */
export interface Device {
  names: string[] | null;
  at_seconds: number;
  used_bytes: number | null;
  total_bytes: number | null;
  parts: { part: string; owner?: string; bytes: number; allocated_bytes?: number; since_bytes?: number; count?: number }[] | null;
  notes: string[] | null;
}

export interface Growth {
  anonymous_bytes: number;
  file_bytes: number;
  shared_bytes: number;
  older_bytes: number;
  unnamed_bytes: number;
  threads: number;
}

/** The recording as a whole. */
export interface Recording {
  file: string;
  pid: number;
  name: string;
  rung: string;
  began_us: number;
  moments: number;
  partial: string | null;
  judged_seconds: number | null;
  verdict: string;
  document: {
    rss_bytes: number;
    rss_growth_bytes: number;
    growth: Growth;
    explained_share: number | null;
    drops: number;
    stack_drops: number;
    paired: number;
    paired_bytes: number;
    gpu?: { libraries: string[] | null; live_bytes: number; live_count: number; managed_bytes: number; pinned_bytes: number; foreign_count: number; devices: Device[] | null };
  };
  findings: (Told & { stacks: number[] })[];
  findings_left_out: number;
  stacks: Stack[];
  others: number; // smaller stacks, told as one
  owners: Owner[];
  gpu: GPUStack[];
}

/** What is held from the given columns on; before the first nothing. */
export interface Course {
  at: number[];
  bytes: number[];
  count: number[];
}

/** Moments from one to another, and what is held at each. */
export interface Window {
  from: number;
  to: number;
  moment: number[];
  seconds: number[];
  rss_bytes: number[];
  anonymous_bytes: number[]; // growth since the recording began, as the next two
  file_bytes: number[];
  shared_bytes: number[];
  drops: number[];
  live_bytes: number[];
  stacks: Course[]; // as in the recording, and behind them one of the others
  owners: Course[];
}
