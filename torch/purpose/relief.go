package purpose

import (
	"sort"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A Relief is what the peak would lose without what one place makes and releases
// inside a step: activations and temporaries.
type Relief struct {
	Site  stack.Site
	Stack stack.ID // the heaviest at the peak
	// At the peak: all of the place's, and the part of it that is kept for a
	// backward pass.
	Bytes, Kept int64
	Count       int
	// Cast is the part of it that is autocast's cache of weights.
	Cast int64
	// Echo is what the backward pass holds at the peak in allocations of the same
	// sizes, or of twice or half of them: gradients of these, most likely. They have
	// no place, and Without still counts them.
	Echo int64
	// Without is the peak of all else, and Event the first moment of it: what limits
	// then.
	Without int64
	Event   int
}

// The peak without a place is computed for places that hold at least this share
// of it, and for so many of them.
const (
	reliefShare  = 0.05
	maxReliefs   = 8
	noCandidate  = 0
	firstOfPlace = 1
)

// reliefs are the places of the program without which the peak would be lower,
// the lowest first. What the autograd engine makes has no place. A step that is
// not over counts for nothing: what it holds may stay. What is kept for a backward
// pass another judge names, that of the peak.
func (j *judge) reliefs(atPeak *judge) []Relief {
	peak := j.t.PeakRequested
	if peak.Event == timeline.Never {
		return nil
	}
	out := j.transient(peak, atPeak)
	if len(out) == 0 {
		return nil
	}
	j.without(out)
	sort.SliceStable(out, func(a, b int) bool { return out[a].Without < out[b].Without })
	return out
}

// transient sums what the places hold at the peak and release before their step
// ends.
func (j *judge) transient(peak timeline.Point, atPeak *judge) (out []Relief) {
	sums := map[stack.Site]*Relief{}
	most := map[stack.Site]int64{}
	sizes := map[sized]bool{}
	for _, i := range j.t.LiveAt(peak.Event) {
		id := j.t.Stack(i)
		site := j.t.Snap.Stacks.Site(id)
		if site == (stack.Site{}) || !j.fleeting(i) {
			continue
		}
		r := sums[site]
		if r == nil {
			r = &Relief{Site: site}
			sums[site] = r
		}
		n := j.t.Size(i)
		r.Bytes += n
		r.Count++
		if atPeak.name(i, peak.Event) == Activations {
			r.Kept += n
		}
		if j.isCast(i) {
			r.Cast += n
		}
		if n > most[site] {
			most[site], r.Stack = n, id
		}
		sizes[sized{site, n}] = true
	}
	for _, r := range sums {
		if float64(r.Bytes) >= reliefShare*float64(peak.Bytes) {
			out = append(out, *r)
		}
	}
	sort.Slice(out, func(a, b int) bool {
		if out[a].Bytes != out[b].Bytes {
			return out[a].Bytes > out[b].Bytes
		}
		return out[a].Site.Compare(out[b].Site) < 0
	})
	out = out[:min(len(out), maxReliefs)]
	j.echo(out, sizes, peak.Event)
	return out
}

// A sized is a place and the size of something that it makes.
type sized struct {
	site  stack.Site
	bytes int64
}

// echo adds what the backward pass holds in the sizes of each place.
func (j *judge) echo(places []Relief, sizes map[sized]bool, event int) {
	for _, i := range j.t.LiveAt(event) {
		if j.site(i) != (stack.Site{}) || !j.inBackward(i) || !j.fleeting(i) {
			continue
		}
		for c := range places {
			r, n := &places[c], j.t.Size(i)
			if sizes[sized{r.Site, n}] || sizes[sized{r.Site, 2 * n}] || n%2 == 0 && sizes[sized{r.Site, n / 2}] {
				r.Echo += n
			}
		}
	}
}

// fleeting recognizes what is made and freed inside a step that is over, and that a
// program need not hold.
func (j *judge) fleeting(i int) bool {
	if j.t.Before(i) || j.always(i) != count {
		return false
	}
	step := j.stepAfter(j.t.Birth(i))
	return step <= j.events && j.gone(i, step)
}

// without finds the peak of all but a place, for each of the places.
func (j *judge) without(places []Relief) {
	t := j.t
	of := map[stack.Site]uint8{}
	for c := range places {
		of[places[c].Site] = uint8(firstOfPlace + c)
		places[c].Event = timeline.Never
		places[c].Without = t.StartRequested
	}
	owner := j.owners(of)
	var held [firstOfPlace + maxReliefs]int64
	e := &t.Trace.Events
	t.Walk(func(k int, requested, _ int64) bool {
		if c := owner[k]; c != noCandidate {
			if e.Action[k] == snapshot.Alloc {
				held[c] += e.Size[k]
			} else {
				held[c] -= e.Size[k]
			}
		}
		for c := range places {
			if n := requested - held[firstOfPlace+c]; n > places[c].Without {
				places[c].Without, places[c].Event = n, k
			}
		}
		return true
	})
}

// owners are, by event, the places whose passing allocations it makes or ends.
func (j *judge) owners(of map[stack.Site]uint8) []uint8 {
	t := j.t
	byStack := make([]uint8, t.Snap.Stacks.Len())
	for id := range byStack {
		byStack[id] = of[t.Snap.Stacks.Site(stack.ID(id))]
	}
	owner := make([]uint8, t.Trace.Len())
	for i := range t.Allocs {
		if t.Before(i) {
			continue
		}
		birth := t.Birth(i)
		c := byStack[t.Trace.Stack[birth]]
		if c != noCandidate && j.fleeting(i) && t.Trace.Action[t.Death(i)] != snapshot.Alloc {
			owner[birth], owner[t.Death(i)] = c, c
		}
	}
	return owner
}
