package timeline

import (
	"testing"

	"strandline/stack"
	"strandline/torch/snapshot"
)

func TestPrivatePools(t *testing.T) {
	s := snapshot.New()
	place := func(line int64) stack.ID {
		return s.Stacks.Intern([]stack.FrameID{s.Stacks.Frame(stack.Frame{File: "serve.py", Line: line, Function: "capture"}, nil)})
	}
	graph, user := snapshot.Pool{Graph: 1}, snapshot.Pool{User: 3}
	s.Segments = []snapshot.Segment{
		segment(s, base, "large", false, snapshot.Pool{}, 20),
		segment(s, base+1<<30, "large", false, graph, 6, -14),
		segment(s, base+2<<30, "large", false, graph, -10),
		segment(s, base+3<<30, "large", false, user, 2, -6),
	}
	s.Segments[1].Stack, s.Segments[2].Stack = place(5), place(6)
	s.Segments[3].Blocks[0].Stack = place(7) // it was not recorded what took the segment
	const mib = 1 << 20
	want := []PrivatePool{
		{Pool: graph, Segments: 2, Reserved: 30 * mib, Active: 6 * mib, Free: 24 * mib, Took: s.Stacks.Site(place(5))},
		{Pool: user, Segments: 1, Reserved: 8 * mib, Active: 2 * mib, Free: 6 * mib, Took: s.Stacks.Site(place(7))},
	}
	got := PrivatePools(s, s.Devices()[0])
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if !got[0].ByGraph() || got[1].ByGraph() {
		t.Error("(1,0) is of a graph, and (0,3) need not be")
	}
}
