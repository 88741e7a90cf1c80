package plan

import "testing"

// TestWithin checks that a narrowed span is no wider than its ratio in whole bytes, and
// that its middle stays.
func TestWithin(t *testing.T) {
	for low := 1.0; low < 1e12; low = low*1.37 + 0.3 {
		for _, wide := range []float64{1.51, 1.7, 3, 100} {
			s := Between(low, wide*low)
			r := s.Within(1.5).Bytes()
			if 2*r.High > 3*r.Low {
				t.Fatalf("%v became %v, wider than 1.5", s, r)
			}
			if off := float64(r.Middle()) - s.Middle(); off < -2 || off > 2 {
				t.Fatalf("%v became %v, with another middle", s, r)
			}
		}
		if s := Between(low, 1.4*low); s.Within(1.5) != s {
			t.Fatalf("%v is narrow enough, and became %v", s, s.Within(1.5))
		}
	}
}
