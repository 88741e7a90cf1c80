// What the planner answers: the form, and the JSON of `strandline plan` (docs/json.md).

import type * as api from "./api.ts";

export type Mode = "serve" | "train" | "rl";
export type Form = Omit<api.PlanForm, "modes"> & { modes: Record<Mode, Field[]> };
export type Pair = [number, number];
export type Verdict = api.Plan["verdict"];
export type {
  FormField as Field, Plan as ServePlan, PlanGPU as GPU, PlannedModel as Model, PlannedMoment as Moment, PlannedPart as Part, PlannedWay as Way,
  RLPlan as StepPlan, Solved, TrainPlan,
} from "./api.ts";
type Field = api.FormField;
