package purpose

import (
	"sort"

	"strandline/stack"
	"strandline/torch/snapshot"
)

// findBuilt finds what constructors of the program's modules make: on the way to a
// layer of PyTorch's, or in a source that also holds a module's forward.
func (j *judge) findBuilt() {
	j.built = map[int]bool{}
	modules := j.moduleFiles()
	var row []int // since the last layer
	for i := range j.allocs {
		if j.t.Before(i) {
			continue
		}
		switch x := j.trait(j.t.Stack(i)); {
		case !x.builds || x.phase != own:
			row = row[:0]
		case x.named == Parameters:
			for _, i := range row {
				j.built[i] = true
			}
			row = row[:0]
		case x.named == count && modules[j.site(i).File]:
			j.built[i] = true
		case x.named == count:
			row = append(row, i)
		}
	}
}

// moduleFiles are the sources of the program's whose forward is called.
func (j *judge) moduleFiles() map[string]bool {
	files, seen := map[string]bool{}, map[stack.ID]bool{}
	for _, k := range j.forwards {
		id := j.t.Trace.Stack[k]
		if seen[id] {
			continue
		}
		seen[id] = true
		for _, f := range j.t.Snap.Stacks.Frames(id) {
			if frame := j.t.Snap.Stacks.At(f); frame.Function == "forward" && stack.OriginOf(frame) == stack.Own {
				files[frame.File] = true
			}
		}
	}
	return files
}

// findWritten finds the places that give parameters new storage, as
// p.data = p.data - lr * p.grad does: what they make takes the place of a
// parameter, which is released at once.
func (j *judge) findWritten() {
	j.written = map[stack.Frame]bool{}
	for k, a := range j.t.Trace.Action[:j.events] {
		i := int(j.ends[k]) - 1
		if a == snapshot.Alloc || i < 0 {
			continue
		}
		if x := j.trait(j.t.Stack(i)); !j.isParameter(i, x) && !j.written[x.made] {
			continue
		}
		if b, ok := j.successor(i, k); ok {
			j.written[j.trait(j.t.Stack(b)).made] = true
		}
	}
}

// successor returns what was made in place of allocation i, which ends at event k: the
// newest of its size, out of the last few that were made.
func (j *judge) successor(i, k int) (int, bool) {
	const maxLookedAt = 8
	last := sort.Search(j.allocs, func(n int) bool { return j.t.Birth(n) >= k }) - 1
	for b := last; b > max(i, last-maxLookedAt); b-- {
		if j.t.Size(b) != j.t.Size(i) || j.gone(b, k) {
			continue
		}
		x := j.trait(j.t.Stack(b))
		return b, (x.phase == own || x.phase == updating) && x.named == count
	}
	return 0, false
}

// isWritten reports whether allocation i is new storage of a parameter. What is gone
// before a forward pass could use it was a step on the way.
func (j *judge) isWritten(i int, x *trait) bool {
	return j.written[x.made] && x.named == count && (x.phase == own || x.phase == updating) &&
		!j.gone(i, j.forwardAfter(j.t.Birth(i)))
}

// findLateWritten finds such places where what they replaced was made before the
// history. An optimizer keeps two states of a tensor at most: a third that its step
// makes is the parameter, the last one. Without an optimizer, a place that makes
// tensors of the gradients' sizes after a backward pass, and keeps them, updates.
func (j *judge) findLateWritten(states, candidates map[stack.Frame][]int64) {
	const kept = 3 // two states and the parameter
	full := countSizes(heaviest(states))
	var places []stack.Frame
	for made, sizes := range states {
		if sameSizes(countSizes(sizes), full, 1) {
			places = append(places, made)
		}
	}
	if len(places) == kept {
		sort.Slice(places, func(a, b int) bool { return j.firstOf[places[a]] < j.firstOf[places[b]] })
		j.written[places[kept-1]] = true
	}
	if gradients := countSizes(j.gradientSizes()); len(states) == 0 && len(gradients) > 1 {
		for made, sizes := range candidates {
			if sameSizes(countSizes(sizes), gradients, 1) {
				j.written[made] = true
			}
		}
	}
}

// gradientSizes are the sizes of the gradients that one backward pass leaves, of the
// pass that leaves most.
func (j *judge) gradientSizes() (out []int64) {
	var most int64
	for n := range j.passes {
		p := &j.passes[n]
		var sizes []int64
		var sum int64
		for i := sort.Search(j.allocs, func(i int) bool { return j.t.Birth(i) >= p.begin }); i < j.allocs && j.t.Birth(i) <= p.last; i++ {
			if x := j.trait(j.t.Stack(i)); p.end < j.events && x.phase == backward && j.isGradient(i, x) {
				sizes, sum = append(sizes, j.t.Size(i)), sum+j.t.Size(i)
			}
		}
		if sum > most {
			most, out = sum, sizes
		}
	}
	return out
}
