package processes

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/gpu/gpudriver"
)

// TestCause checks which findings of a trace know the cause of a leak, and what a finding
// of a gate takes from them.
func TestCause(t *testing.T) {
	grew := func(kind finding.Kind, resident, of int64, remedies ...finding.Remedy) finding.Finding {
		return finding.Finding{
			Kind: kind, Severity: finding.Warning, Process: "pid 7 (python)", Count: finding.Int(3), Site: &finding.Site{File: "a.py", Line: 2},
			Detail: []string{"UCX keeps a record of each munmap"}, Remedies: remedies, Evidence: &finding.CallGrowthEvidence{ResidentBytes: resident, RSSGrowthBytes: of},
		}
	}
	const setting = "UCX_MEM_MMAP_HOOK_MODE=none"
	hook := finding.SettingChange(setting, "turn its hooks off")
	done := grew(finding.AutogradGraph, 8, 10)
	done.Severity = finding.Info
	for _, c := range []struct {
		name  string
		found []finding.Finding
		pid   int
		want  string // in the brief title; empty for no cause
	}{
		{"a graph", []finding.Finding{grew(finding.HeapLeak, 1, 10), grew(finding.AutogradGraph, 8, 10)}, 7, "autograd's graph"},
		{"a library", []finding.Finding{grew(finding.MmapLeak, 8, 10, traceLonger, hook)}, 7, "UCX keeps"},
		{"threads", []finding.Finding{grew(finding.ThreadStacks, 8, 10)}, 0, "the stacks of 3 threads"},
		{"arenas, seen from outside", []finding.Finding{{
			Kind: finding.ArenaRetention, Severity: finding.Problem, Process: "pid 7",
			Evidence: &finding.SampledGrowthEvidence{GrownBytes: 7, RSSGrowthBytes: 10},
		}}, 7, "kept by malloc after the program freed it"},
		{"mappings of the program", []finding.Finding{grew(finding.MmapLeak, 8, 10, finding.CodeChange("unmap"))}, 7, ""},
		{"a small part", []finding.Finding{grew(finding.AutogradGraph, 2, 10)}, 7, ""},
		{"another process", []finding.Finding{grew(finding.AutogradGraph, 8, 10)}, 8, ""},
		{"what ended", []finding.Finding{done}, 7, ""},
		{"nothing", nil, 7, ""},
	} {
		f := finding.Finding{Kind: finding.Leak, Title: "host memory grows", Remedies: []finding.Remedy{finding.CodeChange("trace it")}}
		cause := Cause(c.found, c.pid)
		if (cause != nil) != (c.want != "") {
			t.Errorf("%s: %v", c.name, cause)
		}
		if cause == nil {
			continue
		}
		Attribute(&f, cause)
		if !strings.HasPrefix(f.Brief.Title, "host memory grows: ") || !strings.Contains(f.Brief.Title, c.want) || f.Kind != cause.Kind {
			t.Errorf("%s: %+v", c.name, f)
		}
		for _, r := range f.Remedies {
			if r == traceLonger {
				t.Errorf("%s: advises to trace what was traced", c.name)
			}
		}
	}
}

// TestOneCauseOfBoth joins what one line keeps on a device and on the host.
func TestOneCauseOfBoth(t *testing.T) {
	at := func(line int64) *finding.Site { return &finding.Site{File: "a.py", Line: line} }
	driver := func(owner string, line int64) []finding.Finding {
		return []finding.Finding{{Kind: finding.DriverLeak, Process: "pid 7", Title: "it took 42 MiB", Site: at(line), Evidence: &finding.DriverLeakEvidence{Owner: owner}}}
	}
	graph := func() []finding.Finding {
		return []finding.Finding{{Kind: finding.AutogradGraph, Severity: finding.Problem, Process: "pid 7", Site: at(7)}}
	}
	if out := OneCause(driver(gpudriver.OwnerPyTorch, 7), graph()); len(out) != 1 || len(out[0].Detail) != 1 {
		t.Errorf("%+v", out)
	}
	for owner, line := range map[string]int64{gpudriver.OwnerPyTorch: 8, "NCCL": 7} {
		if out := OneCause(driver(owner, line), graph()); len(out) != 2 {
			t.Errorf("%s at line %d: %+v", owner, line, out)
		}
	}
}

// TestWithThreads joins what comes with each thread.
func TestWithThreads(t *testing.T) {
	of := func(kind finding.Kind, count, bytes int64) finding.Finding {
		return finding.Finding{Kind: kind, Severity: finding.Problem, Process: "pid 7", Count: &count, Bytes: &bytes}
	}
	for bytes, want := range map[int64]int{12 << 20: 1, 60 << 20: 2} {
		out := withThreads([]finding.Finding{of(finding.PythonObjects, 887, bytes), of(finding.ThreadStacks, 842, 7<<20)})
		if len(out) != want || want == 1 && (out[0].Kind != finding.ThreadStacks || len(out[0].Detail) != 1) {
			t.Errorf("%d bytes: %+v", bytes, out)
		}
	}
	for _, other := range []finding.Finding{of(finding.MmapLeak, 842, 1<<20), of(finding.Pinned, 842, 1<<20)} {
		if out := withThreads([]finding.Finding{other, of(finding.ThreadStacks, 842, 7<<20)}); len(out) != 2 {
			t.Errorf("%+v", out)
		}
	}
	if out := withThreads([]finding.Finding{of(finding.PythonObjects, 8, 1<<10), of(finding.ThreadStacks, 8, 1<<20)}); len(out) != 2 {
		t.Errorf("of few threads: %+v", out)
	}
}
