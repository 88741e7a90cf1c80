package timeline

import "hash/maphash"

// table maps addresses to allocations by open addressing. It is looked into
// twice for each allocation of a trace of millions, and its deletions leave no
// tombstones, as the live set turns over all the time.
type table struct {
	keys []uint64
	vals []int32 // 0 marks a free slot; values are stored plus or minus one
	n    int
}

// multiplier is odd and secret, so that no file can be made to collide.
var multiplier = maphash.Bytes(maphash.MakeSeed(), nil) | 1

func newTable(size int) *table {
	return &table{keys: make([]uint64, size), vals: make([]int32, size)}
}

// slot spreads addresses, which are multiples of 512, over the table.
func (t *table) slot(key uint64) int {
	return int((key * multiplier) >> 32 & uint64(len(t.keys)-1))
}

func (t *table) find(key uint64) int {
	i := t.slot(key)
	for t.vals[i] != 0 && t.keys[i] != key {
		i = (i + 1) & (len(t.keys) - 1)
	}
	return i
}

// encode keeps 0 free: indices are 0, 1, … and, for the early ones, -1, -2, …
func encode(v int32) int32 {
	if v >= 0 {
		return v + 1
	}
	return v
}

func decode(v int32) int32 {
	if v > 0 {
		return v - 1
	}
	return v
}

func (t *table) get(key uint64) (int32, bool) {
	v := t.vals[t.find(key)]
	return decode(v), v != 0
}

func (t *table) put(key uint64, v int32) {
	i := t.find(key)
	if t.vals[i] == 0 {
		if 2*(t.n+1) > len(t.keys) {
			t.grow()
			i = t.find(key)
		}
		t.n++
	}
	t.keys[i], t.vals[i] = key, encode(v)
}

func (t *table) grow() {
	old := *t
	*t = *newTable(2 * len(old.keys))
	for i, v := range old.vals {
		if v != 0 {
			j := t.find(old.keys[i])
			t.keys[j], t.vals[j] = old.keys[i], v
			t.n++
		}
	}
}

// delete closes the gap: what was displaced by the key moves up.
func (t *table) delete(key uint64) {
	i := t.find(key)
	if t.vals[i] == 0 {
		return
	}
	t.n--
	mask := len(t.keys) - 1
	for j := (i + 1) & mask; t.vals[j] != 0; j = (j + 1) & mask {
		if home := t.slot(t.keys[j]); (j-home)&mask >= (j-i)&mask {
			t.keys[i], t.vals[i] = t.keys[j], t.vals[j]
			i = j
		}
	}
	t.vals[i] = 0
}
