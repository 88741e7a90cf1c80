package processes

import (
	"fmt"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/units"
)

// What a single piece of malloc's must be to be a buffer: at least minBuffer bytes, and
// muchLarger times any other. The blocks that an allocator takes ahead, as PostgreSQL's of
// up to 8 MiB, are twice those before.
const (
	minBuffer  = 32 << 20
	muchLarger = 8
)

// findBuffers notes the buffers that are being filled, each of which malloc got by one call
// as a mapping of its own. How far they grow is known, so they are not a leak, and none of what
// leaks beside them.
func (h *host) findBuffers() {
	h.buffers = map[*ledger.Use]bool{}
	single := func(u *ledger.Use) bool { return u.Calls == 1 && u.Count == 1 && u.Size >= minBuffer }
	var largest int64 // of the other pieces
	for i := range h.sums.Uses {
		if u := &h.sums.Uses[i]; h.kindOf(u) == finding.HeapLeak && !single(u) {
			largest = max(largest, u.Size)
		}
	}
	for i := range h.sums.Uses {
		u := &h.sums.Uses[i]
		if h.kindOf(u) == finding.HeapLeak && single(u) && u.Size >= muchLarger*largest && u.Live-residentOf(u) >= minHostBytes {
			h.buffers[u] = true
		}
	}
}

// buffered is how much of the buffers that are being filled is in memory, in bytes.
func (h host) buffered() (bytes int64) {
	for u := range h.buffers {
		bytes += residentOf(u)
	}
	return bytes
}

// bound states how large the mapping is that grew most of those that are being filled, and
// how much of it is in memory: until then it may grow.
func (h host) bound() []string {
	filled := map[uint64]int64{} // by the beginning of a mapping
	for _, s := range h.looks.Spots {
		if s.Class == finding.MmapLeak {
			filled[s.Start] += s.Bytes
		}
	}
	const maxShown = 16
	for _, m := range h.looks.Mappings(maxShown) {
		if 2*filled[m.Start] >= m.Grown && m.Size() > m.RSS {
			return []string{fmt.Sprintf("the one that grew most is of %s, and %s of it is in memory", units.Bytes(int64(m.Size())), units.Bytes(int64(m.RSS)))}
		}
	}
	return nil
}

// detail states what else is known of growth: of a buffer when it is full, if it is filled
// as fast as so far.
func (g *hostGrowth) detail(checkpoints []uint64) []string {
	if !g.buffer {
		return hostDetail(g.kind, g.uses[0])
	}
	took := seconds(checkpoints[len(checkpoints)-1] - checkpoints[max(0, reached(g.all.Bytes))])
	if took < 1 || g.resident <= 0 {
		return nil
	}
	rate := float64(g.resident) / took
	return []string{fmt.Sprintf("at %s it is full in about %s, and grows no more", units.Rate(rate), units.Seconds(float64(g.mapped-g.resident)/rate))}
}
