package trace

import (
	"testing"

	"strandline/host/calls/ledger"
)

// The sums of a process that is about to end and frees what it has are not its
// growth.
func TestGaveBack(t *testing.T) {
	sums := func(live ...int64) *ledger.Sums {
		s := &ledger.Sums{}
		for _, n := range live {
			s.Uses = append(s.Uses, ledger.Use{Live: n})
		}
		return s
	}
	for _, c := range []struct {
		before, last *ledger.Sums
		want         bool
	}{
		{nil, sums(100), false},
		{sums(), sums(), false},
		{sums(100, 50), sums(110, 50), false},
		{sums(100, 50), sums(95, 50), false},
		{sums(100, 50), sums(20, 50), true},
		{sums(100, 50), sums(), true},
	} {
		if got := gaveBack(c.before, c.last); got != c.want {
			t.Errorf("%+v after %+v: %v", c.last, c.before, got)
		}
	}
}
