package timeline_test

import (
	"testing"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// TestMissing has one block from before the recording, and events with a stack,
// with an empty one and with none.
func TestMissing(t *testing.T) {
	h := newHistory()
	h.add(snapshot.Alloc, 0x1000, 512, "own")
	h.add(snapshot.Alloc, 0x2000, 512, "")
	h.add(snapshot.Alloc, 0x3000, 512, "")
	h.events.Stack[2] = stack.Empty
	backward := h.s.Stacks.Frame(stack.Frame{File: "??", Function: "torch::autograd::Engine::thread_main"}, nil)
	h.add(snapshot.Alloc, 0x4000, 512, "")
	h.events.Stack[3] = h.s.Stacks.Intern([]stack.FrameID{backward})
	h.segment(0x0, 1<<20, "large", "",
		snapshot.Block{Addr: 0x100, Size: 512, Requested: 512, State: snapshot.Allocated, Stack: stack.Empty},
		snapshot.Block{Addr: 0x1000, Size: 512, Requested: 512, State: snapshot.Allocated},
		snapshot.Block{Addr: 0x2000, Size: 512, Requested: 512, State: snapshot.Allocated},
		snapshot.Block{Addr: 0x3000, Size: 512, Requested: 512, State: snapshot.Allocated},
		snapshot.Block{Addr: 0x4000, Size: 512, Requested: 512, State: snapshot.Allocated})
	s := h.snapshot()
	line := timeline.New(s, s.Devices()[0])
	want := map[uint64]timeline.Missing{0x100: timeline.BeforeRecording, 0x1000: "", 0x2000: timeline.StacksOff, 0x3000: timeline.AutogradThread, 0x4000: timeline.AutogradThread}
	for i := range line.Allocs {
		if got := line.Missing(i); got != want[line.Addr(i)] {
			t.Errorf("%#x: %q, want %q", line.Addr(i), got, want[line.Addr(i)])
		}
	}
	if n := len(line.Allocs); n != len(want) {
		t.Errorf("%d allocations, want %d", n, len(want))
	}
	for _, sum := range line.SitesAt(3) {
		if (sum.Missing == "") != (sum.Site.File != "") {
			t.Errorf("%+v has a site and a cause for none, or neither", sum)
		}
	}
}

// TestMissingWithoutAnyStack holds that a file without any frames was recorded
// with stacks off, not by autograd threads alone.
func TestMissingWithoutAnyStack(t *testing.T) {
	h := newHistory()
	h.add(snapshot.Alloc, 0x1000, 512, "")
	h.events.Stack[0] = stack.Empty
	s := h.snapshot()
	if got := timeline.New(s, s.Devices()[0]).Missing(0); got != timeline.StacksOff {
		t.Errorf("%q, want %q", got, timeline.StacksOff)
	}
}
