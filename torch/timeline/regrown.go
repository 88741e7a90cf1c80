package timeline

import (
	"slices"
	"sort"

	"strandline/stack"
	"strandline/torch/snapshot"
)

// A Regrown is a tensor that is reallocated time and again, larger each time, and
// whose predecessor is freed at once: as torch.cat does of a tensor and what is
// appended to it.
type Regrown struct {
	Stack  stack.ID // of the newest piece
	Events []int    // that allocated the pieces, in order
	Sizes  []int64  // of the pieces, requested bytes
	Live   bool     // the newest piece lives at the end
	// Joined is how many pieces are larger than the one before by the size of another
	// allocation that lived when they were allocated: what was appended.
	Joined int
	// Work is the bytes of all other allocations in the last third of the intervals
	// between pieces by those in the first third; 0 if there were none.
	Work float64
	// Free is the bytes that are free at the end in the segments in which pieces were.
	Free int64
}

// minPieces of a tensor that is reallocated are followed.
const minPieces = 4

// Regrowths finds the tensors of a history that are reallocated, larger each time,
// the newest piece's place last allocated first.
func Regrowths(t *Timeline) (out []Regrown) {
	chains := t.regrownChains()
	if len(chains) == 0 {
		return nil
	}
	joined, work, free := t.joined(chains), t.allocatedBeside(chains), t.freeSpans()
	for k, chain := range chains {
		r := Regrown{Joined: joined[k], Stack: t.Stack(chain[len(chain)-1]), Live: t.Freed(chain[len(chain)-1]) == Never}
		for _, i := range chain {
			r.Events = append(r.Events, t.Birth(i))
			r.Sizes = append(r.Sizes, t.Size(i))
		}
		r.Work = workGrew(chain, work)
		r.Free = t.freeAround(chain, free)
		out = append(out, r)
	}
	return out
}

// regrownChains are the allocations of each such tensor, the newest tensor first.
func (t *Timeline) regrownChains() (chains [][]int) {
	before := t.predecessors()
	followed := make([]bool, len(before))
	for i := len(before) - 1; i >= 0; i-- {
		if before[i] == 0 || followed[i] {
			continue
		}
		chain := []int{i}
		for a := i; before[a] != 0; {
			a = int(before[a]) - 1
			followed[a] = true
			chain = append(chain, a)
		}
		if len(chain) >= minPieces {
			slices.Reverse(chain)
			chains = append(chains, chain)
		}
	}
	return chains
}

// predecessors are, by allocation and numbered from 1, the smaller one of the same place that it takes the
// place of: it lives when the new one is allocated, and is freed before another place
// allocates.
func (t *Timeline) predecessors() []int32 {
	e := &t.Trace.Events
	freedAt := make([]int32, e.Len()) // the allocation that an event frees, from 1 on
	for i := range t.Allocs {
		if k := t.Freed(i); k >= 0 {
			freedAt[k] = int32(i) + 1
		}
	}
	before := make([]int32, len(t.Allocs))
	newest := len(t.before) - 1
	for k, action := range e.Action {
		if action == snapshot.Alloc {
			newest++
			continue
		}
		if a := int(freedAt[k]) - 1; a >= len(t.before) && t.Size(a) < t.Size(newest) && t.samePlace(a, newest) {
			if b := t.successor(a, newest, before); b >= 0 {
				before[b] = int32(a) + 1
			}
		}
	}
	return before
}

// successor is the first larger one of the last allocations, which one place made
// without another in between, that follows a and takes the place of nothing yet; -1 if
// there is none.
func (t *Timeline) successor(a, newest int, before []int32) int {
	found := -1
	for b := newest; b > max(a, newest-maxAtOnce) && t.samePlace(b, newest); b-- {
		if before[b] == 0 && t.Size(b) > t.Size(a) {
			found = b
		}
	}
	return found
}

// maxAtOnce is how many tensors one place may allocate again before the first of their
// predecessors is freed, as for the layers of a model.
const maxAtOnce = 128

// samePlace reports whether one known place made two allocations.
func (t *Timeline) samePlace(a, b int) bool {
	places := t.places()
	x := places[t.Stack(a)]
	return x != 0 && x == places[t.Stack(b)]
}

// newPlaces numbers the places of all stacks: 0 is unknown, and equal numbers are
// of one place. A million events compare the places of some thousand stacks.
func (t *Timeline) newPlaces() []int32 {
	stacks := t.Snap.Stacks
	numbers := map[stack.Site]int32{{}: 0}
	places := make([]int32, stacks.Len())
	for id := range places {
		site := stacks.Site(stack.ID(id))
		n, known := numbers[site]
		if !known {
			n = int32(len(numbers))
			numbers[site] = n
		}
		places[id] = n
	}
	return places
}

// joined counts for each chain the pieces that are larger than the one before by the
// size of another allocation: one that was made in between and lives then.
func (t *Timeline) joined(chains [][]int) []int {
	parts := map[int64][]int{} // allocations of the sizes that pieces grew by
	var some [1 << 12]bool     // by bits of a size: whether it can be one of them, as few are
	bits := func(size int64) int64 { return (size ^ size>>9) & int64(len(some)-1) }
	for _, chain := range chains {
		for j, i := range chain[1:] {
			grew := t.Size(i) - t.Size(chain[j])
			parts[grew], some[bits(grew)] = nil, true
		}
	}
	for i := range t.Allocs {
		size := t.Size(i)
		if !some[bits(size)] {
			continue
		}
		if list, ok := parts[size]; ok {
			parts[size] = append(list, i)
		}
	}
	const maxTried = 64 // that are looked at for a piece
	out := make([]int, len(chains))
	for c, chain := range chains {
		for j, i := range chain[1:] {
			list := parts[t.Size(i)-t.Size(chain[j])]
			from, to := sort.SearchInts(list, chain[j]+1), sort.SearchInts(list, i)
			for _, x := range list[max(from, to-maxTried):to] {
				if freed := t.Freed(x); freed == Never || freed > t.Birth(i) {
					out[c]++
					break
				}
			}
		}
	}
	return out
}

// allocatedBeside is the bytes allocated before each allocation but for those of chains.
func (t *Timeline) allocatedBeside(chains [][]int) []int64 {
	some := make([]bool, len(t.Allocs))
	for _, chain := range chains {
		for _, i := range chain {
			some[i] = true
		}
	}
	sum := make([]int64, len(t.Allocs)+1)
	for i := range t.Allocs {
		sum[i+1] = sum[i]
		if !some[i] && !t.Before(i) {
			sum[i+1] += t.Size(i)
		}
	}
	return sum
}

// workGrew compares what was allocated between the pieces of a chain.
func workGrew(chain []int, allocated []int64) float64 {
	n := len(chain) - 1
	third := max(1, n/3)
	first := allocated[chain[third]] - allocated[chain[0]]
	last := allocated[chain[n]] - allocated[chain[n-third]]
	if first <= 0 {
		return 0
	}
	return float64(last) / float64(first)
}

// A freeSpan is a segment, and how much of it is free at the end.
type freeSpan struct {
	from, to uint64
	free     int64
}

func (t *Timeline) freeSpans() (out []freeSpan) {
	for _, i := range t.device.Segments {
		seg := &t.Snap.Segments[i]
		x := freeSpan{from: seg.Addr, to: seg.Addr + uint64(max(seg.TotalSize, 0))}
		for j := range seg.Blocks {
			if b := &seg.Blocks[j]; !b.State.Active() {
				x.free += b.Size
			}
		}
		out = append(out, x)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].from < out[j].from })
	return out
}

// freeAround is what is free in the segments in which some allocations were.
func (t *Timeline) freeAround(chain []int, spans []freeSpan) (free int64) {
	seen := map[int]bool{}
	for _, i := range chain {
		k := sort.Search(len(spans), func(k int) bool { return spans[k].to > t.Addr(i) })
		if k < len(spans) && spans[k].from <= t.Addr(i) && !seen[k] {
			seen[k] = true
			free += spans[k].free
		}
	}
	return free
}
