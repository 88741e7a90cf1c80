package timeline

import (
	"strandline/stack"
)

// What steps are inferred from, in the absence of annotations, optimizer updates or
// backward passes: from the most certain to the least.
const (
	Requests = "repeated calls" // in which modules are called
	Passes   = "forward passes" // which may all be of one request
	Loops    = "repeated lines" // that mostly allocate themselves, in a program that calls no modules
)

// requests are the steps of a program that neither trains nor annotates: they
// begin where it comes back to a line of code, the outermost that does so three
// times. If the program calls modules, so do its steps. A line inside a module's
// call counts only if the pass begins there: the layers of one pass are not steps.
func (f *stepFinder) requests() Steps {
	var allocs []int
	modules := false
	for k := range f.t.Trace.Action {
		if f.allocates(k) {
			allocs = append(allocs, k)
			modules = modules || f.part(f.t.Trace.Stack[k]) == inForward
		}
	}
	c := callers{stacks: f.t.Snap.Stacks, paths: map[stack.ID]path{}}
	allocs = f.ofOneThread(&c, allocs)
	const deepest = 256 // loops of programs are not deeper
	for level := 0; len(allocs) > 0 && level < deepest; level++ {
		entries, inside := f.entries(&c, allocs, level)
		if begins := entries.repeated(inside); begins != nil && (!modules || f.callModules(begins)) {
			s := f.whole(&c, begins, allocs, level)
			switch {
			case !modules && f.allocatesAt(&c, allocs, level):
				s.From = Loops
			case f.part(f.t.Trace.Stack[begins[0]]) == inForward: // on an input that was made before
				s.From = Passes
			}
			return s
		}
		allocs = f.largest(&c, allocs, level)
	}
	return Steps{Begin: Never}
}

// allocatesAt reports whether most allocations are made at a level, not by what is
// called from there.
func (f *stepFinder) allocatesAt(c *callers, allocs []int, level int) bool {
	n := 0
	for _, k := range allocs {
		if len(c.path(f.t.Trace.Stack[k]).frames) == level+1 {
			n++
		}
	}
	return 2*n > len(allocs)
}

// callModules reports whether nearly all steps that begin at some events call a
// module; the last may not have come to that.
func (f *stepFinder) callModules(begins []int) bool {
	calls, last := 0, -1
	step := 0
	for k := begins[0]; k < begins[len(begins)-1]; k++ {
		for begins[step+1] <= k {
			step++
		}
		if last < step && f.allocates(k) && f.part(f.t.Trace.Stack[k]) == inForward {
			last = step
			calls++
		}
	}
	return 4*calls >= 3*(len(begins)-1)
}

// A path is the Python frames of a stack, outermost first, down to the first
// module's forward; module is its index, past the end if there is none.
type path struct {
	frames []stack.FrameID
	module int
}

// callers reads the paths of stacks, each once.
type callers struct {
	stacks *stack.Table
	paths  map[stack.ID]path
}

func (c *callers) path(id stack.ID) path {
	if p, ok := c.paths[id]; ok {
		return p
	}
	var p path
	ids := c.stacks.Frames(id)
	called := false
	for i := len(ids) - 1; i >= 0 && !called; i-- {
		frame := c.stacks.At(ids[i])
		if origin := stack.OriginOf(frame); origin == stack.Native {
			continue
		} else if called = frame.Function == "forward" && origin != stack.Torch; called {
			p.module = len(p.frames)
		}
		p.frames = append(p.frames, ids[i])
	}
	if !called {
		p.module = len(p.frames)
	}
	c.paths[id] = p
	return p
}

// at is the frame of an allocation at a level, and whether it is a module's
// forward; ok is false where its path is shorter.
func (f *stepFinder) at(c *callers, k, level int) (frame stack.FrameID, inside, ok bool) {
	p := c.path(f.t.Trace.Stack[k])
	if level >= len(p.frames) {
		return 0, false, false
	}
	return p.frames[level], level >= p.module, true
}

// ofOneThread are the allocations of the thread that makes most of them, known by
// the outermost function.
func (f *stepFinder) ofOneThread(c *callers, allocs []int) []int {
	root := func(k int) stack.Frame {
		id, _, ok := f.at(c, k, 0)
		if !ok {
			return stack.Frame{}
		}
		frame := c.stacks.At(id)
		frame.Line = 0
		return frame
	}
	return largestGroup(allocs, root, stack.Frame{})
}

// largest are the allocations of the frame at a level that makes most of them.
func (f *stepFinder) largest(c *callers, allocs []int, level int) []int {
	const none = ^stack.FrameID(0)
	return largestGroup(allocs, func(k int) stack.FrameID {
		if id, _, ok := f.at(c, k, level); ok {
			return id
		}
		return none
	}, none)
}

// largestGroup are the allocations with the key that most of them have; those
// whose key equals none are not in any group.
func largestGroup[K comparable](allocs []int, key func(k int) K, none K) (out []int) {
	count := map[K]int{}
	best := none
	for _, k := range allocs {
		if x := key(k); x != none {
			if count[x]++; best == none || count[x] > count[best] {
				best = x
			}
		}
	}
	for _, k := range allocs {
		if best != none && key(k) == best {
			out = append(out, k)
		}
	}
	return out
}

// visits are the events at which a program comes to each of some lines from
// another of them.
type visits struct {
	order  []stack.FrameID // as they are first seen
	events map[stack.FrameID][]int
}

func (f *stepFinder) entries(c *callers, allocs []int, level int) (v visits, inside bool) {
	v.events = map[stack.FrameID][]int{}
	last := ^stack.FrameID(0)
	for _, k := range allocs {
		frame, in, ok := f.at(c, k, level)
		if !ok || frame == last {
			continue
		}
		if v.events[frame] == nil {
			v.order = append(v.order, frame)
		}
		v.events[frame] = append(v.events[frame], k)
		last, inside = frame, inside || in
	}
	return v, inside
}

// repeated are the visits of the first line that is visited three times; of the
// first line of all if only that counts.
func (v *visits) repeated(onlyFirst bool) []int {
	for i, frame := range v.order {
		if onlyFirst && i > 0 {
			break
		}
		if events := v.events[frame]; len(events) >= MinSteps {
			return events
		}
	}
	return nil
}

// whole are the steps that begin at some events, without the last if lines are
// missing in it that all others come to.
func (f *stepFinder) whole(c *callers, begins, allocs []int, level int) Steps {
	s := between(begins, f.t.Trace.Len())
	s.From = Requests
	steps := make(map[stack.FrameID]int) // in how many of the steps before the last a line is seen
	seen := map[stack.FrameID]int{}      // the last step in which it was
	step := -1
	for _, k := range allocs {
		for step+1 < len(begins) && begins[step+1] <= k {
			step++
		}
		frame, _, ok := f.at(c, k, level)
		if !ok || step < 0 {
			continue
		}
		if n, known := seen[frame]; (!known || n != step) && step < len(begins)-1 {
			steps[frame]++
		}
		seen[frame] = step
	}
	for frame, n := range steps {
		if n == len(begins)-1 && seen[frame] != len(begins)-1 {
			s.Ends = s.Ends[:len(s.Ends)-1]
			break
		}
	}
	return s
}
