package check

import (
	"math"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/sampling/levels"
	"strandline/judge/gate"
)

// TestTraced judges programs over time that traced their allocations for most of it, on
// a machine so loaded that they also take long to end.
func TestTraced(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name  string
		level func(seconds float64) float64 // MiB
		want  finding.Verdict
	}{
		{"leak", func(s float64) float64 { return 8 * max(s-4, 0) }, finding.Leaking},
		{"cache that is full before", func(s float64) float64 { return 8 * min(max(s-4, 0), 3) }, finding.OK},
		{"constant", func(s float64) float64 { return 100 }, finding.OK},
	} {
		m := Measured{began: time.Unix(1_700_000_000, 0)}
		m.Samples.Processes = []levels.Process{{PID: 7, Command: "train"}}
		at := func(s float64) time.Time { return m.began.Add(time.Duration(s * float64(time.Second))) }
		m.traces = []interval{{at(7.9), at(16)}}
		for i := range 400 {
			s := float64(i) / 20
			level := c.level(s)
			if s > 7.9 && s < 16 {
				level += 50 // for the trace
			}
			if s > 19 { // it ends
				level *= math.Max(0.1, 19.5-s)
			}
			m.Samples.Samples = append(m.Samples.Samples, levels.Sample{At: at(s), Bytes: map[int]int64{0: int64(level*mib) + int64(i%3)*4096}})
		}
		s := m.ofTime()[0]
		j := gate.Judge(&s, gate.Limits{})
		if j.Verdict != c.want {
			t.Errorf("%s: %s, %s; %s", c.name, j.Verdict, j.Why, j.Growth)
		}
		if c.want == finding.Leaking && math.Abs(j.Growth.Rate/mib-8) > 0.4 {
			t.Errorf("%s: %s", c.name, j.Growth)
		}
		if end := s.At[len(s.At)-1]; end > 19 || end < 18.9 {
			t.Errorf("%s: judged until %g s", c.name, end)
		}
	}
}

// TestEndsTraced judges runs that were traced from a moment to their end. A few levels are left
// out. More stay: what grows by more than a trace takes is a leak, anything less is unknown.
func TestEndsTraced(t *testing.T) {
	for _, c := range []struct {
		name     string
		from     float64                       // seconds at which the trace begins, of 40
		level    func(seconds float64) float64 // MiB
		want     finding.Verdict
		measured bool // to the end
	}{
		{"leak", 2, func(s float64) float64 { return 100 + 8*s }, finding.Leaking, true},
		{"slow", 2, func(s float64) float64 { return 100 + s }, finding.Unknown, true},
		{"as fast before", 10, func(s float64) float64 { return 100 + s }, finding.Leaking, true},
		{"import and trace", 8, func(s float64) float64 { return 100 + 20*min(s, 8) + max(0, s-8) }, finding.Unknown, true},
		{"none", 2, func(float64) float64 { return 100 }, finding.OK, true},
		{"import", 8, func(s float64) float64 { return 100 + 20*min(s, 8) }, finding.OK, true},
		{"late", 38.5, func(s float64) float64 { return 100 + 8*s }, finding.Leaking, false},
	} {
		m := Measured{began: time.Unix(1_700_000_000, 0)}
		at := func(s float64) time.Time { return m.began.Add(time.Duration(s * float64(time.Second))) }
		m.traces = []interval{{begin: at(c.from)}}
		for i := range 400 {
			s := float64(i) / 10
			m.Samples.Samples = append(m.Samples.Samples, levels.Sample{At: at(s), Bytes: map[int]int64{0: int64(c.level(s)*(1<<20)) + int64(i%3)*4096}})
		}
		s := m.ofTime()[0]
		j := m.judge(&s, gate.Limits{})
		if j.Verdict != c.want || (s.At[len(s.At)-1] > c.from) != c.measured {
			t.Errorf("%s: %s, %s, until %g s", c.name, j.Verdict, j.Why, s.At[len(s.At)-1])
		}
	}
}
