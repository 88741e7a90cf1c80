package trend

import (
	"cmp"
	"math"
	"slices"
)

// A forecast is what the curves that explain a series predict.
type forecast struct {
	curves []curve
	// A level of a curve is low + scale·at(u) bytes, where u is the time since the
	// beginning divided by span seconds. The series ends at now.
	low, scale, span, now float64
	// noise is the spread of samples, and error that of a curve; above is how far
	// samples occasionally rise above the curve: one in fifty, or the peaks of teeth.
	// All are in units of scale.
	noise, error, above float64
}

// weighted is a value and its probability.
type weighted struct{ value, weight float64 }

// quantile is the least value that a share of the weight does not exceed.
func quantile(all []weighted, share float64) float64 {
	slices.SortFunc(all, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	var total, sum float64
	for _, w := range all {
		total += w.weight
	}
	for _, w := range all {
		if sum += w.weight; sum >= share*total {
			return w.value
		}
	}
	return math.NaN()
}

// level is where a series is at its end, or where it levels off if it does, with bounds.
func (f *forecast) level(s Shape) (level, low, high float64) {
	u := 1.0
	if s == Plateau {
		u = 4
	}
	var all []weighted
	for i := range f.curves {
		c := &f.curves[i]
		if s == Plateau && c.phi() >= levelsOff {
			continue
		}
		all = append(all, weighted{c.at(u), c.weight})
	}
	margin := 2*f.error + 2*f.noise
	in := func(y float64) float64 { return f.low + f.scale*y }
	return in(quantile(all, 0.5)), in(quantile(all, 0.05) - margin), in(quantile(all, 0.95) + margin)
}

// Path returns where the curves of the judgment are, in bytes: seconds after the last
// sample, or before it if that is negative; in 9 of 10 cases between low and high. Of a
// series that keeps growing, these are the curves that grow on, and of one that levels off
// those that do. ok is false if no curve was fitted.
func (c *Course) Path(seconds float64) (level, low, high float64, ok bool) {
	f := &c.future
	if len(f.curves) == 0 || f.span <= 0 {
		return 0, 0, 0, false
	}
	u := 1 + seconds/f.span
	var all []weighted
	for i := range f.curves {
		x := &f.curves[i]
		if c.Leaks() && !x.growsOn() || c.Shape == Plateau && x.phi() >= levelsOff {
			continue
		}
		all = append(all, weighted{x.at(max(u, 0)), x.weight})
	}
	if len(all) == 0 {
		return 0, 0, 0, false
	}
	margin := 2*f.error + 2*f.noise
	in := func(y float64) float64 { return f.low + f.scale*y }
	return in(quantile(all, 0.5)), max(in(quantile(all, 0.05)-margin), 0), in(quantile(all, 0.95) + margin), true
}

// farthestAhead is how far into the future a limit is searched for, as a multiple of the
// time that was watched.
const farthestAhead = 1000

// until returns how many seconds after its last sample a growing series reaches limit,
// which is in bytes: in 9 of 10 cases between low and high, which is infinite if it may
// never do so. Both are 0 if it has already reached the limit. ok is false if the series
// does not keep growing.
func (c *Course) until(limit float64) (low, high float64, ok bool) {
	f := &c.future
	if !c.Leaks() || len(f.curves) == 0 {
		return 0, 0, false
	}
	y := (limit - f.low) / f.scale
	var early, late []weighted
	for i := range f.curves {
		x := &f.curves[i]
		if !x.growsOn() {
			continue
		}
		// the first sample that is as high
		early = append(early, weighted{reach(x.at, y-1.2*f.above-f.error), x.weight})
		late = append(late, weighted{reach(x.at, y-0.3*f.above+f.error), x.weight})
	}
	low, high = quantile(early, 0.05), quantile(late, 0.95)
	low, high = max(low-1, 0)*f.span, max(high-1, 0)*f.span
	return low / widen, high * widen, true
}

// widen is the factor by which the bounds of a time are moved apart, so that the truth
// lies between them in 9 of 10 series whose truth is known.
const widen = 1.25

// reach is the first u from 1 on at which a curve is as high as y; infinite if there is
// none.
func reach(at func(float64) float64, y float64) float64 {
	if at(1) >= y {
		return 1
	}
	low, high := 1.0, 1.1
	for at(high) < y {
		if high > farthestAhead {
			return math.Inf(1)
		}
		low, high = high, 1+2*(high-1)
	}
	for range 50 {
		if mid := (low + high) / 2; at(mid) < y {
			low = mid
		} else {
			high = mid
		}
	}
	return high
}
