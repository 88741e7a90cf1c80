package replay

import (
	"cmp"
	"maps"
	"slices"

	"strandline/allocator"
	"strandline/snapshot"
)

// assumptions are what a file does not hold, and its history shows.
type assumptions struct {
	limit int64                    // bytes that may be reserved; 0 is none
	pools map[int]allocator.PoolID // private ones, by the event that took the memory, or ^index of a segment of the start
	slack map[int]int64            // bytes that blocks of the start have behind their request, by index of the doubt
	bases map[uint64]uint64        // where reservations begin, by the first address of the start in them
	ages  map[uint64]int64         // of free segments of the start, for garbage collection
	other map[fork]bool            // what is read otherwise than it seems at first
}

// A fork is a place of the history that can be read in two ways.
type fork struct {
	event int
	what  question
}

type question uint8

const (
	whoReleased   question = iota // empty_cache, or the request that follows
	whenCompleted                 // before the request, or when it waited for all streams
)

// most is the number of events that are replayed to settle what a file does not
// hold: a second or two.
const most = 5e6

// settle searches for what a file does not hold where the replay parts from the
// recording: it assumes what could explain the difference, goes on from there,
// and takes it back if that leads nowhere.
func (r *Recording) settle(best *Exact) *Exact {
	left := max(int(most), 20*r.Trace.Len())
	var explore func(x *Exact) bool
	explore = func(x *Exact) bool {
		if x.better(best) {
			best = x
		}
		if x.Difference == nil {
			return true
		}
		for _, as := range x.explanations() {
			if left < 0 {
				return false
			}
			next := r.run(as)
			left -= next.cost()
			if next.better(x) && explore(next) {
				return true
			}
		}
		return false
	}
	explore(best)
	return best
}

// explanations are the assumptions that could explain a difference, those first
// that leave the least to choose.
func (x *Exact) explanations() (out []assumptions) {
	d := x.Difference
	if d.Event >= x.Trace.Len() {
		return nil
	}
	if d.base != 0 {
		as := x.assumed
		as.bases = with(as.bases, d.base, x.Trace.Addr[d.Event])
		return []assumptions{as}
	}
	if i, slack, ok := x.slack(); ok {
		as := x.assumed
		as.slack = with(as.slack, i, slack)
		out = append(out, as)
	}
	const near = 3
	for n, f := range slices.Backward(x.forks) {
		if len(x.forks)-n > near {
			break
		}
		as := x.assumed
		as.other = with(as.other, f, !as.other[f])
		out = append(out, as)
	}
	if x.Trace.Pool == nil {
		out = append(out, x.relabeled()...)
	}
	return append(out, x.aged()...)
}

func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	out := make(map[K]V, len(m)+1)
	maps.Copy(out, m)
	out[k] = v
	return out
}

// slack is how much a block of the start must have behind its request for the
// free block behind it to be too small for the request that it serves in the
// replay alone.
func (x *Exact) slack() (doubt int, bytes int64, ok bool) {
	d := x.Difference
	if d.wrong == 0 || d.room == 0 {
		return 0, 0, false
	}
	for i, q := range x.doubt {
		b := &x.start[q.segment].Blocks[q.block]
		old := x.assumed.slack[i]
		if b.Addr+uint64(b.Size+old) == d.wrong {
			bytes = old + d.room - d.size + allocator.Granule
			return i, bytes, bytes > old && bytes <= q.most
		}
	}
	return 0, 0, false
}

// aged are ages of the free segments of the start by which garbage collection
// would give back those that the recording does.
func (x *Exact) aged() (out []assumptions) {
	d, e := x.Difference, &x.Trace.Events
	if x.Settings.GCThreshold == 0 {
		return nil
	}
	from, to := d.Event, d.Event
	for from > 0 && releases(e.Action[from-1]) {
		from--
	}
	for to < e.Len() && releases(e.Action[to]) {
		to++
	}
	if from == to {
		return nil
	}
	limits := x.limits()
	if x.assumed.limit > 0 {
		limits = slices.Insert(limits, 0, x.assumed.limit)
	}
	for _, limit := range limits {
		for age := int64(8); age < 1<<16; age *= 4 {
			as := x.assumed
			as.limit = limit
			as.ages = maps.Clone(as.ages)
			if as.ages == nil {
				as.ages = map[uint64]int64{}
			}
			left := age
			for k := from; k < to; k++ {
				// Each sweep goes through the segments by stream and size.
				if k > from && x.order(k, k-1) < 0 {
					left /= 4
				}
				as.ages[e.Addr[k]] = left
			}
			out = append(out, as)
		}
	}
	return out
}

// order compares the segments that two events release as sets of free blocks do.
func (x *Exact) order(j, k int) int {
	e := &x.Trace.Events
	return cmp.Or(cmp.Compare(x.Snap.Stream(e.Stream[j]), x.Snap.Stream(e.Stream[k])),
		cmp.Compare(e.Size[j], e.Size[k]), cmp.Compare(e.Addr[j], e.Addr[k]))
}

// relabeled are the choices of private pools that keep a request from the block
// that it gets in the replay alone: memory that was taken for it, the segment of
// that block, or that of the recorded one is private.
func (x *Exact) relabeled() (out []assumptions) {
	d := x.Difference
	if d.wrong == 0 {
		return nil
	}
	e := &x.Trace.Events
	var places []int
	if takes(e.Action[d.Event]) {
		places = append(places, d.Event)
	}
	places = append(places, x.takenBy(d.wrong, d.Event))
	if e.Action[d.Event] == snapshot.Alloc || releases(e.Action[d.Event]) {
		places = append(places, x.takenBy(e.Addr[d.Event], d.Event))
	}
	for _, at := range places {
		if at == never || x.pools[at].Private() {
			continue // the file says so
		}
		for _, pool := range x.candidates() {
			if x.assumed.pools[at] != pool {
				as := x.assumed
				as.pools = with(as.pools, at, pool)
				out = append(out, as)
			}
		}
	}
	return out
}

// candidates are the pools that are known, and one more.
func (x *Exact) candidates() []allocator.PoolID {
	seen := map[allocator.PoolID]bool{}
	gone := int64(0)
	for _, p := range x.assumed.pools {
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
