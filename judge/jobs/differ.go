package jobs

import (
	"fmt"
	"math"
	"slices"

	"strandline/logs/ranks"
	"strandline/units"
)

// A Difference is how the memory of the first rank differs from that of its peers, which are the
// ranks of its pipeline stage; or, where no peer states its own, how it grew.
type Difference struct {
	Label   string  // of the figure in the texts
	Since   int64   // the step after which it rises, or is above; -1 if it is by the layout
	PerStep float64 // bytes, 0 if it does not rise
	Above   float64 // bytes at the end, above the peers or above the level before it rose
	Peers   int     // that state the same figure; 0 if it is compared with itself
}

// compare adds to a verdict how the first rank differs, where that is its cause.
func (j *job) compare(v *Job, first *rank) {
	if v.Cause != Leak && v.Cause != Imbalance {
		return
	}
	d, alone := j.difference(first, true), j.difference(first, false)
	const minPart = 0.25 // of its growth, which a peer lacks
	if v.Cause == Leak && alone != nil && (d == nil || d.Above < minPart*alone.Above) {
		if len(j.peers(first, alone.Label)) > 1 {
			v.Why += ", and its peers' memory likewise"
		}
		d = alone
	}
	if d == nil && v.Cause == Imbalance {
		d = j.ofStages(first)
	}
	if d == nil || v.Cause == Leak && d.PerStep <= 0 {
		return
	}
	v.Differs = d
	v.Why += ": " + d.text()
}

// text states a difference in words.
func (d *Difference) text() string {
	s := d.Label + " "
	if d.PerStep > 0 {
		s += fmt.Sprintf("+%s a step since step %s, ", units.Bytes(int64(d.PerStep)), units.Count(d.Since))
	}
	s += units.Bytes(int64(d.Above)) + " above "
	switch {
	case d.Peers == 0:
		return s + "its level before"
	case d.PerStep > 0:
		return s + fmt.Sprintf("its %s at the end", units.Plural(int64(d.Peers), "peer"))
	case d.Since < 0:
		return s + fmt.Sprintf("%s of other stages", units.Plural(int64(d.Peers), "rank"))
	}
	return s + fmt.Sprintf("its %s from step %s on", units.Plural(int64(d.Peers), "peer"), units.Count(d.Since))
}

// ofStages compares the most that a rank holds with the most of ranks of other stages.
func (j *job) ofStages(first *rank) *Difference {
	var others []float64
	for _, r := range j.order {
		if p := peakOf(r); p > 0 && j.stage(r.n) != j.stage(first.n) {
			others = append(others, p)
		}
	}
	if above := peakOf(first) - median(others); len(others) > 0 && above > 0 {
		return &Difference{Label: "peak", Since: -1, Above: above, Peers: len(others)}
	}
	return nil
}

// difference compares the course of a rank with those of its peers at the same steps, or with
// its own beginning; nil if they are alike, or the texts do not tell.
func (j *job) difference(first *rank, withPeers bool) *Difference {
	mine := memoryOf(first)
	if mine == nil || len(mine.points) < 4 {
		return nil
	}
	var peers []*course
	if withPeers {
		peers = j.peers(first, mine.label)
	}
	d := &Difference{Label: mine.label, Peers: len(peers)}
	if len(peers) == 1 { // which of two is the usual one is not known
		d.Peers = 0
	}
	var steps, above []float64
	for _, p := range mine.points {
		if p.Step < 0 || len(steps) > 0 && float64(p.Step) <= steps[len(steps)-1] {
			continue
		}
		usual := 0.0
		if d.Peers > 0 {
			var all []float64
			for _, c := range peers {
				if x, ok := c.before(p.Step); ok {
					all = append(all, x)
				}
			}
			if len(all) < 2 {
				continue
			}
			usual = median(all)
		}
		steps, above = append(steps, float64(p.Step)), append(above, p.Value-usual)
	}
	return d.measure(steps, above, capacityOf(first))
}

// peers are the courses of a figure of the other ranks of a stage.
func (j *job) peers(first *rank, label string) (out []*course) {
	for _, r := range j.order {
		if r == first || j.stage(r.n) != j.stage(first.n) {
			continue
		}
		if c := memoryOf(r); c != nil && c.label == label && len(c.points) > 1 {
			out = append(out, c)
		}
	}
	return out
}

// before is the last value of a course up to a step.
func (c *course) before(step int64) (value float64, ok bool) {
	i, found := slices.BinarySearchFunc(c.points, step, func(p ranks.Point, s int64) int { return int(p.Step - s) })
	if !found {
		i--
	}
	if i < 0 {
		return 0, false
	}
	return c.points[i].Value, true
}

// measure finds the step since which a series of differences rises out of its noise.
func (d *Difference) measure(steps, above []float64, capacity float64) *Difference {
	const minPoints, minPart, noises = 4, 0.02, 3
	n := len(steps)
	if n < minPoints {
		return nil
	}
	low := median(above[:max(2, n/5)])
	end := median(above[n-max(1, n/10):])
	minBytes := max(minPart*capacity, 64<<20)
	if d.Peers > 0 && low > max(minBytes, 0.1*math.Abs(end)) && end-low < minBytes { // higher from the beginning
		d.Since, d.Above = int64(steps[0]), end
		return d
	}
	if end-low < minBytes {
		return nil
	}
	noise := make([]float64, 0, n)
	for i := 2; i < n; i++ { // of a straight course, whatever its slope, nothing is left
		noise = append(noise, math.Abs(above[i]-2*above[i-1]+above[i-2]))
	}
	band := max(noises*median(noise), 0.05*(end-low))
	from := 0
	for i, x := range above {
		if x <= low+band {
			from = i
		}
	}
	if from > n-3 {
		from = n - 3
	}
	d.Since, d.Above = int64(steps[from]), end
	if d.Peers == 0 {
		d.Above = end - low
	}
	var slopes []float64
	for i := from; i < n; i++ {
		for k := i + 1; k < n; k += max(1, n/32) {
			slopes = append(slopes, (above[k]-above[i])/(steps[k]-steps[i]))
		}
	}
	d.PerStep = median(slopes)
	return d
}
