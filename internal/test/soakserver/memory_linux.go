package soakserver

import (
	"container/heap"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"syscall"
)

// A memory is what a server keeps of its requests, outside of Go's heap, so that its
// size is known.
type memory struct {
	o     Options
	mu    sync.Mutex
	rand  *rand.Rand
	taken [][]byte // what was mapped to be kept
	arena []byte   // the rest of the last of it
	code  []byte   // the rest of what may be executed
	seed  maphash.Seed
	cache map[uint64]bool
	clock int // requests
	page  *page
	alive expiries
}

func newMemory(o Options) *memory {
	return &memory{o: o, rand: rand.New(rand.NewPCG(o.Seed, 1)), seed: maphash.MakeSeed(), cache: map[uint64]bool{}}
}

// request keeps what the mood of the server is to keep of one request.
func (m *memory) request(prompt []byte, tokens int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock++
	switch m.o.Mood {
	case Leaking:
		take(&m.arena, m.o.Bytes+tokens*m.o.TokenBytes, m.mapped)
	case Compiling:
		take(&m.arena, m.o.Bytes, m.mapped)
		take(&m.code, m.o.Bytes/10, m.executable)
	case Caching:
		key := maphash.Bytes(m.seed, prompt)
		if !m.cache[key] && len(m.cache)*m.o.Bytes < m.o.Capacity {
			m.cache[key] = true
			take(&m.arena, m.o.Bytes, m.mapped)
		}
	case Fragmenting:
		m.fragment()
	}
}

// take uses memory for good, of what is left of an arena and then of new ones.
func take(arena *[]byte, n int, more func() []byte) {
	for n > 0 {
		if len(*arena) == 0 {
			*arena = more()
		}
		part := (*arena)[:min(n, len(*arena))]
		for i := range part {
			part[i] = 1
		}
		*arena = (*arena)[len(part):]
		n -= len(part)
	}
}

func (m *memory) mapped() []byte { return m.keep(mapped(4 << 20)) }

func (m *memory) executable() []byte {
	b := mapped(1 << 20)
	if err := syscall.Mprotect(b, syscall.PROT_READ|syscall.PROT_WRITE|syscall.PROT_EXEC); err != nil {
		panic(err)
	}
	return m.keep(b)
}

func (m *memory) keep(b []byte) []byte {
	m.taken = append(m.taken, b)
	return b
}

// free gives back what was taken.
func (m *memory) free() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.taken {
		syscall.Munmap(b)
	}
	m.taken, m.arena, m.code = nil, nil, nil
}

func mapped(size int) []byte {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	return b
}

// A page holds pieces of different age, and is free again when all of them are.
type page struct {
	memory     []byte
	used, live int
}

// An expiry is the end of a piece.
type expiry struct {
	at int
	of *page
}

type expiries []expiry

func (e expiries) Len() int           { return len(e) }
func (e expiries) Less(i, j int) bool { return e[i].at < e[j].at }
func (e expiries) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *expiries) Push(x any)        { *e = append(*e, x.(expiry)) }
func (e *expiries) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// fragment takes pieces, most of which live for a few requests and some for many, and
// frees pages that are no longer used. What lives is bounded, and so is what is
// mapped: it rises at first, and then stays at several times of what is used.
func (m *memory) fragment() {
	const piece, pieces, slots = 4 << 10, 8, 16
	for range pieces {
		if m.page == nil || m.page.used == slots {
			m.page = &page{memory: mapped(piece * slots)}
		}
		p := m.page
		p.memory[p.used*piece] = 1
		p.used++
		p.live++
		lives := 20.0
		if m.rand.IntN(10) == 0 {
			lives = float64(m.o.Capacity)
		}
		heap.Push(&m.alive, expiry{m.clock + int(m.rand.ExpFloat64()*lives), p})
	}
	for len(m.alive) > 0 && m.alive[0].at <= m.clock {
		p := heap.Pop(&m.alive).(expiry).of
		if p.live--; p.live == 0 && p.used == slots {
			syscall.Munmap(p.memory)
		}
	}
}
