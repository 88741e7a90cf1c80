package samples

import (
	"math"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/sampling/sample"
)

// TestLoad holds a leak of 3 MiB a second against what an engine reports.
func TestLoad(t *testing.T) {
	n := func(x float64) *int64 { n := int64(x); return &n }
	steady := func(at float64) *sample.Load {
		return &sample.Load{Engine: "vllm", Running: n(7), Waiting: n(1), Requests: n(6 * at), PromptTokens: n(1000 * at), OutputTokens: n(500 * at)}
	}
	for _, c := range []struct {
		name              string
		load              func(at float64) *sample.Load
		perRequest, token float64 // bytes; 0 if it is not known
		severity          finding.Severity
		detail            string
	}{
		{"steady", steady, 0.5 * mib, 2 << 10, finding.Problem, "KiB for each finished request ("},
		{"the engine restarts", func(at float64) *sample.Load {
			if at >= 60 {
				at -= 60
			}
			return steady(at)
		}, 0.5 * mib, 2 << 10, finding.Problem, "KiB for each"},
		{"sometimes it does not answer", func(at float64) *sample.Load {
			if int(at)%3 == 0 {
				return &sample.Load{Note: "no answer"}
			}
			return steady(at)
		}, 0.5 * mib, 2 << 10, finding.Problem, "KiB for each"},
		{"requests alone", func(at float64) *sample.Load { return &sample.Load{Requests: n(3 * at)} }, mib, 0, finding.Problem, "MiB for each finished request"},
		{"idle", func(float64) *sample.Load { return steady(0) }, 0, 0, finding.Problem, "has finished no request lately"},
		{"busier", func(at float64) *sample.Load {
			l := steady(at)
			l.Running = n(at)
			return l
		}, 0.5 * mib, 2 << 10, finding.Warning, "requests in progress rose from 17 to 8"},
		{"not known", func(float64) *sample.Load { return &sample.Load{Note: "no answer"} }, 0, 0, finding.Problem, ""},
		{"not asked", func(float64) *sample.Load { return nil }, 0, 0, finding.Problem, ""},
		{"as it comes", func(at float64) *sample.Load { return &sample.Load{Requests: n(6*at + 4*math.Sin(7*at))} }, 0.5 * mib, 0, finding.Problem, "in 9 of 10 cases)"},
	} {
		w := New()
		for at := range 100 {
			s := made{anonymous: line(900, 3), file: constant(100), shared: constant(10)}.at(float64(at))
			s.Load = c.load(float64(at))
			w.Add(s)
		}
		out := w.Findings()
		if len(out) == 0 {
			t.Errorf("%s: nothing is found", c.name)
			continue
		}
		e := out[0].Evidence.(*finding.LevelsEvidence)
		text := strings.Join(out[0].Detail, "\n")
		if b := e.BytesPerRequestBounds; (b != nil) != (c.perRequest > 0) || b != nil && !(b[0] <= *e.BytesPerRequest && *e.BytesPerRequest <= b[1]) {
			t.Errorf("%s: %v is not between %v", c.name, e.BytesPerRequest, b)
		}
		if out[0].Severity != c.severity || !near(e.BytesPerRequest, c.perRequest) || !near(e.BytesPerToken, c.token) || !strings.Contains(text, c.detail) {
			t.Errorf("%s: %s, %v, %v: %s", c.name, out[0].Severity, e.BytesPerRequest, e.BytesPerToken, text)
		}
	}
}

func near(got *float64, want float64) bool {
	return got == nil && want == 0 || got != nil && math.Abs(*got-want) <= 0.1*want
}

// TestLoadIsBounded keeps a bounded number of points.
func TestLoadIsBounded(t *testing.T) {
	var l load
	for at := range 100_000 {
		n := int64(at)
		l.add(float64(at), &sample.Load{Requests: &n})
	}
	if n := len(l.times); n > maxPoints || n < maxPoints/2-1 {
		t.Errorf("%d points are kept", n)
	}
	if rate, ok := l.rate(0, l.requests); !ok || math.Abs(rate-1) > 0.01 {
		t.Errorf("the rate is %v, %v", rate, ok)
	}
}
