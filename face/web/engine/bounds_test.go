package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"strandline/face/api/page"
	"strandline/input"
	"strandline/judge/diagnosis"
	"strandline/torch/snapshot"
)

// TestOneStackOfSegments checks that the stack of thousands of segments is in the answer
// once.
func TestOneStackOfSegments(t *testing.T) {
	const n = 5000
	frames := `[{"name":"f","filename":"/home/u/a.py","line":1},{"name":"main","filename":"/home/u/a.py","line":2}]`
	var segments strings.Builder
	for i := range n {
		if i > 0 {
			segments.WriteByte(',')
		}
		recorded := frames
		if i == 0 {
			recorded = "[]"
		}
		fmt.Fprintf(&segments, `{"device":0,"address":%d,"total_size":2097152,"allocated_size":0,"active_size":0,"requested_size":0,"stream":0,"segment_type":"large","segment_pool_id":[0,0],"is_expandable":false,"frames":%s,"blocks":[{"address":%[1]d,"size":2097152,"requested_size":0,"state":"inactive","frames":[]}]}`, 1<<40+i<<21, recorded)
	}
	text := `{"segments":[` + segments.String() + `],"device_traces":[[]]}`
	e := load(t, Source{Path: "a.json", Named: true, Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		s, err := snapshot.Read(strings.NewReader(text), snapshot.Options{Name: "a.json", Size: int64(len(text))})
		return s, nil, err
	}})
	s := read[page.State](t, e, "state?k=-1")
	if len(s.Segments) != n || len(s.Stacks) > 2 {
		t.Fatalf("%d segments, %d stacks", len(s.Segments), len(s.Stacks))
	}
	if at := s.Segments[n-1].Stack; at < 0 || len(s.Stacks[at]) != 2 || s.Stacks[at][0].Origin != "own" {
		t.Errorf("stack %d of %+v", at, s.Stacks)
	}
}
