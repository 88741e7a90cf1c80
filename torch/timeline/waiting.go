package timeline

import "strandline/torch/snapshot"

// Waiting is memory that the program freed, and that is not available until
// another stream has passed the point of the free: record_stream announced that the
// stream uses it. All bytes are requested ones.
type Waiting struct {
	Bytes int64 // at the end of the history
	Count int
	Since int // the event that freed the oldest of them, Never if unknown

	Peak    Point // the first moment at which most waited
	Without int64 // the peak of requested bytes, had nothing waited
	// Frees that waited and were completed, and how long: µs, 0 if the file has no
	// times.
	Frees          int
	Total, Longest int64
	Sites          []SiteSum // what waited at Peak, by place, most bytes first
}

// WaitingOf finds what waited for other streams. Everything else is completed by
// the event that follows the request.
func WaitingOf(t *Timeline, d snapshot.Device) Waiting {
	w := Waiting{Since: Never, Peak: Point{Event: Never}, Without: t.PeakRequested.Bytes}
	var changes []change
	for i := range t.Allocs {
		if !t.waited(i) {
			continue
		}
		if changes == nil {
			changes = make([]change, t.Trace.Len())
		}
		changes[t.Freed(i)] = begins
		if death := t.Death(i); death != Never {
			changes[death] = ends
		}
		w.measure(t, i)
	}
	unasked := t.unasked(d)
	var late int64
	for _, i := range unasked {
		w.measure(t, i)
		late += t.Size(i)
	}
	if w.Count+w.Frees == 0 {
		return w
	}
	w.follow(t, changes, late)
	w.Sites = t.sum(t.waitingAt(w.Peak.Event, unasked))
	return w
}

// A change of what waits, by an event.
type change uint8

const (
	begins change = iota + 1
	ends
)

// waited reports whether the free of allocation i was not completed at once.
func (t *Timeline) waited(i int) bool {
	a := &t.Allocs[i]
	return a.freed != Never && (a.death == Never || a.death > a.freed+1)
}

// unasked are allocations whose blocks wait though no event frees them. When they
// were freed is unknown: they count for the end alone.
func (t *Timeline) unasked(d snapshot.Device) (out []int) {
	pending := map[uint64]bool{}
	for _, i := range d.Segments {
		for _, b := range t.Snap.Segments[i].Blocks {
			if b.State == snapshot.Pending {
				pending[b.Addr] = true
			}
		}
	}
	for i := 0; len(pending) > 0 && i < len(t.Allocs); i++ {
		if a := &t.Allocs[i]; a.freed == Never && a.death == Never && pending[t.Addr(i)] {
			out = append(out, i)
		}
	}
	return out
}

// measure counts allocation i, which waits at the end or waited before.
func (w *Waiting) measure(t *Timeline, i int) {
	freed, death := t.Freed(i), t.Death(i)
	if death == Never {
		w.Bytes += t.Size(i)
		w.Count++
		if freed != Never && (w.Since == Never || freed < w.Since) {
			w.Since = freed
		}
		return
	}
	w.Frees++
	if times := t.Trace.Time; times != nil {
		n := times[death] - times[freed]
		w.Total += n
		w.Longest = max(w.Longest, n)
	}
}

// follow holds what waited against what was requested, event by event. Of late it
// is known that it waits at the end.
func (w *Waiting) follow(t *Timeline, changes []change, late int64) {
	var bytes int64
	last := t.Trace.Len() - 1
	w.Without = t.StartRequested
	if last < 0 { // the state alone
		w.Without -= late
		w.Peak.Bytes = late
	}
	t.Walk(func(k int, requested, _ int64) bool {
		if changes != nil {
			switch changes[k] {
			case begins:
				bytes += t.Trace.Size[k]
			case ends:
				bytes -= t.Trace.Size[k]
			}
		}
		if k == last {
			bytes += late
		}
		w.Without = max(w.Without, requested-bytes)
		if bytes > w.Peak.Bytes {
			w.Peak = Point{k, bytes}
		}
		return true
	})
}

// waitingAt are the allocations that wait after event k.
func (t *Timeline) waitingAt(k int, unasked []int) (out []int) {
	if k == t.Trace.Len()-1 {
		out = append(out, unasked...)
	}
	for i := range t.Allocs {
		if death := t.Death(i); t.waited(i) && t.Freed(i) <= k && (death == Never || k < death) {
			out = append(out, i)
		}
	}
	return out
}
