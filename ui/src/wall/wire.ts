import type { Finding } from "../base/api.ts";

export type FindingSeverity = Finding["severity"];
