package processes

import (
	"testing"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
)

// A batch that was freed and is built again, up to the end of the trace, is not a leak, and
// neither is it decided. Where something stays from batch to batch it is one.
func TestWaves(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name  string
		grown []int64 // MiB
		want  finding.Severity
	}{
		{"a batch, and another", []int64{0, 5, 10, 15, 20, 25, 30, 4, 0, 5, 10, 15, 20, 25, 30, 34}, finding.Warning},
		{"a batch, and one that is larger", []int64{0, 4, 8, 12, 0, 8, 16, 24, 32, 40, 48, 56, 64, 72, 80, 88}, finding.Problem},
		{"it grows, and a little is freed", []int64{0, 5, 10, 15, 20, 25, 30, 27, 32, 37, 42, 47, 52, 57, 62, 67}, finding.Problem},
		{"batches, and a leak", []int64{0, 20, 40, 10, 30, 50, 20, 40, 60, 30, 50, 70, 40, 60, 80, 50}, finding.Problem},
		{"two batches, and a leak", []int64{0, 10, 20, 30, 40, 20, 30, 40, 50, 60, 40, 50, 60, 70, 80, 90}, finding.Problem},
	} {
		steps := make([]int64, len(c.grown))
		for i := range steps {
			steps[i] = 2
		}
		s := traceOf(over(made(event.Map, ledger.Anonymous, mib, "libc.so.6:malloc", "main:load"), steps...))
		s.Growth = c.grown[len(c.grown)-1] * mib
		for i, n := range c.grown {
			s.Grown[i] = n * mib
		}
		found := Host(s, nil, nil)
		if len(found) != 1 || found[0].Severity != c.want || Undecided(found) != (c.want == finding.Warning) {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}
