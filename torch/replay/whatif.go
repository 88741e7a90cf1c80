package replay

import (
	"cmp"
	"context"
	"fmt"
	"maps"

	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/units"
)

// A Scenario states what differs from the recorded run. The requests of the
// program stay the same, and so do its calls of empty_cache, as far as they are
// recorded: one that released nothing is not.
type Scenario struct {
	Settings allocator.Settings
	Capacity int64 // bytes that PyTorch can have; 0 means no bound
	Limit    int64 // bytes that it may reserve, by fraction; 0 if none
	Empty    []int // events before which empty_cache is called, beside the recorded ones
	// EmptyAbove is the reserved bytes from which on it is called at one of Empty, unless
	// nothing has changed since the call before; 0 for always.
	EmptyAbove int64
	Without    []bool // stacks, by id, of which no allocation is made; nil if none
	Samples    int    // of the course of memory, evenly over the events
	Looks      []int  // further events after which memory is sampled, in order
	Steps      bool   // whether to record each change of reserved memory
}

// An Outcome is the result of a scenario.
type Outcome struct {
	allocator.Stats
	OOM *Refusal // the first; nil if memory did not run out
	// Left is what PyTorch could still have taken after the last request that ran
	// out in the recording: free with the driver, or in what empty_cache returns.
	// It is nil if that request is not met, or if the capacity is not known.
	Left *int64
	// Stranded is the most bytes that were free in segments in use, of those
	// seen at some 2,000 events evenly over the history, where samples are asked
	// for.
	Stranded int64
	// Needed is the most bytes that were reserved and not releasable, of those after each
	// call that took memory: about the least capacity that is enough.
	Needed  int64
	Worst   Sample // the first of those events at which it was that
	Samples []Sample
	Looks   []Sample
	Steps   []Step
	Emptied []Emptied // calls of the scenario's own, in order

	widest int64 // bytes; any larger max_split_size would have given the same
}

// An Emptied is a call of empty_cache: the bytes reserved before and after.
type Emptied struct {
	Event         int
	Before, After int64
}

// A Step is the bytes reserved from an event on. The first one is what is
// reserved before the first event.
type Step struct {
	Event    int
	Reserved int64
}

// A Refusal is a request that ran out of memory.
type Refusal struct {
	Event            int
	Size             int64 // rounded bytes
	Reserved, Active int64
	Stack            stack.ID
	Recorded         bool // the recording ran out there, too
}

const (
	// Samples are as many as show the course of a run: a line of a terminal.
	Samples = 64
	// closely is how often what is stranded is looked at in a run with samples.
	closely = 2048
)

// A Sample is the memory after an event.
type Sample struct {
	Event                                 int
	Reserved, Allocated, Active, Stranded int64
}

// ParseSettings are settings to run under, as the release takes them that wrote
// the file. Those that leave memory to the driver cannot be simulated.
func ParseSettings(conf string, v allocator.Version) (allocator.Settings, error) {
	set, err := allocator.ParseSettings(conf, v)
	if err == nil && set.Backend != "native" {
		err = fmt.Errorf("%s: the driver manages memory then, and not the allocator that is simulated here; none of this would apply", conf)
	}
	return set, err
}

// Recorded is the recorded run as a scenario.
func (x *Result) Recorded() Scenario {
	as := x.Assumed()
	sc := x.Under(Scenario{}, x.Settings)
	if had := as.Room(); had != nil {
		sc.Capacity = *had
	}
	return sc
}

// Bounded returns a scenario with the capacity and the limit of the recording, if it
// does not set a capacity.
func (x *Result) Bounded(sc Scenario) Scenario {
	if sc.Capacity == 0 {
		recorded := x.Recorded()
		sc.Capacity, sc.Limit = recorded.Capacity, recorded.Limit
	}
	return sc
}

// Under returns a scenario with other settings. A fraction that they name is of the
// scenario's capacity, if it does not set a limit. Garbage collection
// needs a limit: if no bound of memory is given, the recording's is used.
func (x *Result) Under(sc Scenario, set allocator.Settings) Scenario {
	sc.Settings = set
	if set.GCThreshold > 0 && sc.Limit == 0 && sc.Capacity == 0 {
		sc.Limit = x.assumed.limit
	}
	if set.Fraction < 1 && sc.Limit == 0 {
		sc.Limit = int64(set.Fraction * float64(sc.Capacity))
	}
	return sc
}

// Idle are the settings of a scenario that change nothing in it, and why.
func (sc *Scenario) Idle() []string {
	notes := []string{}
	set := &sc.Settings
	if set.GCThreshold > 0 && sc.Limit == 0 {
		notes = append(notes, "garbage_collection_threshold does nothing without a limit of memory: give a capacity and a fraction of it")
	}
	if set.Fraction < 1 && sc.Limit == 0 {
		notes = append(notes, "per_process_memory_fraction is left out: it is a share of the capacity, which is not given")
	}
	if set.ThrowOnOOM && sc.Capacity == 0 {
		notes = append(notes, "throw_on_cudamalloc_oom does nothing without a capacity: give one")
	}
	if set.Reserve != "" || set.ReserveByClass != "" {
		notes = append(notes, "expandable_segments_reserve… is of addresses, and changes nothing here: a request that is larger than the reserve would fail")
	}
	if set.Host != allocator.DefaultSettings().Host {
		notes = append(notes, "pinned_… settings change pinned host memory alone")
	}
	return notes
}

// Fits reports whether a capacity is at least what was reserved when the recording
// began.
func (x *Result) Fits(capacity int64) error {
	if capacity > 0 && capacity < x.StartReserved {
		return fmt.Errorf("device %d had %s reserved when the recording began: what less would have done is not recorded", x.Device, units.Bytes(x.StartReserved))
	}
	return nil
}

// Held states that a part of memory keeps its recorded layout, "" if none does.
func (x *Result) Held() string {
	if x.StartReserved == 0 {
		return ""
	}
	return fmt.Sprintf("device %d had %s reserved when the recording began; that stays laid out as it was, so that settings change less than in a whole run",
		x.Device, units.Bytes(x.StartReserved))
}

// WhatIf runs the requests of the history under a scenario.
func (x *Result) WhatIf(sc Scenario) Outcome {
	return x.whatIf(&sc, nil)
}

// Run is like WhatIf, and stops when ctx ends.
func (x *Result) Run(ctx context.Context, sc Scenario) (Outcome, error) {
	out := x.whatIf(&sc, func(*Outcome) bool { return ctx.Err() != nil })
	return out, ctx.Err()
}

// whatIf runs a scenario until stop, which is asked now and then, returns true; a nil
// stop never does.
func (x *Result) whatIf(sc *Scenario, stop func(*Outcome) bool) Outcome {
	sc.Settings.Ascend = x.Settings.Ascend
	s := &simulation{Result: x, sc: sc, e: &x.Trace.Events, device: newDevice(x.Recording, sc.Capacity)}
	s.a = allocator.New(sc.Settings, x.Version, s.device)
	x.prepare(s.a)
	s.a.SetLimit(sc.Limit)
	s.a.SetTotal(sc.Capacity)
	s.a.SetSpan(x.assumed.span)
	s.streams = streams{x.Snap, s.a, nil}
	start, _ := x.beginning()
	var err error
	if s.handles, s.tickets, err = x.load(s.a, start); err != nil {
		return s.out
	}
	if sc.Without != nil {
		s.leaveOut()
	}
	if sc.Samples > 0 {
		n := s.e.Len()
		s.every, s.often = max(1, n/sc.Samples), max(1, n/closely)
	}
	s.change(never)
	s.looks(never)
	for k := 0; k < s.e.Len() && (stop == nil || !stop(&s.out)); {
		s.prelude(k)
		for end := s.until(k); k < end; k++ {
			s.step(k)
			if sc.Steps {
				s.change(k)
			}
		}
		s.course(k - 1)
	}
	s.out.Stats, s.out.widest = s.a.Stats, s.a.Widest()
	return s.out
}

// until is the event behind the next ones that are run without anything in between.
func (s *simulation) until(k int) int {
	const most = 1 << 12
	end := min(s.e.Len(), k+most)
	next := func(event int) { end = min(end, max(event, k+1)) }
	for _, every := range []int{s.every, s.often} {
		if every > 0 {
			next((k+every-1)/every*every + 1)
		}
	}
	if s.atLook < len(s.sc.Looks) {
		next(s.sc.Looks[s.atLook] + 1)
	}
	if s.atEmpty < len(s.sc.Empty) {
		next(s.sc.Empty[s.atEmpty])
	}
	if s.atAbandoned < len(s.abandoned) {
		next(s.abandoned[s.atAbandoned].event)
	}
	if s.atEmptied < len(s.emptied) {
		next(s.emptied[s.atEmptied].event)
	}
	if s.atRetried < len(s.retried) {
		next(s.retried[s.atRetried].to)
	}
	return end
}

type simulation struct {
	*Result
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

	every, often int // events between samples of the course, and of what is stranded; 0 for none

	// Places in the lists of the scenario and of the replay.
	atEmpty, atEmptied, atAbandoned, atRetried, atLook int

	idle []allocator.PoolID
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
		s.idle = append(s.idle, s.abandoned[s.atAbandoned].pool)
		s.a.SetIdle(s.idle)
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
		s.empty(k)
		s.atEmpty++
	}
	for s.atRetried < len(s.retried) && s.retried[s.atRetried].to <= k {
		s.atRetried++
	}
}

// empty does what the scenario adds before event k.
func (s *simulation) empty(k int) {
	before, calls := s.a.Reserved, s.out.Emptied
	if above := s.sc.EmptyAbove; above > 0 && (before < above || len(calls) > 0 && before == calls[len(calls)-1].After) {
		return
	}
	s.a.EmptyCache()
	s.out.Emptied = append(calls, Emptied{k, before, s.a.Reserved})
}

func (s *simulation) malloc(k int) (allocator.Block, bool) {
	pool := allocator.Default
	if len(s.poolOf) > 0 {
		pool = s.a.Pool(s.poolOf[k])
	}
	if pool == allocator.Default {
		s.completeDue()
	}
	before := s.a.Reserved
	b, ok := s.a.Malloc(s.e.Size[k], s.streams.of(s.e.Stream[k]), pool)
	if now := s.a.Reserved; now != before && now > s.out.Needed {
		s.out.Needed = max(s.out.Needed, now-s.a.Releasable())
	}
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
	for _, at := range sorts.Collect(maps.Keys(s.tickets), func(i, j int32) int { return cmp.Compare(s.tickets[i], s.tickets[j]) }) {
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
// continues as it did: what it got is freed at once.
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
	if s.handles[at] != 0 { // not requested
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

// change adds a step of reserved memory, if event k is one.
func (s *simulation) change(k int) {
	if n := len(s.out.Steps); s.sc.Steps && (n == 0 || s.out.Steps[n-1].Reserved != s.a.Reserved) {
		s.out.Steps = append(s.out.Steps, Step{k, s.a.Reserved})
	}
}

// course adds the samples after event k.
func (s *simulation) course(k int) {
	if s.every > 0 && (k%s.every == 0 || k == s.e.Len()-1) {
		s.out.Samples = append(s.out.Samples, s.sample(k))
	}
	if s.often > 0 && k%s.often == 0 {
		if seen := s.sample(k); seen.Stranded > s.out.Stranded {
			s.out.Stranded, s.out.Worst = seen.Stranded, seen
		}
	}
	s.looks(k)
}

// looks adds the samples that are asked for up to event k.
func (s *simulation) looks(k int) {
	for ; s.atLook < len(s.sc.Looks) && s.sc.Looks[s.atLook] <= k; s.atLook++ {
		s.out.Looks = append(s.out.Looks, s.sample(k))
	}
}

func (s *simulation) sample(k int) Sample {
	a := s.a
	return Sample{k, a.Reserved, a.Allocated, a.Active, a.Reserved - a.Active - a.Releasable()}
}

// atOnce reports whether the free that event k asks for is completed by the next
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
// happens to release memory, a smaller capacity may be enough again.
//
// Ran is the outcome of the scenario, nil if it has not been run: where memory did not
// run out, it saves the first run.
func (x *Result) Smallest(ctx context.Context, sc Scenario, ran *Outcome) (int64, error) {
	fails := func(o *Outcome) bool { return o.OOM != nil }
	sc.Capacity, sc.Samples, sc.Looks, sc.Steps = 0, 0, nil, false
	if ran == nil || fails(ran) {
		free := x.whatIf(&sc, fails)
		if ran = &free; fails(ran) {
			return 0, ctx.Err()
		}
	}
	// Too little, and enough. What is there at the beginning has to fit, too.
	const unit, long = allocator.SmallBuffer, 1e5
	low, high := (max(ran.AllocatedPeak, x.StartReserved)-1)/unit*unit, ran.ReservedPeak
	enough := func() int64 { // how near is near enough
		if x.Trace.Len() < long {
			return unit
		}
		return max(unit, high/256/unit*unit)
	}
	// From what was needed the steps double until the least is between two of them.
	step, try := int64(1), (ran.Needed+unit-1)/unit*unit
	for high-low > enough() {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		sc.Capacity = max(min(try, high-1)/unit, low/unit+1) * unit
		o := x.whatIf(&sc, fails)
		if fails(&o) {
			low = sc.Capacity
			short := o.OOM.Reserved + sc.Settings.SegmentSize(o.OOM.Size) // at least
			try = min(max(low+step*enough(), short), low+(high-low)/2)
		} else {
			high = min(sc.Capacity, (o.ReservedPeak+unit-1)/unit*unit)
			try = max(high-step*enough(), low+(high-low)/2)
		}
		step *= 2
	}
	return high, nil
}
