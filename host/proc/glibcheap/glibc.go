// Package glibcheap reads from outside how glibc's malloc uses memory: how much its
// arenas took from the system, and how much of that is free and was not given back.
// Nothing runs in the process, and it is not stopped, so the figures are an estimate:
// if the process allocates meanwhile, some lists are followed only in part.
package glibcheap

import (
	"encoding/binary"
	"errors"
	"slices"

	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/host/proc/vmmap"
)

// An Arena is one of malloc's arenas. All sizes are in bytes.
type Arena struct {
	address uint64
	main    bool   // the one that grows by brk()
	System  uint64 // taken from the system
	Free    uint64 // the part of System that is not in use: in lists and after the last chunk
	top     uint64 // the part of Free that is after the last chunk
	chunks  int    // the number of free chunks in lists
	// partial states that a list could not be followed to its end, so that more may be
	// free.
	partial bool
}

// ErrNone states that a process does not use glibc's malloc, or uses one whose layout is
// not known.
var ErrNone = errors.New("no arena of glibc's malloc is in the process")

// The layout of an arena since glibc 2.27, on 64-bit machines.
const (
	atFast   = 16
	fasts    = 10
	atTop    = 96
	atBins   = 112
	bins     = 127
	atNext   = 2160
	atSystem = 2184
	size     = 2200
)

// Bounds on what is read from a possibly hostile process.
const (
	maxArenas = 4096
	maxChunks = 1 << 20 // of all arenas
)

// Arenas returns the arenas of a process. They form a ring, which is entered through a
// heap of any of them, or through the main arena, which is in the library's data.
func Arenas(im *image.Image) ([]Arena, error) {
	start, ok := entrance(im)
	if !ok {
		return nil, ErrNone
	}
	w := &walk{memory: im, left: maxChunks, writable: func(at uint64) bool {
		m, ok := im.Map.Find(at)
		return ok && m.Write
	}}
	out := w.ring(start)
	if len(out) == 0 {
		return nil, ErrNone
	}
	return out, nil
}

// entrance finds one arena.
func entrance(im *image.Image) (uint64, bool) {
	for _, m := range im.Map.Mappings {
		if im.Map.Kind(m) != vmmap.Arena {
			continue
		}
		var b [8]byte
		if im.Read(b[:], m.Start) != nil {
			continue
		}
		if at := binary.LittleEndian.Uint64(b[:]); looksLike(im, at) {
			return at, true
		}
	}
	for i, m := range im.Map.Mappings {
		if m.Write && m.Inode == 0 && i > 0 && followsLibc(im, im.Map.Mappings[:i]) || m.Write && m.Inode != 0 && isLibc(im, m) {
			if at, ok := search(im, m); ok {
				return at, true
			}
		}
	}
	return 0, false
}

// followsLibc reports whether a mapping is the memory after the library's data, which has no
// file.
func followsLibc(im *image.Image, before []procfs.Mapping) bool {
	last := before[len(before)-1]
	return last.Write && last.Inode != 0 && isLibc(im, last)
}

// isLibc reports whether a mapping is of the file that contains malloc: the library, or
// a program that it is linked into.
func isLibc(im *image.Image, m procfs.Mapping) bool {
	o := im.Object(m)
	if o == nil {
		return false
	}
	_, ok := o.Data("gnu_get_libc_version")
	return ok || o.Fixed()
}

// maxData bounds the data that is searched for the main arena.
const maxData = 16 << 20

// search looks for the main arena in the library's data, recognizing it by its form.
func search(im *image.Image, m procfs.Mapping) (uint64, bool) {
	data := make([]byte, min(m.Size(), maxData))
	if im.Read(data, m.Start) != nil {
		return 0, false
	}
	for at := 0; at+size <= len(data); at += 8 {
		if isArena(data[at:], m.Start+uint64(at)) {
			return m.Start + uint64(at), true
		}
	}
	return 0, false
}

func looksLike(im *image.Image, at uint64) bool {
	b := make([]byte, size)
	return im.Read(b, at) == nil && isArena(b, at)
}

// isArena recognizes an arena by its lists: an empty one points to itself twice, and
// most are empty or hold aligned chunks.
func isArena(b []byte, at uint64) bool {
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	if top := word(atTop); top == 0 || top%16 != 0 || word(atSystem) == 0 || word(atNext) == 0 || word(atNext)%8 != 0 {
		return false
	}
	empty := 0
	for i := range bins {
		fd, bk := word(atBins+16*i), word(atBins+16*i+8)
		switch self := head(at, i); {
		case fd == self && bk == self:
			empty++
		case fd%16 != 0 || bk%16 != 0 || fd == 0 || bk == 0 || fd == self || bk == self:
			return false
		}
	}
	return empty > 0
}

// head returns the address of the chunk that stands for a list itself.
func head(arena uint64, bin int) uint64 { return arena + uint64(atBins+16*bin-16) }

// A memory is the memory of a process.
type memory interface {
	Read(b []byte, addr uint64) error
}

// walk follows the lists of arenas.
type walk struct {
	memory
	writable func(addr uint64) bool
	left     int // chunks that may still be read
	pages    map[uint64][]byte
}

const (
	page     = 4096
	maxPages = 4096 // that are cached
)

// read reads less than a page, from cached pages.
func (w *walk) read(b []byte, at uint64) bool {
	from := at % page
	p, known := w.pages[at-from]
	if !known {
		if p = make([]byte, page); w.Read(p, at-from) != nil {
			p = nil
		}
		if len(w.pages) >= maxPages || w.pages == nil {
			w.pages = map[uint64][]byte{}
		}
		w.pages[at-from] = p
	}
	if p == nil {
		return false
	}
	n := copy(b, p[from:])
	return n == len(b) || w.read(b[n:], at-from+page)
}

// ring reads the arenas, starting with one of them.
func (w *walk) ring(start uint64) (out []Arena) {
	for at := start; len(out) < maxArenas && w.left > 0; {
		a, next, ok := w.arena(at)
		if !ok {
			break // it changed while it was read, or is not an arena
		}
		out = append(out, a)
		if at = next; at == start || slices.ContainsFunc(out, func(a Arena) bool { return a.address == at }) {
			break
		}
	}
	return out
}

func (w *walk) arena(at uint64) (a Arena, next uint64, ok bool) {
	b := make([]byte, size)
	if !w.read(b, at) || !isArena(b, at) {
		return a, 0, false
	}
	word := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	const ahead = 256 // other arenas come after the header of their first heap
	a = Arena{address: at, main: at%vmmap.ArenaSize > ahead, System: word(atSystem)}
	if c, ok := w.chunk(word(atTop)); ok {
		a.top = c.size
		a.Free = c.size
	}
	for i := range bins {
		w.list(&a, word(atBins+16*i), head(at, i))
	}
	for i := range fasts {
		w.fast(&a, word(atFast+8*i))
	}
	if a.Free > a.System {
		a.Free, a.partial = a.System, true
	}
	return a, word(atNext), true
}

// A chunk of memory: its size, and the next one in its list.
type chunk struct{ size, fd uint64 }

func (w *walk) chunk(at uint64) (chunk, bool) {
	var b [24]byte
	if w.left == 0 || at%16 != 0 || !w.read(b[:], at) {
		return chunk{}, false
	}
	w.left--
	return chunk{binary.LittleEndian.Uint64(b[8:]) &^ 7, binary.LittleEndian.Uint64(b[16:])}, true
}

// list adds the chunks of a list that ends where it began.
func (w *walk) list(a *Arena, at, end uint64) {
	for at != end {
		c, ok := w.add(a, at)
		if !ok {
			return
		}
		at = c.fd
	}
}

// fast adds the chunks of a list that ends with 0. Since 2.32 its pointers are mangled
// with the address at which they are stored.
func (w *walk) fast(a *Arena, at uint64) {
	for at != 0 {
		c, ok := w.add(a, at)
		if !ok {
			return
		}
		mixed := c.fd ^ (at+16)>>12
		if at = c.fd; mixed%16 == 0 && (mixed == 0 || w.writable(mixed)) {
			at = mixed
		}
	}
}

// add counts a free chunk; it returns false if there is none, so that the rest of the
// list is skipped.
func (w *walk) add(a *Arena, at uint64) (chunk, bool) {
	c, ok := w.chunk(at)
	if !ok || c.size > a.System {
		a.partial = true
		return c, false
	}
	a.Free += c.size
	a.chunks++
	return c, true
}
