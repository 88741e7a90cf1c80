// Package trend decides whether numbers grow: from the allocations of a call site that
// live at each checkpoint, or from the bytes of a series, it computes how likely a
// leak is. [Judge] is the decision; judge.go states its assumptions. It is pure
// arithmetic on numbers that others measured, and serves snapshots, traces of
// processes and other tools' files alike, so that the models and analyses of every
// wing may import it.
package trend

// A Span is one thing that was alive at some of a series of marks: at First,
// at Last and at all between. Marks are numbered from 0.
type Span struct {
	First, Last int
	Bytes       int64
}

// A Population is what one place held at each of a series of marks, told by
// identity: not only how much there was, but how much of it was there before.
// All slices have one element a mark.
type Population struct {
	Count, Bytes []int64 // alive at the mark
	Kept         []int64 // of Count, alive at the mark before too
	// SettledLost are those that were alive at the two marks before this one and
	// are gone: what had outlived an interval, and then went.
	SettledLost []int64
	// Final is the bytes at the mark of what lives at the last mark: growth of it
	// cannot come from things that go.
	Final []int64
}

// NewPopulation is empty at n marks.
func NewPopulation(n int) *Population {
	all := make([]int64, 5*n)
	column := func(i int) []int64 { return all[i*n : (i+1)*n : (i+1)*n] }
	return &Population{Count: column(0), Bytes: column(1), Kept: column(2), SettledLost: column(3), Final: column(4)}
}

// Add counts a span.
func (p *Population) Add(s Span) { p.AddMany(s, 1) }

// AddMany counts n spans that are alike.
func (p *Population) AddMany(s Span, n int64) {
	for j := s.First; j <= s.Last; j++ {
		p.Count[j] += n
		p.Bytes[j] += n * s.Bytes
		if s.Last == len(p.Count)-1 {
			p.Final[j] += n * s.Bytes
		}
		if j > s.First {
			p.Kept[j] += n
		}
	}
	if s.Last > s.First && s.Last+1 < len(p.Count) {
		p.SettledLost[s.Last+1] += n
	}
}

// Merge adds another population at the same marks.
func (p *Population) Merge(q *Population) {
	for j := range p.Count {
		p.Count[j] += q.Count[j]
		p.Bytes[j] += q.Bytes[j]
		p.Kept[j] += q.Kept[j]
		p.SettledLost[j] += q.SettledLost[j]
		p.Final[j] += q.Final[j]
	}
}

// MergeShare adds a share of another population, as of one of which only that
// much belongs here.
func (p *Population) MergeShare(q *Population, share float64) {
	part := func(to, from []int64) {
		for j := range to {
			to[j] += int64(float64(from[j])*share + 0.5)
		}
	}
	part(p.Count, q.Count)
	part(p.Bytes, q.Bytes)
	part(p.Kept, q.Kept)
	part(p.SettledLost, q.SettledLost)
	part(p.Final, q.Final)
}

// Marks is the number of marks.
func (p *Population) Marks() int { return len(p.Count) }

// Added are the things at mark j that were not there at the mark before.
func (p *Population) Added(j int) int64 {
	if j == 0 {
		return p.Count[0]
	}
	return p.Count[j] - p.Kept[j]
}

// Lost are the things of the mark before that are gone at mark j.
func (p *Population) Lost(j int) int64 {
	if j == 0 {
		return 0
	}
	return p.Count[j-1] - p.Kept[j]
}

// Settled are the things at mark j that outlived the interval before it.
func (p *Population) Settled(j int) int64 { return p.Kept[j] }
