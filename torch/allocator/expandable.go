package allocator

import "strandline/torch/ranges"

// takeExpandable maps memory for a request where the addresses of a reservation
// are free, next to free memory if there is some. What was mapped stays mapped
// if the driver then refuses the rest.
func (a *Allocator) takeExpandable(l int32, size int64) int32 {
	b := a.place(l, size)
	if b == 0 {
		return 0
	}
	if a.blocks[b].state == unmapped {
		if b = a.mapIn(b, min(a.sets[b].size, size)); b == 0 {
			return 0
		}
	}
	for a.sets[b].size < size {
		next := a.blocks[b].next
		if b = a.mapIn(next, min(a.sets[next].size, size-a.sets[b].size)); b == 0 {
			return 0
		}
	}
	a.remove(b)
	return b
}

// place is find_expandable_block: the first of free and unmapped blocks, one
// behind the other, that have room for a request. If there are none, it is of a
// new reservation; none if that is too short.
func (a *Allocator) place(l int32, size int64) int32 {
	for next := uint64(0); ; {
		first, ok := a.unmappedFrom(l, next, size)
		if !ok {
			break
		}
		b := first.Value
		if prev := a.blocks[b].prev; prev != 0 && a.blocks[prev].state == free {
			b = prev
		}
		if a.roomy(b, size) {
			if a.driver.Within(first.Start, size) {
				return b
			}
			a.shorten(b, size)
		}
		next = first.Start + 1
	}
	b := a.newReservation(l)
	if a.sets[b].size < size {
		a.extract(b)
		a.drop(b)
		return 0
	}
	return b
}

// roomy reports whether free and unmapped blocks from b on have room for a request.
func (a *Allocator) roomy(b int32, size int64) bool {
	var room int64
	for ; b != 0 && room < size && (a.blocks[b].state == free || a.blocks[b].state == unmapped); b = a.blocks[b].next {
		room += a.sets[b].size
	}
	return room >= size
}

// shorten ends a reservation such that a request does not fit from block b on,
// if b or what follows is the end of it.
func (a *Allocator) shorten(b int32, size int64) {
	var room int64
	for ; b != 0 && (a.blocks[b].state == free || a.blocks[b].state == unmapped); b = a.blocks[b].next {
		x := &a.blocks[b]
		if x.next != 0 || x.state != unmapped {
			room += a.sets[b].size
			continue
		}
		r := &a.ranges[x.within-1]
		keep := max(0, size-1-room) / r.page * r.page
		r.length -= a.sets[b].size - keep
		a.noRoom(b)
		a.extract(b)
		if a.sets[b].size = keep; keep > 0 {
			a.insertUnmapped(b)
		} else {
			if x.prev != 0 {
				a.blocks[x.prev].next = 0
			}
			a.drop(b)
		}
		return
	}
}

func (a *Allocator) newReservation(l int32) int32 {
	page := int64(SmallBuffer)
	if !a.pools[a.lanes[l].pool].small {
		page = a.set.LargeSegment
	}
	addr, length := a.driver.Reserve(page)
	r := reservation{addr: addr, page: page}
	r.length = min(length, r.whole(a.span))
	length = r.length
	a.measure(&r)
	a.ranges = append(a.ranges, r)
	b := a.newBlock(addr, length)
	a.bear(b)
	x := &a.blocks[b]
	x.lane, x.within, x.state = l, int32(len(a.ranges)), unmapped
	a.insertUnmapped(b)
	return b
}

// whole rounds bytes up to pages.
func (r *reservation) whole(bytes int64) int64 { return (bytes + r.page - 1) / r.page * r.page }

// measure notes how near others are to a new reservation.
func (a *Allocator) measure(r *reservation) {
	for i := range a.ranges {
		switch x := &a.ranges[i]; {
		case x.gone:
		case x.addr > r.addr:
			a.nearest = min(a.nearest, int64(min(x.addr-r.addr, longest)))
		case x.addr < r.addr && !x.loaded:
			a.nearest = min(a.nearest, int64(min(r.addr-x.addr, longest)))
		}
	}
}

func (a *Allocator) insertUnmapped(b int32) {
	from, to := a.bounds(b)
	a.lanes[a.blocks[b].lane].unmapped.Put(from, to, b)
	a.room(b)
}

// mapIn is map_block: it maps whole pages for size bytes at the front of an
// unmapped block, and returns the free block that they become part of; none if
// the driver refuses.
func (a *Allocator) mapIn(b int32, size int64) int32 {
	page := a.ranges[a.blocks[b].within-1].page
	size = min((size+page-1)/page*page, a.sets[b].size)
	if !a.driver.Map(a.sets[b].addr, size) {
		return 0
	}
	a.Maps++
	a.reserve(size)
	a.extract(b)
	if size < a.sets[b].size {
		rest := a.cut(b, size)
		a.bearBlock(rest)
		a.insertUnmapped(rest)
	}
	a.blocks[b].state = free
	b = a.merge(b)
	a.insert(b)
	if !a.bordersUnmapped(b) {
		a.noRoom(b)
	}
	return b
}

// pagesIn are the addresses of the whole pages in a block of an expandable
// segment, from the first to behind the last.
func (a *Allocator) pagesIn(b int32) (from, to uint64) {
	if a.blocks[b].within == 0 {
		return 0, 0
	}
	r := &a.ranges[a.blocks[b].within-1]
	page, offset := uint64(r.page), a.sets[b].addr-r.addr
	return r.addr + (offset+page-1)/page*page, r.addr + (offset+uint64(a.sets[b].size))/page*page
}

// unmap gives the whole pages of a free block back.
func (a *Allocator) unmap(b int32) {
	from, to := a.pagesIn(b)
	if from >= to {
		return
	}
	a.extract(b)
	if front := int64(from - a.sets[b].addr); front > 0 {
		rest := a.cut(b, front)
		a.bearBlock(b)
		a.insert(b)
		b = rest
	}
	size := int64(to - from)
	if size < a.sets[b].size {
		rest := a.cut(b, size)
		a.bearBlock(rest)
		a.insert(rest)
	}
	a.driver.Unmap(a.sets[b].addr, size)
	a.Unmaps++
	a.Reserved -= size
	a.blocks[b].state = unmapped
	b = a.merge(b)
	if a.whole(b) { // and with it the reservation
		a.ranges[a.blocks[b].within-1].gone = true
		a.noRoom(b)
		a.drop(b)
		return
	}
	a.insertUnmapped(b)
}

// rooms are addresses of a lane that no block in use has, one behind the other,
// with or without memory: where a request fits that is served by mapping more.
// Some may be left of which all is mapped.
type rooms struct{ ranges.List[struct{}] }

// minUnmapped is the number of unmapped blocks from which on rooms are kept:
// few of them are looked at sooner than that is done.
const minUnmapped = 64

// unmappedFrom is the first unmapped block of a lane that ends behind addr and
// may have room for a request.
func (a *Allocator) unmappedFrom(l int32, addr uint64, size int64) (first ranges.Range[int32], ok bool) {
	x := &a.lanes[l]
	if x.rooms == nil && x.unmapped.Len() > a.many {
		x.rooms, a.roomed = &rooms{}, true
		for u := range x.unmapped.All() {
			a.room(u.Value)
		}
	}
	from := func(addr uint64) (ranges.Range[int32], bool) {
		u, ok := x.unmapped.From(addr)
		if ok && u.Start < addr {
			u, ok = x.unmapped.From(u.End)
		}
		return u, ok
	}
	if x.rooms == nil {
		return from(addr)
	}
	for r := range x.rooms.AtLeast(addr, uint64(size)) {
		if u, ok := from(max(addr, r.Start)); ok && u.Start < r.End {
			return u, true
		}
	}
	return first, false
}

// room notes that a block which is not in use has room, with its neighbors.
func (a *Allocator) room(b int32) {
	x := &a.blocks[b]
	l := &a.lanes[x.lane]
	if l.rooms == nil || x.within == 0 || x.state == free && !a.bordersUnmapped(b) {
		return
	}
	from, to := a.bounds(b)
	if x.prev != 0 && a.blocks[x.prev].state == free {
		from = a.sets[x.prev].addr
	}
	if x.next != 0 && a.blocks[x.next].state == free {
		to += uint64(a.sets[x.next].size)
	}
	l.rooms.Join(from, to, struct{}{})
}

// noRoom takes back that a block has room.
func (a *Allocator) noRoom(b int32) {
	x := &a.blocks[b]
	if r := a.lanes[x.lane].rooms; r != nil && x.within != 0 {
		r.Cut(a.bounds(b))
	}
}

// bordersUnmapped reports whether a neighbor of a block has no memory.
func (a *Allocator) bordersUnmapped(b int32) bool {
	x := &a.blocks[b]
	return x.prev != 0 && a.blocks[x.prev].state == unmapped || x.next != 0 && a.blocks[x.next].state == unmapped
}
