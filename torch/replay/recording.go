// Package replay runs a recorded history through the allocator: as it was, to
// see that every call of the driver is reproduced, and under other settings, to
// see what they would have done. It does not run the program: requests and their
// order stay the recorded ones.
//
// A [Recording] is the history of one device, made ready. [Recording.Replay]
// settles what the file does not hold and returns a [Result]; [Result.WhatIf]
// simulates a [Scenario].
//
// A replay need not be exact. [Result.Difference] is nil only if it is;
// otherwise figures are valid up to the event of the difference, see [Result.Exactly].
package replay

import (
	"math"
	"slices"
	"strings"

	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/ranges"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// never is the event of what did not happen.
const never = timeline.Never

// A Recording is the history of one device, made ready for the allocator.
type Recording struct {
	*timeline.Timeline
	Settings allocator.Settings // the file's own
	Version  allocator.Version

	slot   []int32                  // of the allocation that an event makes or frees, otherwise never
	slots  int                      // as many as allocations ever live at a time
	older  int                      // allocations from before the first event, which have the first slots
	start  []allocator.Segment      // before the first event
	doubt  []doubt                  // blocks at the start whose size is not certain
	pools  map[int]allocator.PoolID // private ones, by the event that took the memory, or ^index of a segment of the start
	calls  []int32                  // events that are calls of the driver
	opened map[stack.ID]bool        // stacks that call empty_cache
	placed map[int]bool             // events of requests at an address
	whole  []allocator.PoolID       // private pools whose segments are not split
}

// NewRecording makes the history that a timeline follows ready for the allocator.
func NewRecording(t *timeline.Timeline) *Recording {
	r := &Recording{Timeline: t, Version: VersionOf(t.Snap), opened: map[stack.ID]bool{}}
	if t.Snap.Settings != nil {
		r.Settings = allocator.FromSnapshot(t.Snap.Settings, r.Version)
	} else { // what the events show
		r.Settings = allocator.DefaultSettings()
		r.Settings.Expandable = slices.Contains(t.Trace.Action, snapshot.SegmentMap)
	}
	r.Settings.Ascend = t.Snap.Ascend()
	r.index()
	r.begin()
	r.label()
	r.placed = r.Snap.Placed(r.Trace)
	r.findWhole()
	return r
}

// index gives each allocation a slot while it lives, so that a run needs memory
// for those that live at a time and not for all that there ever were.
func (r *Recording) index() {
	r.slot = make([]int32, r.Trace.Len())
	for k := range r.slot {
		r.slot[k] = never
	}
	var spare []int32
	var holders []int // of slots: allocations
	take := func(i int) int32 {
		s := int32(len(holders))
		if n := len(spare); n > 0 {
			s, spare = spare[n-1], spare[:n-1]
			holders[s] = i
		} else {
			holders = append(holders, i)
		}
		for _, k := range []int{r.Freed(i), r.Death(i)} {
			if k != never {
				r.slot[k] = s
			}
		}
		return s
	}
	for r.older < len(r.Allocs) && r.Before(r.older) {
		take(r.older)
		r.older++
	}
	next := r.older
	for k, a := range r.Trace.Action {
		switch s := r.slot[k]; {
		case a == snapshot.Alloc:
			r.slot[k] = take(next)
			next++
		case s != never && r.Death(holders[s]) == k:
			spare = append(spare, s)
		}
	}
	r.slots = len(holders)
	for k, a := range r.Trace.Action {
		switch a {
		case snapshot.SegmentAlloc, snapshot.SegmentFree, snapshot.SegmentMap, snapshot.SegmentUnmap:
			r.calls = append(r.calls, int32(k))
		}
	}
}

// label finds the private pools of what was taken from the driver: those of the
// final state if it is still there, otherwise what the events state, which they do from
// PyTorch 2.12 on.
func (r *Recording) label() {
	s, e := r.Snap, &r.Trace.Events
	r.pools = map[int]allocator.PoolID{}
	for i := range r.start {
		if p := r.start[i].Pool; p.Private() {
			r.pools[^i] = p
		}
	}
	if e.Pool != nil {
		for _, k := range r.calls {
			if p := s.PoolOf(e.Pool[k]); p.Private() {
				r.pools[int(k)] = allocator.PoolID(p)
			}
		}
		return
	}
	var owner ranges.List[allocator.PoolID]
	for _, i := range r.SegmentIndices() {
		g := &s.Segments[i]
		if p := s.PoolOf(g.Pool); p.Private() {
			owner.Put(g.Addr, end(g.Addr, g.TotalSize), allocator.PoolID(p))
		}
	}
	for _, k := range slices.Backward(r.calls) {
		if owner.Len() == 0 {
			break
		}
		if p, ok := owner.At(e.Addr[k]); ok {
			r.pools[int(k)] = p.Value
		}
		owner.Cut(e.Addr[k], end(e.Addr[k], e.Size[k]))
	}
}

// findWhole finds the private pools whose segments are not split: each is one block in
// the final state, and one in use is larger than its request explains.
func (r *Recording) findWhole() {
	split, large := map[allocator.PoolID]bool{}, map[allocator.PoolID]bool{}
	for _, i := range r.SegmentIndices() {
		g := &r.Snap.Segments[i]
		p := allocator.PoolID(r.Snap.PoolOf(g.Pool))
		if !p.Private() || len(g.Blocks) == 0 {
			continue
		}
		b := &g.Blocks[0]
		rest := b.Size - r.Settings.Round(b.Requested)
		split[p] = split[p] || len(g.Blocks) > 1
		large[p] = large[p] || b.State.Active() && rest >= allocator.Granule &&
			(r.Snap.String(g.Type) == "small" || rest > allocator.SmallLimit && b.Size < r.Settings.MaxSplitSize)
	}
	for p := range large {
		if large[p] && !split[p] {
			r.whole = append(r.whole, p)
		}
	}
}

// end is the address behind some bytes, the last one where there is none.
func end(addr uint64, size int64) uint64 {
	if to := addr + uint64(max(size, 0)); to >= addr {
		return to
	}
	return math.MaxUint64
}

// empties reports whether a stack is of a call of empty_cache.
func (r *Recording) empties(id stack.ID) bool {
	if id == stack.None {
		return false
	}
	is, known := r.opened[id]
	if !known {
		for _, f := range r.Snap.Stacks.Stack(id) {
			if strings.Contains(f.Function, "empty_cache") || strings.Contains(f.Function, "emptyCache") {
				is = true
				break
			}
		}
		r.opened[id] = is
	}
	return is
}

// streams are the names that an allocator has for the streams of a snapshot.
type streams struct {
	snap  *snapshot.Snapshot
	a     *allocator.Allocator
	named []allocator.Stream // plus 1, by index; 0 where not asked for yet
}

func (s *streams) of(id snapshot.StreamID) allocator.Stream {
	if int(id) >= len(s.named) {
		s.named = append(s.named, make([]allocator.Stream, int(id)+1-len(s.named))...)
	}
	if s.named[id] == 0 {
		s.named[id] = s.a.Stream(s.snap.Stream(id)) + 1
	}
	return s.named[id] - 1
}
