package engine

import (
	"slices"
	"testing"

	"strandline/face/api/page"
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
	want := []page.Scope{{Name: "step 1", Lane: "steps", From: 0, To: 3, Open: false}, {Name: "step 2", Lane: "steps", From: 5, To: 9, Open: true}, {Name: "forward", Lane: "notes", From: 6, To: 9, Open: true}}
	if got := scopesOf(h); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
