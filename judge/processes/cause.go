package processes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/host/gpu/gpudriver"
)

// minCauseShare is the least share of a process's growth that a cause accounts for.
const minCauseShare = 0.5

// Cause returns the finding of a trace that knows more of a process's growth than the
// calls behind it: what is kept there, and what ends that. The pid is 0 for any process.
// It is nil where no finding does.
func Cause(found []finding.Finding, pid int) *finding.Finding {
	f := Leading(found, pid)
	if f == nil || !kindOf(f.Kind).cause && !ofKnownLibrary(f) {
		return nil
	}
	return f
}

// Leading returns the finding of a trace that accounts for most of a process's growth; nil
// where none does. The pid is 0 for any process.
func Leading(found []finding.Finding, pid int) *finding.Finding {
	for i := range found {
		f := &found[i]
		var resident, growth int64
		switch e := f.Evidence.(type) {
		case *finding.CallGrowthEvidence:
			resident, growth = e.ResidentBytes, e.RSSGrowthBytes
		case *finding.SampledGrowthEvidence:
			resident, growth = e.GrownBytes, e.RSSGrowthBytes
		}
		of := PIDOf(f.Process)
		if f.Severity != finding.Info && resident > 0 && float64(resident) >= minCauseShare*float64(growth) && (of == pid || of == 0 || pid == 0) {
			return f
		}
	}
	return nil
}

// ofKnownLibrary reports whether a library that is known to leak made some mappings: no
// other advice on mappings is a setting.
func ofKnownLibrary(f *finding.Finding) bool {
	return f.Kind == finding.MmapLeak && slices.ContainsFunc(f.Remedies, func(r finding.Remedy) bool { return r.Setting != "" })
}

// OneCause returns the findings on the driver and on the host, of which those of one cause are
// one: a graph that is kept holds memory of both, and both are requested at the line that makes it.
func OneCause(driver, host []finding.Finding) []finding.Finding {
	driver = slices.DeleteFunc(slices.Clone(driver), func(d finding.Finding) bool {
		e, ok := d.Evidence.(*finding.DriverLeakEvidence)
		if !ok || e.Owner != gpudriver.OwnerPyTorch || d.Site == nil {
			return false
		}
		for i := range host {
			h := &host[i]
			if h.Kind == finding.AutogradGraph && h.Severity == finding.Problem && h.Site != nil && *h.Site == *d.Site && PIDOf(h.Process) == PIDOf(d.Process) {
				h.Detail = append(h.Detail, "it also keeps memory of a device: "+d.Title)
				return true
			}
		}
		return false
	})
	return append(driver, host...)
}

// withThreads joins the growth of heaps that comes with threads that stay with that of their
// stacks: the objects of a thread, and Python's stack of it, take some KiB each.
func withThreads(found []finding.Finding) []finding.Finding {
	const minThreads, ofThread = 64, 32 << 10
	i := slices.IndexFunc(found, func(f finding.Finding) bool {
		return f.Kind == finding.ThreadStacks && f.Severity == finding.Problem && *f.Count >= minThreads
	})
	if i < 0 {
		return found
	}
	threads := found[i]
	found = slices.DeleteFunc(found, func(f finding.Finding) bool {
		with := (f.Kind == finding.HeapLeak || f.Kind == finding.PythonObjects) && f.Process == threads.Process && *f.Bytes <= ofThread**threads.Count
		if with {
			threads.Detail = append(threads.Detail, "each thread also has its own objects: "+cmp.Or(f.Brief.Title, f.Title))
		}
		return with
	})
	found[slices.IndexFunc(found, func(f finding.Finding) bool { return f.Kind == finding.ThreadStacks })] = threads
	return found
}

// PIDOf is the process that a name begins with, such as "pid 7 (python)"; 0 for none.
func PIDOf(name string) (pid int) {
	if _, err := fmt.Sscanf(strings.Replace(name, "pid ", "pid", 1), "pid%d", &pid); err != nil {
		return 0
	}
	return pid
}

// Traced begins the detail that a trace adds to a finding.
const Traced = "traced: "

// Attribute gives a finding that memory of the host leaks its cause: what is kept, where,
// and what ends that.
func Attribute(f, cause *finding.Finding) {
	g := &hostGrowth{uses: []*ledger.Use{{}}}
	if cause.Count != nil {
		g.count = *cause.Count
	}
	what := kindOf(cause.Kind).title(g)
	if ofKnownLibrary(cause) && len(cause.Detail) > 0 {
		what = cause.Detail[0]
	}
	f.Kind, f.Site, f.Stack, f.Sites = cause.Kind, cause.Site, cause.Stack, cause.Sites
	f.Detail = append(f.Detail, Traced+what)
	f.Brief.Title = f.Title + ": " + what
	f.Remedies = slices.DeleteFunc(slices.Clone(cause.Remedies), tooEarly)
}
