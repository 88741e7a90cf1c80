package replay

import (
	"fmt"
	"math"
	"slices"

	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/units"
)

// Replay runs the history under its own settings. It is exact only if the result
// has no [Difference]. What the file does not hold is settled such that as much
// as possible is reproduced: the limit of memory, which segments were of private
// pools that are gone by the end, what blocks from before the recording kept
// behind their requests.
func (r *Recording) Replay() *Result {
	first := r.newPlayer(assumptions{pools: r.pools})
	first.out.Sizes = slices.Grow(first.out.Sizes, len(r.Allocs)-r.older) // most replays reach the end
	best := first.run()
	if r.Snap.Partial == nil { // otherwise what is missing explains everything
		from := []*Result{best}
		if r.Settings.GCThreshold > 0 && (best.Difference != nil || best.Stats.Retries > 0) || r.Settings.Fraction < 1 && best.Difference != nil {
			from = r.findLimit(best)
			best = from[0]
		}
		left := max(int(maxSettledEvents), 20*r.Trace.Len())
		for _, x := range from {
			if best.Difference == nil {
				break
			}
			if x = r.settle(x, &left); x.better(best) {
				best = x
			}
		}
	}
	if best.assumed.limit > 0 || best.Stats.Retries > 0 && len(best.assumed.pools) > 0 {
		best.RetriesInDoubt = true
	}
	if best.Difference != nil {
		best.explain()
	}
	best.Sizes = append(best.Sizes, make([]int64, len(r.Allocs)-len(best.Sizes))...)
	return best
}

// cost is the work that a run was, in events: before the first one, it takes
// over the state.
func (x *Result) cost() int { return x.events + 100 + 4*(x.slots+len(x.start)) }

// better reports whether more is reproduced than in another replay, or the same
// with fewer retries.
func (x *Result) better(y *Result) bool {
	switch {
	case x.Difference == nil && y.Difference == nil:
		return x.Stats.Retries < y.Stats.Retries
	case x.Difference == nil || y.Difference == nil:
		return x.Difference == nil
	}
	return x.Difference.Event > y.Difference.Event
}

// Untested are the rules of settings that were not checked against a recording of
// the release, in addition to those that the replay itself depends on.
func (x *Result) Untested(set *allocator.Settings) []string {
	pools := len(x.assumed.pools) > 0
	own := x.Version.Untested(&x.Settings, pools)
	return slices.DeleteFunc(x.Version.Untested(set, pools), func(rule string) bool { return slices.Contains(own, rule) })
}

// rereadings counts the places that are read differently from their first reading.
func (as *assumptions) rereadings() (n int) {
	for _, other := range as.other {
		if other {
			n++
		}
	}
	return n
}

// explain adds to the difference what the replay has where the recording
// continues, and the unknowns that may be the reason.
func (x *Result) explain() {
	d := x.Difference
	if !d.atEnd {
		p := x.newPlayer(x.assumed)
		p.looks = true
		closely := p.run()
		d.There = closely.Difference.There
		x.Segments, x.SegmentsMet = closely.Segments, closely.SegmentsMet
	}
	switch {
	case x.Snap.Partial != nil:
		d.Reason = "the file is cut"
	case x.Settings.GCThreshold > 0 && !x.Complete():
		d.Reason = "how long free segments had not served before the recording, by which garbage collection chooses, is not in the file and could not be settled"
	case x.Settings.GCThreshold > 0:
		d.Reason = "the limit of memory, by which garbage collection begins, is not in the file and could not be settled"
	case x.privatePools():
		d.Reason = "which memory was of private pools that are gone by the end is not in the file and could not be settled"
	case !x.Complete():
		d.Reason = "the state before the recording, which is undone from the final one, could not be settled"
	default:
		d.Reason = "no rule of the allocator is known that does this: the program may have changed its settings on the way, or the file was edited"
	}
}

// privatePools reports whether some memory was of private pools that the file does
// not name.
func (x *Result) privatePools() bool {
	for at, p := range x.assumed.pools {
		if x.pools[at] != p {
			return true
		}
	}
	return false
}

// there returns a description of what the replay has at an address.
func (p *player) there(addr uint64) string {
	for _, g := range p.a.Segments() {
		if addr-g.Addr >= uint64(g.Size) {
			continue
		}
		for _, b := range g.Blocks {
			if addr-b.Addr < uint64(b.Size) {
				return fmt.Sprintf("%s of %s bytes at 0x%x, in a segment of %s bytes", pieceNames[b.State], units.Count(b.Size), b.Addr, units.Count(g.Size))
			}
		}
	}
	return "no memory"
}

var pieceNames = [...]string{
	allocator.Inactive: "a free block", allocator.Allocated: "an allocated block", allocator.Pending: "a block whose free waits",
}

func releases(a snapshot.Action) bool { return a == snapshot.SegmentFree || a == snapshot.SegmentUnmap }
func takes(a snapshot.Action) bool    { return a == snapshot.SegmentAlloc || a == snapshot.SegmentMap }

// Assumed is what a file does not hold, as the replay settled it.
type Assumed struct {
	Limit    *int64 // bytes that may be reserved, at least; nil where the history shows none
	Limited  bool   // there was a limit, even if its size is not known
	Capacity *int64 // bytes that PyTorch could have; nil where the history does not show it
	Notes    []string
}

// Room is the bytes that PyTorch could reserve, as far as the history shows it:
// what the device had, or the limit where that is less; nil if it shows neither.
func (a *Assumed) Room() *int64 {
	if a.Capacity == nil || a.Limit != nil && *a.Limit < *a.Capacity {
		return a.Limit
	}
	return a.Capacity
}

// Assumed states what the replay depends on in addition to the file.
func (x *Result) Assumed() Assumed {
	out := Assumed{Notes: []string{}}
	note := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	e := &x.Trace.Events
	reserved := x.StartReserved
	most, stopped, below := reserved, int64(-1), int64(math.MaxInt64) // by a limit, about which this is known
	for k, a := range e.Action {
		switch a {
		case snapshot.SegmentAlloc, snapshot.SegmentMap:
			reserved += e.Size[k]
			most = max(most, reserved)
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			reserved -= e.Size[k]
		case snapshot.OOM:
			if n := reserved + e.DeviceFree(k); out.Capacity == nil || n > *out.Capacity {
				out.Capacity = &n
			}
			if size := x.Settings.SegmentSize(e.Size[k]); e.DeviceFree(k) >= size {
				stopped, below = max(stopped, reserved), min(below, reserved+size)
			}
		}
	}
	out.Limited = x.assumed.limit > 0 || stopped >= 0
	switch {
	case x.assumed.limit > 0:
		out.Limit = &x.assumed.limit
		note("a limit of memory of %s, as releases show it", units.Bytes(*out.Limit))
	case stopped >= 0 && most < below:
		out.Limit = &most
		note("a limit of memory of at least %s and less than %s: the driver had room when a request failed", units.Bytes(most), units.Bytes(below))
	case stopped >= 0:
		note("a limit of memory that was set on the way, of at least %s: the driver had room when a request failed", units.Bytes(stopped))
	}
	gone, segments := map[allocator.PoolID]bool{}, 0
	for at, p := range x.assumed.pools {
		if x.pools[at] != p {
			gone[p] = true
			segments++
		}
	}
	if segments > 0 {
		note("%s of %s gone by the end of the history", units.Counted(int64(segments), "segment was", "segments were"), units.Counted(int64(len(gone)), "private pool", "private pools"))
	}
	if !x.Complete() {
		note("the state before the first event is undone from the final one")
	}
	if n := len(x.assumed.slack); n > 0 {
		note("%s behind it that was too little to be split off, as what came after shows", units.Counted(int64(n), "block of that state keeps memory", "blocks of that state keep memory"))
	}
	if n := len(x.assumed.ages); n > 0 {
		note("how long %s had not served, as garbage collection shows it", units.Counted(int64(n), "free segment of that state", "free segments of that state"))
	}
	if n := len(x.assumed.bases); n > 0 {
		note("%s below what was mapped when the recording began", units.Counted(int64(n), "expandable segment begins", "expandable segments begin"))
	}
	if n := len(x.assumed.whole); n > 0 {
		note("%s not split (no_split), as its requests show", units.Counted(int64(n), "private pool is", "private pools are"))
	}
	if n := len(x.assumed.older); n > 0 {
		note("%s older than memory at lower addresses, as it serves requests first", units.Counted(int64(n), "block of that state is", "blocks of that state are"))
	}
	if x.assumed.span > 0 {
		note("expandable segments have at most %s of addresses, as the distance between two shows it", units.Bytes(x.assumed.span))
	}
	if n := x.assumed.rereadings(); n > 0 {
		note("what released memory, or when a free was complete, is read at %s such that the history fits", units.Counted(int64(n), "place", "places"))
	}
	if x.Settings.ThrowOnOOM {
		note("throw_on_cudamalloc_oom may have refused requests: no event shows them")
	}
	out.Notes = append(out.Notes, x.Unverified()...)
	if x.Snap.Settings == nil {
		note("default settings: the file holds none")
	}
	return out
}

// Unverified names, a sentence each, what of the file and of its release is not known,
// so that a replay which is exact may still be one by chance.
func (x *Result) Unverified() []string {
	out := slices.Clone(x.Snap.Unknown())
	if x.Snap.Settings != nil {
		if _, err := allocator.ParseSettings(x.Snap.Settings.Conf, 0); err != nil {
			out = append(out, "unknown setting: "+err.Error())
		}
	}
	return append(out, x.Version.Unverified(&x.Settings, len(x.assumed.pools) > 0)...)
}
