package detect

import (
	"testing"

	"strandline/finding"
	"strandline/footprint"
	"strandline/hostleak"
)

// What is left of a growth that calls explain is no finding of its own.
func TestUnmadeLeavesRests(t *testing.T) {
	const mib = 1 << 20
	h := host{sums: &hostleak.Sums{}, looks: &footprint.Growth{RSS: 80 * mib, Before: &footprint.Observation{}, After: &footprint.Observation{}, Parts: []footprint.Part{
		{Class: finding.MmapLeak, Bytes: 8 * mib, Steady: true, Sure: 0.9},
		{Class: finding.MemoryFiles, Bytes: 8 * mib, Steady: true, Sure: 0.9, Outside: true},
	}}}
	for _, c := range []struct {
		resident int64
		want     int
	}{{79 * mib, 1}, {20 * mib, 2}} {
		found := []finding.Finding{{Kind: finding.Remap, Evidence: map[string]any{"resident_bytes": c.resident}}}
		if got := h.unmade(found); len(got) != c.want || got[len(got)-1].Kind != finding.MemoryFiles {
			t.Errorf("with %d bytes explained: got %+v, want %d findings", c.resident, got, c.want)
		}
	}
}
