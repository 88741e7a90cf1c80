package allocator

import "math/bits"

// node is a block's place in a set of free blocks, and what the set is ordered
// by. Index 0 of the nodes is "none". The nodes of all sets are side by side,
// as a search goes through many of them: a block has the same index here as
// among the blocks.
type node struct {
	size        int64
	addr        uint64
	birth       uint32 // of its segment, by order; 0 where that decides nothing
	left, right int32
}

type sets []node

// A set has free blocks by (size, birth, address), in parts by size: most have so few
// that they are found almost without a search.
type set struct {
	some    uint64    // bit i: octave i has blocks
	octaves []*octave // by the bits of the number of granules; nil where none ever was
}

// An octave has the sizes from a power of two to the next, in parts that are treaps,
// each named by the index of its root. The order of the heap is a hash of the index, so
// it needs no room.
//
// R. Seidel, C. R. Aragon: Randomized Search Trees, Algorithmica 16 (1996).
type octave struct {
	some  uint16 // bit i: part i has blocks
	parts [16]int32
}

// part is the octave of a size, and the part in it.
func part(size int64) (octave, at int) {
	granules := uint64(size) / Granule
	octave = bits.Len64(granules)
	return octave, int(granules<<5>>octave) & 15
}

// above reports whether block x is above block y in a heap.
func above(x, y int32) bool { return uint32(x)*0x9e3779b1 > uint32(y)*0x9e3779b1 }

// before reports whether block x is sorted before a place.
func (s sets) before(x int32, p place) bool {
	n := &s[x]
	return n.size < p.size || n.size == p.size && (n.birth < p.birth || n.birth == p.birth && n.addr < p.addr)
}

// A place is one in the order of a set.
type place struct {
	size  int64
	birth uint32
	addr  uint64
}

func (s sets) placeOf(x int32) place { return place{s[x].size, s[x].birth, s[x].addr} }

// insert puts block x into a set.
func (s sets) insert(f *set, x int32) {
	n, p := &s[x], s.placeOf(x)
	i, part := part(n.size)
	for i >= len(f.octaves) {
		f.octaves = append(f.octaves, nil)
	}
	if f.octaves[i] == nil {
		f.octaves[i] = &octave{}
	}
	o := f.octaves[i]
	f.some |= 1 << i
	o.some |= 1 << part
	at := &o.parts[part]
	for *at != 0 && above(*at, x) {
		if y := *at; s.before(y, p) {
			at = &s[y].right
		} else {
			at = &s[y].left
		}
	}
	// The subtree here is split into what is before x and what is after it.
	rest := *at
	*at = x
	low, high := &n.left, &n.right
	for rest != 0 {
		if s.before(rest, p) {
			*low = rest
			low = &s[rest].right
			rest = *low
		} else {
			*high = rest
			high = &s[rest].left
			rest = *high
		}
	}
	*low, *high = 0, 0
}

// remove takes block x out of the set it is in.
func (s sets) remove(f *set, x int32) {
	n, p := &s[x], s.placeOf(x)
	i, part := part(n.size)
	o := f.octaves[i]
	at := &o.parts[part]
	for *at != x {
		if y := *at; s.before(y, p) {
			at = &s[y].right
		} else {
			at = &s[y].left
		}
	}
	low, high := n.left, n.right
	for low != 0 && high != 0 {
		if above(low, high) {
			*at = low
			at = &s[low].right
			low = *at
		} else {
			*at = high
			at = &s[high].left
			high = *at
		}
	}
	*at = low | high // one of them is none
	n.left, n.right = 0, 0
	if o.parts[part] == 0 {
		if o.some &^= 1 << part; o.some == 0 {
			f.some &^= 1 << i
		}
	}
}

// atLeast is the first block of a set that is not before a place.
func (s sets) atLeast(f *set, p place) (found int32) {
	i, part := part(p.size)
	some := f.some >> i
	if some&1 != 0 {
		o := f.octaves[i]
		for x := o.parts[part]; x != 0; {
			if s.before(x, p) {
				x = s[x].right
			} else {
				found = x
				x = s[x].left
			}
		}
		if found != 0 {
			return found
		}
		if larger := o.some >> part &^ 1; larger != 0 {
			return s.first(o.parts[part+bits.TrailingZeros16(larger)])
		}
	}
	if some &^= 1; some != 0 {
		o := f.octaves[i+bits.TrailingZeros64(some)]
		return s.first(o.parts[bits.TrailingZeros16(o.some)])
	}
	return 0
}

// first is the first block of a treap.
func (s sets) first(root int32) int32 {
	for s[root].left != 0 {
		root = s[root].left
	}
	return root
}

// after is the block that follows x in its set.
func (s sets) after(f *set, x int32) int32 {
	p := s.placeOf(x)
	p.addr++
	return s.atLeast(f, p)
}

// all appends the blocks of a set, in order.
func (s sets) all(f *set, to []int32) []int32 {
	for some := f.some; some != 0; some &= some - 1 {
		for _, root := range f.octaves[bits.TrailingZeros64(some)].parts {
			to = s.under(root, to)
		}
	}
	return to
}

// under appends the blocks of a treap, in order.
func (s sets) under(root int32, to []int32) []int32 {
	if root == 0 {
		return to
	}
	to = append(s.under(s[root].left, to), root)
	return s.under(s[root].right, to)
}
