package replay

import (
	"fmt"
	"slices"

	"strandline/torch/allocator"
	"strandline/units"
)

// A Result is the outcome of a history that was run through the allocator under
// its own settings. It is exact, and then every figure of it is, only if
// Difference is nil.
type Result struct {
	*Recording
	Difference *Difference // the first one; nil if the replay is exact
	Stats      allocator.Stats
	// inactiveSplit is, at the end, the free bytes in segments that are in use.
	inactiveSplit int64

	Calls, CallsMet       int   // of the driver: recorded, and reproduced
	Segments, SegmentsMet int   // of the final state, block for block
	events                int   // that were reproduced
	span                  int64 // bytes of addresses that reservations have at most, where less than assumed; 0 if not
	// RetriesInDoubt is true if a request may have failed during graph capture or in a
	// private pool, where there is no retry: before 2.12 a file does not record its pool.
	// It is also true where a limit is assumed by which garbage collection explains calls
	// that may be of retries, and where private pools make room: random programs show one
	// retry in ten thousand that PyTorch does not count.
	RetriesInDoubt bool
	Lost           bool // the state before the first event cannot be used: nothing can be simulated

	// Sizes are the bytes of the block of each allocation of the timeline, 0
	// where it is not known, as it is behind the first difference.
	Sizes     []int64
	assumed   assumptions
	forks     []fork
	emptied   []emptying
	abandoned []emptying
	retried   []span                   // events of requests for which all streams were waited for
	poolOf    map[int]allocator.PoolID // of requests to private pools, by event
}

// An emptying is a call of empty_cache before an event, of a private pool alone
// if it names one.
type emptying struct {
	event int
	pool  allocator.PoolID
}

// A span is the events from to to-1.
type span struct{ from, to int }

// A Difference is where the replay departs from the recording.
type Difference struct {
	Event    int    `json:"event"`
	Recorded string `json:"recorded"` // what the recording has there
	Replayed string `json:"replayed"` // what the allocator does
	There    string `json:"there"`    // what the replay has at the recorded address, "" at the end
	Reason   string `json:"reason"`   // the unknowns that may be the cause

	// wrong is the address of the free block that the allocator uses where the
	// recording has memory taken, or releases too early: in a private pool, it
	// would not.
	wrong uint64
	// Of a request that a free block serves in the replay alone: its rounded
	// size, and that of the block.
	size, room int64
	// sooner and later are the first addresses of memory of the start, where the
	// recorded block is of the first and the replayed one of the second; 0 elsewhere.
	sooner, later uint64
	// base is the first address of a reservation of the start, where the event
	// maps memory below it.
	base uint64

	atEnd bool // no event differs, but the final state
}

func (d *Difference) String() string {
	text := fmt.Sprintf("at event %s the recording has %s, the replay %s", units.Count(int64(d.Event)), d.Recorded, d.Replayed)
	switch {
	case d.atEnd:
		return fmt.Sprintf("at the end the recording has %s, the replay %s", d.Recorded, d.Replayed)
	case d.There != "":
		text += "; at that address the replay has " + d.There
	}
	return text
}

// beginning is the state before the first event as it is assumed, and the first addresses of
// its memory by age.
func (x *Result) beginning() (start []allocator.Segment, byAge []uint64) {
	start = slices.Clone(x.start)
	for i := range start {
		start[i].Blocks = slices.Clone(start[i].Blocks)
		start[i].Pool = x.assumed.pools[^i]
	}
	for i := range start {
		for j := range start[i].Blocks {
			b := &start[i].Blocks[j]
			b.Age = x.assumed.ages[b.Addr]
		}
	}
	for i, bytes := range x.assumed.slack {
		blocks := start[x.doubt[i].segment].Blocks
		b, rest := &blocks[x.doubt[i].block], &blocks[x.doubt[i].block+1]
		b.Size += bytes
		rest.Addr += uint64(bytes)
		rest.Size -= bytes
	}
	return start, x.bear(start)
}

// load gives an allocator the state before the first event, and names the blocks
// of the allocations that live then.
func (x *Result) load(a *allocator.Allocator, start []allocator.Segment) ([]allocator.Block, map[int32]allocator.Ticket, error) {
	handles, tickets := make([]allocator.Block, x.slots), map[int32]allocator.Ticket{}
	if err := a.Load(start, x.base); err != nil {
		return handles, tickets, err
	}
	byAddr := map[uint64]*allocator.Piece{}
	for i := range start {
		for j := range start[i].Blocks {
			if b := &start[i].Blocks[j]; b.Block != 0 {
				byAddr[b.Addr] = b
			}
		}
	}
	for i := range x.older {
		switch b := byAddr[x.Addr(i)]; {
		case b == nil:
		case b.Ticket != 0:
			tickets[int32(i)] = b.Ticket
		default:
			handles[i] = b.Block
		}
	}
	return handles, tickets, nil
}

// base is the first address of the reservation that begins at addr or before.
func (x *Result) base(addr uint64) uint64 {
	if base, ok := x.assumed.bases[addr]; ok {
		return base
	}
	return addr
}
