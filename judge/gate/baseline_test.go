package gate

import (
	"testing"

	"strandline/finding"
)

// TestDrift adds 3 % a change: each is small, and together they are caught by the tenth
// change, also where the baseline is updated each time.
func TestDrift(t *testing.T) {
	for _, updates := range []bool{false, true} {
		for _, runs := range []int{1, 3} {
			m, value := &Measure{}, float64(500<<20)
			for range runs {
				m.Update(int64(value))
			}
			caught := 0
			for change := 1; change <= 10 && caught == 0; change++ {
				value *= 1.03
				if f := m.Against("the peak", int64(value)); f != nil && f.Severity == finding.Problem {
					caught = change
				}
				if updates && caught == 0 {
					m.Update(int64(value))
				}
			}
			if caught == 0 {
				t.Errorf("updates %v, %d runs: not caught by the tenth change; baseline %+v", updates, runs, m)
			}
		}
	}
}

func TestMeasure(t *testing.T) {
	m := &Measure{}
	if !m.Update(100<<20) || m.Update(102<<20) || m.Update(101<<20) || m.Update(103<<20) {
		t.Error("a measurement within the noise changed the baseline")
	}
	if m.Bytes != 101<<20 || len(m.Runs) != 3 {
		t.Errorf("%+v", m)
	}
	if f := m.Against("peak", 104<<20); f != nil {
		t.Errorf("within the noise: %+v", f)
	}
	if f := m.Against("peak", 120<<20); f == nil || f.Severity != finding.Problem {
		t.Errorf("above: %+v", f)
	}
	if f := m.Against("peak", 50<<20); f == nil || f.Severity != finding.Info {
		t.Errorf("below: %+v", f)
	}
	if !m.Update(120<<20) || m.Bytes != 120<<20 || len(m.Runs) != 1 {
		t.Errorf("accepted: %+v", m)
	}
}
