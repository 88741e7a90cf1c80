// Package tile cuts the history of a device into pieces to draw. A piece, a
// tile, covers some hundred columns of a picture; each column stands for many
// events and shows the one at which most was live, so that what is drawn is
// always a state that was. Memory is stacked in bands, one for each group of
// allocations (a line of code, a pool) and fate (alive at the snapshot, or
// freed). Their order is the same at every scale: zooming refines, nothing
// moves.
//
// All sizes are requested bytes; the state of an event is the one after it.
package tile

import (
	"math"
	"sort"

	"strandline/snapshot"
	"strandline/timeline"
)

// A History is a device's timeline with what makes any event and any range of
// events quick to find. It is safe for concurrent use.
type History struct {
	*timeline.Timeline
	at    []int32 // the allocation that an event makes or frees, none if it does neither
	total []int64 // live after event k-1
	high  pyramid
	low   pyramid
	taken steps // reserved memory

	lastDeath []int32           // of each blockLen allocations, math.MaxInt32 if one lives on
	odd       map[int32][]delta // events whose change of the total is not their size
}

const (
	none     = -1
	blockLen = 64
)

// delta is what an event does to the live bytes of an allocation.
type delta struct {
	alloc int32
	bytes int64
}

// NewHistory prepares a timeline for drawing.
func NewHistory(t *timeline.Timeline) *History {
	h := &History{Timeline: t, at: make([]int32, t.Trace.Len()), total: make([]int64, t.Trace.Len()+1)}
	for k := range h.at {
		h.at[k] = none
	}
	h.link()
	h.sum()
	h.high, h.low = newPyramid(h.total[1:], larger), newPyramid(h.total[1:], smaller)
	h.taken = stepsOf(t)
	return h
}

// link ties events to allocations, and finds the odd ones: an allocation at an
// address in use ends what was there; a free can state another size.
func (h *History) link() {
	n := len(h.Allocs)
	h.lastDeath = make([]int32, (n+blockLen-1)/blockLen)
	e := &h.Trace.Events
	for i := range n {
		birth, freed, death := h.Birth(i), h.Freed(i), h.Death(i)
		if birth >= 0 {
			h.at[birth] = int32(i)
		}
		if freed >= 0 {
			h.at[freed] = int32(i)
		}
		last := int32(math.MaxInt32)
		if death >= 0 {
			last = int32(death)
			if e.Action[death] == snapshot.Alloc {
				h.addOdd(death, delta{int32(i), -h.Size(i)})
			} else if h.at[death] = int32(i); e.Size[death] != h.Size(i) {
				h.addOdd(death, delta{int32(i), e.Size[death] - h.Size(i)})
			}
		}
		h.lastDeath[i/blockLen] = max(h.lastDeath[i/blockLen], last)
	}
}

func (h *History) addOdd(k int, d delta) {
	if h.odd == nil {
		h.odd = map[int32][]delta{}
	}
	h.odd[int32(k)] = append(h.odd[int32(k)], d)
}

// changes calls f for the events from … to-1 that change what is live, with the
// allocation and the bytes.
func (h *History) changes(from, to int, f func(k int, alloc int32, bytes int64)) {
	e := &h.Trace.Events
	for k := from; k < to; k++ {
		i := h.at[k]
		if i < 0 {
			continue
		}
		if e.Action[k] == snapshot.Alloc {
			f(k, i, e.Size[k])
		} else if h.Death(int(i)) == k {
			f(k, i, -e.Size[k])
		}
		if h.odd != nil {
			for _, d := range h.odd[int32(k)] {
				f(k, d.alloc, d.bytes)
			}
		}
	}
}

func (h *History) sum() {
	live := h.StartRequested
	next := 0
	h.changes(0, len(h.at), func(k int, _ int32, bytes int64) {
		for ; next <= k; next++ {
			h.total[next] = live
		}
		live += bytes
	})
	for ; next < len(h.total); next++ {
		h.total[next] = live
	}
}

// Events is the number of events.
func (h *History) Events() int { return len(h.at) }

// Live is the bytes live after event k; timeline.Never is the moment before the
// first.
func (h *History) Live(k int) int64 { return h.total[k+1] }

// Reserved is the bytes of segments after event k.
func (h *History) Reserved(k int) int64 { return h.taken.after(k) }

// Made is the allocation that event k makes or frees.
func (h *History) Made(k int) (int, bool) {
	if k < 0 || h.at[k] < 0 {
		return 0, false
	}
	return int(h.at[k]), true
}

// Highest is the first event of from … to-1 at which most was live.
func (h *History) Highest(from, to int) int { return h.high.best(from, to) }

// EachLive calls f for the allocations that live after event k, by birth, until
// it returns false.
func (h *History) EachLive(k int, f func(i int) bool) {
	for block, last := range h.lastDeath {
		if int(last) <= k {
			continue
		}
		for i := block * blockLen; i < min((block+1)*blockLen, len(h.Allocs)); i++ {
			if h.Birth(i) > k {
				return
			}
			if death := h.Death(i); death == timeline.Never || death > k {
				if !f(i) {
					return
				}
			}
		}
	}
}

// A pyramid finds the best of a range of values: its level 0 is the values, and
// each level above holds the best of fan of the one below.
type pyramid struct {
	better func(a, b int64) bool
	levels [][]int64
}

const (
	fanBits = 4
	fan     = 1 << fanBits
)

func larger(a, b int64) bool  { return a > b }
func smaller(a, b int64) bool { return a < b }

func newPyramid(values []int64, better func(a, b int64) bool) pyramid {
	p := pyramid{better, [][]int64{values}}
	for below := values; len(below) > fan; {
		above := make([]int64, (len(below)+fan-1)/fan)
		for i := range above {
			best := below[i*fan]
			for _, v := range below[i*fan : min((i+1)*fan, len(below))] {
				if better(v, best) {
					best = v
				}
			}
			above[i] = best
		}
		p.levels = append(p.levels, above)
		below = above
	}
	return p
}

// best is the first index of the best value of from … to-1, which is not empty.
func (p *pyramid) best(from, to int) int {
	best, at, level := p.levels[0][from], from, 0
	consider := func(i, l int) {
		v, place := p.levels[l][i], i<<(fanBits*l)
		if p.better(v, best) || v == best && place < at<<(fanBits*level) {
			best, at, level = v, i, l
		}
	}
	for l := 0; from < to; l++ {
		top := l+1 == len(p.levels)
		for ; from < to && (top || from%fan != 0); from++ {
			consider(from, l)
		}
		for ; to > from && (top || to%fan != 0); to-- {
			consider(to-1, l)
		}
		from, to = from/fan, to/fan
	}
	for ; level > 0; level-- {
		at *= fan
		for p.levels[level-1][at] != best {
			at++
		}
	}
	return at
}

// steps is a value that changes at few events.
type steps struct {
	event []int32 // of each change, none for the start
	value []int64 // from then on
}

func stepsOf(t *timeline.Timeline) steps {
	s := steps{[]int32{none}, []int64{t.StartReserved}}
	t.Walk(func(k int, _, reserved int64) bool {
		if reserved != s.value[len(s.value)-1] {
			s.event, s.value = append(s.event, int32(k)), append(s.value, reserved)
		}
		return true
	})
	return s
}

// index is the last step at event k or before.
func (s *steps) index(k int) int {
	return sort.Search(len(s.event), func(i int) bool { return int(s.event[i]) > k }) - 1
}

func (s *steps) after(k int) int64 { return s.value[s.index(k)] }

// highest is the highest value after one of the events from … to-1.
func (s *steps) highest(from, to int) int64 {
	i := s.index(from)
	best := s.value[i]
	for i++; i < len(s.event) && int(s.event[i]) < to; i++ {
		best = max(best, s.value[i])
	}
	return best
}
