package plan

import (
	"math"
)

const GiB = 1 << 30

// Range is a size that is known between two bounds, in bytes.
type Range struct{ Low, High int64 }

// Middle is halfway between the bounds.
func (r Range) Middle() int64 { return r.Low + (r.High-r.Low)/2 }

// Ends are the bounds, the lower one first.
func (r Range) Ends() [2]int64 { return [2]int64{r.Low, r.High} }

func Exactly(n int64) Range { return Range{n, n} }

// Plus stays at what [whole] takes for the largest.
func (r Range) Plus(o Range) Range { return Range{min(r.Low+o.Low, Most), min(r.High+o.High, Most)} }

// Span is a range while it is computed.
type Span struct{ Low, High float64 }

func Point(x float64) Span { return Span{x, x} }

func Between(low, high float64) Span { return Span{low, high} }

func (s Span) Plus(o Span) Span { return Span{s.Low + o.Low, s.High + o.High} }

func (s Span) Times(x float64) Span { return Span{s.Low * x, s.High * x} }

func (s Span) Bytes() Range { return Range{Whole(s.Low), Whole(s.High)} }

func (s Span) Middle() float64 { return (s.Low + s.High) / 2 }

func (s Span) Stretched(a, b float64) Span { return Span{s.Low * a, s.High * b} }

// Within narrows a span that is wider than ratio, about its middle. The ends of a narrowed
// one are whole, so that rounding does not widen it again.
func (s Span) Within(ratio float64) Span {
	if s.High <= ratio*s.Low {
		return s
	}
	low := math.Ceil(2 * s.Middle() / (1 + ratio))
	return Span{low, math.Floor(ratio * low)}
}

// Most is the largest number of bytes; two of them can be added.
const Most = 1<<62 - 1

// Whole is a number of bytes; what no int64 holds becomes the largest.
func Whole(x float64) int64 {
	switch {
	case math.IsNaN(x) || x <= 0:
		return 0
	case x >= Most:
		return Most
	}
	return int64(math.Round(x))
}
