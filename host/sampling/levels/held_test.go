package levels

import (
	"errors"
	"testing"

	"strandline/host/sampling/sample"
)

// TestSuffice uses the counters of a process only where a walk would state the same.
func TestSuffice(t *testing.T) {
	const mib = 1 << 20
	first, second := sample.ID{PID: 7, Started: 1}, sample.ID{PID: 9, Started: 2}
	own := level{anonymous: 100 * mib}
	shares := level{anonymous: 100 * mib, shared: 8 * mib}
	agreed := func(l level) walk { return walk{counted: l, agree: true} }
	type levels = map[sample.ID]level
	type walks = map[sample.ID]walk
	for _, c := range []struct {
		name    string
		sums    bool
		swapped uint64
		err     error
		before  walks
		now     levels
		want    []sample.ID // which are read by counters
	}{
		{"of its own", true, 0, nil, walks{first: agreed(own)}, levels{first: own}, []sample.ID{first}},
		{"grows", true, 0, nil, walks{first: agreed(own)}, levels{first: {anonymous: 300 * mib}}, []sample.ID{first}},
		{"an older kernel", false, 0, nil, walks{first: agreed(own)}, levels{first: own}, nil},
		{"something is in swap", true, 4096, nil, walks{first: agreed(own)}, levels{first: own}, nil},
		{"swap is not known", true, 0, errors.New("no such file"), walks{first: agreed(own)}, levels{first: own}, nil},
		{"never walked", true, 0, nil, nil, levels{first: own}, nil},
		{"the walk was something else", true, 0, nil, walks{first: {counted: own}}, levels{first: own}, nil},
		{"the same shared memory", true, 0, nil, walks{first: agreed(shares), second: agreed(shares)}, levels{first: shares, second: shares}, []sample.ID{first, second}},
		{"more shared memory", true, 0, nil, walks{first: agreed(shares), second: agreed(own)}, levels{first: {shared: 9 * mib}, second: own}, nil},
		{"another shares", true, 0, nil, walks{first: agreed(shares), second: agreed(own)}, levels{first: shares, second: shares}, nil},
		{"one that shares is new", true, 0, nil, walks{first: agreed(shares)}, levels{first: shares, second: shares}, nil},
		{"one that shares has ended", true, 0, nil, walks{first: agreed(shares), second: agreed(shares)}, levels{first: shares}, nil},
		{"one that shares nothing is new", true, 0, nil, walks{first: agreed(shares)}, levels{first: shares, second: own}, []sample.ID{first}},
		{"one that shares nothing has ended", true, 0, nil, walks{first: agreed(shares), second: agreed(own)}, levels{first: shares}, []sample.ID{first}},
	} {
		r := &Reader{sums: c.sums, walks: c.before, swapped: func() (uint64, error) { return c.swapped, c.err }}
		suffice, want := r.suffice(c.now), map[sample.ID]bool{}
		for _, id := range c.want {
			want[id] = true
		}
		for id := range c.now {
			if got := suffice(r.walks[id]); got != want[id] {
				t.Errorf("%s: pid %d is read by its counters: %t", c.name, id.PID, got)
			}
		}
	}
}
