package timeline

import (
	"encoding/binary"
	"slices"
	"sort"

	"strandline/stack"
	"strandline/torch/snapshot"
)

// EnoughSteps is how many whole steps a history must have for growth to be judged
// by it.
const MinSteps = 3

// Steps are the whole repetitions of a program's loop in a history: steps of a
// training, or requests.
type Steps struct {
	// Begin is the last event before the first step, Never where that is the first
	// event of the history; Ends are the last events of the steps.
	Begin int
	Ends  []int
	From  string // what they are inferred from, in the plural; "" where there are none
}

// Enough reports whether growth can be judged by the steps.
func (s *Steps) Enough() bool { return len(s.Ends) >= MinSteps }

// Known reports whether annotations, updates or backward passes show the steps:
// what a program merely comes back to can be part of one.
func (s *Steps) Known() bool {
	return s.From != "" && s.From != Requests && s.From != Passes && s.From != Loops
}

// Steps finds the steps of a history: by annotations, otherwise by updates of an
// optimizer, otherwise by backward passes, otherwise by the outermost line of code that the
// program comes back to. What allocates between two steps belongs to the first of
// them, and what does so before them to neither.
func (t *Timeline) Steps() Steps {
	s := t.findSteps()
	if n := len(s.Ends); n > 1 && t.LastOOM > s.Ends[n-2] { // it was abandoned
		s.Ends = s.Ends[:n-1]
	}
	return s
}

func (t *Timeline) findSteps() Steps {
	if s := t.annotatedSteps(); s.From != "" {
		return s
	}
	f := newStepFinder(t)
	updates, passes := f.updates(), f.backwards()
	switch {
	case len(updates) > 0 && !stopped(updates, passes):
		return f.around(updates, "optimizer updates")
	case len(passes) > 0:
		return f.around(passes, "backward passes")
	case f.trains:
		return Steps{Begin: Never}
	}
	return f.requests()
}

// stopped reports whether more backward passes follow the last update than are
// between two of them: an optimizer that allocates nothing after its first update
// is no longer seen.
func stopped(updates, passes []int) bool {
	between, k := 0, 0
	for _, u := range updates {
		n := 0
		for ; k < len(passes) && passes[k] <= u; k++ {
			n++
		}
		between = max(between, n)
	}
	return len(passes)-k > between
}

// annotatedSteps are the steps that the program itself annotates.
func (t *Timeline) annotatedSteps() Steps {
	times := t.Trace.Time
	if len(times) == 0 {
		return Steps{Begin: Never}
	}
	scopes, what := t.Snap.StepScopes()
	var begins []int
	ended := false
	for _, s := range scopes {
		k := sort.Search(len(times), func(k int) bool { return times[k] >= s.Start })
		if k == len(times) || s.End != 0 && s.End < times[0] || k == 0 && (s.Start == 0 || t.Snap.RingFull(t.Device)) {
			continue // it is not in the history, or not whole
		}
		if n := len(begins); n == 0 || begins[n-1] < k {
			begins = append(begins, k)
		}
		ended = s.End != 0
	}
	if len(begins) == 0 {
		return Steps{Begin: Never}
	}
	s := between(begins, len(times))
	s.From = what
	if last := len(s.Ends) - 1; !ended && last > 0 && 10*(s.Ends[last]-s.Ends[last-1]) < 9*(s.Ends[last-1]-s.Begin)/last {
		s.Ends = s.Ends[:last] // it is under way
	}
	return s
}

// AnnotatedEnds are the events before which annotated steps ended, the number of
// all events where none follows; what names the annotations.
func (t *Timeline) AnnotatedEnds() (events []int, what string) {
	times := t.Trace.Time
	if times == nil {
		return nil, ""
	}
	ends, what := t.Snap.Steps()
	for _, end := range ends {
		events = append(events, sort.Search(len(times), func(k int) bool { return times[k] > end }))
	}
	slices.Sort(events)
	return events, what
}

// StepEnds are the events before which steps ended: by annotations, otherwise where the
// optimizer is done. Unlike [Timeline.Steps] they need neither be whole nor alike.
func (t *Timeline) StepEnds() (events []int, what string) {
	if events, what = t.AnnotatedEnds(); len(events) > 0 {
		return events[:sort.SearchInts(events, t.Trace.Len())], what
	}
	f := newStepFinder(t)
	within := false
	for k, a := range t.Trace.Action {
		if id := t.Trace.Stack[k]; a == snapshot.Alloc && id != stack.None {
			now := f.part(id) == inUpdate
			if within && !now {
				events = append(events, k)
			}
			within = now
		}
	}
	return events, "where the optimizer is done"
}

// between are the steps that begin at some events of a history.
func between(begins []int, events int) Steps {
	s := Steps{Begin: begins[0] - 1}
	for _, k := range begins[1:] {
		s.Ends = append(s.Ends, k-1)
	}
	s.Ends = append(s.Ends, events-1)
	return s
}

// A stepFinder infers steps from the stacks of a history.
type stepFinder struct {
	t      *Timeline
	parts  []part     // by stack
	calls  []stack.ID // by stack: the first with the same Python frames, None if not yet known
	python map[string]stack.ID
	trains bool // something is allocated by the autograd engine
}

// A part is what a program does at a stack.
type part uint8

const (
	elsewhere part = iota
	inForward
	inBackward
	inUpdate
)

func newStepFinder(t *Timeline) *stepFinder {
	f := &stepFinder{t: t, parts: t.parts(), calls: make([]stack.ID, t.Snap.Stacks.Len()), python: map[string]stack.ID{}}
	known := t.Snap.Stacks.Len() > int(stack.Empty)+1 // otherwise no stack was recorded
	for k, a := range t.Trace.Action {
		if a == snapshot.Alloc && known && f.part(t.Trace.Stack[k]) == inBackward {
			f.trains = true
			break
		}
	}
	return f
}

func (f *stepFinder) part(id stack.ID) part { return f.parts[id] }

// newParts finds what the program does at each stack.
func (t *Timeline) newParts() []part {
	parts := make([]part, t.Snap.Stacks.Len())
	parts[stack.None], parts[stack.Empty] = elsewhere, inBackward
	for i := int(stack.Empty) + 1; i < len(parts); i++ {
		frames := t.Snap.Stacks.Stack(stack.ID(i))
		switch {
		case stack.UpdateCaller(frames) != stack.Frame{} && !stack.InForward(frames): // nor in a closure that it calls
			parts[i] = inUpdate
		case stack.InBackward(frames):
			parts[i] = inBackward
		case stack.InForward(frames):
			parts[i] = inForward
		}
	}
	return parts
}

// updates are the last events of an optimizer's updates. Of several optimizers the
// one that is called least often counts, if it is called in three steps.
func (f *stepFinder) updates() []int {
	ends := map[stack.Frame][]int{} // by the line that calls the optimizer
	var order []stack.Frame
	callers := map[stack.ID]stack.Frame{}
	e := &f.t.Trace.Events
	within := stack.Frame{}
	for k, a := range e.Action {
		if a != snapshot.Alloc && a != snapshot.FreeRequested {
			continue
		}
		id := e.Stack[k]
		if f.part(id) != inUpdate {
			if a == snapshot.Alloc {
				within = stack.Frame{}
			}
			continue
		}
		caller, ok := callers[id]
		if !ok {
			caller = stack.UpdateCaller(f.t.Snap.Stacks.Stack(id))
			callers[id] = caller
		}
		n := len(ends[caller])
		switch {
		case n == 0:
			order = append(order, caller)
			fallthrough
		case caller != within:
			ends[caller] = append(ends[caller], k)
		default:
			ends[caller][n-1] = k
		}
		within = caller
	}
	var best []int
	for _, caller := range order {
		if n := len(ends[caller]); len(best) < MinSteps && n > len(best) || n >= MinSteps && n < len(best) {
			best = ends[caller]
		}
	}
	return f.annotatedUpdates(best)
}

// annotatedUpdates are the updates that PyTorch itself annotates, if they are more
// than enough others: not every optimizer allocates.
func (f *stepFinder) annotatedUpdates(others []int) (ends []int) {
	times := f.t.Trace.Time
	if len(others) >= MinSteps || len(times) == 0 {
		return others
	}
	for _, s := range f.t.Snap.UpdateScopes() {
		k := sort.Search(len(times), func(k int) bool { return times[k] > s.End }) - 1
		if n := len(ends); s.End != 0 && k >= 0 && (n == 0 || ends[n-1] < k) {
			ends = append(ends, k)
		}
	}
	if len(ends) > len(others) {
		return ends
	}
	return others
}

// backwards are the last allocations of backward passes, each of which follows a
// forward one. The autograd engine's threads have no Python frames; recomputation
// inside a backward pass is part of it.
func (f *stepFinder) backwards() (ends []int) {
	if !f.trains {
		return nil
	}
	e := &f.t.Trace.Events
	follow := func(wanted part) (ends []int) {
		ready := false // for a backward pass
		for k, a := range e.Action {
			if a != snapshot.Alloc {
				continue
			}
			switch p := f.part(e.Stack[k]); {
			case p == inBackward && ready:
				ends, ready = append(ends, k), false
			case p == inBackward && len(ends) > 0:
				ends[len(ends)-1] = k
			case p == wanted && e.Stack[k] != stack.None:
				ready = true
			}
		}
		return ends
	}
	if ends = follow(inForward); len(ends) > 0 {
		return ends
	}
	return follow(elsewhere) // no module is called
}

// call is the first stack with the same Python frames as the one that allocates at
// event k: native frames differ between the first call of a function and later
// ones.
func (f *stepFinder) call(k int) stack.ID {
	id := f.t.Trace.Stack[k]
	if f.calls[id] == stack.None {
		var key []byte
		for _, frame := range f.t.Snap.Stacks.Frames(id) {
			if stack.OriginOf(f.t.Snap.Stacks.At(frame)) != stack.Native {
				key = binary.LittleEndian.AppendUint32(key, uint32(frame))
			}
		}
		first, known := f.python[string(key)]
		if !known || len(key) == 0 {
			first = id
			f.python[string(key)] = id
		}
		f.calls[id] = first
	}
	return f.calls[id]
}

// around are the steps of which each holds one of some events, its anchor. They
// are cut before the first allocation of a step: the first whose call comes back
// in nearly all later steps.
func (f *stepFinder) around(anchors []int, from string) Steps {
	events := f.t.Trace.Len()
	if len(anchors) < 2 {
		return Steps{Begin: Never, Ends: []int{events - 1}, From: from}
	}
	regular := f.regular(anchors)
	start := func(after, before int) int {
		for k := after; k < before; k++ {
			if f.allocates(k) && regular[f.call(k)] {
				return k
			}
		}
		return after
	}
	first := start(0, anchors[0]+1)
	if !f.t.Complete() && f.beginsInside(f.call(first), anchors) {
		first = start(anchors[0]+1, anchors[1]+1)
		anchors = anchors[1:]
	}
	marker := f.call(first)
	begins := []int{first}
	for i, a := range anchors {
		until := events
		if i+1 < len(anchors) {
			until = anchors[i+1] + 1
		}
		if k := f.next(marker, a+1, until); k >= 0 {
			begins = append(begins, k)
		} else if i+1 < len(anchors) { // which may be the last event of all
			begins = append(begins, a+1)
		}
	}
	s := between(begins, events)
	s.Ends, s.From = s.Ends[:len(anchors)], from // what follows the last anchor may be a step under way
	return s
}

// beginsInside reports whether a history begins inside a step, with an allocation
// of some call: whether a good part of the next step's forward pass, or of all that
// it allocates if it has none, comes before that call.
func (f *stepFinder) beginsInside(call stack.ID, anchors []int) bool {
	var before, all [2]int // of forward passes, and of everything
	found := false
	for k := anchors[0] + 1; k <= anchors[1]; k++ {
		if !f.allocates(k) {
			continue
		}
		found = found || f.call(k) == call
		for i, counts := range []bool{f.part(f.t.Trace.Stack[k]) == inForward, true} {
			if counts {
				all[i]++
				if !found {
					before[i]++
				}
			}
		}
	}
	i := 0
	if all[0] == 0 {
		i = 1
	}
	return 4*before[i] > all[i]
}

func (f *stepFinder) allocates(k int) bool {
	return f.t.Trace.Action[k] == snapshot.Alloc && f.t.Trace.Stack[k] > stack.Empty
}

// regular reports, by stack, which calls allocate in nearly all windows between
// anchors but the first.
func (f *stepFinder) regular(anchors []int) []bool {
	last, count := make([]int, len(f.calls)), make([]int, len(f.calls))
	for w := 1; w < len(anchors); w++ {
		for k := anchors[w-1] + 1; k <= anchors[w]; k++ {
			if !f.allocates(k) {
				continue
			}
			if id := f.call(k); last[id] != w {
				last[id] = w
				count[id]++
			}
		}
	}
	out := make([]bool, len(count))
	for id, n := range count {
		out[id] = 4*n >= 3*(len(anchors)-1)
	}
	return out
}

// next is the first allocation of a call among some events, -1 if there is none.
func (f *stepFinder) next(call stack.ID, from, to int) int {
	for k := from; k < to; k++ {
		if f.allocates(k) && f.call(k) == call {
			return k
		}
	}
	return -1
}
