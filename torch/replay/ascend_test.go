package replay

import (
	"testing"

	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// ascend is a history by hand, as torch_npu's allocator makes it by its source:
// 32 bytes more than was asked for, and with expandable segments requests of
// 2 MiB and more at a whole 16 KiB. Nobody recorded it.
func ascend(frames bool) *snapshot.Snapshot {
	const mib, pad, at = 1 << 20, 512, 0x12c0c0000000
	const second, third = at + 3*mib + 16<<10, at + 6*mib + 32<<10
	w := &writer{}
	small := uint64(0x12c040000000)
	w.note(snapshot.SegmentMap, small, 2*mib)
	for i := range uint64(3) {
		w.note(snapshot.Alloc, small+1024*i, 512)
	}
	w.note(snapshot.SegmentMap, at, 20*mib)
	w.note(snapshot.Alloc, at, 3*mib)
	w.note(snapshot.Alloc, second, 3*mib) // not at 3 MiB and 512 bytes
	w.note(snapshot.FreeRequested, at, 3*mib)
	w.note(snapshot.FreeCompleted, at, 3*mib)
	w.note(snapshot.Alloc, at, mib+mib/2)
	w.note(snapshot.Alloc, third, 2*mib)

	s := &snapshot.Snapshot{Stacks: stack.NewTable(), Strings: []string{""}, Streams: []uint64{0}, Pools: make([]snapshot.Pool, 1)}
	if frames {
		f := s.Stacks.Frame(stack.Frame{File: `C:\site-packages\torch_npu\utils\_module.py`, Line: 8, Function: "npu"}, nil)
		w.Stack[1] = s.Stacks.Intern([]stack.FrameID{f})
	}
	s.Traces = []snapshot.Trace{{Events: w.Events}}
	block := func(addr uint64, size, requested int64) snapshot.Block {
		b := snapshot.Block{Addr: addr, Size: size, Requested: requested, State: snapshot.Allocated}
		if requested == 0 {
			b.State = snapshot.Inactive
		}
		return b
	}
	s.Segments = []snapshot.Segment{
		{Addr: small, TotalSize: 2 * mib, Type: s.StringID("small"), Expandable: true, Blocks: []snapshot.Block{
			block(small, 1024, 512), block(small+1024, 1024, 512), block(small+2048, 1024, 512), block(small+3072, 2*mib-3072, 0),
		}},
		{Addr: at, TotalSize: 20 * mib, Type: s.StringID("large"), Expandable: true, Blocks: []snapshot.Block{
			block(at, mib+mib/2+pad, mib+mib/2),
			block(at+mib+mib/2+pad, mib+mib/2+16<<10-pad, 0),
			block(second, 3*mib+pad, 3*mib),
			block(second+3*mib+pad, 16<<10-pad, 0),
			block(third, 2*mib+pad, 2*mib),
			block(third+2*mib+pad, 12*mib-32<<10-pad, 0),
		}},
	}
	return s
}

func TestAscend(t *testing.T) {
	for _, frames := range []bool{true, false} {
		s := ascend(frames)
		if got := s.TorchVersion(); got != "with torch_npu" {
			t.Errorf("frames %t: the version is %q", frames, got)
		}
		x := NewRecording(timeline.New(s, s.Devices()[0])).Replay()
		if x.Difference != nil || x.SegmentsMet != 2 {
			t.Errorf("frames %t: %v, %d segments are met", frames, x.Difference, x.SegmentsMet)
		}
		if o := x.WhatIf(Scenario{Settings: allocator.DefaultSettings()}); o.Reserved != 22<<20 || o.Allocated != x.Stats.Allocated {
			t.Errorf("frames %t: %d bytes reserved by other settings, %d allocated", frames, o.Reserved, o.Allocated)
		}
	}
	if s := training(1000, true); s.Ascend() {
		t.Error("blocks of PyTorch's own allocator are taken for those of torch_npu")
	}
}
