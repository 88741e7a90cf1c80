// Package host has no code of its own. The packages below it are about what a process shows
// to others, from the source of an event to the sums that judge/processes judges:
//
//   - sources: bpf, ptrace and polling (system calls), procfs, elffile, nvml, nvsmi, engine
//   - models: event, sample, vmmap, recording, series; journal is the form of the files
//   - analysis: ledger (what is mapped, by stack), gpudriver (the same for a GPU's driver),
//     unwind, symbolize, cpython and pyframes (stacks), glibcheap, cudaalloc and autograd
//     (what is inside), footprint and gpuaccount (which class memory belongs to), hooks
//     (who replaced a function), sampler (all processes, again and again)
package host
