package replay

import (
	"slices"
	"sort"

	"strandline/torch/allocator"
)

// ranges are addresses with the pool that they belong to, in order and apart.
type ranges []addresses

type addresses struct {
	from, to uint64
	pool     allocator.PoolID
}

// after is the index of the first range that ends behind an address.
func (r ranges) after(addr uint64) int {
	return sort.Search(len(r), func(i int) bool { return r[i].to > addr })
}

// at is the pool of an address, the default one where there is no range.
func (r *ranges) at(addr uint64) (pool allocator.PoolID) {
	if r == nil {
		return pool
	}
	if i := r.after(addr); i < len(*r) && (*r)[i].from <= addr {
		pool = (*r)[i].pool
	}
	return pool
}

// cut takes the addresses from, …, to-1 out, and returns where they were.
func (r *ranges) cut(from, to uint64) int {
	i := r.after(from)
	j := i
	var rest []addresses // of the first and the last range that is cut
	for ; j < len(*r) && (*r)[j].from < to; j++ {
		if x := (*r)[j]; x.from < from {
			rest = append(rest, addresses{x.from, from, x.pool})
		}
		if x := (*r)[j]; x.to > to {
			rest = append(rest, addresses{to, x.to, x.pool})
		}
	}
	if j > i {
		*r = slices.Replace(*r, i, j, rest...)
	}
	return (*r).after(from)
}

// set gives the addresses from, …, to-1 to a pool.
func (r *ranges) set(from, to uint64, pool allocator.PoolID) {
	if i := r.cut(from, to); from < to {
		*r = slices.Insert(*r, i, addresses{from, to, pool})
	}
}
