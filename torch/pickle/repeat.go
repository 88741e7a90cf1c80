package pickle

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
)

// A Repeater is a [Handler] that can fill a list at once with what another one
// holds. Most of a snapshot are stacks, and most stacks occurred before: the
// same fetches from the memo, byte for byte.
type Repeater interface {
	// Repeat fills the empty list as the list of was filled, and reports whether it
	// could.
	Repeat(list, of uint64) bool
}

// repeats knows runs of fetches by their bytes, and a list that each has filled.
type repeats struct {
	slots []repeat // by hash, a power of two
	bytes []byte   // of all runs
	n     int
	last  uint16 // the slot of the last run
}

// A repeat is a run, up to the opcode that appends what was fetched.
type repeat struct {
	from uint32 // of bytes
	size uint16 // 0 is a free slot
	next uint16 // the slot of the run that last came after it
	list uint64
}

const (
	minSlots = 1 << 8 // most files have some hundred stacks
	maxSlots = 1 << 14
	maxRun   = 4 << 10 // bytes; longer ones are not looked at
)

var (
	seed       = maphash.Bytes(maphash.MakeSeed(), nil) | 1
	emptyTable repeats
)

// forget is called when the memo changes under the runs.
func (r *repeats) forget() {
	if r.n > 0 {
		*r = emptyTable
	}
}

// repeated returns how many bytes at from fill the list on top of the stack in a
// way that was seen before, and fills it; 0 if they do not. A run that is new is
// remembered, and read as usual.
func (d *decoder) repeated(buf []byte, from int, stack []Value) int {
	if d.repeater == nil || len(stack) == 0 || stack[len(stack)-1].Kind != List {
		return 0
	}
	list := stack[len(stack)-1].N
	end := min(len(buf)-margin, from+maxRun)
	if end <= from {
		return 0
	}
	size, known := d.repeats.expected(buf[from:end])
	if size == 0 {
		if size = runOf(buf[from:end]); size == 0 {
			return 0
		}
		known = d.repeats.find(buf[from:from+size], list)
	}
	if known != list && d.repeater.Repeat(list, known) {
		return size
	}
	return 0
}

// runOf returns the length of the run that some bytes begin with, 0 if they do not.
func runOf(buf []byte) int {
	for to := 0; to < len(buf); {
		switch buf[to] {
		case opLongBinGet:
			to += 5
		case opBinGet:
			to += 2
		case opAppends:
			if to == 0 {
				return 0
			}
			return to + 1
		default:
			return 0
		}
	}
	return 0
}

// expected returns the length of the run that came after the last one before, and its
// list, if some bytes begin with it: a program that runs in a loop allocates at the
// same places in the same order.
func (r *repeats) expected(buf []byte) (size int, list uint64) {
	if r.n == 0 {
		return 0, 0
	}
	next := r.slots[r.last].next
	s := &r.slots[next]
	if s.size == 0 || !bytes.HasPrefix(buf, r.run(s)) {
		return 0, 0
	}
	r.last = next
	return int(s.size), s.list
}

func (r *repeats) run(s *repeat) []byte { return r.bytes[s.from : s.from+uint32(s.size)] }

// find returns the list that a run has filled; a new run is entered with list.
func (r *repeats) find(run []byte, list uint64) uint64 {
	if r.slots == nil {
		r.grow()
	}
	at := r.slot(run)
	if r.slots[at].size == 0 {
		if 2*r.n >= len(r.slots) {
			if !r.grow() {
				return list
			}
			at = r.slot(run)
		}
		r.slots[at] = repeat{from: uint32(len(r.bytes)), size: uint16(len(run)), list: list}
		r.bytes = append(r.bytes, run...)
		r.n++
	}
	r.slots[r.last].next, r.last = at, at
	return r.slots[at].list
}

// slot returns where a run is, or would be entered.
func (r *repeats) slot(run []byte) uint16 {
	mask := uint64(len(r.slots) - 1)
	for i := hashBytes(run) & mask; ; i = (i + 1) & mask {
		if s := &r.slots[i]; s.size == 0 || int(s.size) == len(run) && bytes.Equal(r.run(s), run) {
			return uint16(i)
		}
	}
}

// grow makes room. If there are too many runs to be repeats, it starts over and
// reports false.
func (r *repeats) grow() bool {
	old := r.slots
	if len(old) == maxSlots {
		*r = emptyTable
		return false
	}
	r.slots, r.last = make([]repeat, max(minSlots, 4*len(old))), 0
	for _, s := range old {
		if s.size > 0 {
			s.next = 0
			r.slots[r.slot(r.run(&s))] = s
		}
	}
	return true
}

func hashBytes(b []byte) uint64 {
	h := uint64(len(b))
	for ; len(b) >= 8; b = b[8:] {
		h = (h ^ binary.LittleEndian.Uint64(b)) * seed
		h ^= h >> 29
	}
	for _, c := range b {
		h = (h ^ uint64(c)) * seed
	}
	return h ^ h>>32
}
