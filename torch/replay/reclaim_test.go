package replay

import (
	"context"
	"slices"
	"testing"

	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

const gib = 1 << 30

// varied is the replay of an example whose cache grows far beyond what is in use.
func varied(t *testing.T) *Result {
	t.Helper()
	s, err := snapshot.Open("../../examples/varied-lengths/default.pickle.gz", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return NewRecording(timeline.New(s, s.Devices()[0])).Replay()
}

func keep(t *testing.T, x *Result, line int64) *Search {
	t.Helper()
	s, err := KeepUnder(context.Background(), []*Result{x}, line, func(int) {}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestKeepUnder(t *testing.T) {
	x := varied(t)
	s := keep(t, x, 3*gib)
	if s.Best == nil || s.Best.Peak > 3*gib || s.Best.Calls != len(s.Best.Outcomes[0].Emptied) {
		t.Fatalf("got %+v", s.Best)
	}
	for _, other := range s.Tried {
		if other.Peak <= s.Line && other.Calls < s.Best.Calls {
			t.Errorf("%s calls %d times, %s %d", s.Best.Name, s.Best.Calls, other.Name, other.Calls)
		}
	}
	i := slices.IndexFunc(s.Tried, func(r Reclaimed) bool { return r.Name == "every=1step" })
	if i < 0 {
		t.Fatal("every=1step was not tried")
	}
	events, _, err := x.EmptyAt("every=1step")
	if err != nil {
		t.Fatal(err)
	}
	o := x.WhatIf(x.Under(Scenario{Empty: events}, x.Settings))
	if got := s.Tried[i]; got.Peak != o.ReservedPeak || got.Calls != len(events) {
		t.Errorf("every=1step peaks at %d with %d calls, and by itself at %d with %d", got.Peak, got.Calls, o.ReservedPeak, len(events))
	}
	for _, e := range s.Best.Outcomes[0].Emptied {
		if e.After > e.Before || s.Best.above > e.Before {
			t.Errorf("at event %d a call finds %d and leaves %d bytes", e.Event, e.Before, e.After)
		}
	}
	if l := s.Best.Levels[0]; l.After <= 0 || l.After > l.Before || l.Before > s.Best.Peak {
		t.Errorf("it settles at %+v", l)
	}
}

func TestTryReclaim(t *testing.T) {
	x := varied(t)
	r := TryReclaim(x)
	if r == nil || r.Policy != "every=1step" || !r.Exact || r.Peak >= r.Own || r.Returned < gib/2 {
		t.Fatalf("got %+v", r)
	}
	s := keep(t, x, 3*gib)
	i := slices.IndexFunc(s.Tried, func(o Reclaimed) bool { return o.Name == r.Policy })
	if i < 0 || s.Tried[i].Peak != r.Peak {
		t.Errorf("%+v, and by itself %+v", r, s.Tried)
	}
}

func TestKeepUnderWithout(t *testing.T) {
	x := varied(t)
	if s := keep(t, x, 5*gib); s.Needed() || len(s.Tried) > 0 {
		t.Errorf("under 5 GiB it tried %d policies", len(s.Tried))
	}
	if s := keep(t, x, gib); !s.Needed() || s.Best != nil || s.InUse <= gib {
		t.Errorf("under 1 GiB, of which more is in use, %+v is to help", s.Best)
	}
	if s := keep(t, x, 5*gib/2); s.Best != nil || len(s.Tried) == 0 || s.Tried[0].Peak > s.Tried[1].Peak {
		t.Errorf("under 2.5 GiB, %+v is to help", s.Best)
	}
}

func TestLevel(t *testing.T) {
	for _, c := range []struct {
		name   string
		before []int64
		after  []int64
		want   Level
	}{
		{"none", nil, nil, Level{}},
		{"level", []int64{9, 9, 8, 9, 9, 9, 9, 9}, []int64{1, 2, 3, 4, 5, 4, 5, 4}, Level{9, 5, 0}},
		{"rising", []int64{9, 9, 9, 9, 9, 9, 9, 9}, []int64{1, 2, 3, 4, 5, 6, 7, 8}, Level{9, 7, 2}},
	} {
		var o Outcome
		for i := range c.before {
			o.Emptied = append(o.Emptied, Emptied{i, c.before[i], c.after[i]})
		}
		if got := o.level(); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
}
