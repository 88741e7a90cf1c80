package replay

import (
	"cmp"
	"context"
	"math"
	"reflect"
	"runtime"
	"slices"
	"sort"
	"sync"

	"strandline/internal/sorts"
	"strandline/torch/allocator"
)

// A Choice is settings to run under, as they are written and as the release that
// wrote the file understands them.
type Choice struct {
	Conf     string
	Settings allocator.Settings
}

// Own are the settings of the recording.
func (x *Result) Own() Choice { return Choice{x.Settings.Changed(), x.Settings} }

// Choices returns what a search tries, each once: the recording's own settings first,
// those that are asked for, and those that may help, some of which only
// where memory is limited.
func (x *Result) Choices(asked []Choice, limited bool) (out []Choice) {
	all := append([]Choice{x.Own()}, asked...)
	for _, conf := range candidates(limited) {
		if set, err := allocator.ParseSettings(conf, x.Version); err == nil {
			all = append(all, Choice{conf, set})
		}
	}
	have := map[string]bool{}
	for _, c := range all {
		if name := c.Settings.Changed(); !have[name] {
			have[name] = true
			out = append(out, c)
		}
	}
	return out
}

// candidates are the settings that may help, as PyTorch takes them.
func candidates(limited bool) []string {
	out := []string{
		"", "expandable_segments:True",
		"max_split_size_mb:32", "max_split_size_mb:64", "max_split_size_mb:128", "max_split_size_mb:256",
		"max_split_size_mb:512", "max_split_size_mb:1024",
		"roundup_power2_divisions:2", "roundup_power2_divisions:4",
		"roundup_power2_divisions:8", "roundup_power2_divisions:16",
		"expandable_segments:True,roundup_power2_divisions:8",
		"max_split_size_mb:128,roundup_power2_divisions:8", "max_split_size_mb:512,roundup_power2_divisions:8",
		"max_split_size_mb:64,max_non_split_rounding_mb:64", "max_split_size_mb:256,max_non_split_rounding_mb:256",
		"large_segment_size_mb:12", "large_segment_size_mb:64", // since 2.11
	}
	if limited { // garbage collection needs a limit
		out = append(out, "garbage_collection_threshold:0.6", "garbage_collection_threshold:0.8",
			"max_split_size_mb:128,garbage_collection_threshold:0.8", "max_split_size_mb:512,garbage_collection_threshold:0.8")
	}
	return out
}

// All runs scenarios in parallel on all processors. Done is
// called after each, from one goroutine at a time; nil is ignored. No run begins
// after the end of ctx. Of those that differ in max_split_size alone, only those are run
// in which it can matter; the others share an outcome.
func (x *Result) All(ctx context.Context, scenarios []Scenario, done func()) ([]Outcome, error) {
	out := make([]Outcome, len(scenarios))
	run := func(i int) { out[i] = x.WhatIf(scenarios[i]) }
	alike := make([]int, len(scenarios)) // the first of those that differ in max_split_size alone
	var first, rest []int
	for i, sc := range scenarios {
		alike[i] = slices.IndexFunc(scenarios, func(other Scenario) bool {
			set := &other.Settings
			set.Conf, set.MaxSplitSize, set.MaxNonSplitRounding = sc.Settings.Conf, sc.Settings.MaxSplitSize, sc.Settings.MaxNonSplitRounding
			return reflect.DeepEqual(other, sc)
		})
		if alike[i] == i {
			first = append(first, i)
		} else {
			rest = append(rest, i)
		}
	}
	if err := each(ctx, len(first), func(n int) { run(first[n]) }, done); err != nil {
		return out, err
	}
	err := each(ctx, len(rest), func(n int) {
		i := rest[n]
		j := alike[i]
		set, other := &scenarios[i].Settings, &scenarios[j].Settings
		same := set.MaxSplitSize == other.MaxSplitSize && set.MaxNonSplitRounding == other.MaxNonSplitRounding
		if same || out[j].widest < min(set.MaxSplitSize, other.MaxSplitSize) {
			out[i] = out[j]
		} else {
			run(i)
		}
	}, done)
	return out, err
}

// AllSmallest are the least capacities of scenarios that have these outcomes.
func (x *Result) AllSmallest(ctx context.Context, scenarios []Scenario, ran []*Outcome, done func()) ([]int64, error) {
	out := make([]int64, len(scenarios))
	err := each(ctx, len(scenarios), func(i int) { out[i], _ = x.Smallest(ctx, scenarios[i], ran[i]) }, done)
	return out, err
}

// each calls f for 0 to n-1 on all processors, until ctx ends.
func each(ctx context.Context, n int, f func(int), done func()) error {
	var wait sync.WaitGroup
	var reporting sync.Mutex
	next := make(chan int)
	for range min(n, runtime.GOMAXPROCS(0)) {
		wait.Go(func() {
			for i := range next {
				f(i)
				if done != nil {
					reporting.Lock()
					done()
					reporting.Unlock()
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		next <- i
	}
	close(next)
	wait.Wait()
	return ctx.Err()
}

// What a call of the driver costs, in milliseconds: an estimate, as it depends
// on the device, the driver and what the device has to finish first.
const (
	mallocCost = 0.3
	freeCost   = 0.5
	mapCost    = 0.3
	unmapCost  = 0.3
)

// Cost estimates the time that calls of the driver take, in milliseconds.
func Cost(s *allocator.Stats) float64 {
	return mallocCost*float64(s.Mallocs) + freeCost*float64(s.Frees) + mapCost*float64(s.Maps) + unmapCost*float64(s.Unmaps)
}

// ByNeed puts the runs first that need the least memory, as returned by need,
// and of those within 2 % of the least that whose calls of the driver take
// the least time. Where memory is short, that counts, and not what is reserved.
func ByNeed(order []int, need func(run int) int64, outcomes [][]Outcome) {
	least := int64(math.MaxInt64)
	for _, j := range order {
		least = min(least, need(j))
	}
	cost := func(j int) (ms float64) {
		for i := range outcomes {
			ms += Cost(&outcomes[i][j].Stats)
		}
		return ms
	}
	near := func(j int) bool { return need(j)-least <= least/50 }
	sorts.StableBy(order, func(a, b int) int {
		switch {
		case near(a) && near(b):
			return cmp.Compare(cost(a), cost(b))
		case near(a):
			return -1
		case near(b):
			return 1
		}
		return cmp.Compare(need(a), need(b))
	})
}

// Rank orders runs, of which there is an outcome for each device: those that do
// not run out of memory before those that do, and those by how often; then by
// the peak of reserved memory, and of those within 1 % by the time that calls of
// the driver take. That is an estimate: those within 10 % stay in the order
// given, in which the simpler settings come first.
func Rank(outcomes [][]Outcome) []int {
	type sum struct {
		failed   int64 // requests
		reserved int64
		cost     float64
	}
	sums := make([]sum, len(outcomes[0]))
	least := int64(math.MaxInt64)
	for j := range sums {
		for i := range outcomes {
			o := &outcomes[i][j]
			sums[j].failed += o.OOMs
			sums[j].reserved += o.ReservedPeak
			sums[j].cost += Cost(&o.Stats)
		}
		if sums[j].failed == 0 {
			least = min(least, sums[j].reserved)
		}
	}
	near := func(s *sum) bool { return s.failed == 0 && s.reserved-least <= least/100 }
	cheapest := math.Inf(1)
	for j := range sums {
		if near(&sums[j]) {
			cheapest = min(cheapest, sums[j].cost)
		}
	}
	cost := func(s *sum) float64 { return max(s.cost, 1.1*cheapest) }
	order := make([]int, len(sums))
	for j := range order {
		order[j] = j
	}
	sort.SliceStable(order, func(i, j int) bool {
		a, b := &sums[order[i]], &sums[order[j]]
		switch {
		case a.failed != b.failed:
			return a.failed < b.failed
		case near(a) != near(b):
			return near(a)
		case near(a):
			return cost(a) < cost(b)
		}
		return a.reserved < b.reserved
	})
	return order
}
