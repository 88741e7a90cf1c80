package purpose

import (
	"maps"
	"slices"
	"sort"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A pass is a forward pass and the backward pass that consumes its graph, as
// events. What has not happened in the history is at its end.
type pass struct {
	forward  int   // the first allocation
	begin    int   // the first allocation of the backward pass
	last     int   // the last one
	end      int   // the first event after the backward pass
	repeated []int // ends of recomputations inside it
}

// A span is some events, from and to included.
type span struct{ from, to int }

// program is the course of a program: its passes, updates and steps, as far as a
// history shows it. What happened later is not known: a file that is
// dumped when memory runs out and one that is dumped after it then give the same.
type program struct {
	t        *timeline.Timeline
	traits   []trait // by stack
	facts    []facts // by frame
	events   int     // as many are known
	allocs   int     // that these make
	ends     []int32 // by event, one more than the allocation that it ends; 0 for none
	passes   []pass
	open     int                  // where a forward pass begins that no backward pass follows, or the end
	forwards []int32              // allocations in forward passes of any kind
	updates  []span               // an optimizer's steps
	steps    []int                // where steps begin
	moved    map[stack.Frame]bool // places that move batches
	under    int                  // where the pass begins that is under way at the end, or the end
	oom      bool                 // the history ends with memory running out
	training bool                 // the program has backward passes, or is about to have one
}

func newProgram(t *timeline.Timeline, events int) *program {
	p := &program{t: t, traits: make([]trait, t.Snap.Stacks.Len()), events: events}
	p.allocs = sort.Search(len(t.Allocs), func(i int) bool { return t.Birth(i) >= events })
	p.open = p.events
	p.findEnds()
	p.walk()
	p.updates = append(p.annotatedUpdates(), p.updates...)
	sort.SliceStable(p.updates, func(i, j int) bool { return p.updates[i].from < p.updates[j].from })
	for k := p.events - 1; k >= 0 && !p.oom && t.Trace.Action[k] != snapshot.Alloc; k-- {
		p.oom = t.Trace.Action[k] == snapshot.OOM
	}
	p.endPasses()
	p.under = p.findUnder()
	p.moved = p.findMoved()
	p.training = p.trains()
	p.steps = p.findSteps()
	return p
}

// findEnds finds what each event ends.
func (p *program) findEnds() {
	p.ends = make([]int32, p.events)
	for i := range p.allocs {
		if k := p.death(i); k != timeline.Never {
			p.ends[k] = int32(i + 1)
		}
	}
}

// trains reports whether the program has backward passes, or keeps so much of its
// forward pass that it must be about to have one: of all since the first, unless
// batch after batch went by, or of the pass under way, of many tensors too.
func (p *program) trains() bool {
	const batches = 4 // before a backward pass, at the most
	if len(p.passes) > 0 || len(p.updates) > 0 {
		return true
	}
	if p.keeps(p.open, false) && len(p.loads(p.open)) <= batches {
		return true
	}
	return p.open < p.under && p.under < p.events && !p.trait(p.t.Trace.Stack[p.under]).noGrad && p.keeps(p.under, true)
}

// keeps reports whether a quarter of what is made from an event on is kept: of the
// bytes, and of the allocations if they count.
func (p *program) keeps(from int, counted bool) bool {
	var made, kept, all, still int64
	for i := range p.allocs {
		if p.t.Birth(i) < from || p.t.Before(i) || slices.Contains(cublasSizes, p.t.Size(i)) {
			continue
		}
		made, all = made+p.t.Size(i), all+1
		if !p.gone(i, p.events) {
			kept, still = kept+p.t.Size(i), still+1
		}
	}
	return kept*4 > made && (!counted || still*4 > all)
}

// death is the event that ended allocation i, timeline.Never if none is known.
func (p *program) death(i int) int {
	if k := p.t.Death(i); k < p.events {
		return k
	}
	return timeline.Never
}

// gone reports whether allocation i is gone before event k.
func (p *program) gone(i, k int) bool {
	death := p.death(i)
	return death != timeline.Never && death < k
}

// trait returns the trait of a stack, computed once.
func (p *program) trait(id stack.ID) *trait {
	x := &p.traits[id]
	if !x.known {
		switch id {
		case stack.None:
			*x = trait{known: true, phase: unrecorded, named: count}
		default:
			ids := p.t.Snap.Stacks.Frames(id)
			frames := p.t.Snap.Stacks.Stack(id)
			*x = traitOf(frames, func(i int) *facts { return p.factsOf(ids[i], &frames[i]) })
		}
	}
	return x
}

// factsOf returns the facts of a frame, computed once.
func (p *program) factsOf(id stack.FrameID, f *stack.Frame) *facts {
	for len(p.facts) <= int(id) {
		p.facts = append(p.facts, facts{})
	}
	x := &p.facts[id]
	if !x.known {
		*x = factsOf(f)
	}
	return x
}

// walker follows the phases of a program through its events.
type walker struct {
	p         *program
	start     int // of the current forward pass, or -1
	root      stack.Frame
	inside    bool // a backward pass is under way
	repeating bool // a recomputation in it is under way
	update    int  // the current update, or -1
}

// walk finds passes and updates.
func (p *program) walk() {
	w := walker{p: p, start: -1, update: -1}
	e := &p.t.Trace.Events
	for k, a := range e.Action[:p.events] {
		switch a {
		case snapshot.Alloc:
			w.alloc(k, p.trait(e.Stack[k]))
		case snapshot.FreeRequested, snapshot.FreeCompleted:
			if x := p.trait(e.Stack[k]); x.phase == updating && w.update >= 0 {
				p.updates[w.update].to = k
			}
		}
	}
	if w.start >= 0 && !w.inside {
		p.open = w.start
	}
	if len(p.forwards) == 0 && len(p.updates) == 0 { // stacks without frames show nothing then
		p.passes = nil
	}
}

func (w *walker) alloc(k int, x *trait) {
	if w.repeating && x.phase != recomputing {
		w.repeating = false
		last := &w.p.passes[len(w.p.passes)-1]
		last.repeated = append(last.repeated, k)
	}
	switch x.phase {
	case backward, recomputing:
		w.backward(k, x)
		return
	case forward:
		w.p.forwards = append(w.p.forwards, int32(k))
	}
	if w.inside && w.leaves(x) {
		w.inside, w.start = false, -1
	}
	if x.phase == forward && !x.noGrad && x.named != Communication && !w.inside && w.start < 0 {
		w.start, w.root = k, x.root
	}
	w.updating(k, x)
}

// leaves distinguishes an allocation after a backward pass from one that a hook makes
// inside it, in a thread of the autograd engine.
func (w *walker) leaves(x *trait) bool {
	return x.phase != unrecorded && (x.root == w.root || w.root == stack.Frame{}) && x.named != Communication
}

func (w *walker) backward(k int, x *trait) {
	p := w.p
	if !w.inside {
		w.inside, w.update = true, -1
		if w.start < 0 {
			w.start = p.afterLast()
		}
		p.passes = append(p.passes, pass{forward: w.start, begin: k})
	}
	last := &p.passes[len(p.passes)-1]
	last.last = k
	w.repeating = x.phase == recomputing
}

// afterLast returns where a forward pass can begin at the earliest.
func (p *program) afterLast() int {
	after := 0
	if n := len(p.passes); n > 0 {
		after = p.passes[n-1].last + 1
	}
	if n := len(p.updates); n > 0 {
		after = max(after, p.updates[n-1].to+1)
	}
	return after
}

func (w *walker) updating(k int, x *trait) {
	p := w.p
	switch {
	case x.phase != updating:
		w.update = -1
	case w.update < 0:
		w.update = len(p.updates)
		p.updates = append(p.updates, span{k, k})
		w.start = -1
	default:
		p.updates[w.update].to = k
	}
}

// annotatedUpdates are the optimizer's steps that PyTorch itself annotates.
func (p *program) annotatedUpdates() (out []span) {
	if p.t.Trace.Time == nil {
		return nil
	}
	for _, s := range p.t.Snap.UpdateScopes() {
		if s.Start == 0 {
			continue // it began before the recording
		}
		u := span{p.eventAt(s.Start), p.events}
		if s.End != 0 {
			u.to = p.eventAt(s.End) - 1
		}
		out = append(out, u)
	}
	return out
}

// eventAt is the first event at a time or later.
func (p *program) eventAt(time int64) int {
	return sort.Search(p.events, func(k int) bool { return p.t.Trace.Time[k] >= time })
}

// endPasses finds where each backward pass ends: at the first event outside the
// engine, at the latest where an optimizer's step begins.
func (p *program) endPasses() {
	e := &p.t.Trace.Events
	for i := range p.passes {
		x := &p.passes[i]
		limit := p.events
		if i+1 < len(p.passes) {
			limit = p.passes[i+1].forward
		}
		if u := p.updateAfter(x.last); u.from < limit {
			limit = u.from
		}
		x.end = limit
		for k := x.last + 1; k < limit; k++ {
			if a := e.Action[k]; (a == snapshot.Alloc || a == snapshot.FreeRequested) && p.outside(e.Stack[k]) {
				x.end = k
				break
			}
		}
	}
}

// outside recognizes a stack that is surely not of the engine's.
func (p *program) outside(id stack.ID) bool {
	x := p.trait(id)
	return x.phase != unrecorded && x.phase != backward && x.phase != recomputing && x.named != Communication
}

// updateAfter returns the first optimizer step that begins after event k, or a span
// at the end if there is none.
func (p *program) updateAfter(k int) span {
	i := sort.Search(len(p.updates), func(i int) bool { return p.updates[i].from > k })
	if i == len(p.updates) {
		return span{p.events, p.events}
	}
	return p.updates[i]
}

// passOf returns the pass that contains event k, or nil.
func (p *program) passOf(k int) *pass {
	i := sort.Search(len(p.passes), func(i int) bool { return p.passes[i].end > k })
	if i < len(p.passes) && p.passes[i].forward <= k {
		return &p.passes[i]
	}
	return nil
}

// forwardAfter is the first allocation of a forward pass after event k, or the
// end.
func (p *program) forwardAfter(k int) int {
	if i, _ := slices.BinarySearch(p.forwards, int32(k+1)); i < len(p.forwards) {
		return int(p.forwards[i])
	}
	return p.events
}

// findSteps finds where steps begin, whole or not: after what annotations show as the end
// of one, otherwise after an optimizer's step, otherwise after a backward pass. The first
// begins with the first forward pass.
func (p *program) findSteps() (out []int) {
	if ends, _ := p.t.AnnotatedEnds(); len(ends) > 0 {
		for _, k := range ends {
			if k < p.events || p.events == p.t.Trace.Len() {
				out = append(out, k)
			}
		}
	} else if len(p.updates) > 0 {
		for _, u := range p.updates {
			out = append(out, u.to+1)
		}
	} else if len(p.passes) > 0 {
		for _, x := range p.passes {
			out = append(out, x.end)
		}
	} else {
		return p.requests()
	}
	for i, k := range out {
		out[i] = p.stepFrom(k)
	}
	if len(p.forwards) > 0 {
		out = append(out, p.firstForward())
	}
	sort.Ints(out)
	return out
}

// findUnder finds where the forward or backward pass begins in which the history
// ends: all that was made since its caller last made something.
func (p *program) findUnder() int {
	within := func(k int) bool {
		x := p.trait(p.t.Trace.Stack[k]).phase
		return x == forward || x == backward || x == recomputing
	}
	from := p.events
	for k := p.events - 1; k >= 0; k-- {
		switch p.t.Trace.Action[k] {
		case snapshot.Alloc, snapshot.OOM:
			if !within(k) {
				return from
			}
			from = k
		case snapshot.FreeRequested:
			if from == p.events && !within(k) {
				return from
			}
		}
	}
	return from
}

// requests returns where an inference engine begins work. What a training program
// loads while its first forward pass is under way begins none.
func (p *program) requests() []int {
	out := p.loads(0)
	if p.training {
		out = out[:sort.SearchInts(out, p.open)]
	}
	return out
}

// loads returns where data is loaded from an event on.
func (p *program) loads(from int) (out []int) {
	e := &p.t.Trace.Events
	for k := from; k < p.events; k++ {
		if e.Action[k] != snapshot.Alloc {
			continue
		}
		if x := p.trait(e.Stack[k]); x.phase == own && x.named == count && (x.loads || p.moved[x.made]) {
			out = append(out, k)
		}
	}
	return out
}

// stepFrom moves a boundary to the first allocation that is not the
// optimizer's: what is freed before belongs to the step that ended. Where no pass
// follows, the step after has not begun.
func (p *program) stepFrom(k int) int {
	e := &p.t.Trace.Events
	i := sort.Search(len(p.passes), func(i int) bool { return p.passes[i].begin >= k })
	if p.forwardAfter(k-1) == p.events && i == len(p.passes) {
		return p.events
	}
	for k < p.events && (e.Action[k] != snapshot.Alloc || p.trait(e.Stack[k]).phase == updating) {
		k++
	}
	return k
}

// stepAfter returns where the first step after event k begins, past the end if there
// is none.
func (p *program) stepAfter(k int) int {
	if i := sort.SearchInts(p.steps, k+1); i < len(p.steps) {
		return p.steps[i]
	}
	return p.events + 1
}

func (p *program) firstForward() int {
	if len(p.forwards) > 0 {
		return int(p.forwards[0])
	}
	return p.events
}

// findMoved finds the places that make, outside of all passes, what a forward pass
// needs and what is freed again: batches, not the tables of a model. They are made
// before the first forward pass and again after it; what is only made after it comes
// out of a model, and what is only made before it is not a batch.
func (p *program) findMoved() map[stack.Frame]bool {
	moved, early, again := map[stack.Frame]bool{}, map[stack.Frame]bool{}, map[stack.Frame]bool{}
	late := p.allocs > 0 && p.t.Before(0) // the first passes are not recorded
	for i := range p.allocs {
		if p.t.Before(i) {
			continue
		}
		x := p.trait(p.t.Stack(i))
		if x.phase != own {
			continue
		}
		birth := p.t.Birth(i)
		if late || birth < p.firstForward() {
			early[x.made] = true
		}
		if birth > p.firstForward() {
			again[x.made] = true
		}
		if early[x.made] && p.gone(i, p.events) && !p.gone(i, p.forwardAfter(birth)) {
			moved[x.made] = true
		}
	}
	maps.DeleteFunc(moved, func(made stack.Frame, _ bool) bool { return !again[made] })
	return moved
}
