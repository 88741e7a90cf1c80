package check

import (
	"slices"
	"testing"

	"strandline/finding"
	"strandline/judge/gate"
)

// TestOneCause joins the growth of main memory with what is kept there, and with the growth of a
// device by the same graph.
func TestOneCause(t *testing.T) {
	device := 0
	held := &finding.LeakEvidence{HeldBy: []finding.HeldBy{{Kind: "autograd", Path: "total in main()"}}}
	site := &finding.Site{File: "a.py", Line: 7}
	host := finding.Finding{Kind: finding.ArenaRetention, Severity: finding.Problem, Process: "all processes", Title: "host memory grows", Detail: []string{"traced: kept by malloc"},
		Evidence: &finding.StepGrowthEvidence{Metric: gate.Host}}
	kept := finding.Finding{Kind: finding.AutogradGraph, Severity: finding.Problem, Process: "pid7", Site: site, Detail: []string{"total ends a chain"}, Evidence: held}
	out := oneCause([]finding.Finding{kept, host})
	if len(out) != 1 || out[0].Kind != finding.AutogradGraph || out[0].Site != site || !slices.Equal(out[0].Detail, kept.Detail) || out[0].Title != host.Title {
		t.Errorf("%+v", out)
	}
	host.Kind, host.Process, host.Detail = finding.AutogradGraph, "pid7", nil
	kept.Device = &device
	if out := oneCause([]finding.Finding{kept, host}); len(out) != 1 || out[0].Device == nil || len(out[0].Detail) != 2 {
		t.Errorf("on a device: %+v", out)
	}
	host.Process, kept.Kind, kept.Device, kept.Bytes, kept.BytesPerStep = "pid7", finding.Leak, nil, finding.Int(14<<20), finding.Int(128<<10)
	host.Trend, host.BytesPerStep = []int64{230 << 20, 270 << 20}, finding.Int(142<<10)
	if out := oneCause([]finding.Finding{kept, host}); len(out) != 1 {
		t.Errorf("as much a step, looked at before the end: %+v", out)
	}
	host.Process, kept.Kind, kept.Device = "pid8", finding.AutogradGraph, &device
	if out := oneCause([]finding.Finding{kept, host}); len(out) != 2 {
		t.Errorf("of two processes: %+v", out)
	}

	// Each process of a job keeps tensors of its device, which take some main memory.
	leak := func(pid string, grew int64) []finding.Finding {
		return []finding.Finding{
			{Kind: finding.Leak, Severity: finding.Warning, Process: pid, Device: &device, Site: site, Count: finding.Int(1000), Evidence: &finding.LeakEvidence{}},
			{Kind: finding.Leak, Severity: finding.Problem, Process: pid, Trend: []int64{0, grew}, Evidence: &finding.StepGrowthEvidence{Metric: gate.Host}},
		}
	}
	out = oneCause(append(leak("pid7", 8<<20), leak("pid8", 8<<20)...))
	if len(out) != 2 || out[0].Device == nil || out[1].Device == nil || out[0].Severity != finding.Problem || len(out[0].Detail) != 1 {
		t.Errorf("of the tensors on a device: %+v", out)
	}
	if out := oneCause(leak("pid7", 1<<30)); len(out) != 2 {
		t.Errorf("more than tensors of a device take: %+v", out)
	}
	other := leak("pid7", 8<<20)
	other[1].Site = &finding.Site{File: "a.py", Line: 9}
	if out := oneCause(other); len(out) != 2 {
		t.Errorf("at another line: %+v", out)
	}
	traced := leak("pid7", 1<<30)
	traced[1].Kind = finding.AutogradGraph
	if out := oneCause(traced); len(out) != 1 || out[0].Kind != finding.AutogradGraph || out[0].Site != site {
		t.Errorf("a graph that the trace found: %+v", out)
	}

	// The levels of a device at its steps show what its snapshots name.
	levels := func(d int, grew int64) []finding.Finding {
		return []finding.Finding{
			{Kind: finding.AutogradGraph, Severity: finding.Problem, Process: "pid7", Device: &device, Bytes: finding.Int(80 << 20), Evidence: held},
			{Kind: finding.Leak, Severity: finding.Problem, Process: "pid7", Device: &d, Trend: []int64{0, grew}, Evidence: &finding.StepGrowthEvidence{Metric: gate.Device}},
		}
	}
	if out := oneCause(levels(0, 150<<20)); len(out) != 1 || len(out[0].Detail) != 1 {
		t.Errorf("levels of a device: %+v", out)
	}
	if out := oneCause(levels(1, 150<<20)); len(out) != 2 {
		t.Errorf("levels of another device: %+v", out)
	}
	if out := oneCause(levels(0, 1<<30)); len(out) != 2 {
		t.Errorf("a small part of the growth: %+v", out)
	}
}

// TestKeptAtFewLooks joins the growth of a process with the tensors that take as much a step.
func TestKeptAtFewLooks(t *testing.T) {
	site := &finding.Site{File: "a.py", Line: 7}
	for per, want := range map[int64]bool{900: true, 1200: true, 300: false, 3000: false} {
		kept := finding.Finding{Kind: finding.Leak, Severity: finding.Problem, Process: "pid7", Site: site, BytesPerStep: &per,
			Evidence: &finding.LeakEvidence{HeldBy: []finding.HeldBy{{Kind: "python", Path: "kept[...]"}}}}
		host := leaking()
		host.Process = "pid7"
		out := []finding.Finding{*host}
		out = oneCause(append(out, (&judging{}).kept(out, []finding.Finding{kept})...))
		if len(out) != 1 || (out[0].Site == site) != want {
			t.Errorf("%d bytes a step: %+v", per, out)
		}
	}
}
