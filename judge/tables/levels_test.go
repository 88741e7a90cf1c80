package tables

import (
	"math"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/profiles"
)

// table is a file of a column with a level a second.
func table(n int, level func(i int) float64) Series {
	c := profiles.Column{Name: "rss", Process: "pid 7"}
	for i := range n {
		c.Times, c.Bytes = append(c.Times, float64(i)), append(c.Bytes, level(i))
	}
	return Series{Files: []*profiles.File{{Name: "rss.csv", Format: "levels", Columns: []profiles.Column{c}}}}
}

func TestLevels(t *testing.T) {
	limit := int64(4 << 30)
	for _, c := range []struct {
		name    string
		n       int
		level   func(i int) float64
		verdict finding.Verdict
		shape   string
		title   string
	}{
		{"growth", 200, func(i int) float64 { return 1<<30 + float64(i)*(1<<20) }, finding.Leaking, "growth", "rss: keeps growing, by 60 MiB a minute"},
		{"plateau", 200, func(i int) float64 { return 1<<30 + 1e9*(1-math.Exp(-float64(i)/20)) }, finding.OK, "plateau", "rss: grew and levels off at 1.93 GiB"},
		{"flat", 200, func(i int) float64 { return 1<<30 + float64(i%7)*4096 }, finding.OK, "flat", "rss: does not grow"},
		{"short", 5, func(i int) float64 { return 4096 + float64(i) }, finding.Unknown, "unknown", "rss: too few samples to judge: 5"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := table(c.n, c.level)
			s.Limit = &limit
			a := Judge([]Series{s})
			f := a.Findings[0]
			e := f.Evidence.(*finding.LevelsEvidence)
			if a.Verdict != c.verdict || e.Verdict != c.shape || !strings.HasPrefix(f.Title, c.title) || f.Process != "pid 7" {
				t.Errorf("%s, %s: %q of %q", a.Verdict, e.Verdict, f.Title, f.Process)
			}
			if (e.SecondsToLimit != nil) != (c.shape == "growth") {
				t.Errorf("seconds to the limit: %v", e.SecondsToLimit)
			}
			if to := e.SecondsToLimit; to != nil {
				truth := float64(limit-1<<30)/(1<<20) - 199
				if *to[0] > truth || *to[1] < truth {
					t.Errorf("%.0f s are not between %.0f and %.0f", truth, *to[0], *to[1])
				}
			}
		})
	}
}

// TestUnstated checks that growth of what nobody calls memory is no leak.
func TestUnstated(t *testing.T) {
	s := table(200, func(i int) float64 { return 1<<30 + float64(i)*(1<<20) })
	s.Files[0].Columns[0].Unstated = true
	a := Judge([]Series{s})
	if f := a.Findings[0]; a.Verdict != finding.Unknown || f.Severity != finding.Warning || !strings.Contains(strings.Join(f.Detail, " "), "nothing says that this column is memory") {
		t.Errorf("%s: %+v", a.Verdict, f)
	}
}

// TestCountedMoments judges levels at steps: nothing is stated in seconds.
func TestCountedMoments(t *testing.T) {
	s := table(200, func(i int) float64 { return 1<<30 + float64(i)*(1<<20) })
	s.Files[0].Columns[0].Unit = "step"
	limit := int64(4 << 30)
	s.Limit = &limit
	f := Judge([]Series{s}).Findings[0]
	e := f.Evidence.(*finding.LevelsEvidence)
	if f.Title != "rss: keeps growing, by 1 MiB a step at the end, where it is 1.19 GiB" || f.Basis != "200 samples over 199 steps" {
		t.Errorf("%q, %q", f.Title, f.Basis)
	}
	if e.RatePerSecond != nil || e.Seconds != nil || e.SecondsToLimit != nil {
		t.Errorf("of steps something is stated in seconds: %+v", e)
	}
	if e.Unit != "step" || e.RatePerStep == nil || math.Abs(*e.RatePerStep-1<<20) > 1<<14 {
		t.Errorf("%+v", e)
	}
	truth := float64(limit-1<<30)/(1<<20) - 199
	if to := e.StepsToLimit; to == nil || *to[0] > truth || *to[1] < truth || !strings.HasSuffix(f.Detail[0], " steps after the last sample (in 9 of 10 cases)") {
		t.Errorf("steps to the limit: %v, %q", to, f.Detail)
	}
}

// TestNothingMeasured: what is not known is not stated as 0.
func TestNothingMeasured(t *testing.T) {
	s := table(20, func(int) float64 { return math.NaN() })
	a := Judge([]Series{s})
	e := a.Findings[0].Evidence.(*finding.LevelsEvidence)
	if a.Verdict != finding.Unknown || e.LevelBytes != nil || e.LevelBoundsBytes != nil || e.RatePerSecond != nil || a.Findings[0].Bytes != nil {
		t.Errorf("%s, %+v", a.Verdict, e)
	}
	if want := "rss: nothing was measured: all samples are missing"; a.Findings[0].Title != want {
		t.Errorf("%q, want %q", a.Findings[0].Title, want)
	}
}

// TestTwoLevels: two levels, such as the sizes of two caches in a log, are no course.
func TestTwoLevels(t *testing.T) {
	for n, want := range map[int]string{
		2: "rss: 512 MiB, then 20 MiB",
		3: "rss: 512 MiB at first, 20 MiB at the end",
	} {
		s := table(n, func(i int) float64 { return []float64{512 << 20, 20 << 20, 20 << 20}[i] })
		if got := Judge([]Series{s}).Findings[0].Title; got != want {
			t.Errorf("%d levels: %q, want %q", n, got, want)
		}
	}
}

// TestAboveLimit: what is above the limit is told so, though it does not grow.
func TestAboveLimit(t *testing.T) {
	for name, level := range map[string]func(i int) float64{
		"flat":    func(i int) float64 { return 5<<30 + float64(i%7)*4096 },
		"plateau": func(i int) float64 { return 3<<30 + 2<<30*(1-math.Exp(-float64(i)/20)) },
	} {
		s := table(200, level)
		limit := int64(4 << 30)
		s.Limit = &limit
		a := Judge([]Series{s})
		f := a.Findings[0]
		if f.Severity != finding.Warning || len(f.Detail) == 0 || f.Detail[0] != "5 GiB is above the limit of 4 GiB" {
			t.Errorf("%s: %s, %q %q", name, f.Severity, f.Title, f.Detail)
		}
	}
}

// TestNextCommand: what holds memory of a device is recorded, not traced.
// TestAddressSpace checks that a limit of memory is not held against addresses.
func TestAddressSpace(t *testing.T) {
	limit := int64(1 << 30)
	for _, name := range []string{"VSZ", "vms_kb", "Virtual (MB)"} {
		s := table(200, func(i int) float64 { return 2<<30 + float64(i%7)*4096 })
		s.Files[0].Columns[0].Name, s.Limit = name, &limit
		if f := Judge([]Series{s}).Findings[0]; f.Severity != finding.Info || len(f.Detail) > 0 {
			t.Errorf("%s: %s, %q", name, f.Severity, f.Detail)
		}
	}
}

func TestNextCommand(t *testing.T) {
	for name, want := range map[string]string{
		"reserved_gb": "strandline record --pid PID", "memory_allocated_gb": "strandline record --pid PID", "gpu_mem_gb": "strandline record --pid PID",
		"rss": "strandline trace --pid PID", "anon": "strandline trace --pid PID",
	} {
		if r := remedies(&profiles.Column{Name: name}); !strings.Contains(r[0].Text, want) {
			t.Errorf("%s: %q", name, r[0].Text)
		}
	}
}

// TestCache: the KV cache of an engine that is fuller and fuller is no leak, and less so
// while more requests are in progress.
func TestCache(t *testing.T) {
	for requests, want := range map[string]finding.Severity{"as many": finding.Warning, "more": finding.Info, "not stated": finding.Warning} {
		s := table(200, func(i int) float64 { return 10 + float64(i)/10 })
		c := &s.Files[0].Columns[0]
		most := int64(100)
		c.Percent, c.Cache, c.Limit = true, true, &most
		for i := range c.Bytes {
			switch requests {
			case "as many":
				c.Requests = append(c.Requests, 3)
			case "more":
				c.Requests = append(c.Requests, float64(i))
			}
		}
		a := Judge([]Series{s})
		f := a.Findings[0]
		e := f.Evidence.(*finding.LevelsEvidence)
		if a.Verdict != finding.OK || f.Severity != want || f.Title != "rss: keeps growing, by 6% a minute at the end, where it is 29.9%" {
			t.Errorf("%s: %s, %s, %q", requests, a.Verdict, f.Severity, f.Title)
		}
		if e.LevelBytes != nil || e.RatePerSecond != nil || e.LimitBytes != nil || math.Abs(*e.LevelPercent-29.9) > 0.5 || math.Abs(*e.RatePercent-0.1) > 0.01 {
			t.Errorf("%s: %+v", requests, e)
		}
		if to := e.SecondsToLimit; to == nil || *to[0] > 701 || *to[1] < 701 {
			t.Errorf("%s: full in %v", requests, to)
		}
	}
}
