package trend

import "math"

// JudgeShort judges a series that is too short for [JudgeLevels] and whose every sample is
// known: growth by about the same amount from each sample to the next is more than chance. With
// ended, the program died after the last sample, and three samples suffice. Such a series has no
// forecast. It reports false if the samples are too few or show anything else.
func JudgeShort(times, levels []float64, ended bool) (c Course, ok bool) {
	const (
		minShort, minEnded = 5, 3
		minGrowth          = 64 << 20 // bytes, in all
		minPart            = 0.05     // of the first level
		minPace            = 0.6      // of the growth in the second half to that in the first
		likely             = 0.75     // by convention
	)
	least, n := minShort, len(levels)
	if ended {
		least = minEnded
	}
	if n < least || n >= minSamples {
		return c, false
	}
	first, last := levels[0], levels[n-1]
	for i := 1; i < n; i++ {
		if !(levels[i] > levels[i-1]) || !(times[i] > times[i-1]) {
			return c, false
		}
	}
	half := n / 2
	before, after := (levels[half]-first)/(times[half]-times[0]), (last-levels[half])/(times[n-1]-times[half])
	if grown := last - first; math.IsNaN(grown) || grown < minGrowth || grown < minPart*first || after < minPace*before {
		return c, false
	}
	return Course{
		Shape: Growth, Growing: likely, Rate: (last - first) / (times[n-1] - times[0]),
		Level: last, levelLow: first, levelHigh: last, Samples: n, Seconds: times[n-1] - times[0],
	}, true
}
