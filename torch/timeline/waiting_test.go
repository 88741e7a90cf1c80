package timeline

import (
	"testing"

	"strandline/torch/snapshot"
)

// TestWaiting records random histories, from their start and late, and holds
// what waited against a count at each event.
func TestWaiting(t *testing.T) {
	for seed := range int64(20) {
		m := newMachine(seed)
		for range 300 {
			m.step()
		}
		n := len(m.requested)
		for _, from := range []int{0, n / 2, n - 3} {
			s := m.snapshot(from)
			d := s.Devices()[0]
			w := WaitingOf(New(s, d), d)
			at, frees := waitedAt(m, from)
			var peak, without int64
			for k, bytes := range at {
				peak = max(peak, bytes)
				without = max(without, m.requested[from+k]-bytes)
			}
			if from > 0 {
				without = max(without, m.requested[from-1]) // what waits from before is not known
			}
			var end int64
			for addr := range m.pending {
				end += m.live[addr]
			}
			var sites int64
			for _, x := range w.Sites {
				sites += x.Bytes
			}
			if w.Bytes != end || w.Count != len(m.pending) || w.Peak.Bytes != peak || w.Without != without || w.Frees != frees || sites != peak {
				t.Fatalf("seed %d from %d: %+v\nwant %d bytes of %d at the end, peak %d, without %d, %d frees", seed, from, w, end, len(m.pending), peak, without, frees)
			}
			if w.Peak.Event != Never && at[w.Peak.Event] != peak || w.Longest > int64(n)*10 || w.Total < w.Longest {
				t.Errorf("seed %d from %d: %+v", seed, from, w)
			}
		}
	}
}

// waitedAt counts what waited after each event from from on, and the frees that
// waited and were completed.
func waitedAt(m *machine, from int) (bytes []int64, frees int) {
	e := &m.events
	bytes = make([]int64, len(e.Action)-from)
	add := func(i, to int, n int64) {
		for k := i; k < to; k++ {
			bytes[k-from] += n
		}
	}
	asked := map[uint64]int{}
	for k := from; k < len(e.Action); k++ {
		switch addr := e.Addr[k]; e.Action[k] {
		case snapshot.FreeRequested:
			asked[addr] = k
		case snapshot.FreeCompleted:
			if i, ok := asked[addr]; ok && k > i+1 {
				frees++
				add(i, k, e.Size[k])
			}
			delete(asked, addr)
		}
	}
	for addr := range m.pending {
		i, ok := asked[addr]
		if !ok {
			i = len(e.Action) - 1 // all that is known
		}
		add(i, len(e.Action), m.live[addr])
	}
	return bytes, frees
}

// TestWaitingOfState reads blocks that wait from a file without events.
func TestWaitingOfState(t *testing.T) {
	s := snapshot.New()
	seg := segment(s, base, "large", false, snapshot.Pool{}, 8, 4, -8)
	seg.Blocks[1].State = snapshot.Pending
	s.Segments = []snapshot.Segment{seg}
	d := s.Devices()[0]
	w := WaitingOf(New(s, d), d)
	if w.Bytes != 4<<20 || w.Count != 1 || w.Since != Never || w.Peak != (Point{Never, 4 << 20}) || w.Without != 8<<20 || w.Sites[0].Bytes != 4<<20 {
		t.Errorf("%+v", w)
	}
}
