package timeline

import (
	"sort"

	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
)

// Rounding is the size of blocks beyond what was requested, at the moment of the
// snapshot. Blocks whose request is unknown are left out of all sums.
type Rounding struct {
	Active    int64 // bytes of the blocks
	Requested int64
	// Tiny is the part of requests below a block's least size, 512 bytes.
	Tiny      int64
	TinyCount int
	// Unsplit is the part that rounding up to 512 does not explain: remainders that
	// the allocator did not split off, and roundup_power2_divisions.
	Unsplit int64
	Sites   []SiteSum // by place, most lost first; Bytes are what is lost
}

// Lost is the bytes that were not requested.
func (r *Rounding) Lost() int64 { return r.Active - r.Requested }

// RoundingOf measures the blocks of a device.
func RoundingOf(s *snapshot.Snapshot, d snapshot.Device) (out Rounding) {
	sites := map[stack.Site]*SiteSum{}
	for _, i := range d.Segments {
		seg := &s.Segments[i]
		for j := range seg.Blocks {
			b := &seg.Blocks[j]
			if !b.State.Active() || b.Requested <= 0 || b.Requested > b.Size {
				continue
			}
			out.add(b)
			site := s.Stacks.Site(b.Stack)
			if sites[site] == nil {
				sites[site] = &SiteSum{Site: site, Stack: b.Stack}
			}
			sites[site].Bytes += b.Size - b.Requested
			sites[site].Count++
		}
	}
	out.Sites = largestFirst(sites)
	return out
}

func (r *Rounding) add(b *snapshot.Block) {
	r.Active += b.Size
	r.Requested += b.Requested
	switch least := (b.Requested + allocator.Granule - 1) / allocator.Granule * allocator.Granule; {
	case b.Requested < allocator.Granule && b.Size == allocator.Granule:
		r.Tiny += b.Size - b.Requested
		r.TinyCount++
	case b.Size > least:
		r.Unsplit += b.Size - least
	}
}

// mostFirst are sums by place, most bytes first and the same in every run.
func largestFirst[K comparable](sums map[K]*SiteSum) []SiteSum {
	out := make([]SiteSum, 0, len(sums))
	for _, s := range sums {
		out = append(out, *s)
	}
	sort.Slice(out, func(i, j int) bool {
		if a, b := &out[i], &out[j]; a.Bytes != b.Bytes {
			return a.Bytes > b.Bytes
		}
		if c := out[i].Site.Compare(out[j].Site); c != 0 {
			return c < 0
		}
		return out[i].Missing < out[j].Missing
	})
	return out
}
