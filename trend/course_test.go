package trend

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"
)

// TestConfusion draws series of each family and counts how often they are called a
// leak. With -v it prints the table that docs/series.md states.
func TestConfusion(t *testing.T) {
	each := 60
	if testing.Short() {
		each = 15
	}
	var wrong, right, safe, leaks int
	for _, m := range makers {
		called := 0
		shapes := map[Shape]int{}
		for i := range each {
			s := m.draw(uint64(i))
			c := JudgeLevels(s.t, s.v)
			shapes[c.Shape]++
			if c.Leaks() {
				called++
			}
			if c.Growing < 0 || c.Growing > 1 || math.IsNaN(c.Rate) || !(c.levelLow <= c.Level && c.Level <= c.levelHigh) {
				t.Errorf("%s %d: growing %v at %v, level %v between %v and %v", m.family, i, c.Growing, c.Rate, c.Level, c.levelLow, c.levelHigh)
			}
		}
		if m.leak {
			leaks, right = leaks+each, right+called
		} else {
			safe, wrong = safe+each, wrong+called
		}
		t.Logf("%-26s leak: %-5v called one: %3d of %d  %v", m.family, m.leak, called, each, shapes)
	}
	falsely, found := float64(wrong)/float64(safe), float64(right)/float64(leaks)
	t.Logf("%.2f %% of the harmless series are called a leak, %.1f %% of the leaks are found", 100*falsely, 100*found)
	if falsely > 0.01 {
		t.Errorf("%d of %d harmless series are called a leak", wrong, safe)
	}
	if found < 0.95 {
		t.Errorf("%d of %d leaks are found", right, leaks)
	}
}

// TestUntil cuts growing series and checks when the rest reaches a level: those of the
// families above, with which the bounds were chosen, and of others.
func TestUntil(t *testing.T) {
	for _, c := range []struct {
		name      string
		makers    []maker
		from, n   int // of the series of a family
		in, apart float64
	}{
		{"the families", makers, 0, 15, 0.85, 3},
		{"other series of them", makers, 700_000, 10, 0.85, 3},
		{"other families", others, 800_000, 15, 0.85, 3},
	} {
		var inside int
		var ratios []float64
		for _, m := range c.makers {
			if !m.leak || m.family == "restarts of a leak" { // after which it is another process
				continue
			}
			for i := range c.n {
				at, v := clean(m.drawn(uint64(c.from + i)))
				for _, share := range []float64{0.3, 0.5, 0.7} {
					in, ratio := reaches(t, at, v, int(share*float64(len(v))))
					if ratio == 0 {
						continue
					}
					ratios = append(ratios, ratio)
					if in {
						inside++
					}
				}
			}
		}
		slices.Sort(ratios)
		share, apart := float64(inside)/float64(len(ratios)), ratios[len(ratios)/2]
		t.Logf("%s: the limit is reached between the bounds in %.1f %% of %d cases; they are a factor of %.2f apart in half of them", c.name, 100*share, len(ratios), apart)
		if share < c.in || apart > c.apart {
			t.Errorf("%s: want %v and %v", c.name, c.in, c.apart)
		}
	}
}

// reaches reports whether a level of the last part of a series is reached between the
// bounds that the part before sample cut gives, and their ratio; 0 if that part does not
// grow, or is as high already.
func reaches(t *testing.T, at, v []float64, cut int) (inside bool, ratio float64) {
	c := JudgeLevels(at[:cut], v[:cut])
	limit := v[len(v)-len(v)/20]
	if !c.Leaks() || limit <= slices.Max(v[:cut]) {
		return false, 0
	}
	reached := cut + slices.IndexFunc(v[cut:], func(x float64) bool { return x >= limit })
	truth := at[reached] - at[cut-1]
	low, high, ok := c.until(limit)
	if !ok || low > high {
		t.Fatalf("%v to %v, %v", low, high, ok)
	}
	return low <= truth && truth <= high, high / max(low, 1)
}

func TestPlateauLevel(t *testing.T) {
	var at, v []float64
	for i := range 600 {
		at = append(at, float64(i))
		v = append(v, 1e9+4e9*(1-math.Exp(-float64(i)/150)))
	}
	c := JudgeLevels(at, v)
	if c.Shape != Plateau || math.Abs(c.Level-5e9) > 5e7 || c.levelLow > 5e9 || c.levelHigh < 4.99e9 {
		t.Errorf("%s at %.0f, between %.0f and %.0f", c.Shape, c.Level, c.levelLow, c.levelHigh)
	}
	if _, _, ok := c.until(6e9); ok {
		t.Error("a plateau reaches a limit")
	}
}

func TestRate(t *testing.T) {
	var at, v []float64
	for i := range 300 {
		at = append(at, 10*float64(i))
		v = append(v, 1e9+2048*10*float64(i))
	}
	c := JudgeLevels(at, v)
	if c.Shape != Growth || math.Abs(c.Rate-2048) > 20 {
		t.Fatalf("%s at %.1f bytes a second", c.Shape, c.Rate)
	}
	low, high, _ := c.until(v[299] + 2048*1000)
	if low > 1000 || high < 1000 || high > 2*low {
		t.Errorf("1000 seconds are between %.0f and %.0f", low, high)
	}
	if low, high, _ := c.until(1e9); low != 0 || high != 0 {
		t.Errorf("a limit that is reached is between %.0f and %.0f seconds ahead", low, high)
	}
}

func TestTooFew(t *testing.T) {
	for n := range minSamples {
		c := JudgeLevels(make([]float64, n), make([]float64, n))
		if c.Shape != Unknown || c.Leaks() {
			t.Errorf("%d samples: %s", n, c.Shape)
		}
	}
	nan := math.NaN()
	at := make([]float64, 40)
	v := make([]float64, 40)
	for i := range v {
		at[i], v[i] = float64(i), nan
	}
	if c := JudgeLevels(at, v); c.Shape != Unknown || c.Samples != 0 {
		t.Errorf("40 missing levels: %s of %d", c.Shape, c.Samples)
	}
}

func FuzzJudgeLevels(f *testing.F) {
	for i, m := range makers {
		s := m.draw(uint64(i))
		var b []byte
		for k := range min(len(s.v), 40) {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.t[k]))
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(s.v[k]))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var at, v []float64
		for ; len(b) >= 16 && len(v) < 500; b = b[16:] {
			at = append(at, math.Float64frombits(binary.LittleEndian.Uint64(b)))
			v = append(v, math.Float64frombits(binary.LittleEndian.Uint64(b[8:])))
		}
		c := JudgeLevels(at, v)
		low, high, _ := c.until(1e12)
		for _, x := range []float64{c.Growing, c.Rate, c.Level, c.levelLow, c.levelHigh, low, c.Seconds} {
			if math.IsNaN(x) {
				t.Errorf("%v: growing %v at %v, level %v between %v and %v", c.Shape, c.Growing, c.Rate, c.Level, c.levelLow, c.levelHigh)
			}
		}
		if math.IsNaN(high) || high < low {
			t.Errorf("from %v to %v", low, high)
		}
	})
}

func BenchmarkJudgeLevels(b *testing.B) {
	for _, n := range []int{100, 3600, 86400} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			at, v := make([]float64, n), make([]float64, n)
			for i := range v {
				at[i], v[i] = float64(i), 1e9+1e6*math.Sqrt(float64(i))+1e5*math.Sin(float64(i))
			}
			for b.Loop() {
				JudgeLevels(at, v)
			}
		})
	}
}
