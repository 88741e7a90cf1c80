package gpudriver

import (
	"cmp"
	"maps"
	"slices"

	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/store/recording"
	"strandline/internal/sorts"
)

// State returns what processes hold of devices' memory according to the calls that were
// seen, piece by piece, with its address.
func (d *Driver) State() *recording.GPUState {
	s := &recording.GPUState{PIDs: []int{}, Pieces: []recording.GPUPiece{}}
	for _, pid := range slices.Sorted(maps.Keys(d.library)) {
		s.PIDs = append(s.PIDs, int(pid))
	}
	for m, l := range d.ledgers {
		for _, c := range l.Causes {
			switch event.DriverMemory(m) {
			case event.Managed:
				s.Managed += c.Live
			case event.Foreign:
				s.Foreign += c.Count
			}
		}
	}
	l := d.ledgers[event.Device]
	owners := d.ownersOf(l)
	for pid, space := range l.Spaces() {
		bound := map[uint64][]binding{} // by the address under which the handle is entered
		for _, b := range d.bound[pid] {
			bound[b.to.addr] = append(bound[b.to.addr], b)
		}
		space.Each(func(iv *ledger.Interval) {
			p := recording.GPUPiece{PID: int(pid), Addr: iv.Start, Bytes: iv.Size(), Owner: owners[iv.Cause]}
			if iv.Start < ofHandles {
				s.Pieces = append(s.Pieces, p)
				return
			}
			for _, b := range bound[iv.Start] {
				part := p
				part.Addr, part.Bytes = b.addr, min(int64(b.len), p.Bytes)
				p.Bytes -= part.Bytes // memory that is bound twice exists once
				s.Pieces = append(s.Pieces, part)
			}
			p.Addr = 0
			s.Pieces = append(s.Pieces, p)
		})
	}
	s.Pieces = joined(s.Pieces)
	return s
}

// ownersOf returns the owner of each cause of a ledger.
func (d *Driver) ownersOf(l *ledger.Ledger) []string {
	stacks := l.InferredStacks()
	owners := make([]string, len(stacks))
	for i, stack := range stacks {
		owners[i] = ownerOf(d.stacks.At(stack).Frames)
	}
	return owners
}

// joined merges the pieces of a process and owner that are adjacent, and those without
// an address.
func joined(pieces []recording.GPUPiece) (out []recording.GPUPiece) {
	sorts.By(pieces, func(a, b recording.GPUPiece) int {
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
