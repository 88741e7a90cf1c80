package trend

import (
	"fmt"
	"math"

	"strandline/units"
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

// Basis states in words what the confidence is computed from.
func (v Verdict) Basis() string {
	freed := "none of it was freed"
	if older := v.Outlived + v.Lost; older > 0 && v.Lost > 0 {
		freed = fmt.Sprintf("%s of the older pieces were freed", units.Percent(float64(v.Lost)/float64(older)))
	}
	return fmt.Sprintf("grew in %d of %d intervals; %s", v.Rounds, v.Intervals, freed)
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
	// Brief is how many things were seen to be freed if all of them had lived for much
	// less than an interval: temporaries, of which a checkpoint inside a step shows some.
	Brief int64
	// Work is how much the program did up to each checkpoint since the one before, in
	// steps or in any other unit, all above 0 but the first; nil if unknown, as if the
	// intervals were equal.
	Work []float64
}

// work is how much the program did from checkpoint i to checkpoint j.
func (p *Past) work(i, j int) (sum float64) {
	if p.Work == nil {
		return float64(j - i)
	}
	for _, w := range p.Work[i+1 : j+1] {
		sum += w
	}
	return sum
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
	v.Outlived, v.Lost = past.Outlived+p.outlived(churn <= past.Brief, past.regular(added)), max(lost, past.Freed)
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
	pause, quiet := past.pauseAtEnd(seen, v.Rounds)
	slows := past.slowing(added)
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
	if slows < growsOn || churn > 0 && float64(v.Rounds) < nearlyAll*float64(n-quiet) || n == 2 && past.Outlived <= 2 && !p.constant(past) {
		v.Confidence = min(v.Confidence, open)
	}
	return v
}

// pauseAtEnd counts the quiet intervals, without additions, at the end of a series, and
// returns the probability of as long a pause if the series goes on as before: 1 if there
// is none. It is the larger of two estimates, as additions can come at random or at
// regular intervals: one from the share of intervals that had additions, and one from how
// many of the pauses between additions were as long.
func (p *Past) pauseAtEnd(added []int64, rounds int) (probability float64, quiet int) {
	var pauses []float64 // between additions, in work
	last := 0            // checkpoint with additions
	for j := 1; j < len(added); j++ {
		if added[j] <= 0 {
			continue
		}
		if last > 0 {
			pauses = append(pauses, p.work(last, j-1))
		}
		last = j
	}
	n := len(added) - 1
	if last == n {
		return 1, 0
	}
	length := p.work(last, n)
	longer := 0
	for _, pause := range pauses {
		if pause >= length {
			longer++
		}
	}
	random := math.Pow(1-float64(rounds)/float64(last+1), length*float64(last)/p.work(0, last))
	return max(random, float64(longer)/float64(len(pauses))), n - last
}

// coincidence is the probability that things made once fill that many of the intervals up
// to the last addition.
func coincidence(rounds, intervals int) float64 {
	return atLeast(rounds, intervals, min(oneOff, oneOffs/float64(intervals)))
}

// outlived counts the occasions on which things could have gone and did not. Things made
// together go together (the blocks of one sequence, the tensors of one batch), so those
// of one interval count as one thing, and as a few if they were added regularly: that is
// a program's habit, not chance. Where some things go within an interval, those that stay
// count from the next one on, unless what goes is known to go at once (brief).
func (p *Population) outlived(brief, regular bool) (n int64) {
	batch := int64(1)
	if regular {
		batch = 4
	}
	for j := 1; j < p.Checkpoints(); j++ {
		exposed := p.kept[j-1] - p.SettledLost[j]
		if brief {
			exposed = p.kept[j]
		}
		n += min(max(exposed, 0), batch*int64(j))
	}
	return n
}

// regular reports whether the additions of all intervals have nearly the same size, or
// nearly the same for the work that was done.
func (p *Past) regular(added []int64) bool {
	alike := func(size func(j int) float64) bool {
		low, high := size(1), size(1)
		for j := 2; j < len(added); j++ {
			low, high = min(low, size(j)), max(high, size(j))
		}
		return low > 0 && 3*high <= 4*low
	}
	return alike(func(j int) float64 { return float64(added[j]) }) ||
		alike(func(j int) float64 { return float64(added[j]) / p.work(j-1, j) })
}

// constant reports whether two intervals both added the same number of things that
// stayed, or did so for each step of their work, and the number that was there before is
// a multiple of it.
func (p *Population) constant(past Past) bool {
	a, b := p.lasting(1), p.lasting(2)
	if a > 0 && a == b && p.lasting(0)%a == 0 {
		return true
	}
	step := int64(float64(a) / past.work(0, 1))
	return step > 0 && float64(a) == float64(step)*past.work(0, 1) && float64(b) == float64(step)*past.work(1, 2) && p.lasting(0)%step == 0
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
func (p *Past) slowing(added []int64) float64 {
	n := len(added) - 1
	const minAdded = 4
	if n < minAdded {
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
	before, after := p.work(0, n/2), p.work(n-n/2, n)
	ratio := second / after / (first / before)
	if first == 0 || ratio >= 1 {
		return 1
	}
	const chance = 0.1
	all, fewer := int((first+second)/batch), int(second/batch)
	if all > 1000 || atMost(fewer, all, after/(before+after)) < chance {
		return ratio
	}
	return 1
}

// atMost is the probability of k or fewer successes in n tries with probability p.
func atMost(k, n int, p float64) float64 {
	if p < 0.5 {
		return 1 - atLeast(k+1, n, p)
	}
	return atLeast(n-k, n, 1-p)
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
