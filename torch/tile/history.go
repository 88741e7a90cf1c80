// Package tile cuts the history of a device into pieces to draw. A piece, a
// tile, covers a few hundred columns of a picture; each column covers many
// events and shows the one at which most was live, so that what is drawn is
// always a state that was. Memory is stacked in bands, one for each group of
// allocations (a line of code, a pool) and fate (alive at the snapshot, or
// freed). Their order is the same at every scale: zooming refines, nothing
// moves.
//
// It draws nothing itself: [Tile.Encode] writes the numbers as the page reads
// them, in the format of ui/WIRE.md. Both ends must change together.
//
// Sizes are requested bytes, or those of the allocator's blocks; the state of an
// event is the one after it.
package tile

import (
	"math"
	"sort"
	"sync/atomic"

	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A History is a device's timeline with what makes any event and any range of
// events quick to find. It is safe for concurrent use.
type History struct {
	*timeline.Timeline
	sizes []int64           // of the allocations, nil if they count as requested
	makes [256]bool         // the actions that make an allocation
	at    []int32           // the allocation that an event makes or frees, none if it does neither
	also  map[int32][]int32 // more that it makes or ends, where it is not one alone
	total []int64           // live after event k-1
	high  pyramid
	low   pyramid
	taken steps // reserved memory

	lastDeath []int32 // of each blockLen allocations, math.MaxInt32 if one lives on
	leaking   *atomic.Pointer[map[stack.Site]bool]
}

const (
	none     = -1
	blockLen = 64
)

// NewHistory prepares a timeline for drawing.
func NewHistory(t *timeline.Timeline) *History { return newHistory(t, nil, snapshot.Alloc) }

// DriverHistory is the history of what the driver gave, whose allocations are parts of
// segments; see [timeline.Timeline.Driver].
func DriverHistory(t *timeline.Timeline) *History {
	driver, sizes := t.Driver()
	return newHistory(driver, sizes, snapshot.SegmentAlloc, snapshot.SegmentMap)
}

func newHistory(t *timeline.Timeline, sizes []int64, makes ...snapshot.Action) *History {
	h := &History{Timeline: t, sizes: sizes, at: make([]int32, t.Trace.Len()), taken: stepsOf(t), leaking: new(atomic.Pointer[map[stack.Site]bool])}
	for k := range h.at {
		h.at[k] = none
	}
	for _, a := range makes {
		h.makes[a] = true
	}
	h.link()
	h.sum()
	return h
}

// Measured is the same history with other sizes of its allocations.
func (h *History) Measured(sizes []int64) *History {
	out := *h
	out.sizes = sizes
	out.sum()
	return &out
}

// SetLeaking names the sites that leak, in this history and all that are measured from it.
// Bands by purpose that were made before do not change.
func (h *History) SetLeaking(sites map[stack.Site]bool) { h.leaking.Store(&sites) }

// Purpose is what allocation i is for if it was made for p: "leaked" if a site that leaks
// keeps it, "not yet freed" if nothing but its end would show what it is for. What a pass
// in progress needs is still to be freed.
func (h *History) Purpose(i int, p purpose.Purpose) string {
	if h.FateOf(i) != Kept {
		return p.String()
	}
	site := h.Snap.Stacks.Site(h.Stack(i))
	switch sites := h.leaking.Load(); {
	case sites != nil && p != purpose.Activations && (*sites)[site]:
		return "leaked"
	case p == purpose.Unknown && !h.Before(i) && site != (stack.Site{}):
		return purpose.NotFreed
	}
	return p.String()
}

// Size is the bytes of allocation i.
func (h *History) Size(i int) int64 {
	if h.sizes != nil {
		return h.sizes[i]
	}
	return h.Timeline.Size(i)
}

// link ties events to allocations. An event that makes one is tied to that first: it may
// also end what was at the address. Calls of the driver end what several others took.
func (h *History) link() {
	n := len(h.Allocs)
	h.lastDeath = make([]int32, (n+blockLen-1)/blockLen)
	for i := range n {
		birth, freed, death := h.Birth(i), h.Freed(i), h.Death(i)
		h.tie(birth, i)
		if freed != death {
			h.tie(freed, i)
		}
		h.tie(death, i)
		last := int32(math.MaxInt32)
		if death >= 0 {
			last = int32(death)
		}
		h.lastDeath[i/blockLen] = max(h.lastDeath[i/blockLen], last)
	}
}

func (h *History) tie(k, alloc int) {
	if k < 0 {
		return
	}
	i, other := int32(alloc), h.at[k]
	if other == none {
		h.at[k] = i
		return
	}
	if h.also == nil {
		h.also = map[int32][]int32{}
	}
	if h.Birth(alloc) == k && h.Birth(int(other)) != k {
		h.at[k], i = i, other
	}
	h.also[int32(k)] = append(h.also[int32(k)], i)
}

// changes calls f for the events from … to-1 that change what is live, with the
// allocation and the bytes.
func (h *History) changes(from, to int, f func(k int, alloc int32, bytes int64)) {
	actions := h.Trace.Action
	for k := from; k < to; k++ {
		i := h.at[k]
		if i < 0 {
			continue
		}
		if h.makes[actions[k]] {
			f(k, i, h.Size(int(i)))
		} else if h.Death(int(i)) == k {
			f(k, i, -h.Size(int(i)))
		}
		if h.also == nil {
			continue
		}
		for _, i := range h.also[int32(k)] {
			switch k {
			case h.Birth(int(i)):
				f(k, i, h.Size(int(i)))
			case h.Death(int(i)):
				f(k, i, -h.Size(int(i)))
			}
		}
	}
}

// made calls f for the allocations that the events from … to make, both included.
func (h *History) made(from, to int, f func(i int)) {
	h.changes(max(from, 0), min(to, h.Events()-1)+1, func(k int, i int32, _ int64) {
		if h.Birth(int(i)) == k {
			f(int(i))
		}
	})
}

// sum finds the totals.
func (h *History) sum() {
	h.total = make([]int64, len(h.at)+1)
	var live int64
	for i := range h.Allocs {
		if !h.Before(i) {
			break
		}
		live += h.Size(i)
	}
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
	h.high, h.low = newPyramid(h.total[1:], larger), newPyramid(h.total[1:], smaller)
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

// Peak is the first moment at which most was live.
func (h *History) Peak() timeline.Point {
	p := timeline.Point{Event: timeline.Never, Bytes: h.Live(timeline.Never)}
	if h.Events() > 0 {
		if k := h.highest(0, h.Events()); h.Live(k) > p.Bytes {
			p = timeline.Point{Event: k, Bytes: h.Live(k)}
		}
	}
	return p
}

// Highest is the first event of from … to-1 at which most was live.
func (h *History) highest(from, to int) int { return h.high.best(from, to) }

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
