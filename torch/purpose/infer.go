package purpose

import (
	"math"
	"sort"

	"strandline/stack"
	"strandline/torch/timeline"
)

// Inferred is what sizes show about memory from before the recording: its
// purpose is still Unknown.
type Inferred struct {
	By         Sums
	Confidence float64 // 0 to 1, the mean of the groups weighted by bytes
}

// inferred is a group of allocations made before the history.
type inferred struct {
	purpose    Purpose
	allocs     []int
	confidence float64
}

const (
	fullSet   = 0.9 // of the gradients' bytes have a partner of their size
	maxStates = 2   // an optimizer keeps at most so many of a tensor
	resident  = 0.8 // how certain what a forward-only program never frees is its model
	minWidth  = 16  // elements of a row, so that few sizes fit by chance
	unseen    = 0.8 // how much more certain a step of an optimizer makes that states are states
)

// Weights are looked for with so many sizes of requests, and among so many sizes of tensors.
const maxRequests, maxSizes = 64, 1000

// inferBefore finds what was there before the history by its sizes: a backward pass
// leaves a gradient for each parameter, and an optimizer keeps states of the same
// sizes. So sets of tensors that match the gradients, size by size, are the
// parameters and then the states; with gradients of half the size, those of twice it
// are the copies that the optimizer updates, and their states. What matches a graph
// is one (see findGraphs).
func (j *judge) inferBefore() {
	of := j.gradientSizes()
	if len(of) == 0 && len(j.updates) > 0 {
		for size, n := range j.updated {
			for range n {
				of = append(of, size)
			}
		}
	}
	taken := map[int]bool{}
	for _, g := range j.graphs {
		if g.before {
			j.sets = append(j.sets, inferred{Activations, g.allocs, fullSet})
			for _, i := range g.allocs {
				taken[i] = true
			}
		}
	}
	if len(of) == 0 {
		j.inferModel(taken)
		return
	}
	bySize := map[int64][]int{}
	known := false
	for i := range j.allocs {
		if !j.t.Before(i) {
			continue
		}
		if x := j.trait(j.t.Stack(i)); j.isParameter(i, x) {
			known = true
		} else if j.t.Stack(i) <= stack.Empty && !taken[i] && j.always(i) == count {
			bySize[j.t.Size(i)] = append(bySize[j.t.Size(i)], i)
		}
	}
	for _, list := range bySize { // parameters stay; states may be replaced
		sort.SliceStable(list, func(a, b int) bool { return j.lasts(list[a]) > j.lasts(list[b]) })
	}
	want := countSizes(of)
	same := fullSets(bySize, want, 1)
	wide := fullSets(bySize, want, 2)
	sure := 1 - math.Pow(0.5, float64(len(want))) // few sizes match by chance
	if !known && len(same) > 0 {
		j.infer(Parameters, same[:1], sure)
		same = same[1:]
	}
	if len(same) == 0 && len(wide) > maxStates {
		j.infer(Parameters, wide[:1], sure)
		wide = wide[1:]
	}
	if len(j.updates) == 0 {
		sure *= unseen
	}
	if len(same) > 0 {
		wide = same
	}
	j.inferStates(wide, j.statesMade(want), sure)
}

// inferModel finds the model of a program that only runs it forward: what was there
// before the history and is never freed, if most of it are weights by their sizes.
func (j *judge) inferModel(taken map[int]bool) {
	if len(j.forwards) == 0 || len(j.passes) > 0 || len(j.updates) > 0 {
		return
	}
	var model []int
	bytes := map[int64]int64{}
	requests := map[int64]bool{}
	for i := range j.allocs {
		switch size := j.t.Size(i); {
		case !j.t.Before(i):
			if len(requests) < maxRequests {
				requests[size] = true
			}
		case j.t.Stack(i) <= stack.Empty && !taken[i] && j.death(i) == timeline.Never && j.always(i) == count:
			model = append(model, i)
			bytes[size] += size
		}
	}
	var all, explained int64
	for _, n := range bytes {
		all += n
	}
	for size, n := range bytes {
		if n >= all/maxSizes && multiplies(size, requests) {
			explained += n
		}
	}
	if share := float64(explained) / float64(max(all, 1)); share > 0.5 {
		j.sets = append(j.sets, inferred{Parameters, model, resident * share})
	}
}

// multiplies reports whether a tensor of so many bytes can be the matrix between two
// requests: rows of one width go in, and as many of the other come out.
func multiplies(size int64, requests map[int64]bool) bool {
	for _, element := range [...]int64{4, 2, 1} {
		for in := range requests {
			for out := range requests {
				if size%element == 0 && in%element == 0 && out%element == 0 && matrix(size/element, in/element, out/element) {
					return true
				}
			}
		}
	}
	return false
}

// matrix reports whether n elements are as many as a matrix has that makes out elements
// of in.
func matrix(n, in, out int64) bool {
	rows := int64(math.Round(math.Sqrt(float64(in) * float64(out) / float64(max(n, 1)))))
	if rows < 1 || in%rows != 0 || out%rows != 0 {
		return false
	}
	in, out = in/rows, out/rows
	return in >= minWidth && out >= minWidth && n%in == 0 && n/in == out
}

// inferStates notes sets of an optimizer's states, and of gradients that the program
// cleared in the history. If the optimizer made its states there, none is older.
func (j *judge) inferStates(sets []sizeSet, made bool, sure float64) {
	states := 0
	for i, s := range sets {
		switch {
		case j.cleared(s.allocs):
			j.infer(Gradients, sets[i:i+1], sure)
		case !made && states < maxStates:
			j.infer(Optimizer, sets[i:i+1], sure)
			states++
		}
	}
}

// cleared reports whether nearly all of some tensors, by bytes, are freed in the history
// outside of the optimizer's steps, which keep states or replace them.
func (j *judge) cleared(allocs []int) bool {
	var all, freed int64
	for _, i := range allocs {
		all += j.t.Size(i)
		if k := j.t.Freed(i); k != timeline.Never && k < j.events && j.trait(j.t.Trace.Stack[k]).phase != updating {
			freed += j.t.Size(i)
		}
	}
	return float64(freed) >= fullSet*float64(max(all, 1))
}

// statesMade reports whether the optimizer made states of nearly all sizes wanted in the
// history.
func (j *judge) statesMade(want map[int64]int) bool {
	made := map[int64]int{}
	for i := range j.allocs {
		if x := j.trait(j.t.Stack(i)); !j.t.Before(i) && x.phase == updating && j.isState(i, x) {
			made[j.t.Size(i)]++
		}
	}
	var all, found int64
	for size, n := range want {
		all += size * int64(n)
		found += size * int64(min(n, max(made[size], made[2*size])))
	}
	return float64(found) >= fullSet*float64(max(all, 1))
}

// lasts is the event at which allocation i ends, after all others if it does not.
func (j *judge) lasts(i int) int {
	if death := j.death(i); death != timeline.Never {
		return death
	}
	return j.events
}

// infer notes sets of one purpose.
func (j *judge) infer(p Purpose, sets []sizeSet, sure float64) {
	for _, s := range sets {
		j.sets = append(j.sets, inferred{p, s.allocs, s.covered * sure})
	}
}

// A sizeSet is one tensor for each that is wanted.
type sizeSet struct {
	allocs  []int
	covered float64 // share of the wanted bytes
}

// fullSets takes sets of tensors that are so many times as large as those wanted out
// of bySize, as long as each finds nearly all.
func fullSets(bySize map[int64][]int, want map[int64]int, times int64) (out []sizeSet) {
	for nth := 0; nth <= maxStates; nth++ {
		var s sizeSet
		var all, found int64
		for size, n := range want {
			list := bySize[size*times]
			from, to := min(nth*n, len(list)), min((nth+1)*n, len(list))
			s.allocs = append(s.allocs, list[from:to]...)
			all += size * int64(n)
			found += size * int64(to-from)
		}
		if s.covered = float64(found) / float64(max(all, 1)); s.covered < fullSet {
			break
		}
		out = append(out, s)
	}
	return out
}

// inferredAt sums what is inferred of all that lives after an event, nil if nothing
// is.
func (j *judge) inferredAt(event int) *Inferred {
	in := &Inferred{}
	var all int64
	for _, s := range j.sets {
		var live int64
		for _, i := range s.allocs {
			if !j.gone(i, event+1) {
				live += j.t.Size(i)
			}
		}
		in.By[s.purpose] += live
		in.Confidence += s.confidence * float64(live)
		all += live
	}
	if all == 0 {
		return nil
	}
	in.Confidence /= float64(all)
	return in
}
