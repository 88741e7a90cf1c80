// What the engine answers about a recording of `strandline trace`, as types.

export type {
  Course, GPUStack, Owner, Recording, RecordingGPUDevice as Device, RecordingGrowth as Growth, Stack, Window,
} from "../base/api.ts";
