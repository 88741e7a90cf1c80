package outside

import (
	"slices"
	"testing"
	"time"

	"strandline/host/calls/event"
	"strandline/host/gpu/cudaalloc"
	"strandline/stack"
	"strandline/torch/snapshot"
)

const mib = 1 << 20

// entryFields is the part of an entry that a test looks at.
type entryFields struct {
	action snapshot.Action
	addr   uint64
	size   uint64
	stack  stack.ID
}

func entriesOf(h *history) (out []entryFields) {
	for _, e := range h.entries {
		out = append(out, entryFields{e.action, e.addr, e.size, e.stack})
	}
	return out
}

func TestHistory(t *testing.T) {
	state := []cudaalloc.Segment{{Addr: 4 * mib, Size: 2 * mib, Small: true, Blocks: []cudaalloc.Block{
		{Addr: 4 * mib, Size: 512, Requested: 100, Allocated: true},
		{Addr: 4*mib + 512, Size: 512, Requested: 400, Pending: true},
		{Addr: 4*mib + 1024, Size: 2*mib - 1024},
	}}}
	for _, c := range []struct {
		name   string
		events []event.Request
		want   []entryFields
	}{
		{"what was there is given back", []event.Request{{Op: event.RequestFree, Addr: 4 * mib}}, []entryFields{
			{snapshot.FreeRequested, 4 * mib, 100, 9}, {snapshot.FreeCompleted, 4 * mib, 100, 9},
		}},
		{"what is not known is left out", []event.Request{{Op: event.RequestFree, Addr: 77}, {Op: event.SegmentFree, Addr: 78}, {Op: event.SegmentUnmap, Addr: 79}}, nil},
		{"the driver gives a segment within a request", []event.Request{
			{Op: event.SegmentAlloc, Addr: 8 * mib, Size: 2 * mib, TID: 1},
			{Op: event.RequestAlloc, Addr: 5 * mib, Size: 3, TID: 2},
			{Op: event.RequestAlloc, Addr: 8 * mib, Size: 300, TID: 1},
			{Op: event.SegmentFree, Addr: 8 * mib},
		}, []entryFields{
			{snapshot.SegmentAlloc, 8 * mib, 2 * mib, 9}, {snapshot.Alloc, 5 * mib, 3, 9}, {snapshot.Alloc, 8 * mib, 300, 9}, {snapshot.SegmentFree, 8 * mib, 2 * mib, 9},
		}},
		{"pages that are mapped at once are one", []event.Request{
			{Op: event.SegmentMap, Addr: 20 * mib, Size: 2 * mib, TID: 1}, {Op: event.SegmentMap, Addr: 22 * mib, Size: 2 * mib, TID: 1},
			{Op: event.RequestAlloc, Addr: 20 * mib, Size: 3 * mib, TID: 1},
			{Op: event.SegmentUnmap, Addr: 20 * mib, Size: 2 * mib}, {Op: event.SegmentUnmap, Addr: 22 * mib, Size: 2 * mib},
		}, []entryFields{
			{snapshot.SegmentMap, 20 * mib, 4 * mib, 9}, {snapshot.Alloc, 20 * mib, 3 * mib, 9}, {snapshot.SegmentUnmap, 20 * mib, 4 * mib, 9},
		}},
		{"a release was lost", []event.Request{{Op: event.RequestAlloc, Addr: 4 * mib, Size: 7}}, []entryFields{
			{snapshot.FreeRequested, 4 * mib, 100, stack.None}, {snapshot.FreeCompleted, 4 * mib, 100, stack.None}, {snapshot.Alloc, 4 * mib, 7, 9},
		}},
		{"a request does not return", []event.Request{{Op: event.RequestFailed, Size: 7}}, nil},
	} {
		h := newHistory(1000)
		h.begin(state, 0)
		for _, e := range c.events {
			h.add(&e, 9)
		}
		waited := entryFields{snapshot.FreeCompleted, 4*mib + 512, 400, stack.Empty}
		if got, want := entriesOf(h), append([]entryFields{waited}, c.want...); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", c.name, got, want)
		}
	}
}

func TestPend(t *testing.T) {
	h := newHistory(1000)
	h.begin(nil, 0)
	for _, e := range []event.Request{
		{Op: event.RequestAlloc, Addr: 512, Size: 1}, {Op: event.RequestFree, Addr: 512},
		{Op: event.RequestAlloc, Addr: 1024, Size: 1}, {Op: event.RequestFree, Addr: 1024},
	} {
		h.add(&e, 9)
	}
	h.pend([]cudaalloc.Segment{{Blocks: []cudaalloc.Block{{Addr: 512, Pending: true}, {Addr: 2048, Pending: true}}}})
	var got []snapshot.Action
	for _, e := range h.entries {
		got = append(got, e.action)
	}
	if want := []snapshot.Action{snapshot.Alloc, snapshot.FreeRequested, snapshot.Alloc, snapshot.FreeRequested, snapshot.FreeCompleted}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAgrees(t *testing.T) {
	held := func(addrs ...uint64) []cudaalloc.Segment {
		s := cudaalloc.Segment{}
		for _, a := range addrs {
			s.Blocks = append(s.Blocks, cudaalloc.Block{Addr: a, Allocated: true})
		}
		return []cudaalloc.Segment{s}
	}
	h := newHistory(10)
	for _, e := range []event.Request{{Op: event.RequestAlloc, Addr: 512}, {Op: event.RequestFree, Addr: 1024}} {
		h.add(&e, 9)
	}
	for _, c := range []struct {
		name  string
		state []cudaalloc.Segment
		all   bool
		want  bool
	}{
		{"the same", held(512), true, true},
		{"more, which was there before", held(512, 4096), false, true},
		{"more than all", held(512, 4096), true, false},
		{"what was given is missing", held(4096), false, false},
		{"what was given back is there", held(512, 1024), false, false},
	} {
		if got := h.agrees(c.state, c.all); got != c.want {
			t.Errorf("%s: got %t", c.name, got)
		}
	}
}

// TestInfer has blocks in a segment that was seen, and one of which none is known.
func TestInfer(t *testing.T) {
	h := newHistory(10)
	h.begin(nil, 0)
	for _, e := range []event.Request{
		{Op: event.SegmentAlloc, Addr: 2 * mib, Size: 2 * mib, TID: 1}, {Op: event.RequestAlloc, Addr: 2*mib + 1024, Size: 700, TID: 1},
		{Op: event.RequestAlloc, Addr: 9*mib + 512, Size: 2 * mib, TID: 1},
	} {
		h.add(&e, 9)
	}
	type piece struct{ addr, size uint64 }
	want := []piece{{2 * mib, 1024}, {2*mib + 1024, 1024}, {2*mib + 2048, 2*mib - 2048}, {8 * mib, mib + 512}, {9*mib + 512, 2 * mib}, {11*mib + 512, mib - 512}}
	var got []piece
	for _, s := range h.infer() {
		for _, b := range s.Blocks {
			got = append(got, piece{b.Addr, b.Size})
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestCorrect loses events, and requires the history to be right afterwards.
func TestCorrect(t *testing.T) {
	h := newHistory(1000)
	h.begin([]cudaalloc.Segment{
		{Addr: 2 * mib, Size: 2 * mib, Small: true, Blocks: []cudaalloc.Block{{Addr: 2 * mib, Size: 512, Requested: 100, Allocated: true}}},
		{Addr: 100 * mib, Size: 8 * mib, Expandable: true},
	}, 0)
	for _, e := range []event.Request{
		{Op: event.SegmentAlloc, Addr: 4 * mib, Size: 2 * mib, TID: 1}, {Op: event.RequestAlloc, Addr: 4 * mib, Size: 7, TID: 1},
		{Op: event.SegmentMap, Addr: 108 * mib, Size: 2 * mib, TID: 1}, {Op: event.RequestAlloc, Addr: 108 * mib, Size: 9, TID: 1},
		{Op: event.SegmentUnmap, Addr: 100 * mib, Size: 2 * mib},
	} {
		h.add(&e, 9)
	}
	n := len(h.entries)
	state := []cudaalloc.Segment{
		{Addr: 2 * mib, Size: 2 * mib, Small: true, Blocks: []cudaalloc.Block{{Addr: 2*mib + 512, Size: 512, Requested: 300, Allocated: true}}},
		{Addr: 8 * mib, Size: 20 * mib, Blocks: []cudaalloc.Block{{Addr: 8 * mib, Size: 20 * mib, Requested: 20 * mib, Allocated: true}}},
		{Addr: 104 * mib, Size: 10 * mib, Expandable: true, Blocks: []cudaalloc.Block{{Addr: 108 * mib, Size: 512, Requested: 9, Allocated: true}}},
	}
	h.correct(state, 50)
	want := []entryFields{
		{snapshot.FreeRequested, 2 * mib, 100, stack.None}, {snapshot.FreeCompleted, 2 * mib, 100, stack.None},
		{snapshot.FreeRequested, 4 * mib, 7, stack.None}, {snapshot.FreeCompleted, 4 * mib, 7, stack.None},
		{snapshot.SegmentFree, 4 * mib, 2 * mib, stack.None},
		{snapshot.SegmentUnmap, 102 * mib, 2 * mib, stack.None}, {snapshot.SegmentMap, 110 * mib, 4 * mib, stack.None},
		{snapshot.SegmentAlloc, 8 * mib, 20 * mib, stack.None},
		{snapshot.Alloc, 2*mib + 512, 300, stack.None}, {snapshot.Alloc, 8 * mib, 20 * mib, stack.None},
	}
	if got := entriesOf(h)[n:]; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !h.agrees(state, true) {
		t.Error("it does not agree with what is held")
	}
	n = len(h.entries)
	if h.correct(state, 60); len(h.entries) != n {
		t.Errorf("what is right is corrected: %v", entriesOf(h)[n:])
	}
}

// TestGaps marks the time in which events were lost.
func TestGaps(t *testing.T) {
	s := &session{}
	since := time.Now()
	s.lose(0, since)
	if s.open() != nil {
		t.Fatal("there is a gap without a loss")
	}
	s.lose(3, since)
	s.lose(5, time.Now())
	if g := s.open(); g == nil || g.Lost != 5 || !g.From.Equal(since) || g.To.Before(g.From) {
		t.Fatalf("got %+v", g)
	}
	s.open().Closed = true
	s.lose(5, time.Now())
	if s.open() != nil {
		t.Error("nothing more was lost")
	}
	s.lose(6, time.Now())
	if g := s.open(); g == nil || g.Lost != 1 || len(s.result.Gaps) != 2 {
		t.Errorf("got %+v", s.result.Gaps)
	}
}
