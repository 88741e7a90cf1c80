package tables

import (
	"math"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/profiles"
)

// texts is a file of n texts a minute apart, of a process whose heap is a level in MiB.
func texts(n int, dated bool, level func(i int) float64) *profiles.File {
	f := &profiles.File{Name: "smaps.txt", Format: "smaps"}
	for i := range n {
		size := func(mib float64) *int64 { x := int64(mib * (1 << 20)); return &x }
		heap := level(i)
		f.Earlier = append(f.Earlier, profiles.Host{RSS: size(heap + 400), Anonymous: size(heap + 100), Heap: size(heap), File: size(300), Shared: size(0)})
		if dated {
			f.Moments = append(f.Moments, 1793534400+60*float64(i))
		}
	}
	f.Host, f.Earlier = &f.Earlier[n-1], f.Earlier[:n-1]
	return f
}

func TestHostCourses(t *testing.T) {
	line := func(i int) float64 { return 1000 + 5*float64(i) }
	for _, c := range []struct {
		name    string
		dated   bool
		level   func(i int) float64
		kind    finding.Kind
		verdict finding.Verdict
		title   string
	}{
		{"growth", true, line, finding.HeapLeak, finding.Leaking, "the heap of malloc: keeps growing, by 5 MiB a minute at the end, where it is 1.26 GiB"},
		{"growth without times", false, line, finding.HeapLeak, finding.Leaking, "the heap of malloc: keeps growing, by 5 MiB a text at the end, where it is 1.26 GiB"},
		{"plateau", true, func(i int) float64 { return 1000 + 500*(1-math.Exp(-float64(i)/8)) }, finding.Usage, finding.OK, "the heap of malloc: grew and levels off at 1.46 GiB"},
		{"sawtooth", true, func(i int) float64 { return 1000 + 50*float64(i%10) }, finding.Usage, finding.OK, "the heap of malloc: grows and is released again and again"},
		{"flat", true, func(i int) float64 { return 1000 + float64(i%3)/8 }, finding.Usage, finding.OK, "resident memory: does not grow; it is at 1.37 GiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			limit := int64(3 << 30)
			a := Judge([]Series{{Files: []*profiles.File{texts(60, c.dated, c.level)}, Limit: &limit}})
			f := a.Findings[0]
			if a.Verdict != c.verdict || f.Kind != c.kind || !strings.HasPrefix(f.Title, c.title) {
				t.Fatalf("%s, %s: %q", a.Verdict, f.Kind, f.Title)
			}
			e := f.Evidence.(*finding.LevelsEvidence)
			if c.verdict != finding.Leaking {
				if e.SecondsToLimit != nil || len(f.Detail) > 0 {
					t.Errorf("%v, %q", e.SecondsToLimit, f.Detail)
				}
				return
			}
			// All of the process reaches the limit, and not its heap alone.
			left, truth := e.SecondsToLimit, (3072-400-1295)/5.*60
			if !c.dated {
				left, truth = e.StepsToLimit, truth/60
			}
			if left == nil || *left[0] > truth || *left[1] < truth {
				t.Errorf("%.0f to the limit is not between %v", truth, left)
			}
			if len(f.Detail) == 0 || !strings.HasPrefix(f.Detail[0], "will reach the limit of 3 GiB ") {
				t.Errorf("%q", f.Detail)
			}
		})
	}
}

// TestHostCoursesOfTheMachine: the limit of what is in use on a machine is its memory.
func TestHostCoursesOfTheMachine(t *testing.T) {
	f := &profiles.File{Name: "free.txt", Format: "free"}
	for i := range 40 {
		total, available := int64(16<<30), int64(12<<30)-int64(i)*(50<<20)
		f.Earlier = append(f.Earlier, profiles.Host{Total: &total, Available: &available})
		f.Moments = append(f.Moments, 60*float64(i))
	}
	f.Host, f.Earlier = &f.Earlier[39], f.Earlier[:39]
	got := Judge([]Series{{Files: []*profiles.File{f}}}).Findings[0]
	e := got.Evidence.(*finding.LevelsEvidence)
	truth := float64(12<<30-39*(50<<20)) / (50 << 20) * 60
	if got.Severity != finding.Problem || e.SecondsToLimit == nil || *e.SecondsToLimit[0] > truth || *e.SecondsToLimit[1] < truth {
		t.Errorf("%s %q %v, want %.0f", got.Severity, got.Title, e.SecondsToLimit, truth)
	}
}
