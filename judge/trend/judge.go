package trend

import (
	"fmt"
	"math"
)

// A Class is a shape of memory over time.
type Class string

// The classes of a population. Only Leak is a reason to act.
const (
	Steady   Class = "steady"   // nothing is added that lasts
	Once     Class = "once"     // added in one or two moments: warm-up, a copy made on purpose
	Turnover Class = "turnover" // what is added goes again: a working set, a full cache
	Levelled Class = "levelled" // grew, then stopped: a cache that filled and evicts nothing yet
	Leak     Class = "leak"     // added again and again, and nothing goes away
	TooShort Class = "too-short"
)

// A Verdict is the judgment of one population.
type Verdict struct {
	Class Class
	// Confidence is the probability that growth of this shape is a leak, by the
	// assumptions of [Judge]; 0 for the other classes.
	Confidence float64
	// Rounds of Intervals had additions that lasted.
	Rounds, Intervals int
	// Outlived counts the occasions on which something could have gone and did not;
	// Lost counts those on which it went.
	Outlived, Lost int64
}

// Basis says in words what the confidence is computed from.
func (v Verdict) Basis() string {
	return fmt.Sprintf("additions stayed in %d of %d intervals; of %d chances to free something, as a working set does, %d were taken",
		v.Rounds, v.Intervals, v.Outlived+v.Lost, v.Lost)
}

// The assumptions. In a bounded working set (a cache, a buffer, requests in progress),
// each thing that has outlived one interval is assumed to go in the next with a
// probability of at least turnover. Things that are made once and stay (weights,
// optimizer state, a late copy) are assumed to appear in an interval with a probability
// of at most oneOff, and in oneOffs intervals of a long series on average: there are only
// so many of them, however long one looks. A leak is what neither explains.
const (
	turnover = 0.2
	oneOff   = 0.2
	oneOffs  = 2
	// mixed is the share of things that go, below which a place may still leak: one
	// line can make both what leaks and what is freed.
	mixed = 0.08
	// goesOn is the prior probability that what grew goes on growing. stopped is the
	// probability, at the rate so far, of a pause as long as the one at the end; below
	// it, growth has ended.
	goesOn  = 0.7
	stopped = 0.15
	// Additions that slow down are judged by the ratio of the rate in the second half
	// of the intervals to that in the first. What saturates as 1-exp(-t) adds, in the
	// next window of equal length, the square of that ratio: below a tenth it levels
	// off, above a quarter it keeps growing; in between it is undecided, and so is the
	// confidence. If much of what is made goes within an interval, what happens to stay
	// in a few intervals may be a working set that occasionally lives longer: only what
	// stays in nearly all of them is certain. In two intervals a filling cache looks
	// like a leak, except that it seldom adds the same number of things each time.
	nearlyAll = 0.75
	levels    = 0.32
	growsOn   = 0.5
	open      = 0.45
)

// maxConfidence is the largest confidence: no growth is a leak for certain.
var maxConfidence = math.Nextafter(1, 0)

// Past is what is known about a place beyond its checkpoints.
type Past struct {
	// Freed is how many things were seen to be freed after they had lived for at least
	// an interval.
	Freed int64
	// Outlived counts the occasions before the first checkpoint that things alive at
	// that checkpoint had outlived: for each batch of them, its age in intervals.
	Outlived int64
}

// Judge distinguishes a leak from other growth.
//
// It looks at identity, not at totals: if memory grows while everything made earlier
// goes, that is more work, not a leak.
func Judge(p *Population, past Past) Verdict {
	n := p.Checkpoints() - 1
	v := Verdict{Class: TooShort, Intervals: n}
	if n < 2 {
		return v
	}
	added := make([]int64, n+1) // and stayed
	var churn, lost int64
	for j := 1; j <= n; j++ {
		added[j] = p.lasting(j)
		if added[j] > 0 {
			v.Rounds++
		}
		churn += p.Lost(j)
		lost += p.SettledLost[j]
	}
	v.Outlived, v.Lost = past.Outlived+p.outlived(churn == 0, added), max(lost, past.Freed)
	grown := p.kept[n] - p.kept[1]
	if churn == 0 {
		grown = p.Count[n] - p.Count[0]
	}
	switch {
	case v.Rounds == 0 && churn > 0, grown <= 0 && v.Rounds > 0,
		float64(v.Lost) > mixed*float64(max(p.kept[n], 1)+v.Lost):
		v.Class = Turnover
		return v
	case v.Rounds == 0:
		v.Class = Steady
		return v
	case v.Rounds == 1:
		v.Class = Once
		return v
	}
	seen := added
	if added[n] == 0 && p.added(n) > 0 { // some of them may stay: it is not a pause yet
		seen = added[:n]
	}
	pause, quiet := pauseAtEnd(seen, v.Rounds)
	slows := slowing(added)
	if pause < stopped || slows < levels {
		v.Class = Levelled
		return v
	}
	going := goesOn * pause / (goesOn*pause + 1 - goesOn) // the probability that growth goes on
	if pause == 1 {
		going = 1
	}
	workingSet := math.Pow(1-turnover, float64(v.Outlived))
	v.Class, v.Confidence = Leak, min(going*(1-workingSet)*(1-coincidence(v.Rounds, n-quiet)), maxConfidence)
	if slows < growsOn || churn > 0 && float64(v.Rounds) < nearlyAll*float64(n-quiet) || n == 2 && past.Outlived <= 2 && !p.constant() {
		v.Confidence = min(v.Confidence, open)
	}
	return v
}

// pauseAtEnd counts the quiet intervals, without additions, at the end of a series, and
// returns the probability of that many if the series goes on as before: 1 if there are
// none. It is the larger of two estimates, as additions can come at random or at regular
// intervals: one from the share of intervals that had additions, and one from how many of
// the pauses between additions were as long.
func pauseAtEnd(added []int64, rounds int) (probability float64, quiet int) {
	var pauses []int // between additions
	seen := false
	for _, a := range added[1:] {
		if a <= 0 {
			quiet++
			continue
		}
		if seen {
			pauses = append(pauses, quiet)
		}
		quiet, seen = 0, true
	}
	if quiet == 0 {
		return 1, 0
	}
	longer := 0
	for _, p := range pauses {
		if p >= quiet {
			longer++
		}
	}
	random := math.Pow(1-float64(rounds)/float64(len(added)-quiet), float64(quiet))
	return max(random, float64(longer)/float64(len(pauses))), quiet
}

// coincidence is the probability that things made once fill that many of the intervals up
// to the last addition.
func coincidence(rounds, intervals int) float64 {
	return atLeast(rounds, intervals, min(oneOff, oneOffs/float64(intervals)))
}

// outlived counts the occasions on which things could have gone and did not. Things made
// together go together (the blocks of one sequence, the tensors of one batch), so those
// of one interval count as one thing, and as a few if every interval added the same
// number: that is a program's habit, not chance.
func (p *Population) outlived(pure bool, added []int64) (n int64) {
	batch := int64(1)
	if regular(added) {
		batch = 4
	}
	for j := 1; j < p.Checkpoints(); j++ {
		exposed := p.kept[j-1] - p.SettledLost[j]
		if pure {
			exposed = p.Count[j-1]
		}
		n += min(max(exposed, 0), batch*int64(j))
	}
	return n
}

// regular reports whether the additions of all intervals have nearly the same size.
func regular(added []int64) bool {
	low, high := added[1], added[1]
	for _, a := range added[1:] {
		low, high = min(low, a), max(high, a)
	}
	return low > 0 && 3*high <= 4*low
}

// constant reports whether two intervals both added the same number of things that
// stayed, and the number that was there before is a multiple of it.
func (p *Population) constant() bool {
	a := p.lasting(1)
	return a > 0 && a == p.lasting(2) && p.lasting(0)%a == 0
}

// lasting is how many of the things added at checkpoint j are alive at the next
// checkpoint too; for the last checkpoint, as many of the added things as did not take
// the place of others.
func (p *Population) lasting(j int) int64 {
	if j == p.Checkpoints()-1 {
		return max(0, p.added(j)-p.Lost(j))
	}
	return p.kept[j+1] - (p.kept[j] - p.SettledLost[j+1])
}

// slowing is the ratio of the rate of additions in the second half of the intervals to
// that in the first; 1 if there are too few to judge, or if chance explains the decline.
func slowing(added []int64) float64 {
	n := len(added) - 1
	const enough = 4
	if n < enough {
		return 1
	}
	var first, second, batch float64
	for j := 1; j <= n; j++ {
		if added[j] > 0 && (batch == 0 || float64(added[j]) < batch) {
			batch = float64(added[j]) // things come in batches at least as large as the smallest
		}
		switch {
		case j <= n/2:
			first += float64(added[j])
		case j > n-n/2:
			second += float64(added[j])
		}
	}
	if first <= second {
		return 1
	}
	const chance = 0.1
	all, fewer := int((first+second)/batch), int(second/batch)
	if all > 1000 || atLeast(all-fewer, all, 0.5) < chance {
		return second / first
	}
	return 1
}

// atLeast is the probability of k or more successes in n tries with probability p, which
// must be below 1 and not so large that (1-p)^n is 0.
func atLeast(k, n int, p float64) float64 {
	fewer, term := 0.0, math.Pow(1-p, float64(n)) // of i successes
	for i := range k {
		fewer += term
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return max(0, 1-fewer)
}
