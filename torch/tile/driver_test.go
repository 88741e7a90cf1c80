package tile

import (
	"path/filepath"
	"slices"
	"testing"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// TestDriver holds the history of segments against the sum of reserved memory after each
// event, and against who took it, which is found by another way.
func TestDriver(t *testing.T) {
	for _, name := range []string{"image-leak/step-4.pickle", "out-of-memory/oom.pickle", "varied-lengths/default.pickle.gz", "varied-lengths/expandable.pickle.gz"} {
		s, err := snapshot.Open(filepath.Join("../../examples", name), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		line := timelineOf(t, s)
		h := DriverHistory(line)
		for k := range h.Events() {
			if h.Live(k) != h.Reserved(k) {
				t.Fatalf("%s: %d bytes of segments after event %d, of %d reserved", name, h.Live(k), k, h.Reserved(k))
			}
		}
		bands, err := NewBands(h, ByLine)
		if err != nil {
			t.Fatal(err)
		}
		for k := -1; k < h.Events(); k += 1 + h.Events()/50 {
			want := map[stack.Site]int64{}
			rest := line.ReservedAt(k)
			taken := line.TakenBy(k)
			for r := range taken.All() {
				want[s.Stacks.Site(line.Trace.Stack[r.Value])] += int64(r.Len())
				rest -= int64(r.Len())
			}
			want[stack.Site{}] += rest
			for _, sum := range bands.Live(k) {
				want[bands.Groups[sum.Group].Site] -= sum.Bytes
			}
			for site, rest := range want {
				if rest != 0 {
					t.Errorf("%s, event %d: %d bytes of %v are missing", name, k, rest, site)
				}
			}
		}
		if peak := h.Peak(); peak != (timeline.Point{Event: peak.Event, Bytes: line.PeakReserved.Bytes}) {
			t.Errorf("%s: a peak of %d bytes, want %d", name, peak.Bytes, line.PeakReserved.Bytes)
		}
	}
}

// TestDriverInPieces is of pages that are taken by several calls and given back by others,
// some of them taken before the recording.
func TestDriverInPieces(t *testing.T) {
	s := snapshot.New()
	var e snapshot.Events
	for _, x := range []struct {
		action snapshot.Action
		addr   uint64
		size   int64
	}{
		{snapshot.SegmentMap, 100, 20},   // 0
		{snapshot.SegmentMap, 120, 20},   // 1
		{snapshot.SegmentUnmap, 110, 20}, // 2: the half of each
		{snapshot.Alloc, 100, 5},         // 3
		{snapshot.SegmentMap, 110, 5},    // 4
		{snapshot.SegmentUnmap, 90, 25},  // 5: older, event 0's, event 4's
	} {
		e.Action, e.Addr, e.Size = append(e.Action, x.action), append(e.Addr, x.addr), append(e.Size, x.size)
		e.Stream, e.Stack = append(e.Stream, 0), append(e.Stack, stack.None)
	}
	s.Traces = []snapshot.Trace{{Events: e}}
	s.Segments = []snapshot.Segment{{Addr: 130, TotalSize: 10}, {Addr: 500, TotalSize: 7}}
	line := timelineOf(t, s)
	h := DriverHistory(line)
	type part struct {
		birth, death int
		bytes        int64
	}
	var got []part
	for i := range h.Allocs {
		got = append(got, part{h.Birth(i), h.Death(i), h.Size(i)})
	}
	if want := []part{{-1, 5, 10}, {-1, -1, 7}, {0, 2, 10}, {0, 5, 10}, {1, 2, 10}, {1, -1, 10}, {4, 5, 5}}; !slices.Equal(got, want) {
		t.Errorf("parts %v, want %v", got, want)
	}
	for k := -1; k < h.Events(); k++ {
		if h.Live(k) != line.ReservedAt(k) {
			t.Errorf("event %d: %d bytes, want %d", k, h.Live(k), line.ReservedAt(k))
		}
	}
	bands, err := NewBands(h, BySize)
	if err != nil {
		t.Fatal(err)
	}
	var made int64
	for _, sum := range bands.Made(0, 4) {
		made += sum.Bytes
	}
	if made != 45 {
		t.Errorf("%d bytes were taken, want 45", made)
	}
}
