package footprint

import (
	"io"
	"time"

	"strandline/finding"
	"strandline/trend"
)

// Grown returns the classes of growth from the first of several observations, in
// chronological order, to the last, and when each class grew. memory is the process's
// memory, for samples; nil if it cannot be read.
func Grown(looks []*Observation, memory io.ReaderAt) *Growth {
	g := classifyGrowth(looks[0], looks[len(looks)-1], memory, minGrowth)
	n := len(looks) - 1
	curves := map[finding.Kind][]int64{} // growth up to each look
	for i := range n {
		for _, p := range classifyGrowth(looks[i], looks[i+1], memory, minGrowth/int64(2*n)).Parts {
			if curves[p.Class] == nil {
				curves[p.Class] = make([]int64, n+1)
			}
			for j := i + 1; j <= n; j++ {
				curves[p.Class][j] += p.Bytes
			}
		}
	}
	for i := range g.Parts {
		if curve := curves[g.Parts[i].Class]; curve != nil {
			g.Parts[i].datePart(curve, looks)
		}
	}
	g.earlier()
	return g
}

// datePart determines when a class grew from the curve of its growth up to each look.
func (p *Part) datePart(curve []int64, looks []*Observation) {
	at := func(look int) time.Duration { return looks[look].At - looks[0].At }
	n, from, all := len(curve)-1, trend.WarmUp(curve), p.Bytes
	if rest := curve[n] - curve[from]; from > 0 && minGrowth <= rest && rest < all {
		p.Bytes, p.Early, p.Until = rest, all-rest, at(from)
	} else {
		from = 0
	}
	grew, last := p.grew(curve, from)
	if p.Settled = grew > 0 && last < n && 4*at(last) <= 3*at(n); p.Settled {
		p.Bytes, p.Early, p.Until = all, 0, at(last)
	}
	pauses := (n - from) / 4 // in which a garbage collector may have run
	p.Steady = n-from > 1 && grew >= n-from-pauses && last >= n-pauses
}

// grew counts the steps, from a look on, in which the class grew, and returns the last
// look up to which it did.
func (p *Part) grew(curve []int64, from int) (steps, last int) {
	n := len(curve) - 1
	for i := from; i < n; i++ {
		if step := curve[i+1] - curve[i]; step > 0 && step >= p.Bytes/int64(8*(n-from)) {
			steps, last = steps+1, i+1
		}
	}
	return steps, last
}
