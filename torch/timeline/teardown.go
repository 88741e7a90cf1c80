package timeline

import (
	"slices"

	"strandline/torch/snapshot"
)

// BeforeTeardown is the snapshot that would have been taken before a program that has run to
// its end let go of what it held: before the first release, after the last allocation, of
// something that is older than the last step. It is s itself if nothing was released.
func BeforeTeardown(s *snapshot.Snapshot) *snapshot.Snapshot {
	s = s.Sane()
	out := *s
	out.Segments, out.Traces = nil, slices.Clone(s.Traces)
	released := false
	for _, d := range s.Devices() {
		t := New(s, d)
		to := t.teardown()
		segments, faults := t.StateBefore(to, nil)
		out.Segments = append(out.Segments, segments...)
		if to == t.Trace.Len() {
			continue
		}
		released = true
		out.Faults = append(slices.Clip(out.Faults), faults...)
		i := slices.IndexFunc(out.Traces, func(x snapshot.Trace) bool { return x.Device == d.Index && x.Len() > 0 })
		out.Traces[i] = out.Traces[i].Slice(0, to)
	}
	if !released || s.Partial != nil {
		return s
	}
	return &out
}

// teardown is the first event of a device's teardown, the number of all events if there is none.
func (t *Timeline) teardown() int {
	to := t.Trace.Len()
	last := Never // a ring that overflowed since may have nothing but releases
	if len(t.Allocs) > len(t.before) {
		last = t.Birth(len(t.Allocs) - 1)
	}
	old := last
	if s := t.Steps(); s.Known() && len(s.Ends) > 1 {
		old = s.Ends[len(s.Ends)-2]
	}
	for i := range t.Allocs {
		if freed := t.Freed(i); freed > last && t.Birth(i) <= old {
			to = min(to, freed)
		}
	}
	return to
}
