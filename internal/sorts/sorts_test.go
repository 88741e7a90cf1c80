package sorts

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEqual checks that the order is that of the package slices, also of equal elements.
func TestEqual(t *testing.T) {
	type pair struct{ key, id int }
	compare := func(a, b pair) int { return cmp.Compare(a.key, b.key) }
	r := rand.New(rand.NewPCG(1, 2))
	for size := range 300 {
		list := make([]pair, size)
		for i := range list {
			list[i] = pair{r.IntN(1 + size/3), i}
		}
		for name, sort := range map[string][2]func([]pair, func(a, b pair) int){
			"By": {By[[]pair], slices.SortFunc[[]pair]}, "StableBy": {StableBy[[]pair], slices.SortStableFunc[[]pair]},
		} {
			got, want := slices.Clone(list), slices.Clone(list)
			sort[0](got, compare)
			sort[1](want, compare)
			if !slices.Equal(got, want) {
				t.Errorf("%s of %d differs", name, size)
			}
		}
	}
}

// TestBool orders false before true.
func TestBool(t *testing.T) {
	for _, c := range []struct {
		a, b bool
		want int
	}{{false, false, 0}, {true, true, 0}, {false, true, -1}, {true, false, 1}} {
		if got := Bool(c.a, c.b); got != c.want {
			t.Errorf("%v and %v: %d", c.a, c.b, got)
		}
	}
}

// TestMedian takes the upper middle, and leaves the list as it is.
func TestMedian(t *testing.T) {
	list := []int{5, 1, 4, 2}
	for n, want := range []int{0, 5, 5, 4, 4} {
		if got := Median(list[:n]); got != want {
			t.Errorf("of %v: %d", list[:n], got)
		}
	}
	if list[0] != 5 || list[3] != 2 {
		t.Errorf("sorted: %v", list)
	}
}
