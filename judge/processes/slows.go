package processes

import (
	"fmt"
	"time"

	"strandline/units"
)

// slowed lists parts at the end of a curve, as shares of it, and the ratio of the rate in
// that part to the rate before it below which growth has ended. A shorter pause shows
// less, so it has to be clearer.
var slowed = []struct{ part, rate float64 }{{0.25, 0.25}, {0.125, 0.1}}

// problemDespiteRelease is how sure a class must be to stay a problem even though the
// processes gave memory back in between.
const problemDespiteRelease = 0.75

// minSlow is the least number of intervals in such a part: fewer are only a pause.
const minSlow = 3

// slows states that growth of reused memory has nearly ended, as that of a bounded cache
// does once it is full, and how long to trace to see that; it is empty if growth goes on.
func (g *hostGrowth) slows(checkpoints []uint64) string {
	if !g.pooled() || g.shape != grows {
		return ""
	}
	curve := g.course(g.all)
	last := len(curve) - 1
	for _, s := range slowed {
		at := last - int(s.part*float64(last-g.from))
		if last-at < minSlow || checkpoints[last] <= checkpoints[at] || checkpoints[at] <= checkpoints[g.from] {
			continue
		}
		late := float64(curve[last]-curve[at]) / seconds(checkpoints[last]-checkpoints[at])
		early := float64(curve[at]-curve[g.from]) / seconds(checkpoints[at]-checkpoints[g.from])
		if early > 0 && late < s.rate*early {
			rate := "nothing"
			if late > 0 {
				rate = units.Rate(late)
			}
			return fmt.Sprintf("it has slowed down: %s in the last %s, %s before, as a bounded cache that is nearly full. Trace for %s or longer",
				rate, units.Duration(time.Duration(checkpoints[last]-checkpoints[at])), units.Rate(early), units.Duration(time.Duration(2*checkpoints[last])))
		}
	}
	return ""
}

// fell reports whether the processes gave back at least half of some bytes in between:
// then the difference between the beginning and the end need not have stayed.
func (h host) fell(bytes int64) bool {
	most := int64(0)
	for _, n := range h.sums.Grown {
		if most = max(most, n); 2*(most-n) >= bytes {
			return true
		}
	}
	return false
}
