package replay

import (
	"regexp"
	"slices"
	"strconv"

	"strandline/allocator"
	"strandline/snapshot"
)

// A doubt is a block of before the recording that is freed in it: the final
// state does not tell how much was left at its end when it was made.
type doubt struct {
	segment, block int
	most           int64 // bytes that may belong to it behind its rounded request
}

var release = regexp.MustCompile(`(\d+)\.(\d+)`)

// VersionOf is the release that wrote a file, the newest of those that may have.
func VersionOf(s *snapshot.Snapshot) allocator.Version {
	all := release.FindAllStringSubmatch(s.TorchVersion(), -1)
	if len(all) == 0 {
		return 0
	}
	last := all[len(all)-1]
	major, _ := strconv.Atoi(last[1])
	minor, _ := strconv.Atoi(last[2])
	return allocator.Version(100*major + minor)
}

// begin takes over the state before the first event.
func (r *Recording) begin(cut *snapshot.Snapshot) {
	for i := range cut.Segments {
		g := &cut.Segments[i]
		out := allocator.Segment{
			Addr: g.Addr, Size: g.TotalSize, Stream: cut.Stream(g.Stream), Pool: allocator.PoolID(cut.PoolOf(g.Pool)),
			Small: cut.String(g.Type) == "small", Expandable: g.Expandable,
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
			out.Blocks = append(out.Blocks, p)
		}
		r.start = append(r.start, out)
	}
	slices.SortFunc(r.start, func(a, b allocator.Segment) int {
		if a.Addr < b.Addr {
			return -1
		}
		return 1
	})
	r.settleSlack()
}

// settleSlack gives blocks of the start that are freed later what the history
// shows to be theirs: the first allocation in the free room behind a block, made
// while the block lives, stands at the front of that room.
func (r *Recording) settleSlack() {
	e := &r.Trace.Events
	first := map[uint64]doubt{} // by the end of the block
	var ends []uint64
	for i := range r.start {
		g := &r.start[i]
		for j := 0; j+1 < len(g.Blocks); j++ {
			b, rest := &g.Blocks[j], &g.Blocks[j+1]
			if g.Small || g.Expandable || b.State == allocator.Inactive || rest.State != allocator.Inactive {
				continue
			}
			if final, ok := r.lives(b.Addr); ok && final {
				continue
			}
			end := b.Addr + uint64(b.Size)
			first[end] = doubt{i, j, min(allocator.SmallLimit, rest.Size-allocator.Granule)}
			ends = append(ends, end)
		}
	}
	if len(ends) == 0 {
		return
	}
	slices.Sort(ends)
	freed := map[uint64]bool{}
	for k, a := range e.Action {
		if len(first) == 0 {
			break
		}
		switch a {
		case snapshot.FreeRequested, snapshot.FreeCompleted:
			freed[e.Addr[k]] = true
		case snapshot.Alloc:
			i, ok := slices.BinarySearch(ends, e.Addr[k])
			if !ok {
				i--
			}
			if i < 0 {
				continue
			}
			d, open := first[ends[i]]
			if !open {
				continue
			}
			g := &r.start[d.segment]
			b, rest := &g.Blocks[d.block], &g.Blocks[d.block+1]
			if e.Addr[k] >= rest.Addr+uint64(rest.Size) {
				continue
			}
			delete(first, ends[i])
			if slack := int64(e.Addr[k] - ends[i]); !freed[b.Addr] && slack > 0 && slack <= d.most {
				b.Size += slack
				rest.Addr += uint64(slack)
				rest.Size -= slack
			} else if freed[b.Addr] {
				r.doubt = append(r.doubt, d)
			}
		}
	}
	for _, d := range first {
		r.doubt = append(r.doubt, d)
	}
	slices.SortFunc(r.doubt, func(a, b doubt) int { return (a.segment-b.segment)*1<<20 + a.block - b.block })
}

// lives tells whether the block at addr at the start is there to the end.
func (r *Recording) lives(addr uint64) (alive, found bool) {
	for i := range r.Allocs {
		if !r.Before(i) {
			break
		}
		if r.Addr(i) == addr {
			return r.Death(i) == never, true
		}
	}
	return false, false
}
