// Package trend decides whether numbers grow: it computes how likely a leak is from the
// allocations of a call site that are alive at each checkpoint, or from the bytes of a
// series. [Judge] decides for allocations; judge.go states its assumptions. [JudgeLevels]
// decides for the levels of a series over time (course.go). The package is pure
// arithmetic on numbers that others measured. It serves snapshots, traces of processes
// and other tools' files alike, so any package of models or analyses may import it.
// How a course is put into words is in words.go.
package trend

// A Span is one thing that was alive at some of a series of checkpoints: at First, at
// Last and at all checkpoints between. Checkpoints are numbered from 0.
type Span struct {
	First, Last int
	Bytes       int64
}

// A Population is what one place held at each of a series of checkpoints, described by
// identity: not only how much there was, but how much of it was there before. All slices
// have one element per checkpoint.
type Population struct {
	Count, Bytes []int64 // alive at the checkpoint
	kept         []int64 // of Count, also alive at the previous checkpoint
	// SettledLost counts those that were alive at the two previous checkpoints and are
	// gone: they had outlived an interval, and then went.
	SettledLost []int64
	// Final is how many bytes at the checkpoint belong to what is still alive at the
	// last checkpoint: its growth cannot come from things that go.
	Final []int64
}

// NewPopulation returns an empty population with n checkpoints.
func NewPopulation(n int) *Population {
	all := make([]int64, 5*n)
	column := func(i int) []int64 { return all[i*n : (i+1)*n : (i+1)*n] }
	return &Population{Count: column(0), Bytes: column(1), kept: column(2), SettledLost: column(3), Final: column(4)}
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
			p.kept[j] += n
		}
	}
	if s.Last > s.First && s.Last+1 < len(p.Count) {
		p.SettledLost[s.Last+1] += n
	}
}

// Merge adds another population at the same checkpoints.
func (p *Population) Merge(q *Population) {
	for j := range p.Count {
		p.Count[j] += q.Count[j]
		p.Bytes[j] += q.Bytes[j]
		p.kept[j] += q.kept[j]
		p.SettledLost[j] += q.SettledLost[j]
		p.Final[j] += q.Final[j]
	}
}

// MergeShare adds a share of another population, for one of which only that share belongs
// here.
func (p *Population) MergeShare(q *Population, share float64) {
	part := func(to, from []int64) {
		for j := range to {
			to[j] += int64(float64(from[j])*share + 0.5)
		}
	}
	part(p.Count, q.Count)
	part(p.Bytes, q.Bytes)
	part(p.kept, q.kept)
	part(p.SettledLost, q.SettledLost)
	part(p.Final, q.Final)
}

// Checkpoints returns the number of checkpoints.
func (p *Population) Checkpoints() int { return len(p.Count) }

// added is how many things at checkpoint j were not there at the previous checkpoint.
func (p *Population) added(j int) int64 {
	if j == 0 {
		return p.Count[0]
	}
	return p.Count[j] - p.kept[j]
}

// Lost returns how many things of the previous checkpoint are gone at checkpoint j.
func (p *Population) Lost(j int) int64 {
	if j == 0 {
		return 0
	}
	return p.Count[j-1] - p.kept[j]
}
