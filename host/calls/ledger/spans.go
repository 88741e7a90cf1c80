package ledger

import (
	"slices"
	"sort"
)

// An Interval is a piece of a process's address space and what made it.
type Interval struct {
	Start, End uint64
	since      uint64 // when it was made, ns on the events' clock; 0 is before the recording
	Cause      CauseID
	kind       Kind
	writable   bool
	// rest states that the piece was cut off another that is already counted.
	rest bool
}

// Size returns the interval's length in bytes.
func (iv *Interval) Size() int64 { return int64(iv.End - iv.Start) }

// spans are intervals that do not overlap, sorted by address: slices of bounded length,
// so that inserting one moves only a few.
type spans struct{ chunks [][]Interval }

const chunkSize = 256

// find returns the first interval that ends after an address.
func (s *spans) find(addr uint64) (chunk, i int) {
	chunk = sort.Search(len(s.chunks), func(c int) bool {
		return s.chunks[c][len(s.chunks[c])-1].End > addr
	})
	if chunk < len(s.chunks) {
		in := s.chunks[chunk]
		i = sort.Search(len(in), func(i int) bool { return in[i].End > addr })
	}
	return chunk, i
}

// within calls f with the intervals that overlap a range, by address, until f
// returns false.
func (s *spans) within(start, end uint64, f func(iv *Interval) bool) {
	for c, i := s.find(start); c < len(s.chunks); c, i = c+1, 0 {
		for ; i < len(s.chunks[c]); i++ {
			iv := &s.chunks[c][i]
			if iv.Start >= end || !f(iv) {
				return
			}
		}
	}
}

// until returns the parts of a range that were mapped at or before a time.
func (s *spans) until(start, end, at uint64) (out []addresses) {
	s.within(start, end, func(iv *Interval) bool {
		if iv.since <= at {
			out = append(out, addresses{max(iv.Start, start), min(iv.End, end)})
		}
		return true
	})
	return out
}

// each calls f with all intervals, by address.
func (s *spans) each(f func(iv *Interval)) {
	for _, c := range s.chunks {
		for i := range c {
			f(&c[i])
		}
	}
}

// cut takes a range out and returns what was there. An interval that reaches
// beyond the range is split.
func (s *spans) cut(start, end uint64) (out []Interval) {
	c, i := s.find(start)
	for c < len(s.chunks) && s.chunks[c][i].Start < end {
		iv := s.chunks[c][i]
		var keep []Interval
		mid := iv
		if iv.Start < start {
			left := iv
			left.End = start
			keep = append(keep, left)
			mid.Start, mid.rest = start, true
		}
		if iv.End > end {
			right := iv
			right.Start = end
			right.rest = iv.rest || iv.Start < start
			keep = append(keep, right)
			mid.End = end
			if iv.Start >= start { // the piece that stays in place is the one that counts
				mid.rest = true
			}
		}
		out = append(out, mid)
		s.chunks[c] = slices.Replace(s.chunks[c], i, i+1, keep...)
		i += len(keep)
		if len(s.chunks[c]) == 0 {
			s.chunks = slices.Delete(s.chunks, c, c+1)
			i = 0
		} else if i == len(s.chunks[c]) {
			c, i = c+1, 0
		}
		if iv.End >= end {
			break
		}
	}
	return out
}

// put inserts an interval where nothing is.
func (s *spans) put(iv Interval) {
	if len(s.chunks) == 0 {
		s.chunks = [][]Interval{{iv}}
		return
	}
	c, i := s.find(iv.Start)
	if c == len(s.chunks) {
		c--
		i = len(s.chunks[c])
	}
	s.chunks[c] = slices.Insert(s.chunks[c], i, iv)
	if n := len(s.chunks[c]); n > 2*chunkSize {
		second := slices.Clone(s.chunks[c][n/2:])
		s.chunks[c] = s.chunks[c][:n/2]
		s.chunks = slices.Insert(s.chunks, c+1, second)
	}
}
