package ledger

import (
	"cmp"
	"maps"
	"slices"

	"strandline/host/bpf"
	"strandline/host/recording"
)

// DriverState is what processes hold of devices' memory by the calls that were
// seen: piece by piece, with where it is.
func (t *Trace) DriverState() *recording.GPUState {
	s := &recording.GPUState{PIDs: []int{}, Pieces: []recording.GPUPiece{}, Dropped: t.Last.Lost > 0}
	for _, pid := range slices.Sorted(maps.Keys(t.Driver.library)) {
		s.PIDs = append(s.PIDs, int(pid))
	}
	for m, l := range t.Driver.ledgers {
		for _, c := range l.Causes {
			switch bpf.DriverMemory(m) {
			case bpf.Managed:
				s.Managed += c.Live
			case bpf.Foreign:
				s.Foreign += c.Count
			}
		}
	}
	l := t.Driver.ledgers[bpf.Device]
	owners := t.ownersOf(l)
	for pid, space := range l.spaces {
		bound := map[uint64][]binding{} // by the address under which the handle is entered
		for _, b := range t.Driver.bound[pid] {
			bound[b.to.addr] = append(bound[b.to.addr], b)
		}
		space.Each(func(iv *Interval) {
			p := recording.GPUPiece{PID: int(pid), Addr: iv.Start, Bytes: iv.Size(), Owner: owners[iv.Cause]}
			if iv.Start < ofHandles {
				s.Pieces = append(s.Pieces, p)
				return
			}
			for _, b := range bound[iv.Start] {
				part := p
				part.Addr, part.Bytes = b.addr, min(int64(b.len), p.Bytes)
				p.Bytes -= part.Bytes // bound twice, it is there once
				s.Pieces = append(s.Pieces, part)
			}
			p.Addr = 0
			s.Pieces = append(s.Pieces, p)
		})
	}
	s.Pieces = joined(s.Pieces)
	return s
}

// ownersOf is whose each cause of a ledger is.
func (t *Trace) ownersOf(l *Ledger) []string {
	stacks := l.stacks()
	owners := make([]string, len(stacks))
	for i, stack := range stacks {
		owners[i] = ownerOf(t.Stacks[stack].Frames)
	}
	return owners
}

// joined makes one piece of those of a process and owner that lie side by side,
// and of those without an address.
func joined(pieces []recording.GPUPiece) (out []recording.GPUPiece) {
	slices.SortFunc(pieces, func(a, b recording.GPUPiece) int {
		return cmp.Or(a.PID-b.PID, cmp.Compare(a.Addr, b.Addr), cmp.Compare(a.Owner, b.Owner))
	})
	for _, p := range pieces {
		if p.Bytes == 0 {
			continue
		}
		if n := len(out) - 1; n >= 0 && out[n].PID == p.PID && out[n].Owner == p.Owner &&
			(p.Addr == 0 && out[n].Addr == 0 || p.Addr > 0 && out[n].Addr > 0 && out[n].Addr+uint64(out[n].Bytes) == p.Addr) {
			out[n].Bytes += p.Bytes
			continue
		}
		out = append(out, p)
	}
	return out
}
