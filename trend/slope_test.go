package trend

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestSlope draws lines of known slope with noise that goes on, and counts how often
// the bounds hold the truth.
func TestSlope(t *testing.T) {
	const each, slope = 200, 1000.0
	inside := 0
	for seed := range uint64(each) {
		r := rand.New(rand.NewPCG(seed, 1))
		var at, v []float64
		rest := red(r, 200)
		for i := range 200 {
			at = append(at, float64(i))
			v = append(v, 1e8+slope*float64(i)+30000*rest[i]+10000*r.NormFloat64())
		}
		rate, low, high := Slope(at, v)
		if !(low <= rate && rate <= high) {
			t.Fatalf("%v is not between %v and %v", rate, low, high)
		}
		if low <= slope && slope <= high {
			inside++
		}
	}
	t.Logf("the bounds hold the truth in %d of %d", inside, each)
	if inside < each*85/100 {
		t.Errorf("the bounds hold the truth in %d of %d", inside, each)
	}
}

// TestSlopeBehindWarmUp does not count what a program loads at first.
func TestSlopeBehindWarmUp(t *testing.T) {
	var at, v []float64
	for i := range 200 {
		at = append(at, float64(i))
		v = append(v, 1e9-1e9*math.Exp(-float64(i)/4)+100*float64(i))
	}
	if rate, low, high := Slope(at, v); math.Abs(rate-100) > 20 || low > rate || high < rate {
		t.Errorf("%v, between %v and %v", rate, low, high)
	}
	if _, low, high := Slope(at[:3], v[:3]); !math.IsInf(low, -1) || !math.IsInf(high, 1) {
		t.Errorf("of three samples: between %v and %v", low, high)
	}
}

// TestUntilBehindDips: what is released for a moment and taken again is no rise that could
// reach a limit.
func TestUntilBehindDips(t *testing.T) {
	const n, left = 41, 80e6
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 1))
		var at, v []float64
		for i := range n {
			level := 148e6 * (1 - math.Exp(-float64(i+1)/30))
			if r.Float64() < 0.1 && i < n-1 {
				level *= 0.3 * r.Float64()
			}
			at, v = append(at, 0.7*float64(i+1)), append(v, level)
		}
		c := JudgeLevels(at, v)
		// At no time has it risen by as much in less than 17 seconds.
		if low, high, ok := c.until(v[n-1] + left); ok && (low < 3 || low > high) {
			t.Errorf("seed %d: a limit that is %.0f MB away is reached in %.2f s to %.2f s", seed, left/1e6, low, high)
		}
	}
}
