package tile

import (
	"cmp"
	"slices"

	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/timeline"
)

// A Sum is what a group has at a moment or in a range of events.
type Sum struct {
	Group   int // index into Bands.Groups
	Bytes   int64
	Count   int
	Kept    int64 // of Bytes, alive at the snapshot
	Pending int64 // of Bytes, waiting for another stream at the snapshot
}

func (s *Sum) add(bytes int64, f Fate) {
	s.Bytes += bytes
	s.Count++
	switch f {
	case Kept:
		s.Kept += bytes
	case Pending:
		s.Pending += bytes
	}
}

// Live sums what lives after event k by group, most bytes first.
func (b *Bands) Live(k int) []Sum {
	sums := make([]Sum, len(b.Groups))
	b.h.EachLive(k, func(i int) bool {
		band := &b.Bands[b.of[i]]
		sums[band.Group].add(b.h.Size(i), band.Fate)
		return true
	})
	return ranked(sums)
}

// Made sums what the events from … to allocate, both included.
func (b *Bands) Made(from, to int) []Sum {
	sums := make([]Sum, len(b.Groups))
	b.h.made(from, to, func(i int) {
		band := &b.Bands[b.of[i]]
		sums[band.Group].add(b.h.Size(i), band.Fate)
	})
	return ranked(sums)
}

// ranked leaves out empty sums and puts the largest first.
func ranked(sums []Sum) []Sum {
	for i := range sums {
		sums[i].Group = i
	}
	sums = slices.DeleteFunc(sums, func(s Sum) bool { return s.Count == 0 })
	sorts.StableBy(sums, func(a, b Sum) int { return cmp.Compare(b.Bytes, a.Bytes) })
	return sums
}

// A Change is what a group has at two moments.
type Change struct {
	Group int
	A, B  int64 // bytes
	Count int   // allocations at B less those at A
}

// Bytes is the growth from A to B.
func (c *Change) Bytes() int64 { return c.B - c.A }

// Changes compares what lives after event b with what lives after a, the largest
// difference first.
func (b *Bands) Changes(from, to int) (out []Change) {
	all := make([]Change, len(b.Groups))
	for _, s := range b.Live(from) {
		all[s.Group].A, all[s.Group].Count = s.Bytes, -s.Count
	}
	for _, s := range b.Live(to) {
		all[s.Group].B = s.Bytes
		all[s.Group].Count += s.Count
	}
	for g, c := range all {
		if c.Group = g; c.A != c.B || c.Count != 0 {
			out = append(out, c)
		}
	}
	size := func(c *Change) int64 { return max(c.Bytes(), -c.Bytes()) }
	sorts.StableBy(out, func(a, b Change) int { return cmp.Compare(size(&b), size(&a)) })
	return out
}

// StackSum is what allocations of one stack have in all.
type StackSum struct {
	stack   stack.ID
	missing timeline.Missing // why the stack has no frames
	bytes   int64
	count   int
}

// LiveStacks sums what lives after event k by stack.
func (h *History) LiveStacks(k int) []StackSum {
	s := newStackSums(h)
	s.live(k, 1)
	return s.list()
}

// StacksBetween sums by how much what lives after event b exceeds what lives after event a,
// by stack.
func (h *History) StacksBetween(a, b int) []StackSum {
	s := newStackSums(h)
	s.live(b, 1)
	s.live(a, -1)
	return s.list()
}

// KeptStacks sums what lives at the snapshot by stack, without what only waits
// for another stream.
func (h *History) KeptStacks() []StackSum {
	s := newStackSums(h)
	h.EachLive(h.Events()-1, func(i int) bool {
		if h.FateOf(i) == Kept {
			s.add(i, 1)
		}
		return true
	})
	return s.list()
}

// MadeStacks sums what the events from … to allocate by stack, both included.
func (h *History) MadeStacks(from, to int) []StackSum {
	s := newStackSums(h)
	h.made(from, to, func(i int) { s.add(i, 1) })
	return s.list()
}

// stackSums are sums by stack; what has no frames is grouped by the cause.
type stackSums struct {
	h       *History
	by      []StackSum
	without map[timeline.Missing]*StackSum
}

func newStackSums(h *History) *stackSums {
	return &stackSums{h, make([]StackSum, h.Snap.Stacks.Len()), map[timeline.Missing]*StackSum{}}
}

// live adds what lives after event k, so many times.
func (s *stackSums) live(k, times int) {
	s.h.EachLive(k, func(i int) bool {
		s.add(i, times)
		return true
	})
}

func (s *stackSums) add(i, times int) {
	id := s.h.Stack(i)
	sum := &s.by[id]
	if id <= stack.Empty {
		why := s.h.Missing(i)
		if s.without[why] == nil {
			s.without[why] = &StackSum{stack: id, missing: why}
		}
		sum = s.without[why]
	}
	sum.bytes += int64(times) * s.h.Size(i)
	sum.count += times
}

func (s *stackSums) list() (out []StackSum) {
	for _, why := range []timeline.Missing{timeline.BeforeRecording, timeline.StacksOff, timeline.AutogradThread} {
		if sum := s.without[why]; sum != nil {
			out = append(out, *sum)
		}
	}
	for id, sum := range s.by {
		if sum.count != 0 || sum.bytes != 0 {
			sum.stack = stack.ID(id)
			out = append(out, sum)
		}
	}
	return out
}

// EndsAs is the bytes that live at the snapshot and have that fate.
func (h *History) EndsAs(f Fate) (bytes int64) {
	h.EachLive(h.Events()-1, func(i int) bool {
		if h.FateOf(i) == f {
			bytes += h.Size(i)
		}
		return true
	})
	return bytes
}
