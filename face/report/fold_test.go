package report

import (
	"fmt"
	"strings"
	"testing"

	"strandline/finding"
)

// TestFolds prints what grows in step once, with a line for each.
func TestFolds(t *testing.T) {
	level := func(name string, first, last int64) finding.Finding {
		return finding.Finding{
			Kind: finding.Leak, Severity: finding.Problem, Confidence: 1, Trend: []int64{first << 20, last << 20},
			Brief: finding.Brief{Title: fmt.Sprintf("%s: +%d MiB a minute, now %d MiB", name, last-first, last)},
		}
	}
	line := func(device int) finding.Finding {
		f := level("", 10, 20)
		f.Brief, f.Device, f.Site, f.Count = finding.Brief{}, &device, &finding.Site{File: "a.py", Line: 3, Function: "f"}, finding.Int(4)
		return f
	}
	alone := level("gpu 0 used", 10, 20)
	alone.Kind = finding.OutOfMemory
	for _, c := range []struct {
		name string
		of   []finding.Finding
		want string
	}{
		{"numbers", []finding.Finding{level("gpu 0 used", 10, 20), level("gpu 1 used", 11, 21), level("gpu 2 used", 10, 20)},
			"LEAK  gpu 0 to 2, in step used: +10 MiB a minute, now 20 MiB\n      gpu 0  10 → 20 MiB ▁█\n      gpu 1  11 → 21 MiB ▁█\n      gpu 2  10 → 20 MiB ▁█\n"},
		{"some", []finding.Finding{level("index 0: used", 10, 20), level("index 6: used", 10, 20)},
			"LEAK  index 0, 6, in step: used: +10 MiB a minute, now 20 MiB\n      index 0  10 → 20 MiB ▁█\n      index 6  10 → 20 MiB ▁█\n"},
		{"names", []finding.Finding{level("gpu0_used", 10, 20), level("gpu4_used", 10, 20)},
			"LEAK  gpu0_used, gpu4_used, in step: +10 MiB a minute, now 20 MiB\n      gpu0_used  10 → 20 MiB ▁█\n      gpu4_used  10 → 20 MiB ▁█\n"},
		{"paces", []finding.Finding{level("index 0: used", 10, 20), level("index 1: used", 10, 90)},
			"LEAK  index 0: used: +10 MiB a minute, now 20 MiB\n      10 → 20 MiB ▁█\n   index 1: used: +80 MiB a minute, now 90 MiB\n      10 → 90 MiB ▁█\n"},
		{"kinds", []finding.Finding{alone, level("gpu 0 used", 10, 20)},
			"LEAK  gpu 0 used: +10 MiB a minute, now 20 MiB\n      10 → 20 MiB ▁█\n   gpu 0 used: +10 MiB a minute, now 20 MiB\n      10 → 20 MiB ▁█\n"},
		{"lines", []finding.Finding{line(0), line(1)},
			"LEAK  1 line keeps memory: now 0 B\n   device 0, 1, in step: a.py:3 f  10 → 20 MiB ▁█  4 pieces kept  100% sure\n      device 0  10 → 20 MiB ▁█\n      device 1  10 → 20 MiB ▁█\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out strings.Builder
			subject := func(f *finding.Finding) string {
				if f.Device == nil {
					return ""
				}
				return fmt.Sprintf("device %d", *f.Device)
			}
			b := newBrief(&out, Style{}, c.of, subject)
			var list []*finding.Finding
			for i := range c.of {
				list = append(list, &c.of[i])
			}
			if b.findings("LEAK", list, ""); out.String() != c.want {
				t.Errorf("%s\nwant\n%s", out.String(), c.want)
			}
		})
	}
}
