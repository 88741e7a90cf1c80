package pauses

import (
	"maps"
	"slices"

	"strandline/finding"
	"strandline/internal/sorts"
)

// parts are what of a moment is in no region.
var parts = []struct {
	pool finding.Pool
	of   func(m *Moment) *int64
}{
	{finding.TensorPool, func(m *Moment) *int64 { return m.Tensors }},
	{finding.CachePool, func(m *Moment) *int64 { return m.Cache }},
	{finding.GraphPool, func(m *Moment) *int64 { return m.Pools }},
	{finding.DriverPool, func(m *Moment) *int64 { return m.Other }},
}

// A deep is what a process has in no region while least of it is active.
type deep struct {
	paused []string
	levels map[finding.Pool][]int64 // just after the pause, of each cycle
	ends   map[finding.Pool][]int64 // just before the resume
	sizes  map[string][]int64       // of tags
}

// deepest looks at a process while least of its memory is active; nil if nothing is ever paused.
func (c *Course) deepest(spells []spell) *deep {
	// Two counts of one sample are of two moments: a single sample tells nothing of what is in neither.
	spells = slices.DeleteFunc(slices.Clone(spells), func(s spell) bool {
		return len(s.paused) == 0 || c.Sampled && len(s.moments) == 1 && s.moments[0].again == 0
	})
	if len(spells) == 0 {
		return nil
	}
	least := slices.MinFunc(spells, func(a, b spell) int { return len(a.active) - len(b.active) })
	out := &deep{paused: least.paused, levels: map[finding.Pool][]int64{}, ends: map[finding.Pool][]int64{}, sizes: map[string][]int64{}}
	for i := range spells {
		s := &spells[i]
		if !slices.Equal(s.active, least.active) {
			continue
		}
		for _, part := range parts {
			first, last := part.of(s.moments[0]), part.of(s.moments[len(s.moments)-1])
			if c.Sampled {
				for _, m := range s.moments {
					if n := part.of(m); first == nil || n != nil && *n < *first {
						first = n
					}
				}
				last = first
			}
			if first != nil {
				out.levels[part.pool] = append(out.levels[part.pool], *first)
			}
			if last != nil {
				out.ends[part.pool] = append(out.ends[part.pool], *last)
			}
		}
		for name, share := range s.moments[0].Tags {
			out.sizes[name] = append(out.sizes[name], share.Bytes)
		}
	}
	return out
}

// residues finds what processes keep in no region, and tags that grow.
func residues(runs []run) (out []stay) {
	for i := range runs {
		d := runs[i].deep
		if d == nil {
			continue
		}
		for _, part := range parts {
			s := stay{course: runs[i].Course, pool: part.pool, paused: d.paused, of: len(d.levels[part.pool])}
			if s.rises(d.levels[part.pool]) || s.stands(d) || s.exceeds(runs, i) {
				out = append(out, s)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(d.sizes)) {
			s := stay{course: runs[i].Course, pool: finding.TagPool, tag: name, paused: d.paused, of: len(d.sizes[name])}
			if s.rises(d.sizes[name]) {
				out = append(out, s)
			}
		}
	}
	return out
}

// rises reports whether each cycle leaves more, or one left something that stays. The first is
// left out: what is made once is made there.
func (s *stay) rises(levels []int64) bool {
	if len(levels) < MinCycles {
		return false
	}
	more, less, newest := 0, 0, 0
	for i := 2; i < len(levels); i++ {
		switch d := levels[i] - levels[i-1]; {
		case d >= minGrowth:
			more, newest = more+1, i
		case d < 0:
			less++
		}
	}
	last := levels[len(levels)-1]
	// A segment holds what some cycles leave: not each of them takes one.
	steps := less == 0 && more > 1 && newest >= len(levels)-2 && 3*more >= len(levels)-2 && len(levels) > MinCycles+1
	if n := len(levels) - 2; 4*(more-less) >= 3*n || steps {
		s.how, s.bytes, s.cycles, s.levels = growing, last-levels[1], n, levels
		return true
	}
	first := 2
	if s.course.Sampled {
		first = 3 // a single level may be of samples that were taken amid a change
	}
	for at := first; at < len(levels)-1; at++ {
		if rise := slices.Min(levels[at:]) - slices.Max(levels[1:at]); rise >= minShare {
			s.how, s.bytes, s.cycles = since, rise, len(levels)-at
			return true
		}
	}
	return false
}

// stands reports whether memory stays that nothing needs while other memory is paused: cache,
// pools of graphs, and more of the driver's than contexts take.
func (s *stay) stands(d *deep) bool {
	least := int64(minShare)
	levels := d.levels[s.pool]
	switch s.pool {
	case finding.CachePool:
		if sorts.Median(d.ends[s.pool]) > sorts.Median(levels) { // as of a trainer that has ended its step
			levels = d.ends[s.pool]
		}
	case finding.DriverPool:
		least = usual
	case finding.TensorPool:
		return false // a trainer's, perhaps
	}
	s.bytes, s.how = sorts.Median(levels), always
	s.cycles = count(levels, least)
	return s.bytes >= least && 2*s.cycles > s.of
}

// exceeds reports whether a process keeps more than each other one, in most cycles.
func (s *stay) exceeds(runs []run, at int) bool {
	own := runs[at].deep.levels[s.pool]
	least, most, known := int64(0), int64(0), 0
	for i := range runs {
		d := runs[i].deep
		if i == at || d == nil || len(d.levels[s.pool]) == 0 {
			continue
		}
		n := sorts.Median(d.levels[s.pool])
		if known == 0 {
			least, most = n, n
		}
		least, most, known = min(least, n), max(most, n), known+1
	}
	s.bytes, s.how = sorts.Median(own)-most, others
	s.cycles = count(own, most+minShare)
	// Stages of a pipeline differ too, but from each other.
	return known > 0 && s.bytes >= minShare && s.bytes >= 4*(most-least) && 2*s.cycles > s.of
}

func count(levels []int64, least int64) (n int) {
	for _, level := range levels {
		if level >= least {
			n++
		}
	}
	return n
}
