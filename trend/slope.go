package trend

import "math"

// sure is how many standard errors the bounds of [Slope] are from it, given few points
// that are not independent: in 9 of 10 cases the true slope lies between them.
const sure = 2.5

// Slope returns by how much levels in bytes grow per unit of their times after a warm-up,
// and bounds between which the truth lies in 9 of 10 cases.
//
// It is the median of the slopes between all pairs of medians (Theil 1950, Sen 1968),
// which is not moved if a tenth of the samples are odd. The bounds are those of a line
// through as many independent points as the noise has (Bartlett 1946; its correlation
// from point to point is corrected for what fitting the line removes from it, after
// Kendall 1954). They are infinite for fewer than 4 samples.
func Slope(times, levels []float64) (rate, low, high float64) {
	t, v := clean(times, levels)
	if len(v) < 4 {
		return 0, math.Inf(-1), math.Inf(1)
	}
	x, y, _ := medians(t, v)
	whole := make([]int64, len(y))
	for i := range y {
		whole[i] = int64(y[i])
	}
	from := min(WarmUp(whole), len(y)-4)
	x, y = x[from:], y[from:]
	rate = sen(x, y)
	n, mean := float64(len(y)), 0.0
	for i := range y {
		y[i] -= rate * x[i]
		mean += y[i] / n
	}
	var square, product, before, width, middle float64
	for _, u := range x {
		middle += u / n
	}
	for i := range y {
		rest := y[i] - mean
		square += rest * rest
		product += rest * before
		before = rest
		width += (x[i] - middle) * (x[i] - middle)
	}
	if square == 0 || width == 0 {
		return rate, rate, rate
	}
	r := product / square
	r = min(max(r+(1+4*max(r, 0))/n, 0), 0.95)
	error := sure * math.Sqrt(square/(n-2)/width*(1+r)/(1-r))
	return rate, rate - error, rate + error
}

// sen is the median of the slopes between all pairs of points.
func sen(x, y []float64) float64 {
	var slopes []float64
	for i := range x {
		for j := range i {
			if d := x[i] - x[j]; d > 0 {
				slopes = append(slopes, (y[i]-y[j])/d)
			}
		}
	}
	if len(slopes) == 0 {
		return 0
	}
	return median(slopes)
}
