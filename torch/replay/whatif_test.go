package replay

import (
	"testing"

	"strandline/internal/test/live"
	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A block that another stream uses is free as soon as cudaFree has waited for
// the device, also where the recording, which made no such call, has it later.
func TestCudaFreeEndsWaits(t *testing.T) {
	live.Sequential(t)
	const mib = 1 << 20
	const a, b, c = 0x7f0000000000, 0x7f0010000000, 0x7f0020000000
	w := &writer{}
	for _, e := range []struct {
		action snapshot.Action
		addr   uint64
		size   int64
	}{
		{snapshot.SegmentAlloc, a, 30 * mib},
		{snapshot.Alloc, a, 30 * mib},
		{snapshot.SegmentAlloc, b, 30 * mib},
		{snapshot.Alloc, b, 30 * mib},
		{snapshot.FreeRequested, a, 30 * mib}, // another stream uses it
		{snapshot.FreeRequested, b, 30 * mib},
		{snapshot.FreeCompleted, b, 30 * mib},
		{snapshot.SegmentAlloc, c, 60 * mib},
		{snapshot.Alloc, c, 60 * mib},
		{snapshot.Alloc, b, 30 * mib},
		{snapshot.FreeCompleted, a, 30 * mib},
	} {
		w.note(e.action, e.addr, e.size)
	}
	segment := func(addr uint64, size int64, state snapshot.State) snapshot.Segment {
		block := snapshot.Block{Addr: addr, Size: size, State: state}
		if state.Active() {
			block.Requested = size
		}
		return snapshot.Segment{Addr: addr, TotalSize: size, Type: 1, Blocks: []snapshot.Block{block}}
	}
	s := &snapshot.Snapshot{
		Stacks: &stack.Table{}, Strings: []string{"", "large"}, Streams: []uint64{0}, Pools: make([]snapshot.Pool, 1),
		Traces: []snapshot.Trace{{Events: w.Events}},
		Segments: []snapshot.Segment{
			segment(a, 30*mib, snapshot.Inactive), segment(b, 30*mib, snapshot.Allocated), segment(c, 60*mib, snapshot.Allocated),
		},
	}
	x := NewRecording(timeline.New(s, s.Devices()[0])).Replay()
	if x.Difference != nil {
		t.Fatal(x.Difference)
	}
	set := allocator.DefaultSettings()
	set.GCThreshold = 0.5
	o := x.WhatIf(Scenario{Settings: set, Limit: 100 * mib})
	if o.ReservedPeak != 90*mib || o.Frees != 1 || o.Retries != 0 {
		t.Errorf("%d MiB at the peak, %d calls of cudaFree, %d retries; want 90, 1, 0", o.ReservedPeak/mib, o.Frees, o.Retries)
	}
}

// Pools are distinguished by ranges of addresses, however large a segment is.
func TestHugePrivateSegment(t *testing.T) {
	live.Sequential(t)
	const size = 1 << 44
	s := training(1000, false)
	pool := snapshot.PoolID(len(s.Pools))
	s.Pools = append(s.Pools, snapshot.Pool{User: 1})
	s.Segments = append(s.Segments, snapshot.Segment{
		Addr: 1 << 60, TotalSize: size, Type: s.StringID("large"), Pool: pool,
		Blocks: []snapshot.Block{{Addr: 1 << 60, Size: size, Requested: size, State: snapshot.Allocated}},
	})
	x := NewRecording(timeline.New(s, s.Devices()[0])).Replay()
	if x.Difference != nil {
		t.Fatal(x.Difference)
	}
	if x.pools[^(len(x.start)-1)] != (allocator.PoolID{User: 1}) {
		t.Errorf("the pools are %v", x.pools)
	}
	if o := x.WhatIf(Scenario{Settings: allocator.DefaultSettings()}); o.ReservedPeak < size {
		t.Errorf("%d bytes reserved, want at least %d", o.ReservedPeak, int64(size))
	}
}
