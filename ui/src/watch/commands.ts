// The commands in a remedy, ready to paste.

import type { WatchFinding } from "../base/api.ts";

/** What a remedy names between backquotes. */
export const commandsOf = (f: WatchFinding): string[] => [...new Set((f.remedies ?? []).flatMap((r) => [...r.text.matchAll(/`([^`]+)`/g)].map((m) => m[1]!)).concat((f.remedies ?? []).flatMap((r) => r.setting ?? [])))];
