package gate

import (
	"math"
	"math/rand/v2"
	"testing"

	"strandline/finding"
)

// levels are those after n waves of 1000 requests, with noise.
func levels(r *rand.Rand, n int, noise float64, f func(wave float64) float64) *Series {
	s := &Series{Metric: Host, Unit: Request, Process: "all processes"}
	for i := range n {
		s.At = append(s.At, 1000*float64(i+1))
		s.Bytes = append(s.Bytes, 200*mib+f(float64(i))+noise*r.NormFloat64())
	}
	return s
}

// TestJudgeWaves draws servers of each kind and counts the verdicts at the end of an
// experiment that stops as soon as the verdict is clear. With -v it prints the table.
func TestJudgeWaves(t *testing.T) {
	const runs, minWaves, maxWaves = 400, 5, 12
	const noise = 0.25 * mib
	exponential := func(tau float64) func(float64) float64 {
		return func(w float64) float64 { return 60 * mib * (1 - math.Exp(-w/tau)) }
	}
	for _, c := range []struct {
		name  string
		noise float64
		f     func(float64) float64
		want  finding.Verdict
	}{
		{"clean", noise, func(float64) float64 { return 0 }, finding.OK},
		{"clean, noisy", 4 * noise, func(float64) float64 { return 0 }, finding.OK},
		{"warms up", noise, func(w float64) float64 { return 8 * mib * min(w, 1) }, finding.OK},
		{"levels off after 0.5 waves", noise, exponential(0.5), finding.OK},
		{"levels off after 1 wave", noise, exponential(1), finding.OK},
		{"levels off after 2 waves", noise, exponential(2), ""},
		{"falls", noise, func(w float64) float64 { return -3 * mib * w }, finding.OK},
		{"a step", noise, func(w float64) float64 { return 30 * mib * math.Floor(w/3.5) / 2 * boolean(w < 7) }, ""},
		{"2 KiB a request", noise, func(w float64) float64 { return 2 * mib * w }, finding.Leaking},
		{"10 KiB a request", noise, func(w float64) float64 { return 10 * mib * w }, finding.Leaking},
		{"10 KiB a request, noisy", 4 * noise, func(w float64) float64 { return 10 * mib * w }, finding.Leaking},
		{"a cache, then 10 KiB a request", noise, func(w float64) float64 { return 60*mib*(1-math.Exp(-w)) + 10*mib*w }, finding.Leaking},
	} {
		got := map[finding.Verdict]int{}
		waves, inside := 0, 0
		for seed := range runs {
			r := rand.New(rand.NewPCG(uint64(seed), 7))
			s := levels(r, maxWaves, c.noise, c.f)
			var j Judgment
			n := minWaves
			for ; n <= maxWaves; n++ {
				part := *s
				part.At, part.Bytes = s.At[:n], s.Bytes[:n]
				if j = JudgeWaves(&part, Limits{}); j.Clear() {
					break
				}
			}
			waves += n
			got[j.Verdict]++
			if g := j.Growth; g.Low > g.Rate || g.Rate > g.High {
				t.Fatalf("%s %d: %+v", c.name, seed, g)
			}
			if truth := (c.f(maxWaves) - c.f(maxWaves-1)) / 1000; j.Growth.Low <= truth && truth <= j.Growth.High {
				inside++
			}
		}
		t.Logf("%-32s %v, after %.1f waves, truth inside the bounds in %d of %d", c.name, got, float64(waves)/runs, inside, runs)
		if c.want != "" && 100*got[c.want] < 99*runs {
			t.Errorf("%s: %d of %d are %s", c.name, got[c.want], runs, c.want)
		}
		if c.want == finding.OK && got[finding.Leaking]*200 > runs {
			t.Errorf("%s: %d of %d are called a leak", c.name, got[finding.Leaking], runs)
		}
	}
}

func boolean(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
