package allocator

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

// sets are treaps by (size, birth, address), each named by the index of its root. The
// order of the heap is a hash of the index, so it needs no room.
//
// R. Seidel, C. R. Aragon: Randomized Search Trees, Algorithmica 16 (1996).
type sets []node

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
func (s sets) insert(root *int32, x int32) {
	n, p := &s[x], s.placeOf(x)
	at := root
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
func (s sets) remove(root *int32, x int32) {
	n, p := &s[x], s.placeOf(x)
	at := root
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
}

// atLeast is the first block of a set that is not before a place.
func (s sets) atLeast(root int32, p place) (found int32) {
	for x := root; x != 0; {
		if s.before(x, p) {
			x = s[x].right
		} else {
			found = x
			x = s[x].left
		}
	}
	return found
}

// after is the block that follows x in its set.
func (s sets) after(root, x int32) int32 {
	p := s.placeOf(x)
	p.addr++
	return s.atLeast(root, p)
}

// less is the last block of a set that is before a place.
func (s sets) less(root int32, p place) (found int32) {
	for x := root; x != 0; {
		if s.before(x, p) {
			found = x
			x = s[x].right
		} else {
			x = s[x].left
		}
	}
	return found
}

// all appends the blocks of a set, in order.
func (s sets) all(root int32, to []int32) []int32 {
	if root == 0 {
		return to
	}
	to = append(s.all(s[root].left, to), root)
	return s.all(s[root].right, to)
}
