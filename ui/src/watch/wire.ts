// What the engine answers about a recording of `strandline watch`, as types.

export type { Fit, LevelPart, Levels, Subject, Watch, WatchFinding } from "../base/api.ts";
