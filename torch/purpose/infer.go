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
	unseen    = 0.8 // how much more certain a step of an optimizer makes that states are states
)

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
	j.infer(Optimizer, wide[:min(len(wide), maxStates)], sure)
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
