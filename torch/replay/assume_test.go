package replay

import (
	"testing"

	"strandline/torch/snapshot"
)

// A run under the file's own garbage collection is the recorded one: its limit
// of memory is settled, and kept where nothing else is stated about memory.
func TestGarbageCollectionKeepsItsLimit(t *testing.T) {
	for _, file := range []string{"testdata/w11_fuzz.split_gc.s1.end.pickle.zst", "testdata/pools.gc.s3.end.pickle.zst"} {
		x := record(t, open(t, file)).Replay()
		if x.Difference != nil || x.Settings.GCThreshold == 0 {
			t.Fatal(file, x.Difference)
		}
		o := x.WhatIf(x.Under(Scenario{}, x.Settings))
		if o.ReservedPeak != x.Stats.ReservedPeak || o.OOM != nil {
			t.Errorf("%s: peak of %d bytes, recorded %d; %+v", file, o.ReservedPeak, x.Stats.ReservedPeak, o.OOM)
		}
		if sc := x.Under(Scenario{Capacity: 80 << 30}, x.Settings); sc.Limit != 0 {
			t.Errorf("%s: a limit of %d bytes where only a capacity is given", file, sc.Limit)
		}
	}
}

// Where the driver had room when a request failed, the limit is at least what was
// reserved at any time, and less than what the request would have made it.
func TestLimitOfAFailure(t *testing.T) {
	const gib = 1 << 30
	s := open(t, "../../examples/out-of-memory/oom.pickle")
	e := &s.Devices()[0].Trace.Events
	for k, a := range e.Action {
		if a == snapshot.OOM {
			e.Addr[k] = 77 * gib // what the driver had free
		}
	}
	x := record(t, s).Replay()
	as := x.Assumed()
	if !as.Limited || as.Limit == nil || *as.Limit != x.PeakReserved.Bytes || *as.Room() != *as.Limit || *as.Capacity <= 77*gib {
		t.Errorf("limited %v, limit %v, capacity %v", as.Limited, as.Limit, as.Capacity)
	}
	if sc := x.Recorded(); sc.Capacity != *as.Limit {
		t.Errorf("the recorded run had %d bytes, and not the limit", sc.Capacity)
	}
}
