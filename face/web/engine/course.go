package engine

import (
	"cmp"
	"math"
	"slices"

	"strandline/face/api/page"
	"strandline/internal/sorts"
)

const (
	// maxInAll stretches are kept of all courses of a watch, which share them: some 150
	// bytes each. maxStretches are kept of a course in any case. When there are more of
	// one, neighbors are put together, and from then on so are samples.
	maxInAll, maxStretches = 400_000, 4096
	// maxShares of a state are shown separately, the largest; the rest is in the total alone.
	maxShares = 12
	// maxParts are shown separately in a course, and maxDrawn of them in an answer.
	maxParts = 4096
	maxDrawn = 9
	// maxLevels are the columns of an answer.
	maxLevels = 1200
)

// A share is what one part of a subject holds.
type share struct {
	part  int
	bytes int64
}

// A stretch is a time in which a course is shown as one: its state is that of the sample
// with the highest total, the first of several.
type stretch struct {
	from, to, at   float64 // seconds; what was seen last holds until the next sample
	samples        int
	max, min, last int64 // totals
	state          []share
}

// uniform reports whether all samples of a stretch are alike.
func (s *stretch) uniform() bool { return s.max == s.min && s.samples > 0 }

// A course is what a subject held over time, in a bounded number of stretches.
type course struct {
	parts []page.LevelPart
	names map[any]int // of parts, by what they are
	list  []stretch
	held  []share // by the last sample
	width float64 // seconds that a stretch has at most, unless nothing changes in it
	seen  int     // the number of the last sample with it
	peak  int64
}

// part is the number of a part, −1 if there are too many.
func (c *course) part(of any, name string, beside bool) int {
	n, ok := c.names[of]
	if !ok {
		if len(c.parts) == maxParts {
			return -1
		}
		if c.names == nil {
			c.names = map[any]int{}
		}
		n = len(c.parts)
		c.names[of] = n
		c.parts = append(c.parts, page.LevelPart{Name: name, Beside: beside})
	}
	return n
}

// add adds sample number n. If the sample before was none of its own, or much earlier,
// there is a gap. It keeps at most some stretches.
func (c *course) add(n int, at float64, gap bool, total int64, state []share, maxLen int) {
	if k := len(c.list); k >= maxLen {
		c.width = max(2*c.width, (at-c.list[0].from)/float64(maxLen/4))
		c.list = joined(c.list, c.width)
	}
	gap = gap || c.seen != n-1
	c.seen, c.held = n, state
	c.peak = max(c.peak, total)
	if k := len(c.list); k > 0 && !gap {
		l := &c.list[k-1]
		l.to = at
		if l.uniform() && l.last == total && slices.Equal(l.state, state) {
			l.samples++
			return
		}
		if at-l.from < c.width {
			l.join(&stretch{at, at, at, 1, total, total, total, slices.Clone(state)})
			return
		}
	}
	c.list = append(c.list, stretch{at, at, at, 1, total, total, total, slices.Clone(state)})
}

// split is what the parts of the total held when it was last seen.
func (c *course) split() []page.SplitPart {
	out := []page.SplitPart{}
	for _, x := range c.held {
		if p := &c.parts[x.part]; !p.Beside {
			out = append(out, page.SplitPart{Name: p.Name, Bytes: x.bytes})
		}
	}
	return out
}

// join puts the next stretch to this one.
func (s *stretch) join(next *stretch) {
	if next.max > s.max {
		s.at, s.max, s.state = next.at, next.max, next.state
	}
	s.to, s.samples, s.min, s.last = next.to, s.samples+next.samples, min(s.min, next.min), next.last
}

// joined puts neighbors together that are no longer than a time; gaps in it vanish.
func joined(list []stretch, width float64) []stretch {
	out := list[:0]
	for i := range list {
		if k := len(out); k > 0 && list[i].to-out[k-1].from <= width {
			out[k-1].join(&list[i])
			continue
		}
		out = append(out, list[i])
	}
	return slices.Clip(out)
}

// levels are the stretches of a course in a window, of not too many columns.
func (c *course) levels(key string, from, to float64) page.Levels {
	a, _ := slices.BinarySearchFunc(c.list, from, func(s stretch, t float64) int { return cmp.Compare(s.to, t) })
	b, _ := slices.BinarySearchFunc(c.list, math.Nextafter(to, math.Inf(1)), func(s stretch, t float64) int { return cmp.Compare(s.from, t) })
	list := slices.Clone(c.list[min(a, b):b])
	if len(list) > maxLevels {
		list = joined(list, (list[len(list)-1].to-list[0].from)/(maxLevels/2))
	}
	out := page.Levels{
		Key: key, Parts: []page.LevelPart{}, From: []float64{}, To: []float64{}, At: []float64{}, Count: []int{},
		Max: []int64{}, Min: []int64{}, Last: []int64{}, Bytes: [][]*int64{},
	}
	shown := c.shown(list)
	for _, p := range shown {
		out.Parts = append(out.Parts, c.parts[p])
		out.Bytes = append(out.Bytes, make([]*int64, len(list)))
	}
	for i := range list {
		s := &list[i]
		out.From, out.To, out.At, out.Count = append(out.From, millis(s.from)), append(out.To, millis(s.to)), append(out.At, millis(s.at)), append(out.Count, s.samples)
		out.Max, out.Min, out.Last = append(out.Max, s.max), append(out.Min, s.min), append(out.Last, s.last)
		for k := range s.state {
			if row := slices.Index(shown, s.state[k].part); row >= 0 {
				out.Bytes[row][i] = &s.state[k].bytes
			}
		}
	}
	return out
}

// shown are the parts of some stretches that are shown separately, in the order of their
// numbers: those that held most.
func (c *course) shown(list []stretch) []int {
	most := map[int]int64{}
	for i := range list {
		for _, x := range list[i].state {
			if m, ok := most[x.part]; !ok || x.bytes > m {
				most[x.part] = x.bytes
			}
		}
	}
	var all []int
	for p := range most {
		all = append(all, p)
	}
	sorts.By(all, func(a, b int) int { return cmp.Or(cmp.Compare(most[b], most[a]), cmp.Compare(a, b)) })
	all = all[:min(len(all), maxDrawn)]
	slices.Sort(all)
	return all
}

// millis is a time as far as it matters.
func millis(seconds float64) float64 { return math.Round(seconds*1e3) / 1e3 }
