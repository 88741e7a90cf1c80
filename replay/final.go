package replay

import (
	"fmt"

	"strandline/allocator"
	"strandline/snapshot"
)

// compare holds the final state against that of the file.
func (p *player) compare() {
	p.final = p.a.Segments()
	at := map[uint64]*allocator.Segment{}
	for i := range p.final {
		at[p.final[i].Addr] = &p.final[i]
	}
	s := p.Snap
	for _, i := range p.SegmentIndices() {
		g := &s.Segments[i]
		p.Segments++
		why := "no segment"
		if got := at[g.Addr]; got != nil {
			why = p.unlike(g, got)
		}
		if why == "" {
			p.SegmentsMet++
		} else {
			p.differ(p.e.Len(), fmt.Sprintf("in the end, a segment of %d bytes at 0x%x", g.TotalSize, g.Addr), why)
		}
	}
	if p.Difference == nil && len(p.final) != p.Segments {
		p.differ(p.e.Len(), fmt.Sprintf("in the end, %d segments", p.Segments), fmt.Sprintf("%d", len(p.final)))
	}
}

// unlike says how a segment differs from that of the file, "" if it does not.
func (p *player) unlike(g *snapshot.Segment, got *allocator.Segment) string {
	switch {
	case got.Size != g.TotalSize:
		return fmt.Sprintf("one of %d bytes", got.Size)
	case got.Stream != p.Snap.Stream(g.Stream):
		return fmt.Sprintf("one of stream %d", got.Stream)
	case got.Expandable != g.Expandable:
		return fmt.Sprintf("expandable: %t", got.Expandable)
	case got.Small != (p.Snap.String(g.Type) == "small"):
		return fmt.Sprintf("small: %t", got.Small)
	case len(got.Blocks) != len(g.Blocks):
		return fmt.Sprintf("one of %d blocks, not %d", len(got.Blocks), len(g.Blocks))
	}
	for i := range g.Blocks {
		a, b := &g.Blocks[i], &got.Blocks[i]
		if a.Addr != b.Addr || a.Size != b.Size || int(a.State) != int(b.State) {
			return fmt.Sprintf("block %d at 0x%x has %d bytes, state %d", i, b.Addr, b.Size, b.State)
		}
	}
	return ""
}
