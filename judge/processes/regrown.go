package processes

import (
	"fmt"
	"math"

	"strandline/finding"
	"strandline/host/calls/ledger"
	"strandline/trend"
	"strandline/units"
)

// The thresholds for a buffer that is allocated again and again, larger each time.
const (
	regrownRises = 5 // steps in which it became larger
	// regrownFalls is the most steps in which it may have become smaller, for each step
	// in which it became larger; if sizes vary, the pieces of a place become smaller
	// half of the time.
	regrownFalls = 0.1
	// regrownSame is how much smaller a piece may be without counting as smaller: it is
	// the average of the old and the new while one is copied to the other.
	regrownSame = 0.02
)

// pieceSizes returns the sizes of a place's only piece at the checkpoints at which there
// is one, or two while one is copied to the other; nil for a place with more pieces.
func pieceSizes(p *trend.Population, processes int) (sizes []int64) {
	for i, n := range p.Count {
		switch {
		case n > 2*int64(max(processes, 1)):
			return nil
		case n > 0:
			sizes = append(sizes, p.Bytes[i]/n)
		}
	}
	return sizes
}

// regrows is the confidence that a place allocates a buffer again and again, larger each
// time, and is still doing so; 0 if it does not.
func regrows(u *ledger.Use) float64 {
	sizes := pieceSizes(u.Population, len(u.Shares))
	n := len(sizes) - 1
	if n < regrownRises || u.Calls < regrownRises || sizes[n]-sizes[0] < minClassBytes {
		return 0
	}
	rises, falls, last := 0, 0, 0
	for i := 1; i <= n; i++ {
		switch was := float64(sizes[i-1]); {
		case float64(sizes[i]) < (1-regrownSame)*was:
			falls++
		case sizes[i] > sizes[i-1]:
			rises, last = rises+1, i
		}
	}
	ended := 4*last <= 3*n
	if rises < regrownRises || float64(falls) > regrownFalls*float64(rises) || ended {
		return 0
	}
	return 1 - math.Pow(0.5, float64(rises-falls))
}

// regrown fills in how much a buffer that is allocated again and again has grown.
func (g *hostGrowth) regrown() {
	g.resident, g.mapped = 0, 0
	for _, u := range g.uses {
		if sizes := pieceSizes(u.Population, len(u.Shares)); len(sizes) > 0 {
			g.resident += sizes[len(sizes)-1] - sizes[0]
			g.mapped += sizes[len(sizes)-1]
		}
	}
	g.early = 0
}

// regrownTitle says from what size to what size the buffer grew.
func (g *hostGrowth) regrownTitle() string {
	sizes := pieceSizes(g.uses[0].Population, len(g.uses[0].Shares))
	return fmt.Sprintf("a buffer is reallocated, larger each time: from %s to %s", units.Bytes(sizes[0]), units.Bytes(sizes[len(sizes)-1]))
}

// regrownDetail states what the copying costs, and how much of the buffer is not used.
func regrownDetail(u *ledger.Use) (out []string) {
	most := int64(0)
	for _, n := range u.Population.Bytes {
		most = max(most, n)
	}
	out = append(out, fmt.Sprintf("it was allocated %s times, %s in all. While it is copied, both the old and the new are held (up to %s)", units.Count(u.Calls), units.Bytes(u.Total), units.Bytes(most)))
	if u.Count == 1 && u.Live-residentOf(u) >= minHostBytes {
		out = append(out, fmt.Sprintf("%s of it is reserved and not used", units.Bytes(u.Live-residentOf(u))))
	}
	return out
}

var regrownRemedies = []finding.Remedy{
	finding.CodeChange("collect the parts and join them once (b\"\".join, io.BytesIO, torch.cat), or allocate the final size at first"),
	finding.CodeChange("limit its length if nothing empties it"),
}
