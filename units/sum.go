package units

import "math"

// Sum adds sizes that were not checked: a sum beyond what an int64 holds is
// the largest number, or the smallest, and not one of the other sign.
func Sum(sizes ...int64) (sum int64) {
	for _, n := range sizes {
		switch {
		case n > 0 && sum > math.MaxInt64-n:
			sum = math.MaxInt64
		case n < 0 && sum < math.MinInt64-n:
			sum = math.MinInt64
		default:
			sum += n
		}
	}
	return sum
}
