package processes

import (
	"strings"
	"testing"
	"time"

	"strandline/host/calls/ledger"
	"strandline/host/proc/footprint"
	"strandline/host/proc/procfs"
)

func TestPace(t *testing.T) {
	const mib = 1 << 20
	looks := &footprint.Growth{After: &footprint.Observation{Room: &procfs.Room{Left: 600 * mib, Limit: 2048 * mib, Of: "the control group"}}}
	for _, c := range []struct {
		name  string
		grown []int64 // MiB, a second each
		looks *footprint.Growth
		text  string
		soon  float64 // seconds; 0 for none
		late  float64
	}{
		{"steady", []int64{0, 10, 20, 30, 40}, looks, "it grows by 600 MiB a minute; at the rate of all processes together, the 600 MiB that remain until the limit of the control group (2 GiB) last about 1 min", 60, 60},
		{"slower", []int64{0, 20, 40, 50, 60}, looks, "last 40 s to 1 min", 40, 60},
		{"stopped", []int64{0, 20, 40, 40, 40}, looks, "last at least 1 min", 60, 0},
		{"nothing known of limits", []int64{0, 10, 20, 30, 40}, nil, "it grows by 600 MiB a minute", 0, 0},
		{"too few", []int64{0, 10}, looks, "", 0, 0},
	} {
		s := &ledger.Sums{}
		for i, n := range c.grown {
			s.Checkpoints = append(s.Checkpoints, uint64(i)*uint64(time.Second))
			s.Grown = append(s.Grown, n*mib)
		}
		p, text := host{sums: s, looks: c.looks}.pace(int64(len(c.grown)-1)*10*mib, 0)
		if !strings.HasSuffix(text, c.text) {
			t.Errorf("%s: %q, want %q", c.name, text, c.text)
		}
		switch {
		case (p.seconds != nil) != (c.soon > 0):
			t.Errorf("%s: seconds %v", c.name, p.seconds)
		case p.seconds != nil && (*p.seconds[0] != c.soon || (p.seconds[1] != nil) != (c.late > 0)):
			t.Errorf("%s: %v seconds", c.name, *p.seconds[0])
		case p.seconds != nil && p.seconds[1] != nil && *p.seconds[1] != c.late:
			t.Errorf("%s: at most %v seconds", c.name, *p.seconds[1])
		}
	}
}

// TestBurst checks which curves have a rate.
func TestBurst(t *testing.T) {
	for _, c := range []struct {
		curve []int64
		want  bool
	}{
		{[]int64{0, 1, 2, 3, 4, 5, 6, 7, 8}, false},
		{[]int64{0, 0, 0, 0, 0, 0, 0, 5, 9}, true},
		{[]int64{0, 0, 0, 0, 5, 6, 7, 8, 9}, false},
		{[]int64{0, 0, 9}, false},
		{[]int64{9, 9, 9, 9, 9}, false},
	} {
		if got := burst(c.curve); got != c.want {
			t.Errorf("%v: %v", c.curve, got)
		}
	}
}
