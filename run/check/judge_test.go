package check

import (
	"strings"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/sampling/levels"
	"strandline/judge/gate"
	"strandline/plan/engine"
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

// TestLoads judges growth over time of processes that read: what may be loaded is no leak,
// unless judging by time was asked for.
func TestLoads(t *testing.T) {
	grows := func(s float64) float64 { return 10 * s }
	for _, c := range []struct {
		name  string
		read  func(seconds float64) float64 // MiB
		asked bool                          // for a judgment by time
		want  finding.Verdict
	}{
		{"nothing", func(float64) float64 { return 0 }, false, finding.Leaking},
		{"as much", func(s float64) float64 { return 10 * s }, false, finding.Unknown},
		{"as much, by time", func(s float64) float64 { return 10 * s }, true, finding.Leaking},
		{"a text", func(s float64) float64 { return s }, false, finding.Unknown},
		{"a log", func(s float64) float64 { return 0.1 * s }, false, finding.Leaking},
		{"much that is not kept", func(s float64) float64 { return 100 * s }, false, finding.Leaking},
		{"at first", func(s float64) float64 { return min(s, 8) * 10 }, false, finding.Leaking},
	} {
		r := run(grows)
		r.guessed = !c.asked
		for i := range r.Samples.Samples {
			s := &r.Samples.Samples[i]
			s.Read = int64(c.read(s.At.Sub(r.began).Seconds()) * (1 << 20))
		}
		got := Judge(r, Limits{gate.Host: {}}, nil)
		if got.Verdict != c.want || (len(got.Missing) > 0) != (c.want == finding.Unknown) {
			t.Errorf("%s: %s, missing %q", c.name, got.Verdict, got.Missing)
		}
		if f := got.Findings[0]; f.Confidence > 0.8 {
			t.Errorf("%s: confidence %g", c.name, f.Confidence)
		}
	}
}

// TestCaching doubts growth over time within the bound of a cache of prompts, and names the bound.
func TestCaching(t *testing.T) {
	for command, want := range map[string]finding.Verdict{
		"llama-server -m a.gguf":                finding.Unknown,
		"llama-server -m a.gguf --cache-ram 16": finding.Leaking,
		"python server.py":                      finding.Leaking,
	} {
		r := run(func(s float64) float64 { return 100 + 10*s })
		for i := range r.Samples.Processes {
			p := &r.Samples.Processes[i]
			p.Command, p.Caches = command, engine.CachesOf(strings.Fields(command), func(string) string { return "" })
		}
		got := Judge(r, Limits{gate.Host: {}}, nil)
		if got.Verdict != want || strings.Contains(strings.Join(got.Missing, " "), "cache-ram") != (want == finding.Unknown) {
			t.Errorf("%s: %s, missing %q", command, got.Verdict, got.Missing)
		}
	}
}

// TestHistory judges growth over time beside the history of a device, which takes some of it.
func TestHistory(t *testing.T) {
	both, host := Limits{gate.Host: {}, gate.Device: {}}, Limits{gate.Host: {}}
	device := &record.Manifest{Processes: []record.Process{{PID: 7, Devices: []record.Device{{}}, Dumps: []record.Dump{{}}}}}
	for _, c := range []struct {
		name     string
		rate     float64 // MiB a second
		limits   Limits
		manifest *record.Manifest
		leaks    bool
	}{
		{"slow", 0.6, both, device, false},
		{"fast", 10, both, device, true},
		{"slow, without a device", 0.6, both, nil, true},
		{"slow, host alone", 0.6, host, device, true},
	} {
		r := run(func(s float64) float64 { return 100 + c.rate*s })
		r.Manifest = c.manifest
		if got := Judge(r, c.limits, nil); (got.Verdict == finding.Leaking) != c.leaks {
			t.Errorf("%s: %s: %+v", c.name, got.Verdict, got.Findings)
		}
	}
}
