package check

import (
	"testing"
	"time"

	"strandline/face/report"
	"strandline/finding"
	"strandline/host/calls/malloc"
	"strandline/host/code/symbolize"
	"strandline/host/sampling/levels"
	"strandline/host/store/recording"
	"strandline/judge/gate"
	"strandline/judge/processes"
	"strandline/stack"
)

func moment(second int) time.Time { return time.Unix(1000+int64(second), 0) }

// growing is a run of a process that grows by 10 MiB a second for 20 seconds.
func growing() *Run {
	r := &Run{}
	r.Samples.Processes = []levels.Process{{PID: 7}}
	for i := range 21 {
		r.Samples.Samples = append(r.Samples.Samples, levels.Sample{At: moment(i), Bytes: map[int]int64{0: int64(i) * 10 << 20}})
	}
	return r
}

// TestLinesByMalloc judges samples of a process that grows by 100 MiB in ten seconds.
func TestLinesByMalloc(t *testing.T) {
	const mib = 1 << 20
	python := func(line int64) symbolize.Frame {
		return symbolize.Frame{Frame: stack.Frame{File: "/app/train.py", Line: line, Function: "step"}}
	}
	native := symbolize.Frame{Frame: stack.Frame{Function: "keep"}, Object: "/app/libkeep.so"}
	libc := symbolize.Frame{Frame: stack.Frame{Function: "__libc_start_main"}, Object: "/lib/libc.so.6"}
	kept := func(mibs, sd float64, frames ...symbolize.Frame) malloc.Kept {
		return malloc.Kept{Frames: frames, Bytes: mibs * mib, Count: mibs, Variance: sd * sd * mib * mib}
	}
	nothing, all := finding.Int(0), finding.Int(50*mib) // in each of two spans
	for _, c := range []struct {
		name  string
		kept  []malloc.Kept
		want  int64  // line; -1 for the native function, 0 for none
		inUse *int64 // more of it in a span
	}{
		{"a line", []malloc.Kept{kept(95, 5, native, python(5))}, 5, nil},
		{"two stacks of a line", []malloc.Kept{kept(30, 9, native, python(5)), kept(40, 9, python(5)), kept(35, 5, python(6))}, 5, nil},
		{"no Python", []malloc.Kept{kept(95, 5, native, libc)}, -1, nil},
		{"a little", []malloc.Kept{kept(40, 2, native, python(5))}, 0, nil},
		{"too few samples", []malloc.Kept{kept(95, 40, native, python(5))}, 0, nil},
		{"beside a cache that replaces what was there", []malloc.Kept{kept(300, 10, python(8)), kept(95, 5, python(5))}, 5, nil},
		{"as much as no line", []malloc.Kept{kept(300, 10, python(8))}, 0, nil},
		{"beside one of which more is freed", []malloc.Kept{kept(95, 5, python(5)), kept(-90, 5, python(8))}, 5, nil},
		{"a line by malloc's account, too", []malloc.Kept{kept(95, 5, python(5))}, 5, all},
		{"a cache beside what malloc does not make", []malloc.Kept{kept(95, 5, python(5))}, 0, nothing},
		{"beside what is not touched", []malloc.Kept{kept(900, 5, python(8)), kept(95, 5, python(5))}, 5, finding.Int(500 * mib)},
		{"what lies in memory that was free", []malloc.Kept{kept(140, 5, python(5))}, 5, finding.Int(70 * mib)},
		{"more than malloc has in use", []malloc.Kept{kept(170, 5, python(5))}, 0, finding.Int(60 * mib)},
		{"no place", []malloc.Kept{kept(95, 5, libc)}, 0, nil},
		{"nothing", nil, 0, nil},
	} {
		r := growing()
		r.kept = func(pid int, until time.Time) ([]malloc.Kept, []malloc.Span) {
			if pid != 7 || until != moment(19) {
				t.Errorf("%s: of %d until %v", c.name, pid, until)
			}
			return c.kept, []malloc.Span{{From: moment(2), To: moment(8), InUse: c.inUse}, {From: moment(10), To: moment(14), InUse: c.inUse}}
		}
		f := leaking()
		f.Evidence = &finding.StepGrowthEvidence{Metric: gate.Host, Unit: gate.Second, LowBytes: 9 * mib, HighBytes: 11 * mib}
		j := judging{run: r}
		if c.want < 0 { // of a program of Python it is told who keeps what a library makes
			r.containers = func(int) []processes.Container { return []processes.Container{{Path: "kept", Kind: "list"}} }
			if g := *f; j.byMalloc(&g) {
				t.Errorf("%s: %+v, where a list grows", c.name, g.Site)
			}
			r.containers = nil
		}
		got := j.byMalloc(f)
		switch {
		case got != (c.want != 0), got && len(f.Detail) != 1:
			t.Errorf("%s: %v, %q", c.name, got, f.Detail)
		case c.want > 0 && f.Site.Line != c.want, c.want < 0 && f.Site.Function != "keep":
			t.Errorf("%s: %+v", c.name, f.Site)
		}
	}
}

// TestUseIsNoRetention judges a process of which a trace says that malloc keeps freed memory, where
// malloc's own account shows that it is in use, and where that is not known.
func TestUseIsNoRetention(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		inUse *int64
		want  finding.Kind
	}{
		{finding.Int(90 * mib), finding.Leak},
		{finding.Int(10 * mib), finding.ArenaRetention},
		{nil, finding.ArenaRetention},
	} {
		r := growing()
		r.kept = func(int, time.Time) ([]malloc.Kept, []malloc.Span) {
			return nil, []malloc.Span{{From: moment(2), To: moment(12), InUse: c.inUse}}
		}
		r.traced = &report.Trace{Document: recording.Document{Findings: []finding.Finding{{
			Kind: finding.ArenaRetention, Severity: finding.Warning, Process: "pid 7 (train)",
			Evidence: &finding.SampledGrowthEvidence{GrownBytes: 100 * mib, RSSGrowthBytes: 100 * mib},
		}}}}
		f := leaking()
		f.Kind = finding.Leak
		all := []finding.Finding{*f}
		(&judging{run: r}).lines(all)
		if all[0].Kind != c.want {
			t.Errorf("%v in use: %s, %q", c.inUse, all[0].Kind, all[0].Detail)
		}
	}
}
