package snapshot

import (
	"cmp"
	"fmt"
	"slices"

	"strandline/units"
)

// A rule of the format that can be seen without replaying the events.
type rule int

const (
	negativeSize rule = iota
	hugeSize
	deviceOrder
	addressOrder
	overlap
	totalSum
	allocatedSum
	gap
	outside
	timeOrder
	numRules
)

// ruleTexts state what breaks each rule, of one thing and of several.
var ruleTexts = [numRules][2]string{
	negativeSize: {"size is below zero", "sizes are below zero"},
	hugeSize:     {"size is larger than any memory", "sizes are larger than any memory"},
	deviceOrder:  {"segment is out of the order of devices", "segments are out of the order of devices"},
	addressOrder: {"segment is out of the order of addresses", "segments are out of the order of addresses"},
	overlap:      {"segment overlaps another", "segments overlap others"},
	totalSum: {"segment has blocks that do not add up to its total_size",
		"segments have blocks that do not add up to their total_size"},
	allocatedSum: {"segment has allocated blocks that do not add up to its allocated_size",
		"segments have allocated blocks that do not add up to their allocated_size"},
	gap:       {"block does not begin where the one before it ends", "blocks do not begin where the one before them ends"},
	outside:   {"block lies outside its segment", "blocks lie outside their segment"},
	timeOrder: {"event is earlier than the one before it", "events are earlier than the one before them"},
}

// A checker counts what breaks each rule and keeps the first place.
type checker struct {
	s     *Snapshot
	count [numRules]int64
	first [numRules]string
	place []place // of the segments
}

// A place identifies a segment by its device and its number there, from 0.
type place struct{ device, n int }

// check adds a sentence to Faults for each rule that the file breaks. Of a file
// that was cut, the segment that was being read is left out.
func (s *Snapshot) check() {
	c := checker{s: s, place: placesOf(s.Segments)}
	whole := len(s.Segments)
	if s.Partial != nil && whole > 0 {
		whole--
	}
	for i := range s.Segments[:whole] {
		c.sizes(i)
		c.sums(i)
		c.blocks(i)
	}
	c.order(whole)
	c.overlaps(whole)
	for i := range s.Traces {
		c.events(&s.Traces[i])
	}
	for r := range c.count {
		if text := c.sentence(rule(r)); text != "" {
			s.Faults = append(s.Faults, text)
			if rule(r) == negativeSize || rule(r) == hugeSize {
				s.BadSizes = append(s.BadSizes, text)
			}
		}
	}
	if mixed := s.mixture(); mixed != "" && s.Partial == nil && !s.present.category {
		s.Faults = append(s.Faults, mixed)
	}
}

func placesOf(segments []Segment) []place {
	seen := map[int]int{}
	out := make([]place, len(segments))
	for i := range segments {
		d := segments[i].Device
		out[i] = place{d, seen[d]}
		seen[d]++
	}
	return out
}

// broken counts one violation; where is asked of the first alone.
func (c *checker) broken(r rule, where func() string) {
	if c.count[r]++; c.count[r] == 1 {
		c.first[r] = where()
	}
}

func (c *checker) segment(i int) string {
	return fmt.Sprintf("segment %d of %s at 0x%x", c.place[i].n, DeviceName(c.place[i].device), c.s.Segments[i].Addr)
}

// sentence returns how often a rule is broken, and where first; "" if it is not.
func (c *checker) sentence(r rule) string {
	switch n := c.count[r]; {
	case n == 1:
		return "1 " + ruleTexts[r][0] + ": " + c.first[r]
	case n > 1:
		return units.Count(n) + " " + ruleTexts[r][1] + ", first " + c.first[r]
	}
	return ""
}

func (c *checker) sizes(i int) {
	g := &c.s.Segments[i]
	for _, size := range [...]struct {
		name string
		n    int64
	}{
		{"total_size", g.TotalSize}, {"allocated_size", g.AllocatedSize},
		{"active_size", g.ActiveSize}, {"requested_size", g.RequestedSize},
	} {
		if !sane(size.n) {
			c.broken(wrong(size.n), func() string { return c.segment(i) + ": " + size.name + " is " + units.Count(size.n) })
		}
	}
	for k := range g.Blocks {
		if b := &g.Blocks[k]; !sane(b.Size) || !sane(b.Requested) {
			c.broken(wrong(min(b.Size, b.Requested)), func() string {
				return fmt.Sprintf("block %d of %s: %s bytes, of which %s requested",
					k, c.segment(i), units.Count(b.Size), units.Count(b.Requested))
			})
		}
	}
}

// wrong is the rule that a size breaks which cannot be.
func wrong(size int64) rule {
	if size < 0 {
		return negativeSize
	}
	return hugeSize
}

// sums compares what a segment states with what its blocks have.
func (c *checker) sums(i int) {
	g := &c.s.Segments[i]
	var total, allocated int64
	for k := range g.Blocks {
		total += g.Blocks[k].Size
		if g.Blocks[k].State == Allocated {
			allocated += g.Blocks[k].Size
		}
	}
	compare := func(r rule, sum, stated int64) {
		if sum != stated {
			c.broken(r, func() string {
				return fmt.Sprintf("%s: %s of %s bytes", c.segment(i), units.Count(sum), units.Count(stated))
			})
		}
	}
	compare(totalSum, total, g.TotalSize)
	if !g.lacks.has(kAllocatedSize) { // as in files made by the profiler
		compare(allocatedSum, allocated, g.AllocatedSize)
	}
}

// blocks checks the addresses of a segment's blocks.
func (c *checker) blocks(i int) {
	g := &c.s.Segments[i]
	next, end := g.Addr, g.Addr+uint64(max(g.TotalSize, 0))
	for k := range g.Blocks {
		b := &g.Blocks[k]
		size := uint64(max(b.Size, 0))
		switch {
		case b.Addr < g.Addr || b.Addr > end || size > end-b.Addr:
			c.broken(outside, func() string {
				return fmt.Sprintf("block %d of %s: %s bytes at 0x%x", k, c.segment(i), units.Count(b.Size), b.Addr)
			})
		case b.Addr != next:
			c.broken(gap, func() string {
				return fmt.Sprintf("block %d of %s: at 0x%x, not at 0x%x", k, c.segment(i), b.Addr, next)
			})
		}
		next = b.Addr + size
	}
}

// order checks the order of the segments in the file.
func (c *checker) order(whole int) {
	for i := 1; i < whole; i++ {
		a, b := &c.s.Segments[i-1], &c.s.Segments[i]
		switch {
		case DeviceLess(b.Device, a.Device):
			c.broken(deviceOrder, func() string {
				return fmt.Sprintf("%s, after one of %s", c.segment(i), DeviceName(a.Device))
			})
		case b.Device == a.Device && b.Addr < a.Addr && b.Device != Host: // whose have no order
			c.broken(addressOrder, func() string {
				return fmt.Sprintf("%s, after one at 0x%x", c.segment(i), a.Addr)
			})
		}
	}
}

// overlaps looks for segments of a device that share addresses, in whatever
// order they are.
func (c *checker) overlaps(whole int) {
	g := c.s.Segments
	byAddr := make([]int, 0, whole)
	for i := range whole {
		if g[i].TotalSize > 0 {
			byAddr = append(byAddr, i)
		}
	}
	slices.SortStableFunc(byAddr, func(a, b int) int {
		return cmp.Or(cmp.Compare(g[a].Device, g[b].Device), cmp.Compare(g[a].Addr, g[b].Addr))
	})
	last := -1 // of the segments before, the one that reaches furthest
	for _, i := range byAddr {
		if last < 0 || g[i].Device != g[last].Device {
			last = i
			continue
		}
		if g[last].Contains(g[i].Addr) {
			c.broken(overlap, func() string { return c.segment(i) + " and " + c.segment(last) })
		}
		if g[i].Addr+uint64(g[i].TotalSize) > g[last].Addr+uint64(g[last].TotalSize) {
			last = i
		}
	}
}

// events makes one pass over the columns of sizes and times.
func (c *checker) events(t *Trace) {
	for k, size := range t.Size {
		if !sane(size) {
			c.broken(wrong(size), func() string {
				return fmt.Sprintf("event %s of %s: %s bytes", units.Count(int64(k)), DeviceName(t.Device), units.Count(size))
			})
		}
	}
	var before int64
	for k, now := range t.Time {
		if now == 0 { // unknown
			continue
		}
		if now < before {
			c.broken(timeOrder, func() string {
				return fmt.Sprintf("event %s of %s, by %s µs", units.Count(int64(k)), DeviceName(t.Device), units.Count(before-now))
			})
		}
		before = now
	}
}
