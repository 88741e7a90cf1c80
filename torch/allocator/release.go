package allocator

import (
	"cmp"
	"math"
	"slices"
)

// EmptyCache is torch.cuda.empty_cache(), and the last resort of a request that
// the driver refuses: it waits for all streams and gives all free segments back,
// but those of private pools that are still used.
func (a *Allocator) EmptyCache() {
	a.synchronize()
	a.releaseFree(a.poolOf(PoolID{}, false))
	a.releaseFree(a.poolOf(PoolID{}, true))
	for _, i := range a.idle {
		a.releasePool(i)
	}
}

// EmptyPool gives the free segments of one private pool back, as empty_cache()
// does inside of use_mem_pool, and the end of a MemPool.
func (a *Allocator) EmptyPool(id PoolID) {
	a.synchronize()
	a.releasePool(a.poolOf(id, true))
}

// releasePool gives the free segments of a private pool back, small ones first.
func (a *Allocator) releasePool(small int32) {
	a.releaseFree(small)
	a.releaseFree(small + 1)
}

// synchronize waits for all streams.
func (a *Allocator) synchronize() {
	for _, d := range a.waiting {
		if d.block != 0 {
			a.complete(d.block)
		}
	}
	a.waiting, a.over = a.waiting[:0], 0
}

// releaseFree gives the free segments of a pool back, and the free pages of
// expandable ones behind them, by stream, size and address.
func (a *Allocator) releaseFree(p int32) {
	var expandable []int32
	for _, l := range a.byHandle(p) {
		a.scratch = a.sets.all(&a.lanes[l].free, a.scratch[:0])
		for _, b := range a.scratch {
			if a.blocks[b].within != 0 {
				expandable = append(expandable, b)
			} else if a.whole(b) {
				a.release(b)
			}
		}
	}
	for _, b := range expandable {
		a.unmap(b)
	}
}

// byHandle are the lanes of a pool in the order of the handles of their streams.
func (a *Allocator) byHandle(p int32) []int32 {
	handle := func(l int32) uint64 { return a.streams[a.lanes[l].stream] }
	return slices.SortedFunc(slices.Values(a.pools[p].lanes), func(i, j int32) int { return cmp.Compare(handle(i), handle(j)) })
}

// Cached reports whether a pool has memory to return.
func (a *Allocator) Cached(id PoolID) bool {
	small := a.poolOf(id, true)
	return a.pools[small].back+a.pools[small+1].back > 0
}

// Releasable returns what EmptyCache would return now, without waiting.
func (a *Allocator) Releasable() (bytes int64) {
	for i := range a.pools {
		if p := &a.pools[i]; i < 2 || p.idle {
			bytes += p.back
		}
	}
	return bytes
}

// returnable is the bytes of a free block that the driver could have back.
func (a *Allocator) returnable(b int32) int64 {
	if from, to := a.pagesIn(b); from < to {
		return int64(to - from)
	}
	if a.releasable(b) {
		return a.sets[b].size
	}
	return 0
}

// whole reports whether a block is all of its segment.
func (a *Allocator) whole(b int32) bool { return a.blocks[b].prev == 0 && a.blocks[b].next == 0 }

// release gives a whole free segment back.
func (a *Allocator) release(b int32) {
	a.extract(b)
	size := a.sets[b].size
	a.driver.Free(a.sets[b].addr, size)
	a.Frees++
	a.Reserved -= size
	a.drop(b)
}

// threshold is the bytes up to which garbage collection leaves reserved memory alone.
func (a *Allocator) threshold() int64 { return int64(a.set.GCThreshold * float64(a.limit)) }

// collectGarbage returns free segments of the default large pool that have
// not served for longest, until reserved memory falls below the threshold.
func (a *Allocator) collectGarbage() {
	target := a.Reserved - a.threshold()
	if target <= 0 {
		return
	}
	at := a.poolOf(PoolID{}, false)
	p := &a.pools[at]
	age := func(b int32) int64 { return p.calls - a.blocks[b].inserted }
	var order []int32
	for _, l := range a.byHandle(at) {
		order = a.sets.all(&a.lanes[l].free, order)
	}
	order = slices.DeleteFunc(order, func(b int32) bool { return !a.whole(b) })
	var total, count int64
	for _, b := range order {
		total += age(b)
		count++
	}
	for freed, some := int64(0), true; freed < target && some && count > 0; {
		some = false
		threshold := float64(total) / float64(count)
		order = slices.DeleteFunc(order, func(b int32) bool {
			if a.blocks[b].within != 0 || float64(age(b)) < threshold {
				return false
			}
			total -= age(b)
			count--
			freed += a.sets[b].size
			a.release(b)
			some = true
			return true
		})
	}
}

// releaseAvailable gives large free segments back, enough for a request that
// the driver refused; it reports whether it did. Without max_split_size it does
// nothing.
func (a *Allocator) releaseAvailable(l int32, size int64) bool {
	if a.set.MaxSplitSize == math.MaxInt64 {
		return false
	}
	need := max(size, a.set.MaxSplitSize)
	f := &a.lanes[l].free
	if b := a.sets.atLeast(f, place{size: need}); b != 0 && a.releasable(b) {
		a.release(b)
		return true
	}
	var freed int64
	a.scratch = a.sets.all(f, a.scratch[:0])
	for _, b := range slices.Backward(a.scratch) {
		size := a.sets[b].size
		if freed >= need || size < a.set.MaxSplitSize {
			break
		}
		if size < need && a.releasable(b) {
			freed += size
			a.release(b)
		}
	}
	return freed >= need
}

// releasable reports whether a free block is a segment that cudaFree takes. One of
// which a part is in use cannot be returned, whatever the setting is now.
func (a *Allocator) releasable(b int32) bool { return a.blocks[b].within == 0 && a.whole(b) }

// Releases reports whether a request that no free block serves has memory given
// back before it takes more: by garbage collection, or because of the limit.
func (a *Allocator) Releases(request int64) bool {
	return a.CollectsGarbage() || a.limited(a.set.Round(request))
}

// CollectsGarbage reports whether a request that no free block serves begins with
// garbage collection.
func (a *Allocator) CollectsGarbage() bool { return a.collects() && a.Reserved > a.threshold() }

// expands reports whether requests to a pool are served from expandable segments.
func (a *Allocator) expands() bool { return a.set.Expandable }

func (a *Allocator) collects() bool { return a.limit > 0 && a.set.GCThreshold > 0 }

// throws reports whether a request that no free block serves is refused before anything
// is released for it. A limit has precedence.
func (a *Allocator) throws(size int64) bool {
	return a.set.ThrowOnOOM && a.total > 0 && !a.limited(size) && a.Reserved+a.set.SegmentSize(size) > a.total
}

func (a *Allocator) limited(size int64) bool {
	return a.limit > 0 && a.Reserved+a.set.SegmentSize(size) > a.limit
}
