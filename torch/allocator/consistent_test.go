package allocator

import (
	"cmp"
	"fmt"
	"slices"
)

// consistent returns what is wrong with the state of an allocator, nil if nothing is.
func (a *Allocator) consistent(d *fakeDevice) error {
	var sum Stats
	var extents []Segment
	for i := 1; i < len(a.blocks); i++ {
		b := int32(i)
		x, n := &a.blocks[b], a.sets[b]
		if x.state == gone {
			continue
		}
		if err := a.linked(b); err != nil {
			return err
		}
		if x.prev == 0 {
			extents = append(extents, Segment{Addr: n.addr, Size: a.extent(b), Expandable: x.within != 0})
		}
		switch x.state {
		case taken:
			sum.Allocated += n.size
			fallthrough
		case waiting:
			sum.Active += n.size
			sum.Requested += x.requested
			fallthrough
		case free:
			sum.Reserved += n.size
		}
	}
	back := make([]int64, len(a.pools))
	for i := range a.blocks {
		if a.blocks[i].state == free {
			back[a.lanes[a.blocks[i].lane].pool] += a.returnable(int32(i))
		}
	}
	for i := range a.pools {
		if a.pools[i].back != back[i] {
			return fmt.Errorf("pool %d could give %d bytes back, its blocks %d", i, a.pools[i].back, back[i])
		}
	}
	for _, err := range []error{a.tiled(extents, d), a.sorted(), a.haveRooms(), a.spared()} {
		if err != nil {
			return err
		}
	}
	got := a.Stats
	if got.Allocated != sum.Allocated || got.Active != sum.Active || got.Requested != sum.Requested || got.Reserved != sum.Reserved {
		return fmt.Errorf("stats are %+v, the blocks make %+v", got, sum)
	}
	if got.AllocatedPeak < got.Allocated || got.ReservedPeak < got.Reserved || got.ReservedPeak < got.AllocatedPeak {
		return fmt.Errorf("peaks %+v", got)
	}
	if got.Reserved != d.used || got.DriverCalls() > d.calls {
		return fmt.Errorf("%d bytes reserved, %d taken from the driver", got.Reserved, d.used)
	}
	return nil
}

// haveRooms returns what is wrong with what is kept of where memory can be mapped.
func (a *Allocator) haveRooms() error {
	for i := range a.blocks {
		x := &a.blocks[i]
		if x.state == gone || x.within == 0 || a.lanes[x.lane].rooms == nil {
			continue
		}
		from, to := a.bounds(int32(i))
		r, ok := a.lanes[x.lane].rooms.From(from)
		inside := ok && r.Start <= from && to <= r.End
		outside := !ok || r.Start >= to
		switch {
		case (x.state == taken || x.state == waiting) && !outside:
			return fmt.Errorf("0x%x is in use and is kept as room", from)
		case (x.state == unmapped || x.state == free && a.bordersUnmapped(int32(i))) && !inside:
			return fmt.Errorf("0x%x is not kept as room: [%x,%x)", from, r.Start, r.End)
		}
	}
	return nil
}

// linked returns what is wrong between a block and the next one.
func (a *Allocator) linked(b int32) error {
	x, n := &a.blocks[b], a.sets[b]
	if n.size <= 0 || n.size%Granule != 0 || n.addr%Granule != 0 {
		return fmt.Errorf("block of %d bytes at 0x%x", n.size, n.addr)
	}
	if x.prev != 0 && a.blocks[x.prev].next != b {
		return fmt.Errorf("the block before 0x%x has another next one", n.addr)
	}
	if x.next == 0 {
		return nil
	}
	y := &a.blocks[x.next]
	switch {
	case y.prev != b, y.state == gone, a.sets[x.next].addr != n.addr+uint64(n.size):
		return fmt.Errorf("the block behind 0x%x is not its neighbor", n.addr)
	case y.lane != x.lane, y.within != x.within:
		return fmt.Errorf("the block behind 0x%x is of another segment", n.addr)
	case x.state == y.state && (x.state == free || x.state == unmapped):
		return fmt.Errorf("0x%x and the block behind it are not joined", n.addr)
	case x.within == 0 && (x.state == unmapped || y.state == unmapped):
		return fmt.Errorf("0x%x is unmapped and not expandable", n.addr)
	}
	return nil
}

// extent is the bytes of the blocks from b on.
func (a *Allocator) extent(b int32) (bytes int64) {
	for ; b != 0; b = a.blocks[b].next {
		bytes += a.sets[b].size
	}
	return bytes
}

// tiled holds the segments against what the driver gave.
func (a *Allocator) tiled(extents []Segment, d *fakeDevice) error {
	segments := 0
	for _, g := range extents {
		want := d.segments[g.Addr]
		if g.Expandable {
			want = d.reserved[g.Addr]
		} else {
			segments++
		}
		if g.Size != want {
			return fmt.Errorf("the blocks from 0x%x on cover %d bytes, not %d", g.Addr, g.Size, want)
		}
	}
	if segments != len(d.segments) {
		return fmt.Errorf("%d segments, the driver gave %d", segments, len(d.segments))
	}
	for i := range a.blocks {
		if x := &a.blocks[i]; x.within != 0 && x.state != gone && x.state == unmapped {
			for at := range d.mapped {
				if at-a.sets[i].addr < uint64(a.sets[i].size) {
					return fmt.Errorf("0x%x is mapped, and its block is not", at)
				}
			}
		}
	}
	return nil
}

// sorted holds the sets against the blocks that belong in them.
func (a *Allocator) sorted() error {
	for l := range a.lanes {
		for _, s := range []state{free, unmapped} {
			var want []int32
			for i := range a.blocks {
				if x := &a.blocks[i]; x.state == s && int(x.lane) == l {
					want = append(want, int32(i))
				}
			}
			slices.SortFunc(want, func(x, y int32) int {
				bySize := cmp.Or(cmp.Compare(a.sets[x].size, a.sets[y].size), cmp.Compare(a.sets[x].birth, a.sets[y].birth))
				if s == unmapped {
					bySize = 0
				}
				return cmp.Or(bySize, cmp.Compare(a.sets[x].addr, a.sets[y].addr))
			})
			var got []int32
			if s == free {
				got = a.sets.all(&a.lanes[l].free, nil)
			} else {
				for u := range a.lanes[l].unmapped.All() {
					got = append(got, u.Value)
				}
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("pool %d, stream %d: blocks %v, want %v", a.lanes[l].pool, a.lanes[l].stream, got, want)
			}
		}
	}
	return nil
}

// spared checks the spare indices against those that no block has.
func (a *Allocator) spared() error {
	var want []int32
	for i := 1; i < len(a.blocks); i++ {
		if a.blocks[i].state == gone {
			want = append(want, int32(i))
		}
	}
	if got := slices.Sorted(slices.Values(a.spare)); !slices.Equal(got, want) {
		return fmt.Errorf("indices %v are spare, and %v are without a block", got, want)
	}
	if waits := len(a.waiting); waits > len(a.blocks) {
		return fmt.Errorf("%d frees wait", waits)
	}
	return nil
}
