package tile

import (
	"sort"

	"strandline/torch/snapshot"
)

// places are the pool and the stream of each allocation.
type places struct {
	h        *History
	segments []*snapshot.Segment // of the device, by address
}

func newPlaces(h *History) *places {
	p := &places{h: h}
	for i := range h.Snap.Segments {
		if s := &h.Snap.Segments[i]; s.Device == h.Device {
			p.segments = append(p.segments, s)
		}
	}
	sort.Slice(p.segments, func(a, b int) bool { return p.segments[a].Addr < p.segments[b].Addr })
	return p
}

// of is the pool and the stream of allocation i; ok is false if neither the
// events nor the final segments show.
func (p *places) of(i int) (pool snapshot.Pool, stream uint64, ok bool) {
	s, addr := p.h.Snap, p.h.Addr(i)
	n := sort.Search(len(p.segments), func(n int) bool { return p.segments[n].Addr > addr }) - 1
	if n >= 0 && p.segments[n].Contains(addr) {
		pool, stream, ok = s.PoolOf(p.segments[n].Pool), s.Stream(p.segments[n].Stream), true
	}
	if birth := p.h.Birth(i); birth >= 0 {
		stream = s.Stream(p.h.Trace.Stream[birth])
		if p.h.Trace.Pool != nil {
			pool, ok = s.PoolOf(p.h.Trace.Pool[birth]), true
		}
	}
	return pool, stream, ok
}

// PlaceOf is the pool and the stream of allocation i; ok is false if its pool is
// not known.
func (h *History) PlaceOf(i int) (pool snapshot.Pool, stream uint64, ok bool) {
	return newPlaces(h).of(i)
}
