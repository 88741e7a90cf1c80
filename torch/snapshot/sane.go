package snapshot

import (
	"slices"

	"strandline/units"
)

const (
	// MaxSize is more bytes than any device has, 16 TiB: a larger size is not a size.
	MaxSize = 1 << 44
	// maxTotal is more than all sizes of a file add up to, so that no sum of some
	// of them overflows.
	maxTotal = 1 << 62
	// topAddr is the first address of the last 32 TiB: nothing is there, and what
	// is rounded up or added to an address below it does not wrap.
	topAddr = -(2 * MaxSize) & (1<<64 - 1)
	// maxTime is in the year 2255, in microseconds.
	maxTime = 9e15
)

func sane(n int64) bool { return n >= 0 && n <= MaxSize }

func saneTime(t int64) bool { return t >= 0 && t <= maxTime }

// Sane returns the snapshot without impossible values, which Faults names: sizes
// below zero, above [MaxSize] or at addresses that no memory has, and, where all
// sizes add up to more than 2^62, the largest. They are 0 in it, and so are times
// before 1970 or after 2255. It returns the snapshot itself if it has no such
// values, and shares all else with it.
func (s *Snapshot) Sane() *Snapshot {
	if s.surelySane() {
		return s
	}
	c := cleaner{maxTotal: MaxSize}
	if total, things := s.total(); total > maxTotal {
		c.maxTotal = maxTotal / things
	}
	out := *s
	out.Segments, out.Traces = c.segments(s.Segments), c.traces(s.Traces)
	out.Annotations = c.annotations(s.Annotations)
	if !c.changed {
		return s
	}
	return &out
}

// surelySane reports whether nothing would be cleared, by bounds of each column: it is
// asked of each file more than once, and nearly all have no impossible values.
func (s *Snapshot) surelySane() bool {
	c := cleaner{maxTotal: MaxSize}
	var bits uint64 // those that are set in any size
	things := 0
	for i := range s.Segments {
		g := &s.Segments[i]
		if !c.sane(g) {
			return false
		}
		things += 1 + len(g.Blocks)
		bits |= uint64(g.TotalSize | g.AllocatedSize | g.ActiveSize | g.RequestedSize)
		for k := range g.Blocks {
			bits |= uint64(g.Blocks[k].Size | g.Blocks[k].Requested)
		}
	}
	for i := range s.Traces {
		t := &s.Traces[i]
		things += t.Len()
		for _, n := range t.Size {
			bits |= uint64(n)
		}
		for _, a := range t.Addr {
			if a >= topAddr {
				return false
			}
		}
		for _, at := range t.Time {
			if !saneTime(at) {
				return false
			}
		}
	}
	for i := range s.Annotations {
		if !saneTime(s.Annotations[i].Time) {
			return false
		}
	}
	return bits < MaxSize && (things == 0 || bits <= maxTotal/uint64(things))
}

// total returns what all sizes add up to that can be, and how many there are.
func (s *Snapshot) total() (total, things int64) {
	add := func(n int64) {
		things++
		if sane(n) {
			total = units.Sum(total, n)
		}
	}
	for i := range s.Segments {
		g := &s.Segments[i]
		add(max(g.TotalSize, g.AllocatedSize, g.ActiveSize, g.RequestedSize))
		for k := range g.Blocks {
			add(max(g.Blocks[k].Size, g.Blocks[k].Requested))
		}
	}
	for i := range s.Traces {
		for _, n := range s.Traces[i].Size {
			add(n)
		}
	}
	return total, things
}

// A cleaner makes copies without what cannot be.
type cleaner struct {
	maxTotal int64
	changed  bool
}

func (c *cleaner) size(n int64) bool { return n >= 0 && n <= c.maxTotal }

func (c *cleaner) segments(list []Segment) []Segment {
	var out []Segment
	for i := range list {
		if g := &list[i]; !c.sane(g) {
			if out == nil {
				out = slices.Clone(list)
			}
			out[i] = c.cleared(g)
		}
	}
	return changed(c, list, out)
}

func changed[T any](c *cleaner, before, after []T) []T {
	if after == nil {
		return before
	}
	c.changed = true
	return after
}

func (c *cleaner) sane(s *Segment) bool {
	ok := s.Addr < topAddr && c.size(s.TotalSize) && c.size(s.AllocatedSize) && c.size(s.ActiveSize) && c.size(s.RequestedSize)
	for i := range s.Blocks {
		b := &s.Blocks[i]
		ok = ok && b.Addr < topAddr && c.size(b.Size) && c.size(b.Requested)
	}
	return ok
}

func (c *cleaner) cleared(s *Segment) Segment {
	out := *s
	out.Blocks = slices.Clone(s.Blocks)
	clear := func(addr uint64, sizes ...*int64) {
		for _, n := range sizes {
			if addr >= topAddr || !c.size(*n) {
				*n = 0
			}
		}
	}
	clear(out.Addr, &out.TotalSize, &out.AllocatedSize, &out.ActiveSize, &out.RequestedSize)
	for i := range out.Blocks {
		b := &out.Blocks[i]
		clear(b.Addr, &b.Size, &b.Requested)
	}
	return out
}

func (c *cleaner) traces(list []Trace) []Trace {
	var out []Trace
	for i := range list {
		t := &list[i]
		sizes, times := c.sizes(&t.Events), c.times(t.Time)
		if sizes == nil && times == nil {
			continue
		}
		if out == nil {
			out = slices.Clone(list)
		}
		out[i].Size, out[i].Time = changed(c, t.Size, sizes), changed(c, t.Time, times)
	}
	return changed(c, list, out)
}

// sizes is a copy of the column of sizes without what cannot be, nil if all can.
func (c *cleaner) sizes(e *Events) (out []int64) {
	for k, n := range e.Size {
		if c.size(n) && (e.Addr[k] < topAddr || e.Action[k] == OOM) {
			continue
		}
		if out == nil {
			out = slices.Clone(e.Size)
		}
		out[k] = 0
	}
	return out
}

func (c *cleaner) times(times []int64) (out []int64) {
	for k, t := range times {
		if saneTime(t) {
			continue
		}
		if out == nil {
			out = slices.Clone(times)
		}
		out[k] = 0
	}
	return out
}

func (c *cleaner) annotations(list []Annotation) []Annotation {
	var out []Annotation
	for i := range list {
		if saneTime(list[i].Time) {
			continue
		}
		if out == nil {
			out = slices.Clone(list)
		}
		out[i].Time = 0
	}
	return changed(c, list, out)
}
