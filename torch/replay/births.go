package replay

import (
	"cmp"
	"slices"

	"strandline/torch/allocator"
)

// bear numbers the memory of the start in the order in which it was made, as far as that
// decides between free blocks of equal size. The file does not show the order: it is that
// of addresses, but for what is assumed. It returns the first addresses of what is numbered.
func (x *Result) bear(start []allocator.Segment) (byAge []uint64) {
	var made []uint64
	var born []*uint32
	for i := range start {
		g := &start[i]
		switch {
		case x.Version.BearsSegments():
			made, born = append(made, g.Addr), append(born, &g.Born)
		case x.Version.BearsBlocks():
			for j := range g.Blocks {
				b := &g.Blocks[j]
				made, born = append(made, b.Addr), append(born, &b.Born)
			}
		}
	}
	sooner := map[uint64][]uint64{}
	for e := range x.assumed.older {
		sooner[e.later] = append(sooner[e.later], e.sooner)
	}
	of := map[uint64]*uint32{}
	for i, addr := range made {
		of[addr] = born[i]
	}
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
		byAge = append(byAge, addr)
		*of[addr] = uint32(len(byAge))
	}
	for _, addr := range made {
		visit(addr)
	}
	return byAge
}

// heir is the first address of the memory of the start with a number, 0 if none has it.
func (p *player) heir(born uint32) uint64 {
	if born == 0 || int(born) > len(p.byAge) {
		return 0
	}
	return p.byAge[born-1]
}
