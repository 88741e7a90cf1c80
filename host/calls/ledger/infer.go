package ledger

import (
	"cmp"
	"slices"

	"strandline/internal/sorts"
)

// A copied is a call whose stack is known.
type copied struct {
	at    uint64
	stack int
}

// inferStacks attributes live memory that was made by calls whose stack was not copied
// to the stack of another call from the same place and of the same size, the nearest in
// time: if several paths lead to a place, they are taken at different times.
func (l *Ledger) inferStacks() {
	known := map[Site][]copied{}
	l.each(func(iv *Interval) {
		if c := &l.Causes[iv.Cause]; c.stack != 0 && !c.inferred {
			known[c.Site] = append(known[c.Site], copied{iv.since, c.stack})
		}
	})
	byTime(known)
	l.each(func(iv *Interval) {
		if c := &l.Causes[iv.Cause]; c.stack == 0 || c.inferred {
			if calls := known[c.Site]; len(calls) > 0 {
				l.move(iv, nearest(calls, iv.since), true)
			}
		}
	})
}

// each calls f with the intervals of all processes.
func (l *Ledger) each(f func(iv *Interval)) {
	for _, s := range l.spaces {
		s.each(f)
	}
}

// byTime sorts the calls from each place.
func byTime[P comparable](known map[P][]copied) {
	for _, calls := range known {
		sorts.By(calls, func(a, b copied) int { return cmp.Compare(a.at, b.at) })
	}
}

// nearest returns the stack of the call nearest to a moment; calls are sorted by time.
func nearest(calls []copied, at uint64) int {
	i, _ := slices.BinarySearchFunc(calls, at, func(c copied, at uint64) int { return cmp.Compare(c.at, at) })
	if i == len(calls) || i > 0 && at-calls[i-1].at < calls[i].at-at {
		i--
	}
	return calls[i].stack
}
