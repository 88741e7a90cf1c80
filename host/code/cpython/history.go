package cpython

import (
	"fmt"
	"slices"
	"time"
)

// A History is how many objects the containers of a program held, look by look.
type History struct {
	// Unread names a Python whose objects are not known; empty if they are.
	Unread string
	counts map[Kept][]int64 // by all but the number and the tensor
	graphs map[Kept]bool    // whether it held a tensor with a graph when it was counted last
	looks  int              // that found a container of the program's own
	next   time.Time
}

// A look follows the one before after some time, and takes a small share of it. The first ones
// that find something come sooner, as a short program needs.
const (
	firstEvery, firstShare = 500 * time.Millisecond, 3
	lookEvery, lookShare   = 2 * time.Second, 10

	firstLooks = 6
	maxLooks   = 12 // of a container that are kept
)

// WhenDue calls look, in which the containers are counted, if it is time for that.
func (h *History) WhenDue(look func()) {
	began := time.Now()
	if began.Before(h.next) {
		return
	}
	look()
	every, share := lookEvery, time.Duration(lookShare)
	if h.looks > 0 && h.looks < firstLooks {
		every, share = firstEvery, firstShare
	}
	now := time.Now()
	h.next = now.Add(max(every, share*now.Sub(began)))
}

// Count counts what the containers hold now. The function graph reports whether a tensor keeps
// a graph.
func (h *History) Count(r *Runtime, mem Memory, graph func(tensor uint64) bool) {
	if r.unread() {
		h.Unread = fmt.Sprintf("this build of CPython 3.%d", r.Minor)
	}
	own, now := false, map[Kept]int64{}
	h.graphs = map[Kept]bool{}
	for _, k := range r.Kept(mem) {
		own = own || !k.Library
		key := Kept{Path: k.Path, Kind: k.Kind, Library: k.Library}
		now[key] += k.Count
		if k.Tensor != 0 && graph(k.Tensor) {
			h.graphs[key] = true
		}
	}
	if own {
		h.looks++
	}
	if h.counts == nil {
		h.counts = map[Kept][]int64{}
	}
	for k, n := range now {
		all := append(h.counts[k], n)
		if len(all) > maxLooks {
			odd := true
			all = slices.DeleteFunc(all, func(int64) bool { odd = !odd; return odd })
		}
		h.counts[k] = all
	}
}

// Each calls f with each container, the number of its objects at each look, and whether it holds
// a tensor with a graph.
func (h *History) Each(f func(path, kind string, library bool, counts []int64, graph bool)) {
	for k, counts := range h.counts {
		f(k.Path, k.Kind, k.Library, counts, h.graphs[k])
	}
}
