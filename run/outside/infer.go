package outside

import (
	"cmp"
	"slices"

	"strandline/host/gpu/cudaalloc"
	"strandline/internal/sorts"
)

// What the allocator does to sizes: blocks are whole units, the small pool has
// segments of one size, and what the driver gives is aligned to its pages.
const (
	unit         = 512
	smallSegment = 2 << 20
	page         = 2 << 20
)

// infer returns what the allocator holds by the events alone, where that could not be
// read: blocks as they were rounded, in the segments that were seen, and in further
// segments around blocks that are in none of them.
func (h *history) infer() []cudaalloc.Segment {
	var out []cudaalloc.Segment
	for addr, s := range h.segments {
		out = append(out, cudaalloc.Segment{Device: int(s.device), Stream: s.stream, Addr: addr, Size: s.size, Small: s.size == smallSegment})
	}
	for _, m := range h.mapped {
		out = append(out, cudaalloc.Segment{Device: int(m.device), Stream: m.stream, Addr: m.from, Size: m.to - m.from, Expandable: true})
	}
	sortSegments(out)
	var lost []cudaalloc.Block
	for addr, b := range h.live {
		x := cudaalloc.Block{Addr: addr, Size: (max(b.size, 1) + unit - 1) &^ (unit - 1), Requested: b.size, Stream: b.stream, Device: int(b.device), Allocated: true}
		if s := holding(out, x.Addr); s != nil && x.Addr+x.Size <= s.Addr+s.Size {
			s.Blocks = append(s.Blocks, x)
			s.Device = x.Device
		} else {
			lost = append(lost, x)
		}
	}
	out = append(out, around(lost)...)
	sortSegments(out)
	kept := out[:0]
	for _, s := range out {
		if n := len(kept); n > 0 && kept[n-1].Device == s.Device && kept[n-1].Addr+kept[n-1].Size > s.Addr {
			continue // a range that was given, taken back and given again
		}
		fill(&s)
		kept = append(kept, s)
	}
	return kept
}

func sortSegments(list []cudaalloc.Segment) {
	sorts.By(list, func(x, y cudaalloc.Segment) int {
		return cmp.Or(cmp.Compare(x.Device, y.Device), cmp.Compare(x.Addr, y.Addr))
	})
}

// holding returns the segment that contains an address.
func holding(list []cudaalloc.Segment, addr uint64) *cudaalloc.Segment {
	i := slices.IndexFunc(list, func(s cudaalloc.Segment) bool { return s.Addr <= addr && addr < s.Addr+s.Size })
	if i < 0 {
		return nil
	}
	return &list[i]
}

// around returns segments around blocks whose segment is not known: whole pages.
func around(blocks []cudaalloc.Block) (out []cudaalloc.Segment) {
	sorts.By(blocks, func(x, y cudaalloc.Block) int {
		return cmp.Or(cmp.Compare(x.Device, y.Device), cmp.Compare(x.Addr, y.Addr))
	})
	for _, b := range blocks {
		from, to := b.Addr&^(page-1), (b.Addr+b.Size+page-1)&^(page-1)
		if n := len(out); n > 0 && out[n-1].Device == b.Device && from < out[n-1].Addr+out[n-1].Size {
			s := &out[n-1]
			s.Size = max(s.Size, to-s.Addr)
			s.Blocks = append(s.Blocks, b)
			continue
		}
		out = append(out, cudaalloc.Segment{Device: b.Device, Stream: b.Stream, Addr: from, Size: to - from, Blocks: []cudaalloc.Block{b}})
	}
	return out
}

// fill puts free blocks between those of a segment, and leaves out what overlaps.
func fill(s *cudaalloc.Segment) {
	sorts.By(s.Blocks, func(x, y cudaalloc.Block) int { return cmp.Compare(x.Addr, y.Addr) })
	var out []cudaalloc.Block
	at, end := s.Addr, s.Addr+s.Size
	free := func(to uint64) {
		if to > at {
			out = append(out, cudaalloc.Block{Addr: at, Size: to - at, Device: s.Device, Stream: s.Stream})
		}
	}
	for _, b := range s.Blocks {
		if b.Addr < at || b.Addr+b.Size > end {
			continue
		}
		free(b.Addr)
		out = append(out, b)
		at = b.Addr + b.Size
	}
	free(end)
	s.Blocks = out
}
