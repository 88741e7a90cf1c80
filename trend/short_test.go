package trend

import "testing"

// TestShort judges series of a few samples, in MiB.
func TestShort(t *testing.T) {
	for _, c := range []struct {
		name  string
		mib   []float64
		ended bool
		leaks bool
	}{
		{"the same amount each time", []float64{184, 215, 245, 276, 297, 327, 358}, false, true},
		{"ever less", []float64{100, 500, 700, 800, 850, 870}, false, false},
		{"once less", []float64{100, 200, 300, 290, 400, 500}, false, false},
		{"next to nothing", []float64{10000, 10001, 10002, 10003, 10004}, false, false},
		{"three samples", []float64{604, 2629, 5304}, false, false},
		{"three samples of a program that died", []float64{604, 2629, 5304}, true, true},
	} {
		var at, bytes []float64
		for i, x := range c.mib {
			at, bytes = append(at, float64(i)), append(bytes, x*(1<<20))
		}
		if v, ok := JudgeShort(at, bytes, c.ended); ok != c.leaks || ok && (!v.Leaks() || v.Rate <= 0) {
			t.Errorf("%s: %v, %+v", c.name, ok, v)
		}
	}
}
