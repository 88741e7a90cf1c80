package allocator

// split keeps the front of a block for a request, and frees the rest.
func (a *Allocator) split(b int32, size int64) {
	rest := a.sets[b].size - size
	p := a.poolWith(b)
	if p.whole {
		return
	}
	if p.small || a.expands() {
		if rest < Granule {
			return
		}
	} else if size >= a.set.MaxSplitSize || rest <= SmallLimit {
		return
	}
	r := a.cut(b, size)
	a.insert(r)
	a.bearBlock(b)
}

// cut makes a block of what is behind the first size bytes of b.
func (a *Allocator) cut(b int32, size int64) int32 {
	r := a.newBlock(a.sets[b].addr+uint64(size), a.sets[b].size-size)
	a.sets[b].size = size
	a.sets[r].birth = a.sets[b].birth
	x, y := &a.blocks[b], &a.blocks[r]
	y.lane, y.within, y.state = x.lane, x.within, x.state
	y.prev, y.next = b, x.next
	if x.next != 0 {
		a.blocks[x.next].prev = r
	}
	x.next = r
	return r
}

func (a *Allocator) newBlock(addr uint64, size int64) int32 {
	var b int32
	if n := len(a.spare); n > 0 {
		b = a.spare[n-1]
		a.spare = a.spare[:n-1]
		a.blocks[b] = block{}
	} else {
		b = int32(len(a.blocks))
		a.blocks = append(a.blocks, block{})
		a.sets = append(a.sets, node{})
	}
	a.sets[b] = node{addr: addr, size: size}
	return b
}

// drop forgets a block.
func (a *Allocator) drop(b int32) {
	a.blocks[b].state = gone
	a.spare = append(a.spare, b)
}

// insert puts a block into the free set of its pool.
func (a *Allocator) insert(b int32) {
	x := &a.blocks[b]
	l := &a.lanes[x.lane]
	p := &a.pools[l.pool]
	x.state, x.inserted = free, p.calls
	p.back += a.returnable(b)
	a.sets.insert(&l.free, b)
}

// remove takes a block out of the free set of its pool.
func (a *Allocator) remove(b int32) {
	l := &a.lanes[a.blocks[b].lane]
	a.pools[l.pool].back -= a.returnable(b)
	a.sets.remove(&l.free, b)
}

// poolWith is the pool that a block is of.
func (a *Allocator) poolWith(b int32) *pool { return &a.pools[a.lanes[a.blocks[b].lane].pool] }

func (a *Allocator) complete(b int32) {
	x := &a.blocks[b]
	a.Active -= a.sets[b].size
	a.Requested -= x.requested
	x.state = free
	a.insert(a.merge(b))
	if a.roomed {
		a.room(b)
	}
}

// merge joins a block, which is in no set, with its free neighbors of the same
// kind, and returns what they make.
func (a *Allocator) merge(b int32) int32 {
	kind := a.blocks[b].state
	if prev := a.blocks[b].prev; prev != 0 && a.blocks[prev].state == kind {
		a.extract(prev)
		a.sets[b].addr = a.sets[prev].addr
		a.join(b, prev, a.blocks[prev].prev, a.blocks[b].next)
	}
	if next := a.blocks[b].next; next != 0 && a.blocks[next].state == kind {
		a.extract(next)
		a.join(b, next, a.blocks[b].prev, a.blocks[next].next)
	}
	return b
}

// join gives block b the bytes of its neighbor and new neighbors.
func (a *Allocator) join(b, neighbor, prev, next int32) {
	a.sets[b].size += a.sets[neighbor].size
	a.blocks[b].prev, a.blocks[b].next = prev, next
	if prev != 0 {
		a.blocks[prev].next = b
	}
	if next != 0 {
		a.blocks[next].prev = b
	}
	a.drop(neighbor)
}

// extract takes a block out of the set it is in.
func (a *Allocator) extract(b int32) {
	x := &a.blocks[b]
	if x.state == free {
		a.remove(b)
		return
	}
	a.lanes[x.lane].unmapped.Cut(a.bounds(b))
}

// bounds is the addresses of a block, from the first to behind the last.
func (a *Allocator) bounds(b int32) (from, to uint64) {
	n := &a.sets[b]
	return n.addr, n.addr + uint64(n.size)
}
