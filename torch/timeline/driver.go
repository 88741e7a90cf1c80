package timeline

import (
	"cmp"
	"slices"

	"strandline/stack"
	"strandline/torch/allocator"
	"strandline/torch/ranges"
	"strandline/torch/snapshot"
)

// SizeClass names the kind of pool that serves a request: "small" or "large".
func SizeClass(request int64) string {
	if request <= allocator.SmallLimit {
		return "small"
	}
	return "large"
}

// DriverSize returns what the allocator takes from the driver for a request that no
// free block serves.
func DriverSize(request int64, expandable bool) int64 {
	unit := int64(allocator.SmallBuffer)
	if request > allocator.SmallLimit && (expandable || request < allocator.LargeLimit) {
		unit = allocator.LargeBuffer
	}
	return (request + unit - 1) / unit * unit
}

// TakenBy returns, for the addresses that are reserved after event k, the event that took
// them from the driver. What was taken before the recording is left out.
func (t *Timeline) TakenBy(k int) (out ranges.List[int32]) {
	e := &t.Trace.Events
	for _, i := range t.past().calls {
		if int(i) > k {
			break
		}
		start, end := e.Addr[i], e.Addr[i]+uint64(e.Size[i])
		switch e.Action[i] {
		case snapshot.SegmentAlloc, snapshot.SegmentMap:
			out.Put(start, end, i)
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			out.Cut(start, end)
		}
	}
	return out
}

// Driver is the history of what the driver gave, on the same events: an allocation is a part
// of a segment, made by the event that took it and freed by the one that gave it back. The
// sizes of the parts are the second result: what is taken at once and given back in pieces
// is several of them.
func (t *Timeline) Driver() (*Timeline, []int64) {
	d := driverParts{t: t}
	e := &t.Trace.Events
	for _, k := range t.past().calls {
		start, end := e.Addr[k], e.Addr[k]+uint64(max(e.Size[k], 0))
		switch e.Action[k] {
		case snapshot.SegmentAlloc, snapshot.SegmentMap:
			d.end(start, end, k, false)
			d.held.Put(start, end, k)
		case snapshot.SegmentFree, snapshot.SegmentUnmap:
			d.end(start, end, k, true)
		}
	}
	for _, i := range t.device.Segments {
		g := &t.Snap.Segments[i]
		d.before(g.Addr, g.Addr+uint64(max(g.TotalSize, 0)), Never, g.Stack)
	}
	for r := range d.held.All() {
		d.add(r.Value, Never, r.Len())
	}
	return d.timeline()
}

// driverParts are what the driver gave, part by part.
type driverParts struct {
	t     *Timeline
	held  ranges.List[int32] // what is reserved, by the event that took it
	parts []driverPart
	older []older
}

type driverPart struct {
	Alloc
	bytes int64
}

func (d *driverParts) add(birth, death int32, bytes uint64) {
	d.parts = append(d.parts, driverPart{Alloc{birth, death, death}, int64(bytes)})
}

// end ends at event k what is held of a range. What of it was never taken is older than the
// recording if all of it was given back.
func (d *driverParts) end(start, end uint64, k int32, givenBack bool) {
	if end <= start {
		return
	}
	if givenBack {
		d.before(start, end, k, stack.None)
	}
	for r := range d.held.AtLeast(start, 0) {
		if r.Start >= end {
			break
		}
		d.add(r.Value, k, min(r.End, end)-max(r.Start, start))
	}
	d.held.Cut(start, end)
}

// before adds what of a range is not held, as memory from before the recording.
func (d *driverParts) before(start, end uint64, death int32, made stack.ID) {
	gap := func(to uint64) {
		if start < to {
			d.older = append(d.older, older{start, int64(to - start), made})
			d.add(^int32(len(d.older)-1), death, to-start)
		}
	}
	for r := range d.held.AtLeast(start, 0) {
		if r.Start >= end {
			break
		}
		gap(r.Start)
		start = r.End
	}
	gap(end)
}

// timeline puts the parts in the order of a timeline: the older ones, then by birth.
func (d *driverParts) timeline() (*Timeline, []int64) {
	slices.SortStableFunc(d.parts, func(a, b driverPart) int { return cmp.Compare(max(a.birth, Never), max(b.birth, Never)) })
	out, sizes := *d.t, make([]int64, len(d.parts))
	out.before, out.Allocs = d.older, make([]Alloc, len(d.parts))
	for i, p := range d.parts {
		out.Allocs[i], sizes[i] = p.Alloc, p.bytes
	}
	return &out, sizes
}
