package trace

import (
	"slices"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/levels"
	"strandline/judge/processes"
	"strandline/judge/samples"
)

// doubtCaches doubts growth of the heap of a program that is known to fill a cache up to a bound, such
// as llama.cpp's server with prompts, where it is within the bound.
func (w *Session) doubtCaches(found []finding.Finding) {
	for i := range found {
		f := &found[i]
		of := slices.IndexFunc(w.sums.Processes, func(p ledger.Process) bool { return int(p.PID) == processes.PIDOf(f.Process) })
		if f.Kind != finding.HeapLeak || f.Severity != finding.Problem || of < 0 {
			continue
		}
		p := &w.sums.Processes[of]
		if text := samples.CacheDoubt(levels.CachesOf(procfs.Process(p.PID), p.Command), *f.Bytes); text != "" {
			processes.Doubt(f, text, w.sums)
		}
	}
}
