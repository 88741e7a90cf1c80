// The terms of the pages of recordings: memory of processes on the host.

import { terms } from "./terms.ts";

const host: Record<string, string> = {
  resident: "pages that are in memory: anonymous, file and shared",
  anonymous: "resident pages without a file: heaps, stacks, anonymous mappings",
  file: "resident pages of files: programs, libraries, mapped data; the kernel can drop them",
  shared: "resident pages that processes share: /dev/shm, memfd, shared mappings",
};

/** The terms of the page of a trace. */
export const traceTerms: Record<string, string> = {
  ...host,
  "mapped since": "mapped since the trace began and not unmapped, resident or not",
  explained: "the share of the growth that the calls seen make up",
  "in older memory": "growth of what was mapped before the trace began",
  "stack unknown": "growth by calls of which no stack was captured",
  "came and went": "mapped and unmapped again at once, and only counted",
  pieces: "mappings, or parts of them, that are still there",
};

/** The terms of the page of a watch. */
export const watchTerms: Record<string, string> = {
  ...host,
  allocated: terms.allocated!,
  cached: "reserved by PyTorch's allocator, and not allocated",
  other: "the driver's count without allocated and cached: context, NCCL, other libraries",
  limit: "where the control group, the machine or the device is full",
};
