// Findings as the engine gives them.

import type * as api from "../base/api.ts";

export type Finding = api.Finding;
export type FindingPlace = api.FindingPlace;
export type FindingSite = api.FindingSite;

/** A finding, of a session or of a recording. */
export type Judgment = Omit<Finding, "where">;
