// Package judge has no code of its own. The packages below it turn analysis into findings,
// one for each kind of input:
//
//   - judge/torch: snapshots (strandline diagnose)
//   - judge/host: what a traced process did (trace)
//   - judge/watch: samples of running processes (watch, and diagnose of its recordings)
//   - judge/gate: whether growth is enough to fail a build (check) or a server (soak)
//   - judge/logs, judge/profiles: pasted text, files of other tools (diagnose)
//   - judge/shortage: what failed requests have in common, for judge/torch and judge/logs
//   - judge/pauses, judge/handovers: pausable memory (mem, watch; plan rl --check)
//
// Whether something grows is decided in one place for all of them, judge/trend.
package judge
