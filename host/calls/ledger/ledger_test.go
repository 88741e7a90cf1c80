package ledger

import (
	"math/rand/v2"
	"slices"
	"testing"

	"strandline/host/calls/event"
	"strandline/host/proc/procfs"
)

const testPage = 4096

// model is the same as a ledger, page by page: who made each, 0 for none.
type model struct {
	made     [256]uint64
	writable [256]bool
	brk      uint64
}

func (m *model) set(addr, size, since uint64, writable bool) {
	for p := addr / testPage; p < (addr+size)/testPage; p++ {
		m.made[p], m.writable[p] = since, writable
	}
}

func (m *model) apply(e *event.Event) {
	switch e.Op {
	case event.Map:
		m.set(e.Addr, e.Len, e.Time, e.Prot&event.ProtWrite != 0)
	case event.Unmap:
		m.set(e.Addr, e.Len, 0, false)
	case event.Protect:
		for p := e.Addr / testPage; p < (e.Addr+e.Len)/testPage; p++ {
			w := e.Prot&event.ProtWrite != 0
			if m.made[p] != 0 && w && !m.writable[p] {
				m.made[p] = e.Time
			}
			m.writable[p] = m.writable[p] || w
			if !w {
				m.writable[p] = false
			}
		}
	case event.Remap:
		since, writable := m.made[e.Old/testPage], m.writable[e.Old/testPage]
		m.set(e.Old, e.OldLen, 0, false)
		if e.Len > e.OldLen {
			since = e.Time
		}
		m.set(e.Addr, e.Len, since, writable)
	case event.Break:
		if e.Addr > m.brk {
			m.set(m.brk, e.Addr-m.brk, e.Time, true)
		} else {
			m.set(e.Addr, m.brk-e.Addr, 0, false)
		}
		m.brk = e.Addr
	}
}

// uniform reports whether one call made all of a range.
func (m *model) uniform(addr, size uint64) bool {
	for p := addr / testPage; p < (addr+size)/testPage; p++ {
		if m.made[p] == 0 || m.made[p] != m.made[addr/testPage] || m.writable[p] != m.writable[addr/testPage] {
			return false
		}
	}
	return true
}

// TestLedgerAgainstPages compares the ledger with a list of pages: what is live,
// since when, and the sums of each cause.
func TestLedgerAgainstPages(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		l, m := New(), &model{brk: 224 * testPage}
		l.Space(1).brk = m.brk
		pages := func(n int) uint64 { return uint64(random.IntN(n)) * testPage }
		for at := uint64(1); at < 400; at++ {
			e := &event.Event{Time: at, PID: 1, Place: event.Place{IP: uint64(random.IntN(5))}}
			e.Addr, e.Len = pages(180), testPage+pages(20)
			switch random.IntN(10) {
			case 0, 1, 2:
				e.Op, e.Prot, e.Flags = event.Map, uint32(random.IntN(2))*event.ProtWrite, event.MapAnonymous
			case 3, 4, 5:
				e.Op = event.Unmap
			case 6:
				e.Op, e.Prot = event.Protect, uint32(random.IntN(2))*event.ProtWrite
			case 7:
				e.Op, e.Addr = event.Break, 224*testPage+pages(30)
			default:
				e.Op, e.Old, e.OldLen = event.Remap, pages(180), testPage+pages(20)
				if !m.uniform(e.Old, e.OldLen) || e.Addr < e.Old+e.OldLen && e.Old < e.Addr+e.Len && e.Addr != e.Old {
					continue // mremap refuses
				}
			}
			l.apply(e)
			m.apply(e)
			if at%50 == 0 {
				l.Checkpoint(at)
			}
		}
		compareWithPages(t, l, m)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func compareWithPages(t *testing.T, l *Ledger, m *model) {
	var got [256]uint64
	live, count := make([]int64, len(l.Causes)), make([]int64, len(l.Causes))
	end := uint64(0)
	l.Space(1).Each(func(iv *Interval) {
		if iv.Start < end || iv.End <= iv.Start {
			t.Errorf("interval %+v overlaps the one before", iv)
		}
		end = iv.End
		for p := iv.Start / testPage; p < iv.End/testPage; p++ {
			got[p] = iv.since
		}
		live[iv.Cause] += iv.Size()
		if !iv.rest {
			count[iv.Cause]++
		}
	})
	if got != m.made {
		t.Errorf("pages are of\n%v, want\n%v", got, m.made)
	}
	for i, c := range l.Causes {
		if c.Live != live[i] || c.Count != count[i] {
			t.Errorf("cause %d has %d bytes and %d intervals, its sums say %d and %d", i, live[i], count[i], c.Live, c.Count)
		}
	}
}

func mapsOf(m *model) (out []procfs.Mapping) {
	for p, since := range m.made {
		if since == 0 {
			continue
		}
		at := uint64(p) * testPage
		if n := len(out); n > 0 && out[n-1].End == at { // the kernel merges neighbors
			out[n-1].End += testPage
			continue
		}
		out = append(out, procfs.Mapping{Start: at, End: at + testPage, Write: true})
	}
	return out
}

// TestCheckMends loses every tenth event. The ledger agrees with the kernel's
// list again after three checks, and its sums do.
func TestCheckMends(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	l, m := New(), &model{}
	s := l.Space(1)
	l.check(s, nil, 0)
	for at := uint64(1); at < 2000; at++ {
		e := &event.Event{Time: at, PID: 1, Op: event.Map, Flags: event.MapAnonymous, Addr: uint64(random.IntN(200)) * testPage, Len: testPage * uint64(1+random.IntN(9))}
		if random.IntN(2) == 0 {
			e.Op = event.Unmap
		}
		m.apply(e)
		if random.IntN(10) > 0 {
			l.apply(e)
		}
	}
	for at := range uint64(3) {
		l.check(s, mapsOf(m), 3000+at)
	}
	if l.Corrections.Missing == 0 || l.Corrections.Extra == 0 {
		t.Errorf("lost events left no difference: %+v", l.Corrections)
	}
	missing, extra := s.compare(mapsOf(m))
	if len(missing) > 0 || len(extra) > 0 {
		t.Errorf("still %v missing and %v too many", missing, extra)
	}
	for i := range m.made {
		if m.made[i] == 0 {
			continue
		}
		s.within(uint64(i)*testPage, uint64(i+1)*testPage, func(iv *Interval) bool {
			if iv.Cause != Unseen {
				m.made[i] = iv.since
			} else {
				m.made[i] = 3002
			}
			return true
		})
	}
	compareWithPages(t, l, m)
}

// TestCheckFindsSharedMemory checks that a mapped file is recognized as shared memory
// by its name in the kernel's list.
func TestCheckFindsSharedMemory(t *testing.T) {
	l := New()
	s := l.Space(1)
	l.check(s, nil, 0)
	maps := []procfs.Mapping{
		{Start: 0, End: testPage, Read: true, Path: "/lib/libc.so", Inode: 1},
		{Start: testPage, End: 2 * testPage, Read: true, Write: true, Shared: true, Path: "/dev/shm/torch_1", Inode: 2},
		{Start: 2 * testPage, End: 3 * testPage, Read: true, Write: true, Path: "/memfd:x", Inode: 3},
	}
	for _, m := range maps {
		l.apply(&event.Event{Time: 1, PID: 1, Op: event.Map, Addr: m.Start, Len: m.Size()})
	}
	l.check(s, maps, 2)
	var kinds []Kind
	s.each(func(iv *Interval) { kinds = append(kinds, iv.kind) })
	if want := []Kind{FileBacked, Shared, Shared}; !slices.Equal(kinds, want) {
		t.Errorf("got the kinds %v, want %v", kinds, want)
	}
}

// TestPopulations follows by checkpoints what came and went.
func TestPopulations(t *testing.T) {
	l := New()
	at := uint64(0)
	apply := func(op event.Op, page, place uint64) {
		at++
		l.apply(&event.Event{Time: at, PID: 1, Op: op, Flags: event.MapAnonymous, Addr: page * testPage, Len: testPage, Place: event.Place{IP: place}})
	}
	for i := uint64(0); i < 70; i++ {
		apply(event.Map, 2*i, 1) // stays
		apply(event.Map, 1000, 2)
		if i%2 == 1 {
			apply(event.Unmap, 1000, 0) // ends what began a checkpoint before
		}
		at++
		l.Checkpoint(at)
	}
	p := l.populations()[l.cause(Site{1, event.Map, 0, event.Place{IP: 1}}, 0, false)]
	n := p.Checkpoints()
	if n < maxCheckpoints/2 || n > maxCheckpoints {
		t.Fatalf("%d checkpoints", n)
	}
	if last := p.Count[n-1]; last != 70 {
		t.Errorf("%d live at the end, want 70", last)
	}
	for j := 1; j < n; j++ {
		if p.Count[j] <= p.Count[j-1] || p.SettledLost[j] != 0 {
			t.Errorf("checkpoint %d: %d live after %d, %d lost", j, p.Count[j], p.Count[j-1], p.SettledLost[j])
		}
	}
}

// Another thread is given what mremap left before mremap has returned: the old
// addresses of one that moved, the tail of one that shrank.
func TestRemapIsOvertaken(t *testing.T) {
	l := New()
	s := l.Space(1)
	for _, e := range []event.Event{
		{Time: 1, Op: event.Map, Addr: 0x1000, Len: 0x4000},
		{Time: 2, Op: event.Map, Addr: 0x9000, Len: 0x4000},
		{Time: 12, Op: event.Map, Addr: 0x1000, Len: 0x3000},
		{Time: 15, Op: event.Remap, Old: 0x1000, OldLen: 0x4000, Addr: 0x20000, Len: 0x5000, Took: 5},
		{Time: 22, Op: event.Map, Addr: 0xb000, Len: 0x2000},
		{Time: 25, Op: event.Remap, Old: 0x9000, OldLen: 0x4000, Addr: 0x9000, Len: 0x2000, Took: 5},
	} {
		e.PID, e.Flags = 1, event.MapAnonymous
		l.apply(&e)
	}
	type piece struct{ start, end, since uint64 }
	var got []piece
	s.Each(func(iv *Interval) { got = append(got, piece{iv.Start, iv.End, iv.since}) })
	if want := []piece{{0x1000, 0x4000, 12}, {0x9000, 0xb000, 2}, {0xb000, 0xd000, 22}, {0x20000, 0x25000, 15}}; !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// mremap of no length makes a second mapping of shared memory.
func TestRemapDuplicates(t *testing.T) {
	l := New()
	l.apply(&event.Event{PID: 1, Time: 1, Op: event.Map, Addr: 0x1000, Len: 0x2000, Flags: event.MapShared | event.MapAnonymous})
	l.apply(&event.Event{PID: 1, Time: 2, Op: event.Remap, Old: 0x1000, Addr: 0x8000, Len: 0x2000})
	var got []addresses
	l.Space(1).Each(func(iv *Interval) {
		got = append(got, addresses{iv.Start, iv.End})
		if iv.kind != Shared {
			t.Errorf("%x is of kind %d", iv.Start, iv.kind)
		}
	})
	if want := []addresses{{0x1000, 0x3000}, {0x8000, 0xa000}}; !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// A list that is older than an unmapping that was entered does not bring it back.
func TestFirstCheckOfAnOldList(t *testing.T) {
	l := New()
	s := l.Space(1)
	l.apply(&event.Event{Op: event.Unmap, PID: 1, Addr: 0x3000, Len: 0x1000, Time: 5})
	l.apply(&event.Event{Op: event.Unmap, PID: 1, Addr: 0x2000, Len: 0x4000, Time: 6})
	l.apply(&event.Event{Op: event.Remap, PID: 1, Old: 0x7000, OldLen: 0x1000, Addr: 0x9000, Len: 0x1000, Time: 7})
	l.check(s, []procfs.Mapping{{Start: 0x1000, End: 0x8000, Write: true}}, 9)
	var got []addresses
	s.Each(func(iv *Interval) { got = append(got, addresses{iv.Start, iv.End}) })
	if want := []addresses{{0x1000, 0x2000}, {0x6000, 0x7000}, {0x9000, 0xa000}}; !slices.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
}

// TestManyProcesses enters processes that come, map and go, each at addresses of
// its own. What is kept of them does not grow with their number, and their calls
// are still counted; so are those of one that runs other programs again and again.
func TestManyProcesses(t *testing.T) {
	l := New()
	const many, calls = 5000, 8
	at := uint64(0)
	apply := func(e event.Event) {
		at++
		e.Time = at
		l.apply(&e)
	}
	for pid := uint32(2); pid < 2+many; pid++ {
		apply(event.Event{Op: event.Fork, PID: 1, Addr: uint64(pid), Old: uint64(pid)})
		if pid%2 == 0 {
			l.Checkpoint(at)
		}
		for i := range uint64(calls) {
			apply(event.Event{Op: event.Map, PID: pid, Addr: (1 + i) << 20, Len: testPage, Place: event.Place{IP: uint64(pid)<<20 + i}})
		}
		if pid%3 == 0 {
			if !l.Lives(pid, at-calls+1, 1<<20, testPage) {
				t.Fatal("what was mapped is not there")
			}
			l.SetStack(pid, at-calls+1, 1<<20, testPage, 7)
		}
		switch pid % 5 {
		case 0: // its end is lost, and its number is given again
			apply(event.Event{Op: event.Fork, PID: 1, Addr: uint64(pid), Old: uint64(pid)})
			fallthrough
		case 1:
			apply(event.Event{Op: event.Exit, PID: pid, Addr: uint64(pid)})
		default:
			apply(event.Event{Op: event.Exec, PID: pid})
			apply(event.Event{Op: event.Exit, PID: pid, Addr: uint64(pid)})
		}
	}
	var made Cause
	for i := range l.Causes {
		made.add(&l.Causes[i])
	}
	if made.Live != 0 || made.Count != 0 || made.calls != many*calls || made.total != many*calls*testPage {
		t.Errorf("%+v of %d calls", made, many*calls)
	}
	if len(l.Causes) > 40 || len(l.index) > 20 || len(l.spaces) > 1 {
		t.Errorf("%d causes, %d in the index, %d processes are kept", len(l.Causes), len(l.index), len(l.spaces))
	}
}

// TestManyPlaces enters calls that each seem to come from another place.
func TestManyPlaces(t *testing.T) {
	l := New()
	const many = 2 * maxCauses
	for i := range uint64(many) {
		e := event.Event{Time: 1 + i, Op: event.Map, PID: 1, Addr: i * testPage, Len: testPage, Place: event.Place{IP: 1, Caller: i}}
		l.apply(&e)
		if i == many-1 && !l.Lives(1, e.Time, e.Addr, e.Len) {
			t.Error("the last is not there")
		}
	}
	live := int64(0)
	for i := range l.Causes {
		live += l.Causes[i].Live
	}
	if live != many*testPage || len(l.Causes) > maxCauses+10 {
		t.Errorf("%d bytes live, of %d causes", live, len(l.Causes))
	}
}
