package timeline

import (
	"math/rand"
	"testing"

	"strandline/stack"
	"strandline/torch/snapshot"
)

// machine makes a random history of one segment and keeps, at each event, what
// the truth is.
type machine struct {
	rng       *rand.Rand
	events    snapshot.Events
	live      map[uint64]int64 // address → requested bytes, pending ones too
	pending   map[uint64]bool
	requested []int64 // after each event
	held      []map[uint64]int64
}

const (
	slots    = 64
	slotSize = 1 << 20
	base     = 0x7000_0000_0000
)

func newMachine(seed int64) *machine {
	return &machine{rng: rand.New(rand.NewSource(seed)), live: map[uint64]int64{}, pending: map[uint64]bool{}}
}

func (m *machine) record(a snapshot.Action, addr uint64, size int64) {
	e := &m.events
	e.Action, e.Addr, e.Size = append(e.Action, a), append(e.Addr, addr), append(e.Size, size)
	e.Stream, e.Stack = append(e.Stream, 0), append(e.Stack, stack.None)
	e.Time = append(e.Time, int64(len(e.Time))*10+1)
	var sum int64
	held := map[uint64]int64{}
	for a, n := range m.live {
		sum += n
		held[a] = n
	}
	m.requested = append(m.requested, sum)
	m.held = append(m.held, held)
}

func (m *machine) step() {
	addr := uint64(base + m.rng.Intn(slots)*slotSize)
	switch {
	case m.pending[addr]:
		delete(m.pending, addr)
		size := m.live[addr]
		delete(m.live, addr)
		m.record(snapshot.FreeCompleted, addr, size)
	case m.live[addr] > 0:
		m.pending[addr] = true
		m.record(snapshot.FreeRequested, addr, m.live[addr])
		if m.rng.Intn(4) > 0 {
			size := m.live[addr]
			delete(m.pending, addr)
			delete(m.live, addr)
			m.record(snapshot.FreeCompleted, addr, size)
		}
	default:
		m.live[addr] = int64(1 + m.rng.Intn(slotSize))
		m.record(snapshot.Alloc, addr, m.live[addr])
	}
}

// snapshot is the state at the end, with the history from an event on.
func (m *machine) snapshot(from int) *snapshot.Snapshot {
	s := snapshot.New()
	seg := snapshot.Segment{Addr: base, TotalSize: slots * slotSize, Type: s.StringID("large")}
	for i := range slots {
		b := snapshot.Block{Addr: uint64(base + i*slotSize), Size: slotSize}
		if n := m.live[b.Addr]; n > 0 {
			b.Requested, b.State = n, snapshot.Allocated
			if m.pending[b.Addr] {
				b.State = snapshot.Pending
			}
		}
		seg.Blocks = append(seg.Blocks, b)
	}
	s.Segments = []snapshot.Segment{seg}
	e := m.events
	s.Traces = []snapshot.Trace{{Events: snapshot.Events{
		Action: e.Action[from:], Addr: e.Addr[from:], Size: e.Size[from:], Stream: e.Stream[from:], Stack: e.Stack[from:], Time: e.Time[from:],
	}}}
	return s
}

// TestAgainstTruth records random histories, from their start and late, and
// holds every figure of the timeline against what really was.
func TestAgainstTruth(t *testing.T) {
	for seed := range int64(30) {
		m := newMachine(seed)
		for range 400 {
			m.step()
		}
		n := len(m.requested)
		for _, from := range []int{0, n / 3, n - 5, n} {
			s := m.snapshot(from)
			tl := New(s, s.Devices()[0])
			if len(tl.Faults) > 0 {
				t.Fatalf("seed %d from %d: faults %v", seed, from, tl.Faults)
			}
			at := func(k int) (int64, map[uint64]int64) { // of the truth, by events of the cut history
				if from+k < 0 {
					return 0, nil
				}
				return m.requested[from+k], m.held[from+k]
			}
			var peak int64
			for k := Never; k < n-from; k++ {
				want, held := at(k)
				peak = max(peak, want)
				if k%37 != 0 && k != Never && k != n-from-1 {
					continue
				}
				if got := tl.RequestedAt(k); got != want {
					t.Fatalf("seed %d from %d: %d bytes requested after event %d, want %d", seed, from, got, k, want)
				}
				live := tl.LiveAt(k)
				if len(live) != len(held) {
					t.Fatalf("seed %d from %d: %d live after event %d, want %d", seed, from, len(live), k, len(held))
				}
				for _, i := range live {
					if held[tl.Addr(i)] != tl.Size(i) {
						t.Fatalf("seed %d from %d: 0x%x has %d bytes after event %d, want %d", seed, from, tl.Addr(i), tl.Size(i), k, held[tl.Addr(i)])
					}
				}
				if low, high := tl.AllocatedBounds(k); low > high {
					t.Errorf("seed %d: allocated between %d and %d after event %d", seed, low, high, k)
				}
			}
			if tl.PeakRequested.Bytes != peak || tl.RequestedAt(tl.PeakRequested.Event) != peak {
				t.Errorf("seed %d from %d: peak %v, want %d bytes", seed, from, tl.PeakRequested, peak)
			}
			if tl.EndRequested != tl.RequestedAt(n-from-1) {
				t.Errorf("seed %d from %d: the state has %d bytes, the history ends with %d", seed, from, tl.EndRequested, tl.RequestedAt(n-from-1))
			}
			if tl.ReservedAt(Never) != slots*slotSize {
				t.Errorf("seed %d from %d: %d bytes reserved at the start", seed, from, tl.ReservedAt(Never))
			}
		}
	}
}

func TestAllocOf(t *testing.T) {
	m := newMachine(7)
	for range 300 {
		m.step()
	}
	s := m.snapshot(40)
	tl := New(s, s.Devices()[0])
	for k, a := range tl.Trace.Action {
		i, ok := tl.AllocOf(k)
		if !ok {
			t.Fatalf("event %d, %s, has no allocation", k, a)
		}
		if tl.Addr(i) != tl.Trace.Addr[k] || k != tl.Birth(i) && k != tl.Freed(i) && k != tl.Death(i) {
			t.Errorf("event %d, %s, belongs to an allocation of events %d, %d, %d", k, a, tl.Birth(i), tl.Freed(i), tl.Death(i))
		}
	}
}

// TestSkippedCompletions reads a history of a recorder that was configured to skip
// free_completed: a request is then the free.
func TestSkippedCompletions(t *testing.T) {
	m := newMachine(3)
	for range 200 {
		m.step()
	}
	for a := range m.pending {
		delete(m.live, a)
	}
	m.pending = map[uint64]bool{}
	s := m.snapshot(0)
	e := &s.Traces[0].Events
	var kept snapshot.Events
	for k, a := range e.Action {
		if a != snapshot.FreeCompleted {
			kept.Action, kept.Addr, kept.Size = append(kept.Action, a), append(kept.Addr, e.Addr[k]), append(kept.Size, e.Size[k])
			kept.Stream, kept.Stack, kept.Time = append(kept.Stream, 0), append(kept.Stack, 0), append(kept.Time, e.Time[k])
		}
	}
	*e = kept
	tl := New(s, s.Devices()[0])
	if len(tl.Faults) > 0 || tl.RequestedAt(kept.Len()-1) != tl.EndRequested || tl.StartRequested != 0 {
		t.Errorf("faults %v, %d bytes at the end, state has %d", tl.Faults, tl.RequestedAt(kept.Len()-1), tl.EndRequested)
	}
}

// TestContradictions breaks a history in ways that no allocator does.
func TestContradictions(t *testing.T) {
	for name, breakIt := range map[string]func(s *snapshot.Snapshot){
		"an allocation at a live address": func(s *snapshot.Snapshot) {
			e := &s.Traces[0].Events
			for k, a := range e.Action {
				if a == snapshot.FreeRequested || a == snapshot.FreeCompleted {
					e.Action[k] = snapshot.OtherAction
				}
			}
		},
		"a block that was never freed is gone": func(s *snapshot.Snapshot) {
			for i := range s.Segments[0].Blocks {
				s.Segments[0].Blocks[i].State = snapshot.Inactive
			}
		},
		"a block of another size": func(s *snapshot.Snapshot) {
			for i := range s.Segments[0].Blocks {
				s.Segments[0].Blocks[i].Requested++
			}
		},
		"more segments taken than are there": func(s *snapshot.Snapshot) {
			s.Traces[0].Action[0] = snapshot.SegmentAlloc
			s.Traces[0].Size[0] = 1 << 40
		},
	} {
		m := newMachine(5)
		for range 100 {
			m.step()
		}
		s := m.snapshot(0)
		breakIt(s)
		if tl := New(s, s.Devices()[0]); len(tl.Faults) == 0 {
			t.Errorf("%s: nothing is reported", name)
		}
	}
}

func TestTable(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	table, truth := newTable(16), map[uint64]int32{}
	for range 50_000 {
		key := uint64(rng.Intn(200)) * 512
		switch v, ok := table.get(key); {
		case ok != (func() bool { _, ok := truth[key]; return ok }()), ok && v != truth[key]:
			t.Fatalf("key %d: %d %v, want %d", key, v, ok, truth[key])
		case rng.Intn(2) == 0:
			v := int32(rng.Intn(1000) - 500)
			table.put(key, v)
			truth[key] = v
		default:
			table.delete(key)
			delete(truth, key)
		}
		if table.n != len(truth) {
			t.Fatalf("%d entries, want %d", table.n, len(truth))
		}
	}
}

func BenchmarkNew(b *testing.B) {
	m := newMachine(1)
	for range 20_000 {
		m.step()
		m.held[len(m.held)-1] = nil
	}
	s := m.snapshot(0)
	d := s.Devices()[0]
	b.ReportMetric(float64(d.Trace.Len()), "events/op")
	for b.Loop() {
		New(s, d)
	}
}
