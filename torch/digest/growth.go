package digest

import (
	"sort"

	"strandline/stack"
	"strandline/torch/timeline"
	"strandline/trend"
)

// maxCheckpoints is the largest number of ends of steps at which growth inside a
// history is measured.
const maxCheckpoints = 50

// checkpoints are those of a history with some steps and events; there are none if
// the steps are too few. Where there are many steps each ends several of them.
func checkpoints(s *timeline.Steps, events int) (c Checkpoints) {
	n := len(s.Ends)
	if !s.Enough() {
		return c
	}
	stride := (n + maxCheckpoints - 1) / maxCheckpoints
	c.Events = append(c.Events, s.Begin)
	for i := (n - 1) % stride; i < n; i += stride {
		c.Events = append(c.Events, s.Ends[i])
	}
	c.Steps = len(c.Events) - 1
	if last := s.Ends[n-1]; last < events-1 {
		c.Events = append(c.Events, events-1)
	}
	return c
}

// addInside counts allocation i at the checkpoints of the history.
func (d *Device) addInside(t *timeline.Timeline, i int, id stack.ID) {
	n := len(d.Checkpoints.Events)
	if n == 0 {
		return
	}
	first := sort.SearchInts(d.Checkpoints.Events, t.Birth(i))
	last := n - 1
	if freed := t.Freed(i); freed != timeline.Never {
		last = sort.SearchInts(d.Checkpoints.Events, freed) - 1 // the last checkpoint before it
	}
	if first > last {
		return
	}
	if d.Inside == nil {
		d.Inside = map[stack.ID]*trend.Population{}
	}
	p := d.Inside[id]
	if p == nil {
		p = trend.NewPopulation(n)
		d.Inside[id] = p
	}
	p.Add(trend.Span{First: first, Last: last, Bytes: t.Size(i)})
}
