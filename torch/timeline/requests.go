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
	n := 0
	for k := range f.t.Trace.Action {
		if f.allocates(k) {
			n++
		}
	}
	allocs := make([]int32, 0, n)
	modules := false
	for k := range f.t.Trace.Action {
		if f.allocates(k) {
			allocs = append(allocs, int32(k))
			modules = modules || f.part(f.t.Trace.Stack[k]) == inForward
		}
	}
	c := callers{stacks: f.t.Snap.Stacks, paths: make([]*path, f.t.Snap.Stacks.Len())}
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
func (f *stepFinder) allocatesAt(c *callers, allocs []int32, level int) bool {
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
	paths  []*path // of each stack, nil before it is read
}

func (c *callers) path(id stack.ID) *path {
	if p := c.paths[id]; p != nil {
		return p
	}
	p := new(path)
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

// at is the frame of a stack at a level, and whether it is a module's forward; ok
// is false where its path is shorter.
func (c *callers) at(id stack.ID, level int) (frame stack.FrameID, inside, ok bool) {
	p := c.path(id)
	if level >= len(p.frames) {
		return 0, false, false
	}
	return p.frames[level], level >= p.module, true
}

// ofOneThread are the allocations of the thread that makes most of them, known by
// the outermost function.
func (f *stepFinder) ofOneThread(c *callers, allocs []int32) []int32 {
	return largestGroup(f.t.Trace.Stack, allocs, len(c.paths), func(id stack.ID) (stack.Frame, bool) {
		frame, _, ok := c.at(id, 0)
		if !ok {
			return stack.Frame{}, false
		}
		root := c.stacks.At(frame)
		root.Line = 0
		return root, root != stack.Frame{}
	})
}

// largest are the allocations of the frame at a level that makes most of them.
func (f *stepFinder) largest(c *callers, allocs []int32, level int) []int32 {
	return largestGroup(f.t.Trace.Stack, allocs, len(c.paths), func(id stack.ID) (stack.FrameID, bool) {
		frame, _, ok := c.at(id, level)
		return frame, ok
	})
}

// largestGroup keeps, in place, the allocations with the key that most of them have,
// of those that have one. The key is that of the stack; nstacks is the number of stacks.
func largestGroup[K comparable](stacks []stack.ID, allocs []int32, nstacks int, key func(stack.ID) (K, bool)) []int32 {
	const none = -1
	groups := make([]int32, nstacks) // of each stack: its group plus 1, or none; 0 before it is known
	group := func(k int32) int32 { return groups[stacks[k]] - 1 }
	numbers := map[K]int32{}
	var count []int
	best := int32(none)
	for _, k := range allocs {
		id := stacks[k]
		if groups[id] == 0 {
			groups[id] = none
			if x, ok := key(id); ok {
				number, known := numbers[x]
				if !known {
					number = int32(len(count))
					numbers[x] = number
					count = append(count, 0)
				}
				groups[id] = number + 1
			}
		}
		if g := group(k); g >= 0 {
			if count[g]++; best == none || count[g] > count[best] {
				best = g
			}
		}
	}
	out := allocs[:0]
	for _, k := range allocs {
		if best != none && group(k) == best {
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

func (f *stepFinder) entries(c *callers, allocs []int32, level int) (v visits, inside bool) {
	v.events = map[stack.FrameID][]int{}
	last := ^stack.FrameID(0)
	for _, k := range allocs {
		frame, in, ok := c.at(f.t.Trace.Stack[k], level)
		if !ok || frame == last {
			continue
		}
		if v.events[frame] == nil {
			v.order = append(v.order, frame)
		}
		v.events[frame] = append(v.events[frame], int(k))
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
func (f *stepFinder) whole(c *callers, begins []int, allocs []int32, level int) Steps {
	s := between(begins, f.t.Trace.Len())
	s.From = Requests
	steps := make(map[stack.FrameID]int) // in how many of the steps before the last a line is seen
	seen := map[stack.FrameID]int{}      // the last step in which it was
	step := -1
	for _, k := range allocs {
		for step+1 < len(begins) && begins[step+1] <= int(k) {
			step++
		}
		frame, _, ok := c.at(f.t.Trace.Stack[k], level)
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
