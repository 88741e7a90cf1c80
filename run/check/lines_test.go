package check

import (
	"strings"
	"testing"

	"strandline/face/report"
	"strandline/finding"
	"strandline/host/sampling/levels"
	"strandline/host/store/recording"
	"strandline/judge/gate"
	"strandline/judge/processes"
	"strandline/record"
)

// leaking is a finding of a process that leaks 1,000 bytes a step.
func leaking() *finding.Finding {
	return &finding.Finding{
		Severity: finding.Problem, Process: "pid7 (train.py)", BytesPerStep: finding.Int(1000),
		Evidence: &finding.StepGrowthEvidence{Metric: gate.Host, Unit: gate.Step},
	}
}

// line is what a line of a file kept in ten steps, below a function of Python's own
// library.
func line(n, bytes int64) record.GrowingLine {
	return record.GrowingLine{Bytes: bytes, Count: 1, Frames: []record.Frame{{File: "/usr/lib/python3.12/json/decoder.py", Line: 355}, {File: "/app/train.py", Line: n}}}
}

func TestLinesByObjects(t *testing.T) {
	for _, c := range []struct {
		name  string
		pid   int
		lines []record.GrowingLine
		want  int64 // line; 0 for none
	}{
		{"one line", 7, []record.GrowingLine{line(5, 10_000)}, 5},
		{"several lines", 7, []record.GrowingLine{line(5, 6000), line(6, 4000)}, 5},
		{"two stacks of one line", 7, []record.GrowingLine{line(6, 4000), line(5, 3000), line(5, 3000)}, 5},
		{"beside a cache that replaces older objects", 7, []record.GrowingLine{line(8, 60_000), line(5, 9500)}, 5},
		{"beside a cache that replaces as much", 7, []record.GrowingLine{line(8, 7000), line(5, 9500)}, 0},
		{"as much as no line", 7, []record.GrowingLine{line(8, 60_000), line(5, 3000)}, 0},
		{"little of Python", 7, []record.GrowingLine{line(5, 1000)}, 0},
		{"another process", 8, []record.GrowingLine{line(5, 10_000)}, 0},
		{"nothing", 7, nil, 0},
	} {
		f := leaking()
		ok := byObjects(f, 7, []record.Growing{{PID: c.pid, Steps: 10, Lines: c.lines}}, nil)
		if ok != (c.want > 0) || ok && (f.Site.Line != c.want || f.Site.File != "/app/train.py" || len(f.Stack) != 2 || len(f.Detail) != 1) {
			t.Errorf("%s: %v, %+v %q", c.name, ok, f.Site, f.Detail)
		}
	}
}

// TestLinesOfWorkers names the line of processes that leak alike, of which none has most of the growth.
func TestLinesOfWorkers(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name   string
		second string // command
		grown  int64  // by it
		want   int64  // line
	}{
		{"workers", "python train.py", 90 * mib, 5},
		{"one worker beside one that is still", "python train.py", 0, 5},
		{"one that grows far more, of which no line is known", "python train.py", 200 * mib, 0},
		{"another program", "redis-server", 90 * mib, 0},
	} {
		r := &Run{Measured: Measured{levels: [][]record.StepLevel{{{PID: 1}}}}}
		r.Samples.Processes = []levels.Process{{PID: 1, Command: "python train.py"}, {PID: 7, Command: "python train.py"}, {PID: 8, Command: c.second}}
		for i := range int64(20) {
			r.Samples.Samples = append(r.Samples.Samples, levels.Sample{Bytes: map[int]int64{0: 500 * i * mib, 1: 80 * i * mib, 2: c.grown * i}})
		}
		r.growing = []record.Growing{{PID: 7, Seconds: 2, Grew: 10_000, Lines: []record.GrowingLine{line(5, 9000)}}}
		f := leaking()
		f.Process = "2 other processes"
		all := []finding.Finding{*f}
		(&judging{run: r}).lines(all)
		if site := all[0].Site; (site != nil) != (c.want > 0) || site != nil && site.Line != c.want {
			t.Errorf("%s: %+v", c.name, site)
		}
	}
}

func TestLinesByCalls(t *testing.T) {
	site := &finding.Site{File: "/app/train.c", Line: 5, Function: "load"}
	for _, c := range []struct {
		name    string
		process string
		kind    finding.Kind
		call    string
		bytes   int64 // of 1000
		want    bool
	}{
		{"mappings", "", finding.MmapLeak, "mmap", 900, true},
		{"large blocks of malloc", "pid 7 (train)", finding.HeapLeak, "mmap", 900, true},
		{"another process", "pid 8 (train)", finding.MmapLeak, "mmap", 900, false},
		{"the heap", "", finding.HeapLeak, "brk", 900, false},
		{"arenas of Python", "", finding.PythonObjects, "mmap", 900, false},
		{"a part of the growth", "", finding.MmapLeak, "mmap", 400, false},
	} {
		doc := &report.Trace{Document: recording.Document{
			Stacks: []recording.Stack{{ID: 3, Call: c.call, LiveBytes: c.bytes}},
			Findings: []finding.Finding{{
				Kind: c.kind, Severity: finding.Warning, Process: c.process, Site: site, Bytes: finding.Int(c.bytes), Count: finding.Int(1),
				Evidence: &finding.CallGrowthEvidence{ResidentBytes: c.bytes, RSSGrowthBytes: 1000, Stacks: []int{3}},
			}},
		}}
		f := leaking()
		if got := byCalls(f, doc); got != c.want || got && f.Site != site {
			t.Errorf("%s: %v, %+v", c.name, got, f)
		}
	}
}

// TestLinesNotNamed checks that a leak for which nothing names a line states so, and that
// nothing is reported of what does not leak.
func TestLinesNotNamed(t *testing.T) {
	j := judging{run: &Run{}}
	fine := leaking()
	fine.Severity = finding.Info
	all := []finding.Finding{*leaking(), *fine}
	j.lines(all)
	if len(all[0].Detail) != 1 || len(all[1].Detail) != 0 {
		t.Errorf("%q, %q", all[0].Detail, all[1].Detail)
	}
	j.run.traced = &report.Trace{Document: recording.Document{Findings: []finding.Finding{{Kind: finding.HeapLeak, Site: &finding.Site{File: "/app/train", Function: "load"}}}}}
	heap := []finding.Finding{*leaking()}
	j.lines(heap)
	if d := heap[0].Detail; len(d) != 1 || !strings.HasSuffix(d[0], "It grew most by allocations in load (train), which need not be the kept ones") || heap[0].Site != nil {
		t.Errorf("%q at %v", d, heap[0].Site)
	}
	j.run.traced.Findings[0].Stack = []finding.Frame{{File: "/tmp/strandline-1/strandline/_growing.py", Function: "sizes", Line: 185}, {File: "/app/train", Function: "load"}}
	looked := []finding.Finding{*leaking()}
	j.lines(looked)
	if d := looked[0].Detail; len(d) != 1 || strings.Contains(d[0], "grew most") {
		t.Errorf("what strandline itself allocates is named: %q", d)
	}
}

// TestLinesByKind checks that a kind of growth that a trace names is named where no line
// is, and that the heap of malloc alone is not.
func TestLinesByKind(t *testing.T) {
	for kind, want := range map[finding.Kind]bool{finding.PythonObjects: true, finding.SharedMemory: true, finding.HeapLeak: false} {
		doc := &report.Trace{Document: recording.Document{Findings: []finding.Finding{{
			Kind: kind, Severity: finding.Warning, Process: "pid 7 (train)", Bytes: finding.Int(9), Count: finding.Int(2),
			Evidence: &finding.CallGrowthEvidence{ResidentBytes: 900, RSSGrowthBytes: 1000},
		}}}}
		f := &finding.Finding{Kind: finding.Leak, Process: "pid7 (train)", Title: "host memory grows"}
		if got := byKind(f, doc, 7); got != want || (f.Kind == kind) != want {
			t.Errorf("%s: %v, %+v", kind, got, f)
		}
		if byKind(&finding.Finding{}, doc, 8) {
			t.Errorf("%s: it is of another process", kind)
		}
	}
	// Objects that are far less than what leaks are not what leaks.
	f := &finding.Finding{Process: "pid7 (train)", Evidence: &finding.StepGrowthEvidence{Metric: gate.Host, Unit: gate.Second, LowBytes: 10 << 20}}
	lines := []record.GrowingLine{{Frames: []record.Frame{{File: "/app/train.py", Line: 5}}, Bytes: 5000, Count: 1}}
	if byObjects(f, 7, []record.Growing{{PID: 7, Seconds: 1, Grew: 5000, Lines: lines}}, nil) {
		t.Errorf("%+v", f)
	}
	// A process that grows faster than it leaks has work under way.
	for grew, want := range map[int64]bool{9 << 20: true, 90 << 20: false} {
		f := &finding.Finding{Process: "pid7 (train)", Evidence: &finding.StepGrowthEvidence{Metric: gate.Host, Unit: gate.Second, LowBytes: 8 << 20, HighBytes: 12 << 20}}
		lines[0].Bytes = grew
		if got := byObjects(f, 7, []record.Growing{{PID: 7, Seconds: 1, Grew: grew, Lines: lines}}, nil); got != want {
			t.Errorf("%d bytes in a second: %v", grew, got)
		}
	}
}

// TestLinesOfBursts does not name what objects keep between bursts for a leak that comes in
// those, but a line of a program that runs slower while it is traced.
func TestLinesOfBursts(t *testing.T) {
	const mib = 1 << 20
	lines := []record.GrowingLine{{Frames: []record.Frame{{File: "/app/train.py", Line: 5}}, Bytes: mib, Count: 1}}
	for name, each := range map[string]float64{"bursts": 12, "steady": 0} {
		levels := &gate.Series{}
		for at := range 60 {
			bytes := float64(at) * mib * (5 - each/3)
			levels.At, levels.Bytes = append(levels.At, float64(at)), append(levels.Bytes, bytes+float64(at/3)*each*mib)
		}
		f := &finding.Finding{Process: "pid7 (train)", Evidence: &finding.StepGrowthEvidence{Metric: gate.Host, Unit: gate.Second, LowBytes: 5*mib - 1000, HighBytes: 5*mib + 1000}}
		named := byObjects(f, 7, []record.Growing{{PID: 7, Seconds: 0.8, Grew: mib, Lines: lines}}, levels)
		if named != (each == 0) || len(f.Detail) != 1 {
			t.Errorf("%s: %v, %q", name, named, f.Detail)
		}
	}
}

// TestLinesOfContainers names the containers that grew where there is no line.
func TestLinesOfContainers(t *testing.T) {
	kept := []processes.Container{{Path: "kept in main()", Kind: "list", Counts: []int64{100, 200, 400}}}
	for pid, want := range map[int]string{7: "remove objects from `kept in main()`", 8: "find the line with a heap profiler"} {
		f := leaking()
		f.Kind = finding.Leak
		r := &Run{command: []string{"train"}, traced: &report.Trace{}, containers: func(p int) []processes.Container {
			if p == pid {
				return kept
			}
			return nil
		}}
		findings := []finding.Finding{*f}
		(&judging{run: r}).lines(findings)
		if got := findings[0].Remedies[0].Text; !strings.HasPrefix(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestLinesOfMemoryInUse does not take what malloc keeps of freed memory for the cause where the
// memory in use grows.
func TestLinesOfMemoryInUse(t *testing.T) {
	kept := finding.Finding{Kind: finding.ArenaRetention, Severity: finding.Warning, Process: "pid 7 (train)", Evidence: &finding.CallGrowthEvidence{ResidentBytes: 900, RSSGrowthBytes: 1000}}
	for inUse, want := range map[bool]finding.Kind{false: finding.ArenaRetention, true: finding.Leak} {
		f := leaking()
		f.Kind = finding.Leak
		j := judging{run: &Run{traced: &report.Trace{Document: recording.Document{Findings: []finding.Finding{kept}}}}}
		j.all = []gate.Judgment{{Series: &gate.Series{Metric: gate.Host, Process: f.Process}, InUse: inUse}}
		all := []finding.Finding{*f}
		if j.lines(all); all[0].Kind != want {
			t.Errorf("in use %v: %s, %q", inUse, all[0].Kind, all[0].Detail)
		}
	}
}
