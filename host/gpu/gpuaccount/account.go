// Package gpuaccount breaks a device's memory down by owner: what PyTorch has reserved
// according to its snapshots, what observed driver calls allocated, what the driver
// counts for the processes beyond that, other processes, and the rest.
//
// It queries nothing: readings and figures from snapshots are passed in as numbers.
// Note that unknown amounts are omitted, not counted as 0, and that driver calls do not
// show on which device they allocate.
package gpuaccount

import (
	"cmp"
	"slices"

	"strandline/host/gpu/gpudriver"
	"strandline/host/gpu/nvsmi"
	"strandline/host/store/recording"
	"strandline/internal/sorts"
)

// Account accounts for the devices that the processes use, with a snapshot for each process
// that has one. Unknown amounts are in no part, and never 0.
func Account(s *recording.GPUState, snapshots []Reserved) []recording.GPUDevice {
	all := holdings(s)
	unplaced := place(snapshots, all)
	strangers := untracedSnapshots(snapshots, all)
	out := []recording.GPUDevice{}
	for _, g := range groups(s, all) {
		d := g.account(s)
		if len(snapshots) == 0 && d.Used != nil {
			note(&d, "without a snapshot (--snapshot) what PyTorch reserved before the trace began cannot be separated")
		}
		for _, name := range unplaced {
			note(&d, "%s is left out: none of its segments was taken while the trace ran, and there are several processes", name)
		}
		for _, r := range strangers {
			note(&d, "%s is left out: it is of pid %d, which is not one of the traced processes that use the device", r.Name, r.PID)
		}
		out = append(out, d)
	}
	return out
}

// A holding is what is known about one process.
type holding struct {
	pid      int
	pieces   []recording.GPUPiece
	outside  map[string]int64 // by owner, outside all segments of its snapshot
	snapshot *reserved        // nil if it has none
	since    int64            // bytes of what the snapshot has reserved that were taken since the trace began
}

func holdings(s *recording.GPUState) map[int]*holding {
	all := map[int]*holding{}
	of := func(pid int) *holding {
		if all[pid] == nil {
			all[pid] = &holding{pid: pid, outside: map[string]int64{}}
		}
		return all[pid]
	}
	for _, pid := range s.PIDs {
		of(pid)
	}
	for _, p := range s.Pieces {
		if p.Bytes <= 0 {
			continue // a recording can claim anything
		}
		h := of(p.PID)
		h.pieces = append(h.pieces, p)
		h.outside[p.Owner] += p.Bytes
	}
	return all
}

// Reserved is how much of a process's device memory PyTorch's allocator has, according
// to a snapshot.
type Reserved struct {
	Name      string // of the file
	PID       int    // of the process that wrote it, 0 if unknown
	Segments  []Segment
	Allocated int64 // bytes of blocks that are allocated
}

// A Segment is one reservation: Bytes from Addr on.
type Segment struct {
	Addr  uint64
	Bytes int64
}

// reserved is a Reserved with its segments in order.
type reserved struct {
	name             string
	pid              int
	segments         []span // by address
	bytes, allocated int64
}

type span struct{ start, end uint64 }

func reservedBy(s *Reserved) *reserved {
	r := &reserved{name: s.Name, pid: s.PID, allocated: s.Allocated}
	for _, g := range s.Segments {
		end := g.Addr + uint64(g.Bytes)
		if g.Bytes <= 0 || end < g.Addr {
			continue
		}
		r.segments = append(r.segments, span{g.Addr, end})
		r.bytes += g.Bytes
	}
	sorts.By(r.segments, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return r
}

// overlap returns how much of a piece is inside the segments.
func (r *reserved) overlap(p *recording.GPUPiece) (n int64) {
	if p.Addr == 0 {
		return 0
	}
	end := p.Addr + uint64(p.Bytes)
	i, _ := slices.BinarySearchFunc(r.segments, p.Addr, func(g span, at uint64) int {
		if g.end <= at {
			return -1
		}
		return 1
	})
	for ; i < len(r.segments) && r.segments[i].start < end; i++ {
		n += int64(min(end, r.segments[i].end) - max(p.Addr, r.segments[i].start))
	}
	return n
}

// Placed is what a snapshot shows of one process.
type Placed struct {
	Name                    string // of the file
	Bytes, Allocated, Since int64  // reserved; the part of it that is allocated; the part taken since the trace began
}

// ByProcess returns what PyTorch's allocator has according to the processes' snapshots,
// by pid.
func ByProcess(s *recording.GPUState, snapshots []Reserved) map[int]Placed {
	all := holdings(s)
	place(snapshots, all)
	out := map[int]Placed{}
	for pid, h := range all {
		if r := h.snapshot; r != nil {
			out[pid] = Placed{Name: r.name, Bytes: r.bytes, Allocated: r.allocated, Since: h.since}
		}
	}
	return out
}

// untracedSnapshots returns the snapshots whose process is known and is not in all.
func untracedSnapshots(snapshots []Reserved, all map[int]*holding) (out []Reserved) {
	for _, r := range snapshots {
		if r.PID != 0 && all[r.PID] == nil {
			out = append(out, r)
		}
	}
	return out
}

// place assigns each snapshot to its process: the one that wrote it, if that is known,
// otherwise the one that took most of its segments, as the addresses of several processes
// can be equal. It returns the names of the snapshots whose process is unknown. If
// nothing in a snapshot was taken since the trace began, it is assigned to the process
// if there is only one.
func place(snapshots []Reserved, all map[int]*holding) (unplaced []string) {
	type pair struct {
		of      int
		to      *holding
		overlap int64
	}
	var pairs []pair
	read := make([]*reserved, len(snapshots))
	for i := range snapshots {
		read[i] = reservedBy(&snapshots[i])
		if pid := read[i].pid; pid != 0 {
			if h := all[pid]; h != nil && h.snapshot == nil {
				h.take(read[i])
			}
			read[i] = nil
		}
	}
	for i := range read {
		for _, h := range all {
			if read[i] == nil || h.snapshot != nil {
				continue
			}
			var n int64
			for k := range h.pieces {
				n += read[i].overlap(&h.pieces[k])
			}
			if n > 0 || len(all) == 1 {
				pairs = append(pairs, pair{i, h, n})
			}
		}
	}
	sorts.By(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(b.overlap, a.overlap), a.of-b.of, a.to.pid-b.to.pid)
	})
	for _, p := range pairs {
		if r := read[p.of]; r != nil && p.to.snapshot == nil {
			p.to.take(r)
			read[p.of] = nil
		}
	}
	for _, r := range read {
		if r != nil {
			unplaced = append(unplaced, r.name)
		}
	}
	return unplaced
}

func (h *holding) take(r *reserved) {
	h.snapshot = r
	for i := range h.pieces {
		n := r.overlap(&h.pieces[i])
		h.since += n
		h.outside[h.pieces[i].Owner] -= n
	}
}

// A group is a set of devices with all the followed processes that use them; these use
// no other devices.
type group struct {
	devices []nvsmi.Device
	members []*holding
	// named states that the driver's count names the members: otherwise nothing can be
	// concluded from its figures per process.
	named bool
}

// groups returns the devices that are connected by the processes that use them: driver
// calls do not show on which device they take memory.
func groups(s *recording.GPUState, all map[int]*holding) (out []group) {
	members := make([]*holding, 0, len(all))
	for _, h := range all {
		members = append(members, h)
	}
	sorts.By(members, func(a, b *holding) int { return a.pid - b.pid })
	if len(members) == 0 {
		return nil
	}
	whole := group{members: members}
	if s.Count == nil {
		return []group{whole}
	}
	whole.devices = s.Count.Devices
	index := map[string]int{} // the first device of the group that each device is in
	for i, d := range s.Count.Devices {
		index[d.UUID] = i
	}
	first := map[int]int{} // the first device seen of each process
	for _, u := range s.Count.Processes {
		to, known := index[u.UUID]
		if !known || all[u.PID] == nil {
			continue
		}
		was, seen := first[u.PID]
		if !seen {
			first[u.PID] = to
			continue
		}
		was = index[s.Count.Devices[was].UUID]
		for uuid, i := range index {
			if i == to {
				index[uuid] = was
			}
		}
	}
	named := len(first) > 0
	for _, h := range members {
		if _, seen := first[h.pid]; !seen && (len(h.pieces) > 0 || h.snapshot != nil) {
			named = false
		}
	}
	if !named {
		return []group{whole}
	}
	for i, d := range s.Count.Devices {
		if index[d.UUID] != i {
			continue
		}
		g := group{named: true}
		for _, other := range s.Count.Devices {
			if index[other.UUID] == i {
				g.devices = append(g.devices, other)
			}
		}
		for _, h := range members {
			if at, seen := first[h.pid]; seen && index[s.Count.Devices[at].UUID] == i {
				g.members = append(g.members, h)
			}
		}
		if len(g.members) > 0 {
			out = append(out, g)
		}
	}
	return out
}

// counted is what the driver counts for processes.
type counted struct {
	bytes   int64
	of      int // processes
	unknown int // how many of them have no figure
}

// count sums up what a reading reports about the members, and about other processes.
func (g *group) count(r *nvsmi.Reading) (own, others counted) {
	if r == nil || !g.named {
		return own, others
	}
	for _, u := range r.Processes {
		if !slices.ContainsFunc(g.devices, func(d nvsmi.Device) bool { return d.UUID == u.UUID }) {
			continue
		}
		to := &others
		if slices.ContainsFunc(g.members, func(h *holding) bool { return h.pid == u.PID }) {
			to = &own
		}
		to.of++
		if u.Used == nil {
			to.unknown++
		} else {
			to.bytes += *u.Used
		}
	}
	return own, others
}

func sumOf(devices []nvsmi.Device, what func(nvsmi.Device) *int64) *int64 {
	if len(devices) == 0 {
		return nil
	}
	var sum int64
	for _, d := range devices {
		n := what(d)
		if n == nil {
			return nil
		}
		sum += *n
	}
	return &sum
}

// rounding bounds the error of a figure from the driver.
const rounding = 1 << 20

func (g *group) account(s *recording.GPUState) recording.GPUDevice {
	d := recording.GPUDevice{
		Names: []string{}, At: s.At, Parts: []recording.GPUPart{}, Notes: []string{},
		Used:  sumOf(g.devices, func(d nvsmi.Device) *int64 { return d.Used }),
		Total: sumOf(g.devices, func(d nvsmi.Device) *int64 { return d.Total }),
	}
	for _, v := range g.devices {
		if v.Index != "" {
			d.Names = append(d.Names, v.Index)
		}
	}
	own, others := g.count(s.Count)
	before, _ := g.count(s.Before)
	slack := int64(rounding*(1+own.of+others.of)) + max(s.Meanwhile, 0)
	held, hadPyTorch := g.recordKnown(&d)
	rest := held // of what is known to be used
	if own.of > 0 && own.unknown == 0 {
		d.Own = &own.bytes
		rest = own.bytes
		room := own.bytes - held
		if room < -slack {
			d.Beyond = -room
		}
		room = max(room, 0)
		unseen := int64(0)
		if before.of > 0 && before.unknown == 0 {
			if n := room - max(before.bytes-hadPyTorch, 0); n > slack {
				unseen = n - max(s.Meanwhile, 0)
			}
		}
		d.Parts = append(d.Parts, recording.GPUPart{Part: recording.PartEarlier, Bytes: room - unseen})
		if unseen > 0 {
			d.Parts = append(d.Parts, recording.GPUPart{Part: recording.PartUnseen, Bytes: unseen})
		}
	}
	if others.of > others.unknown {
		d.Parts = append(d.Parts, recording.GPUPart{Part: recording.PartOthers, Bytes: others.bytes, Count: others.of - others.unknown})
		rest += others.bytes
	}
	if d.Used != nil {
		left := *d.Used - rest
		if left < -slack {
			d.Beyond = max(d.Beyond, -left)
		}
		d.Parts = append(d.Parts, recording.GPUPart{Part: recording.PartRemainder, Bytes: max(left, 0)})
	}
	g.note(&d, s, own, others)
	return d
}

// recordKnown records what PyTorch has and what was seen to be taken, and returns their sum
// and how much PyTorch had before the trace.
func (g *group) recordKnown(d *recording.GPUDevice) (held, hadPyTorch int64) {
	torch := recording.GPUPart{Part: recording.PartPyTorch, Allocated: new(int64), Since: new(int64)}
	outside := map[string]int64{}
	known := false
	for _, h := range g.members {
		for owner, n := range h.outside {
			outside[owner] += n
			if owner == gpudriver.OwnerPyTorch && h.snapshot != nil {
				d.Absent += max(n, 0)
			}
		}
		if h.snapshot != nil {
			known = true
			torch.Bytes += h.snapshot.bytes
			*torch.Allocated += h.snapshot.allocated
			*torch.Since += h.since
		}
	}
	if known {
		d.Parts = append(d.Parts, torch)
		held += torch.Bytes
	}
	var traced []recording.GPUPart
	for owner, n := range outside {
		if n > 0 {
			traced = append(traced, recording.GPUPart{Part: recording.PartTraced, Owner: owner, Bytes: n})
			held += n
		}
	}
	sorts.By(traced, func(a, b recording.GPUPart) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Owner, b.Owner))
	})
	d.Parts = append(d.Parts, traced...)
	return held, max(torch.Bytes-*torch.Since, 0)
}
