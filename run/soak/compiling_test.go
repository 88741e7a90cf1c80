package soak

import (
	"strings"
	"testing"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/judge/gate"
)

// TestCompiling doubts a leak beside which compiled code grows, by enough of it.
func TestCompiling(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		code float64 // of what a wave adds
		want finding.Verdict
	}{{"kernels for new shapes", 0.1, finding.Unknown}, {"hardly any", 0.02, finding.Leaking}, {"none", 0, finding.Leaking}} {
		e := experiment{doc: &api.Soak{}, o: Options{Limits: map[string]gate.Limits{gate.Host: {}}}}
		for n := range 8 {
			w := api.SoakWave{Wave: n, WarmUp: n < 2, HostBytes: new(int64(200+10*n) * mib), Processes: []api.SoakProcess{{PID: 7, HostBytes: int64(200+10*n) * mib}, {PID: 9, HostBytes: 100 * mib}}}
			if n > 0 {
				w.Load = &api.SoakLoad{Completed: 100}
			}
			e.doc.Waves, e.code = append(e.doc.Waves, w), append(e.code, int64(c.code*float64(10*n)*mib))
		}
		all := e.judge()
		if len(all) != 1 || all[0].Verdict != c.want || strings.Contains(all[0].Why, "compiles") != (c.want == finding.Unknown) {
			t.Errorf("%s: %+v, want %s", c.name, all, c.want)
		}
	}
}

// TestCaching doubts a leak that is within the bound of a cache of prompts, and names the bound.
func TestCaching(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		command string
		pid     int
		want    finding.Verdict
	}{
		{"llama-server -m a.gguf", 7, finding.Unknown},
		{"llama-server -m a.gguf --cache-ram 16", 7, finding.Leaking},
		{"llama-server -m a.gguf --cache-ram 0", 7, finding.Leaking},
		{"llama-server -m a.gguf", 8, finding.Leaking}, // it has ended
		{"llama-server -m a.gguf", 9, finding.Leaking}, // another one grows
		{"python server.py", 7, finding.Leaking},
	} {
		e := experiment{doc: &api.Soak{}, o: Options{Limits: map[string]gate.Limits{gate.Host: {}}}, caches: []sample.Process{{PID: c.pid, Command: c.command}}}
		for n := range 8 {
			w := api.SoakWave{Wave: n, WarmUp: n < 2, HostBytes: new(int64(200+10*n) * mib), Processes: []api.SoakProcess{{PID: 7, HostBytes: int64(200+10*n) * mib}, {PID: 9, HostBytes: 100 * mib}}}
			if n > 0 {
				w.Load = &api.SoakLoad{Completed: 100}
			}
			e.doc.Waves, e.code = append(e.doc.Waves, w), append(e.code, 0)
		}
		all := e.judge()
		if len(all) != 1 || all[0].Verdict != c.want || strings.Contains(all[0].Why, "cache-ram") != (c.want == finding.Unknown) {
			t.Errorf("%s: %+v, want %s", c.command, all, c.want)
		}
	}
}
