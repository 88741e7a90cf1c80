package timeline

// SizeClass names the kind of pool that serves a request: "small" or "large".
func SizeClass(request int64) string {
	if request <= smallRequest {
		return "small"
	}
	return "large"
}

// DriverSize is what the allocator takes from the driver for a request that no
// free block serves.
func DriverSize(request int64, expandable bool) int64 {
	const shared = 10 << 20 // requests below it share a segment
	unit := int64(smallSegment)
	if request > smallRequest && (expandable || request < shared) {
		unit = largePage
	}
	return (request + unit - 1) / unit * unit
}
