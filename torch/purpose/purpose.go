// Package purpose infers what memory is for: each allocation that is in the
// peak, or at the end of a history, is named as parameters, optimizer state,
// gradients, activations and so on. Only a plain snapshot is needed:
// stacks show who made an allocation, lifetimes against the passes and steps of
// the program show what it was needed for, and sizes show which tensors belong
// together. The rules are about PyTorch and the conventions of the libraries
// around it; docs/peak.md states them.
//
// Steps that a program annotates are read by [timeline.Timeline.AnnotatedEnds], and
// stacks by package stack, as elsewhere. What is between them is found here, and not by
// [timeline.Timeline.Steps]: that one looks for whole and similar repetitions, so that
// growth can be compared between them, while a purpose follows from the forward and
// backward pass that an allocation is in, of passes that are cut off or differ as well,
// and as they were known when memory ran out.
//
// A purpose is an inference, not a record: the snapshot names none. What was
// made before the recording, or without a stack, is [Unknown] at first, and
// inferred from sizes alone where they allow it; see [Inferred].
package purpose

import (
	"sort"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A Purpose is what an allocation is for. Where several fit, the first counts.
type Purpose uint8

// The purposes.
const (
	Parameters    Purpose = iota // parameters and buffers, and what the optimizer updates
	Optimizer                    // its state
	KVCache                      // keys and values of an inference engine
	Gradients                    // what is, was or becomes a .grad
	Communication                // buffers of collectives, parameters gathered for a while
	Input                        // batches that were moved to the device
	Workspaces                   // what a library keeps between calls
	Activations                  // made in a forward pass, kept for the backward pass
	Temporaries                  // gone before their step ends, or it has not ended
	Other                        // none of these: what outlives its step
	Unknown                      // made before the recording, or nothing shows
	count
)

var names = [count]string{
	"parameters", "optimizer", "kv_cache", "gradients", "communication", "input", "workspaces", "activations",
	"temporaries", "other", "unknown",
}

func (p Purpose) String() string { return names[p] }

// words are the printed names of purposes, where those differ.
var words = map[Purpose]string{
	Optimizer: "optimizer state", KVCache: "KV cache", Communication: "communication buffers", Workspaces: "library workspaces", Unknown: "of unknown purpose",
}

// NotFreed names memory of unknown purpose that may go when its step ends, or may stay.
const NotFreed = "not yet freed"

// Words returns the printed name of a purpose.
func (p Purpose) Words() string {
	if w, ok := words[p]; ok {
		return w
	}
	return p.String()
}

// Sums are requested bytes by purpose.
type Sums [count]int64

// Add adds other sums.
func (s *Sums) Add(other *Sums) {
	for p := range s {
		s[p] += other[p]
	}
}

// Map returns the sums that are not zero, by the purposes' names.
func (s *Sums) Map() map[string]int64 {
	out := map[string]int64{}
	for p, n := range s {
		if n != 0 {
			out[Purpose(p).String()] = n
		}
	}
	return out
}

// Sorted are the purposes that hold something, most bytes first.
func (s *Sums) Sorted() (out []Purpose) {
	for p := range count {
		if s[p] > 0 {
			out = append(out, p)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return s[out[i]] > s[out[j]] })
	return out
}

// A Place is a site and what it holds for one purpose, separated by whether that was
// there before the history, and whether it is freed again.
type Place struct {
	Purpose  Purpose
	Site     stack.Site
	Backward bool // made by the autograd engine, whose stacks have no place of the program's
	Before   bool // made before the history
	Kept     bool // never freed in the history, if there is one
	Bytes    int64
	Count    int
}

// A Moment is what memory is for after an event.
type Moment struct {
	Event  int // timeline.Never for the moment before the first event
	Bytes  int64
	By     Sums
	Places []Place // most bytes first
	// Inferred is what sizes show of the unknown; nil if they show nothing.
	Inferred *Inferred
}

// Memory is what a device's memory is for at its peak and at its end.
type Memory struct {
	Peak, End Moment
	// OOM is the moment at which memory last ran out, nil if it never did.
	OOM      *Moment
	Reliefs  []Relief // the places without which the peak would be lowest, first
	Families []Family // copies in the peak, most bytes first
	Casts    *Casts   // autocast's cache in the peak; nil if there is none
	Unused   *Unused  // graphs in the peak that no backward pass consumes; nil if there are none
}

// EachStack calls f with the stacks that m holds, to be put into another table.
func (m *Memory) EachStack(f func(*stack.ID)) {
	for i := range m.Reliefs {
		f(&m.Reliefs[i].Stack)
	}
	if m.Casts != nil {
		f(&m.Casts.Stack)
	}
	for i := range m.Families {
		f(&m.Families[i].Stack)
		for k := range m.Families[i].Copies {
			f(&m.Families[i].Copies[k].Stack)
		}
	}
}

// Of names the memory of a device.
func Of(t *timeline.Timeline) Memory {
	j := newJudge(t, t.Trace.Len())
	atPeak, peak := j.atPeak(), t.PeakRequested.Event
	m := Memory{Peak: atPeak.moment(peak), End: j.moment(t.Trace.Len() - 1), Reliefs: j.reliefs(atPeak), Families: j.families(), Unused: j.unused(), Casts: j.casts(atPeak)}
	if t.LastOOM != timeline.Never {
		failed := atPeak
		if failed.events != t.LastOOM+1 {
			failed = j.until(t.LastOOM)
		}
		moment := failed.moment(t.LastOOM)
		m.OOM = &moment
	}
	return m
}

// atPeak judges the peak. If memory ran out after it, that judge knows nothing
// later: a pass that was cut off looks like one that keeps nothing, once the
// program has released it.
func (j *judge) atPeak() *judge {
	e := &j.t.Trace.Events
	for k := max(j.t.PeakRequested.Event, 0); k < e.Len(); k++ {
		if e.Action[k] == snapshot.OOM {
			return j.until(k)
		}
	}
	return j
}

// until returns a judge that knows nothing after event k.
func (j *judge) until(k int) *judge {
	for _, a := range j.t.Trace.Action[k+1:] {
		if a != snapshot.SnapshotTaken && a != snapshot.Annotate {
			then := newJudge(j.t, k+1)
			then.later = j
			return then
		}
	}
	return j
}

// moment names all that lives after an event.
func (j *judge) moment(event int) Moment {
	type key struct {
		purpose      Purpose
		site         stack.Site
		before, kept bool
	}
	m := Moment{Event: event}
	places := map[key]*Place{}
	for _, i := range j.t.LiveAt(event) {
		p, n := j.name(i, event), j.t.Size(i)
		m.Bytes += n
		m.By[p] += n
		k := key{p, j.t.Snap.Stacks.Site(j.t.Stack(i)), j.t.Before(i), j.events > 0 && j.death(i) == timeline.Never}
		if places[k] == nil {
			places[k] = &Place{Purpose: p, Site: k.site, Backward: k.site == (stack.Site{}) && j.inBackward(i), Before: k.before, Kept: k.kept}
		}
		places[k].Bytes += n
		places[k].Count++
	}
	m.Inferred = j.inferredAt(event)
	for _, p := range places {
		m.Places = append(m.Places, *p)
	}
	sort.Slice(m.Places, func(a, b int) bool { return m.Places[a].before(&m.Places[b]) })
	return m
}

// before orders places: most bytes first, and the same in every run.
func (p *Place) before(q *Place) bool {
	switch {
	case p.Bytes != q.Bytes:
		return p.Bytes > q.Bytes
	case p.Purpose != q.Purpose:
		return p.Purpose < q.Purpose
	case p.Before != q.Before:
		return p.Before
	case p.Kept != q.Kept:
		return p.Kept
	}
	return p.Site.Compare(q.Site) < 0
}

// Each names every allocation of a device's history by one purpose: the one that
// it has at the peak, if it lives then, otherwise at the end, otherwise when it is made.
func Each(t *timeline.Timeline) []Purpose {
	j := newJudge(t, t.Trace.Len())
	atPeak, peak := j.atPeak(), t.PeakRequested.Event
	out := make([]Purpose, len(t.Allocs))
	for i := range out {
		switch birth := t.Birth(i); {
		case birth <= peak && !j.gone(i, peak+1):
			out[i] = atPeak.name(i, peak)
		case !j.gone(i, j.events):
			out[i] = j.at(i, j.events-1)
		default:
			out[i] = j.at(i, birth)
		}
	}
	return out
}
