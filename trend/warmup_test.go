package trend

import "testing"

func TestWarmUp(t *testing.T) {
	curve := func(rates ...int64) []int64 {
		out := []int64{0}
		for _, r := range rates {
			out = append(out, out[len(out)-1]+r)
		}
		return out
	}
	for _, c := range []struct {
		name  string
		bytes []int64
		want  int
	}{
		{"nothing", nil, 0},
		{"one checkpoint", curve(), 0},
		{"flat", curve(0, 0, 0, 0, 0, 0, 0, 0), 0},
		{"a steady leak", curve(5, 4, 6, 5, 5, 4, 6, 5, 5, 5), 0},
		{"a leak that begins late", curve(0, 0, 0, 0, 0, 5, 5, 5, 5, 5), 0},
		{"weights, then nothing", curve(50, 50, 50, 0, 0, 0, 0, 0, 0, 0), 3},
		{"weights, then a leak", curve(50, 50, 50, 2, 2, 2, 2, 2, 2, 2), 3},
		{"weights, a pause, then a leak", curve(50, 50, 50, 0, 0, 0, 2, 2, 2, 2, 2, 2), 3},
		{"two hurries, then a leak", curve(50, 50, 0, 0, 0, 60, 1, 1, 1, 1, 1, 1, 1, 1), 6},
		{"a hurry in the end", curve(2, 2, 2, 2, 2, 2, 2, 50, 50), 0},
		{"too little behind it", curve(50, 50, 50, 50, 50, 50, 0, 0, 0), 0},
		{"lumps", curve(0, 10, 0, 0, 10, 0, 0, 10, 0, 0), 0},
	} {
		if got := WarmUp(c.bytes); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// What was there at the checkpoint is old to what is judged from it on.
func TestFrom(t *testing.T) {
	p := held(9, "30*0-8", "30*1-8", "2*3-8", "2*4-8", "2*5-8", "2*6-8", "2*7-8", "2*8-8")
	if v := Judge(p, Past{}); v.Class != Levelled {
		t.Errorf("in all it is %s", v.Class)
	}
	later := p.From(2)
	if v := Judge(later, Past{}); v.Class != Leak || v.Confidence < 0.5 || later.added(1) != 2 {
		t.Errorf("from the second checkpoint on it is %s, %.2f, and %d are added at first", v.Class, v.Confidence, later.added(1))
	}
}
