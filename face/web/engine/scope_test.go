package engine

import (
	"slices"
	"testing"

	"strandline/torch/snapshot"
	"strandline/torch/tile"
	"strandline/torch/timeline"
)

// TestScopes has a step that ended, and one inside which the history ends, as
// that of an out-of-memory error does.
func TestScopes(t *testing.T) {
	s := snapshot.New()
	e := snapshot.Events{}
	for k := range 10 {
		e.Action, e.Addr, e.Size = append(e.Action, snapshot.Alloc), append(e.Addr, uint64(k+1)<<12), append(e.Size, 512)
		e.Stream, e.Stack, e.Time = append(e.Stream, 0), append(e.Stack, 0), append(e.Time, int64(100+10*k))
	}
	s.Traces = []snapshot.Trace{{Events: e}}
	s.Annotations = []snapshot.Annotation{
		{Name: "step 1", Time: 100}, {Name: "step 1", Time: 140, End: true}, {Name: "step 2", Time: 150}, {Name: "forward", Time: 160},
	}
	h := tile.NewHistory(timeline.New(s, s.Devices()[0]))
	want := []scope{{"step 1", "steps", 0, 3, false}, {"step 2", "steps", 5, 9, true}, {"forward", "notes", 6, 9, true}}
	if got := scopesOf(h); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
