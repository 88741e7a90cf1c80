package replay

import (
	"cmp"
	"fmt"
	"slices"

	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/ranges"
	"strandline/torch/snapshot"
	"strandline/units"
)

// An Exact is what came of a history that was run through the allocator under
// its own settings.
type Exact struct {
	*Recording
	Difference *Difference // the first one; nil if the replay is exact
	Stats      allocator.Stats
	// InactiveSplit is, at the end, the free bytes in segments that are in use.
	InactiveSplit int64

	Calls, CallsMet       int  // of the driver: recorded, and reproduced
	Segments, SegmentsMet int  // of the final state, block for block
	Events                int  // that were reproduced
	Lost                  bool // the state before the first event cannot be used: nothing can be simulated

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

// A Difference is where the replay parts from the recording.
type Difference struct {
	Event    int    `json:"event"`
	Recorded string `json:"recorded"` // what the recording has there
	Replayed string `json:"replayed"` // what the allocator does
	There    string `json:"there"`    // what the replay has at the recorded address, "" at the end
	Reason   string `json:"reason"`   // what is not known that may be the cause

	// wrong is the address of the free block that the allocator uses where the
	// recording has memory taken, or releases too early: in a private pool, it
	// would not.
	wrong uint64
	// Of a request that a free block serves in the replay alone: its rounded
	// size, and that of the block.
	size, room int64
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

// run replays the history under assumptions.
func (r *Recording) run(as assumptions) *Exact { return r.newPlayer(as).run() }

func (p *player) run() *Exact {
	p.play(p.Trace.Len())
	p.Events = p.k
	if p.Difference == nil || p.looks {
		p.compare()
	}
	p.Stats, p.InactiveSplit = p.a.Stats, p.a.InactiveSplit()
	return p.Exact
}

// A player is a run of a recording. It is the driver of its allocator: it gives
// the answers of the real one, as long as it is asked the same.
type player struct {
	*Exact
	e       *snapshot.Events
	a       *allocator.Allocator
	k       int
	streams streams
	handles []allocator.Block // by slot
	tickets map[int32]allocator.Ticket
	private ranges.List[allocator.PoolID]
	// The events of the call that is replayed, from next to end-1. One that is
	// refused memory ends in an oom, or goes on.
	next, end int

	looks bool // closely at where it parts from the recording, and at the end
}

func (r *Recording) newPlayer(as assumptions) *player {
	p := &player{Exact: &Exact{
		Recording: r, Calls: len(r.calls), Sizes: make([]int64, r.older), assumed: as, poolOf: map[int]allocator.PoolID{},
	}}
	p.e = &r.Trace.Events
	p.a = allocator.New(r.Settings, r.Version, p)
	p.a.SetLimit(as.limit)
	p.streams = streams{r.Snap, p.a, nil}
	p.load()
	return p
}

// play replays the events before end, and those of the same call.
func (p *player) play(end int) {
	for p.k < end && p.Difference == nil {
		p.step()
	}
}

func (p *player) load() {
	for i := range p.start {
		p.own(p.start[i].Addr, p.start[i].Size, p.assumed.pools[^i])
	}
	var err error
	if p.handles, p.tickets, err = p.Exact.load(p.a); err != nil {
		p.differ(0, "a state that is no allocator's: "+err.Error(), "none to begin with")
		p.Lost = true
	}
	for i := range p.older {
		switch {
		case p.handles[i] != 0:
			p.Sizes[i] = p.a.Size(p.handles[i])
		case p.tickets[int32(i)] != 0:
			p.Sizes[i] = p.a.Deferred(p.tickets[int32(i)])
		}
	}
}

// load gives an allocator the state before the first event, and names the blocks
// of the allocations that live then.
func (x *Exact) load(a *allocator.Allocator) ([]allocator.Block, map[int32]allocator.Ticket, error) {
	start := slices.Clone(x.start)
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
func (x *Exact) base(addr uint64) uint64 {
	if base, ok := x.assumed.bases[addr]; ok {
		return base
	}
	return addr
}

// own notes the pool that memory belongs to.
func (p *player) own(addr uint64, size int64, pool allocator.PoolID) {
	switch {
	case pool.Private():
		p.private.Put(addr, end(addr, size), pool)
	case p.private.Len() > 0:
		p.private.Cut(addr, end(addr, size))
	}
}

// owner is the pool that memory belongs to.
func (p *player) owner(addr uint64) allocator.PoolID {
	r, _ := p.private.At(addr)
	return r.Value
}

// step replays the event k, with those that belong to the same call.
func (p *player) step() {
	switch p.e.Action[p.k] {
	case snapshot.Alloc:
		p.call(p.k)
	case snapshot.FreeRequested:
		p.free()
	case snapshot.FreeCompleted, snapshot.SegmentAlloc, snapshot.SegmentFree, snapshot.SegmentMap,
		snapshot.SegmentUnmap, snapshot.OOM:
		p.group()
	default:
		p.k++
	}
}

// free replays the free of a block, with its completion if that follows at once.
func (p *player) free() {
	k := p.k
	at := p.slot[k]
	if at == never || p.handles[at] == 0 {
		p.differ(k, p.describe(k), "no such block")
		return
	}
	p.k++
	if p.Ends() == snapshot.FreeRequested || p.atOnce(k) {
		p.a.Free(p.handles[at])
		if p.Ends() == snapshot.FreeCompleted {
			p.k++
		}
	} else {
		p.tickets[at] = p.a.Defer(p.handles[at])
	}
	p.handles[at] = 0
}

// group replays calls of the driver, and completions of frees that waited, up to
// the request for which they were made.
func (p *player) group() {
	end := p.k
	for end < p.e.Len() && p.belongs(end) {
		end++
	}
	own := end // the first event of the request's own call
	if end < p.e.Len() && (p.e.Action[end] == snapshot.Alloc || p.e.Action[end] == snapshot.OOM) {
		own = p.firstOwn(end)
	}
	if !p.empty(own) {
		return
	}
	if own < end || end < p.e.Len() && (p.e.Action[end] == snapshot.Alloc || p.e.Action[end] == snapshot.OOM) {
		p.call(end)
		return
	}
}

func (p *player) belongs(k int) bool {
	switch p.e.Action[k] {
	case snapshot.FreeCompleted, snapshot.SegmentAlloc, snapshot.SegmentFree, snapshot.SegmentMap, snapshot.SegmentUnmap:
		return true
	}
	return false
}

// firstOwn is the first of the events from k to end-1 that belongs to the
// request at end; those before are of empty_cache.
func (p *player) firstOwn(end int) int {
	last := -1 // release
	for k := p.k; k < end; k++ {
		if releases(p.e.Action[k]) {
			last = k
		}
	}
	if last < 0 {
		return p.k
	}
	for k := last; k >= p.k; k-- {
		if p.empties(p.e.Stack[k]) {
			return k + 1
		}
	}
	if p.releasesItself(end, last) {
		return p.k
	}
	return last + 1
}

// releasesItself tells whether a release before the request at end, the last of
// which is event last, is its own. What releases memory for a request has the
// stack of the request, if there are stacks.
func (p *player) releasesItself(end, last int) bool {
	f := fork{p.k, whoReleased}
	named := p.e.Stack[last] != stack.None
	switch {
	case p.e.Action[end] != snapshot.OOM && p.a.Hits(p.e.Size[end], p.stream(end), p.a.Pool(p.poolFor(end))):
		return p.read(f, false)
	case named:
		return true
	case p.e.Stack[end] != stack.None:
		return p.read(f, false)
	case p.e.Action[end] == snapshot.OOM || p.a.Releases(p.e.Size[end]):
		return p.read(f, true)
	}
	// It is if the driver may have refused: more was never reserved.
	return p.read(f, p.a.Reserved+p.e.Size[last] >= p.PeakReserved.Bytes)
}

// read answers a question of which the history leaves two answers open.
func (p *player) read(f fork, seems bool) bool {
	p.forks = append(p.forks, f)
	return seems != p.assumed.other[f]
}

// empty replays calls of empty_cache up to event end.
func (p *player) empty(end int) bool {
	for p.k < end {
		from := p.k
		p.next, p.end = p.k, end
		p.abandon(p.k, end)
		p.complete(p.k, end)
		p.skip()
		if p.next < end {
			p.release(from)
			if p.Difference != nil {
				return false
			}
		}
		p.skip()
		if p.next == from {
			p.differ(from, p.describe(from), "empty_cache returns nothing")
			return false
		}
		p.k = p.next
	}
	return true
}

// release replays one call of empty_cache. One that begins with memory of a
// private pool, though the default one has some to give, is of that pool alone.
func (p *player) release(from int) {
	pool := p.owner(p.e.Addr[p.next])
	if pool.Private() && p.a.Cached(allocator.PoolID{}) {
		p.a.EmptyPool(pool)
	} else {
		pool = allocator.PoolID{}
		p.a.EmptyCache()
	}
	p.emptied = append(p.emptied, emptying{from, pool})
}

// skip passes over completions.
func (p *player) skip() {
	for p.next < p.end && p.e.Action[p.next] == snapshot.FreeCompleted {
		p.next++
	}
}

// complete ends the waits that end in events from k to end-1.
func (p *player) complete(k, end int) {
	for ; k < end; k++ {
		if p.e.Action[k] != snapshot.FreeCompleted {
			continue
		}
		at := p.slot[k]
		switch {
		case at == never:
		case p.handles[at] != 0: // nobody asked for it
			p.a.Free(p.handles[at])
			p.handles[at] = 0
			continue
		case p.tickets[at] != 0:
			p.a.Complete(p.tickets[at])
			delete(p.tickets, at)
			continue
		}
		p.differ(k, p.describe(k), "no such block")
		return
	}
}

// abandon notes which private pools are released in events from k to end-1.
func (p *player) abandon(k, end int) {
	if len(p.assumed.pools) == 0 {
		return
	}
	for ; k < end; k++ {
		if pool := p.owner(p.e.Addr[k]); releases(p.e.Action[k]) && pool.Private() {
			p.a.Abandon(pool)
			p.abandoned = append(p.abandoned, emptying{k, pool})
		}
	}
}

func (p *player) stream(k int) allocator.Stream { return p.streams.of(p.e.Stream[k]) }

// call replays the request whose alloc or oom is event end.
func (p *player) call(end int) {
	p.next, p.end = p.k, end
	first := end // release
	for k := p.k; k < end; k++ {
		switch p.e.Action[k] {
		case snapshot.SegmentAlloc:
			p.a.SetExpandable(false)
		case snapshot.SegmentMap:
			p.a.SetExpandable(true)
		}
		if releases(p.e.Action[k]) {
			first = min(first, k)
		}
	}
	p.abandon(p.k, end)
	oom := p.e.Action[end] == snapshot.OOM
	// Waits end before the search, or by the synchronisation of a retry: garbage
	// collection waits for nothing, and behind a release there is but the retry.
	before := first == end && !oom
	if !before && p.e.Action[p.k] == snapshot.FreeCompleted {
		before = p.read(fork{p.k, whenCompleted}, p.a.CollectsGarbage())
	}
	if before {
		p.complete(p.k, first)
	}
	id := p.poolFor(end)
	if id.Private() {
		p.poolOf[end] = id
	}
	pool := p.a.Pool(id)
	retries := p.a.Retries
	b, ok := p.a.Malloc(p.e.Size[end], p.stream(end), pool)
	if p.Difference != nil {
		return
	}
	if p.a.Retries > retries {
		p.retried = append(p.retried, span{p.k, end + 1})
	}
	if before {
		p.complete(first, end)
	} else {
		p.complete(p.k, end)
	}
	p.skip()
	switch {
	case p.next < end:
		p.misserved(p.next, b, ok)
	case oom && ok:
		p.misserved(end, b, ok)
	case !oom && !ok:
		p.differ(end, p.describe(end), "no memory")
	case !oom && p.a.Addr(b) != p.e.Addr[end]:
		p.misserved(end, b, ok)
	case !oom:
		p.handles[p.slot[end]] = b
		p.Sizes = append(p.Sizes, p.a.Size(b))
	}
	if p.Difference == nil {
		p.k = end + 1
	}
}

// poolFor is the pool that the request at event end goes to.
func (p *player) poolFor(end int) allocator.PoolID {
	if len(p.assumed.pools) == 0 {
		return allocator.PoolID{}
	}
	for k := p.k; k < end; k++ { // memory that was taken for it tells
		if takes(p.e.Action[k]) {
			return p.assumed.pools[k]
		}
	}
	if p.e.Action[end] != snapshot.OOM {
		return p.owner(p.e.Addr[end])
	}
	// That of one that ran out is not recorded. It seems private if there was a
	// block in the default pool, or something to release, and nothing was done.
	size, stream := p.e.Size[end], p.stream(end)
	seems := p.a.Hits(size, stream, allocator.Default) || p.k == end && p.a.Cached(allocator.PoolID{})
	for _, id := range p.a.Pools() {
		if id.Private() && !p.a.Hits(size, stream, p.a.Pool(id)) {
			if p.read(fork{end, whoseFailed}, seems) {
				return id
			}
			break
		}
	}
	return allocator.PoolID{}
}

// misserved notes that a request got a block which the recording does not give
// it, where it has event k.
func (p *player) misserved(k int, b allocator.Block, ok bool) {
	if !ok {
		p.differ(k, p.describe(k), "no memory")
		return
	}
	p.differ(k, p.describe(k), fmt.Sprintf("alloc at 0x%x", p.a.Addr(b)))
	d := p.Difference
	d.wrong, d.size = p.a.Addr(b), p.a.Size(b)
	for _, g := range p.a.Segments() {
		if i := slices.IndexFunc(g.Blocks, func(q allocator.Piece) bool { return q.Block == b }); i >= 0 {
			d.room = d.size
			if i+1 < len(g.Blocks) && g.Blocks[i+1].State == allocator.Inactive {
				d.room += g.Blocks[i+1].Size
			}
		}
	}
}

func (p *player) differ(k int, recorded, replayed string) {
	if p.Difference == nil {
		p.Difference = &Difference{Event: k, Recorded: recorded, Replayed: replayed}
		if p.looks && k < p.e.Len() && p.e.Action[k] != snapshot.OOM { // which has no address
			p.Difference.There = p.there(p.e.Addr[k])
		}
	}
}

// describe is event k in words.
func (p *player) describe(k int) string {
	if k >= p.e.Len() {
		return "the end"
	}
	if p.e.Action[k] == snapshot.OOM {
		return fmt.Sprintf("oom of %s bytes", units.Count(p.e.Size[k]))
	}
	return fmt.Sprintf("%s of %s bytes at 0x%x", p.e.Action[k], units.Count(p.e.Size[k]), p.e.Addr[k])
}

// expect takes the next event of the call if it is such a call of the driver.
func (p *player) expect(action snapshot.Action, addr uint64, size int64) bool {
	p.skip()
	if p.next < p.end && p.e.Action[p.next] == action && p.e.Size[p.next] == size &&
		(addr == 0 || p.e.Addr[p.next] == addr) {
		p.next++
		p.CallsMet++
		return true
	}
	return false
}

// refused tells whether the driver refused at this place: what comes next in
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
	if p.Difference != nil {
		return 0, false
	}
	if p.expect(snapshot.SegmentAlloc, 0, size) {
		k := p.next - 1
		p.own(p.e.Addr[k], size, p.assumed.pools[k])
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
	if p.Difference == nil && !p.expect(action, addr, size) {
		p.differ(p.next, p.describe(p.next), fmt.Sprintf("%s of %s bytes at 0x%x", action, units.Count(size), addr))
		p.Difference.wrong = addr
	}
	p.own(addr, size, allocator.PoolID{})
}

// Reserve is the driver's answer to cuMemAddressReserve: the next memory that is
// mapped stands at the front of it.
func (p *player) Reserve(int64) (uint64, int64) {
	const length = 1 << 40
	p.skip()
	if p.next < p.end && p.e.Action[p.next] == snapshot.SegmentMap {
		if above := p.startAbove(p.e.Addr[p.next]); above != 0 {
			p.differ(p.next, p.describe(p.next), "a new reservation")
			p.Difference.base = above
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
	if base := p.base(above); base <= addr || above-addr >= uint64(p.PeakReserved.Bytes) {
		return 0
	}
	return above
}

// Within tells whether the next memory is mapped at addr.
func (p *player) Within(addr uint64, _ int64) bool {
	p.skip()
	return p.next == p.end || p.e.Action[p.next] != snapshot.SegmentMap || p.e.Addr[p.next] == addr
}

// Map is the driver's answer to cuMemMap.
func (p *player) Map(addr uint64, size int64) bool {
	if p.Difference != nil {
		return false
	}
	if p.expect(snapshot.SegmentMap, addr, size) {
		p.own(addr, size, p.assumed.pools[p.next-1])
		return true
	}
	if !p.refused() {
		p.differ(p.next, p.describe(p.next), fmt.Sprintf("segment_map of %s bytes at 0x%x", units.Count(size), addr))
	}
	return false
}
