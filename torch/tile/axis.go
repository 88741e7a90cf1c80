package tile

import (
	"slices"
	"sort"
)

// An Axis gives events their places from left to right.
type Axis struct {
	// Span is the place of the last event.
	Span  int64
	Folds []Fold // of time
	// Start is the time of the first event, in µs since the Unix epoch.
	Start, End int64

	times []int64 // nil where places are event numbers
}

// A Fold is an idle gap that is drawn shorter than it was.
type Fold struct {
	At      int64 `json:"at"` // place where the gap begins
	Removed int64 `json:"us"` // µs taken out
	event   int   // the first after the gap
}

// Idle gaps are folded that are longer than this share of the whole span and
// than this many µs; drawn is the share of the span that is left of them.
const (
	foldShare = 50
	minFold   = 100_000
	foldDrawn = 200
)

// EventAxis is the axis of event numbers.
func (h *History) EventAxis() *Axis { return &Axis{Span: max(int64(h.Events())-1, 0)} }

// TimeAxis is the axis of time in µs, nil if the history has none, or made-up ones. Events at
// which the clock runs back are placed at the latest before them.
func (h *History) TimeAxis() *Axis {
	times := h.Trace.Time
	if len(times) == 0 || h.Snap.Drawn {
		return nil
	}
	if !slices.IsSorted(times) {
		times = slices.Clone(times)
		for k := 1; k < len(times); k++ {
			times[k] = max(times[k], times[k-1])
		}
	}
	a := &Axis{times: times, Start: times[0], End: times[len(times)-1]}
	span := a.End - a.Start
	if a.End == 0 || span < 0 {
		return nil
	}
	var removed int64
	for k := 1; k < len(times); k++ {
		if gap := times[k] - times[k-1]; gap > minFold && gap > span/foldShare {
			f := Fold{At: times[k-1] - a.Start - removed, Removed: gap - span/foldDrawn, event: k}
			removed += f.Removed
			a.Folds = append(a.Folds, f)
		}
	}
	a.Span = span - removed
	return a
}

// Place returns the place of event k.
func (a *Axis) Place(k int) int64 {
	if a.times == nil {
		return int64(k)
	}
	place := a.times[k] - a.Start
	for i := range a.Folds {
		if a.Folds[i].event > k {
			break
		}
		place -= a.Folds[i].Removed
	}
	return place
}

// Event is the first event at a place or behind it, the number of events if
// there is none.
func (a *Axis) event(place int64) int {
	if a.times == nil {
		return int(min(max(place, 0), a.Span+1))
	}
	return sort.Search(len(a.times), func(k int) bool { return a.Place(k) >= place })
}
