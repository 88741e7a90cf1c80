// Made from the structs of face/api by go test ./face/api -update; do not edit.

export interface PlanForm {
  given: string;
  modes: Record<string, FormField[]>;
}

export interface Plan {
  model: PlannedModel;
  engine: string;
  gpu: PlanGPU;
  parallel: PlannedParallel;
  memory_fraction: number;
  verdict: "fits" | "may fit" | "does not fit" | "does not run";
  binding: string;
  components: PlannedPart[];
  kv: PlannedKV;
  flags: string[];
  notes: string[];
  latency?: PlannedLatency;
  formats?: PlannedFormat[];
  host?: PlannedPart[];
  offload?: PlannedOffload;
  load?: PlannedLoad;
  images?: PlannedImages;
}

export interface TrainPlan {
  model: PlannedModel;
  trainer: string;
  gpu: PlanGPU;
  gpus: number;
  verdict: "fits" | "may fit" | "does not fit" | "does not run";
  peak: PlannedPart;
  outside: PlannedPart;
  host_bytes: number;
  moments: PlannedMoment[];
  largest: number;
  notes: string[];
}

export interface RLPlan {
  total_bytes: number;
  host_bytes: number;
  components: PlannedPart[];
  ways: PlannedWay[];
  notes: string[];
}

export interface Solved {
  question: string;
  answers: SolvedAnswer[];
}

export interface FormField {
  name: string;
  help: string;
  kind: "bool" | "int64" | "float64" | "string";
  default: string;
  choices: string[];
}

export interface PlannedModel {
  name: string;
  parameters: number;
  active_parameters: number;
  layers: number;
  format: string;
  checkpoint_bytes: number;
  context_tokens: number | null;
}

export interface PlanGPU {
  name: string;
  total_bytes: number;
}

export interface PlannedParallel {
  gpus: number;
  tp: number;
  pp: number;
  ep: number;
  dp: number;
  nodes: number | null;
}

export interface PlannedPart {
  name: string;
  low_bytes: number;
  high_bytes: number;
  source?: string;
}

export interface PlannedKV {
  bytes_per_token: number;
  window_bytes_per_token: number;
  window_tokens: number;
  state_bytes: number;
  block_tokens: number;
  tokens: [number, number];
  length_tokens: number;
  requests: [number, number];
  longest_tokens: [number, number];
}

export interface PlannedLatency {
  prompt_tokens: number;
  batch: number;
  first_token_us: [number, number];
  token_us: [number, number];
  bound: string;
  assumed: string;
}

export interface PlannedFormat {
  format: string;
  weights_bytes: number;
  tokens: [number, number];
  verdict: "fits" | "may fit" | "does not fit" | "does not run";
}

export interface PlannedOffload {
  gpu_layers: number;
  layers: number;
  host_expert_layers: number;
}

export interface PlannedLoad {
  requests: number;
  kv_bytes: number;
  at_once: [number, number];
  answer_us: [number, number] | null;
}

export interface PlannedImages {
  request_tokens: number;
  kv_bytes: number;
  encoded_at_once: number;
  encoder_low_bytes: number;
  encoder_high_bytes: number;
}

export interface PlannedMoment {
  name: string;
  low_bytes: number;
  high_bytes: number;
  components: PlannedPart[];
}

export interface PlannedWay {
  name: string;
  verdict: "fits" | "may fit" | "does not fit" | "does not run";
  largest_memory_fraction: number | null;
  kv_bytes: number | null;
  binding: string;
  phases: PlannedMoment[];
  highest: number;
}

export interface SolvedAnswer {
  setup: string;
  value: number | null;
  binding: string;
}
