package trend

import (
	"fmt"
	"math"

	"strandline/finding"
	"strandline/units"
)

// maxForecast is the largest confidence in what a series will do next.
const maxForecast = 0.99

// Words states what a level does: "keeps growing, by 2 MiB a minute at the end, where it is
// 3 GiB".
func (c *Course) Words() string {
	level := units.Bytes(int64(c.Level))
	switch c.Shape {
	case Growth:
		return fmt.Sprintf("keeps growing, by %s at the end, where it is %s", units.Rate(c.Rate), level)
	case SawtoothGrowth:
		return fmt.Sprintf("is released again and again, but less each time: it grows by %s", units.Rate(c.Rate))
	case Plateau:
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
	if c.Samples >= fewest {
		return "grew and fell at the end; more samples are needed to judge it"
	}
	return "too few samples to judge: " + units.Count(int64(c.Samples))
}

// Evidence returns the evidence for a finding on a series, with a name and a limit in
// bytes for the series; the limit is nil if there is none.
func (c *Course) Evidence(name string, limit *int64) *finding.LevelsEvidence {
	e := &finding.LevelsEvidence{
		Column: name, Verdict: string(c.Shape), Growing: c.Growing, RatePerSecond: c.Rate, Samples: c.Samples, Seconds: c.Seconds, LimitBytes: limit,
		LevelBytes: int64(math.Round(c.Level)), LevelBoundsBytes: [2]int64{int64(math.Round(max(c.levelLow, 0))), int64(math.Round(c.levelHigh))},
	}
	if c.Shape != Unknown {
		e.Confidence = 1 - c.Growing
		if c.Leaks() {
			e.Confidence = c.Growing
		}
		e.Confidence = min(e.Confidence, maxForecast)
	}
	if limit == nil {
		return e
	}
	if low, high, ok := c.until(float64(*limit)); ok && !math.IsInf(low, 1) {
		e.SecondsToLimit = &[2]*float64{&low, &high}
		if math.IsInf(high, 1) {
			e.SecondsToLimit[1] = nil
		}
	}
	return e
}

// Reaches states when the limit of some evidence is reached; name describes the limit in
// words ("the limit of 8 GiB"). It is empty for a series that does not grow.
func (c *Course) Reaches(e *finding.LevelsEvidence, name string) string {
	left := e.SecondsToLimit
	switch {
	case !c.Leaks() || e.LimitBytes == nil:
		return ""
	case left == nil:
		return name + " is further away than this series can predict"
	case left[1] == nil:
		return "will reach " + name + " in " + units.Seconds(*left[0]) + " at the earliest; it slows down, and may never reach it"
	case *left[1] == 0:
		return name + " is reached"
	}
	return "will reach " + name + " " + units.Seconds(*left[0]) + " to " + units.Seconds(*left[1]) + " after the last sample (9 times in 10)"
}

// Basis is what a judgment rests on: "40 samples over 2 min".
func (c *Course) Basis() string {
	if c.Samples == 0 {
		return ""
	}
	return fmt.Sprintf("%s over %s", units.Plural(int64(c.Samples), "sample"), units.Seconds(c.Seconds))
}

// Thinned returns some of the levels of a series, for a sparkline, leaving out those that
// are missing.
func Thinned(levels []float64) (out []int64) {
	const most = 60
	var seen []float64
	for _, x := range levels {
		if !math.IsNaN(x) && x >= 0 && x < 1<<62 {
			seen = append(seen, x)
		}
	}
	n := min(most, len(seen))
	for i := range n {
		out = append(out, int64(seen[i*(len(seen)-1)/max(n-1, 1)]))
	}
	return out
}
