package units

import (
	"math"
	"testing"
)

func TestSum(t *testing.T) {
	for _, c := range []struct {
		sizes []int64
		want  int64
	}{
		{nil, 0},
		{[]int64{1, 2, -4}, -1},
		{[]int64{math.MaxInt64, 1}, math.MaxInt64},
		{[]int64{math.MinInt64, -1}, math.MinInt64},
		{[]int64{1 << 62, 1 << 62, 1 << 62, -1}, math.MaxInt64 - 1},
	} {
		if got := Sum(c.sizes...); got != c.want {
			t.Errorf("the sum of %d is %d, want %d", c.sizes, got, c.want)
		}
	}
}
