package replay

import (
	"cmp"
	"maps"
	"slices"

	"strandline/allocator"
	"strandline/snapshot"
	"strandline/stack"
)

// A Scenario is what is different from the recorded run. The requests of the
// program stay the same, and so do its calls of empty_cache, as far as they are
// recorded: one that released nothing is not.
type Scenario struct {
	Settings allocator.Settings
	Capacity int64  // bytes that PyTorch can have; 0 is no bound
	Limit    int64  // bytes that it may reserve, by fraction; 0 is none
	Empty    []int  // events before which empty_cache is called, beside the recorded ones
	Without  []bool // stacks, by id, of which no allocation is made; nil is none
	Samples  int    // of the course of memory, evenly over the events
}

// An Outcome is what would have come of it.
type Outcome struct {
	allocator.Stats
	OOM *Refusal // the first; nil if memory did not run out
	// Left is what PyTorch could still have had behind the last request that ran
	// out in the recording: free with the driver, or in what empty_cache returns.
	// It is nil if that request is not met, or if there is no capacity.
	Left    *int64
	Samples []Sample
}

// A Refusal is a request for which there was no memory.
type Refusal struct {
	Event            int
	Size             int64 // rounded bytes
	Reserved, Active int64
	Stack            stack.ID
	Recorded         bool // the recording ran out there, too
}

// A Sample is the memory after an event.
type Sample struct {
	Event                                 int
	Reserved, Allocated, Active, Stranded int64
}

// WhatIf runs the requests of the history under a scenario.
func (x *Exact) WhatIf(sc Scenario) Outcome {
	return x.whatIf(&sc, nil)
}

// whatIf runs a scenario until stop says so; nil never does.
func (x *Exact) whatIf(sc *Scenario, stop func(*Outcome) bool) Outcome {
	s := &simulation{Exact: x, sc: sc, e: &x.Trace.Events, device: newDevice(x.Recording, sc.Capacity)}
	s.a = allocator.New(sc.Settings, x.Version, s.device)
	s.a.SetLimit(sc.Limit)
	s.streams = streams{x.Snap, s.a, nil}
	var err error
	if s.handles, s.tickets, err = x.load(s.a); err != nil {
		return s.out
	}
	if sc.Without != nil {
		s.leaveOut()
	}
	n := s.e.Len()
	every := 0
	if sc.Samples > 0 {
		every = max(1, n/sc.Samples)
	}
	for k := range n {
		s.step(k)
		if every > 0 && (k%every == 0 || k == n-1) {
			s.out.Samples = append(s.out.Samples, s.sample(k))
		}
		if stop != nil && stop(&s.out) {
			break
		}
	}
	s.out.Stats = s.a.Stats
	return s.out
}

type simulation struct {
	*Exact
	sc      *Scenario
	e       *snapshot.Events
	a       *allocator.Allocator
	streams streams
	handles []allocator.Block // by slot
	tickets map[int32]allocator.Ticket
	out     Outcome
	late    []allocator.Ticket // of frees that a retry completed
	device  *device
	frees   int              // of the device, after the last request
	last    allocator.Ticket // of the last free that waits
	due     allocator.Ticket // up to which frees are complete, as the device waited for all streams

	// Places in the lists of the scenario and of the replay.
	atEmpty, atEmptied, atAbandoned, atRetried int
}

// leaveOut frees what was made before the recording at stacks that the scenario
// is without. Its segments stay.
func (s *simulation) leaveOut() {
	for i := range s.older {
		if s.sc.Without[s.Stack(i)] && s.handles[i] != 0 {
			s.a.Free(s.handles[i])
			s.handles[i] = 0
		}
	}
	s.a.AllocatedPeak = s.a.Allocated
}

// step runs event k.
func (s *simulation) step(k int) {
	s.prelude(k)
	switch s.e.Action[k] {
	case snapshot.Alloc:
		s.alloc(k)
	case snapshot.OOM:
		s.oom(k)
	case snapshot.FreeRequested:
		s.free(k)
	case snapshot.FreeCompleted:
		s.complete(k)
	}
}

// prelude does what the program and the scenario do before event k.
func (s *simulation) prelude(k int) {
	for s.atAbandoned < len(s.abandoned) && s.abandoned[s.atAbandoned].event <= k {
		s.a.Abandon(s.abandoned[s.atAbandoned].pool)
		s.atAbandoned++
	}
	for s.atEmptied < len(s.emptied) && s.emptied[s.atEmptied].event <= k {
		if pool := s.emptied[s.atEmptied].pool; pool.Private() {
			s.a.EmptyPool(pool)
		} else {
			s.a.EmptyCache()
		}
		s.atEmptied++
	}
	for s.atEmpty < len(s.sc.Empty) && s.sc.Empty[s.atEmpty] <= k {
		s.a.EmptyCache()
		s.atEmpty++
	}
	for s.atRetried < len(s.retried) && s.retried[s.atRetried].to <= k {
		s.atRetried++
	}
}

func (s *simulation) malloc(k int) (allocator.Block, bool) {
	pool := allocator.Default
	if len(s.poolOf) > 0 {
		pool = s.a.Pool(s.poolOf[k])
	}
	if pool == allocator.Default {
		s.completeDue()
	}
	b, ok := s.a.Malloc(s.e.Size[k], s.streams.of(s.e.Stream[k]), pool)
	if !ok && s.out.OOM == nil {
		s.out.OOM = &Refusal{
			Event: k, Size: s.sc.Settings.Round(s.e.Size[k]), Reserved: s.a.Reserved, Active: s.a.Active,
			Stack: s.e.Stack[k], Recorded: s.e.Action[k] == snapshot.OOM,
		}
	}
	for _, t := range s.late {
		s.a.Complete(t)
	}
	s.late = s.late[:0]
	if s.frees != s.device.frees {
		s.frees, s.due = s.device.frees, s.last
	}
	return b, ok
}

// completeDue ends the waits that a request finds ended: cudaFree waits for the
// whole device, so that all that was used by other streams before is free.
func (s *simulation) completeDue() {
	if s.due == 0 {
		return
	}
	for _, at := range slices.SortedFunc(maps.Keys(s.tickets), func(i, j int32) int { return cmp.Compare(s.tickets[i], s.tickets[j]) }) {
		if s.tickets[at] <= s.due {
			s.a.Complete(s.tickets[at])
			delete(s.tickets, at)
		}
	}
	s.due = 0
}

func (s *simulation) alloc(k int) {
	if s.sc.Without != nil && s.sc.Without[s.e.Stack[k]] {
		return
	}
	if b, ok := s.malloc(k); ok {
		s.handles[s.slot[k]] = b
	}
}

// oom runs a request that ran out of memory. If it does not now, the program
// goes on as it did: what it got is freed at once.
func (s *simulation) oom(k int) {
	b, ok := s.malloc(k)
	if !ok {
		return
	}
	if s.sc.Capacity > 0 && k == s.LastOOM {
		left := s.sc.Capacity - s.a.Reserved + s.a.Releasable()
		s.out.Left = &left
	}
	s.a.Free(b)
}

func (s *simulation) free(k int) {
	at := s.slot[k]
	if at == never || s.handles[at] == 0 {
		return
	}
	if s.Ends() == snapshot.FreeRequested || s.atOnce(k) {
		s.a.Free(s.handles[at])
	} else {
		s.last = s.a.Defer(s.handles[at])
		s.tickets[at] = s.last
	}
	s.handles[at] = 0
}

// complete ends the free of a block where the recording does. What a retry
// completed there is complete behind the request.
func (s *simulation) complete(k int) {
	at := s.slot[k]
	if at == never {
		return
	}
	if s.handles[at] != 0 { // nobody asked for it
		s.a.Free(s.handles[at])
		s.handles[at] = 0
		return
	}
	t, waits := s.tickets[at]
	if !waits {
		return
	}
	delete(s.tickets, at)
	if s.atRetried < len(s.retried) && s.retried[s.atRetried].from <= k {
		s.late = append(s.late, t)
	} else {
		s.a.Complete(t)
	}
}

func (s *simulation) sample(k int) Sample {
	a := s.a
	return Sample{k, a.Reserved, a.Allocated, a.Active, a.Reserved - a.Active - a.Releasable()}
}

// atOnce tells whether the free that event k asks for is completed by the next
// one, as it is if no other stream used the block.
func (r *Recording) atOnce(k int) bool {
	e := &r.Trace.Events
	return k+1 < e.Len() && e.Action[k+1] == snapshot.FreeCompleted && r.slot[k+1] == r.slot[k] && e.Stack[k+1] == e.Stack[k]
}

// Smallest is the least capacity with which a scenario does not run out of
// memory, a multiple of 2 MiB as segments are, found by trying; of long
// histories it is up to 1/256 more. Also the requests must be met that the
// recording ran out of memory for. It is the peak of reserved memory where
// nothing less is enough, and 0 if the limit alone is too low. Where a retry
// happens to tidy up, less may be enough once more.
func (x *Exact) Smallest(sc Scenario) int64 {
	fails := func(o *Outcome) bool { return o.OOM != nil }
	sc.Capacity, sc.Samples = 0, 0
	free := x.whatIf(&sc, fails)
	if fails(&free) {
		return 0
	}
	// Too little, and enough. What is there at the beginning has to fit, too.
	const unit, long = allocator.SmallBuffer, 1e5
	low, high := (max(free.AllocatedPeak, x.StartReserved)-1)/unit*unit, free.ReservedPeak
	for high-low > unit && (x.Trace.Len() < long || high-low > high/256) {
		sc.Capacity = max((low+(high-low)/2)/unit, low/unit+1) * unit
		if o := x.whatIf(&sc, fails); fails(&o) {
			low = sc.Capacity
		} else {
			high = sc.Capacity
		}
	}
	return high
}
