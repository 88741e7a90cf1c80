package trend

import (
	"math"
	"slices"
)

// A Shape is how a series of levels over time goes on.
type Shape string

// The shapes of a series. Growth and SawtoothGrowth are leaks.
const (
	Flat           Shape = "flat"            // no lasting change
	Plateau        Shape = "plateau"         // grew and levelled off
	Step           Shape = "step"            // one or a few lasting jumps
	Growth         Shape = "growth"          // keeps growing
	Sawtooth       Shape = "sawtooth"        // grows and is released again and again
	SawtoothGrowth Shape = "sawtooth-growth" // the same, but less is released each time
	Falling        Shape = "falling"         // a lasting fall
	Unknown        Shape = "unknown"         // too few samples, or the last one changes everything
)

// A Course is the judgment of a series of levels.
type Course struct {
	Shape Shape
	// Growing is the probability that it keeps growing.
	Growing float64
	// Rate is the growth at the end of the series, in bytes per second.
	Rate float64
	// Level is where the series is at the end, or where it levels off if Shape is
	// Plateau, in bytes and without noise. It lies between levelLow and levelHigh in 9
	// of 10 cases.
	Level, levelLow, levelHigh float64
	// Unit is what the moments are counted in, such as "step", where they are not times
	// in seconds; whoever calls [JudgeLevels] sets it. Rate is then the growth in one of
	// them, and Seconds how many of them there are.
	Unit string
	// Percent states that the levels are percent of a size that is not known, and no
	// bytes; whoever calls [JudgeLevels] sets it.
	Percent bool
	// Samples is how many samples were measured, over this many Seconds.
	Samples int
	Seconds float64

	slows  float64 // the mean phi of the curves
	clear  float64 // growth, in multiples of what no curve explains
	future forecast
	// troughs is the future of the troughs, if they were judged.
	troughs *forecast
}

// Leaks reports whether the series keeps growing.
func (c *Course) Leaks() bool { return c.Shape == Growth || c.Shape == SawtoothGrowth }

// The assumptions of [JudgeLevels].
const (
	// minSamples is the least number of samples that is judged.
	minSamples = 13
	// levelsOff is the phi below which a series that slows down levels off, and above
	// which it grows on. By convention a phi below 0.1 is a plateau and one of 0.25 is
	// growth; in between, nobody can know.
	levelsOff = 0.17
	// material is the least growth, in standard deviations of what no curve explains,
	// and warm the least growth after a warm-up, where the noise need not be of the
	// same kind.
	change   = 2
	material = 3
	warm     = 8
	// points is how many medians a series is reduced to.
	points = 40
)

// JudgeLevels judges levels in bytes, such as those of a process's memory, at times in
// seconds. NaN is a missing level.
//
// It fits curves of every kind that memory is known to follow (a constant, steps, a cache
// that fills, a line, a logarithm, a line after a warm-up, …) to the medians of the
// series. It weighs them by the Bayesian information criterion (Schwarz 1978), with as
// many independent points as the noise has (Bartlett 1946), and asks each what the next
// window of equal length would add. The series keeps growing if the curves that add a
// sixth or more of what this window added have most of the weight. If a series falls
// again and again, its troughs are judged; if it started over, its last life is judged.
//
// [TestConfusion] checks it against series whose truth is known and prints how often it
// is right.
func JudgeLevels(times, levels []float64) Course {
	t, v := clean(times, levels)
	if len(v) < minSamples {
		c := Course{Shape: Unknown, Samples: len(v)}
		if len(v) > 0 {
			c.Seconds = t[len(t)-1]
			c.Level = v[len(v)-1]
			c.levelLow, c.levelHigh = slices.Min(v), slices.Max(v)
		}
		return c
	}
	c := judgeClean(t, v)
	c.Samples, c.Seconds = len(v), t[len(t)-1]
	return c
}

func judgeClean(t, v []float64) Course {
	all := falls(t, v)
	if repeats(v, all) {
		return judgeFalls(t, v, all)
	}
	if lt, lv, ok := lastLife(t, v, all); ok {
		c := judgeTrend(lt, lv)
		if c.Shape == Flat {
			c.Shape = Step
		}
		return c
	}
	c := judgeTrend(t, v)
	if c.Shape != Plateau && c.Shape != Step {
		return c
	}
	// What is loaded at first hides slow growth after it.
	for _, from := range []int{len(v) / 4, len(v) / 2} {
		if len(v)-from < 2*minSamples {
			break
		}
		rest := judgeTrend(t[from:], v[from:])
		if rest.Shape == Growth && rest.Growing > 0.9 && rest.slows > 0.7 && rest.clear > warm {
			return rest
		}
	}
	return c
}

// judgeTrend judges a series by the curves that explain it.
func judgeTrend(t, v []float64) Course {
	bt, by, noise := medians(t, v)
	n := len(by)
	low, high := slices.Min(by), slices.Max(by)
	if high == low {
		return Course{Shape: Flat, Level: low, levelLow: slices.Min(v), levelHigh: slices.Max(v)}
	}
	span, scale := t[len(t)-1]-t[0], high-low
	if span < 1e-3 { // the times are meaningless
		span = 1
	}
	u := make([]float64, n)
	for i := range bt {
		u[i] = (bt[i] - t[0]) / span
		by[i] = (by[i] - low) / scale
	}
	noise /= scale
	all := fit(u, by)
	// The medians are only as exact as the noise allows, and the figures are rounded.
	floor := 1e-6 + 0.5*noise*noise*float64(n)/float64(max(len(v)/n, 1))
	independent := weigh(all, u, by, floor)
	c := Course{future: forecast{curves: all, span: span, low: low, scale: scale, noise: noise}}
	var grown float64
	for i := range all {
		x := &all[i]
		g, phi := x.at(1)-x.at(0), x.phi()
		grown += x.weight * g
		c.Rate += x.weight * (x.at(1.05) - x.at(1)) / 0.05 * scale / span
		c.slows += x.weight * min(max(phi, -1), 3)
		if x.growsOn() {
			c.Growing += x.weight
		}
	}
	likeliest := best(all)
	sd := math.Sqrt((likeliest.rss + floor) / float64(n))
	c.clear = grown / sd
	c.future.error = sd / math.Sqrt(independent)
	c.future.follow(likeliest, t[0], t, v)
	switch {
	case math.Abs(c.clear) < change:
		c.Shape = Flat
	case c.Growing > 0.5 && c.clear > material:
		c.Shape = Growth
	case likeliest.shape == Step:
		c.Shape = Step
	case grown < 0:
		c.Shape = Falling
	default:
		c.Shape = Plateau
	}
	c.Growing = min(c.Growing, 1)
	if c.Shape == Growth != (c.Growing > 0.5) {
		c.Growing = 0.5
	}
	c.Level, c.levelLow, c.levelHigh = c.future.level(c.Shape)
	if c.Shape == Plateau && c.Level < low { // the best curve bends down: some or all of what grew has just been released
		c.Shape = Unknown
	}
	return c
}

// medians reduces a series to the medians of consecutive samples, and returns the spread
// of the samples around them.
func medians(t, v []float64) (mt, mv []float64, noise float64) {
	k := min(points, len(v))
	for i := range k {
		a, b := i*len(v)/k, (i+1)*len(v)/k
		part := slices.Clone(v[a:b])
		var sum float64
		for _, x := range t[a:b] {
			sum += x / float64(b-a)
		}
		mt, mv = append(mt, sum), append(mv, median(part))
		noise += spread(part) / float64(k)
	}
	return mt, mv, noise
}

// weigh sets the weights of curves and returns how many independent points there are: if
// a level wanders, what a curve leaves unexplained continues from point to point.
func weigh(all []curve, u, y []float64, floor float64) (independent float64) {
	n := float64(len(y))
	least := -1
	for i := range all {
		if all[i].params <= 4 && (least < 0 || all[i].rss < all[least].rss) {
			least = i
		}
	}
	var before, product, square float64
	for i := range y {
		r := y[i] - all[least].at(u[i])
		product += r * before
		square += r * r
		before = r
	}
	if square > 0 {
		r := min(max(product/square, 0), 0.9)
		n *= (1 - r) / (1 + r)
	}
	n = max(n, 4)
	score := make([]float64, len(all))
	for i, c := range all {
		score[i] = -0.5 * (n*math.Log((c.rss+floor)/float64(len(y))) + float64(c.params)*math.Log(n))
		if c.params > 3 {
			score[i]-- // there are many of them
		}
	}
	best := slices.Max(score)
	var sum float64
	for i := range all {
		all[i].weight = math.Exp(score[i] - best)
		sum += all[i].weight
	}
	for i := range all {
		all[i].weight /= sum
	}
	return n
}
