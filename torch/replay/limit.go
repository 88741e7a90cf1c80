package replay

import (
	"slices"

	"strandline/torch/snapshot"
)

// maxOfLimits is the number of events that are replayed to find a limit of
// memory: some seconds.
const maxOfLimits = 4e7

// maxSettled is the number of limits for which the rest that a file does not
// hold is settled, where no limit alone makes the replay exact.
const maxSettled = 6

// findLimit tries limits of memory and returns the replays that reach furthest,
// the best first. Of those that are exact, it is the one with the fewest retries.
func (r *Recording) findLimit(none *Result) []*Result {
	found := []*Result{none}
	left := max(int(maxOfLimits), 10*r.Trace.Len())
	for _, limit := range r.limits() {
		if left < 0 {
			break
		}
		x := r.run(assumptions{limit: limit, pools: none.assumed.pools})
		left -= x.cost()
		at := slices.IndexFunc(found, x.better)
		if at < 0 {
			at = len(found)
		}
		if found = slices.Insert(found, at, x); len(found) > maxSettled {
			found = found[:maxSettled]
		}
	}
	return found
}

// limits returns those of memory at which some decision of the history
// changes, in order: between two of them all are equivalent. The limit is compared
// with what is reserved and what a request takes in addition, before and after each
// release, and garbage collection compares a share of it with what is reserved.
// Less than what was reserved by cudaMalloc cannot have been the limit.
func (r *Recording) limits() []int64 {
	points := map[int64]bool{}
	reserved, minLimit := r.StartReserved, int64(0)
	seen := []int64{reserved} // reserved bytes in the call that continues
	for k, a := range r.Trace.Action {
		size := r.Trace.Size[k]
		switch {
		case takes(a):
			reserved += size
			seen = append(seen, reserved)
			if a == snapshot.SegmentAlloc {
				minLimit = max(minLimit, reserved)
			}
		case releases(a):
			reserved -= size
			seen = append(seen, reserved)
		case a == snapshot.Alloc && len(seen) > 1 || a == snapshot.OOM:
			for _, bytes := range seen {
				points[bytes+r.Settings.SegmentSize(r.Settings.Round(size))] = true
				points[r.spares(bytes)] = true
			}
			seen = append(seen[:0], reserved)
		case a == snapshot.FreeRequested:
			seen = append(seen[:0], reserved)
		}
	}
	points[minLimit] = true
	var out []int64
	for limit := range points {
		if limit >= max(minLimit, 1) {
			out = append(out, limit)
		}
	}
	slices.Sort(out)
	return out
}

// spares is the least limit at which garbage collection leaves so many reserved
// bytes alone, 0 if there is none.
func (r *Recording) spares(bytes int64) int64 {
	const exact = 1 << 53 // up to which a float64 has every integer
	t := r.Settings.GCThreshold
	if bytes <= 0 || float64(bytes) >= t*exact {
		return 0
	}
	limit := int64(float64(bytes) / t)
	for limit > 0 && int64(t*float64(limit-1)) >= bytes {
		limit--
	}
	for int64(t*float64(limit)) < bytes {
		limit++
	}
	return limit
}
