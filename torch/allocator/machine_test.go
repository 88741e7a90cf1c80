package allocator

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// A machine is a program that asks an allocator for what given bytes encode, on a
// device that notices what no driver would be asked for. After each step all
// that must hold is checked.
type machine struct {
	t      testing.TB
	a      *Allocator
	device *fakeDevice
	next   func() byte
	live   []Block
	wait   []Ticket
	pools  []PoolID
	steps  int
}

// fakeDevice gives addresses first fit and has a capacity.
type fakeDevice struct {
	t        testing.TB
	capacity int64
	used     int64
	calls    int64
	segments map[uint64]int64 // bytes, by address
	mapped   map[uint64]int64 // page by page
	reserved map[uint64]int64
	pages    map[uint64]int64 // bytes of a page, by reservation
	next     uint64           // of reservations
}

const reservation0 = 1 << 44

func newFakeDevice(t testing.TB, capacity int64) *fakeDevice {
	return &fakeDevice{
		t: t, capacity: capacity, next: reservation0,
		segments: map[uint64]int64{}, mapped: map[uint64]int64{}, reserved: map[uint64]int64{}, pages: map[uint64]int64{},
	}
}

func (d *fakeDevice) Malloc(size int64) (uint64, bool) {
	d.calls++
	if size <= 0 || size%RoundLarge != 0 {
		d.t.Fatalf("cudaMalloc of %d bytes", size)
	}
	if d.used+size > d.capacity {
		return 0, false
	}
	at := uint64(RoundLarge)
	for _, addr := range slices.Sorted(maps.Keys(d.segments)) {
		if addr-at >= uint64(size) {
			break
		}
		at = addr + uint64(d.segments[addr])
	}
	d.segments[at] = size
	d.used += size
	return at, true
}

func (d *fakeDevice) Free(addr uint64, size int64) {
	d.calls++
	if d.segments[addr] != size {
		d.t.Fatalf("cudaFree of %d bytes at 0x%x, which has %d", size, addr, d.segments[addr])
	}
	delete(d.segments, addr)
	d.used -= size
}

func (d *fakeDevice) Reserve(page int64) (uint64, int64) {
	at, length := d.next, (d.capacity*9/8+page-1)/page*page
	d.next += uint64(length) + uint64(page)
	d.reserved[at], d.pages[at] = length, page
	return at, length
}

func (d *fakeDevice) Within(uint64, int64) bool { return true }

// each calls f for each page of a range.
func (d *fakeDevice) each(addr uint64, size int64, f func(at uint64, page int64)) {
	for base, length := range d.reserved {
		if addr-base < uint64(length) {
			page := d.pages[base]
			if (addr-base)%uint64(page) != 0 || size <= 0 || size%page != 0 || addr-base+uint64(size) > uint64(length) {
				d.t.Fatalf("%d bytes at 0x%x are not pages of the reservation at 0x%x", size, addr, base)
			}
			for at := addr; at < addr+uint64(size); at += uint64(page) {
				f(at, page)
			}
			return
		}
	}
	d.t.Fatalf("0x%x is in no reservation", addr)
}

func (d *fakeDevice) Map(addr uint64, size int64) bool {
	d.calls++
	if d.used+size > d.capacity {
		return false
	}
	d.each(addr, size, func(at uint64, page int64) {
		if d.mapped[at] != 0 {
			d.t.Fatalf("0x%x is mapped twice", at)
		}
		d.mapped[at] = page
	})
	d.used += size
	return true
}

func (d *fakeDevice) Unmap(addr uint64, size int64) {
	d.calls++
	d.each(addr, size, func(at uint64, _ int64) {
		if d.mapped[at] == 0 {
			d.t.Fatalf("0x%x is unmapped and was not mapped", at)
		}
		delete(d.mapped, at)
	})
	d.used -= size
}

func newMachine(t testing.TB, next func() byte) *machine {
	m := &machine{t: t, next: next, pools: []PoolID{{}, {User: 1}, {Graph: 1}}}
	set := DefaultSettings()
	if m.one(3) {
		set.Expandable = true
	}
	if m.one(3) {
		set.MaxSplitSize = int64(21+int(next())) << 20
	}
	if m.one(3) {
		set.MaxNonSplitRounding = int64(1+int(next())) << 20
	}
	if m.one(3) {
		for i := range set.RoundupDivisions {
			set.RoundupDivisions[i] = []int64{0, 1, 2, 4, 8, 16}[int(next())%6]
		}
	}
	if m.one(3) {
		set.GCThreshold = float64(1+next()%99) / 100
	}
	set.ThrowOnOOM = m.one(8)
	m.device = newFakeDevice(t, int64(20+8*int(next()))<<20)
	m.a = New(set, Version(211+int(m.next())%3), m.device)
	m.a.many = 0
	m.a.SetTotal(m.device.capacity)
	if m.one(2) {
		m.a.SetLimit(m.device.capacity * int64(1+next()%8) / 8)
	}
	return m
}

// one is true once in n times.
func (m *machine) one(n int) bool { return int(m.next())%n == 0 }

func (m *machine) size() int64 {
	n := int64(m.next())<<8 | int64(m.next())
	switch m.next() % 8 {
	case 0:
		return 1 + n%2000
	case 1, 2:
		return 1 + n*16
	case 3:
		return []int64{1, 512, 513, SmallLimit, SmallLimit + 1, LargeLimit - 1, LargeLimit, LargeLimit + 1, LargeBuffer, 64 << 20}[n%10]
	case 4, 5:
		return 1 + n*200
	case 6:
		return 1 + n*1600
	}
	return 1 + n*5000
}

func (m *machine) step() {
	m.steps++
	switch op := m.next(); {
	case op < 130 || len(m.live) == 0:
		m.malloc()
	case op < 220:
		m.drop(m.a.Free)
	case op < 232:
		m.drop(func(b Block) { m.wait = append(m.wait, m.a.Defer(b)) })
	case op < 244:
		if len(m.wait) > 0 {
			m.a.Complete(m.wait[int(m.next())%len(m.wait)])
		}
	case op < 248:
		m.a.EmptyCache()
		m.wait = nil
		if n := m.a.Releasable(); n != 0 {
			m.t.Fatalf("%d bytes stay releasable", n)
		}
	case op < 250:
		m.a.EmptyPool(m.pools[1+m.next()%2])
		m.wait = nil
	case op < 252:
		m.a.SetIdle(m.pools[1 : 2+m.next()%2])
	default:
		m.a.SetExpandable(m.one(2))
	}
	m.check()
}

// drop ends the life of an allocation.
func (m *machine) drop(free func(Block)) {
	i := (int(m.next())<<8 | int(m.next())) % len(m.live)
	b := m.live[i]
	m.live = slices.Delete(m.live, i, i+1)
	free(b)
}

// malloc asks for memory and holds the block against the one that a look at all
// of them finds best.
func (m *machine) malloc() {
	request, stream := m.size(), m.a.Stream(uint64(m.next()%3)*16)
	id := m.a.Pool(m.pools[max(0, int(m.next()%8)-5)])
	want, calls := m.best(request, stream, id), m.device.calls
	var addr uint64
	if want != 0 {
		addr = m.a.sets[want].addr
	}
	if m.a.Hits(request, stream, id) != (want != 0) {
		m.t.Fatalf("Hits of %d bytes is %t", request, want == 0)
	}
	before := m.a.Stats
	b, ok := m.a.Malloc(request, stream, id)
	if !ok {
		if m.a.OOMs != before.OOMs+1 || want != 0 {
			m.t.Fatalf("%d bytes are refused, though a block serves: %t", request, want != 0)
		}
		return
	}
	m.live = append(m.live, b)
	got, size := m.a.Size(b), m.a.set.Round(request)
	if got < size || got < request {
		m.t.Fatalf("%d bytes for a request of %d", got, request)
	}
	if want != 0 && (m.device.calls != calls || m.a.Addr(b) != addr) {
		m.t.Fatalf("%d bytes at 0x%x with %d calls of the driver, want 0x%x", request, m.a.Addr(b), m.device.calls-calls, addr)
	}
	// A place in an expandable segment can have become free by waiting for streams.
	if want == 0 && m.device.calls == calls && !m.a.expands() {
		m.t.Fatalf("%d bytes at 0x%x, of which no free block has so many", request, m.a.Addr(b))
	}
	if (size <= SmallLimit || m.a.expands()) && got != size {
		m.t.Fatalf("%d bytes are not split for %d", got, size)
	}
}

// best is get_free_block, as slow and as plain as can be.
func (m *machine) best(request int64, stream Stream, id Pool) int32 {
	a, size, p := m.a, m.a.set.Round(request), int32(id)
	if size > SmallLimit {
		p++
	}
	l := a.laneOf(p, stream)
	var fit []int32
	for i := range a.blocks {
		if x := &a.blocks[i]; x.state == free && x.lane == l && a.sets[i].size >= size {
			fit = append(fit, int32(i))
		}
	}
	slices.SortFunc(fit, func(x, y int32) int {
		return cmp.Or(cmp.Compare(a.sets[x].size, a.sets[y].size), cmp.Compare(a.sets[x].birth, a.sets[y].birth),
			cmp.Compare(a.sets[x].addr, a.sets[y].addr))
	})
	room := func(b int32) int64 {
		n := a.sets[b].size
		if next := a.blocks[b].next; next != 0 && a.blocks[next].state == unmapped {
			n += a.sets[next].size
		}
		return n
	}
	if !a.set.Expandable && len(fit) > 0 && a.blocks[fit[0]].within != 0 {
		fit = slices.DeleteFunc(fit, func(b int32) bool { return a.blocks[b].within != 0 })
	}
	for a.set.Expandable && len(fit) > 1 && a.blocks[fit[0]].within != 0 && room(fit[1]) < room(fit[0]) {
		fit = fit[1:]
	}
	if len(fit) == 0 {
		return 0
	}
	got, limit := a.sets[fit[0]].size, a.set.MaxSplitSize
	if size < limit && got >= limit || size >= limit && got >= size+a.set.MaxNonSplitRounding {
		return 0
	}
	return fit[0]
}

// check holds all that must be true of an allocator at any time.
func (m *machine) check() {
	if err := m.a.consistent(m.device); err != nil {
		m.t.Fatalf("after step %d: %v", m.steps, err)
	}
	if n := len(m.live); n != m.count(taken) {
		m.t.Fatalf("after step %d: %d blocks are taken, of %d", m.steps, m.count(taken), n)
	}
}

func (m *machine) count(s state) (n int) {
	for i := range m.a.blocks {
		if m.a.blocks[i].state == s {
			n++
		}
	}
	return n
}

// What was freed on a stream serves that stream alone, however many there are,
// and is returned by the order of their handles.
func TestManyStreams(t *testing.T) {
	const streams, bytes = 40, 20 << 20
	d := newFakeDevice(t, 1<<40)
	a := New(DefaultSettings(), 0, d)
	addrs := map[uint64]uint64{}
	for handle := uint64(streams); handle > 0; handle-- {
		b, _ := a.Malloc(bytes, a.Stream(handle), Default)
		addrs[handle] = a.Addr(b)
		a.Free(b)
	}
	for handle, want := range addrs {
		b, _ := a.Malloc(bytes, a.Stream(handle), Default)
		if got := a.Addr(b); got != want {
			t.Errorf("stream %d has 0x%x, want 0x%x", handle, got, want)
		}
		a.Free(b)
	}
	handles := []uint64{}
	for _, l := range a.byHandle(a.poolOf(PoolID{}, false)) {
		handles = append(handles, a.streams[a.lanes[l].stream])
	}
	if len(handles) != streams || !slices.IsSorted(handles) {
		t.Errorf("streams in the order %v", handles)
	}
}

func TestMachine(t *testing.T) {
	runs, steps := 150, 400
	if testing.Short() {
		runs = 20
	}
	ran := Stats{}
	for seed := range runs {
		rng := rand.New(rand.NewPCG(uint64(seed), 5))
		m := newMachine(t, func() byte { return byte(rng.Uint32()) })
		for range steps {
			m.step()
		}
		s := m.a.Stats
		ran.Retries += s.Retries
		ran.OOMs += s.OOMs
		ran.Frees += s.Frees
		ran.Unmaps += s.Unmaps
		for len(m.live) > 0 {
			m.drop(m.a.Free)
		}
		m.a.SetIdle(m.pools[1:3])
		m.a.EmptyCache()
		if m.check(); m.device.used != 0 || m.a.Reserved != 0 || m.a.Active != 0 {
			t.Fatalf("seed %d: %d bytes are left when all is freed", seed, m.device.used)
		}
	}
	if ran.Retries == 0 || ran.OOMs == 0 || ran.Frees == 0 || ran.Unmaps == 0 {
		t.Errorf("the machine does too little: %+v", ran)
	}
}

func FuzzMachine(f *testing.F) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 7))
		data := make([]byte, 600)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := newMachine(t, func() byte {
			if len(data) == 0 {
				return 0
			}
			b := data[0]
			data = data[1:]
			return b
		})
		for n := 0; len(data) > 0 && n < 300; n++ {
			m.step()
		}
	})
}

// The sets do what a sorted slice does.
func TestSets(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	const n = 300
	s := make(sets, n)
	size := func() int64 { return int64(rng.IntN(22)) * 512 << (10 * rng.IntN(3)) }
	for i := range s {
		s[i] = node{size: size(), birth: uint32(i % 3), addr: uint64(i) * 512}
	}
	var f set
	var model []int32
	order := func(x int32, k node) int {
		return cmp.Or(cmp.Compare(s[x].size, k.size), cmp.Compare(s[x].birth, k.birth), cmp.Compare(s[x].addr, k.addr))
	}
	at := func(i int) int32 {
		if i < 0 || i >= len(model) {
			return 0
		}
		return model[i]
	}
	for range 20000 {
		x := int32(1 + rng.IntN(n-1))
		if i, in := slices.BinarySearchFunc(model, s[x], order); in {
			s.remove(&f, x)
			model = slices.Delete(model, i, i+1)
		} else {
			s.insert(&f, x)
			model = slices.Insert(model, i, x)
		}
		k := node{size: size(), birth: uint32(rng.IntN(4)), addr: uint64(rng.IntN(n+2)) * 512}
		p := place{k.size, k.birth, k.addr}
		i, _ := slices.BinarySearchFunc(model, k, order)
		if got := s.atLeast(&f, p); got != at(i) {
			t.Fatalf("the first from %v on is %d, want %d", k, got, at(i))
		}
		if i < len(model) {
			if got := s.after(&f, model[i]); got != at(i+1) {
				t.Fatalf("behind %d is %d, want %d", model[i], got, at(i+1))
			}
		}
		if got := s.all(&f, nil); !slices.Equal(got, model) {
			t.Fatalf("the set is %v, want %v", got, model)
		}
	}
}

// TestLoadOfHoles loads segments whose blocks do not cover them: the allocator stays empty.
func TestLoadOfHoles(t *testing.T) {
	const at = 1 << 30
	whole := Segment{Addr: at, Size: SmallBuffer, Small: true, Blocks: []Piece{{Addr: at, Size: SmallBuffer}}}
	for name, blocks := range map[string][]Piece{
		"gap":     {{Addr: 2 * at, Size: 512}, {Addr: 2*at + 1024, Size: SmallBuffer - 1024, State: Allocated}},
		"empty":   {{Addr: 2 * at}, {Addr: 2 * at, Size: SmallBuffer, State: Allocated}},
		"short":   {{Addr: 2 * at, Size: 512}, {Addr: 2*at + 512, Size: 512, State: Allocated}},
		"nothing": nil,
	} {
		a := New(DefaultSettings(), 0, newFakeDevice(t, 1<<30))
		bad := Segment{Addr: 2 * at, Size: SmallBuffer, Small: true, Blocks: blocks}
		err := a.Load([]Segment{whole, bad}, func(addr uint64) uint64 { return addr })
		if got := a.Segments(); err == nil || len(got) > 0 || a.Reserved > 0 {
			t.Errorf("%s: error %v, segments %v, %d bytes", name, err, got, a.Reserved)
		}
	}
}
