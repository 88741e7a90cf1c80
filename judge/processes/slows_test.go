package processes

import (
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/proc/footprint"
)

// A class whose ends differ is not a leak by that alone if the processes gave back as
// much in between.
func TestFallsBetween(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name  string
		grown []int64 // MiB
		want  finding.Severity
	}{
		{"grows", []int64{0, 2, 4, 6, 8, 9, 10, 11, 12}, finding.Problem},
		{"comes and goes", []int64{0, 9, 1, 12, 2, 11, 3, 13, 12}, finding.Warning},
	} {
		u := over(made(event.Map, ledger.Anonymous, 1<<20, "main:idle"), make([]int64, len(c.grown))...)
		s := traceOf(u)
		s.Growth = 12 * mib
		for i, n := range c.grown {
			s.Grown[i] = n * mib
		}
		looks := &footprint.Growth{RSS: 12 * mib, Age: time.Hour, After: &footprint.Observation{Allocator: "libjemalloc.so.2"},
			Parts: []footprint.Part{{Class: finding.AllocatorRetention, Bytes: 11 * mib, Steady: true, Confidence: 0.7}}}
		found := Host(s, looks, nil)
		if len(found) != 1 || found[0].Severity != c.want || Undecided(found) != (c.want == finding.Warning) {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}
