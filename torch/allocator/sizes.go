package allocator

import "math/bits"

// Round is round_size: the bytes of the smallest block that serves a request.
func (s *Settings) Round(request int64) int64 {
	if s.Ascend && request <= maxRequested {
		return (request + ascendPadding + Granule - 1) / Granule * Granule
	}
	if request < Granule {
		return Granule
	}
	if request > maxRequested {
		return request
	}
	if d := s.RoundupDivisions[sizeClass(request)]; d > 1 && request > Granule*d {
		return roundToDivision(request, d)
	}
	return (request + Granule - 1) / Granule * Granule
}

// sizeClass returns the interval of roundup_power2_divisions that contains a
// request: class i begins at 2^(20+i) bytes, the first and the last are open.
func sizeClass(request int64) int {
	return min(max(bits.Len64(uint64(request))-21, 0), len(Settings{}.RoundupDivisions)-1)
}

// roundToDivision rounds up to one of the divisions equal parts between two
// powers of two.
func roundToDivision(request, divisions int64) int64 {
	power := int64(1) << (bits.Len64(uint64(request)) - 1)
	if request == power {
		return request
	}
	part := power >> (bits.Len64(uint64(divisions)) - 1)
	if part == 0 {
		return 2 * power
	}
	return (request + part - 1) / part * part
}

// SegmentSize returns what cudaMalloc is asked for on behalf of a rounded request.
func (s *Settings) SegmentSize(size int64) int64 {
	switch {
	case size <= SmallLimit:
		return SmallBuffer
	case size < LargeLimit:
		return s.LargeSegment
	}
	return (size + RoundLarge - 1) / RoundLarge * RoundLarge
}
