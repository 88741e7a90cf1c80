// Findings as the engine gives them.

import type { AnyFrame } from "../base/stack.ts";
import type { Origin } from "../base/wire.ts";

interface Remedy {
  kind: string;
  text: string;
  setting?: string;
}

/** A finding as `diagnose` tells it. */
export interface Told {
  kind: string;
  severity: "problem" | "warning" | "info";
  confidence: number;
  title: string;
  detail?: string[];
  basis?: string;
  device: number | null;
  process?: string;
  site: { file: string | null; line: number | null; function: string | null } | null;
  stack?: AnyFrame[];
  origins?: Origin[]; // of its frames
  bytes?: number;
  count?: number;
  bytes_per_step?: number;
  sites?: { file: string | null; line: number | null; function: string | null; bytes: number; count: number }[];
  trend?: number[];
  evidence?: Record<string, unknown>;
  remedies?: Remedy[];
}

export interface Finding extends Told {
  where?: { f: number; d: number | null; g: string; keys: string[]; event: number | null };
}
