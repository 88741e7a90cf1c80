package profiles

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
