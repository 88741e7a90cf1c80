package replay

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/torch/allocator"
	"strandline/torch/snapshot"
)

// A doubt is a block from before the recording that is freed in it: the final
// state does not show how much was left at its end when it was made.
type doubt struct {
	segment, block int
	maxBytes       int64 // bytes that may belong to it behind its rounded request
}

var release = lazyregexp.New(`(\d+)\.(\d+)`)

// VersionOf is the release that wrote a file, the newest of those that may have.
func VersionOf(s *snapshot.Snapshot) allocator.Version { return newestOf(s.TorchVersion()) }

// newestOf is the last release of a range such as "2.5–2.7".
func newestOf(text string) allocator.Version {
	all := release.FindAllStringSubmatch(text, -1)
	if len(all) == 0 {
		return 0
	}
	if strings.HasSuffix(text, " or later") {
		return allocator.Newest
	}
	last := all[len(all)-1]
	major, _ := strconv.Atoi(last[1])
	minor, _ := strconv.Atoi(last[2])
	return allocator.Version(100*major + minor)
}

// begin takes over the state before the first event.
func (r *Recording) begin() {
	certain := r.certain()
	s := r.Snap
	segments, _ := r.StateBefore(0, nil)
	for i := range segments {
		g := &segments[i]
		out := allocator.Segment{
			Addr: g.Addr, Size: g.TotalSize, Stream: s.Stream(g.Stream), Pool: allocator.PoolID(s.PoolOf(g.Pool)),
			Small: s.String(g.Type) == "small", Expandable: g.Expandable,
		}
		for j := range g.Blocks {
			b := &g.Blocks[j]
			p := allocator.Piece{Addr: b.Addr, Size: b.Size}
			if b.State.Active() {
				p.Requested = b.Requested
				p.State = allocator.Allocated
				if b.State == snapshot.Pending {
					p.State = allocator.Pending
				}
			}
			if n := len(out.Blocks); n > 0 && p.State == allocator.Inactive && out.Blocks[n-1].State == p.State {
				out.Blocks[n-1].Size += p.Size // no allocator leaves them unmerged
				continue
			}
			out.Blocks = append(out.Blocks, p)
		}
		r.start = append(r.start, out)
	}
	sorts.By(r.start, func(a, b allocator.Segment) int { return cmp.Compare(a.Addr, b.Addr) })
	for i := range r.start {
		r.size(i, certain)
	}
	r.settleSlack()
}

// certain are the addresses of the blocks of the start that the final state
// has, too, and with them their sizes.
func (r *Recording) certain() map[uint64]bool {
	out := map[uint64]bool{}
	for i := range r.Allocs {
		if !r.Before(i) {
			break
		}
		if r.Death(i) == never {
			out[r.Addr(i)] = true
		}
	}
	return out
}

// size gives the blocks of a segment of the start that are gone by the end the
// bytes that the settings make of their requests, and what is behind them if it
// is too little for a free block.
func (r *Recording) size(segment int, certain map[uint64]bool) {
	g := &r.start[segment]
	keeps := !g.Small && !g.Expandable && !r.Settings.Expandable // a rest that is not split off
	for j := 0; j < len(g.Blocks); j++ {
		b := &g.Blocks[j]
		if b.State == allocator.Inactive || certain[b.Addr] {
			continue
		}
		room := b.Size
		gap := j+1 < len(g.Blocks) && g.Blocks[j+1].State == allocator.Inactive
		if gap {
			room += g.Blocks[j+1].Size
		}
		size := min(r.Settings.Round(b.Requested), room)
		if keeps && (size >= r.Settings.MaxSplitSize || room-size <= allocator.SmallLimit) {
			size = room
		}
		rest := allocator.Piece{Addr: b.Addr + uint64(size), Size: room - size}
		b.Size = size
		switch {
		case gap && rest.Size > 0:
			g.Blocks[j+1] = rest
		case gap:
			g.Blocks = slices.Delete(g.Blocks, j+1, j+2)
		case rest.Size > 0:
			g.Blocks = slices.Insert(g.Blocks, j+1, rest)
		}
		// Free blocks of a large pool are larger than what is split off.
		if most := min(allocator.SmallLimit, rest.Size-allocator.SmallLimit-allocator.Granule); keeps && most > 0 {
			r.doubt = append(r.doubt, doubt{segment, j, most})
		}
	}
}

// settleSlack gives blocks of the start that are freed later what the history
// shows to be theirs: the first allocation in the free room behind a block, made
// while the block lives, is at the front of that room. What stays in doubt
// is settled by its effects.
func (r *Recording) settleSlack() {
	if len(r.doubt) == 0 {
		return
	}
	e := &r.Trace.Events
	open := make([]bool, len(r.doubt)) // by address, as the segments are
	ends := make([]uint64, len(r.doubt))
	for i, d := range r.doubt {
		b := &r.start[d.segment].Blocks[d.block]
		open[i], ends[i] = true, b.Addr+uint64(b.Size)
	}
	settled := make([]bool, len(r.doubt))
	freed := map[uint64]bool{}
	for k, a := range e.Action {
		switch a {
		case r.Ends():
			freed[e.Addr[k]] = true
		case snapshot.Alloc:
			i, ok := slices.BinarySearch(ends, e.Addr[k])
			if !ok {
				i--
			}
			if i < 0 || !open[i] {
				continue
			}
			d := r.doubt[i]
			b, rest := &r.start[d.segment].Blocks[d.block], &r.start[d.segment].Blocks[d.block+1]
			if e.Addr[k] >= rest.Addr+uint64(rest.Size) {
				continue
			}
			open[i] = false
			if slack := int64(e.Addr[k] - ends[i]); !freed[b.Addr] && slack <= d.maxBytes {
				b.Size += slack
				rest.Addr += uint64(slack)
				rest.Size -= slack
				settled[i] = true
			}
		}
	}
	var left []doubt
	for i, d := range r.doubt {
		if !settled[i] {
			left = append(left, d)
		}
	}
	r.doubt = left
}
