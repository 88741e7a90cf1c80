package trace

import (
	"testing"
	"time"

	"strandline/host/calls/ledger"
	"strandline/host/proc/footprint"
	"strandline/host/proc/procfs"
)

// TestTeardown checks which sums are those of a process that has ended: not those of the
// time in which it freed what it held.
func TestTeardown(t *testing.T) {
	for _, c := range []struct {
		name  string
		held  []int64 // once a second
		want  int64
		looks int // that remain of one a second
	}{
		{"it ends at once", []int64{10, 20, 30}, 30, 3},
		{"it frees slowly", []int64{10, 30, 20, 10}, 30, 2},
		{"it freed a little", []int64{10, 30, 29}, 29, 3},
		{"it freed much earlier", []int64{30, 10, 20, 21}, 21, 4},
		{"the first sums", []int64{7}, 7, 1},
		{"none", nil, 0, 0},
	} {
		w := &Session{looks: map[procfs.Process][]*footprint.Observation{}, sums: &ledger.Sums{}}
		for i, live := range c.held {
			at := time.Duration(i) * time.Second
			w.sums = &ledger.Sums{Uses: []ledger.Use{{Live: live}}}
			w.past = append(w.past, pastSums{w.sums, at})
			w.looks[7] = append(w.looks[7], &footprint.Observation{At: at})
		}
		w.beforeTeardown()
		if got := mapped(w.sums); got != c.want || len(w.looks[7]) != c.looks {
			t.Errorf("%s: %d bytes and %d looks", c.name, got, len(w.looks[7]))
		}
	}
}
