package gate

import (
	"fmt"
	"math"

	"strandline/finding"
	"strandline/trend"
	"strandline/units"
)

// The assumptions of [JudgeWaves].
const (
	// minWaves is the least that is judged, without the warm-up.
	minWaves = 5
	// steady is the growth of the later half of some waves that growth must surely
	// exceed to be called a leak, as a share of that of the earlier half. A cache that
	// fills slows down: of one that has filled to a third in 4 waves, it is 0.8.
	steady = 0.85
	// minWaveShare is the least growth of each of the last 3 waves, as a share of the mean: what
	// is kept once is not a leak.
	minWaveShare = 0.4
	// confidentErrors is how many standard errors are sure: 19 of 20 errors are smaller.
	confidentErrors = 1.65
	// bounds is how many standard errors from few waves enclose 9 of 10 true rates.
	bounds = 2
	// tremor is the standard deviation of a level that is expected before there are
	// enough waves to see it, in bytes, with the weight of prior waves.
	tremor, prior = 192 << 10, 2
	// smallRequest is the growth of a request, in bytes, that servers have without a
	// leak in a few waves.
	smallRequest = 1 << 10
	// unsteady is the uncertainty of growth that leaves a verdict of no leak open, as a
	// share of the level.
	unsteady = 0.02
)

// JudgeWaves decides from levels that were read in the quiet after each of several equal
// waves of requests; At is how many requests there were until then. The first level is
// that after the warm-up.
//
// It compares waves with each other. A leak adds as much in the later waves as in the
// earlier ones, and in each of them. A cache adds less and less. As long as growth could
// be either, the verdict is unknown.
func JudgeWaves(s *Series, o Limits) Judgment {
	j := Judgment{Series: s, Verdict: finding.Unknown}
	n := len(s.Bytes)
	if n < minWaves {
		j.Course = trend.Course{Shape: trend.Unknown, Samples: n}
		j.Why = fmt.Sprintf("%s can be compared, the last of the warm-up included: a verdict needs %d", units.Plural(int64(n), "wave"), minWaves)
		return j
	}
	rate, low, high := trend.Slope(s.At, s.Bytes)
	j.Growth = Growth{s.Unit, rate, low, high}
	j.Course = trend.Course{Samples: n, Rate: rate, Level: s.Bytes[n-1], Shape: trend.Flat}
	basis := fmt.Sprintf("%s, %s after the warm-up", units.Plural(int64(n), "wave"), span(s.Unit, s.At))
	for from := range n - minWaves + 1 {
		w := &waves{at: s.At[from:], bytes: s.Bytes[from:]}
		if !afterFall(s.Bytes, from) {
			continue
		}
		if z, ok := w.leaks(); ok {
			j.Growth.Rate, j.Growth.Low, j.Growth.High = trend.Slope(w.at, w.bytes)
			j.Course.Shape, j.Course.Growing = trend.Growth, normal(z)
			j.allow(o, basis)
			return j
		}
	}
	w := &waves{at: s.At, bytes: s.Bytes}
	w.settled(&j, basis)
	return j
}

// Clear reports whether more waves would add nothing: a leak, or growth that is surely
// small.
func (j *Judgment) Clear() bool {
	return j.Verdict == finding.Leaking || j.Verdict == finding.OK && j.Growth.High <= smallRequest
}

// allow gives the verdict on steady growth, given what is allowed.
func (j *Judgment) allow(o Limits, basis string) {
	g := j.Growth
	switch {
	case g.Low <= 0:
		j.Why = "grows in each wave, by amounts that differ too much to state a rate: run more waves"
	case o.Growth != nil && g.High <= float64(*o.Growth):
		j.allowed = true
		j.Verdict, j.Why = finding.OK, "grows, and by no more than is allowed; "+basis
	case o.Growth != nil && g.Low <= float64(*o.Growth):
		j.Why = fmt.Sprintf("grows by %s, which may be more or less than the %s allowed: run more waves", g, units.Bytes(*o.Growth))
	default:
		j.Verdict, j.Why = finding.Leaking, "each wave adds as much as those before it; "+basis
	}
}

// waves are some successive ones.
type waves struct{ at, bytes []float64 }

// noise is the standard deviation of a level: by how much the later ones differ from the
// middle between their neighbors, which neither a rate nor a slow change of it adds to.
func (w *waves) noise() float64 {
	last := len(w.bytes) - 1
	square, n := float64(prior*tremor*tremor), float64(prior)
	for i := max(last/2, 1); i < last; i++ {
		d := w.bytes[i-1] - 2*w.bytes[i] + w.bytes[i+1]
		square += d * d / 6 // the variance of d is 1 + 4 + 1 times that of a level
		n++
	}
	return math.Sqrt(square / n)
}

// halves returns the growth per request of the earlier and of the later waves, and the
// standard error of each.
func (w *waves) halves() (early, late, errEarly, errLate float64) {
	last := len(w.bytes) - 1
	mid := last / 2
	slope := func(a, b int) (float64, float64) {
		requests := max(w.at[b]-w.at[a], 1)
		return (w.bytes[b] - w.bytes[a]) / requests, math.Sqrt2 * w.noise() / requests
	}
	early, errEarly = slope(0, mid)
	late, errLate = slope(mid, last)
	return early, late, errEarly, errLate
}

// leaks reports whether growth is material and does not slow down, and by how many
// standard errors it is so.
func (w *waves) leaks() (z float64, ok bool) {
	last := len(w.bytes) - 1
	grown := w.bytes[last] - w.bytes[0]
	if grown < Grain {
		return 0, false
	}
	mean := grown / (w.at[last] - w.at[0])
	for i := last - 2; i <= last; i++ {
		if (w.bytes[i]-w.bytes[i-1])/(w.at[i]-w.at[i-1]) < minWaveShare*mean {
			return 0, false
		}
	}
	early, late, errEarly, errLate := w.halves()
	// The middle level is in both halves, with opposite signs.
	z = (late - steady*early) / (errLate + steady*errEarly)
	return z, z > confidentErrors
}

// settled gives the verdict on waves that do not show a leak.
func (w *waves) settled(j *Judgment, basis string) {
	last := len(w.bytes) - 1
	mid := last / 2
	noise := confidentErrors * math.Sqrt2 * w.noise()
	grown, late := w.bytes[last]-w.bytes[0], w.bytes[last]-w.bytes[mid]
	tolerated := max(noise, min(Grain, smallRequest*(w.at[last]-w.at[mid])))
	switch {
	case late > tolerated && grown < Grain:
		need := math.Ceil(Grain / max(grown, 1) * (w.at[last] - w.at[0]))
		j.Course.Shape, j.Course.Growing = trend.Growth, 0.5
		j.Why = fmt.Sprintf("grows by %s so far, as servers also do without a leak; %s: send at least %s", Size(grown), basis, units.Plural(int64(need), j.Series.Unit))
	case late > tolerated:
		j.Course.Shape, j.Course.Growing = trend.Growth, 0.5
		j.Why = fmt.Sprintf("still grows, and may be about to level off; %s: run more waves", basis)
	case noise > max(Grain, unsteady*w.bytes[last]):
		j.Course.Growing = 0.5
		j.Why = fmt.Sprintf("changes by %s from wave to wave without a direction; %s: run more waves", Size(w.noise()), basis)
	default:
		j.Verdict = finding.OK
		j.Course.Growing = 1 - normal((tolerated-late)/max(w.noise(), 1)+confidentErrors)
		switch {
		case grown > tolerated:
			j.Course.Shape = trend.Plateau
		case grown < -tolerated:
			j.Course.Shape = trend.Falling
		}
		j.Why = described(&j.Course) + "; " + basis
	}
	// What the later waves add is what matters, not what was added at first.
	_, rate, _, err := w.halves()
	j.Growth.Rate, j.Growth.Low, j.Growth.High = rate, rate-bounds*err, rate+bounds*err
}

// afterFall reports whether waves from an index on may be judged alone: memory that was
// released once may be released again, so they must be more than those that rose before.
func afterFall(bytes []float64, from int) bool {
	fell, rising := 0, 0
	top, longest := bytes[0], 0
	for i := 1; i < len(bytes); i++ {
		if bytes[i] < bytes[i-1] && top-bytes[i] > Grain {
			longest, rising, fell, top = max(longest, rising), 0, i, bytes[i]
			continue
		}
		rising++
		top = max(top, bytes[i])
	}
	return fell == 0 || from >= fell && len(bytes)-1-from > longest
}

// normal is the probability that a normal variable is below z.
func normal(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }
