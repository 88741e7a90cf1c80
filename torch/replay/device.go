package replay

import (
	"math"

	"strandline/torch/allocator"
	"strandline/torch/ranges"
	"strandline/torch/snapshot"
)

// A device is a simulated driver. It returns the addresses of the recording as
// long as the calls are the same, then those of the lowest gap that fits.
// Addresses decide between free blocks of equal size, and rarely more.
type device struct {
	e        *snapshot.Events
	calls    []int32
	next     int // of the calls, as long as they are the same
	parted   bool
	capacity int64 // bytes; 0 means no bound
	used     int64
	lowest   uint64
	room     ranges.List[struct{}] // for segments
	reserved uint64                // reservations made
	frees    int                   // calls of cudaFree
}

const (
	firstAddress = 0x7f0000000000
	reservations = 0x100000000000
	reservation  = 1 << 40
)

func newDevice(r *Recording, capacity int64) *device {
	d := &device{e: &r.Trace.Events, calls: r.calls, capacity: capacity}
	d.lowest = firstAddress
	for _, k := range r.calls {
		if r.Trace.Action[k] == snapshot.SegmentAlloc {
			d.lowest = min(d.lowest, r.Trace.Addr[k])
		}
	}
	for i := range r.start { // by address
		if !r.start[i].Expandable {
			d.lowest = min(d.lowest, r.start[i].Addr)
			break
		}
	}
	d.room.Put(d.lowest, math.MaxUint64, struct{}{})
	for i := range r.start {
		g := &r.start[i]
		d.used += g.Size
		if !g.Expandable {
			d.room.Cut(g.Addr, end(g.Addr, g.Size))
		}
	}
	return d
}

// follow is the recorded address of a call if all were the same up to it.
func (d *device) follow(action snapshot.Action, addr uint64, size int64) (uint64, bool) {
	if d.parted || d.next == len(d.calls) {
		d.parted = true
		return 0, false
	}
	k := d.calls[d.next]
	if d.e.Action[k] != action || d.e.Size[k] != size || addr != 0 && d.e.Addr[k] != addr {
		d.parted = true
		return 0, false
	}
	d.next++
	return d.e.Addr[k], true
}

func (d *device) refuses(size int64) bool { return d.capacity > 0 && d.used+size > d.capacity }

func (d *device) Malloc(size int64) (uint64, bool) {
	if d.refuses(size) {
		return 0, false
	}
	addr, ok := d.follow(snapshot.SegmentAlloc, 0, size)
	if !ok {
		addr = d.gap(size)
	}
	d.room.Cut(addr, end(addr, size))
	d.used += size
	return addr, true
}

// gap is the lowest address with room for a segment.
func (d *device) gap(size int64) uint64 {
	for r := range d.room.AtLeast(0, uint64(size)) {
		at := r.Start
		if at > d.lowest { // what is behind a segment
			at = (at + allocator.RoundLarge - 1) / allocator.RoundLarge * allocator.RoundLarge
		}
		if r.End-at >= uint64(size) && at >= r.Start && at <= r.End {
			return at
		}
	}
	return 0 // no device has so much
}

func (d *device) Free(addr uint64, size int64) {
	d.frees++
	d.follow(snapshot.SegmentFree, addr, size)
	d.room.Join(addr, end(addr, size), struct{}{})
	d.used -= size
}

func (d *device) Reserve(int64) (uint64, int64) {
	if !d.parted && d.next < len(d.calls) {
		if k := d.calls[d.next]; d.e.Action[k] == snapshot.SegmentMap {
			return d.e.Addr[k], reservation
		}
	}
	d.reserved++
	return reservations + d.reserved*reservation, reservation
}

func (d *device) Within(addr uint64, _ int64) bool {
	if d.parted || d.next == len(d.calls) {
		return true
	}
	k := d.calls[d.next] // where the recording maps elsewhere, the reservation ended
	return d.e.Action[k] != snapshot.SegmentMap || d.e.Addr[k] == addr
}

func (d *device) Map(addr uint64, size int64) bool {
	if d.refuses(size) {
		return false
	}
	d.follow(snapshot.SegmentMap, addr, size)
	d.used += size
	return true
}

func (d *device) Unmap(addr uint64, size int64) {
	d.follow(snapshot.SegmentUnmap, addr, size)
	d.used -= size
}
