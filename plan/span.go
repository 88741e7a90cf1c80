package plan

import "math"

// Range is a size that is known between two bounds, in bytes.
type Range struct{ Low, High int64 }

// Middle is halfway between the bounds.
func (r Range) Middle() int64 { return r.Low + (r.High-r.Low)/2 }

func exactly(n int64) Range { return Range{n, n} }

// plus stays at what [whole] takes for the largest.
func (r Range) plus(o Range) Range { return Range{min(r.Low+o.Low, huge), min(r.High+o.High, huge)} }

// span is a range while it is computed.
type span struct{ low, high float64 }

func point(x float64) span                 { return span{x, x} }
func between(low, high float64) span       { return span{low, high} }
func (s span) plus(o span) span            { return span{s.low + o.low, s.high + o.high} }
func (s span) times(x float64) span        { return span{s.low * x, s.high * x} }
func (s span) bytes() Range                { return Range{whole(s.low), whole(s.high)} }
func (s span) middle() float64             { return (s.low + s.high) / 2 }
func (s span) stretched(a, b float64) span { return span{s.low * a, s.high * b} }

// within narrows a span that is wider than ratio, about its middle.
func (s span) within(ratio float64) span {
	if s.high <= ratio*s.low {
		return s
	}
	low := 2 * s.middle() / (1 + ratio)
	return span{low, ratio * low}
}

// huge is the largest number of bytes; two of them can be added.
const huge = 1<<62 - 1

// whole is a number of bytes; what no int64 holds becomes the largest.
func whole(x float64) int64 {
	switch {
	case math.IsNaN(x) || x <= 0:
		return 0
	case x >= huge:
		return huge
	}
	return int64(math.Round(x))
}
