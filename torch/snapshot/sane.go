package snapshot

// MaxSize is more bytes than any device has, 16 TiB: a larger size is no size. As
// many as a file can hold of smaller ones do not overflow their sum.
const MaxSize = 1 << 44

func sane(n int64) bool { return n >= 0 && n <= MaxSize }

// Sane is the snapshot without the sizes that cannot be, which Faults tells of:
// below zero, or above [MaxSize]. They are 0 in it. It is the snapshot itself if
// there are none, and shares all else with it.
func (s *Snapshot) Sane() *Snapshot {
	out := s
	own := func() *Snapshot {
		if out == s {
			c := *s
			c.Segments = append([]Segment(nil), s.Segments...)
			c.Traces = append([]Trace(nil), s.Traces...)
			out = &c
		}
		return out
	}
	for i := range s.Segments {
		if g := &s.Segments[i]; !g.sane() {
			own().Segments[i] = g.cleared()
		}
	}
	for i := range s.Traces {
		if sizes, ok := clearedSizes(s.Traces[i].Size); !ok {
			own().Traces[i].Size = sizes
		}
	}
	return out
}

func (s *Segment) sane() bool {
	ok := sane(s.TotalSize) && sane(s.AllocatedSize) && sane(s.ActiveSize) && sane(s.RequestedSize)
	for i := range s.Blocks {
		ok = ok && sane(s.Blocks[i].Size) && sane(s.Blocks[i].Requested)
	}
	return ok
}

func (s *Segment) cleared() Segment {
	out := *s
	out.Blocks = append([]Block(nil), s.Blocks...)
	clear := func(sizes ...*int64) {
		for _, n := range sizes {
			if !sane(*n) {
				*n = 0
			}
		}
	}
	clear(&out.TotalSize, &out.AllocatedSize, &out.ActiveSize, &out.RequestedSize)
	for i := range out.Blocks {
		clear(&out.Blocks[i].Size, &out.Blocks[i].Requested)
	}
	return out
}

// clearedSizes is a copy without what is not sane, if there is any.
func clearedSizes(sizes []int64) (out []int64, ok bool) {
	for k, n := range sizes {
		if sane(n) {
			continue
		}
		if out == nil {
			out = append(out, sizes...)
		}
		out[k] = 0
	}
	return out, out == nil
}
