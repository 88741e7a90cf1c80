package replay

import (
	"cmp"
	"slices"

	"strandline/torch/allocator"
)

// bear numbers the memory of the start in the order in which it was made, as far as that
// decides between free blocks of equal size. The file does not show the order: it is that
// of addresses, but for what is assumed.
func (x *Result) bear(start []allocator.Segment) {
	var born []*uint32
	x.heirs = nil
	for i := range start {
		g := &start[i]
		switch {
		case x.Version.BearsSegments():
			x.heirs, born = append(x.heirs, g.Addr), append(born, &g.Born)
		case x.Version.BearsBlocks():
			for j := range g.Blocks {
				b := &g.Blocks[j]
				x.heirs, born = append(x.heirs, b.Addr), append(born, &b.Born)
			}
		}
	}
	sooner := map[uint64][]uint64{}
	for e := range x.assumed.older {
		sooner[e.later] = append(sooner[e.later], e.sooner)
	}
	of := map[uint64]*uint32{}
	for i, addr := range x.heirs {
		of[addr] = born[i]
	}
	var order []uint64
	seen := map[uint64]bool{}
	var visit func(addr uint64)
	visit = func(addr uint64) {
		if seen[addr] {
			return
		}
		seen[addr] = true
		before := sooner[addr]
		slices.SortFunc(before, cmp.Compare)
		for _, other := range before {
			visit(other)
		}
		order = append(order, addr)
		*of[addr] = uint32(len(order))
	}
	for _, addr := range x.heirs {
		visit(addr)
	}
	x.heirs = order
}

// heir is the first address of the memory of the start with a number, 0 if none has it.
func (x *Result) heir(born uint32) uint64 {
	if born == 0 || int(born) > len(x.heirs) {
		return 0
	}
	return x.heirs[born-1]
}
