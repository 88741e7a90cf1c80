package replay

import (
	"fmt"

	"strandline/torch/allocator"
	"strandline/torch/snapshot"
	"strandline/units"
)

// compare holds the final state against that of the file.
func (p *player) compare() {
	final := p.a.Segments()
	at := map[uint64]*allocator.Segment{}
	for i := range final {
		at[final[i].Addr] = &final[i]
	}
	s := p.Snap
	for _, i := range p.SegmentIndices() {
		g := &s.Segments[i]
		p.out.Segments++
		why := "none there"
		if got := at[g.Addr]; got != nil {
			why = p.unlike(g, got)
		}
		switch {
		case why == "":
			p.out.SegmentsMet++
		case p.out.Difference == nil:
			p.differAtEnd(fmt.Sprintf("a segment of %s bytes at 0x%x", units.Count(g.TotalSize), g.Addr), why)
		}
	}
	if p.out.Difference == nil && len(final) != p.out.Segments {
		p.differAtEnd(fmt.Sprintf("%d segments", p.out.Segments), fmt.Sprint(len(final)))
	}
}

func (p *player) differAtEnd(recorded, replayed string) {
	p.differ(p.e.Len(), recorded, replayed)
	p.out.Difference.atEnd = true
}

// unlike returns how a segment differs from that of the file, "" if it does not.
func (p *player) unlike(g *snapshot.Segment, got *allocator.Segment) string {
	switch {
	case got.Size != g.TotalSize:
		return fmt.Sprintf("one of %s bytes", units.Count(got.Size))
	case got.Stream != p.Snap.Stream(g.Stream):
		return fmt.Sprintf("one of stream %d", got.Stream)
	case got.Expandable != g.Expandable:
		return kind(got.Expandable, "an expandable one", "one that is not expandable")
	case got.Small != (p.Snap.String(g.Type) == "small"):
		return kind(got.Small, "one of a small pool", "one of a large pool")
	case len(got.Blocks) != len(g.Blocks):
		return fmt.Sprintf("one of %d blocks instead of %d", len(got.Blocks), len(g.Blocks))
	}
	for i := range g.Blocks {
		a, b := &g.Blocks[i], &got.Blocks[i]
		if a.Addr != b.Addr || a.Size != b.Size || int(a.State) != int(b.State) {
			return fmt.Sprintf("one with %s of %s bytes at 0x%x", pieceNames[b.State], units.Count(b.Size), b.Addr)
		}
	}
	return ""
}

func kind(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}
