package purpose

import (
	"strandline/stack"
	"strandline/torch/timeline"
)

// Casts are the copies of weights in a lower type that autocast caches until its
// block ends, as far as they are in the peak.
type Casts struct {
	Site    stack.Site // of the heaviest place
	Stack   stack.ID
	Bytes   int64
	Kept    int64 // the part that a backward pass needs, which no setting frees earlier
	Count   int
	Without int64 // the peak if they had been freed at once
}

// casts sums what of autocast's cache is in the peak, nil if there is none.
func (j *judge) casts(atPeak *judge) *Casts {
	peak := j.t.PeakRequested.Event
	if peak == timeline.Never {
		return nil
	}
	c := &Casts{}
	places := map[stack.ID]int64{}
	for _, i := range j.t.LiveAt(peak) {
		if !j.isCast(i) {
			continue
		}
		n, id := j.t.Size(i), j.t.Stack(i)
		c.Bytes += n
		c.Count++
		if atPeak.name(i, peak) == Activations {
			c.Kept += n
		}
		places[id] += n
		if m := places[c.Stack]; places[id] > m || places[id] == m && id < c.Stack {
			c.Stack = id
		}
	}
	if c.Count == 0 {
		return nil
	}
	c.Site = j.t.Snap.Stacks.Site(c.Stack)
	gone := changes{}
	for i := range j.allocs {
		if j.isCast(i) {
			gone.add(j, i, j.t.Birth(i))
		}
	}
	c.Without = j.peakWithout(gone)
	return c
}

// isCast reports whether allocation i is of autocast's cache. Leaving the block
// clears it. C++ frames name the cast; that of a weight is half as large as one.
func (j *judge) isCast(i int) bool {
	if j.t.Before(i) {
		return false
	}
	if k := j.t.Freed(i); k != timeline.Never && k < j.events && j.trait(j.t.Trace.Stack[k]).uncasts {
		return true
	}
	return j.trait(j.t.Stack(i)).casts && j.weights()[2*j.t.Size(i)]
}

// weights are the sizes of parameters, as they or their gradients show.
func (j *judge) weights() map[int64]bool {
	if j.weightSizes == nil {
		j.weightSizes = map[int64]bool{}
		for i := range j.allocs {
			if j.isParameter(i, j.trait(j.t.Stack(i))) {
				j.weightSizes[j.t.Size(i)] = true
			}
		}
		for _, n := range j.gradientSizes() {
			j.weightSizes[n] = true
		}
	}
	return j.weightSizes
}

// changes are bytes that would not be in use, as differences from an event on.
type changes map[int]int64

// add takes allocation i out of use from an event on.
func (c changes) add(j *judge, i, from int) {
	c[from] += j.t.Size(i)
	if death := j.t.Death(i); death != timeline.Never {
		c[death] -= j.t.Size(i)
	}
}

// peakWithout is the highest sum of requested bytes without some of them.
func (j *judge) peakWithout(c changes) int64 {
	most, gone := j.t.StartRequested-c[timeline.Never], c[timeline.Never]
	j.t.Walk(func(k int, requested, _ int64) bool {
		gone += c[k]
		most = max(most, requested-gone)
		return true
	})
	return most
}
