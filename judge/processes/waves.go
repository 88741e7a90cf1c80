package processes

import (
	"fmt"

	"strandline/units"
)

const (
	// minWaves is the number of falls from which what stays between them shows whether
	// there is a leak.
	minWaves = 3
	// higher is how many times as high as the wave before it the last one may be, for the
	// two to be alike.
	higher = 1.25
	// lifted is the share of the growth by which the level between two waves is above that
	// at the beginning if something stays, and released the share that a fall must have
	// to count.
	lifted, released = 0.25, 0.25
)

// waves states that the memory came down once or twice and is no higher above that level
// than it was before: then it may be a working set that is rebuilt, as of a batch, and
// will come down again. It is empty if nothing suggests so.
func (g *hostGrowth) waves(h host) string {
	if g.shape != grows {
		return ""
	}
	for _, curve := range [][]int64{h.sums.Grown, g.all.Bytes} {
		if len(curve) != len(h.sums.Checkpoints) {
			continue
		}
		if fell, trough := wave(curve[g.from:]); fell > 0 {
			return fmt.Sprintf("%s was given back in between, by %s into the trace, and hardly more came since. It may be a batch, which gives it back again",
				units.Bytes(fell), duration(h.sums.Checkpoints[g.from+trough]))
		}
	}
	return ""
}

// wave returns by how much a curve fell from its last wave but one, and where to, if its rise
// since then is like the one before; otherwise 0.
func wave(curve []int64) (fell int64, trough int) {
	last := len(curve) - 1
	grown := float64(curve[last] - curve[0])
	if grown <= 0 {
		return 0, 0
	}
	peak, top := 0, 0
	for i, n := range curve {
		if n > curve[top] {
			top = i
		}
		if curve[top]-n > fell {
			fell, peak, trough = curve[top]-n, top, i
		}
	}
	rest := float64(curve[last] - curve[trough])
	switch {
	case peak == trough, float64(fell) < released*grown, rest > higher*float64(fell),
		float64(curve[trough]-curve[0]) > lifted*grown, fallsBy(curve, fell/2) >= minWaves:
		return 0, 0
	}
	return fell, trough
}

// fallsBy counts how often a curve falls by at least some bytes and rises by as much again.
func fallsBy(curve []int64, minBytes int64) (n int) {
	top, low, falling := curve[0], curve[0], false
	for _, b := range curve {
		switch {
		case !falling && b > top:
			top = b
		case !falling && top-b >= minBytes:
			falling, low = true, b
			n++
		case falling && b < low:
			low = b
		case falling && b-low >= minBytes:
			falling, top = false, b
		}
	}
	return n
}
