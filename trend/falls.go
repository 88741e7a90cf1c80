package trend

import (
	"math"
	"slices"
)

// A fall is a drop from a peak to a trough, which are sample numbers.
type fall struct {
	peak, trough int
	fast         bool // in much less time than the rise before it took
}

// falls finds the falls that are large compared with the range of a series and its noise.
func falls(t, v []float64) []fall {
	s := smooth(v)
	n := len(s)
	sorted := slices.Sorted(slices.Values(s))
	span := sorted[n-1-n/100] - sorted[n/100]
	steps := make([]float64, n-1)
	for i := range steps {
		steps[i] = math.Abs(v[i+1] - v[i])
	}
	noise := normal * median(steps) / math.Sqrt2
	large := max(0.3*span, 6*noise)
	if span == 0 {
		return nil
	}
	var out []fall
	peak, trough, rising := 0, 0, true
	for i := range s {
		switch {
		case rising && s[i] >= s[peak]:
			peak = i
		case rising && s[peak]-s[i] > large:
			rising, trough = false, i
		case !rising && s[i] < s[trough]:
			trough = i
		case !rising && s[i]-s[trough] > large:
			out = append(out, fall{peak: peak, trough: trough})
			rising, peak = true, i
		}
	}
	if !rising {
		out = append(out, fall{peak: peak, trough: trough})
	}
	start := 0
	for i := range out {
		out[i].fast = out[i].isFast(t, s, start)
		start = out[i].trough
	}
	return out
}

// isFast reports whether a fall took much less time than the rise from sample start.
func (f fall) isFast(t, s []float64, start int) bool {
	height := s[f.peak] - s[f.trough]
	from, to := f.peak, f.peak
	for i := f.peak; i <= f.trough; i++ {
		if s[i] >= s[f.trough]+0.9*height {
			from = i
		}
		if s[i] > s[f.trough]+0.1*height {
			to = i
		}
	}
	return to-from <= 2 || t[to]-t[from] <= 0.2*(t[f.peak]-t[start])
}

// repeats reports whether a series falls again and again: often, slowly, or from peaks of
// equal height, as a collection or a limit causes. Any other series started over.
func repeats(v []float64, all []fall) bool {
	slow := 0
	var heights []float64
	for _, f := range all {
		if !f.fast {
			slow++
		}
		heights = append(heights, v[f.peak]-v[f.trough])
	}
	slices.Sort(heights)
	n := len(heights)
	return n >= 4 || n >= 2 && (slow >= 2 || heights[n-2] > 0.85*heights[n-1])
}

// lastLife returns the samples from the last new beginning of a series, or those of its
// longest life if the last one is short. ok is false if the series never started over or
// that life is too short to judge.
func lastLife(t, v []float64, all []fall) (lt, lv []float64, ok bool) {
	var starts []int
	for _, f := range all {
		if f.fast {
			starts = append(starts, f.trough)
		}
	}
	if len(starts) == 0 {
		return nil, nil, false
	}
	from, to := starts[len(starts)-1], len(v)
	if to-from < len(v)/4 {
		start := 0
		for _, f := range all {
			if !f.fast {
				continue
			}
			if f.peak+1-start > to-from {
				from, to = start, f.peak+1
			}
			start = f.trough
		}
	}
	return t[from:to], v[from:to], to-from >= minSamples
}

// judgeFalls judges a series that falls again and again by its troughs.
func judgeFalls(t, v []float64, all []fall) Course {
	s := smooth(v)
	var ft, fv []float64 // the troughs
	var height float64
	steep := 0
	for _, f := range all {
		ft, fv = append(ft, t[f.trough]), append(fv, s[f.trough])
		height += (s[f.peak] - s[f.trough]) / float64(len(all))
		if f.fast {
			steep++
		}
	}
	whole := judgeTrend(t, v)
	out := whole
	out.Shape = Sawtooth
	slope, grown, noise, order := rise(ft, fv)
	// If a tooth has few samples, its lowest point is seen more or less late.
	unseen := height * float64(len(all)-1) / float64(max(all[len(all)-1].trough-all[0].trough, 1))
	clear := grown > max(3*noise, 2*unseen, 0.1*height) && order > 0.6
	leaks := false
	switch {
	case 2*steep < len(all): // no teeth: it wanders, or follows the load
		leaks = whole.Shape == Growth && whole.Growing >= 0.7 && order > 0.3
	case len(all) < 6:
		leaks = clear && order == 1 && whole.Shape == Growth && whole.Growing >= 0.6
	default:
		floor := judgeTrend(ft, fv)
		leaks = clear && floor.Shape == Growth
		out.Growing = floor.Growing
		if leaks {
			out.troughs = &floor.future
			out.troughs.follow(best(out.troughs.curves), ft[0], t, v)
		}
	}
	if leaks {
		out.Shape = SawtoothGrowth
		out.Rate = slope
		return out
	}
	out.Growing = min(out.Growing, 1-out.Growing)
	return out
}

// rise is the median slope of some levels (Theil and Sen), how much they grow by it,
// their spread around it, and Kendall's tau, which is 1 if each level is higher than
// those before it. Of many levels some that are evenly spread stand for all: there are as many
// slopes as pairs.
func rise(t, v []float64) (slope, grown, noise, tau float64) {
	const maxPairs = 2048
	if len(v) > maxPairs {
		t, v = spaced(t, maxPairs), spaced(v, maxPairs)
	}
	slopes, pairs := make([]float64, 0, len(v)*(len(v)-1)/2), 0
	for i := range v {
		for j := i + 1; j < len(v); j++ {
			pairs++
			if t[j] > t[i] {
				slopes = append(slopes, (v[j]-v[i])/(t[j]-t[i]))
			}
			switch {
			case v[j] > v[i]:
				tau++
			case v[j] < v[i]:
				tau--
			}
		}
	}
	if len(slopes) == 0 {
		return 0, 0, 0, 0
	}
	slope = median(slopes)
	rest := make([]float64, len(v))
	for i := range v {
		rest[i] = v[i] - slope*t[i]
	}
	return slope, slope * (t[len(t)-1] - t[0]), spread(rest), tau / float64(pairs)
}

// spaced are at most so many of some values, evenly spread, with the first and the last.
func spaced(values []float64, maxLen int) []float64 {
	out := make([]float64, maxLen)
	for i := range out {
		out[i] = values[i*(len(values)-1)/(maxLen-1)]
	}
	return out
}
