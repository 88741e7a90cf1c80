// Package vmmap models the memory map of a process: what each mapping is for, and how a
// map differs from an earlier one.
//
// It reads nothing: package procfs does. Note that arenas and thread stacks have no
// names of their own, and are recognized by their form and neighbors.
package vmmap

import (
	"path"
	"slices"
	"sort"
	"strings"

	"strandline/host/proc/procfs"
	"strandline/internal/sorts"
)

// A Kind states what a mapping is for.
type Kind string

// The kinds of mapping.
const (
	Heap      Kind = "heap"      // what brk() returns: the main arena of malloc
	Arena     Kind = "arena"     // another arena of glibc's malloc
	Stack     Kind = "stack"     // of the main thread
	Thread    Kind = "thread"    // stack of another thread
	Anonymous Kind = "anonymous" // private memory without a file
	Shared    Kind = "shared"    // shared memory: /dev/shm, System V, shared anonymous
	Memfd     Kind = "memfd"     // a file that exists only in memory
	File      Kind = "file"      // a file on a disk
	Special   Kind = "special"   // the kernel's: the vDSO and the like
)

// ArenaSize is how much address space one heap of a glibc arena takes, and what its
// address is a multiple of.
const ArenaSize = 64 << 20

// KindOf returns the kind of one mapping, as far as its own line shows it. Arenas and
// thread stacks are found by [Map.Kind].
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

// allocators are libraries that replace glibc's malloc.
var allocators = []string{"libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc", "libhoard", "libsnmalloc", "librpmalloc"}

// Allocator returns the name of a mapped file if it is a library that replaces glibc's
// malloc, such as libjemalloc.so.2; otherwise "".
func Allocator(file string) string {
	name := path.Base(file)
	if slices.ContainsFunc(allocators, func(a string) bool { return strings.HasPrefix(name, a) }) {
		return name
	}
	return ""
}

// A Map is the mappings of a process at one moment, by address.
type Map struct {
	Mappings []procfs.Mapping
}

// New makes a map. The mappings may come in any order; those that overlap an earlier
// one, as can happen in a list that changed while it was read, are left out.
func New(mappings []procfs.Mapping) *Map {
	sorted := slices.Clone(mappings)
	sorts.StableBy(sorted, func(a, b procfs.Mapping) int {
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

// Find returns the mapping that holds an address.
func (m *Map) Find(addr uint64) (procfs.Mapping, bool) {
	i := m.after(addr)
	if i < len(m.Mappings) && m.Mappings[i].Contains(addr) {
		return m.Mappings[i], true
	}
	return procfs.Mapping{}, false
}

// after returns the index of the first mapping that ends after an address.
func (m *Map) after(addr uint64) int {
	return sort.Search(len(m.Mappings), func(i int) bool { return m.Mappings[i].End > addr })
}

// Within calls f with the mapped parts of a range.
func (m *Map) Within(start, end uint64, f func(start, end uint64)) {
	for i := m.after(start); i < len(m.Mappings) && m.Mappings[i].Start < end; i++ {
		f(max(start, m.Mappings[i].Start), min(end, m.Mappings[i].End))
	}
}

// Kind returns what the mapping that starts at an address is for, according to its line
// and its neighbors.
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

// isArena recognizes a heap of a glibc arena: it starts at a multiple of 64 MiB, and
// the part that it does not use yet is mapped after it without permissions.
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

// isGuard recognizes the inaccessible pages below a thread's stack.
func isGuard(m procfs.Mapping) bool {
	return !m.Read && !m.Write && !m.Exec && m.Inode == 0 && m.Size() <= 1<<20
}
