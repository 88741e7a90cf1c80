package replay

import (
	"cmp"
	"fmt"
	"slices"

	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/units"
)

// expect takes the next event of the call if it is such a call of the driver.
func (p *player) expect(action snapshot.Action, addr uint64, size int64) bool {
	p.skip()
	if p.next < p.end && p.e.Action[p.next] == action && p.e.Size[p.next] == size &&
		(addr == 0 || p.e.Addr[p.next] == addr) {
		p.next++
		p.out.CallsMet++
		return true
	}
	return false
}

// refused reports whether the driver refused at this place: what comes next in
// the recording is a release, or the end of the call in an oom.
func (p *player) refused() bool {
	p.skip()
	if p.next == p.end {
		return p.end < p.e.Len() && p.e.Action[p.end] == snapshot.OOM
	}
	return releases(p.e.Action[p.next])
}

// Malloc is the driver's answer to cudaMalloc.
func (p *player) Malloc(size int64) (uint64, bool) {
	if p.out.Difference != nil {
		return 0, false
	}
	if p.expect(snapshot.SegmentAlloc, 0, size) {
		k := p.next - 1
		p.own(p.e.Addr[k], size, p.out.assumed.pools[k])
		return p.e.Addr[k], true
	}
	if !p.refused() {
		p.differ(p.next, p.describe(p.next), fmt.Sprintf("segment_alloc of %s bytes", units.Count(size)))
	}
	return 0, false
}

// Free is cudaFree.
func (p *player) Free(addr uint64, size int64) { p.giveBack(snapshot.SegmentFree, addr, size) }

// Unmap is cuMemUnmap.
func (p *player) Unmap(addr uint64, size int64) { p.giveBack(snapshot.SegmentUnmap, addr, size) }

func (p *player) giveBack(action snapshot.Action, addr uint64, size int64) {
	if p.out.Difference == nil && !p.expect(action, addr, size) {
		p.differ(p.next, p.describe(p.next), fmt.Sprintf("%s of %s bytes at 0x%x", action, units.Count(size), addr))
		p.out.Difference.wrong = addr
	}
	p.own(addr, size, allocator.PoolID{})
}

// Reserve is the driver's answer to cuMemAddressReserve: the next memory that is
// mapped is at the front of it.
func (p *player) Reserve(int64) (uint64, int64) {
	const length = 1 << 40
	p.skip()
	if p.next < p.end && p.e.Action[p.next] == snapshot.SegmentMap {
		if above := p.startAbove(p.e.Addr[p.next]); above != 0 {
			p.differ(p.next, p.describe(p.next), "a new reservation")
			p.out.Difference.base = above
		}
		return p.e.Addr[p.next], length
	}
	return 1 << 62, length // nothing was mapped there
}

// startAbove is the first address of a reservation of the start of which memory
// at addr must be, below it: no other reservation has room between them.
func (p *player) startAbove(addr uint64) uint64 {
	i, _ := slices.BinarySearchFunc(p.start, addr, func(g allocator.Segment, addr uint64) int { return cmp.Compare(g.Addr, addr) })
	if i == len(p.start) || !p.start[i].Expandable {
		return 0
	}
	above := p.start[i].Addr
	if base := p.out.base(above); base <= addr || above-addr >= uint64(p.PeakReserved.Bytes) {
		return 0
	}
	return above
}

// Within reports whether the next memory is mapped at addr.
func (p *player) Within(addr uint64, _ int64) bool {
	p.skip()
	return p.next == p.end || p.e.Action[p.next] != snapshot.SegmentMap || p.e.Addr[p.next] == addr
}

// Map is the driver's answer to cuMemMap.
func (p *player) Map(addr uint64, size int64) bool {
	if p.out.Difference != nil {
		return false
	}
	if p.expect(snapshot.SegmentMap, addr, size) {
		p.own(addr, size, p.out.assumed.pools[p.next-1])
		return true
	}
	if !p.refused() {
		p.differ(p.next, p.describe(p.next), fmt.Sprintf("segment_map of %s bytes at 0x%x", units.Count(size), addr))
	}
	return false
}
