package samples

import (
	"math"

	"strandline/trend"
)

// maxPoints is how many points of a series are kept: when there are more, every other
// one is dropped, and from then on half as many are taken.
const maxPoints = 480

// The least change of a series that is judged: a growth of less can be anything.
const (
	minChange = 1 << 20 // bytes
	minShare  = 0.005   // of the level
)

// A series is a level over time.
type series struct {
	times, levels []float64
	stride, skip  int // of samples, every stride-th is kept
	low, high     float64
	now           float64 // the last level, kept or not

	course trend.Course
	judged int     // how many samples there were when it was judged; 0 if it was not
	until  float64 // when the last sample of the judgment was taken, seconds
	seen   int     // samples
	latest latest
}

func (s *series) add(at float64, level int64) {
	x := float64(level)
	if s.seen == 0 {
		s.low, s.high, s.stride = x, x, 1
	}
	s.low, s.high, s.now = min(s.low, x), max(s.high, x), x
	s.seen++
	if s.skip++; s.skip < s.stride {
		return
	}
	s.skip = 0
	s.times, s.levels = append(s.times, at), append(s.levels, x)
	if len(s.times) > maxPoints {
		s.times, s.levels = halved(s.times), halved(s.levels)
		s.stride *= 2
	}
}

// halved keeps every other value, the last one among them.
func halved(values []float64) []float64 {
	n := 0
	for i := (len(values) - 1) % 2; i < len(values); i += 2 {
		values[n] = values[i]
		n++
	}
	return values[:n]
}

// material reports whether the series changed by more than can be anything.
func (s *series) material() bool {
	change := s.high - s.low
	return change >= minChange && change >= minShare*s.high
}

// stale reports whether there are samples that the judgment does not know.
func (s *series) stale() bool { return s.judged != s.seen }

// overdue is by how much the judgment lags behind, 0 if it is good enough: a tenth
// more samples change little.
func (s *series) overdue() float64 {
	if !s.material() || s.seen < minSamples || 10*s.seen < 11*s.judged+10 {
		return 0
	}
	return float64(s.seen) / float64(s.judged+1)
}

func (s *series) judge() {
	s.course = trend.JudgeLevels(s.times, s.levels)
	s.judged, s.until = s.seen, s.times[len(s.times)-1]
	if math.IsNaN(s.course.Rate) || math.IsInf(s.course.Rate, 0) {
		s.course.Rate = 0
	}
}
