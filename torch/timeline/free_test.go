package timeline

import (
	"slices"
	"testing"

	"strandline/torch/snapshot"
)

// segment makes a segment of blocks given as sizes in MiB, negative ones free.
func segment(s *snapshot.Snapshot, addr uint64, kind string, expandable bool, pool snapshot.Pool, blocks ...int64) snapshot.Segment {
	seg := snapshot.Segment{Addr: addr, Type: s.StringID(kind), Expandable: expandable, Pool: s.PoolID(pool)}
	at := addr
	for _, n := range blocks {
		b := snapshot.Block{Addr: at, Size: max(n, -n) << 20}
		if n > 0 {
			b.State, b.Requested = snapshot.Allocated, b.Size
		}
		at += uint64(b.Size)
		seg.TotalSize += b.Size
		seg.Blocks = append(seg.Blocks, b)
	}
	return seg
}

func TestSpace(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name                 string
		kind                 string
		expandable           bool
		pool                 snapshot.Pool
		blocks               []int64
		releasable, stranded int64
		pins, sparse         int
	}{
		{"a free segment", "large", false, snapshot.Pool{}, []int64{-20}, 20, 0, 0, 0},
		{"a full segment", "large", false, snapshot.Pool{}, []int64{20}, 0, 0, 0, 0},
		{"one block pins the rest", "large", false, snapshot.Pool{}, []int64{-8, 1, -11}, 0, 19, 1, 1},
		{"a free segment of a graph's pool", "large", false, snapshot.Pool{Graph: 1}, []int64{-20}, 0, 20, 0, 0},
		{"whole pages of an expandable segment", "large", true, snapshot.Pool{}, []int64{10, -50, 20}, 40, 10, 2, 2},
		{"a free piece smaller than a page", "large", true, snapshot.Pool{}, []int64{15, -10, 15}, 0, 10, 2, 0},
		{"small pages", "small", true, snapshot.Pool{}, []int64{1, -5}, 4, 1, 1, 1},
	} {
		s := snapshot.New()
		s.Segments = []snapshot.Segment{segment(s, base, c.kind, c.expandable, c.pool, c.blocks...)}
		d := s.Devices()[0]
		got := SpaceOf(New(s, d), d)
		pins, sparse := 0, 0
		for _, p := range got.Pins.Sites {
			pins += p.Count
		}
		for _, p := range got.Sparse.Sites {
			sparse += p.Count
		}
		if got.Releasable != c.releasable*mib || got.Stranded != c.stranded*mib || pins != c.pins || got.Pins.Blocks != c.pins || sparse != c.sparse {
			t.Errorf("%s: releasable %d, stranded %d MiB, %d pins, %d of them in sparse segments; want %d, %d, %d, %d",
				c.name, got.Releasable/mib, got.Stranded/mib, pins, sparse, c.releasable, c.stranded, c.pins, c.sparse)
		}
		if pins > 0 && (got.Pins.Segments != 1 || got.Pins.Stranded != got.Stranded) {
			t.Errorf("%s: %+v", c.name, got.Pins)
		}
	}
}

// TestTaken takes a second segment while half of the first is free, once because
// it is needed at the peak and once for nothing.
func TestTaken(t *testing.T) {
	const mib = 1 << 20
	type event struct {
		a    snapshot.Action
		addr uint64
		mib  int64
	}
	again := []event{
		{snapshot.SegmentAlloc, 2 * base, 16}, {snapshot.Alloc, 2 * base, 12},
		{snapshot.FreeRequested, 2 * base, 12}, {snapshot.FreeCompleted, 2 * base, 12}, {snapshot.SegmentFree, 2 * base, 16},
	}
	for _, c := range []struct {
		name            string
		events          []event
		state           [2][]int64 // the blocks of both segments at the end, in MiB
		taken, overhead int64
	}{
		{"free memory would have been enough, in one piece", []event{
			{snapshot.SegmentAlloc, base, 20}, {snapshot.Alloc, base, 15}, {snapshot.FreeRequested, base, 15}, {snapshot.FreeCompleted, base, 15},
			{snapshot.Alloc, base + 8*mib, 1}, {snapshot.SegmentAlloc, 2 * base, 16}, {snapshot.Alloc, 2 * base, 16},
		}, [2][]int64{{-8, 1, -11}, {16}}, 16, 16},
		{"the segment was needed", []event{
			{snapshot.SegmentAlloc, base, 20}, {snapshot.Alloc, base, 15}, {snapshot.SegmentAlloc, 2 * base, 20}, {snapshot.Alloc, 2 * base, 20},
		}, [2][]int64{{15, -5}, {20}}, 0, 0},
		{"the peak was there when the history began, and is returned first", []event{
			{snapshot.SegmentFree, 3 * base, 60}, {snapshot.SegmentAlloc, 2 * base, 16}, {snapshot.Alloc, 2 * base, 12},
		}, [2][]int64{{5, -15}, {12, -4}}, 16, 0},
		{"each time for nothing, and returned before the next",
			slices.Concat([]event{{snapshot.SegmentAlloc, base, 20}, {snapshot.Alloc, base, 5}}, again, again, again[:2]),
			[2][]int64{{5, -15}, {12, -4}}, 16, 16},
	} {
		s := snapshot.New()
		var e snapshot.Events
		for _, x := range c.events {
			e.Action, e.Addr, e.Size = append(e.Action, x.a), append(e.Addr, x.addr), append(e.Size, x.mib*mib)
			e.Stream, e.Stack, e.Time = append(e.Stream, 0), append(e.Stack, 0), append(e.Time, int64(len(e.Time)))
		}
		s.Traces[0].Events = e
		for i, blocks := range c.state {
			s.Segments = append(s.Segments, segment(s, uint64(i+1)*base, "large", false, snapshot.Pool{}, blocks...))
		}
		d := s.Devices()[0]
		got := SpaceOf(New(s, d), d)
		if got.Taken != c.taken*mib || got.Overhead != c.overhead*mib {
			t.Errorf("%s: taken %d, overhead %d MiB; want %d, %d", c.name, got.Taken/mib, got.Overhead/mib, c.taken, c.overhead)
		}
	}
}
