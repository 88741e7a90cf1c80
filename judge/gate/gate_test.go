package gate

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"strandline/finding"
)

const mib = 1 << 20

// steps is a series of n steps whose levels f makes, with noise of some pages.
func steps(n int, f func(i float64) float64) *Series {
	r := rand.New(rand.NewPCG(1, 2))
	s := &Series{Metric: Host, Unit: Step, Process: "pid1 (train)"}
	for i := range n {
		s.At = append(s.At, float64(i+1))
		s.Bytes = append(s.Bytes, 100*mib+f(float64(i))+40000*r.Float64())
	}
	return s
}

func TestJudge(t *testing.T) {
	leak := func(i float64) float64 { return 65536 * i }
	// with is a series of which so much is in use.
	with := func(s *Series, f func(i float64) float64) *Series {
		s.InUse = steps(len(s.At), f).Bytes
		return s
	}
	flat := func(float64) float64 { return 0 }
	noisy := steps(200, flat)
	for i := range noisy.Bytes {
		noisy.Bytes[i] += 4 * mib * math.Abs(math.Sin(float64(i*i))) // of pieces that do not fit
	}
	growth := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		name   string
		series *Series
		limits Limits
		want   finding.Verdict
		why    string
	}{
		{"leak", steps(200, leak), Limits{}, finding.Leaking, "keeps growing"},
		{"in use, behind noise", with(noisy, leak), Limits{}, finding.Leaking, "in use"},
		{"kept by the allocator", with(steps(200, func(i float64) float64 { return 40000 * i }), flat), Limits{}, finding.Unknown, "twice as long"},
		{"much kept by the allocator", with(steps(200, func(i float64) float64 { return 300000 * i }), flat), Limits{}, finding.Leaking, ""},
		{"flat", steps(200, flat), Limits{}, finding.OK, ""},
		{"warm-up", steps(200, func(i float64) float64 { return 50 * mib * (1 - math.Exp(-i/10)) }), Limits{}, finding.OK, ""},
		{"slow warm-up", steps(200, func(i float64) float64 { return 50 * mib * (1 - math.Exp(-i/30)) }), Limits{}, finding.OK, ""},
		{"a tooth and a half", steps(60, func(i float64) float64 { return math.Mod(i, 39) * mib / 3 }), Limits{}, finding.Unknown, "level off"},
		{"cache", steps(200, func(i float64) float64 { return min(i, 60) * mib }), Limits{}, finding.OK, "levels off"},
		{"sawtooth", steps(200, func(i float64) float64 { return math.Mod(i, 17) * mib }), Limits{}, finding.OK, ""},
		{"garbage that is collected more and more rarely", steps(200, func(i float64) float64 { return math.Mod(i-math.Pow(2, math.Floor(math.Log2(i+1)))+1, 200) * mib / 2 }), Limits{}, finding.Unknown, "level off"},
		{"a leak behind it", steps(200, func(i float64) float64 { return i*mib + (i-math.Pow(2, math.Floor(math.Log2(i+1)))+1)*mib/2 }), Limits{}, finding.Leaking, ""},
		{"a page a step", steps(200, func(i float64) float64 { return 4096 * i }), Limits{}, finding.OK, "without a leak"},
		{"a late leak", steps(200, func(i float64) float64 { return max(i-150, 0) * mib }), Limits{}, finding.Unknown, "began to grow near the end, and grew by 4"},
		{"a late leak that is in use", with(steps(200, func(i float64) float64 { return max(i-180, 0) * mib }), func(i float64) float64 { return max(i-180, 0) * mib }), Limits{}, finding.Unknown, "near the end"},
		{"a late leak that is allowed", steps(200, func(i float64) float64 { return max(i-150, 0) * mib }), Limits{Growth: growth(8 * mib)}, finding.OK, "less than is allowed"},
		{"kept by the allocator at last", with(steps(200, func(i float64) float64 { return max(i-180, 0) * mib }), flat), Limits{}, finding.OK, ""},
		{"a leak in a short run", steps(40, leak), Limits{}, finding.Unknown, "run 6"},
		{"few steps", steps(12, leak), Limits{}, finding.Unknown, "12 samples"},
		{"few after the warm-up", steps(100, leak), Limits{WarmUp: 90}, finding.Unknown, "10 samples"},
		{"only warm-up", steps(100, leak), Limits{WarmUp: 900}, finding.Unknown, "0 samples"},
		{"none", &Series{Metric: Host, Unit: Second}, Limits{}, finding.Unknown, "0 samples"},
		{"allowed", steps(200, leak), Limits{Growth: growth(mib)}, finding.OK, "no more than is allowed"},
		{"not allowed", steps(200, leak), Limits{Growth: growth(1000)}, finding.Leaking, ""},
		{"about what is allowed", steps(200, leak), Limits{Growth: growth(65540)}, finding.Unknown, "more or less"},
		{"device", &Series{Metric: Device, Unit: Step, At: steps(50, leak).At, Bytes: ramp(50, 512)}, Limits{}, finding.Leaking, ""},
	} {
		j := Judge(c.series, c.limits)
		if j.Verdict != c.want || !strings.Contains(j.Why, c.why) {
			t.Errorf("%s: %s because %q, course %+v; want %s because %q", c.name, j.Verdict, j.Why, j.Course, c.want, c.why)
		}
		if f := j.Finding(); f.Title == "" || (f.Severity == finding.Problem) != (c.want == finding.Leaking) {
			t.Errorf("%s: finding %+v", c.name, f)
		}
	}
}

// TestWarmUp judges programs that load less and less as they run, with a leak and
// without. The growth of one with a leak is what goes on, not what it loaded.
func TestWarmUp(t *testing.T) {
	for _, leak := range []float64{65536, 0} {
		leaks, later := 0, 0
		for seed := range uint64(40) {
			r := rand.New(rand.NewPCG(seed, 3))
			tau, sum := 5+25*r.Float64(), 0.0
			var loaded []float64
			for i := range 200 {
				if r.Float64() < math.Exp(-float64(i)/tau) {
					sum += 5 * mib * r.Float64()
				}
				loaded = append(loaded, sum)
			}
			j := Judge(steps(200, func(i float64) float64 { return loaded[int(i)] + leak*i }), Limits{})
			if j.Verdict == finding.Leaking {
				leaks++
			}
			if j.Verdict == finding.Leaking && j.Course.Samples == 100 {
				later++
				if j.Growth.Low > leak || j.Growth.High < leak {
					t.Errorf("seed %d: %s", seed, j.Growth)
				}
			}
		}
		if leak > 0 && (leaks < 38 || later == 0) || leak == 0 && leaks > 0 {
			t.Errorf("%g bytes a step: %d leaks of 40, of which %d are seen in the later half", leak, leaks, later)
		}
	}
}

func ramp(n int, by float64) (out []float64) {
	for i := range n {
		out = append(out, by*float64(i))
	}
	return out
}

func TestVerdict(t *testing.T) {
	ok, leak, unknown := Judgment{Verdict: finding.OK}, Judgment{Verdict: finding.Leaking}, Judgment{Verdict: finding.Unknown}
	for _, c := range []struct {
		all  []Judgment
		want finding.Verdict
	}{
		{nil, finding.Unknown}, {[]Judgment{ok}, finding.OK}, {[]Judgment{ok, unknown}, finding.Unknown}, {[]Judgment{unknown, leak, ok}, finding.Leaking},
	} {
		if got := Verdict(c.all); got != c.want {
			t.Errorf("%v: %s, want %s", c.all, got, c.want)
		}
	}
}
