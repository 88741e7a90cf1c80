package ranges

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// A List holds what an array of addresses holds.
func TestListIsLikeAnArray(t *testing.T) {
	const addresses = 4000
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var l List[int]
		var want [addresses]int
		for op := range 3000 {
			start := rng.Uint64N(addresses)
			end := min(start+rng.Uint64N(1+rng.Uint64N(40)), addresses)
			if rng.IntN(40) == 0 {
				end = addresses
			}
			if rng.IntN(3) > 0 {
				l.Put(start, end, op+1)
				for i := start; i < end; i++ {
					want[i] = op + 1
				}
				continue
			}
			was := uint64(0)
			for i := start; i < end; i++ {
				if want[i] != 0 {
					was++
				}
				want[i] = 0
			}
			if n := l.Cut(start, end); n != was {
				t.Fatalf("seed %d, operation %d: cut %d addresses, want %d", seed, op, n, was)
			}
		}
		for i := range want {
			if r, ok := l.At(uint64(i)); ok != (want[i] != 0) || r.Value != want[i] {
				t.Fatalf("seed %d: address %d has %v, %v, want %d", seed, i, r, ok, want[i])
			}
		}
		all := slices.Collect(l.All())
		for i := range all[1:] {
			if all[i].End > all[i+1].Start {
				t.Fatalf("seed %d: %v stands before %v", seed, all[i], all[i+1])
			}
		}
		if len(all) != l.Len() {
			t.Fatalf("seed %d: %d ranges of %d", seed, len(all), l.Len())
		}
		from, length := rng.Uint64N(addresses), rng.Uint64N(20)
		long := slices.DeleteFunc(all, func(r Range[int]) bool { return r.End <= from || r.Len() < length })
		if got := slices.Collect(l.AtLeast(from, length)); !slices.Equal(got, long) {
			t.Fatalf("seed %d: from %d on, %d long: %v, want %v", seed, from, length, got, long)
		}
	}
}

func TestJoin(t *testing.T) {
	var l List[bool]
	l.Join(0, 10, true)
	l.Join(20, 30, true)
	l.Join(40, 50, true)
	l.Join(10, 20, true)
	if got := slices.Collect(l.All()); !slices.Equal(got, []Range[bool]{{0, 30, true}, {40, 50, true}}) {
		t.Error(got)
	}
}
