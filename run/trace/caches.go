package trace

import (
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/judge/processes"
	"strandline/judge/samples"
	"strandline/plan/engine"
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
		args, environ := procfs.Process(p.PID).Args(), map[string]string{}
		if args[0] == "" { // it has ended
			args = strings.Fields(p.Command)
		} else if all, err := procfs.Process(p.PID).Environ(); err == nil {
			environ = all
		}
		cache := engine.PromptCache(args, func(name string) string { return environ[name] })
		if text := samples.CacheDoubt(&sample.Process{Name: p.Name, Command: p.Command, PromptCache: cache}, *f.Bytes); text != "" {
			processes.Doubt(f, text, w.sums)
		}
	}
}
