package replay

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"strandline/allocator"
	"strandline/snapshot"
	"strandline/timeline"
)

func exactOf(t *testing.T, path string) *Exact {
	t.Helper()
	s, err := snapshot.Open(path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := NewRecording(timeline.New(s, s.Devices()[0]))
	return r.Exact()
}

// After the end of the context no run begins.
func TestAllEnds(t *testing.T) {
	x := exactOf(t, "../examples/varied-lengths/default.pickle.gz")
	ctx, cancel := context.WithCancel(t.Context())
	scenarios := make([]Scenario, 50+2*runtime.GOMAXPROCS(0))
	for i := range scenarios {
		scenarios[i].Settings = allocator.DefaultSettings()
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

// The least capacity is enough, and clearly less is not; requests that the
// recording ran out of memory for count.
func TestSmallest(t *testing.T) {
	for _, path := range []string{"../examples/varied-lengths/default.pickle.gz", "../examples/out-of-memory/oom.pickle"} {
		x := exactOf(t, path)
		for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:128", "roundup_power2_divisions:2"} {
			set, err := allocator.ParseSettings(conf, x.Version)
			if err != nil {
				t.Fatal(err)
			}
			sc := Scenario{Settings: set}
			n, _ := x.Smallest(t.Context(), sc)
			sc.Capacity = n
			if o := x.WhatIf(sc); o.OOM != nil {
				t.Errorf("%s %q: %d bytes are not enough", path, conf, n)
			}
			sc.Capacity = n - n/200 - allocator.SmallBuffer
			if o := x.WhatIf(sc); o.OOM == nil {
				t.Errorf("%s %q: less than %d bytes is enough", path, conf, n)
			}
			sc.Limit = n / 2
			if m, _ := x.Smallest(t.Context(), sc); m != 0 {
				t.Errorf("%s %q: %d bytes are enough though half of that is the limit", path, conf, m)
			}
		}
	}
}
