package timeline

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/ranges"
	"strandline/torch/snapshot"
	"strandline/units"
)

// StateBefore are the segments of the device as they were before event to, by
// address, and what contradicts them, a sentence each. Sizes are those of the
// allocations' blocks, if they are known; without them [Cut] states what is exact.
func (t *Timeline) StateBefore(to int, sizes []int64) (out []snapshot.Segment, faults []string) {
	if to == t.Trace.Len() {
		out = make([]snapshot.Segment, 0, len(t.device.Segments))
		for _, i := range t.device.Segments {
			out = append(out, t.Snap.Segments[i])
		}
		return out, nil
	}
	r := newRewinder(t, to)
	r.sizes = sizes
	for i := len(r.calls) - 1; i >= 0 && int(r.calls[i]) >= to; i-- {
		r.undo(int(r.calls[i]))
	}
	out = r.segments()
	return out, r.faults()
}

// A past is what taking events back needs of all of them, so that a state costs
// no more than what is in it and what the driver did since.
type past struct {
	calls []int32     // events by which the driver's memory changes
	used  map[int]int // the last event in each segment of the final state that has one
}

func (t *Timeline) newPast() *past {
	p := &past{used: map[int]int{}}
	final := slices.Collect(t.finalCover().All())
	used := make([]int, len(final)) // events, from 1 on
	e := &t.Trace.Events
	for k, a := range e.Action {
		switch a {
		case snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted:
			i := sort.Search(len(final), func(i int) bool { return final[i].End > e.Addr[k] })
			if i < len(final) && final[i].Start <= e.Addr[k] {
				used[i] = k + 1
			}
		case snapshot.SegmentAlloc, snapshot.SegmentMap, snapshot.SegmentFree, snapshot.SegmentUnmap:
			p.calls = append(p.calls, int32(k))
		}
	}
	for i, k := range used {
		if k > 0 {
			p.used[final[i].Value.final] = k - 1
		}
	}
	return p
}

// finalCover is the driver's memory at the end.
func (t *Timeline) finalCover() *cover {
	c := &cover{}
	for _, i := range t.device.Segments {
		g := &t.Snap.Segments[i]
		c.Put(g.Addr, g.Addr+uint64(max(g.TotalSize, 0)), origin{final: i})
	}
	return c
}

// A rewinder takes events back, the last one first, and gives the state before
// them: the driver's memory from what the events gave back and took, the
// allocations in it from the timeline.
type rewinder struct {
	*past
	s      *snapshot.Snapshot
	t      *Timeline
	to     int     // the state before this event is wanted
	sizes  []int64 // of the allocations' blocks, nil if they are not known
	memory *cover
	live   []int                      // allocations, by address
	final  map[uint64]*snapshot.Block // those active in the end
	lone   bool                       // a completion alone is of a free before the recording
	wrong  faults                     // events that the segments contradict
	lost   int                        // live allocations in no segment, or at the address of another
}

func newRewinder(t *Timeline, to int) *rewinder {
	s, d := t.Snap, &t.device
	r := &rewinder{past: t.past(), s: s, t: t, to: to, memory: t.finalCover(), final: map[uint64]*snapshot.Block{}}
	for _, i := range d.Segments {
		for j := range s.Segments[i].Blocks {
			if b := &s.Segments[i].Blocks[j]; b.State.Active() {
				r.final[b.Addr] = b
			}
		}
	}
	r.lone = r.t.ends == snapshot.FreeCompleted && slices.Contains(d.Trace.Action, snapshot.FreeRequested)
	r.live = r.t.LiveAt(to - 1)
	r.lost = len(r.live)
	slices.SortFunc(r.live, func(a, b int) int { return cmp.Compare(r.t.Addr(a), r.t.Addr(b)) })
	r.live = slices.CompactFunc(r.live, func(a, b int) bool { return r.t.Addr(a) == r.t.Addr(b) })
	return r
}

// undo takes a call of the driver back.
func (r *rewinder) undo(k int) {
	e := &r.t.Trace.Events
	addr, end := e.Addr[k], e.Addr[k]+uint64(max(e.Size[k], 0))
	switch e.Action[k] {
	case snapshot.SegmentAlloc, snapshot.SegmentMap:
		if r.memory.Cut(addr, end) != end-addr {
			r.wrong.add("event %s takes 0x%x from the driver, and later it is in no segment", units.Count(int64(k)), addr)
		}
	case snapshot.SegmentFree, snapshot.SegmentUnmap:
		if r.memory.Cut(addr, end) != 0 {
			r.wrong.add("event %s gives 0x%x to the driver, and later it is in a segment", units.Count(int64(k)), addr)
		}
		r.memory.Put(addr, end, origin{final: Never, release: k})
	}
}

func (r *rewinder) faults() (out []string) {
	where := fmt.Sprintf("event %d of %s", r.to-1, snapshot.DeviceName(r.t.Device))
	if r.wrong.n > 0 {
		out = append(out, fmt.Sprintf("events after %s that contradict the segments: %s, first: %s",
			where, units.Count(int64(r.wrong.n)), r.wrong.first))
	}
	if r.lost > 0 {
		out = append(out, fmt.Sprintf("allocations that live after %s and are left out, as they have no place in a segment: %s",
			where, units.Count(int64(r.lost))))
	}
	return out
}

// segments returns what the memory makes, with its allocations.
func (r *rewinder) segments() []snapshot.Segment {
	runs := r.memory.runs(r.joined)
	out := make([]snapshot.Segment, len(runs))
	for i, run := range runs {
		out[i] = r.segment(run)
		live := r.within(run.addr(), run.end())
		r.lost -= len(live)
		if !r.kept(run) {
			r.fill(&out[i], live)
		}
	}
	r.addStacks(out, runs)
	return out
}

// joined reports whether two pieces, one behind the other, are of one expandable
// segment. Two that are separate in the final state are not.
func (r *rewinder) joined(a, b piece) bool {
	g, h := r.origin(a.Value), r.origin(b.Value)
	return g.Expandable && h.Expandable && g.Stream == h.Stream && (a.Value.final == Never || b.Value.final == Never) &&
		(g.Pool == h.Pool || g.Pool == 0 || h.Pool == 0)
}

// origin is a segment with all that is known of a piece but its extent.
func (r *rewinder) origin(p origin) snapshot.Segment {
	if p.final != Never {
		return r.s.Segments[p.final]
	}
	e := &r.t.Trace.Events
	g := snapshot.Segment{
		Device: r.t.Device, Stream: e.Stream[p.release], Expandable: e.Action[p.release] == snapshot.SegmentUnmap,
	}
	if e.Pool != nil {
		g.Pool = e.Pool[p.release]
	}
	return g
}

// segment returns what a run makes. Its blocks and its stack are the final state's.
func (r *rewinder) segment(run run) snapshot.Segment {
	known := max(0, slices.IndexFunc(run, func(p piece) bool { return p.Value.final != Never }))
	g := r.origin(run[known].Value)
	if run[known].Value.final == Never {
		g.Type = r.kind(run, g.Expandable)
	}
	g.Addr, g.TotalSize = run.addr(), int64(run.end()-run.addr())
	return g
}

// kind separates small and large pools for memory that is all gone by the
// end: expandable one by what was allocated there.
func (r *rewinder) kind(run run, expandable bool) snapshot.StringID {
	size := run.end() - run.addr()
	small := size == allocator.SmallBuffer
	if expandable {
		small = size%allocator.LargeBuffer != 0
		for i := range r.t.Allocs {
			if r.t.Addr(i)-run.addr() < size {
				small = r.t.Size(i) <= allocator.SmallLimit
				break
			}
		}
	}
	if small {
		return r.s.StringID("small")
	}
	return r.s.StringID("large")
}

// addStacks gives the segments that do not begin where one of the final state
// does the stack by which their first bytes were taken from the driver.
func (r *rewinder) addStacks(segments []snapshot.Segment, runs []run) {
	var missing []*snapshot.Segment
	for i := range segments {
		if f := runs[i][0].Value.final; f == Never || r.s.Segments[f].Addr != segments[i].Addr {
			segments[i].Stack = stack.None
			missing = append(missing, &segments[i])
		}
	}
	// Those that have no stack yet are found from each: next leads to them.
	next := make([]int, len(missing)+1)
	for i := range next {
		next[i] = i
	}
	open := func(i int) int {
		for next[i] != i {
			next[i] = next[next[i]]
			i = next[i]
		}
		return i
	}
	e := &r.t.Trace.Events
	for _, k := range slices.Backward(r.calls) {
		if int(k) >= r.to || e.Action[k] != snapshot.SegmentAlloc && e.Action[k] != snapshot.SegmentMap {
			continue
		}
		i := open(sort.Search(len(missing), func(i int) bool { return missing[i].Addr >= e.Addr[k] }))
		for ; i < len(missing) && missing[i].Addr-e.Addr[k] < uint64(e.Size[k]); i = open(i) {
			missing[i].Stack = e.Stack[k]
			next[i] = i + 1
		}
	}
}

// within are the live allocations at addresses from addr to end-1.
func (r *rewinder) within(addr, end uint64) []int {
	at := func(addr uint64) int {
		return sort.Search(len(r.live), func(i int) bool { return r.t.Addr(r.live[i]) >= addr })
	}
	return r.live[at(addr):at(end)]
}

// fill makes the blocks of a segment: the live allocations and what is between
// them.
func (r *rewinder) fill(g *snapshot.Segment, live []int) {
	g.Blocks, g.AllocatedSize, g.ActiveSize, g.RequestedSize = nil, 0, 0, 0
	at, end := g.Addr, g.Addr+uint64(g.TotalSize)
	free := func(to uint64) {
		if at < to {
			g.Blocks = append(g.Blocks, snapshot.Block{Addr: at, Size: int64(to - at)})
		}
	}
	for n, i := range live {
		free(r.t.Addr(i))
		next := end
		if n+1 < len(live) {
			next = r.t.Addr(live[n+1])
		}
		b := r.block(i, int64(next-r.t.Addr(i)), r.leavesRest(g))
		if b.State == snapshot.Allocated {
			g.AllocatedSize += b.Size
		}
		g.ActiveSize += b.Size
		g.RequestedSize += b.Requested
		g.Blocks = append(g.Blocks, b)
		at = b.Addr + uint64(b.Size)
	}
	free(end)
}

// leavesRest reports whether blocks of a segment keep what would be too small to
// serve others.
func (r *rewinder) leavesRest(g *snapshot.Segment) bool {
	return r.s.String(g.Type) == "large" && !g.Expandable && (r.s.Settings == nil || !r.s.Settings.ExpandableSegments)
}

// block is the block of allocation i, of at most room bytes.
func (r *rewinder) block(i int, room int64, rest bool) snapshot.Block {
	b := snapshot.Block{Addr: r.t.Addr(i), Stack: r.t.Stack(i), State: snapshot.Allocated}
	if r.pending(i) {
		b.State = snapshot.Pending
	}
	if final := r.final[b.Addr]; final != nil && r.t.Death(i) == Never {
		if b.Size, b.Stack = final.Size, final.Stack; final.State == b.State {
			b = *final
		}
	} else if r.sizes != nil {
		b.Size = r.sizes[i]
	} else {
		b.Size = max(allocator.Granule, (r.t.Size(i)+allocator.Granule-1)/allocator.Granule*allocator.Granule)
		if rest && room-b.Size <= allocator.SmallLimit {
			b.Size = room
		}
	}
	b.Size, b.Requested = min(b.Size, room), r.t.Size(i)
	return b
}

// pending reports whether allocation i, which lives, has been freed. What was
// freed before the recording has but its completion in it, or nothing.
func (r *rewinder) pending(i int) bool {
	freed := r.t.Freed(i)
	if final := r.final[r.t.Addr(i)]; freed == Never && final != nil {
		return final.State == snapshot.Pending
	}
	return freed != Never && freed < r.to || r.lone && r.t.Before(i) && freed != Never && freed == r.t.Death(i)
}

// A cover is the driver's memory that the allocator has.
type cover struct{ ranges.List[origin] }

// An origin states where memory is from: it is of one segment of the final state,
// or was returned by one event.
type origin struct {
	final   int // index into Snapshot.Segments, or Never
	release int // event, if final is Never
}

type piece = ranges.Range[origin]

// A run is pieces without a gap that make one segment.
type run []piece

func (r run) addr() uint64 { return r[0].Start }
func (r run) end() uint64  { return r[len(r)-1].End }

// kept reports whether a run is a segment of the final state to which nothing
// happened.
func (r *rewinder) kept(run run) bool {
	final := run[0].Value.final
	if len(run) != 1 || final == Never {
		return false
	}
	g := &r.s.Segments[final]
	last, used := r.used[final]
	return run.addr() == g.Addr && run.end() == g.Addr+uint64(g.TotalSize) && !(used && last >= r.to)
}

// runs parts the cover between pieces that are not joined.
func (c *cover) runs(joined func(a, b piece) bool) (out []run) {
	all := slices.Collect(c.All())
	from := 0
	for i := range all {
		if i+1 == len(all) || all[i].End != all[i+1].Start || !joined(all[i], all[i+1]) {
			out = append(out, run(all[from:i+1]))
			from = i + 1
		}
	}
	return out
}
