package check

import (
	"strings"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/levels"
	"strandline/judge/gate"
	"strandline/record"
)

// run is one that lasted 20 seconds, in which its memory was at that level.
func run(level func(seconds float64) float64) *Run {
	r := &Run{Measured: Measured{began: time.Unix(1_700_000_000, 0), guessed: true}}
	r.Samples.Processes = []levels.Process{{PID: 7, Command: "train"}}
	for i := range 400 {
		s := float64(i) / 20
		at := r.began.Add(time.Duration(s * float64(time.Second)))
		r.Samples.Samples = append(r.Samples.Samples, levels.Sample{At: at, Bytes: map[int]int64{0: int64(level(s) * (1 << 20))}})
	}
	return r
}

// TestUnmeasured judges runs with a process that the recorder does not see: its device
// cannot be judged, and neither can growth over time, which may be that of an import.
func TestUnmeasured(t *testing.T) {
	both, host := Limits{gate.Host: {}, gate.Device: {}}, Limits{gate.Host: {}}
	constant := func(float64) float64 { return 100 }
	grows := func(s float64) float64 { return 10 * s }
	unseen := []record.Note{{PID: 7, Why: "python -I"}}
	for _, c := range []struct {
		name           string
		level          func(float64) float64
		limits         Limits
		unseen, others []record.Note
		asked          bool // for a judgment by time
		want           finding.Verdict
		missing        string
	}{
		{"seen", constant, both, nil, nil, false, finding.OK, ""},
		{"unseen", constant, both, unseen, nil, false, finding.Unknown, "the device memory of pid7 (train) was not measured"},
		{"driver", constant, both, nil, unseen, false, finding.Unknown, "python -I; --metric host judges"},
		{"unseen, host alone", constant, host, unseen, nil, false, finding.OK, ""},
		{"grows", grows, both, nil, unseen, false, finding.Leaking, ""},
		{"unseen, grows", grows, both, unseen, nil, false, finding.Unknown, "--steps-from time"},
		{"unseen, grows, host alone", grows, host, unseen, nil, false, finding.Unknown, "--steps-from time"},
		{"unseen, grows, by time", grows, both, unseen, nil, true, finding.Leaking, ""},
	} {
		r := run(c.level)
		r.unseen, r.others, r.guessed = c.unseen, c.others, !c.asked
		got := Judge(r, c.limits, nil)
		if missing := strings.Join(got.Missing, "\n"); got.Verdict != c.want || !strings.Contains(missing, c.missing) || c.missing == "" && missing != "" {
			t.Errorf("%s: %s, missing %q", c.name, got.Verdict, missing)
		}
		for _, f := range got.Findings {
			if f.Severity == finding.Problem && c.want != finding.Leaking {
				t.Errorf("%s: %s", c.name, f.Title)
			}
		}
	}
}
