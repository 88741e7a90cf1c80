// Package glibc reads the state of glibc's malloc in another process, without
// stopping it and without a symbol: how much each arena took from the kernel,
// and how much of that is free.
//
// The process goes on meanwhile, so what is read can be torn: every list is
// bounded and the figures are estimates. Blocks in the caches of threads
// (at most 7 of a size) count as in use.
package glibc

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"strandline/procfs"
)

// An Arena is one of malloc's. Sizes are bytes.
type Arena struct {
	Addr   uint64
	Main   bool
	System uint64 // taken from the kernel
	Free   uint64 // of that, given back by the program: lists of free chunks and the top
	Top    uint64 // of the free bytes, those at the end, which trimming gives back
}

// Arenas are all arenas of a process.
type Arenas []Arena

// System is what all arenas took from the kernel, in bytes.
func (a Arenas) System() (n uint64) {
	for _, x := range a {
		n += x.System
	}
	return n
}

// Free is what of it is free, in bytes.
func (a Arenas) Free() (n uint64) {
	for _, x := range a {
		n += x.Free
	}
	return n
}

// ErrNone says that the process has no arena that could be found: its malloc is
// another one, or its glibc lays out arenas in a way that is not known.
var ErrNone = errors.New("no arena of glibc's malloc was found")

// The layout of struct malloc_state in glibc 2.26 to 2.42 on machines of 64
// bits (malloc/malloc.c), and of struct malloc_chunk.
const (
	fastBins   = 16
	fastCount  = 10
	topAt      = 96
	bins       = 112
	binCount   = 127
	nextAt     = 2160
	systemAt   = 2184
	stateSize  = 2200
	heapSize   = 64 << 20 // what a heap that is not of the main arena starts on a multiple of
	flagBits   = 7        // of a chunk's size
	mostArenas = 1 << 12
	mostChunks = 4 << 20 // of all lists
)

// Read finds the arenas of a process by its mappings and its memory.
func Read(memory io.ReaderAt, mappings []procfs.Mapping) (Arenas, error) {
	r := reader{memory: memory, mappings: mappings, chunks: mostChunks}
	first := r.first()
	if first == 0 {
		return nil, ErrNone
	}
	var out Arenas
	for at := first; len(out) < mostArenas; {
		a, next, ok := r.arena(at)
		if !ok {
			break
		}
		out = append(out, a)
		if at = next; at == first {
			break
		}
	}
	if len(out) == 0 {
		return nil, ErrNone
	}
	return out, nil
}

type reader struct {
	memory   io.ReaderAt
	mappings []procfs.Mapping
	chunks   int // that may still be read
}

func (r *reader) word(at uint64) uint64 {
	var b [8]byte
	if !r.fill(at, b[:]) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

func (r *reader) fill(at uint64, b []byte) bool {
	if at == 0 || at > 1<<62 {
		return false
	}
	n, _ := r.memory.ReadAt(b, int64(at))
	return n == len(b)
}

// mapped is the writable mapping that holds an address.
func (r *reader) mapped(at uint64) (procfs.Mapping, bool) {
	for _, m := range r.mappings {
		if m.Contains(at) {
			return m, m.Write
		}
	}
	return procfs.Mapping{}, false
}

// first is an arena: the one that a heap of another thread points to, or the
// main one in the data of the C library.
func (r *reader) first() uint64 {
	for _, m := range r.mappings {
		if m.Inode == 0 && m.Write && m.Start%heapSize == 0 {
			if at := r.word(m.Start); r.looksRight(at) {
				return at
			}
		}
	}
	for i, m := range r.mappings {
		if m.Write && inLibrary(r.mappings, i) {
			if at := r.search(m); at != 0 {
				return at
			}
		}
	}
	return 0
}

// inLibrary tells the data of the C library, or of the program, which may hold
// it: of the file, or the memory without a file that follows it.
func inLibrary(mappings []procfs.Mapping, i int) bool {
	for ; i > 0 && mappings[i].Inode == 0 && mappings[i-1].End == mappings[i].Start; i-- {
	}
	m := mappings[i]
	name := m.Path[strings.LastIndexByte(m.Path, '/')+1:]
	return m.Inode != 0 && (strings.HasPrefix(name, "libc.so") || strings.HasPrefix(name, "libc-2") || m.Path == mappings[0].Path)
}

// search looks for the main arena in a mapping.
func (r *reader) search(m procfs.Mapping) uint64 {
	data := make([]byte, min(m.Size(), 1<<20))
	n, _ := r.memory.ReadAt(data, int64(m.Start))
	data = data[:n]
	for at := 0; at+stateSize <= len(data); at += 8 {
		// The main arena is first in its ring, and lists that were never used point
		// to themselves: cheap signs come first.
		last := binary.LittleEndian.Uint64(data[at+bins+16*(binCount-1):])
		self := m.Start + uint64(at) + bins + 16*(binCount-1) - 16
		if last != 0 && last == self && r.looksRight(m.Start+uint64(at)) {
			return m.Start + uint64(at)
		}
	}
	return 0
}

// looksRight tells whether an arena can be at an address: both ends of every
// list of free chunks lead to memory, and what they lead to leads back.
func (r *reader) looksRight(at uint64) bool {
	if at%8 != 0 {
		return false
	}
	state := make([]byte, stateSize)
	if !r.fill(at, state) {
		return false
	}
	system := binary.LittleEndian.Uint64(state[systemAt:])
	top := binary.LittleEndian.Uint64(state[topAt:])
	if system == 0 || system > 1<<46 {
		return false
	}
	if m, ok := r.mapped(top); !ok || r.word(top+8)&^flagBits > m.End-top {
		return false
	}
	for i := range binCount {
		head := at + bins + 16*uint64(i) - 16
		forward := binary.LittleEndian.Uint64(state[bins+16*i:])
		back := binary.LittleEndian.Uint64(state[bins+16*i+8:])
		if (forward == head) != (back == head) {
			return false
		}
		if forward != head {
			if _, ok := r.mapped(forward); !ok {
				return false
			}
		}
	}
	return true
}

// arena reads one, and the address of the next in the ring.
func (r *reader) arena(at uint64) (a Arena, next uint64, ok bool) {
	state := make([]byte, stateSize)
	if !r.fill(at, state) || !r.looksRight(at) {
		return a, 0, false
	}
	word := func(i uint64) uint64 { return binary.LittleEndian.Uint64(state[i:]) }
	a = Arena{Addr: at, System: word(systemAt)}
	if m, ok := r.mapped(at); ok {
		a.Main = m.Start%heapSize != 0
	}
	a.Top = r.word(word(topAt)+8) &^ flagBits
	a.Free = a.Top
	for i := range uint64(binCount) {
		head := at + bins + 16*i - 16
		a.Free += r.list(word(bins+16*i), head, a.System)
	}
	for i := range uint64(fastCount) {
		slot := at + fastBins + 8*i
		a.Free += r.fast(word(fastBins+8*i), slot, a.System)
	}
	a.Free = min(a.Free, a.System)
	return a, word(nextAt), true
}

// list is the bytes of the free chunks from one to the head of their list.
func (r *reader) list(chunk, head, most uint64) (bytes uint64) {
	for chunk != head && bytes < most && r.chunks > 0 {
		var b [24]byte // the size of the one before, its own, the next in the list
		if !r.fill(chunk, b[:]) {
			return bytes
		}
		r.chunks--
		bytes += binary.LittleEndian.Uint64(b[8:]) &^ flagBits
		chunk = binary.LittleEndian.Uint64(b[16:])
	}
	return bytes
}

// fast is the bytes of a list of small chunks. Since glibc 2.32 links are hidden
// by their own address (safe linking).
func (r *reader) fast(chunk, slot, most uint64) (bytes uint64) {
	for chunk != 0 && bytes < most && r.chunks > 0 {
		var b [24]byte
		if !r.fill(chunk, b[:]) {
			return bytes
		}
		r.chunks--
		size := binary.LittleEndian.Uint64(b[8:]) &^ flagBits
		if size < 32 || size > 176 { // no small chunk
			return bytes
		}
		bytes += size
		link := binary.LittleEndian.Uint64(b[16:])
		if link == 0 || link == chunk>>12 || link == (chunk+16)>>12 {
			return bytes
		}
		plain, hidden := link, link^(chunk+16)>>12
		if chunk = plain; plain%16 != 0 {
			chunk = hidden
		} else if _, ok := r.mapped(plain); !ok {
			chunk = hidden
		}
	}
	return bytes
}
