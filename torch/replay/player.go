package replay

import (
	"cmp"
	"fmt"
	"slices"

	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/ranges"
	"strandline/torch/snapshot"
	"strandline/units"
)

// run replays the history under assumptions.
func (r *Recording) run(as assumptions) *Result { return r.newPlayer(as).run() }

func (p *player) run() *Result {
	p.play(p.Trace.Len())
	p.out.events = p.k
	if p.out.Difference == nil || p.looks {
		p.compare()
	}
	p.out.span = p.a.Span()
	for pool, event := range p.abandoned {
		p.out.abandoned = append(p.out.abandoned, emptying{event, pool})
	}
	sorts.By(p.out.abandoned, func(a, b emptying) int { return cmp.Compare(a.event, b.event) })
	p.out.Stats, p.out.inactiveSplit = p.a.Stats, p.a.InactiveSplit()
	return p.out
}

// A player is a run of a recording. It is the driver of its allocator: it gives
// the answers of the real one, as long as the calls are the same.
type player struct {
	*Recording
	out     *Result
	e       *snapshot.Events
	a       *allocator.Allocator
	k       int
	streams streams
	handles []allocator.Block // by slot
	tickets map[int32]allocator.Ticket
	byAge   []uint64 // the first addresses of the memory of the start
	private ranges.List[allocator.PoolID]
	idle    []allocator.PoolID // private pools that the call releases

	abandoned map[allocator.PoolID]int // the first event that releases a pool which is not used since
	// The events of the call that is replayed, from next to end-1. One that is
	// refused memory ends in an oom, or continues.
	next, end int

	looks bool // closely at where it parts from the recording, and at the end
}

func (r *Recording) newPlayer(as assumptions) *player {
	p := &player{Recording: r, out: &Result{
		Recording: r, Calls: len(r.calls), Sizes: make([]int64, r.older), assumed: as, poolOf: map[int]allocator.PoolID{},
	}, abandoned: map[allocator.PoolID]int{}}
	p.e = &r.Trace.Events
	p.a = allocator.New(r.Settings, r.Version, p)
	p.a.SetLimit(as.limit)
	p.a.SetSpan(as.span)
	p.out.prepare(p.a)
	p.streams = streams{r.Snap, p.a, nil}
	p.load()
	return p
}

// play replays the events before end, and those of the same call.
func (p *player) play(end int) {
	for p.k < end && p.out.Difference == nil {
		p.step()
	}
}

func (p *player) load() {
	for i := range p.start {
		p.own(p.start[i].Addr, p.start[i].Size, p.out.assumed.pools[^i])
	}
	var start []allocator.Segment
	var err error
	start, p.byAge = p.out.beginning()
	if p.handles, p.tickets, err = p.out.load(p.a, start); err != nil {
		p.differ(0, "a state that the allocator cannot have: "+err.Error(), "none to begin with")
		p.out.Lost = true
	}
	for i := range p.older {
		switch {
		case p.handles[i] != 0:
			p.out.Sizes[i] = p.a.Size(p.handles[i])
		case p.tickets[int32(i)] != 0:
			p.out.Sizes[i] = p.a.Deferred(p.tickets[int32(i)])
		}
	}
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
// request at end; those before are of empty_cache or of the end of a MemPool. What
// releases memory for a request has the stack of the request, if there are stacks.
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
		if by, own := p.e.Stack[k], p.e.Stack[end]; p.empties(by) || by != stack.None && own != stack.None && by != own {
			return k + 1
		}
	}
	if p.releasesItself(end, last) {
		return p.k
	}
	return last + 1
}

// releasesItself reports whether a release before the request at end, the last of
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
	p.out.forks = append(p.out.forks, f)
	return seems != p.out.assumed.other[f]
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
			if p.out.Difference != nil {
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

// release replays one call of empty_cache. One that begins with memory of a private
// pool is of that pool alone if the default one has some to give, or if no empty_cache
// is on its stack, but the end of a MemPool.
func (p *player) release(from int) {
	pool := p.owner(p.e.Addr[p.next])
	by := p.e.Stack[p.next]
	if pool.Private() && (p.a.Cached(allocator.PoolID{}) || pool.User > 0 && by != stack.None && !p.empties(by)) {
		p.a.EmptyPool(pool)
	} else {
		pool = allocator.PoolID{}
		p.a.EmptyCache()
	}
	p.out.emptied = append(p.out.emptied, emptying{from, pool})
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
		case p.handles[at] != 0: // not requested
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

// abandon notes which private pools are released in events from k to end-1: they are no
// longer used, unless a later request is to them. Where the file does not name the pools
// of events, each release returns all that they have, in a fixed order, so that not any
// assumption fits.
func (p *player) abandon(k, end int) {
	if len(p.out.assumed.pools) == 0 {
		return
	}
	var own allocator.PoolID // makes room in itself
	if end < p.e.Len() {
		own, _ = p.knownPool(end)
	}
	p.idle = p.idle[:0]
	for ; k < end; k++ {
		if pool := p.owner(p.e.Addr[k]); releases(p.e.Action[k]) && pool.Private() && pool != own && !slices.Contains(p.idle, pool) {
			p.idle = append(p.idle, pool)
			if _, is := p.abandoned[pool]; !is {
				p.abandoned[pool] = k
			}
		}
	}
	if p.e.Pool == nil && len(p.abandoned) > 0 {
		p.idle = slices.DeleteFunc(p.a.Pools(), func(pool allocator.PoolID) bool {
			_, is := p.abandoned[pool]
			return !is
		})
	}
	p.a.SetIdle(p.idle)
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
	// Waits end before the search, or by the synchronization of a retry: garbage
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
		p.out.poolOf[end] = id
		if p.e.Pool != nil {
			delete(p.abandoned, id)
		}
	}
	pool := p.a.Pool(id)
	retries := p.a.Retries
	b, ok := p.malloc(end, pool)
	if p.out.Difference != nil {
		return
	}
	if p.a.Retries > retries {
		p.out.retried = append(p.out.retried, span{p.k, end + 1})
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
		p.out.Sizes = append(p.out.Sizes, p.a.Size(b))
	}
	if p.out.Difference == nil {
		p.k = end + 1
	}
}

func (p *player) malloc(k int, pool allocator.Pool) (allocator.Block, bool) {
	if p.placed[k] {
		return p.a.MallocAt(p.e.Addr[k], p.e.Size[k], p.stream(k), pool)
	}
	return p.a.Malloc(p.e.Size[k], p.stream(k), pool)
}

// prepare tells an allocator what is known of pools.
func (x *Result) prepare(a *allocator.Allocator) {
	for _, id := range x.Recording.whole {
		a.KeepWhole(id)
	}
	for id := range x.assumed.whole {
		a.KeepWhole(id)
	}
}

// knownPool is the pool of the request at event end, if the file shows it.
func (p *player) knownPool(end int) (id allocator.PoolID, known bool) {
	if len(p.out.assumed.pools) == 0 {
		return id, true
	}
	for k := p.k; k < end; k++ { // memory that was taken for it shows it
		if takes(p.e.Action[k]) {
			return p.out.assumed.pools[k], true
		}
	}
	switch {
	case p.e.Action[end] == snapshot.Alloc:
		return p.owner(p.e.Addr[end]), true
	case p.e.Action[end] == snapshot.OOM && p.e.Pool != nil:
		return allocator.PoolID(p.Snap.PoolOf(p.e.Pool[end])), true
	}
	return id, false
}

// poolFor is the pool that the request at event end goes to.
func (p *player) poolFor(end int) allocator.PoolID {
	if p.e.Action[end] == snapshot.OOM && p.e.Pool == nil && (p.k == end && p.Snap.Stream(p.e.Stream[end]) != 0 || len(p.out.assumed.pools) > 0) {
		p.out.RetriesInDoubt = true
	}
	if id, known := p.knownPool(end); known {
		return id
	}
	// That of one that ran out is not recorded. It seems private if there was a
	// block in the default pool, or something to release, and nothing was done.
	size, stream := p.e.Size[end], p.stream(end)
	seems := p.a.Hits(size, stream, allocator.Default) || p.k == end && p.a.Cached(allocator.PoolID{}) || p.captures(end)
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

// captures reports whether the last request before event k on its stream went to the
// pool of a graph, as all do while the stream is captured.
func (p *player) captures(k int) bool {
	for j := k - 1; j >= 0; j-- {
		if p.e.Action[j] == snapshot.Alloc && p.e.Stream[j] == p.e.Stream[k] {
			return p.owner(p.e.Addr[j]).Graph != 0
		}
	}
	return false
}

// misserved notes that a request got a block which the recording does not give
// it, where it has event k.
func (p *player) misserved(k int, b allocator.Block, ok bool) {
	if !ok {
		p.differ(k, p.describe(k), "no memory")
		return
	}
	p.differ(k, p.describe(k), fmt.Sprintf("alloc at 0x%x", p.a.Addr(b)))
	d := p.out.Difference
	d.wrong, d.size = p.a.Addr(b), p.a.Size(b)
	d.sooner, d.later = p.heir(p.a.BornAt(p.e.Addr[k])), p.heir(p.a.BornAt(d.wrong))
	if d.sooner == 0 || d.later == 0 {
		d.sooner, d.later = 0, 0
	}
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
	if p.out.Difference == nil {
		p.out.Difference = &Difference{Event: k, Recorded: recorded, Replayed: replayed}
		if p.looks && k < p.e.Len() && p.e.Action[k] != snapshot.OOM { // which has no address
			p.out.Difference.There = p.there(p.e.Addr[k])
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
