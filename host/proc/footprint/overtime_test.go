package footprint

import (
	"testing"
	"time"
)

// How a class is judged follows from when it grew.
func TestOverTime(t *testing.T) {
	const mib = 1 << 20
	type verdict struct {
		steady, settled bool
		early, until    int64
	}
	for _, c := range []struct {
		name  string
		steps []int64 // MiB, a second each
		want  verdict
	}{
		{"a leak", []int64{8, 7, 9, 8, 8}, verdict{steady: true}},
		{"a leak that a collector hides once", []int64{8, 8, 8, 0, 8}, verdict{steady: true}},
		{"weights", []int64{500, 100, 0, 0, 0}, verdict{settled: true, until: 2}},
		{"weights, then a leak", []int64{500, 8, 8, 8, 8}, verdict{steady: true, early: 500, until: 1}},
		{"weights, then too little to judge", []int64{500, 1, 0, 1, 0}, verdict{settled: true, until: 1}},
		{"growth in the end", []int64{0, 0, 0, 0, 40}, verdict{}},
		{"two looks", []int64{40}, verdict{}},
		{"half and half", []int64{40, 0}, verdict{settled: true, until: 1}},
		{"each half", []int64{40, 40}, verdict{steady: true}},
	} {
		var p Part
		curve, looks := []int64{0}, []*Observation{{}}
		for i, s := range c.steps {
			p.Bytes += s * mib
			curve = append(curve, p.Bytes)
			looks = append(looks, &Observation{At: time.Duration(i+1) * time.Second})
		}
		all := p.Bytes
		p.datePart(curve, looks)
		if got := (verdict{p.Steady, p.Settled, p.Early / mib, int64(p.Until / time.Second)}); got != c.want || p.Bytes+p.Early != all {
			t.Errorf("%s: %+v of %d bytes, want %+v", c.name, got, p.Bytes, c.want)
		}
	}
}
