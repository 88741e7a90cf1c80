package timeline

import (
	"strandline/stack"
	"strandline/torch/snapshot"
)

// A Kept is how the program went on with what one stack allocated and still lives at
// the end. What a container keeps is the result of a line; what a graph of autograd
// keeps are the operands of later ones.
type Kept struct {
	Count int // allocations that live
	// Operands are those after which the same line itself allocated what does not
	// live: results that were computed from them.
	Operands int
	// Losses are those after which a backward pass began, without a forward pass in
	// between.
	Losses int
}

// KeptBy finds how the program went on with what it keeps, by stack.
func KeptBy(t *Timeline) map[stack.ID]*Kept {
	out := map[stack.ID]*Kept{}
	f := newStepFinder(t)
	var run, since []*Kept // what the line under way, and the forward pass, made that lives
	from := -1             // the last allocation of the line under way
	i := len(t.before) - 1
	endRun := func() {
		if len(run) > 0 && t.Freed(from) != Never && t.ownLine(from) {
			for _, k := range run {
				k.Operands++
			}
		}
		run = run[:0]
	}
	for k, action := range t.Trace.Action {
		if action != snapshot.Alloc {
			continue
		}
		i++
		id := t.Trace.Stack[k]
		switch part := f.part(id); {
		case part == inBackward:
			for _, k := range since {
				k.Losses++
			}
			since = since[:0]
			continue
		case from >= 0 && t.samePlace(from, i): // such as the other results of a loss
		default:
			endRun()
			if part == inForward {
				since = since[:0]
			}
		}
		from = i
		if t.Freed(i) != Never {
			continue
		}
		x := out[id]
		if x == nil {
			x = &Kept{}
			out[id] = x
		}
		x.Count++
		run, since = append(run, x), append(since, x)
	}
	endRun()
	return out
}

// ownLine reports whether the innermost Python frame of an allocation is the program's
// own line: not that of a function of a library which the line calls.
func (t *Timeline) ownLine(i int) bool {
	id := t.Stack(i)
	for _, f := range t.Snap.Stacks.Frames(id) {
		if frame := t.Snap.Stacks.At(f); stack.OriginOf(frame) != stack.Native {
			return frame == t.Snap.Stacks.Site(id)
		}
	}
	return false
}
