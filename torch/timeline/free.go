package timeline

import (
	"fmt"
	"math/bits"
	"sort"

	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
)

// Free is the free memory that a device's segments hold at one moment.
type Free struct {
	// Releasable is what torch.cuda.empty_cache() would return to the driver:
	// wholly free segments, and wholly free pages of expandable ones. Segments of
	// private pools are left out: a graph may replay into them.
	Releasable int64
	// Stranded is the rest: free pieces of segments that something else pins.
	Stranded int64
	// Pins is what keeps it from being returned, and Sparse what of it is in
	// segments that are at least half free: much memory for few blocks.
	Pins, Sparse Pins
}

// Pins are the active blocks of segments that hold stranded memory.
type Pins struct {
	Segments int
	Stranded int64 // bytes in them
	Blocks   int
	Bytes    int64
	Sites    []SiteSum // who made the blocks, most blocks first
}

// FreeOf measures the free memory of a device's segments.
func FreeOf(s *snapshot.Snapshot, d snapshot.Device) Free {
	var out Free
	pins, sparse := map[stack.Site]*SiteSum{}, map[stack.Site]*SiteSum{}
	for _, i := range d.Segments {
		seg := &s.Segments[i]
		free := seg.Free()
		releasable := Releasable(s, seg)
		out.Releasable += releasable
		out.Stranded += free - releasable
		if free == releasable {
			continue
		}
		out.Pins.add(s, seg, free-releasable, pins)
		if 2*free >= seg.TotalSize {
			out.Sparse.add(s, seg, free-releasable, sparse)
		}
	}
	out.Pins.Sites, out.Sparse.Sites = byBlocks(pins), byBlocks(sparse)
	return out
}

// add counts the active blocks of a segment. One without any pins nothing.
func (p *Pins) add(s *snapshot.Snapshot, seg *snapshot.Segment, stranded int64, sites map[stack.Site]*SiteSum) {
	before := p.Blocks
	for j := range seg.Blocks {
		if b := &seg.Blocks[j]; b.State.Active() {
			site := s.Stacks.Site(b.Stack)
			if sites[site] == nil {
				sites[site] = &SiteSum{Site: site, Stack: b.Stack}
			}
			sites[site].Count++
			sites[site].Bytes += b.Size
			p.Blocks++
			p.Bytes += b.Size
		}
	}
	if p.Blocks > before {
		p.Segments++
		p.Stranded += stranded
	}
}

// mostBlocks orders sites by their number of blocks.
func byBlocks(sites map[stack.Site]*SiteSum) (out []SiteSum) {
	for _, p := range sites {
		out = append(out, *p)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		if a.Count != b.Count {
			return a.Count > b.Count
		}
		return a.Bytes > b.Bytes || a.Bytes == b.Bytes && fmt.Sprint(a.Site) < fmt.Sprint(b.Site)
	})
	return out
}

// Space is the free memory at the moment of the snapshot, and how it came to be
// so much.
type Space struct {
	Free

	// Taken is the most that was held of what was taken from the driver while the free
	// memory held already was enough for the request, but was in pieces, or in another
	// pool.
	Taken int64
	// Overhead is by how much the peak of reserved memory exceeds the peak of live
	// memory until then (each request rounded up to 512 bytes), bounded by what had been
	// taken like that and was held: what the history began with is not explained by it.
	Overhead int64
}

// SpaceOf measures the free memory of a device, and follows its history.
func SpaceOf(t *Timeline, d snapshot.Device) Space {
	out := Space{Free: FreeOf(t.Snap, d)}
	out.Taken, out.Overhead = t.taken()
	return out
}

// Releasable returns how much of a segment's free memory empty_cache would return.
func Releasable(s *snapshot.Snapshot, seg *snapshot.Segment) (sum int64) {
	for _, r := range ReleasableRanges(s, seg) {
		sum += r[1] - r[0]
	}
	return sum
}

// ReleasableRanges are the parts of a segment that empty_cache would return, as
// offsets: all of it or, of an expandable segment, whole pages.
func ReleasableRanges(s *snapshot.Snapshot, seg *snapshot.Segment) (out [][2]int64) {
	if s.PoolOf(seg.Pool).Private() {
		return nil
	}
	if !seg.Expandable {
		if free := seg.Free(); free == seg.TotalSize {
			return [][2]int64{{0, free}}
		}
		return nil
	}
	page := uint64(allocator.LargeBuffer)
	if s.String(seg.Type) == "small" {
		page = allocator.SmallBuffer
	}
	for j := range seg.Blocks {
		if b := &seg.Blocks[j]; b.State == snapshot.Inactive {
			from, to := b.Addr-seg.Addr, b.Addr-seg.Addr+uint64(b.Size)
			if from, to := (from+page-1)/page*page, to/page*page; to > from {
				out = append(out, [2]int64{int64(from), int64(to)})
			}
		}
	}
	return out
}

// Strand shares a segment's stranded bytes over its blocks in use by their size:
// what each of them keeps from being returned. The shares sum to the whole.
func Strand(seg *snapshot.Segment, stranded int64) []int64 {
	var active, before, given uint64
	for i := range seg.Blocks {
		if b := &seg.Blocks[i]; b.State.Active() {
			active += uint64(max(b.Size, 0))
		}
	}
	out := make([]int64, len(seg.Blocks))
	for i := range seg.Blocks {
		b := &seg.Blocks[i]
		if !b.State.Active() || b.Size <= 0 || stranded <= 0 {
			continue
		}
		before += uint64(b.Size)
		high, low := bits.Mul64(before, uint64(stranded))
		share, _ := bits.Div64(high, low, active)
		out[i], given = int64(share-given), share
	}
	return out
}

// taken follows reserved and live memory, and the segments that were taken although
// enough was free, until as much is released.
func (t *Timeline) taken() (taken, overhead int64) {
	e := &t.Trace.Events
	round := func(n int64) int64 { return max(512, (n+511)/512*512) }
	live, reserved := int64(0), t.StartReserved
	for i := range t.Allocs {
		if !t.Before(i) {
			break
		}
		live += round(t.Size(i))
	}
	peakLive, peakReserved, atPeak := live, reserved, live
	var held, heldAtPeak int64 // needlessly
	for k, a := range e.Action {
		switch a {
		case snapshot.Alloc:
			live += round(e.Size[k])
			peakLive = max(peakLive, live)
			atPeak = max(atPeak, min(live, peakReserved))
		case t.ends:
			live -= round(e.Size[k])
		case snapshot.SegmentAlloc, snapshot.SegmentMap:
			if want := t.wanted(k); want > 0 && reserved-live >= round(want) {
				held += e.Size[k]
				taken = max(taken, held)
			}
			reserved += e.Size[k]
			if reserved > peakReserved {
				peakReserved, atPeak, heldAtPeak = reserved, peakLive, held
			}
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			reserved -= e.Size[k]
			held = max(0, held-e.Size[k])
		}
	}
	return taken, max(0, min(heldAtPeak, peakReserved-atPeak))
}

// wanted is the request for which the segment of event k was taken: the next
// allocation. It is 0 if there is none close by.
func (t *Timeline) wanted(k int) int64 {
	e := &t.Trace.Events
	for j := k + 1; j < e.Len() && j <= k+4; j++ {
		if e.Action[j] == snapshot.Alloc {
			return e.Size[j]
		}
	}
	return 0
}
