// Package judge has no code of its own. The packages below it turn analysis into findings,
// one for each kind of input:
//
//   - judge/snapshots: snapshots (strandline diagnose): a leak and its sentence, fragmentation
//   - judge/processes: what a traced process did (trace)
//   - judge/samples: samples of running processes (watch, and diagnose of its recordings)
//   - judge/gate: whether growth is enough to fail a build (check) or a server (soak)
//   - judge/texts: pasted text: PyTorch's message, a kill by Slurm or the kernel (diagnose)
//   - judge/tables: files of other tools (diagnose)
//   - judge/jobs: the texts of a job's ranks together: which fell first, and why (diagnose DIR)
//   - judge/diagnosis: all that package input opened, by the packages above: one verdict
//   - judge/verdict: the bounds, the order and the verdict of judge/snapshots and judge/texts
//   - judge/shortage: what failed requests have in common, for judge/snapshots and judge/texts
//   - judge/pauses, judge/handovers: pausable memory (mem, watch; plan rl --check)
//
// Whether something grows is decided in one place for all of them, trend.
package judge
