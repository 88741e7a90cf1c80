package timeline

import (
	"cmp"
	"fmt"
	"math"

	"strandline/torch/snapshot"
	"strandline/units"
)

// Cut is the snapshot that would have been taken of one device before event to,
// by a recorder that was started before event from: the events from, …, to-1,
// and the segments and blocks as they were behind them. Other devices are
// left out, and so are annotations from outside the time
// of the events.
//
// Addresses, requested sizes and segments are exact, and so is the size of a
// block that lives to the end of the history. The size of one that is freed
// before is a lower bound: the requested bytes, rounded up to 512, and what is
// too little behind them to be free memory. The pool of a segment that is gone
// by the end is taken to be the default one, unless the events name it, as they
// do from PyTorch 2.12 on.
//
// Faults of the result state where the history contradicts the final state. The
// result shares the columns of s.
func Cut(s *snapshot.Snapshot, device, from, to int) (*snapshot.Snapshot, error) {
	d, err := deviceOf(s, device)
	if err != nil {
		return nil, err
	}
	if n := d.Trace.Len(); from < 0 || from > to || to > n {
		return nil, fmt.Errorf("events %d:%d are not part of the history of %s, which has %s events",
			from, to, snapshot.DeviceName(device), units.Count(int64(n)))
	}
	return New(s, d).Part(from, to, nil), nil
}

// Part is [Cut] with the sizes of the allocations' blocks, if they are known.
func (t *Timeline) Part(from, to int, sizes []int64) *snapshot.Snapshot {
	segments, faults := t.StateBefore(to, sizes)
	out := *t.Snap
	out.Segments, out.Faults = segments, faults
	if len(out.Traces) > 0 {
		out.Traces = []snapshot.Trace{t.device.Trace.Slice(from, to)}
	}
	out.Annotations = annotationsOf(t.Snap, t.device, from, to)
	return &out
}

func deviceOf(s *snapshot.Snapshot, device int) (snapshot.Device, error) {
	for _, d := range s.Devices() {
		if d.Index == device {
			return d, nil
		}
	}
	return snapshot.Device{}, fmt.Errorf("%s has nothing about %s", cmp.Or(s.Name, "the snapshot"), snapshot.DeviceName(device))
}

// annotationsOf are the annotations of a device from between event from-1 and
// event to.
func annotationsOf(s *snapshot.Snapshot, d snapshot.Device, from, to int) (out []snapshot.Annotation) {
	first, last := int64(math.MinInt64), int64(math.MaxInt64)
	if times := d.Trace.Time; times != nil {
		if from > 0 {
			first = times[from-1] + 1
		}
		if to < len(times) {
			last = times[to] - 1
		}
		if from < to { // events at the same time
			first, last = min(first, times[from]), max(last, times[to-1])
		}
	}
	for _, a := range s.Annotations {
		if a.Device == d.Index && a.Time >= first && a.Time <= last {
			out = append(out, a)
		}
	}
	return out
}
