package trend

import (
	"cmp"
	"math"
	"slices"

	"strandline/internal/sorts"
)

// A forecast is what the curves that explain a series predict.
type forecast struct {
	curves []curve
	// A level of a curve is low + scale·at(u) bytes, where u is the time since the
	// beginning divided by span seconds. The series ends at u = now, with last.
	low, scale, span, now, last float64
	// noise is the spread of samples, and error that of a curve, in units of scale.
	noise, error float64
	// rest is by how much the highest sample in each of some times, which are step apart
	// and end at now, was above the best curve; in units of scale.
	rest []float64
	step float64
	// highest is the highest level until each of those times, in bytes; every is how far apart
	// they are, in seconds.
	highest []float64
	every   float64
}

// maxRest is how many times the rest is kept for.
const maxRest = 240

// follow notes what the samples did above and below a curve whose u begins at start.
func (f *forecast) follow(c curve, start float64, t, v []float64) {
	n := min(len(v), maxRest)
	end := t[len(t)-1] - t[0]
	if end <= 0 {
		end = 1
	}
	f.rest, f.highest = make([]float64, n), make([]float64, n)
	f.every = end / float64(n)
	for i := range f.rest {
		f.rest[i] = math.NaN()
	}
	for i := range v {
		j := min(int((t[i]-t[0])/end*float64(n)), n-1)
		f.highest[j] = max(f.highest[j], v[i])
		if x := (v[i]-f.low)/f.scale - c.at((t[i]-start)/f.span); !(x <= f.rest[j]) {
			f.rest[j] = x
		}
	}
	before := 0.0
	for j, x := range f.rest {
		if math.IsNaN(x) { // a gap
			f.rest[j] = before
		}
		f.highest[j] = max(f.highest[j], f.highest[max(j-1, 0)])
		before = f.rest[j]
	}
	f.step = end / f.span / float64(n)
	f.now = (t[len(t)-1] - start) / f.span
	f.last = (v[len(v)-1] - f.low) / f.scale
}

// weighted is a value and its probability.
type weighted struct{ value, weight float64 }

// quantile is the least value that a share of the weight does not exceed.
func quantile(all []weighted, share float64) float64 {
	sorts.By(all, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
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
	u := f.now + seconds/f.span
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

// The assumptions of [Course.until]. widen, tail and straight were chosen so that the
// truth lies between the bounds in 9 of 10 series whose truth is known.
const (
	widen = 1.25 // the factor by which the bounds are moved apart
	tail  = 0.07 // the weight that lies beyond each bound before that
	// straight is how much likelier a line is than its weight among the curves: a leak
	// is most often a constant loss for each request.
	straight = 4
	// replayed is how many moments that resemble the last one are considered; a moment is
	// the last twelfth of a series, and lies in its first four fifths.
	replayed, lately, ended = 12, 12, 5
	// faster is how much faster than ever before the highest level can rise.
	faster = 5
	// negligible is a weight that changes nothing.
	negligible = 1e-3
)

// until returns how many seconds after its last sample a growing series reaches limit,
// which is in bytes: in 9 of 10 cases between low and high, which is infinite if it may
// never do so. Both are 0 if it has already reached the limit. ok is false if the series
// does not keep growing.
//
// Above each curve that grows on, it replays by how much the samples were above the curve
// after moments that resemble the last one: the next tooth, burst or hour of load reaches
// a limit before the curve does. It is not reached in less than a fifth of the shortest
// time in which the highest level ever rose by as much as is left.
func (c *Course) until(limit float64) (low, high float64, ok bool) {
	f := &c.future
	if c.troughs != nil {
		f = c.troughs
	}
	if !c.Leaks() || len(f.curves) == 0 {
		return 0, 0, false
	}
	y := (limit - f.low) / f.scale
	if y <= f.last {
		return 0, 0, true
	}
	moments := f.alike()
	var early, late []weighted
	for i := range f.curves {
		x := &f.curves[i]
		if !x.growsOn() || x.weight < negligible {
			continue
		}
		weight := x.weight
		if x.line() {
			weight *= straight
		}
		doubt := f.doubt(f.reach(x.at, y))
		for _, k := range moments {
			early = append(early, weighted{f.passes(x.at, y-doubt, k), weight})
			late = append(late, weighted{f.passes(x.at, y+doubt, k), weight})
		}
	}
	if len(early) == 0 {
		return 0, 0, false
	}
	low, high = quantile(early, tail), quantile(late, 1-tail)
	low, high = max(low-f.now, 0)*f.span, max(high-f.now, 0)*f.span
	low = max(low/widen, f.soonest(limit-f.highest[len(f.highest)-1])/faster)
	return low, max(high*widen, low), true
}

// soonest is the least number of seconds in which the highest level so far rose by so many
// bytes: what only comes back after it was released is no rise. It is 0 if it never rose by
// as much.
func (f *forecast) soonest(bytes float64) float64 {
	if bytes <= 0 { // it was as high before
		return 0
	}
	n := len(f.highest)
	from, least := 0, n
	for to := range n {
		for f.highest[to]-f.highest[from] >= bytes {
			least = min(least, to-from)
			from++
		}
	}
	if least == n {
		return 0
	}
	return float64(max(least-1, 0)) * f.every
}

// doubt is the standard deviation of a curve at u: that of a line, at a time so far from
// the middle of those it was fitted to.
func (f *forecast) doubt(u float64) float64 {
	away := min(u, farthestAhead) - 0.5
	return f.error * math.Sqrt(1+12*away*away)
}

// alike returns the moments before which the samples were above and below the curve as
// they were lately.
func (f *forecast) alike() []int {
	n := len(f.rest)
	long := max(n/lately, 2)
	var all []weighted // how far away moments are
	for k := long; k < n-n/ended; k++ {
		var square float64
		for j := range long {
			d := f.rest[k-j] - f.rest[n-1-j]
			square += d * d
		}
		all = append(all, weighted{float64(k), square})
	}
	sorts.StableBy(all, func(a, b weighted) int { return cmp.Compare(a.weight, b.weight) })
	var out []int
	for _, m := range all[:min(replayed, len(all))] {
		out = append(out, int(m.value))
	}
	return out
}

// passes is the first u after now at which a curve, and above it what followed moment k
// again and again, is as high as y; infinite if there is none.
func (f *forecast) passes(at func(float64) float64, y float64, k int) float64 {
	rest := f.rest[k+1:]
	from := f.reach(at, y-slices.Max(rest))
	if math.IsInf(from, 1) {
		return from
	}
	first := max(int(math.Ceil((from-f.now)/f.step)), 1)
	for j := first; ; j++ {
		u := f.now + float64(j)*f.step
		if at(u)+rest[(j-1)%len(rest)] >= y || j > first+2*len(rest) {
			return u
		}
	}
}

// reach is the first u from now on at which a curve is as high as y; infinite if there is
// none.
func (f *forecast) reach(at func(float64) float64, y float64) float64 {
	if at(f.now) >= y {
		return f.now
	}
	low, high := f.now, f.now+0.1
	for at(high) < y {
		if high > farthestAhead {
			return math.Inf(1)
		}
		low, high = high, f.now+2*(high-f.now)
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
