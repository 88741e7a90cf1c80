package jobs

import (
	"cmp"
	"math"
	"slices"

	"strandline/internal/sorts"
	"strandline/logs/ranks"
)

// year is the length of 2000, in whose days all times are put: texts beside others without a
// year can have one.
const year = 366 * 86400

// sameYear puts a time into the year 2000.
func sameYear(at float64) float64 {
	const y2000 = 946684800
	if math.IsNaN(at) || at < y2000+year {
		return at
	}
	for y, begin := 2001, float64(y2000+year); ; y++ {
		length := float64(365 * 86400)
		leap := y%4 == 0
		if leap {
			length = year
		}
		if at < begin+length || y > 2200 {
			at -= begin
			if !leap && at >= 59*86400 {
				at += 86400
			}
			return y2000 + at
		}
		begin += length
	}
}

// setClocks brings all times to one clock: those of nodes differ by seconds. Two nodes print
// the same lines at the same moments: when they begin, and at each step.
func (j *job) setClocks() {
	type seen struct{ at map[uint64]float64 }
	of := map[*node]*seen{}
	note := func(n *node, hash uint64, at float64) {
		if math.IsNaN(at) {
			return
		}
		s := of[n]
		if s == nil {
			s = &seen{map[uint64]float64{}}
			of[n] = s
		}
		if old, ok := s.at[hash]; !ok || at < old {
			s.at[hash] = at
		}
	}
	for _, r := range j.order {
		for _, v := range r.voices {
			for _, s := range v.Said {
				note(r.node, s.Hash, sameYear(s.At))
			}
			for _, s := range v.Steps {
				note(r.node, uint64(s.Step)<<20|1, sameYear(s.At))
			}
		}
	}
	delete(of, nil)
	shared := map[uint64][]float64{}
	for _, s := range of {
		for hash, at := range s.at {
			shared[hash] = append(shared[hash], at)
		}
	}
	for n, s := range of {
		var diffs []float64
		for hash, at := range s.at {
			all := shared[hash]
			if len(all) < 2 {
				continue
			}
			if d := at - median(all); math.Abs(d) < 60 {
				diffs = append(diffs, d)
			}
		}
		if len(diffs) > 0 {
			n.offset = median(diffs)
		}
	}
	j.apply()
}

// apply gives all events their time by the job's clock.
func (j *job) apply() {
	shift := func(at float64, n *node) float64 {
		at = sameYear(at)
		if n != nil {
			at -= n.offset
		}
		return at
	}
	j.began = math.Inf(-1)
	for _, t := range j.texts {
		var on *node
		for _, e := range t.Exits {
			if e.Host != "" && e.Local >= 0 {
				on = j.at(e.Host)
			}
		}
		last := len(t.Restarts)
		for _, m := range t.Restarts {
			if at := shift(m.At, on); !math.IsNaN(at) {
				j.began = max(j.began, at)
			}
		}
		for _, e := range t.Exits {
			if e.Attempt < last {
				continue
			}
			n := on
			if e.Host != "" {
				n = j.at(e.Host)
			}
			j.exits = append(j.exits, exit{e, t, shift(e.At, n)})
		}
		for _, k := range t.Kills {
			n := j.hosts[k.Host]
			if k.Host != "" && n == nil {
				n = j.at(k.Host)
			}
			if k.Attempt >= last {
				j.kills = append(j.kills, kill{k, t, shift(k.At, n), k.Rank, n})
			}
		}
		for _, m := range t.Ended {
			j.ended = append(j.ended, shift(m.At, on))
		}
	}
	const slack = 2 // seconds: an attempt takes longer to fail
	early := func(at float64) bool { return !math.IsInf(j.began, -1) && at < j.began+slack }
	for _, r := range j.order {
		for i := range r.events {
			r.events[i].at = shift(r.events[i].At, r.node)
		}
		r.events = slices.DeleteFunc(r.events, func(e event) bool { return e.Timed && early(e.at) })
		sorts.StableBy(r.events, func(a, b event) int {
			if a.text == b.text {
				return cmp.Compare(a.Line, b.Line)
			}
			return cmp.Compare(a.at, b.at)
		})
		for _, v := range r.voices {
			for _, s := range v.Steps {
				if at := shift(s.At, r.node); !early(at) {
					j.steps = append(j.steps, ranks.StepAt{Step: s.Step, At: at})
				}
			}
		}
	}
	for i := range j.loose {
		j.loose[i].at = shift(j.loose[i].At, j.loose[i].node)
	}
	j.loose = slices.DeleteFunc(j.loose, func(e loose) bool { return early(e.at) })
	j.kills = slices.DeleteFunc(j.kills, func(k kill) bool { return early(k.at) })
	j.exits = slices.DeleteFunc(j.exits, func(e exit) bool { return early(e.at) })
	sorts.By(j.steps, func(a, b ranks.StepAt) int {
		if c := cmp.Compare(a.At, b.At); c != 0 {
			return c
		}
		return cmp.Compare(a.Step, b.Step)
	})
}

// median is the middle of some numbers, 0 of none.
func median(list []float64) float64 {
	if len(list) == 0 {
		return 0
	}
	list = slices.Clone(list)
	slices.Sort(list)
	n := len(list)
	return (list[(n-1)/2] + list[n/2]) / 2
}
