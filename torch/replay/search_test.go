package replay

import (
	"context"
	"errors"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

func exactOf(t *testing.T, path string) *Result {
	t.Helper()
	s, err := snapshot.Open(path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecording(timeline.New(s, s.Devices()[0]))
	return r.Replay()
}

// After the end of the context no run begins.
func TestAllEnds(t *testing.T) {
	x := exactOf(t, "../../examples/varied-lengths/default.pickle.gz")
	ctx, cancel := context.WithCancel(t.Context())
	scenarios := make([]Scenario, 50+2*runtime.GOMAXPROCS(0))
	for i := range scenarios {
		scenarios[i].Settings, scenarios[i].Capacity = allocator.DefaultSettings(), 1<<40+int64(i)
	}
	done := 0
	_, err := x.All(ctx, scenarios, func() {
		done++
		cancel()
	})
	if !errors.Is(err, context.Canceled) || done > 1+2*runtime.GOMAXPROCS(0) {
		t.Errorf("%d of %d runs, %v", done, len(scenarios), err)
	}
}

// Runs that share an outcome have the one that each has by itself.
func TestAll(t *testing.T) {
	for _, path := range []string{
		"../../examples/varied-lengths/default.pickle.gz", "../../examples/varied-lengths/expandable.pickle.gz",
		"../../examples/out-of-memory/oom.pickle", "../../examples/graphs/captured.pickle", "../../examples/peak/step-2.pickle",
		"testdata/late.gcsplit.plain.s1.d3.pickle.zst", "testdata/w06b_oom_fragmented.split128.end.pickle.zst",
	} {
		x := exactOf(t, path)
		for _, capacity := range []int64{0, x.PeakReserved.Bytes, x.PeakReserved.Bytes * 9 / 10} {
			var scenarios []Scenario
			for _, c := range x.Choices(nil, true) {
				scenarios = append(scenarios, x.Under(Scenario{Capacity: capacity, Limit: capacity, Samples: Samples}, c.Settings))
			}
			all, err := x.All(t.Context(), scenarios, nil)
			if err != nil {
				t.Fatal(err)
			}
			for i, sc := range scenarios {
				if alone := x.WhatIf(sc); !reflect.DeepEqual(all[i], alone) {
					t.Errorf("%s in %d bytes under %q: %+v, and by itself %+v", path, capacity, sc.Settings.Changed(), all[i], alone)
				}
			}
		}
	}
}

// A search tries the recording's own settings, then those that are asked for, and
// nothing twice nor what the release does not know.
func TestChoices(t *testing.T) {
	x := exactOf(t, "../../examples/varied-lengths/default.pickle.gz")
	var asked []Choice
	for _, conf := range []string{"max_split_size_mb:100", "backend:native", "max_split_size_mb:128,backend:native"} {
		set, err := ParseSettings(conf, x.Version)
		if err != nil {
			t.Fatal(err)
		}
		asked = append(asked, Choice{conf, set})
	}
	confs := func(limited bool) (out []string) {
		for _, c := range x.Choices(asked, limited) {
			out = append(out, c.Conf)
		}
		return out
	}
	free := confs(false)
	want := []string{"", "max_split_size_mb:100", "max_split_size_mb:128,backend:native", "expandable_segments:True", "max_split_size_mb:32"}
	if !slices.Equal(free[:len(want)], want) {
		t.Errorf("%q, want %q first", free, want)
	}
	for _, conf := range []string{"max_split_size_mb:128", "large_segment_size_mb:64"} {
		if slices.Contains(free, conf) {
			t.Errorf("%s is tried", conf)
		}
	}
	if limited := confs(true); !slices.Equal(limited[:len(free)], free) || !slices.Contains(limited, "garbage_collection_threshold:0.8") {
		t.Errorf("in limited memory %q", limited)
	}
}

// A scenario that has no capacity gets that of the recording.
func TestBounded(t *testing.T) {
	x := exactOf(t, "../../examples/out-of-memory/oom.pickle")
	recorded := x.Recorded()
	if recorded.Capacity == 0 {
		t.Fatal("the file shows no capacity")
	}
	if sc := x.Bounded(Scenario{Samples: 3}); sc.Capacity != recorded.Capacity || sc.Limit != recorded.Limit || sc.Samples != 3 {
		t.Errorf("%+v, want the bounds of %+v", sc, recorded)
	}
	if sc := x.Bounded(Scenario{Capacity: 5, Limit: 4}); sc.Capacity != 5 || sc.Limit != 4 {
		t.Errorf("%+v, want its own bounds", sc)
	}
}

// The least capacity is enough, and a page less is not; requests that the
// recording ran out of memory for count.
func TestSmallest(t *testing.T) {
	for _, path := range []string{"../../examples/varied-lengths/default.pickle.gz", "../../examples/out-of-memory/oom.pickle"} {
		x := exactOf(t, path)
		for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:2"} {
			set, err := allocator.ParseSettings(conf, x.Version)
			if err != nil {
				t.Fatal(err)
			}
			sc := Scenario{Settings: set}
			n, _ := x.Smallest(t.Context(), sc, nil)
			sc.Capacity = n
			if o := x.WhatIf(sc); o.OOM != nil {
				t.Errorf("%s %q: %d bytes are not enough", path, conf, n)
			}
			sc.Capacity = n - allocator.SmallBuffer
			if o := x.WhatIf(sc); o.OOM == nil {
				t.Errorf("%s %q: less than %d bytes is enough", path, conf, n)
			}
			sc.Limit = n / 2
			if m, _ := x.Smallest(t.Context(), sc, nil); m != 0 {
				t.Errorf("%s %q: %d bytes are enough though half of that is the limit", path, conf, m)
			}
		}
	}
}

// Of runs that are as good, the simpler settings come first.
func TestRank(t *testing.T) {
	run := func(ooms, reserved, mallocs int64) Outcome {
		return Outcome{Stats: allocator.Stats{ReservedPeak: reserved, OOMs: ooms, Mallocs: mallocs}}
	}
	for _, c := range []struct {
		name string
		runs []Outcome
		want []int
	}{
		{"less reserved", []Outcome{run(0, 2000, 5), run(0, 1000, 9)}, []int{1, 0}},
		{"runs out", []Outcome{run(1, 1000, 5), run(0, 9000, 5), run(2, 10, 5)}, []int{1, 0, 2}},
		{"as good", []Outcome{run(0, 1005, 20), run(0, 1000, 19)}, []int{0, 1}},
		{"as small, but dearer", []Outcome{run(0, 1000, 90), run(0, 1005, 19)}, []int{1, 0}},
	} {
		if got := Rank([][]Outcome{c.runs}); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Of runs that need about the least, the one with the cheapest calls is first;
// the others follow by need.
func TestByNeed(t *testing.T) {
	need := []int64{1000, 1015, 1100, 1050}
	calls := []int64{9, 3, 1, 1}
	outcomes := [][]Outcome{make([]Outcome, len(need))}
	for j, n := range calls {
		outcomes[0][j].Mallocs = n
	}
	order := []int{2, 0, 3, 1}
	ByNeed(order, func(j int) int64 { return need[j] }, outcomes)
	if want := []int{1, 0, 3, 2}; !slices.Equal(order, want) {
		t.Errorf("order %v, want %v", order, want)
	}
}
