package cpython

import (
	"slices"
	"time"
)

// A History is how many objects the containers of a program held, look by look.
type History struct {
	counts map[Kept][]int64 // by path and kind
	next   time.Time
}

// A look follows the one before after some time, and takes a small share of it.
const (
	lookEvery = 2 * time.Second
	lookShare = 20
	maxLooks  = 12 // of a container that are kept
)

// WhenDue calls look, in which the containers are counted, if it is time for that.
func (h *History) WhenDue(look func()) {
	began := time.Now()
	if began.Before(h.next) {
		return
	}
	look()
	now := time.Now()
	h.next = now.Add(max(lookEvery, lookShare*now.Sub(began)))
}

// Count counts what the containers hold now.
func (h *History) Count(r *Runtime, mem Memory) {
	now := map[Kept]int64{}
	for _, k := range r.Kept(mem) {
		now[Kept{Path: k.Path, Kind: k.Kind}] += k.Count
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

// Each calls f with each container, and the number of its objects at each look.
func (h *History) Each(f func(path, kind string, counts []int64)) {
	for k, counts := range h.counts {
		f(k.Path, k.Kind, counts)
	}
}
