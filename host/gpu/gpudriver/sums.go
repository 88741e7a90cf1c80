package gpudriver

import (
	"cmp"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/internal/sorts"
)

// A Use is what the calls of a driver function with one stack hold.
type Use struct {
	ledger.Use
	Memory event.DriverMemory
	Owner  string // whose code makes the calls
	Peak   Peak
}

// Sums are what was taken from the driver since the trace began and not given back. The
// size of foreign memory is not known, and its bytes are 0.
type Sums struct {
	Libraries    []string // the files of the driver
	Bytes, Count [event.DriverMemories]int64
	Uses         []Use // most bytes first
	Owners       []Owner
	Holders      []Holder
	// Checkpoints are the moments at which growth is measured, in ns since the trace began.
	Checkpoints []uint64
	Began       uint64 // of the trace, on the events' clock
	// Tensors is what PyTorch's tensors held on all devices, from look to look, in bytes; nil
	// where that is not known.
	Tensors []int64
}

// An Owner is what one library's calls hold of one kind of memory.
type Owner struct {
	Name         string
	Memory       event.DriverMemory
	Bytes, Count int64
}

// A Holder is what one process holds of an owner's memory.
type Holder struct {
	PID uint32
	Owner
}

// Sums sums up what was taken from the driver.
func (d *Driver) Sums() *Sums {
	s := &Sums{Libraries: d.libraries, Began: d.Began}
	owners := map[Owner]*Owner{}
	holders := map[Holder]*Holder{}
	seen := map[peakKey]bool{}
	for m, l := range d.ledgers {
		memory := event.DriverMemory(m)
		s.Checkpoints = s.Checkpoints[:0]
		for _, at := range l.Checkpoints() {
			s.Checkpoints = append(s.Checkpoints, at-min(at, d.Began))
		}
		for _, u := range l.Uses(d.stacks) {
			if memory == event.Foreign {
				u.Live, u.Total, u.Size = 0, 0, 0
			}
			use := Use{Use: u, Memory: memory, Owner: ownerOf(u.Frames)}
			of := peakKey{memory, u.ID}
			if u.ID == 0 {
				of.stack = -int(u.Op)
			}
			if !seen[of] {
				seen[of], use.Peak = true, d.courses[of].highest()
			}
			s.Uses = append(s.Uses, use)
			s.Bytes[m] += u.Live
			s.Count[m] += u.Count
			if u.Count == 0 {
				continue
			}
			key := Owner{Name: use.Owner, Memory: memory}
			if owners[key] == nil {
				owners[key] = &Owner{Name: use.Owner, Memory: memory}
			}
			owners[key].Bytes += u.Live
			owners[key].Count += u.Count
			for _, share := range u.Shares {
				h := Holder{share.PID, key}
				if holders[h] == nil {
					holders[h] = &Holder{share.PID, key}
				}
				if memory != event.Foreign {
					holders[h].Bytes += share.Live
				}
				holders[h].Count += share.Count
			}
		}
	}
	sorts.StableBy(s.Uses, func(a, b Use) int { return cmp.Compare(b.Live, a.Live) })
	for _, o := range owners {
		s.Owners = append(s.Owners, *o)
	}
	for _, h := range holders {
		s.Holders = append(s.Holders, *h)
	}
	sorts.By(s.Holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Memory, b.Memory))
	})
	sorts.By(s.Owners, func(a, b Owner) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Memory, b.Memory))
	})
	return s
}
