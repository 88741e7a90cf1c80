package jobs

import (
	"math"
	"slices"

	"strandline/logs/ranks"
)

// between is how long after the end of a run another begins at least, in seconds: a log that is
// rotated goes on at once.
const between = 60

// lastRun leaves out the texts of earlier runs: those that ended before another text of the same
// rank, with steps of its own, begins.
func (j *job) lastRun() {
	began := math.Inf(-1)
	last := map[int]float64{} // by rank, the end of its text that ends first
	type written struct {
		rank  int
		first float64
	}
	var all []written
	for _, t := range j.texts {
		channels := j.channels(t)
		if len(channels) != 1 || channels[0].rank < 0 || !slices.ContainsFunc(t.Voices, func(v *ranks.Voice) bool { return v.Step >= 0 }) {
			continue
		}
		first, end := span(t)
		if math.IsNaN(first) {
			continue
		}
		r := channels[0].rank
		if x, ok := last[r]; !ok || end < x {
			last[r] = end
		}
		all = append(all, written{r, first})
	}
	for _, w := range all {
		if w.first > last[w.rank]+between && sameEra(w.first, last[w.rank]) {
			began = max(began, w.first)
		}
	}
	before := len(j.texts)
	j.texts = slices.DeleteFunc(j.texts, func(t *ranks.Text) bool {
		_, end := span(t)
		return end < began-between && sameEra(end, began)
	})
	j.former = before - len(j.texts)
}

// span is the time of the first and of the last line of a text, NaN if no line has one.
func span(t *ranks.Text) (first, last float64) {
	first, last = math.NaN(), math.NaN()
	for _, v := range t.Voices {
		if math.IsNaN(first) || v.First < first {
			first = v.First
		}
		if math.IsNaN(last) || v.Last > last {
			last = v.Last
		}
	}
	return first, last
}

// sameEra reports whether both times have a year, or neither.
func sameEra(a, b float64) bool {
	const y2001 = 978307200
	return (a < y2001) == (b < y2001)
}

// mixed are two texts of one rank that are of different jobs: they go through steps at the same
// time, and name the same steps at other times. It is nil if there are none.
func (j *job) mixed() []*ranks.Text {
	const minApart, minCommon = 60, 3 // seconds, steps
	type course struct {
		text  *ranks.Text
		at    map[int64]float64
		first float64
		last  float64
	}
	byRank := map[int][]course{}
	for _, t := range j.texts {
		channels := j.channels(t)
		if len(channels) != 1 || channels[0].rank < 0 || len(t.Restarts) > 0 {
			continue
		}
		c := course{text: t, at: map[int64]float64{}}
		c.first, c.last = span(t)
		for _, v := range t.Voices {
			for _, s := range v.Steps {
				if !math.IsNaN(s.At) {
					c.at[s.Step] = s.At
				}
			}
		}
		if len(c.at) < minCommon {
			continue
		}
		for _, x := range byRank[channels[0].rank] {
			if c.first > x.last || x.first > c.last || !sameEra(c.first, x.first) {
				continue
			}
			var gaps []float64
			for step, at := range c.at {
				if other, ok := x.at[step]; ok {
					gaps = append(gaps, math.Abs(at-other))
				}
			}
			if len(gaps) >= minCommon && median(gaps) > minApart {
				return []*ranks.Text{x.text, t}
			}
		}
		byRank[channels[0].rank] = append(byRank[channels[0].rank], c)
	}
	return nil
}
