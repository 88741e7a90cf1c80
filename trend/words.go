package trend

import (
	"fmt"
	"math"
	"strings"

	"strandline/finding"
	"strandline/units"
)

// maxForecast is the largest confidence in what a series will do next.
const maxForecast = 0.99

// full is the level, in percent, from which what stops to grow has reached its limit.
const full = 95

// Words states what a level does: "keeps growing, by 2 MiB a minute at the end, where it is
// 3 GiB".
func (c *Course) Words() string {
	level := c.amount(c.Level)
	switch c.Shape {
	case Growth:
		return fmt.Sprintf("keeps growing, by %s at the end, where it is %s", c.rate(), level)
	case SawtoothGrowth:
		return fmt.Sprintf("is released again and again, but less each time: it grows by %s", c.rate())
	case Plateau:
		if c.Percent && c.Level >= full {
			return "grew to " + level + " and stays there: it is full"
		}
		return "grew and levels off at " + level
	case Step:
		return "changed in one or a few steps, and is constant at " + level
	case Sawtooth:
		return "grows and is released again and again, down to the same level"
	case Falling:
		return "falls, to " + level + " at the end"
	case Flat:
		return "does not grow; it is at " + level
	}
	switch {
	case c.Samples >= minSamples:
		return "grew and fell at the end; more samples are needed to judge it"
	case c.Samples == 0:
		return "nothing was measured: all samples are missing"
	}
	return "too few samples to judge: " + units.Count(int64(c.Samples))
}

// Doubt is why a level is not judged.
func (c *Course) Doubt() string {
	switch {
	case c.Samples == 0:
		return "no figure is known"
	case c.Samples >= minSamples:
		return "it rose and fell; more figures are needed"
	}
	return fmt.Sprintf("%s; %d are needed", units.Plural(int64(c.Samples), "figure"), minSamples)
}

// Short is what a level that grows does, in a few words: "+2 MiB a minute, now 3 GiB"; ""
// for one that does not.
func (c *Course) Short() string {
	if c.Shape != Growth {
		return ""
	}
	return fmt.Sprintf("+%s, now %s", c.rate(), c.amount(c.Level))
}

// amount states a level.
func (c *Course) amount(x float64) string {
	if c.Percent {
		return units.Percent(max(x, 0) / 100)
	}
	return units.Bytes(int64(x))
}

// percentRate states the growth at the end of a level in percent.
func (c *Course) percentRate() string {
	rate, each := c.Rate, "in each "+c.Unit
	if c.Unit == "" {
		rate, each = 60*c.Rate, "a minute"
		if rate < 0.1 {
			rate, each = 3600*c.Rate, "an hour"
		}
	}
	return units.Percent(rate/100) + " " + each
}

// rate states the growth at the end.
func (c *Course) rate() string {
	const small = 1024 // bytes
	switch {
	case c.Percent:
		return c.percentRate()
	case c.Unit == "":
		return units.Rate(c.Rate)
	case c.Rate < small:
		return fmt.Sprintf("%s in %s", units.Bytes(int64(math.Round(1000*c.Rate))), units.Plural(1000, c.Unit))
	}
	article := "a"
	if strings.ContainsRune("aeiou", rune(c.Unit[0])) {
		article = "an"
	}
	return fmt.Sprintf("%s %s %s", units.Bytes(int64(math.Round(c.Rate))), article, c.Unit)
}

// lasts states how long something takes: "2 h", or "1,200 steps".
func (c *Course) lasts(x float64) string {
	if c.Unit == "" {
		return units.Seconds(x)
	}
	const maxExact = 1 << 53
	return units.Plural(int64(math.Round(min(x, maxExact))), c.Unit)
}

// Evidence returns the evidence for a finding on a series, with a name and a limit in
// bytes for the series; the limit is nil if there is none.
func (c *Course) Evidence(name string, limit *int64) *finding.LevelsEvidence {
	rate, lasted := c.Rate, c.Seconds // the course can be judged again while the evidence is read
	e := &finding.LevelsEvidence{Column: name, Verdict: string(c.Shape), Unit: c.Unit, Growing: c.Growing, Samples: c.Samples, LimitBytes: limit}
	if c.Unit == "" {
		e.Seconds = &lasted
	}
	switch {
	case c.Samples > 0 && c.Percent:
		level := c.Level
		e.LevelPercent, e.LevelBoundsPercent, e.LimitBytes = &level, &[2]float64{max(c.levelLow, 0), c.levelHigh}, nil
	case c.Samples > 0:
		level := int64(math.Round(c.Level))
		e.LevelBytes = &level
		e.LevelBoundsBytes = &[2]int64{int64(math.Round(max(c.levelLow, 0))), int64(math.Round(c.levelHigh))}
	}
	if c.Shape != Unknown {
		e.Confidence = 1 - c.Growing
		if c.Leaks() {
			e.Confidence = c.Growing
		}
		e.Confidence = stated(e.Confidence)
		switch {
		case c.Percent:
			e.RatePercent = &rate
		case c.Unit != "":
			e.RatePerStep = &rate
		default:
			e.RatePerSecond = &rate
		}
	}
	if limit == nil {
		return e
	}
	if low, high, ok := c.until(float64(*limit)); ok && !math.IsInf(low, 1) {
		left := &[2]*float64{&low, &high}
		if math.IsInf(high, 1) {
			left[1] = nil
		}
		e.SecondsToLimit = left
		if c.Unit != "" {
			e.SecondsToLimit, e.StepsToLimit = nil, left
		}
	}
	return e
}

// Reaches states when the limit of some evidence is reached; name describes the limit in
// words ("the limit of 8 GiB"). It is empty for a series that neither grows nor is above
// the limit.
func (c *Course) Reaches(e *finding.LevelsEvidence, name string) string {
	left := e.SecondsToLimit
	if c.Unit != "" {
		left = e.StepsToLimit
	}
	switch {
	case e.LimitBytes == nil && !c.Percent:
		return ""
	case !c.Leaks():
		if e.LevelBytes != nil && c.Shape != Unknown && *e.LevelBytes > *e.LimitBytes {
			return units.Bytes(*e.LevelBytes) + " is above " + name
		}
		return ""
	case left == nil:
		return name + " is further away than this series can predict"
	case left[1] == nil:
		return "will reach " + name + " in " + c.lasts(*left[0]) + " at the earliest; it slows down, and may never reach it"
	case *left[1] == 0:
		return name + " is reached"
	}
	return "will reach " + name + " " + c.lasts(*left[0]) + " to " + c.lasts(*left[1]) + " after the last sample (in 9 of 10 cases)"
}

// Basis is what a judgment rests on: "40 samples over 2 min".
func (c *Course) Basis() string {
	if c.Samples == 0 {
		return ""
	}
	return fmt.Sprintf("%s over %s", units.Plural(int64(c.Samples), "sample"), c.lasts(c.Seconds))
}

// Thinned returns some of the levels of a series, for a sparkline, leaving out those that
// are missing.
func Thinned(levels []float64) (out []int64) {
	const maxShown = 60
	var seen []float64
	for _, x := range levels {
		if !math.IsNaN(x) && x >= 0 && x < 1<<62 {
			seen = append(seen, x)
		}
	}
	n := min(maxShown, len(seen))
	for i := range n {
		out = append(out, int64(seen[i*(len(seen)-1)/max(n-1, 1)]))
	}
	return out
}

// stated is the confidence that a shape is right, from the larger of the probabilities that
// a level grows and that it does not. Where that is a half, six of seven shapes are right, since
// a level that nothing speaks for is of no shape (bench/reliability measures it).
func stated(probability float64) float64 {
	const atHalf = 0.88
	return atHalf + (maxForecast-atHalf)*(min(probability, 1)-0.5)/0.5
}
