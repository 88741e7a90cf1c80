package replay

import (
	"fmt"
	"maps"
	"slices"

	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

// A Host is the history of pinned host memory, run through its allocator: each request
// takes the block of its size that was freed last, or a new one, which is never split.
// Sizes are those of blocks: a file does not state the requests behind them.
type Host struct {
	*timeline.Timeline
	Settings   allocator.Settings // the file's own
	Difference *Difference        // the first one; nil if the replay is exact

	Calls, CallsMet       int // of the driver: recorded, and reproduced
	Segments, SegmentsMet int // of the final state

	emptied map[int]bool       // events that release a block which the settings would keep
	raced   map[int]bool       // events that take a new block, though a thread had just freed one
	idle    map[blockClass]int // free blocks before the first event
}

// A HostRun is the outcome for pinned host memory under some settings, in bytes.
type HostRun struct {
	ReservedPeak, ActivePeak int64
	DriverCalls              int64
}

// blockClass is what blocks of pinned host memory have in common that serve the same
// requests.
type blockClass struct {
	pool snapshot.PoolID
	size int64
}

// hostPlayer holds the free blocks, of each class in the order in which they were freed.
type hostPlayer struct {
	*Host
	free  map[blockClass][]uint64
	class map[uint64]blockClass // of all blocks, by address
	older map[uint64]blockClass // free blocks from before the history, in unknown order
}

// ReplayHost runs the history of pinned host memory.
func ReplayHost(t *timeline.Timeline) *Host {
	h := &Host{Timeline: t, Settings: allocator.FromSnapshot(t.Snap.Settings, VersionOf(t.Snap)), emptied: map[int]bool{}, raced: map[int]bool{}, idle: map[blockClass]int{}}
	p := hostPlayer{h, map[blockClass][]uint64{}, map[uint64]blockClass{}, map[uint64]blockClass{}}
	p.begin()
	e := &t.Trace.Events
	for k := 0; k < e.Len() && h.Difference == nil; k++ {
		p.step(k)
	}
	for _, a := range e.Action {
		if a == snapshot.SegmentAlloc || a == snapshot.SegmentFree {
			h.Calls++
		}
	}
	h.Segments = len(t.SegmentIndices())
	if h.Difference == nil {
		p.end()
	}
	return h
}

// begin finds the blocks that were there before the history.
func (p *hostPlayer) begin() {
	made := map[uint64]bool{}
	see := func(addr uint64, c blockClass, free bool) {
		if made[addr] || p.class[addr] != (blockClass{}) {
			return
		}
		p.class[addr] = c
		if free {
			p.older[addr] = c
			p.idle[c]++
		}
	}
	e := &p.Trace.Events
	for k, a := range e.Action {
		c := p.classOf(k)
		switch a {
		case snapshot.SegmentAlloc:
			made[e.Addr[k]] = true
		case snapshot.SegmentFree, snapshot.Alloc:
			see(e.Addr[k], c, true)
		case snapshot.FreeRequested, snapshot.FreeCompleted:
			see(e.Addr[k], c, false)
		}
	}
	for _, i := range p.SegmentIndices() {
		g := &p.Snap.Segments[i]
		for _, b := range g.Blocks {
			see(b.Addr, blockClass{g.Pool, b.Size}, !b.State.Active())
		}
	}
}

func (h *Host) classOf(k int) blockClass {
	c := blockClass{size: h.Trace.Size[k]}
	if h.Trace.Pool != nil {
		c.pool = h.Trace.Pool[k]
	}
	return c
}

// step follows event k.
func (p *hostPlayer) step(k int) {
	e := &p.Trace.Events
	addr, c := e.Addr[k], p.classOf(k)
	switch e.Action[k] {
	case snapshot.SegmentAlloc:
		if list := p.free[c]; len(list) > p.overtaken(k) {
			p.differ(k, fmt.Sprintf("alloc at 0x%x", list[len(list)-1]))
			return
		} else if len(list) > 0 {
			p.raced[k] = true
		}
		p.class[addr] = c
		p.free[c] = append(p.free[c], addr)
		p.CallsMet++
	case snapshot.SegmentFree:
		at := slices.Index(p.free[c], addr)
		_, older := p.older[addr]
		if at < 0 && !older {
			p.differ(k, "no free block there")
			return
		}
		if older {
			delete(p.older, addr)
		} else {
			p.free[c] = slices.Delete(p.free[c], at, at+1)
		}
		p.emptied[k] = !p.kept(k, c)
		p.CallsMet++
	case snapshot.Alloc:
		list, late := p.free[c], p.overtaken(k)
		seen := max(0, len(list)-1-late)
		at := slices.Index(list[seen:], addr)
		switch {
		case at >= 0:
			p.free[c] = slices.Delete(list, seen+at, seen+at+1)
		case len(list) <= late && p.older[addr] == c:
			delete(p.older, addr)
		case len(list) > 0:
			p.differ(k, fmt.Sprintf("alloc at 0x%x", list[len(list)-1]))
		default:
			p.differ(k, "segment_alloc")
		}
	case p.Ends():
		p.free[c] = append(p.free[c], addr)
	}
}

// overtaken is the number of frees of the class of event k right before it that its
// request may not have seen: a background thread completes them in the meantime.
func (p *hostPlayer) overtaken(k int) (n int) {
	if !p.Settings.Host.BackgroundThreads {
		return 0
	}
	c := p.classOf(k)
	for k--; k >= 0 && p.Trace.Action[k] == p.Ends(); k-- {
		if p.classOf(k) == c {
			n++
		}
	}
	return n
}

// kept reports whether the release at event k is the rule for blocks too large to keep.
func (p *hostPlayer) kept(k int, c blockClass) bool {
	maxSize := p.Settings.Host.MaxCachedSize
	return k > 0 && maxSize != allocator.Unlimited && c.size > maxSize && p.Trace.Action[k-1] == p.Ends() && p.Trace.Addr[k-1] == p.Trace.Addr[k]
}

func (p *hostPlayer) differ(k int, replayed string) {
	e := &p.Trace.Events
	p.Difference = &Difference{
		Event: k, Recorded: fmt.Sprintf("%s of %s bytes at 0x%x", e.Action[k], units.Count(e.Size[k]), e.Addr[k]), Replayed: replayed,
		Reason: "no rule of the allocator of pinned host memory is known that does this",
	}
}

// end holds the final state against that of the file.
func (p *hostPlayer) end() {
	free := map[uint64]blockClass{}
	for c, list := range p.free {
		for _, addr := range list {
			free[addr] = c
		}
	}
	for _, i := range p.SegmentIndices() {
		g := &p.Snap.Segments[i]
		c, isFree := free[g.Addr]
		_, older := p.older[g.Addr]
		if len(g.Blocks) == 1 && g.Blocks[0].State.Active() == !(isFree || older) && (!isFree || c.size == g.TotalSize) {
			p.SegmentsMet++
		} else if p.Difference == nil {
			p.Difference = &Difference{Event: p.Trace.Len(), Recorded: fmt.Sprintf("a segment of %s bytes at 0x%x", units.Count(g.TotalSize), g.Addr),
				Replayed: "another state", Reason: "no rule of the allocator of pinned host memory is known that does this", atEnd: true}
		}
	}
}

// Under runs the history under other settings: sizes stay, so that a change of the
// rounding is not seen.
func (h *Host) Under(set allocator.Host) (out HostRun) {
	free, raced := maps.Clone(h.idle), map[blockClass]bool{}
	e := &h.Trace.Events
	reserved, active := h.StartReserved, h.StartRequested
	out.ReservedPeak, out.ActivePeak = reserved, active
	release := func(c blockClass, n int) {
		out.DriverCalls += int64(n)
		reserved -= int64(n) * c.size
	}
	for k, a := range e.Action {
		c := h.classOf(k)
		switch {
		case a == snapshot.Alloc:
			if free[c] > 0 && !raced[c] {
				free[c]--
			} else {
				out.DriverCalls++
				reserved += c.size
			}
			active += c.size
			delete(raced, c)
		case a == snapshot.SegmentAlloc && h.raced[k]:
			raced[c] = set.BackgroundThreads
		case a == h.Ends():
			active -= c.size
			if set.MaxCachedSize != allocator.Unlimited && c.size > set.MaxCachedSize {
				release(c, 1)
			} else {
				free[c]++
			}
		case a == snapshot.SegmentFree && h.emptied[k] && free[c] > 0:
			free[c]--
			release(c, 1)
		}
		out.ReservedPeak, out.ActivePeak = max(out.ReservedPeak, reserved), max(out.ActivePeak, active)
	}
	return out
}
