package replay

import (
	"cmp"
	"maps"
	"slices"

	"strandline/internal/sorts"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
)

// assumptions are what a file does not hold, and its history shows.
type assumptions struct {
	limit int64                     // bytes that may be reserved; 0 if none
	pools map[int]allocator.PoolID  // private ones, by the event that took the memory, or ^index of a segment of the start
	slack map[int]int64             // bytes that blocks of the start have behind their request, by index of the doubt
	bases map[uint64]uint64         // where reservations begin, by the first address of the start in them
	span  int64                     // bytes of addresses that reservations have; 0 if not known
	ages  map[uint64]int64          // of free segments of the start, for garbage collection
	other map[fork]bool             // what is read differently from its first reading
	whole map[allocator.PoolID]bool // private pools whose segments are not split, besides those of the state
	older map[elder]bool            // the order of births in the start, where it is not that of addresses
}

// An elder is memory of the start that is older than another, by the first addresses.
type elder struct{ sooner, later uint64 }

// A fork is a place of the history that can be read in two ways.
type fork struct {
	event int
	what  question
}

type question uint8

const (
	whoReleased   question = iota // empty_cache, or the request that follows
	whenCompleted                 // before the request, or when it waited for all streams
	whoseFailed                   // of a private pool, a request that ran out of memory, or of the default one
)

// noSplit is the first release whose MemPools can be told not to split.
const noSplit allocator.Version = 210

// maxSettledEvents is the number of events that are replayed to settle what a file does not
// hold: a second or two.
const maxSettledEvents = 5e6

// settle searches for what a file does not hold where the replay departs from the
// recording: it assumes what could explain the difference, continues from there,
// and withdraws the assumption if that does not help.
// Left is how many events may still be replayed for it.
func (r *Recording) settle(best *Result, left *int) *Result {
	var explore func(x *Result) bool
	explore = func(x *Result) bool {
		if x.better(best) {
			best = x
		}
		if x.Difference == nil {
			return true
		}
		for as := range x.explanations {
			if *left < 0 {
				return false
			}
			next := r.run(as)
			*left -= next.cost()
			if next.furthers(x) && explore(next) {
				return true
			}
		}
		return false
	}
	explore(best)
	return best
}

// furthers reports whether more is reproduced than in another replay, or another
// block is in the way at the same event once one has been given to a private pool or
// is known to be younger: several can be.
func (x *Result) furthers(y *Result) bool {
	return x.better(y) || x.Difference != nil && y.Difference != nil && x.Difference.Event == y.Difference.Event &&
		x.Difference.wrong != y.Difference.wrong &&
		(len(x.assumed.pools) > len(y.assumed.pools) || len(x.assumed.older) > len(y.assumed.older))
}

// explanations yields the assumptions that could explain a difference, those
// first that leave the least to choose.
func (x *Result) explanations(yield func(assumptions) bool) {
	if x.Difference.Event >= x.Trace.Len() {
		return
	}
	for _, as := range x.readings() {
		if !yield(as) {
			return
		}
	}
	if x.Settings.GCThreshold > 0 {
		x.aged(yield)
	}
}

// readings are the other ways in which the history up to a difference can be
// read.
func (x *Result) readings() (out []assumptions) {
	d := x.Difference
	if d.base != 0 {
		as := x.assumed
		as.bases = with(as.bases, d.base, x.Trace.Addr[d.Event])
		return []assumptions{as}
	}
	if e := (elder{d.sooner, d.later}); e.sooner != e.later {
		as := x.assumed
		as.older = with(as.older, e, true)
		out = append(out, as)
	}
	if x.span > 0 {
		as := x.assumed
		as.span = x.span
		out = append(out, as)
	}
	if i, slack, ok := x.slack(); ok {
		as := x.assumed
		as.slack = with(as.slack, i, slack)
		out = append(out, as)
	}
	const maxDistance = 3
	for n, f := range slices.Backward(x.forks) {
		if len(x.forks)-n > maxDistance {
			break
		}
		as := x.assumed
		as.other = with(as.other, f, !as.other[f])
		out = append(out, as)
	}
	if x.Trace.Pool == nil {
		out = append(out, x.relabeled()...)
	}
	if pool := x.poolAt(d); pool.Private() && !x.assumed.whole[pool] && x.Version >= noSplit {
		as := x.assumed
		as.whole = with(as.whole, pool, true)
		out = append(out, as)
	}
	return out
}

func with[K comparable, V any](m map[K]V, k K, v V) map[K]V {
	out := make(map[K]V, len(m)+1)
	maps.Copy(out, m)
	out[k] = v
	return out
}

// slack returns how much a block of the start must have behind its request for the
// free block behind it to be too small for the request that it serves in the
// replay alone.
func (x *Result) slack() (doubt int, bytes int64, ok bool) {
	d := x.Difference
	if d.wrong == 0 || d.room == 0 {
		return 0, 0, false
	}
	for i, q := range x.doubt {
		b := &x.start[q.segment].Blocks[q.block]
		old := x.assumed.slack[i]
		if b.Addr+uint64(b.Size+old) == d.wrong {
			bytes = old + d.room - d.size + allocator.Granule
			return i, bytes, bytes > old && bytes <= q.maxBytes
		}
	}
	return 0, 0, false
}

// aged yields ages of the free segments of the start by which garbage collection
// would return those that the recording does: those of a later sweep are
// younger. How old they are, and at which limit, is tried.
func (x *Result) aged(yield func(assumptions) bool) {
	sweeps := x.sweeps()
	if len(sweeps) == 0 {
		return
	}
	limits := x.limits()
	if x.assumed.limit > 0 {
		limits = slices.Insert(limits, 0, x.assumed.limit)
	}
	const youngest, oldest, ratio = 8, 1 << 15, 4
	for _, limit := range limits {
		for age := int64(youngest); age <= oldest; age *= ratio {
			as := x.assumed
			as.limit, as.ages = limit, map[uint64]int64{}
			maps.Copy(as.ages, x.assumed.ages)
			for addr, sweep := range sweeps {
				as.ages[addr] = age >> (2 * sweep)
			}
			if !yield(as) {
				return
			}
		}
	}
}

// sweeps are the segments of the start that are returned around the
// difference, by address, with the sweep that does so. Each goes through the
// segments by stream and size.
func (x *Result) sweeps() map[uint64]int {
	d, e := x.Difference, &x.Trace.Events
	from := d.Event
	for from > 0 && releases(e.Action[from-1]) {
		from--
	}
	out, sweep := map[uint64]int{}, 0
	for k := from; k < e.Len() && releases(e.Action[k]); k++ {
		if k > from && x.order(k, k-1) < 0 {
			sweep++
		}
		if at, ok := x.takenBy(e.Addr[k], k); ok && at < 0 {
			out[e.Addr[k]] = sweep
		}
	}
	return out
}

// order compares the segments that two events release as sets of free blocks do.
func (x *Result) order(j, k int) int {
	e := &x.Trace.Events
	return cmp.Or(cmp.Compare(x.Snap.Stream(e.Stream[j]), x.Snap.Stream(e.Stream[k])),
		cmp.Compare(e.Size[j], e.Size[k]), cmp.Compare(e.Addr[j], e.Addr[k]))
}

// poolAt is the pool of the block that serves a request in the replay alone.
func (x *Result) poolAt(d *Difference) allocator.PoolID {
	if d.wrong == 0 {
		return allocator.PoolID{}
	}
	if x.Trace.Pool != nil {
		return allocator.PoolID(x.Snap.PoolOf(x.Trace.Pool[d.Event]))
	}
	at, _ := x.takenBy(d.wrong, d.Event)
	return x.assumed.pools[at]
}

// relabeled are the choices of private pools that keep a request from the block
// that it gets in the replay alone: memory that was taken for it, the segment of
// that block, or that of the recorded one is private.
func (x *Result) relabeled() (out []assumptions) {
	d := x.Difference
	if d.wrong == 0 {
		return nil
	}
	e := &x.Trace.Events
	var places []int
	if takes(e.Action[d.Event]) {
		places = append(places, d.Event)
	}
	if at, ok := x.takenBy(d.wrong, d.Event); ok {
		places = append(places, at)
	}
	if e.Action[d.Event] == snapshot.Alloc || releases(e.Action[d.Event]) {
		if at, ok := x.takenBy(e.Addr[d.Event], d.Event); ok {
			places = append(places, at)
		}
	}
	for _, at := range places {
		if x.pools[at].Private() {
			continue // the file states so
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
func (x *Result) candidates() []allocator.PoolID {
	seen := map[allocator.PoolID]bool{}
	gone := int64(0)
	for _, p := range x.assumed.pools {
		seen[p] = true
		gone = min(gone, p.User)
	}
	seen[allocator.PoolID{User: gone - 1}] = true // no pool has such a number
	return sorts.Collect(maps.Keys(seen), func(a, b allocator.PoolID) int {
		return int(a.Graph-b.Graph)*1e6 + int(b.User-a.User)
	})
}

// takenBy is the event before k that took the memory at addr, or ^index of the
// segment of the start that it is in.
func (r *Recording) takenBy(addr uint64, k int) (at int, ok bool) {
	e := &r.Trace.Events
	for k--; k >= 0; k-- {
		if takes(e.Action[k]) && addr-e.Addr[k] < uint64(e.Size[k]) {
			return k, true
		}
	}
	for i := range r.start {
		if addr-r.start[i].Addr < uint64(r.start[i].Size) {
			return ^i, true
		}
	}
	return 0, false
}
