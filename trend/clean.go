package trend

import (
	"math"
	"slices"
)

// farthest is the largest distance between two samples, as a multiple of the usual one,
// that counts as a gap; a larger one means that a clock was set.
const farthest = 200

// Values that are not below these are mistakes: in bytes, and in seconds.
const (
	maxLevel = 1 << 62
	maxTime  = 1 << 50
)

// clean drops what was not measured, and returns times that start at 0 and do not run
// backwards. A level of 0 among others is a failed reading.
func clean(times, levels []float64) (t, v []float64) {
	positive := 0
	for _, x := range levels {
		if x > 0 {
			positive++
		}
	}
	var stamps []float64
	for i, x := range levels[:min(len(levels), len(times))] {
		// The comparisons are false for NaN.
		if !(x >= 0 && x < maxLevel && math.Abs(times[i]) < maxTime) || x == 0 && 2*positive > len(levels) {
			continue
		}
		stamps, v = append(stamps, times[i]), append(v, x)
	}
	if len(v) == 0 {
		return nil, nil
	}
	var steps []float64
	for i := 1; i < len(stamps); i++ {
		if d := stamps[i] - stamps[i-1]; d > 0 {
			steps = append(steps, d)
		}
	}
	usual := 1.0
	if len(steps) > 0 {
		usual = median(steps)
	}
	t = make([]float64, len(stamps))
	for i := 1; i < len(stamps); i++ {
		d := stamps[i] - stamps[i-1]
		if d < 0 || d > farthest*usual {
			d = usual
		}
		t[i] = t[i-1] + d
	}
	return t, v
}

// median returns the median of x, which it sorts.
func median(x []float64) float64 {
	slices.Sort(x)
	n := len(x)
	if n%2 == 1 {
		return x[n/2]
	}
	return (x[n/2-1] + x[n/2]) / 2
}

// spread is the median distance of x from its median, scaled to equal the standard
// deviation if the noise is normal (Hampel 1974). It reorders x.
func spread(x []float64) float64 {
	m := median(x)
	for i := range x {
		x[i] = math.Abs(x[i] - m)
	}
	return normal * median(x)
}

// normal is the standard deviation of normal noise, in multiples of its median absolute
// deviation.
const normal = 1.4826

// smooth is a running median of three samples.
func smooth(v []float64) []float64 {
	out := slices.Clone(v)
	for i := 1; i+1 < len(v); i++ {
		out[i] = max(min(v[i-1], v[i]), min(max(v[i-1], v[i]), v[i+1]))
	}
	return out
}
