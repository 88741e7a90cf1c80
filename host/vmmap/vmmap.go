// Package vmmap is the memory map of a process as a model: what each mapping is
// for, and how a map differs from an earlier one.
//
// It reads nothing: package procfs does. Note that arenas and stacks of threads have no
// name of their own, and are recognised by their form and neighbours.
package vmmap

import (
	"slices"
	"sort"
	"strings"

	"strandline/host/procfs"
)

// A Kind says what a mapping is for.
type Kind string

// The kinds of mapping.
const (
	Heap      Kind = "heap"      // what brk() gives: the main arena of malloc
	Arena     Kind = "arena"     // another arena of glibc's malloc
	Stack     Kind = "stack"     // of the main thread
	Thread    Kind = "thread"    // stack of another thread
	Anonymous Kind = "anonymous" // private memory without a file
	Shared    Kind = "shared"    // shared memory: /dev/shm, System V, shared anonymous
	Memfd     Kind = "memfd"     // a file that only lives in memory
	File      Kind = "file"      // a file on a disk
	Special   Kind = "special"   // of the kernel: vdso and its kin
)

// ArenaSize is how much address space one heap of a glibc arena takes, and what
// its start is a multiple of.
const ArenaSize = 64 << 20

// KindOf is the kind of one mapping, as far as its own line shows. Arenas and
// stacks of threads are found by [Map.Kind].
func KindOf(m procfs.Mapping) Kind {
	switch {
	case m.Path == "[heap]":
		return Heap
	case m.Path == "[stack]":
		return Stack
	case strings.HasPrefix(m.Path, "[anon:") && !m.Shared, m.Path == "":
		return Anonymous
	case strings.HasPrefix(m.Path, "["):
		return Special
	case strings.HasPrefix(m.Path, "/memfd:"):
		return Memfd
	case m.Shared && (strings.HasPrefix(m.Path, "/dev/shm/") || strings.HasPrefix(m.Path, "/SYSV") || m.Path == "/dev/zero"):
		return Shared
	case strings.HasPrefix(m.Path, "/dev/shm/"):
		return Shared
	}
	return File
}

// A Map is the mappings of a process at one moment, by address.
type Map struct {
	Mappings []procfs.Mapping
}

// New makes a map. The mappings may come in any order; those that overlap an
// earlier one, as a list does that changed while it was read, are left out.
func New(mappings []procfs.Mapping) *Map {
	sorted := slices.Clone(mappings)
	slices.SortStableFunc(sorted, func(a, b procfs.Mapping) int {
		switch {
		case a.Start < b.Start:
			return -1
		case a.Start > b.Start:
			return 1
		}
		return 0
	})
	out := sorted[:0]
	for _, m := range sorted {
		if m.Size() > 0 && (len(out) == 0 || out[len(out)-1].End <= m.Start) {
			out = append(out, m)
		}
	}
	return &Map{out}
}

// Find is the mapping that holds an address.
func (m *Map) Find(addr uint64) (procfs.Mapping, bool) {
	i := m.after(addr)
	if i < len(m.Mappings) && m.Mappings[i].Contains(addr) {
		return m.Mappings[i], true
	}
	return procfs.Mapping{}, false
}

// after is the first mapping that ends behind an address.
func (m *Map) after(addr uint64) int {
	return sort.Search(len(m.Mappings), func(i int) bool { return m.Mappings[i].End > addr })
}

// Within calls f with the mapped parts of a range.
func (m *Map) Within(start, end uint64, f func(start, end uint64)) {
	for i := m.after(start); i < len(m.Mappings) && m.Mappings[i].Start < end; i++ {
		f(max(start, m.Mappings[i].Start), min(end, m.Mappings[i].End))
	}
}

// Kind is what the mapping that starts at an address is for, by its line and by
// its neighbours.
func (m *Map) Kind(of procfs.Mapping) Kind {
	kind := KindOf(of)
	if kind != Anonymous || !of.Write || of.Exec {
		return kind
	}
	i := m.after(of.Start)
	switch {
	case m.isArena(i):
		return Arena
	case i > 0 && i < len(m.Mappings) && isGuard(m.Mappings[i-1]) && m.Mappings[i-1].End == of.Start:
		return Thread
	}
	return kind
}

// isArena recognises a heap of a glibc arena: it starts on a multiple of 64 MiB, and
// what it does not use yet is mapped behind it without permissions.
func (m *Map) isArena(i int) bool {
	if i >= len(m.Mappings) {
		return false
	}
	heap := m.Mappings[i]
	if heap.Start%ArenaSize != 0 || heap.Size() > ArenaSize {
		return false
	}
	if heap.Size() == ArenaSize {
		return true
	}
	if i+1 >= len(m.Mappings) {
		return false
	}
	rest := m.Mappings[i+1]
	return rest.Start == heap.End && !rest.Read && !rest.Write && rest.Inode == 0 && rest.End >= heap.Start+ArenaSize
}

// isGuard recognises the pages below a thread's stack that nobody may touch.
func isGuard(m procfs.Mapping) bool {
	return !m.Read && !m.Write && !m.Exec && m.Inode == 0 && m.Size() <= 1<<20
}
