package jobs

import (
	"math"
	"slices"
	"strings"

	"strandline/logs/ranks"
)

// A course is what a series of memory of a rank did.
type course struct {
	points []ranks.Point
	peak   float64
	first  float64 // level of its first part after the beginning
	last   float64
	tau    float64 // how often a later value is greater, less how often it is smaller: -1 to 1
	label  string
}

// rises reports whether a course grows with the steps by a part of the device that matters.
func (c *course) rises(capacity float64) bool {
	const (
		minTau  = 0.7
		minPart = 0.04
	)
	if c == nil || len(c.points) < 3 || c.tau < minTau {
		return false
	}
	minRise := 0.1 * c.first
	if capacity > 0 {
		minRise = minPart * capacity
	}
	return c.last-c.first > minRise
}

// labelRank orders labels by how well they show what is held: allocated, reserved, in use.
func labelRank(label string) int {
	low := strings.ToLower(label)
	peak := strings.Contains(low, "max") || strings.Contains(low, "peak")
	switch {
	case strings.Contains(low, "cpu") || strings.Contains(low, "host") || strings.Contains(low, "rss") || strings.Contains(low, "virtual") || strings.Contains(low, "kv") || strings.Contains(low, "param") || strings.Contains(low, "model"):
		return -1
	case strings.Contains(low, "alloc") && !peak, low == "ma":
		return 4
	case strings.Contains(low, "reserv") && !peak, strings.Contains(low, "cache"):
		return 2
	case strings.Contains(low, "alloc") && peak:
		return 3
	}
	return 1
}

// memory is the course of what a rank holds, nil if its texts do not tell.
func memoryOf(r *rank) *course {
	var best *course
	rank := 0
	for _, v := range r.voices {
		for _, label := range sorted(v.Sizes) {
			s := v.Sizes[label]
			if n := labelRank(label); n > rank || n == rank && n > 0 && best != nil && len(s.Points) > len(best.points) {
				best, rank = courseOf(s, label), n
			}
		}
	}
	return best
}

func sorted[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

func courseOf(s *ranks.Series, label string) *course {
	c := &course{label: label, points: slices.Clone(s.Points)}
	if n := len(c.points); n > 0 && c.points[n-1] != s.Last {
		c.points = append(c.points, s.Last)
	}
	if len(c.points) > 4 && (c.points[0].Step <= 1) {
		c.points = c.points[1:] // before the optimizer has its state
	}
	values := make([]float64, len(c.points))
	for i, p := range c.points {
		values[i] = p.Value
		c.peak = max(c.peak, p.Value)
	}
	n := len(values)
	if n == 0 {
		return c
	}
	part := max(1, n/5)
	c.first, c.last = median(values[:part]), median(values[n-part:])
	more, pairs := 0, 0
	stride := max(1, n/64)
	for i := 0; i < n; i += stride {
		for k := i + stride; k < n; k += stride {
			pairs++
			switch {
			case values[k] > values[i]*1.002:
				more++
			case values[k] < values[i]*0.998:
				more--
			}
		}
	}
	if pairs > 0 {
		c.tau = float64(more) / float64(pairs)
	}
	return c
}

// capacityOf is the size of a rank's device in bytes, 0 if unknown.
func capacityOf(r *rank) float64 {
	if f := r.fall; f != nil && f.OOM != nil && f.OOM.Total != nil {
		return float64(*f.OOM.Total)
	}
	for _, e := range r.events {
		if e.OOM != nil && e.OOM.Total != nil {
			return float64(*e.OOM.Total)
		}
	}
	for _, v := range r.voices {
		if v.GPU > 0 {
			return float64(v.GPU)
		}
	}
	return 0
}

// usual is the size of most devices of the job.
func (j *job) usual(except *rank) float64 {
	var all []float64
	for _, r := range j.order {
		if c := capacityOf(r); r != except && c > 0 {
			all = append(all, c)
		}
	}
	return median(all)
}

// peakOf is the most that a rank is seen to hold, 0 if its texts do not tell.
func peakOf(r *rank) (most float64) {
	for _, v := range r.voices {
		for label, s := range v.Sizes {
			if labelRank(label) < 0 {
				continue
			}
			for _, p := range s.Points {
				most = max(most, p.Value)
			}
			most = max(most, s.Last.Value)
		}
	}
	return most
}

// jump is how many times longer the last number of a series of a rank is than is usual for
// all ranks.
func (j *job) jump(r *rank, of func(*ranks.Voice) map[string]*ranks.Series) (ratio, value float64) {
	for _, v := range r.voices {
		for _, label := range sorted(of(v.Voice)) {
			s := of(v.Voice)[label]
			usual := j.usualOf(r, label, of)
			if usual <= 0 {
				continue
			}
			if x := s.Last.Value / usual; x > ratio {
				ratio, value = x, s.Last.Value
			}
		}
	}
	return ratio, value
}

// usualOf is the median of a series over all ranks, without the last number of one of them.
func (j *job) usualOf(of *rank, label string, series func(*ranks.Voice) map[string]*ranks.Series) float64 {
	var all []float64
	for _, r := range j.order {
		for _, v := range r.voices {
			s := series(v.Voice)[label]
			if s == nil {
				continue
			}
			for _, p := range s.Points {
				if r != of || p != s.Last {
					all = append(all, p.Value)
				}
			}
		}
		if len(all) > 1<<14 {
			break
		}
	}
	if len(all) == 0 {
		return math.NaN()
	}
	return median(all)
}
