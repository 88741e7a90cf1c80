// Package ranges keeps ranges of addresses that do not overlap, in order: what a
// driver has given, which pool a piece of memory belongs to, what is free.
//
// The ranges are kept in slices of bounded length, so that a change moves few of
// them, however many there are.
package ranges

import (
	"iter"
	"slices"
	"sort"
)

// A Range is the addresses from Start to End-1, and what is known of them.
type Range[V any] struct {
	Start, End uint64
	Value      V
}

// Len is the number of addresses.
func (r *Range[V]) Len() uint64 { return r.End - r.Start }

// A List holds ranges by address. The zero List is empty.
type List[V any] struct {
	chunks []chunk[V]
	n      int
}

type chunk[V any] struct {
	ranges  []Range[V]
	longest uint64 // the length of the longest range, 0 if it is not known
}

const chunkSize = 256

// Len is the number of ranges.
func (l *List[V]) Len() int { return l.n }

// find is the place of the first range that ends behind addr.
func (l *List[V]) find(addr uint64) (c, i int) {
	c = sort.Search(len(l.chunks), func(c int) bool {
		in := l.chunks[c].ranges
		return in[len(in)-1].End > addr
	})
	if c < len(l.chunks) {
		in := l.chunks[c].ranges
		i = sort.Search(len(in), func(i int) bool { return in[i].End > addr })
	}
	return c, i
}

// At returns the range that contains addr.
func (l *List[V]) At(addr uint64) (r Range[V], ok bool) {
	if r, ok = l.From(addr); ok && r.Start <= addr {
		return r, true
	}
	return Range[V]{}, false
}

// From returns the first range that ends behind addr.
func (l *List[V]) From(addr uint64) (r Range[V], ok bool) {
	c, i := l.find(addr)
	if c == len(l.chunks) {
		return r, false
	}
	return l.chunks[c].ranges[i], true
}

// All yields the ranges.
func (l *List[V]) All() iter.Seq[Range[V]] { return l.AtLeast(0, 0) }

// AtLeast yields the ranges that end behind addr and are at least that long. The
// list must not change meanwhile.
func (l *List[V]) AtLeast(addr, length uint64) iter.Seq[Range[V]] {
	return func(yield func(Range[V]) bool) {
		for c, i := l.find(addr); c < len(l.chunks); c, i = c+1, 0 {
			if length > 0 && l.chunks[c].longestRange() < length {
				continue
			}
			for _, r := range l.chunks[c].ranges[i:] {
				if r.Len() >= length && !yield(r) {
					return
				}
			}
		}
	}
}

func (c *chunk[V]) longestRange() uint64 {
	if c.longest == 0 {
		for i := range c.ranges {
			c.longest = max(c.longest, c.ranges[i].Len())
		}
	}
	return c.longest
}

// Put adds a range in place of what is there. An empty one is left out.
func (l *List[V]) Put(start, end uint64, v V) {
	if end <= start {
		return
	}
	l.Cut(start, end)
	r := Range[V]{start, end, v}
	l.n++
	if len(l.chunks) == 0 {
		l.chunks = []chunk[V]{{ranges: []Range[V]{r}}}
		return
	}
	c, i := l.find(start)
	if c == len(l.chunks) { // behind all
		c--
		i = len(l.chunks[c].ranges)
	}
	l.replace(c, i, i, r)
}

// Join adds a range and makes one of it and of those that begin or end where it
// ends or begins.
func (l *List[V]) Join(start, end uint64, v V) {
	if end <= start {
		return
	}
	if r, ok := l.At(start - 1); ok && start > 0 {
		start = r.Start
	}
	if r, ok := l.At(end); ok {
		end = r.End
	}
	l.Put(start, end, v)
}

// Cut takes a range out and returns how many addresses of it were there.
func (l *List[V]) Cut(start, end uint64) (n uint64) {
	if end <= start {
		return 0
	}
	for c, i := l.find(start); c < len(l.chunks); i = 0 {
		in := l.chunks[c].ranges
		j := i
		var rest []Range[V]
		for ; j < len(in) && in[j].Start < end; j++ {
			r := in[j]
			n += min(r.End, end) - max(r.Start, start)
			if r.Start < start {
				rest = append(rest, Range[V]{r.Start, start, r.Value})
			}
			if end < r.End {
				rest = append(rest, Range[V]{end, r.End, r.Value})
			}
		}
		more := j == len(in)
		if i < j {
			l.n += len(rest) - (j - i)
			if !l.replace(c, i, j, rest...) {
				continue // the next chunk has its place
			}
		}
		if !more {
			break
		}
		c++
	}
	return n
}

// replace changes a chunk. It returns false if nothing is left of it.
func (l *List[V]) replace(c, i, j int, by ...Range[V]) bool {
	x := &l.chunks[c]
	x.ranges, x.longest = slices.Replace(x.ranges, i, j, by...), 0
	switch n := len(x.ranges); {
	case n == 0:
		l.chunks = slices.Delete(l.chunks, c, c+1)
		return false
	case n > chunkSize:
		half := chunk[V]{ranges: slices.Clone(x.ranges[n/2:])}
		x.ranges = x.ranges[:n/2]
		l.chunks = slices.Insert(l.chunks, c+1, half)
	}
	return true
}
