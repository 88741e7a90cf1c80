package timeline

import (
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
