package replay

import (
	"fmt"
	"maps"
	"slices"

	"strandline/allocator"
	"strandline/snapshot"
	"strandline/units"
)

// assumptions are what a file does not hold, and its history shows.
type assumptions struct {
	limit int64 // bytes that may be reserved; 0 is none
	pools map[int]allocator.PoolID
}

// The searches for what a file does not hold end after so many replays.
const (
	mostLimits = 4000
	mostPools  = 400
)

// Exact replays the history under its own settings. Where it cannot be, the
// limit of memory, and which segments were of private pools that are gone by the
// end, are settled such that as much as possible is reproduced.
func (r *Recording) Exact() *Exact {
	best := r.run(assumptions{pools: r.pools})
	if best.Difference != nil && r.Settings.GCThreshold > 0 {
		best = r.findLimit(best)
	}
	if best.Difference != nil && r.Trace.Pool == nil {
		best = r.findPools(best)
	}
	return best
}

// findLimit tries the limits at which garbage collection, or a refusal, would
// come at another event. Of those that are exact, the one with the fewest
// retries is taken.
func (r *Recording) findLimit(best *Exact) *Exact {
	points := map[int64]bool{}
	reserved := r.StartReserved
	for _, k := range r.calls {
		size := r.Trace.Size[k]
		points[int64(float64(reserved)/r.Settings.GCThreshold)] = true
		if takes(r.Trace.Action[k]) {
			reserved += size
			points[reserved] = true
		} else {
			reserved -= size
		}
	}
	limits := slices.Sorted(maps.Keys(points))
	if len(limits) > mostLimits {
		return best
	}
	for _, limit := range limits {
		if x := r.run(assumptions{limit: limit + 1, pools: best.assumed.pools}); x.better(best) {
			best = x
		}
	}
	return best
}

// findPools names segments private where the history takes memory though a free
// block would have served: either the new one, or that of the free block. A
// choice that leads nowhere is taken back.
func (r *Recording) findPools(best *Exact) *Exact {
	left := mostPools
	var explore func(x *Exact) bool
	explore = func(x *Exact) bool {
		if x.better(best) {
			best = x
		}
		d := x.Difference
		if d == nil {
			return true
		}
		if d.wrong == 0 {
			return false
		}
		for _, at := range []int{d.Event, r.takenBy(d.wrong, d.Event)} {
			for _, pool := range r.candidates(x.assumed.pools) {
				if left == 0 {
					return false
				}
				if x.assumed.pools[at] == pool {
					continue
				}
				left--
				as := x.assumed
				as.pools = maps.Clone(as.pools)
				as.pools[at] = pool
				if next := r.run(as); next.better(x) && explore(next) {
					return true
				}
			}
		}
		return false
	}
	explore(best)
	return best
}

// candidates are the private pools that are known, and one more.
func (r *Recording) candidates(known map[int]allocator.PoolID) []allocator.PoolID {
	seen := map[allocator.PoolID]bool{}
	gone := int64(0)
	for _, p := range known {
		seen[p] = true
		gone = min(gone, p.User)
	}
	seen[allocator.PoolID{User: gone - 1}] = true // no pool has such a number
	return slices.SortedFunc(maps.Keys(seen), func(a, b allocator.PoolID) int {
		return int(a.Graph-b.Graph)*1e6 + int(b.User-a.User)
	})
}

// takenBy is the event before k that took the memory at addr, or ^index of the
// segment of the start that it is in.
func (r *Recording) takenBy(addr uint64, k int) int {
	e := &r.Trace.Events
	for k--; k >= 0; k-- {
		if takes(e.Action[k]) && addr-e.Addr[k] < uint64(e.Size[k]) {
			return k
		}
	}
	for i := range r.start {
		if addr-r.start[i].Addr < uint64(r.start[i].Size) {
			return ^i
		}
	}
	return never
}

// better tells whether more is reproduced than in another replay, or the same
// with fewer retries.
func (x *Exact) better(y *Exact) bool {
	switch {
	case x.Difference == nil && y.Difference == nil:
		return x.Stats.Retries < y.Stats.Retries
	case x.Difference == nil || y.Difference == nil:
		return x.Difference == nil
	}
	return x.Difference.Event > y.Difference.Event
}

func releases(a snapshot.Action) bool { return a == snapshot.SegmentFree || a == snapshot.SegmentUnmap }
func takes(a snapshot.Action) bool    { return a == snapshot.SegmentAlloc || a == snapshot.SegmentMap }

// Assumed is what a file does not hold, as the replay settled it.
type Assumed struct {
	Limit    *int64 // bytes that may be reserved; nil where the history shows none
	Capacity *int64 // bytes that PyTorch could have; nil where the history does not show it
	Notes    []string
}

// Assumed says what the replay rests on beside the file.
func (x *Exact) Assumed() Assumed {
	out := Assumed{Notes: []string{}}
	note := func(format string, args ...any) { out.Notes = append(out.Notes, fmt.Sprintf(format, args...)) }
	e := &x.Trace.Events
	reserved := x.StartReserved
	for k, a := range e.Action {
		switch a {
		case snapshot.SegmentAlloc, snapshot.SegmentMap:
			reserved += e.Size[k]
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			reserved -= e.Size[k]
		case snapshot.OOM:
			if n := reserved + e.DeviceFree(k); out.Capacity == nil || n > *out.Capacity {
				out.Capacity = &n
			}
			if e.DeviceFree(k) >= x.Settings.SegmentSize(e.Size[k]) && (out.Limit == nil || reserved > *out.Limit) {
				n := reserved
				out.Limit = &n
			}
		}
	}
	switch {
	case x.assumed.limit > 0:
		out.Limit = &x.assumed.limit
		note("a limit of memory of %s, as the garbage collection shows it", units.Bytes(*out.Limit))
	case out.Limit != nil:
		note("a limit of memory somewhat above %s: the driver had room when a request failed", units.Bytes(*out.Limit))
	}
	gone := map[allocator.PoolID]int{}
	for at, p := range x.assumed.pools {
		if x.pools[at] != p {
			gone[p]++
		}
	}
	for _, n := range gone {
		note("%d segments were of a private pool that is gone by the end of the history", n)
	}
	if !x.Complete() {
		note("the state before the first event is undone from the final one")
	}
	if x.Snap.Settings == nil {
		note("default settings: the file holds none")
	}
	return out
}
