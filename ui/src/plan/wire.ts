// What the planner answers: the form, and the JSON of `strandline plan` (docs/json.md).

export type Mode = "serve" | "train" | "rl";

export interface Form {
  given: string;
  modes: Record<Mode, Field[]>;
}

/** A flag. */
export interface Field {
  name: string;
  help: string;
  kind: "bool" | "int64" | "float64" | "string";
  default: string;
  choices: string[];
}

export type Verdict = "fits" | "may fit" | "does not fit";
export type Pair = [number, number];

export interface Part {
  name: string;
  low_bytes: number;
  high_bytes: number;
  source?: string;
}

export interface Model {
  name: string;
  parameters: number;
  active_parameters: number;
  layers: number;
  format: string;
  checkpoint_bytes: number;
  context_tokens: number | null;
  notes: string[];
}

export interface GPU {
  name: string;
  total_bytes: number;
}

export interface ServePlan {
  model: Model;
  engine: string;
  gpu: GPU;
  parallel: { gpus: number; tp: number; pp: number; ep: number; dp: number };
  memory_fraction: number;
  verdict: Verdict;
  binding: string;
  components: Part[];
  kv: { bytes_per_token: number; window_bytes_per_token: number; window_tokens: number; state_bytes: number; block_tokens: number; tokens: Pair; length_tokens: number; requests: Pair; longest_tokens: Pair };
  flags: string[];
  notes: string[];
  latency?: { prompt_tokens: number; batch: number; first_token_us: Pair; token_us: Pair; bound: string; assumed: string };
  formats?: { format: string; weights_bytes: number; tokens: Pair; verdict: Verdict }[];
}

export interface Moment {
  name: string;
  low_bytes: number;
  high_bytes: number;
  components: Part[];
}

export interface TrainPlan {
  model: Model;
  trainer: string;
  gpu: GPU;
  gpus: number;
  verdict: Verdict;
  peak: Part;
  outside: Part;
  host_bytes: number;
  stage: number;
  moments: Moment[];
  largest: number;
  notes: string[];
}

export interface Way {
  name: string;
  verdict: Verdict;
  largest_memory_fraction: number | null;
  kv_bytes: number | null;
  binding: string;
  phases: Moment[];
  highest: number;
}

export interface StepPlan {
  total_bytes: number;
  host_bytes: number;
  components: Part[];
  ways: Way[];
  notes: string[];
}

export interface Solved {
  question: string;
  answers: { setup: string; value: number | null; binding: string }[];
}
