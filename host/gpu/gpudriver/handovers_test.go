package gpudriver

import (
	"testing"

	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/store/recording"
)

// calls sends calls of a process to a ledger, at the times given in milliseconds.
func calls(t *testing.T, d *Driver, all ...handedCall) {
	t.Helper()
	for _, c := range all {
		op := driverOp(t, c.function)
		e := &event.Event{Time: c.at * 1e6, PID: 5, Op: op, Addr: c.addr, Len: c.len, Old: c.old, Prot: onDevice}
		d.enter(e, op.Driver())
	}
}

type handedCall struct {
	at             uint64
	function       string
	addr, len, old uint64
}

// TestHandOvers finds memory that is given back and taken again at its addresses, and
// leaves out what is freed.
func TestHandOvers(t *testing.T) {
	const mib = 1 << 20
	d := newDriver(&noDriver{}, ledger.NewStacks(), nil)
	d.Began = 0
	calls(t, d,
		handedCall{1, "cuMemCreate", 7, 4 * mib, 0}, handedCall{2, "cuMemMap", 100 * mib, 4 * mib, 7},
		handedCall{3, "cuMemCreate", 8, 2 * mib, 0}, handedCall{4, "cuMemMap", 200 * mib, 2 * mib, 8},
		handedCall{4, "cuMemAlloc_v2", 500 * mib, mib, 0},
		handedCall{5, "cuMemCreate", 9, 2 * mib, 0}, handedCall{6, "cuMemMap", 300 * mib, 2 * mib, 9},
		// Two are paused, and the third is freed.
		handedCall{10, "cuMemUnmap", 100 * mib, 4 * mib, 0}, handedCall{11, "cuMemRelease", 7, 0, 0},
		handedCall{12, "cuMemUnmap", 300 * mib, 2 * mib, 0}, handedCall{13, "cuMemRelease", 9, 0, 0}, handedCall{14, "cuMemAddressFree", 300 * mib, 2 * mib, 0},
		handedCall{15, "cuMemUnmap", 200 * mib, 2 * mib, 0}, handedCall{20, "cuMemRelease", 8, 0, 0},
		// One comes back.
		handedCall{30, "cuMemCreate", 10, 4 * mib, 0}, handedCall{40, "cuMemMap", 100 * mib, 4 * mib, 10},
		// The other is moved: it stays in a handle.
		handedCall{3000, "cuMemUnmap", 100 * mib, 4 * mib, 0}, handedCall{3001, "cuMemMap", 400 * mib, 4 * mib, 10},
		handedCall{6000, "cuMemCreate", 11, 2 * mib, 0}, handedCall{6001, "cuMemMap", 200 * mib, 2 * mib, 11},
	)
	d.settle(8000 * 1e6)
	got := d.HandOvers()
	want := []recording.HandOver{
		{PID: 5, Do: recording.Pause, Began: 0.010, Ended: 0.020, Blocks: []recording.Block{{Addr: 100 * mib, Bytes: 4 * mib}, {Addr: 200 * mib, Bytes: 2 * mib}}},
		{PID: 5, Do: recording.Resume, Began: 0.030, Ended: 0.040, Blocks: []recording.Block{{Addr: 100 * mib, Bytes: 4 * mib}}},
		{PID: 5, Do: recording.Resume, Began: 6, Ended: 6.001, Blocks: []recording.Block{{Addr: 200 * mib, Bytes: 2 * mib}}},
	}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		g, w := got[i], want[i]
		same := g.PID == w.PID && g.Do == w.Do && g.Began == w.Began && g.Ended == w.Ended && len(g.Blocks) == len(w.Blocks)
		for k := range w.Blocks {
			same = same && g.Blocks[k] == w.Blocks[k]
		}
		if !same {
			t.Errorf("%d: %+v, want %+v", i, g, w)
		}
	}
	// What is held then is noted: 9 MiB, of which 1 MiB is not handed over.
	held := func(owners []recording.GPUOwner) (n int64) {
		for _, o := range owners {
			n += o.LiveBytes
		}
		return n
	}
	if first := &got[0]; held(first.Before) != 9*mib || held(first.After) != mib || got[1].Before != nil || held(got[1].After) != 5*mib {
		t.Errorf("%+v", got)
	}
	if again := d.HandOvers(); len(again) != 0 {
		t.Errorf("they are returned twice: %+v", again)
	}
}

// TestExpandableSegments does not take PyTorch's own mappings for hand-overs.
func TestExpandableSegments(t *testing.T) {
	const mib = 1 << 20
	d := newDriver(&noDriver{}, ledger.NewStacks(), nil)
	calls(t, d, handedCall{1, "cuMemCreate", 7, 4 * mib, 0}, handedCall{2, "cuMemMap", 100 * mib, 4 * mib, 7})
	d.handles[handleKey{5, 7}].owner = OwnerPyTorch
	calls(t, d, handedCall{3, "cuMemUnmap", 100 * mib, 4 * mib, 0}, handedCall{4, "cuMemRelease", 7, 0, 0})
	d.noticed(&event.Event{Time: 100, PID: 5, Op: event.Exit, Addr: 5})
	if got := d.HandOvers(); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}
