// Package allocator is PyTorch's CUDA caching allocator, re-implemented: it
// takes the requests of a program and makes the calls of the driver, the
// segments and the blocks that PyTorch would make of them. It holds no memory
// and calls no driver: addresses are numbers.
//
// An [Allocator] is one device. Memory comes from a [Driver], so that the same
// code runs against a recorded history, which has the answers of a real one, and
// against a device that is made up; package replay has both.
//
// The rules are those of c10/cuda/CUDACachingAllocator.cpp, PyTorch 2.0 to 2.15;
// names follow it. They differ between releases: a [Version] of 0 means an
// unknown one, and [Version.Untested] names the rules that were never checked
// against a recording. All sizes are bytes.
package allocator

import (
	"cmp"
	"slices"

	"strandline/torch/ranges"
)

// The sizes by which the allocator decides.
const (
	Granule     = 512      // of which blocks are multiples
	SmallLimit  = 1 << 20  // what is asked for up to this goes to a small pool
	SmallBuffer = 2 << 20  // a segment of a small pool
	LargeLimit  = 10 << 20 // a request of at least this has a segment of its size
	LargeBuffer = 20 << 20 // a segment that smaller requests share, if nothing else is set
	RoundLarge  = 2 << 20  // of which segments for large requests are multiples
)

// A Driver gives memory and takes it back. It sees the calls in the order in
// which PyTorch makes them.
type Driver interface {
	// Malloc takes a segment. ok is false if memory ran out.
	Malloc(size int64) (addr uint64, ok bool)
	// Free gives a segment back.
	Free(addr uint64, size int64)
	// Reserve takes a range of addresses for memory that is mapped later, in
	// pages of that size.
	Reserve(page int64) (addr uint64, length int64)
	// Within reports whether a reservation holds still at addr, where memory is to
	// be mapped for a request of that size. A recorded history does not show
	// where its reservations end; any other driver returns true.
	Within(addr uint64, size int64) bool
	// Map maps pages. It reports false if memory ran out.
	Map(addr uint64, size int64) bool
	// Unmap gives pages back.
	Unmap(addr uint64, size int64)
}

// A Block is one that the program holds. The zero Block is none.
type Block int32

// A PoolID names a pool: {0, 0} is the default one, {n, 0} was made by a CUDA
// graph, {0, n} by a MemPool.
type PoolID struct{ Graph, User int64 }

// Private reports whether the pool is not the default one.
func (p PoolID) Private() bool { return p != PoolID{} }

// Stats are the counters of torch.cuda.memory_stats().
type Stats struct {
	Allocated, AllocatedPeak int64 // bytes of blocks that the program holds
	Active                   int64 // and of those that wait for another stream
	Requested                int64 // of active blocks, before rounding
	Reserved, ReservedPeak   int64 // bytes of segments
	Retries                  int64 // num_alloc_retries
	OOMs                     int64 // num_ooms and num_oom_rejections
	Mallocs, Frees           int64 // calls of the driver that take segments, and give them back
	Maps, Unmaps             int64 // and pages of expandable segments
}

// DriverCalls is the number of calls that took memory from the driver or gave
// it back.
func (s *Stats) DriverCalls() int64 { return s.Mallocs + s.Frees + s.Maps + s.Unmaps }

// An Allocator is the allocator of one device.
type Allocator struct {
	Stats
	set     Settings
	version Version
	driver  Driver
	limit   int64 // bytes that may be reserved; none is 0
	total   int64 // bytes of the device; unknown is 0

	blocks  []block // by index; 0 if none
	sets    sets
	spare   []int32 // indices that are free
	streams []uint64
	named   map[uint64]Stream
	pools   []pool
	idle    []int32 // small pools
	lanes   []lane
	ids     map[PoolID]int32 // the small pool of each; the large one is next to it
	ranges  []reservation
	span    int64      // bytes of addresses that a reservation has at most
	nearest int64      // the least distance from a reservation to the next one
	waiting []deferred // by ticket
	over    int        // of them whose wait has ended
	tickets Ticket
	births  births
	born    uint32 // so far, where their order decides
	scratch []int32
	widest  int64 // bytes of the largest segment; Unlimited once that bounds no block
	many    int   // unmapped blocks of a lane, from which on its rooms are kept
	roomed  bool  // there is such a lane
}

// block is what is known of a block beside its size and its address, which its
// node has.
type block struct {
	requested  int64
	inserted   int64 // into the free set: the calls of the pool then
	prev, next int32 // neighbors in the segment
	lane       int32
	within     int32 // reservation, plus 1
	state      state
}

type state uint8

const (
	gone     state = iota
	free           // in the set of its pool
	taken          // the program has it
	waiting        // the program freed it
	unmapped       // addresses without memory
)

type pool struct {
	id    PoolID
	small bool
	calls int64            // of the search for a free block
	lanes []int32          // the first few by use, which are mostly all,
	more  map[Stream]int32 // and those behind them
	idle  bool             // a private pool that is no longer used
	whole bool             // a private pool whose segments are not split
	back  int64            // bytes of free blocks that the driver could have back
}

// lane is what a pool has for a stream: nothing goes from one to another.
type lane struct {
	pool     int32
	stream   Stream
	free     set
	unmapped ranges.List[int32]
	rooms    *rooms // where memory can be mapped, once there are many places
}

// reservation is an ExpandableSegment: a range of addresses.
type reservation struct {
	addr   uint64
	length int64
	page   int64
	loaded bool // its first address may be a lower one
	gone   bool
}

// longest is the assumed size of a reservation whose size is not known: more than
// the memory of any device, and less than the distance between two.
const longest = 1 << 40

// New is the allocator of a device that has not been used yet.
func New(set Settings, v Version, driver Driver) *Allocator {
	a := &Allocator{set: set, version: v, driver: driver, span: longest, nearest: longest, ids: map[PoolID]int32{}, named: map[uint64]Stream{}, many: minUnmapped}
	if !set.Ascend {
		a.births = v.births()
	}
	a.blocks = make([]block, 1, 1024)
	a.sets = make(sets, 1, 1024)
	a.poolOf(PoolID{}, true)
	return a
}

// SetLimit bounds what may be reserved, as set_per_process_memory_fraction does.
// 0 means no bound.
func (a *Allocator) SetLimit(bytes int64) { a.limit = bytes }

// SetTotal sets the device's memory in bytes, above which throw_on_cudamalloc_oom
// refuses requests. 0 means that it is unknown, and then none is refused.
func (a *Allocator) SetTotal(bytes int64) { a.total = bytes }

// SetSpan bounds the bytes of addresses that each reservation of expandable segments
// has, before they are rounded up to its pages. 0 means no bound.
func (a *Allocator) SetSpan(bytes int64) {
	if bytes > 0 {
		a.span = bytes
	}
}

// Span is the least distance, in bytes, from the start of a reservation to that of the
// next one behind it, so that none is longer; 0 if that is no less than is known.
func (a *Allocator) Span() int64 {
	if a.nearest >= a.span {
		return 0
	}
	return a.nearest
}

// A Stream names a cudaStream_t.
type Stream int32

// Stream is the name of a stream in calls of Malloc.
func (a *Allocator) Stream(handle uint64) Stream {
	s, ok := a.named[handle]
	if !ok {
		s = Stream(len(a.streams))
		a.streams = append(a.streams, handle)
		a.named[handle] = s
	}
	return s
}

// laneOf is the lane of a pool and a stream.
func (a *Allocator) laneOf(p int32, stream Stream) int32 {
	const maxScanned = 8
	q := &a.pools[p]
	for _, l := range q.lanes[:min(maxScanned, len(q.lanes))] {
		if a.lanes[l].stream == stream {
			return l
		}
	}
	if l, ok := q.more[stream]; ok {
		return l
	}
	l := int32(len(a.lanes))
	a.lanes = append(a.lanes, lane{pool: p, stream: stream})
	if q.lanes = append(q.lanes, l); len(q.lanes) > maxScanned {
		if q.more == nil {
			q.more = map[Stream]int32{}
		}
		q.more[stream] = l
	}
	return l
}

// poolOf is the index of the small or the large pool of an id.
func (a *Allocator) poolOf(id PoolID, small bool) int32 {
	at, ok := a.ids[id]
	if !ok {
		at = int32(len(a.pools))
		a.ids[id] = at
		for _, small := range []bool{true, false} {
			a.pools = append(a.pools, pool{id: id, small: small})
		}
	}
	if !small {
		at++
	}
	return at
}

// Pool is the name of a pool in calls of Malloc.
func (a *Allocator) Pool(id PoolID) Pool { return Pool(a.poolOf(id, true)) }

// Pools are the ids of those that were named.
func (a *Allocator) Pools() (out []PoolID) {
	for i := 0; i < len(a.pools); i += 2 {
		out = append(out, a.pools[i].id)
	}
	return out
}

// A Pool names a PoolID.
type Pool int32

// Default is the pool of requests outside of graphs and MemPools.
const Default Pool = 0

// SetIdle names the private pools that are no longer used, in the order in which a
// release returns their free segments.
func (a *Allocator) SetIdle(ids []PoolID) {
	mark := func(is bool) {
		for _, i := range a.idle {
			a.pools[i].idle, a.pools[i+1].idle = is, is
		}
	}
	mark(false)
	a.idle = a.idle[:0]
	for _, id := range ids {
		a.idle = append(a.idle, a.poolOf(id, true))
	}
	mark(true)
}

// KeepWhole marks a private pool as one whose segments are not split, as a MemPool
// with no_split is.
func (a *Allocator) KeepWhole(id PoolID) {
	for _, i := range []int32{a.poolOf(id, true), a.poolOf(id, false)} {
		a.pools[i].whole = true
	}
}

// maxRequested is more than any device has, and keeps sizes from running over.
const maxRequested = 1 << 50

// Malloc serves a request. It is false if memory ran out; PyTorch records an oom
// of that rounded size then and raises OutOfMemoryError.
//
// PyTorch begins with a look at which deferred frees are complete (process_events).
// That is left to the caller, who calls [Allocator.Complete].
func (a *Allocator) Malloc(request int64, stream Stream, id Pool) (Block, bool) {
	if request > maxRequested {
		a.OOMs++
		return 0, false
	}
	size := a.set.Round(request)
	l := a.laneFor(size, stream, id)
	b := a.search(l, size)
	if b == 0 {
		b = a.obtain(l, size)
	}
	if b == 0 {
		a.OOMs++
		return 0, false
	}
	return a.give(b, size, request), true
}

// MallocAt serves a request with the free block that begins at an address, as
// _resize_with_addr_ does since PyTorch 2.13. It is false if there is none that is large
// enough.
func (a *Allocator) MallocAt(addr uint64, request int64, stream Stream, id Pool) (Block, bool) {
	size := a.set.Round(request)
	for _, p := range []int32{int32(id), int32(id) + 1} { // what is in front of it may be of any size
		l := a.laneOf(p, stream)
		a.scratch = a.sets.all(&a.lanes[l].free, a.scratch[:0])
		i := slices.IndexFunc(a.scratch, func(b int32) bool { return a.sets[b].addr == addr })
		if i >= 0 && a.sets[a.scratch[i]].size >= size {
			b := a.scratch[i]
			a.remove(b)
			return a.give(b, size, request), true
		}
	}
	return 0, false
}

// give hands a block, which is in no set, to the program.
func (a *Allocator) give(b int32, size, request int64) Block {
	if a.set.Ascend {
		b = a.align(b, size)
	}
	a.split(b, size)
	x := &a.blocks[b]
	x.state, x.requested = taken, request
	if a.roomed {
		a.noRoom(b)
	}
	got := a.sets[b].size
	a.Allocated += got
	a.AllocatedPeak = max(a.AllocatedPeak, a.Allocated)
	a.Active += got
	a.Requested += request
	return Block(b)
}

// Hits reports whether a request would be served by a free block.
func (a *Allocator) Hits(request int64, stream Stream, id Pool) bool {
	size := a.set.Round(request)
	return a.find(a.laneFor(size, stream, id), size) != 0
}

// laneFor is the lane of a rounded request.
func (a *Allocator) laneFor(size int64, stream Stream, id Pool) int32 {
	p := int32(id)
	if size > SmallLimit {
		p++
	}
	return a.laneOf(p, stream)
}

// obtain takes memory from the driver for a request that no free block serves.
func (a *Allocator) obtain(l int32, size int64) int32 {
	if a.collects() {
		a.collectGarbage()
	}
	if a.throws(size) {
		a.widest = Unlimited
		return 0
	}
	b := a.take(l, size)
	if b == 0 || a.blocks[b].within != 0 {
		a.widest = Unlimited
	}
	if b == 0 && a.releaseAvailable(l, size) {
		b = a.take(l, size)
	}
	if b == 0 && a.retries(a.pools[a.lanes[l].pool].id) {
		a.EmptyCache()
		a.Retries++
		b = a.take(l, size)
	}
	return b
}

// Widest is the bytes of the largest segment so far, Unlimited where it bounds no block
// or a request was refused: any larger max_split_size would have changed nothing.
func (a *Allocator) Widest() int64 { return a.widest }

// retries reports whether a request to a pool has all other memory released before
// it fails. While a graph is captured, nothing is; a pool of a graph is taken to
// be used for that alone.
func (a *Allocator) retries(id PoolID) bool {
	return !id.Private() || id.Graph == 0 && a.version.poolsRetry()
}

// search is get_free_block: it takes the best free block out of its set.
func (a *Allocator) search(l int32, size int64) int32 {
	if a.collects() {
		a.pools[a.lanes[l].pool].calls++
	}
	b := a.find(l, size)
	if b != 0 {
		a.remove(b)
	}
	return b
}

// find is the smallest free block of a stream that serves a rounded request, of
// equal ones the first by birth, then by address.
func (a *Allocator) find(l int32, size int64) int32 {
	f := &a.lanes[l].free
	b := a.sets.atLeast(f, place{size: size})
	if b == 0 {
		return 0
	}
	if a.blocks[b].within != 0 {
		if b = a.findExpandable(f, b); b == 0 {
			return 0
		}
	}
	got := a.sets[b].size
	if size < a.set.MaxSplitSize && got >= a.set.MaxSplitSize {
		return 0
	}
	if size >= a.set.MaxSplitSize && got >= size+a.set.MaxNonSplitRounding {
		return 0
	}
	return b
}

// findExpandable prefers a somewhat larger hole to the block at the growing end
// of a segment. Without expandable segments, blocks of such are passed over.
func (a *Allocator) findExpandable(f *set, b int32) int32 {
	room := func(b int32) int64 {
		n := a.sets[b].size
		if next := a.blocks[b].next; next != 0 && a.blocks[next].state == unmapped {
			n += a.sets[next].size
		}
		return n
	}
	for a.blocks[b].within != 0 {
		next := a.sets.after(f, b)
		if a.expands() && (next == 0 || room(next) >= room(b)) {
			return b
		}
		b = next
	}
	return b
}

// take is alloc_block: a block of new memory, in no set.
func (a *Allocator) take(l int32, size int64) int32 {
	if a.limited(size) {
		return 0
	}
	if a.expands() {
		return a.takeExpandable(l, size)
	}
	n := a.set.SegmentSize(size)
	addr, ok := a.driver.Malloc(n)
	if !ok {
		return 0
	}
	a.Mallocs++
	a.reserve(n)
	a.widest = max(a.widest, n)
	b := a.newBlock(addr, n)
	a.blocks[b].lane = l
	a.bear(b)
	return b
}

// bear gives new memory its place in the order of births.
func (a *Allocator) bear(b int32) {
	if a.births != noBirths {
		a.born++
		a.sets[b].birth = a.born
	}
}

// bearBlock does so with a block of older memory, where blocks are counted.
func (a *Allocator) bearBlock(b int32) {
	if a.births == blockBirths {
		a.bear(b)
	}
}

func (a *Allocator) reserve(bytes int64) {
	a.Reserved += bytes
	a.ReservedPeak = max(a.ReservedPeak, a.Reserved)
}

// Free takes back what the program held.
func (a *Allocator) Free(b Block) {
	if a.blocks[b].state == taken {
		a.request(b)
		a.complete(int32(b))
	}
}

// A Ticket names a free that waits for other streams.
type Ticket int64

// Defer takes back what the program held, and what other streams use still. It
// can serve others from [Allocator.Complete] on, or from when the allocator
// waits for all streams.
func (a *Allocator) Defer(b Block) Ticket {
	if a.blocks[b].state != taken {
		return 0
	}
	a.request(b)
	a.tickets++
	a.waiting = append(a.waiting, deferred{a.tickets, int32(b)})
	return a.tickets
}

// Complete ends the wait of a free, if it has not ended.
func (a *Allocator) Complete(t Ticket) {
	d := a.waits(t)
	if d == nil {
		return
	}
	b := d.block
	d.block = 0
	if a.over++; a.over > len(a.waiting)/2 {
		a.waiting = slices.DeleteFunc(a.waiting, func(d deferred) bool { return d.block == 0 })
		a.over = 0
	}
	a.complete(b)
}

// waits is the free of that ticket, nil if its wait has ended.
func (a *Allocator) waits(t Ticket) *deferred {
	i, ok := slices.BinarySearchFunc(a.waiting, t, func(d deferred, t Ticket) int { return cmp.Compare(d.ticket, t) })
	if !ok || a.waiting[i].block == 0 {
		return nil
	}
	return &a.waiting[i]
}

// Deferred returns the bytes of a block whose free waits, 0 if it no longer does.
func (a *Allocator) Deferred(t Ticket) int64 {
	if d := a.waits(t); d != nil {
		return a.sets[d.block].size
	}
	return 0
}

// deferred is a free that waits.
type deferred struct {
	ticket Ticket
	block  int32 // none once it is over
}

func (a *Allocator) request(b Block) {
	a.blocks[b].state = waiting
	a.Allocated -= a.sets[b].size
}

// Addr is the address of a block.
func (a *Allocator) Addr(b Block) uint64 { return a.sets[b].addr }

// Size is the bytes of a block: those asked for, rounded up, and what was too
// little to be split off.
func (a *Allocator) Size(b Block) int64 { return a.sets[b].size }

// SetExpandable turns expandable segments on or off, as a program can do at any
// time. Segments that are there stay what they are.
func (a *Allocator) SetExpandable(on bool) { a.set.Expandable = on }
