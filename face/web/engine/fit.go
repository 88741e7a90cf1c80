package engine

import (
	"math"

	"strandline/face/api/page"
	"strandline/finding"
	"strandline/trend"
)

// fitPoints are how many points a curve has before the last sample, and beyond it.
const fitPoints = 32

// farAhead is how far beyond its last sample a curve is drawn at most, as a multiple of
// the time that was judged.
const farAhead = 100

// fitOf is the curve of a judgment whose last sample was taken at until: beyond it as
// long as it was watched, or until the limit is reached for certain, if that is nearer
// than a curve is drawn. It is nil if no curve was fitted.
func fitOf(c *trend.Course, e *finding.LevelsEvidence, until float64) *page.Fit {
	if c.Seconds <= 0 {
		return nil
	}
	ahead := c.Seconds
	if t := e.SecondsToLimit; t != nil {
		ahead = min(max(*t[0]*1.5, ahead), farAhead*c.Seconds)
		if t[1] != nil {
			ahead = min(max(*t[1]*1.1, c.Seconds/4), farAhead*c.Seconds)
		}
	}
	out := &page.Fit{Until: millis(until), Seconds: []float64{}, Level: []float64{}, Low: []float64{}, High: []float64{}}
	for i := -fitPoints; i <= fitPoints; i++ {
		after := ahead * float64(i) / fitPoints
		if i < 0 {
			after = c.Seconds * float64(i) / fitPoints
		}
		level, low, high, ok := c.Path(after)
		if !ok || math.IsNaN(level) || math.IsInf(high, 0) || math.IsInf(level, 0) {
			continue
		}
		out.Seconds = append(out.Seconds, millis(until+after))
		out.Level, out.Low, out.High = append(out.Level, math.Round(level)), append(out.Low, math.Round(low)), append(out.High, math.Round(high))
	}
	if len(out.Seconds) == 0 {
		return nil
	}
	return out
}
