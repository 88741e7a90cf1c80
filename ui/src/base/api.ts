// Made from the structs of face/api by go test ./face/api -update; do not edit.

export interface Session {
  version: number;
  title: string;
  files: File[];
  skipped: Skipped[];
  order: number[];
  findings: "waiting" | "working" | "ready";
  job?: boolean;
  live?: boolean;
  replaced?: boolean;
}

export interface Device {
  device: number;
  events: number;
  measures_why: string | null;
  groupings: string[];
  start: Sums;
  end: Sums;
  peak: Moment;
  peak_reserved: Moment;
  kept: number;
  coverage: Coverage;
  time: Time | null;
  time_why: string | null;
  marks: Mark[];
  scopes: Scope[];
  torch_version: string;
  settings: string | null;
  most_events: number | null;
  capacity?: number;
  held?: Held;
}

export interface Bands {
  kept: number;
  groups: Group[];
  bands: Band[];
  lanes: Lane[];
  lanes_left_out: number;
}

export interface At extends Table {
  live: number;
}

export interface Diff extends Table {
  a: number;
  b: number;
}

export interface Hit {
  alloc: number | null;
}

export interface Alloc extends Notes {
  alloc: number;
  bytes: number;
  block: number | null;
  address: string;
  birth: number;
  freed: number | null;
  death: number | null;
  born_us: number | null;
  died_us: number | null;
  stream: number | null;
  pool: string | null;
  purpose: string;
  fate: "kept" | "freed" | "pending";
  keys: Record<string, string>;
  missing?: string;
  stack: Frame[] | null;
  free_stack: Frame[] | null;
}

export interface Event extends Notes {
  event: number;
  action: string | null;
  bytes: number | null;
  address: string | null;
  time_us: number | null;
  place: number | null;
  live: number;
  requested: number;
  reserved: number;
  stack?: Frame[];
  missing?: string;
}

export interface Flame {
  bytes: number;
  count: number;
  frames: Frame[];
  nodes: Nodes;
  left_out: number;
}

export interface State {
  event: number;
  exact: boolean;
  notes: string[];
  reserved: number;
  allocated: number;
  pending: number;
  slack: number;
  free: number;
  releasable: number;
  stranded: number;
  segments: Segment[];
  stacks: Frame[][];
  blocks: Blocks;
  strands?: Strand[];
  takers: Taker[];
  changed: Changed | null;
}

export interface Findings {
  card: Card;
  findings: Finding[];
}

export interface Comparison {
  groups: Process[];
}

export interface Replay {
  events: number;
  settings: string;
  exact: boolean;
  lost: boolean;
  first_difference: string | null;
  driver_calls: Reproduced;
  segments: Reproduced;
  capacity: number | null;
  assumed: string[];
  try: string[];
}

export interface Outcome {
  settings: string;
  notes: string[];
  capacity_bytes: number | null;
  peak_reserved_bytes: number;
  peak_stranded_bytes: number;
  oom: Refused | null;
  driver_calls: number;
  driver_ms_estimate: number;
}

export interface Fits {
  smallest_capacity_bytes: number | null;
}

export interface Reclaim {
  policy: string | null;
  text: string;
  notes: string[];
}

export interface Recording {
  file: string;
  pid: number;
  name: string;
  rung: string;
  began_us: number;
  moments: number;
  partial: string | null;
  judged_seconds: number | null;
  card: Card;
  summary: Summary;
  findings: RecordedFinding[];
  findings_left_out: number;
  stacks: Stack[];
  others: number;
  owners: Owner[];
  gpu: GPUStack[];
}

export interface Window {
  from: number;
  to: number;
  moment: number[];
  seconds: number[];
  rss_bytes: number[];
  anonymous_bytes: number[];
  file_bytes: number[];
  shared_bytes: number[];
  drops: number[];
  live_bytes: number[];
  stacks: Course[];
  owners: Course[];
}

export interface Watch {
  file: string;
  version: number;
  reading: boolean;
  following: boolean;
  began_us: number;
  seconds: number;
  samples: number;
  partial: string | null;
  card: Card;
  findings: WatchFinding[];
  findings_left_out: number;
  subjects: Subject[];
  subjects_left_out: number;
  load: WatchLoad | null;
}

export interface Levels {
  key: string;
  parts: LevelPart[];
  from: number[];
  to: number[];
  at: number[];
  samples: number[];
  max_bytes: number[];
  min_bytes: number[];
  last_bytes: number[];
  bytes: ((number | null)[])[];
}

export interface Wall {
  rows: WallRow[];
  by_step: boolean;
}

export interface Lines {
  from: number;
  lines: string[];
}

export interface Job {
  word: string;
  title: string;
  first: JobFirst;
  cause: string;
  followers: number;
  missing: number[];
  attempts: number;
  why: string;
  text?: string;
  line?: number;
  quote?: string;
  site?: string;
  fix?: string;
  again?: string;
  failed: boolean;
  ranks: JobRank[];
}

export interface File {
  f: number;
  name: string;
  path: string;
  fingerprint?: string;
  process: string | null;
  state: "waiting" | "reading" | "pairing" | "totals" | "ready" | "judged" | "failed";
  read: number;
  size: number | null;
  events: number | null;
  partial: string | null;
  error: string | null;
  devices: number[];
  main: number | null;
  peak: number | null;
  blocks: "waiting" | "working" | "ready" | "unknown";
}

export interface Skipped {
  path: string;
  why: string;
}

export interface Sums {
  live: number;
  requested: number;
  reserved: number;
}

export interface Moment {
  event: number;
  bytes: number;
}

export interface Coverage {
  kind: "exact" | "ring" | "late" | "damaged" | "state";
  text: string;
}

export interface Time {
  start_us: number;
  end_us: number;
  span: number;
  folds: TileFold[];
}

export interface Mark {
  event: number;
  kind: "oom" | "snapshot" | "release";
  label: string;
}

export interface Scope {
  name: string;
  lane: "steps" | "notes";
  from: number;
  to: number;
  open: boolean;
}

export interface Held {
  events: number[];
  next: Record<string, number[]>;
  levels: Record<string, number>;
  near: Stretch[];
  alone: string[];
  text: string;
}

export interface Group {
  key: string;
  label: string;
  file?: string;
  line?: number;
  function?: string;
  slot: number;
  peak: Moment;
  kept: number;
  allocations: number;
}

export interface Band {
  group: number;
  fate: "kept" | "freed" | "pending";
}

export interface Lane {
  group: number;
  from: number;
  to: number;
  points: number[];
}

export interface Table {
  rows: Row[];
  more: More;
}

export interface Notes {
  user_metadata?: string;
  compile_context?: string;
}

export interface Frame extends StackFrame {
  origin: "own" | "torch" | "library" | "generated" | "native";
}

export interface Nodes {
  frame: number[];
  parent: number[];
  bytes: number[];
  count: number[];
  net?: number[];
}

export interface Segment {
  address: string;
  size: number;
  pool: string;
  private: boolean;
  stream: number;
  type: string;
  expandable: boolean;
  first: number;
  blocks: number;
  ranges: ([number, number])[];
  stranded: number;
  stack: number;
  missing?: string;
}

export interface Blocks {
  offset: number[];
  size: number[];
  requested: number[];
  state: string;
  alloc: number[];
  group?: number[];
}

export interface Strand {
  key: string;
  group: number;
  count: number;
  bytes: number;
}

export interface Taker {
  site: StackFrame | null;
  missing?: string;
  bytes: number;
  count: number;
}

export interface Changed {
  address: string;
  size: number;
}

export interface Card {
  word: string;
  title: string;
  line?: string;
  course?: string;
  sure?: string;
  fact?: string;
  note?: string;
  via?: string;
  fix?: string;
  paste?: string[];
  effect?: string;
  why?: string;
  next?: string;
}

export interface Finding extends FindingFinding {
  card: Card;
  origins: ("own" | "torch" | "library" | "generated" | "native")[];
  where: Where | null;
}

export interface Process {
  process: string | null;
  files: ProcessFile[];
  survivors: Survivors[];
  sites: Site[];
}

export interface Reproduced {
  recorded: number;
  reproduced: number;
}

export interface Refused {
  event: number;
  bytes: number;
  reserved_bytes: number;
  active_bytes: number;
  site: Frame | null;
}

export interface Summary {
  rss_bytes: number;
  rss_growth_bytes: number;
  growth: RecordingGrowth;
  explained_share: number | null;
  drops: number;
  stack_drops: number;
  paired: number;
  paired_bytes: number;
  gpu?: Devices;
}

export interface RecordedFinding extends FindingFinding {
  card: Card;
  origins: ("own" | "torch" | "library" | "generated" | "native")[];
  stacks: number[];
}

export interface Stack {
  id: number;
  key: string;
  label: string;
  slot: number;
  call: string;
  complete: boolean;
  grows: boolean;
  peak_bytes: number;
  first_seconds: number | null;
  last_seconds: number | null;
  resident_bytes: number | null;
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
  trend: number[];
}

export interface Course {
  at: number[];
  bytes: number[];
  count: number[];
}

export interface WatchFinding extends FindingFinding {
  card: Card;
  origins: ("own" | "torch" | "library" | "generated" | "native")[];
  subject: string | null;
  parts: string[];
  fit: Fit | null;
}

export interface Subject {
  key: string;
  kind: "process" | "container" | "device";
  label: string;
  place: string;
  facts: ([string, string])[];
  first: number;
  last: number;
  ended: boolean;
  now_bytes: number;
  peak_bytes: number;
  split: SplitPart[];
  mappings: string | null;
  limit_bytes: number | null;
  severity: "problem" | "warning" | "info" | null;
  verdict: string;
  left: string;
  judged: FindingLevelsEvidence | null;
  fit: Fit | null;
  judged_parts: string[];
}

export interface WatchLoad {
  engine: string;
  key: string;
  note: string;
}

export interface LevelPart {
  name: string;
  beside: boolean;
}

export interface WallRow {
  f: number;
  d: number | null;
  peak: number;
  end: number;
  course: number[];
  finding: number | null;
}

export interface JobFirst {
  rank: number | null;
}

export interface JobRank {
  rank: number;
  node?: string;
  role: string;
  end?: string;
  seconds: number | null;
  step: number | null;
  peak_bytes?: number;
  text?: string;
  line?: number;
  quote?: string;
}

export interface TileFold {
  at: number;
  us: number;
}

export interface Stretch {
  level: number;
  from: number;
  to: number;
}

export interface Row {
  key: string;
  group: number;
  bytes: number;
  count: number;
  kept: number;
  freed: number;
  pending: number;
  a?: number;
  b?: number;
}

export interface More {
  groups: number;
  bytes: number;
  count: number;
}

export interface StackFrame {
  file: string;
  line: number;
  function: string;
}

export interface FindingFinding {
  kind: string;
  severity: "problem" | "warning" | "info";
  confidence: number;
  title: string;
  detail?: string[];
  basis?: string;
  device: number | null;
  process?: string;
  site: FindingSite | null;
  stack?: FindingSite[];
  bytes?: number;
  bytes_per_step?: number;
  sites?: FindingPlace[];
  trend?: number[];
  evidence?: Record<string, unknown>;
  remedies?: FindingRemedy[];
}

export interface Where {
  f: number;
  d: number | null;
  g: string;
  keys: string[];
  event: number | null;
  places: string[];
}

export interface ProcessFile {
  f: number;
}

export interface Survivors {
  device: number;
  bytes: number[][];
  event: ((number | null)[])[];
}

export interface Site {
  key: string;
  file: string | null;
  line: number | null;
  function: string | null;
  missing?: string;
  bytes: number[];
  count: number[];
  survivors: number;
  bytes_per_step: number;
}

export interface RecordingGrowth {
  older_bytes: number;
  unnamed_bytes: number;
}

export interface Devices {
  libraries: string[];
  devices: RecordingGPUDevice[];
}

export interface Fit {
  until: number;
  seconds: number[];
  level_bytes: number[];
  low_bytes: number[];
  high_bytes: number[];
}

export interface SplitPart {
  name: string;
  bytes: number;
}

export interface FindingLevelsEvidence {
  level_bounds_bytes: [number, number] | null;
  level_bytes: number | null;
  limit_bytes?: number;
  seconds: number | null;
  seconds_to_limit?: [number | null, number | null];
  verdict: string;
}

export interface FindingSite {
  file: string;
  line: number;
  function: string;
}

export interface FindingPlace extends FindingSite {
  bytes: number;
  count: number;
}

export interface FindingRemedy {
  text: string;
  detail?: string;
  setting?: string;
}

export interface RecordingGPUDevice {
  names: string[];
  at_seconds: number;
  used_bytes: number | null;
  total_bytes: number | null;
  parts: RecordingGPUPart[];
  notes: string[];
}

export interface RecordingGPUPart {
  part: string;
  owner?: string;
  bytes: number;
  allocated_bytes?: number;
  since_bytes?: number;
  count?: number;
}
