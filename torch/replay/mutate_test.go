package replay

import (
	"math"
	"math/rand/v2"
	"testing"

	"strandline/internal/test/live"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// mutate spoils some events and blocks of a snapshot.
func mutate(s *snapshot.Snapshot, rng *rand.Rand) {
	e := &s.Traces[0].Events
	some := func(n int) int { return rng.IntN(max(n, 1)) }
	sizes := []int64{0, -1, 1, 511, 1 << 20, 20 << 20, 1 << 45, math.MaxInt64, math.MinInt64}
	for range 1 + rng.IntN(6) {
		k, j := some(e.Len()), some(e.Len())
		if e.Len() == 0 {
			break
		}
		switch rng.IntN(6) {
		case 0:
			e.Action[k] = e.Action[j]
		case 1:
			e.Addr[k] = e.Addr[j]
		case 2:
			e.Addr[k] = rng.Uint64()
		case 3:
			e.Size[k] = sizes[rng.IntN(len(sizes))]
		case 4:
			e.Stream[k] = snapshot.StreamID(some(len(s.Streams)))
		case 5:
			e.Addr[k] += 1 << rng.IntN(40)
		}
	}
	for range rng.IntN(4) {
		g := &s.Segments[some(len(s.Segments))]
		b := &g.Blocks[some(len(g.Blocks))]
		switch rng.IntN(6) {
		case 0:
			b.State = snapshot.State(rng.IntN(3))
		case 1:
			b.Size = sizes[rng.IntN(len(sizes))]
		case 2:
			b.Addr += uint64(rng.IntN(1 << 22))
		case 3:
			b.Requested = sizes[rng.IntN(len(sizes))]
		case 4:
			g.Expandable = !g.Expandable
		case 5:
			g.TotalSize = sizes[rng.IntN(len(sizes))]
		}
	}
}

// A history that makes no sense is replayed up to where it parts, in time, and
// can be run under other settings.
func TestNoHistoryStopsTheReplay(t *testing.T) {
	live.Sequential(t)
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for _, file := range golden(t) {
		for seed := range rounds {
			s := open(t, file)
			if len(s.Segments) == 0 {
				continue
			}
			mutate(s, rand.New(rand.NewPCG(uint64(seed), 3)))
			for _, d := range s.Devices() {
				x := NewRecording(timeline.New(s, d)).Replay()
				if n := x.Trace.Len(); n > 0 {
					x.segmentsAt(n / 2)
				}
				x.Walk(func(int, int64, int64) bool { return true })
				x.Assumed()
				if x.Lost {
					continue
				}
				for _, conf := range []string{"", "expandable_segments:True", "max_split_size_mb:30", "roundup_power2_divisions:4,garbage_collection_threshold:0.5"} {
					set, err := allocator.ParseSettings(conf, x.Version)
					if err != nil {
						t.Fatal(err)
					}
					x.WhatIf(Scenario{Settings: set, Capacity: 1 << 31, Limit: 1 << 30, Samples: 10, Empty: []int{3, 40}})
					x.Smallest(t.Context(), Scenario{Settings: set}, nil)
				}
			}
		}
	}
}
