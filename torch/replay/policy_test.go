package replay

import (
	"slices"
	"testing"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// TestStacksAt names a line of a file by its path, on a Windows drive too, by its name, and by the
// function.
func TestStacksAt(t *testing.T) {
	s := snapshot.New()
	frame := s.Stacks.Frame(stack.Frame{File: "D:/runs/model.py", Function: "forward", Line: 39}, nil)
	id := s.Stacks.Intern([]stack.FrameID{frame})
	e := snapshot.Events{Action: []snapshot.Action{snapshot.Alloc, snapshot.Alloc}, Addr: []uint64{1 << 30, 1 << 31}, Size: []int64{512, 512}, Stream: []snapshot.StreamID{0, 0}, Stack: []stack.ID{id, stack.None}}
	s.Traces = []snapshot.Trace{{Events: e}}
	r := NewRecording(timeline.New(s, s.Devices()[0]))
	for place, want := range map[string]int{
		"D:/runs/model.py:39": 1, "D:/runs/model.py": 1, "model.py:39": 1, "model.py": 1, "forward": 1,
		"D:/runs/model.py:40": 0, "del.py:39": 0, "D": 0, "39": 0, "D:": 0,
	} {
		at, counts := r.StacksAt(place)
		if !slices.Equal(counts, []int{want}) || at[id] != (want == 1) {
			t.Errorf("%s: %v allocations, want %d", place, counts, want)
		}
	}
}
