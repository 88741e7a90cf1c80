package outside

import (
	"slices"

	"strandline/host/calls/event"
	"strandline/host/gpu/cudaalloc"
	"strandline/stack"
	"strandline/torch/snapshot"
)

// A history holds the events of a process in PyTorch's terms, and what is live
// according to them.
type history struct {
	entries    []entry
	maxEntries int
	first      int // entries that were left out before those that are kept
	begun      bool
	live       map[uint64]*block
	gone       map[uint64]bool     // addresses that were returned before the begin
	segments   map[uint64]segment  // by the address that the driver gave
	mapped     []span              // what is mapped, or was
	runs       []span              // what was mapped when that was read last, and still is
	pages      map[uint64]span     // what was mapped since, by address
	open       map[uint32]*request // by thread

	requests, frees, driver, failed, dropped, unknown int
}

// An entry is an event.
type entry struct {
	time   uint64
	addr   uint64
	size   uint64
	stream uint64
	stack  stack.ID
	action snapshot.Action
	device uint8
}

// A block is one that the program has.
type block struct {
	size   uint64 // requested
	stream uint64
	stack  stack.ID
	device uint8
}

type segment struct {
	size   uint64
	stream uint64
	stack  stack.ID
	device uint8
}

// A span is what the driver mapped for one stream.
type span struct {
	from, to uint64
	stream   uint64
	device   uint8
}

// A request is what a thread asked the driver for within one request that is not over.
type request struct{ entries []int }

func newHistory(maxEntries int) *history {
	return &history{maxEntries: maxEntries, live: map[uint64]*block{}, gone: map[uint64]bool{}, segments: map[uint64]segment{}, pages: map[uint64]span{}, open: map[uint32]*request{}}
}

// begin begins the history at a moment at which the allocator held what is given;
// with nil at one at which that is not known. Of what was requested before, the
// stacks are kept.
func (h *history) begin(state []cudaalloc.Segment, at uint64) {
	early := h.live
	*h = *newHistory(h.maxEntries)
	h.begun = true
	if state == nil {
		h.live = early
		return
	}
	for i := range state {
		s := &state[i]
		if s.Expandable {
			h.mapped = append(h.mapped, span{s.Addr, s.Addr + s.Size, s.Stream, uint8(s.Device)})
			h.runs = append(h.runs, h.mapped[len(h.mapped)-1])
		} else {
			h.segments[s.Addr] = segment{size: s.Size, stream: s.Stream, device: uint8(s.Device)}
		}
		for _, b := range s.Blocks {
			if b.Pending { // its wait is over at the next request at the latest
				h.append(entry{at, b.Addr, b.Requested, b.Stream, stack.Empty, snapshot.FreeCompleted, uint8(b.Device)})
			}
			if !b.Allocated {
				continue
			}
			h.live[b.Addr] = &block{size: b.Requested, stream: b.Stream, device: uint8(b.Device)}
			if e := early[b.Addr]; e != nil {
				h.live[b.Addr].stack = e.stack
			}
		}
	}
}

// pend takes out the completions of releases that the allocator, at the end, has
// deferred.
func (h *history) pend(state []cudaalloc.Segment) {
	waits := map[uint64]bool{}
	for i := range state {
		for _, b := range state[i].Blocks {
			if b.Pending {
				waits[b.Addr] = true
			}
		}
	}
	for k := len(h.entries) - 1; k >= 0 && len(waits) > 0; k-- {
		if e := h.entries[k]; waits[e.addr] {
			delete(waits, e.addr)
			if e.action == snapshot.FreeCompleted {
				h.entries = slices.Delete(h.entries, k, k+1)
			}
		}
	}
}

// agrees reports whether the memory live by the events is what the allocator holds:
// all of it, otherwise as far as there were events.
func (h *history) agrees(state []cudaalloc.Segment, all bool) bool {
	held := map[uint64]bool{}
	for i := range state {
		for _, b := range state[i].Blocks {
			if b.Allocated {
				held[b.Addr] = true
				if h.gone[b.Addr] || all && h.live[b.Addr] == nil {
					return false
				}
			}
		}
	}
	for addr := range h.live {
		if !held[addr] {
			return false
		}
	}
	return true
}

// add adds an event, with its stack.
func (h *history) add(e *event.Request, id stack.ID) {
	switch e.Op {
	case event.RequestAlloc:
		h.alloc(e, id)
	case event.RequestFree:
		h.free(e, id)
	case event.RequestFailed:
		h.failed++
		delete(h.open, e.TID)
	case event.SegmentAlloc:
		h.driver++
		h.segments[e.Addr] = segment{size: e.Size, stream: e.Stream, device: uint8(e.Device)}
		h.within(e, snapshot.SegmentAlloc)
	case event.SegmentMap:
		h.mapping(e)
	case event.SegmentFree:
		if s, ok := h.segments[e.Addr]; ok {
			delete(h.segments, e.Addr)
			h.append(entry{e.Time, e.Addr, s.size, s.stream, id, snapshot.SegmentFree, s.device})
		}
	case event.SegmentUnmap:
		h.unmapping(e, id)
	}
}

func (h *history) alloc(e *event.Request, id stack.ID) {
	if old := h.live[e.Addr]; old != nil && h.begun { // its release was lost
		h.release(e.Time, e.Addr, old, stack.None)
	}
	if r := h.open[e.TID]; r != nil { // the driver was asked for this
		for _, k := range r.entries {
			if k < h.first {
				continue
			}
			x := &h.entries[k-h.first]
			x.stack = id
			if s, ok := h.segments[x.addr]; ok && x.action == snapshot.SegmentAlloc {
				s.stack = id
				h.segments[x.addr] = s
			}
		}
		delete(h.open, e.TID)
	}
	h.requests++
	delete(h.gone, e.Addr)
	h.live[e.Addr] = &block{e.Size, e.Stream, id, uint8(e.Device)}
	h.append(entry{e.Time, e.Addr, e.Size, e.Stream, id, snapshot.Alloc, uint8(e.Device)})
}

func (h *history) free(e *event.Request, id stack.ID) {
	b := h.live[e.Addr]
	if b == nil {
		h.unknown++
		if !h.begun {
			h.gone[e.Addr] = true
		}
		return
	}
	h.frees++
	h.release(e.Time, e.Addr, b, id)
}

func (h *history) release(at, addr uint64, b *block, id stack.ID) {
	delete(h.live, addr)
	if !h.begun {
		h.gone[addr] = true
	}
	h.append(entry{at, addr, b.size, b.stream, id, snapshot.FreeRequested, b.device})
	h.append(entry{at, addr, b.size, b.stream, id, snapshot.FreeCompleted, b.device})
}

// within adds what the driver gave within a request, whose stack is known when it is
// over.
func (h *history) within(e *event.Request, action snapshot.Action) {
	if !h.begun {
		return
	}
	r := h.open[e.TID]
	if r == nil {
		r = &request{}
		h.open[e.TID] = r
	}
	r.entries = append(r.entries, h.first+len(h.entries))
	h.append(entry{e.Time, e.Addr, e.Size, e.Stream, stack.Empty, action, uint8(e.Device)})
}

// mapping adds a page that the driver mapped within a request. PyTorch notes
// what it maps at once as one.
func (h *history) mapping(e *event.Request) {
	h.driver++
	here := span{e.Addr, e.Addr + e.Size, e.Stream, uint8(e.Device)}
	h.pages[e.Addr] = here
	if m := h.spanOf(e.Addr - 1); m != nil && m.stream == e.Stream {
		m.to = max(m.to, e.Addr+e.Size)
	} else {
		h.mapped = append(h.mapped, here)
	}
	if r := h.open[e.TID]; r != nil && len(r.entries) > 0 {
		if k := r.entries[len(r.entries)-1] - h.first; k >= 0 {
			if last := &h.entries[k]; last.action == snapshot.SegmentMap && last.addr+last.size == e.Addr {
				last.size += e.Size
				return
			}
		}
	}
	h.within(e, snapshot.SegmentMap)
}

// unmapping records that the driver is to unmap a page, if it is the allocator's.
func (h *history) unmapping(e *event.Request, id stack.ID) {
	m := h.spanOf(e.Addr)
	if m == nil {
		return
	}
	if _, new := h.pages[e.Addr]; new {
		delete(h.pages, e.Addr)
	} else {
		h.runs = without(h.runs, []span{{from: e.Addr, to: e.Addr + e.Size}})
	}
	if n := len(h.entries); n > 0 {
		last := &h.entries[n-1]
		if last.action == snapshot.SegmentUnmap && last.addr+last.size == e.Addr && last.stream == m.stream {
			last.size += e.Size
			return
		}
	}
	h.append(entry{e.Time, e.Addr, e.Size, m.stream, id, snapshot.SegmentUnmap, m.device})
}

// spanOf returns the span that contains an address, or did; the latest of several.
func (h *history) spanOf(addr uint64) *span {
	for i := len(h.mapped) - 1; i >= 0; i-- {
		if m := &h.mapped[i]; m.from <= addr && addr < m.to {
			return m
		}
	}
	return nil
}

// append adds an entry, and leaves out the oldest where there are too many.
func (h *history) append(e entry) {
	if !h.begun {
		return
	}
	if len(h.entries) >= h.maxEntries+h.maxEntries/4 {
		n := len(h.entries) - h.maxEntries
		h.entries = h.entries[:copy(h.entries, h.entries[n:])]
		h.first += n
		h.dropped += n
	}
	h.entries = append(h.entries, e)
}
