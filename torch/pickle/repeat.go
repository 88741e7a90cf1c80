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
}

type repeat struct {
	from, size uint32 // of bytes; size 0 is a free slot
	list       uint64
}

const (
	repeatSlots = 1 << 14
	maxRun      = 4 << 10 // bytes; longer ones are not looked at
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
	to := from
	end := min(len(buf)-margin, from+maxRun)
	for to < end {
		if op := buf[to]; op == opLongBinGet {
			to += 5
		} else if op == opBinGet {
			to += 2
		} else {
			break
		}
	}
	if to >= end || buf[to] != opAppends || to == from {
		return 0
	}
	list := stack[len(stack)-1].N
	known, ok := d.repeats.find(buf[from:to], list)
	if ok && known != list && d.repeater.Repeat(list, known) {
		return to + 1 - from
	}
	return 0
}

// find is the list that a run has filled; a new run is entered with list.
func (r *repeats) find(run []byte, list uint64) (uint64, bool) {
	if r.slots == nil {
		r.slots = make([]repeat, repeatSlots)
	}
	mask := uint64(repeatSlots - 1)
	for i := hashBytes(run) & mask; ; i = (i + 1) & mask {
		s := &r.slots[i]
		if s.size == 0 {
			if 2*r.n >= repeatSlots { // too many to be repeats: start over
				*r = emptyTable
				return 0, false
			}
			*s = repeat{uint32(len(r.bytes)), uint32(len(run)), list}
			r.bytes = append(r.bytes, run...)
			r.n++
			return list, false
		}
		if int(s.size) == len(run) && bytes.Equal(r.bytes[s.from:s.from+s.size], run) {
			return s.list, true
		}
	}
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
