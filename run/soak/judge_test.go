package soak

import (
	"strings"
	"testing"

	"strandline/face/api"
	"strandline/finding"
	"strandline/judge/gate"
)

// TestDevices judges waves of a server with a device.
func TestDevices(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name            string
		used, allocated func(wave int64) int64 // MiB; nil if it is not known
		want            finding.Verdict
		title           string
	}{
		{"constant", func(int64) int64 { return 70_000 }, func(int64) int64 { return 60_000 }, finding.OK, ""},
		{"the driver's count grows", func(n int64) int64 { return 70_000 + 40*n }, nil, finding.Leaking, "device 1 of pid7 (vllm) grows by 410 KiB a request"},
		{"tensors grow in what is reserved", func(int64) int64 { return 70_000 }, func(n int64) int64 { return 60_000 + 40*n }, finding.Leaking, "device 1 of pid7 (vllm), tensors of PyTorch grows by 410 KiB a request"},
	} {
		e := experiment{doc: &api.Soak{}, o: Options{Limits: map[string]gate.Limits{gate.Host: {}, gate.Device: {}}}}
		for n := range int64(8) {
			d := api.SoakDevice{Device: 1, Bytes: c.used(n) * mib}
			if c.allocated != nil {
				bytes := c.allocated(n) * mib
				d.Allocated = &bytes
			}
			w := api.SoakWave{Wave: int(n), WarmUp: n < 2, HostBytes: new(int64(1 << 30)), Devices: []api.SoakDevice{d}}
			w.Processes = []api.SoakProcess{{PID: 7, Command: "vllm --serve", HostBytes: 1 << 30, Devices: w.Devices}}
			if n > 0 {
				w.Load = &api.SoakLoad{Completed: 100}
			}
			e.doc.Waves = append(e.doc.Waves, w)
		}
		all := e.judge()
		if got := gate.Verdict(all); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		titles := ""
		for i := range all {
			if all[i].Verdict == finding.Leaking {
				f := all[i].Finding()
				titles += f.Title
			}
		}
		if !strings.HasPrefix(titles, c.title) || c.title == "" && titles != "" {
			t.Errorf("%s: %q, want %q", c.name, titles, c.title)
		}
	}
}

// TestRestartedSeries leaves out what was before the server was started last, and waves
// that were hardly answered.
func TestRestartedSeries(t *testing.T) {
	e := experiment{doc: &api.Soak{}, life: 2}
	add := func(w api.SoakWave, completed int64) {
		w.Load = &api.SoakLoad{Completed: completed, OutputTokens: 4 * completed}
		e.doc.Waves = append(e.doc.Waves, w)
	}
	e.doc.Waves = append(e.doc.Waves, api.SoakWave{HostBytes: new(int64(1))})
	add(api.SoakWave{HostBytes: new(int64(1000))}, 100)
	add(api.SoakWave{HostBytes: new(int64(2)), Unjudged: true, Restarted: true}, 40)
	add(api.SoakWave{HostBytes: new(int64(10)), WarmUp: true}, 100)
	add(api.SoakWave{HostBytes: new(int64(20))}, 100)
	add(api.SoakWave{HostBytes: new(int64(25)), Unjudged: true}, 10)
	add(api.SoakWave{HostBytes: new(int64(30))}, 90)
	add(api.SoakWave{HostBytes: new(int64(33)), Repeats: 6}, 100)
	add(api.SoakWave{HostBytes: new(int64(43))}, 100)
	s, _ := e.series(gate.Host, nil, (*api.SoakWave).Host, true)
	at, bytes := []float64{140, 240, 340, 440}, []float64{13, 23, 33, 43}
	for i := range at {
		if len(s.At) != len(at) || s.At[i] != at[i] || s.Bytes[i] != bytes[i] {
			t.Fatalf("%v at %v, want %v at %v", s.Bytes, s.At, bytes, at)
		}
	}
	if rate, sent := e.repeated((*api.SoakWave).Host); !sent || rate != 0.03 {
		t.Errorf("requests that were sent again add %g, %v", rate, sent)
	}
}

// TestStaying judges a server whose children come and go by much of its memory: a leak of
// those that stay is found, and if they do not leak, the verdict states what is missing.
func TestStaying(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		leak int64 // of a wave, MiB
		want finding.Verdict
		text string
	}{
		{"leak", 10, finding.Leaking, "host memory of pid7 (server) alone grows by 102 KiB a request"},
		{"clean", 0, finding.Unknown, "processes that come and go hold 40 MiB to 330 MiB of it. Let the server keep its workers"},
	} {
		e := experiment{doc: &api.Soak{}, o: Options{Limits: map[string]gate.Limits{gate.Host: {}}}}
		for n, child := range []int64{0, 90, 330, 40, 250, 60, 300, 50} {
			w := api.SoakWave{Wave: n, WarmUp: n < 2, Processes: []api.SoakProcess{{PID: 7, Command: "server", HostBytes: (200 + c.leak*int64(n)) * mib}}}
			if n > 0 {
				w.Load = &api.SoakLoad{Completed: 100}
				w.Processes = append(w.Processes, api.SoakProcess{PID: 100 + n, HostBytes: child * mib})
			}
			w.HostBytes = new(w.Processes[0].HostBytes + child*mib)
			e.doc.Waves = append(e.doc.Waves, w)
		}
		all := e.judge()
		texts := ""
		for i := range all {
			f := all[i].Finding()
			texts += f.Title + " " + all[i].Why + "\n"
		}
		if got := gate.Verdict(all); len(all) != 2 || got != c.want || !strings.Contains(texts, c.text) {
			t.Errorf("%s: %s, want %s with %q:\n%s", c.name, got, c.want, c.text, texts)
		}
	}
}

// TestElsewhere takes back that nothing leaks where others may answer the requests.
func TestElsewhere(t *testing.T) {
	for _, c := range []struct {
		name          string
		given         int
		forwarding    bool
		note          string
		verdict, want finding.Verdict
	}{
		{"alone", 0, false, "", finding.OK, finding.OK},
		{"a proxy", 0, true, "", finding.OK, finding.Unknown},
		{"a proxy that was given", 7, true, "", finding.OK, finding.OK},
		{"a proxy that leaks", 0, true, "", finding.Leaking, finding.Leaking},
		{"one of several that share the port", 0, false, "3 processes share it", finding.OK, finding.Unknown},
	} {
		e := experiment{o: Options{PID: c.given}, server: &server{note: c.note}, forwarding: c.forwarding, doc: &api.Soak{Verdict: c.verdict, Stopped: true}}
		e.elsewhere()
		back := c.want != c.verdict
		if d := e.doc; d.Verdict != c.want || (len(d.Missing) == 1) != back || d.Stopped == back {
			t.Errorf("%s: %s, want %s, missing %q", c.name, d.Verdict, c.want, d.Missing)
		}
	}
}
