package allocator

import (
	"cmp"
	"fmt"
	"slices"
)

// A Segment is one call of cudaMalloc, or one contiguous mapped range of an
// expandable segment.
type Segment struct {
	Addr       uint64
	Size       int64
	Stream     uint64
	Pool       PoolID
	Small      bool
	Expandable bool
	Born       uint32  // of one that is loaded: its order of birth, equal ones by address
	Blocks     []Piece // by address; they cover the segment
}

// A Piece is a block of a segment.
type Piece struct {
	Addr      uint64
	Size      int64
	Requested int64 // 0 if it is free
	State     State
	Block     Block  // its name for Free, none if it is not allocated
	Ticket    Ticket // of its free, if it is pending
	Age       int64  // of one that is free: searches of its pool since it is
	Born      uint32 // as of its segment, where each block has its own
}

// A State of a block.
type State uint8

// The states of a block. One that is pending was freed by the program and waits
// for another stream.
const (
	Inactive State = iota
	Allocated
	Pending
)

var states = [...]State{free: Inactive, taken: Allocated, waiting: Pending}

// Load puts segments into an allocator that has none, as they were at some
// moment, and fills in the names of the blocks that are in use. Expandable
// segments of a pool and a stream are of one reservation, unless others are
// between them; it begins with the first of them, or at base if that is not 0. After
// an error it has none.
func (a *Allocator) Load(segments []Segment, base func(addr uint64) uint64) error {
	order := make([]*Segment, len(segments))
	for i := range segments {
		order[i] = &segments[i]
		if err := order[i].covered(); err != nil {
			return err
		}
	}
	slices.SortFunc(order, func(x, y *Segment) int { return cmp.Compare(x.Addr, y.Addr) })
	var last int32 // block of the expandable segment before
	for _, g := range order {
		l := a.laneOf(a.poolOf(g.Pool, g.Small), a.Stream(g.Stream))
		if !g.Expandable {
			last = 0
			a.load(g, 0, l)
			continue
		}
		if last == 0 || a.blocks[last].lane != l {
			addr := min(g.Addr, base(g.Addr))
			page := int64(SmallBuffer)
			if !g.Small {
				page = a.set.LargeSegment
			}
			a.ranges = append(a.ranges, reservation{addr: addr, page: page, loaded: true})
			last = 0
		}
		last = a.load(g, last, l)
	}
	for _, b := range a.ends() {
		a.endReservation(b)
	}
	a.AllocatedPeak, a.ReservedPeak = a.Allocated, a.Reserved
	return nil
}

// ends are the last blocks of reservations whose end is not known yet.
func (a *Allocator) ends() (out []int32) {
	for i := range a.blocks {
		x := &a.blocks[i]
		if x.state != gone && x.within != 0 && x.next == 0 && a.ranges[x.within-1].length == 0 {
			out = append(out, int32(i))
		}
	}
	return out
}

// endReservation adds the addresses behind block b, the last of a reservation.
func (a *Allocator) endReservation(b int32) {
	r := &a.ranges[a.blocks[b].within-1]
	end := a.sets[b].addr + uint64(a.sets[b].size)
	r.length = max(int64(end-r.addr), r.whole(a.span))
	a.addUnmapped(b, end, r.addr+uint64(r.length))
}

// addUnmapped adds addresses without memory behind block b.
func (a *Allocator) addUnmapped(b int32, from, to uint64) int32 {
	if from >= to {
		return b
	}
	u := a.newBlock(from, int64(to-from))
	a.sets[u].birth = a.sets[b].birth
	x, y := &a.blocks[b], &a.blocks[u]
	*y = block{lane: x.lane, within: x.within, state: unmapped, prev: b}
	x.next = u
	a.insertUnmapped(u)
	return u
}

// load adds the blocks of a segment behind block last, or as a segment of its
// own, and returns the last one.
func (a *Allocator) load(g *Segment, last, l int32) int32 {
	within := int32(0)
	if g.Expandable {
		within = int32(len(a.ranges))
		switch r := &a.ranges[within-1]; {
		case last != 0:
			last = a.addUnmapped(last, a.sets[last].addr+uint64(a.sets[last].size), g.Addr)
		case r.addr < g.Addr:
			last = a.newBlock(r.addr, int64(g.Addr-r.addr))
			a.sets[last].birth = g.Born
			a.blocks[last] = block{lane: l, within: within, state: unmapped}
			a.insertUnmapped(last)
		}
	}
	a.scratch = a.scratch[:0]
	birth := g.Born
	if last != 0 {
		birth = a.sets[last].birth
	}
	a.born = max(a.born, birth)
	for i := range g.Blocks {
		p := &g.Blocks[i]
		b := a.newBlock(p.Addr, p.Size)
		a.sets[b].birth = cmp.Or(p.Born, birth)
		a.born = max(a.born, p.Born)
		a.blocks[b] = block{lane: l, within: within, prev: last}
		if last != 0 {
			a.blocks[last].next = b
		}
		last = b
		if p.State == Inactive {
			a.blocks[b].inserted = -p.Age
			a.scratch = append(a.scratch, b)
			continue
		}
		x := &a.blocks[b]
		x.state, x.requested = taken, p.Requested
		a.Allocated += p.Size
		a.Active += p.Size
		a.Requested += p.Requested
		p.Block = Block(b)
		if p.State == Pending {
			p.Ticket = a.Defer(p.Block)
		}
	}
	for _, b := range a.scratch { // whose neighbors are known now
		inserted := a.blocks[b].inserted
		a.insert(b)
		a.blocks[b].inserted += inserted
	}
	a.Reserved += g.Size
	a.widest = max(a.widest, g.Size)
	if g.Expandable {
		a.widest = Unlimited
	}
	return last
}

// covered returns an error if the blocks of a segment do not cover it.
func (g *Segment) covered() error {
	at := g.Addr
	for i := range g.Blocks {
		p := &g.Blocks[i]
		if p.Addr != at || p.Size <= 0 {
			return fmt.Errorf("the blocks of the segment at 0x%x do not cover it: 0x%x", g.Addr, at)
		}
		at += uint64(p.Size)
	}
	if at != g.Addr+uint64(g.Size) {
		return fmt.Errorf("the blocks of the segment at 0x%x end at 0x%x", g.Addr, at)
	}
	return nil
}

// BornAt is the order of birth of the block that begins at addr, as it was before the
// block was split for the last request; 0 if none begins there.
func (a *Allocator) BornAt(addr uint64) uint32 {
	for i := range a.blocks {
		x := &a.blocks[i]
		if a.sets[i].addr != addr || x.state == gone || x.state == unmapped {
			continue
		}
		if a.births == blockBirths && a.sets[i].birth == a.born && x.next != 0 {
			return a.sets[x.next].birth // of what was left
		}
		return a.sets[i].birth
	}
	return 0
}

// Segments are those that the allocator holds, by address.
func (a *Allocator) Segments() []Segment {
	var order []int32
	for i := range a.blocks {
		if s := a.blocks[i].state; s != gone && s != unmapped {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(x, y int32) int { return cmp.Compare(a.sets[x].addr, a.sets[y].addr) })
	var out []Segment
	pieces := make([]Piece, 0, len(order))
	for _, b := range order {
		x := &a.blocks[b]
		if x.prev == 0 || a.blocks[x.prev].state == unmapped {
			p := a.poolWith(b)
			out = append(out, Segment{
				Addr: a.sets[b].addr, Stream: a.streams[a.lanes[x.lane].stream], Pool: p.id, Small: p.small, Expandable: x.within != 0,
			})
			pieces = pieces[len(pieces):]
		}
		piece := Piece{Addr: a.sets[b].addr, Size: a.sets[b].size, State: states[x.state]}
		if piece.State != Inactive {
			piece.Requested, piece.Block = x.requested, Block(b)
		}
		pieces = append(pieces, piece)
		g := &out[len(out)-1]
		g.Blocks = pieces
		g.Size += piece.Size
	}
	return out
}

// InactiveSplit is the bytes of free blocks whose segment is in use beside them:
// inactive_split_bytes of torch.cuda.memory_stats(), which leaves expandable
// segments out.
func (a *Allocator) InactiveSplit() (bytes int64) {
	for i := range a.blocks {
		if x := &a.blocks[i]; x.state == free && x.within == 0 && !a.whole(int32(i)) {
			bytes += a.sets[i].size
		}
	}
	return bytes
}
