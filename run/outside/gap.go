package outside

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"strandline/host/calls/event"
	"strandline/host/gpu/cudaalloc"
	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/snapshot"
)

// A Gap is a time in which events came faster than they could be read.
type Gap struct {
	From, To time.Time
	Lost     int // events
	// Closed reports whether what the allocator held afterwards could be read: from then
	// on the history is right again.
	Closed bool
}

// lose notes that events were lost since the time of the poll before.
func (s *session) lose(lost int, since time.Time) {
	more := lost - s.result.Lost
	s.result.Lost = lost
	if more <= 0 {
		return
	}
	if n := len(s.result.Gaps); n == 0 || s.result.Gaps[n-1].Closed {
		s.result.Gaps = append(s.result.Gaps, Gap{From: since})
	}
	g := &s.result.Gaps[len(s.result.Gaps)-1]
	g.To, g.Lost = time.Now(), g.Lost+more
}

// open returns the gap that is not closed, or nil.
func (s *session) open() *Gap {
	if n := len(s.result.Gaps); n > 0 && !s.result.Gaps[n-1].Closed {
		return &s.result.Gaps[n-1]
	}
	return nil
}

// closeGap closes a gap, if at this moment nothing is requested.
func (s *session) closeGap() error {
	g := s.open()
	if g == nil || !s.history.begun {
		return nil
	}
	lost := s.result.Lost
	state, events, err := s.attempt()
	if err != nil || state == nil {
		return err
	}
	if err := s.reach(events); err != nil || s.result.Lost != lost {
		return err
	}
	s.history.correct(*state, event.Now())
	g.Closed = true
	return nil
}

// correct adds what was lost of a history, all at one time: afterwards what is live
// and what was taken from the driver is what the allocator holds.
func (h *history) correct(state []cudaalloc.Segment, at uint64) {
	held, taken := map[uint64]cudaalloc.Block{}, map[uint64]*cudaalloc.Segment{}
	var pages []span
	for i := range state {
		s := &state[i]
		if s.Expandable {
			pages = append(pages, span{s.Addr, s.Addr + s.Size, s.Stream, uint8(s.Device)})
		} else {
			taken[s.Addr] = s
		}
		for _, b := range s.Blocks {
			if b.Allocated {
				held[b.Addr] = b
			}
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(h.live)) {
		if b, ok := held[addr]; !ok || b.Requested != h.live[addr].size {
			h.release(at, addr, h.live[addr], stack.None)
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(h.segments)) {
		if old := h.segments[addr]; taken[addr] == nil || taken[addr].Size != old.size {
			delete(h.segments, addr)
			h.append(entry{at, addr, old.size, old.stream, stack.None, snapshot.SegmentFree, old.device})
		}
	}
	h.remap(pages, at)
	for _, addr := range slices.Sorted(maps.Keys(taken)) {
		if s := taken[addr]; h.segments[addr] == (segment{}) {
			h.segments[addr] = segment{size: s.Size, stream: s.Stream, device: uint8(s.Device)}
			h.append(entry{at, addr, s.Size, s.Stream, stack.None, snapshot.SegmentAlloc, uint8(s.Device)})
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(held)) {
		if b := held[addr]; h.live[addr] == nil {
			h.live[addr] = &block{size: b.Requested, stream: b.Stream, device: uint8(b.Device)}
			h.append(entry{at, addr, b.Requested, b.Stream, stack.None, snapshot.Alloc, uint8(b.Device)})
		}
	}
	h.open = map[uint32]*request{}
}

// remap adds the pages that were mapped and unmapped unseen.
func (h *history) remap(pages []span, at uint64) {
	known := append(slices.Collect(maps.Values(h.pages)), h.runs...)
	for _, p := range without(known, pages) {
		h.append(entry{at, p.from, p.to - p.from, p.stream, stack.None, snapshot.SegmentUnmap, p.device})
	}
	for _, p := range without(pages, known) {
		h.mapped = append(h.mapped, p)
		h.append(entry{at, p.from, p.to - p.from, p.stream, stack.None, snapshot.SegmentMap, p.device})
	}
	h.runs, h.pages = pages, map[uint64]span{}
}

// without returns the parts of some spans that are in none of others, by address.
func without(spans, others []span) (out []span) {
	out = slices.Clone(spans)
	for _, o := range others {
		var left []span
		for _, s := range out {
			if o.to <= s.from || s.to <= o.from {
				left = append(left, s)
				continue
			}
			if s.from < o.from {
				left = append(left, span{s.from, o.from, s.stream, s.device})
			}
			if o.to < s.to {
				left = append(left, span{o.to, s.to, s.stream, s.device})
			}
		}
		out = left
	}
	sorts.By(out, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	return out
}
