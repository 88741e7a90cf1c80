package samples

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/sampling/sample"
)

const mib = 1 << 20

// a level of a made-up process at a time in seconds, MiB
type level func(t float64) float64

func constant(x float64) level    { return func(float64) float64 { return x } }
func line(x, rate float64) level  { return func(t float64) float64 { return x + rate*t } }
func fills(x, more float64) level { return func(t float64) float64 { return x + more*min(t/60, 1) } }
func bytesOf(x float64) *int64    { n := int64(x * mib); return &n }
func noisy(l level, by float64) level {
	r := rand.New(rand.NewPCG(1, 2))
	return func(t float64) float64 { return l(t) + by*r.NormFloat64() }
}

// made is a process of which each figure follows a curve; nil is one that is not known.
type made struct {
	anonymous, file, shared, allocated, cached, other level
	outside                                           bool
}

func (m made) at(t float64) *sample.Sample {
	p := sample.Process{PID: 4242, Started: 1, Name: "python", Group: "/jobs", Devices: []sample.DeviceShare{}, Outside: m.outside}
	if m.anonymous != nil {
		p.Host = &sample.Host{Anonymous: *bytesOf(m.anonymous(t)), File: *bytesOf(m.file(t)), Shared: *bytesOf(m.shared(t))}
	}
	s := &sample.Sample{Seconds: t, Groups: []sample.Group{{Name: "/jobs", Used: bytesOf(2000), Limit: bytesOf(8000)}}, Machine: &sample.Machine{Total: 64 << 30, Available: 32 << 30}}
	if m.other != nil {
		d := sample.DeviceShare{Device: 0, Used: bytesOf(m.other(t))}
		if m.allocated != nil {
			d.Allocated, d.Cached, d.Other = bytesOf(m.allocated(t)), bytesOf(m.cached(t)), bytesOf(m.other(t))
			d.Used = bytesOf(m.allocated(t) + m.cached(t) + m.other(t))
		}
		p.Devices = append(p.Devices, d)
		s.Devices = []sample.Device{{Used: d.Used, Free: bytesOf(1000), Total: bytesOf(81920)}}
	}
	s.Processes = []sample.Process{p}
	return s
}

func watched(m made, seconds int) *Watch {
	w := New()
	for t := range seconds {
		w.Add(m.at(float64(t)))
	}
	return w
}

func TestFindings(t *testing.T) {
	quiet := made{anonymous: noisy(constant(900), 0.1), file: constant(100), shared: constant(10)}
	device := func(allocated, cached, other level) made {
		m := quiet
		m.allocated, m.cached, m.other = allocated, cached, other
		return m
	}
	host := func(change func(*made)) made {
		m := quiet
		change(&m)
		return m
	}
	for _, c := range []struct {
		name     string
		process  made
		kind     finding.Kind // of the first; empty if there is none
		severity finding.Severity
		remedy   string
		detail   string
	}{
		{"nothing grows", device(constant(500), constant(100), constant(400)), "", "", "", ""},
		{"tensors", device(line(500, 2), constant(100), constant(400)), finding.Leak, finding.Problem, "strandline snapshot --pid 4242", "device 0"},
		{"tensors of a process without a recorder", host(func(m *made) {
			m.allocated, m.cached, m.other, m.outside = line(500, 2), constant(100), constant(400), true
		}), finding.Leak, finding.Problem, "strandline record --pid 4242 --duration 60s", "device 0"},
		{"the cache fills", device(constant(500), fills(10, 800), constant(400)), finding.Usage, finding.Info, "empty_cache", "not a leak"},
		{"fragmentation", device(noisy(constant(500), 0.2), line(10, 3), constant(400)), finding.Fragmentation, finding.Problem, "expandable_segments", "reserved memory grows while"},
		{"outside PyTorch", device(constant(500), constant(100), line(400, 2)), finding.Leak, finding.Problem, "strandline trace --gpu --pid 4242", "not PyTorch's allocator"},
		{"a device without a recorder", made{anonymous: quiet.anonymous, file: quiet.file, shared: quiet.shared, other: line(400, 2)}, finding.Leak, finding.Problem, "strandline trace --gpu --pid 4242", "the growing part"},
		{"the heap", host(func(m *made) { m.anonymous = line(900, 3) }), finding.Leak, finding.Problem, "strandline trace --pid 4242", "control group"},
		{"shared memory", host(func(m *made) { m.shared = line(900, 3) }), finding.Leak, finding.Problem, "strandline trace --pid 4242", "/dev/shm"},
		{"files", host(func(m *made) { m.file = line(900, 3) }), finding.FileMapping, finding.Info, "", "not a leak"},
	} {
		out := watched(c.process, 100).Findings()
		if c.kind == "" {
			if len(out) > 0 {
				t.Errorf("%s: %s", c.name, out[0].Title)
			}
			continue
		}
		if len(out) != 1 {
			t.Errorf("%s: %d findings: %+v", c.name, len(out), out)
			continue
		}
		f := out[0]
		var remedies strings.Builder
		for _, r := range f.Remedies {
			remedies.WriteString(r.Setting + r.Text)
		}
		if f.Kind != c.kind || f.Severity != c.severity || !strings.Contains(remedies.String(), c.remedy) || !strings.Contains(strings.Join(f.Detail, " "), c.detail) {
			t.Errorf("%s: %s %s %q %q %+v", c.name, f.Severity, f.Kind, f.Title, f.Detail, f.Remedies)
		}
	}
}

// TestTimeToLimit checks that the nearer limit is named, and the truth lies between the
// bounds.
func TestTimeToLimit(t *testing.T) {
	m := made{anonymous: line(900, 3), file: constant(1), shared: constant(1)}
	f := watched(m, 200).Findings()[0]
	e := f.Evidence.(*finding.LevelsEvidence)
	const truth = (8000 - 2000) / 3.0 // of the group, which has less left than the machine
	if e.SecondsToLimit == nil || *e.SecondsToLimit[0] > truth || *e.SecondsToLimit[1] == 0 || *e.SecondsToLimit[1] < truth {
		t.Errorf("%v; the truth is %v", e.SecondsToLimit, truth)
	}
}

func TestEndedAndAgain(t *testing.T) {
	w := watched(made{anonymous: line(900, 3), file: constant(1), shared: constant(1)}, 150)
	s := made{anonymous: constant(5), file: constant(1), shared: constant(1)}.at(150)
	s.Processes[0].Started = 2 // the number was given to another one
	w.Add(s)
	out := w.Findings()
	if len(out) != 1 || out[0].Severity != finding.Problem || !strings.Contains(strings.Join(out[0].Detail, " "), "it has ended") {
		t.Errorf("%+v", out)
	}
	for k := range w.series {
		if k.process.Started == 1 {
			t.Errorf("%v is kept", k)
		}
	}
}

// TestLimitNotKnown checks that the end of the machine is not stated alone where a control
// group may end sooner.
func TestLimitNotKnown(t *testing.T) {
	m := made{anonymous: line(900, 2), file: constant(100), shared: constant(10)}
	w := New()
	for n := range 60 {
		s := m.at(float64(n))
		s.Groups = []sample.Group{{Name: "/jobs", Note: "its files cannot be seen"}}
		w.Add(s)
	}
	all := w.Findings()
	if len(all) != 1 || !strings.Contains(strings.Join(all[0].Detail, "\n"), "its control group /jobs has a limit, which may be reached sooner, is not known: its files") {
		t.Errorf("%+v", all)
	}
}

// TestRayKills checks that the end is where Ray kills a worker, before the kernel does.
func TestRayKills(t *testing.T) {
	m, share := made{anonymous: line(900, 2), file: constant(100), shared: constant(10)}, 0.5
	for _, c := range []struct{ limit, want string }{
		{"group", "50% of its control group's 7.81 GiB, from which Ray kills its workers and of which 1.95 GiB is left,"},
		{"machine", "50% of the machine's 64 GiB, from which Ray kills its workers and of which 0 B is left,"},
	} {
		w := New()
		for n := range 60 {
			s := m.at(float64(n))
			s.Processes[0].RayKills = &share
			if c.limit == "machine" {
				s.Groups = nil
			} else {
				s.Machine.Available = 64 << 30
			}
			w.Add(s)
		}
		all := w.Findings()
		if len(all) != 1 || !strings.Contains(strings.Join(all[0].Detail, "\n"), c.want) {
			t.Errorf("%s: %+v", c.limit, all)
		}
	}
}

func TestLimitsAndUnowned(t *testing.T) {
	w := New()
	for i := range 60 {
		s := made{anonymous: constant(900), file: constant(1), shared: constant(1), other: constant(100)}.at(float64(i))
		s.Groups[0].Used = bytesOf(7700 + float64(i)) // by files in memory
		s.Devices[0].Unowned = bytesOf(512)
		s.Devices[0].Processes = []sample.Holding{{PID: 99, Used: bytesOf(512), Owner: sample.Gone}}
		w.Add(s)
	}
	var titles []string
	for _, f := range w.Findings() {
		text := string(f.Severity) + " " + f.Title + " " + strings.Join(f.Detail, " ")
		for _, r := range f.Remedies {
			text += " " + r.Text
		}
		titles = append(titles, text)
	}
	got := strings.Join(titles, "\n")
	for _, want := range []string{"problem the control group /jobs keeps growing", "du -ah /dev/shm", "warning the control group /jobs has 241 MiB left", "warning 512 MiB of device 0 is not held by any live process", "pid 99"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// TestKilled checks that a kill by the kernel is reported, of a process among others and of
// the one that is watched, and that the growth before it is not taken for that of a job.
func TestKilled(t *testing.T) {
	grows := made{anonymous: line(100, 3), file: constant(1), shared: constant(1)}
	for _, last := range []bool{false, true} {
		w := New()
		group := func(kills int64) []sample.Group {
			return []sample.Group{{Name: "/jobs", Used: bytesOf(199), Limit: bytesOf(200), Kills: &kills}}
		}
		for at := range 40 {
			s := grows.at(float64(at))
			age := float64(at)
			s.Processes[0].Age, s.Groups = &age, group(3)
			w.Add(s)
		}
		if last {
			w.Add(&sample.Sample{Over: group(4)})
		} else {
			w.Add(&sample.Sample{Seconds: 40, Groups: group(4)})
		}
		var out []string
		for _, f := range w.Findings() {
			out = append(out, string(f.Severity)+" "+f.Title+": "+strings.Join(f.Detail, "; "))
		}
		text := strings.Join(out, "\n")
		for _, want := range []string{
			"problem the kernel killed 1 process of the control group /jobs: its limit of 200 MiB was reached: pid 4242 (python), which has ended, had 219 MiB in memory at the sample before",
			"problem anonymous memory on the host of pid 4242 (python) keeps growing", "it has ended; when it runs again",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("last %v: no %q in\n%s", last, want, text)
			}
		}
	}
}

// TestVerdict: what keeps growing is never headed OK.
func TestVerdict(t *testing.T) {
	grows := &finding.LevelsEvidence{Verdict: "growth"}
	warning := finding.Finding{Kind: finding.Leak, Severity: finding.Warning, Evidence: grows}
	leak := finding.Finding{Kind: finding.Leak, Severity: finding.Problem, Evidence: grows}
	kill := finding.Finding{Kind: finding.OutOfMemory, Severity: finding.Problem}
	shm := finding.Finding{Kind: finding.SharedMemory, Severity: finding.Problem, Evidence: grows}
	for _, c := range []struct {
		found   []finding.Finding
		samples int
		want    finding.Verdict
	}{
		{nil, 100, finding.OK},
		{nil, 5, finding.Unknown},
		{[]finding.Finding{warning}, 100, finding.Unknown},
		{[]finding.Finding{{Kind: finding.Usage, Severity: finding.Warning}}, 100, finding.OK},
		{[]finding.Finding{warning, leak}, 5, finding.Leaking},
		{[]finding.Finding{shm}, 100, finding.Leaking},
		{[]finding.Finding{leak, kill, warning}, 100, finding.RanOut},
	} {
		if got := Verdict(c.found, c.samples); got != c.want {
			t.Errorf("%+v, %d samples: %s, want %s", c.found, c.samples, got, c.want)
		}
	}
}

// TestBounded checks that a series of a long watch is no longer than that of a short
// one, and still shows its whole time.
func TestBounded(t *testing.T) {
	var s series
	for i := range 20_000 {
		s.add(float64(i), int64(i)*mib)
	}
	if n := len(s.times); n > maxPoints || n < maxPoints/2-1 {
		t.Errorf("%d points", n)
	}
	if first, last := s.times[0], s.times[len(s.times)-1]; first > 200 || last < 19_800 {
		t.Errorf("from %v to %v", first, last)
	}
	if s.judge(); !s.course.Leaks() {
		t.Errorf("judged %s", s.course.Shape)
	}
}

// TestCurrent checks that what is found while the watch runs is what is found at its
// end.
func TestCurrent(t *testing.T) {
	w := watched(made{anonymous: line(900, 3), file: constant(1), shared: constant(1)}, 100)
	now := w.Current()
	if len(now) != 1 || now[0].Severity != finding.Problem {
		t.Errorf("%+v", now)
	}
	again := w.Current()
	if len(again) != 1 || again[0].Evidence != now[0].Evidence {
		t.Error("without another sample, it is found again")
	}
	e := again[0].Evidence.(*finding.LevelsEvidence)
	rate, seconds := *e.RatePerSecond, *e.Seconds
	flat := made{anonymous: constant(1200), file: constant(1), shared: constant(1)}
	for t := 100; t < 1000; t++ {
		w.Add(flat.at(float64(t)))
	}
	if now = w.Current(); len(now) != 1 || now[0].Severity == finding.Problem {
		t.Errorf("it no longer grows: %+v", now)
	}
	if *e.RatePerSecond != rate || *e.Seconds != seconds {
		t.Errorf("an earlier finding changed: %v over %v, was %v over %v", *e.RatePerSecond, *e.Seconds, rate, seconds)
	}
}

// TestYoung judges curves of processes of some age as they are after some time.
func TestYoung(t *testing.T) {
	then := func(l level, until float64, rate float64) level {
		return func(t float64) float64 { return l(min(t, until)) + rate*max(t-until, 0) }
	}
	slowing := func(t float64) float64 { return 100 + 200*math.Log1p(t) }
	waves := func(t float64) float64 { return 100 + 20*t + 60*math.Sin(0.7*t) }
	for _, c := range []struct {
		name    string
		age     float64 // at first, seconds; below 0 if it is not known
		level   level
		read    float64 // share of the growth
		seconds float64
		over    bool
		want    finding.Severity
		detail  string
	}{
		{"a start", 0, line(10, 50), 0, 2, false, finding.Warning, "--duration 10s"},
		{"a start that goes on", 0, line(10, 50), 0, 5, false, finding.Warning, "--duration 10s"},
		{"a line", 0, line(10, 10), 0, 10, false, finding.Problem, ""},
		{"a line after imports", 0, then(line(10, 100), 1, 10), 0, 15, false, finding.Problem, ""},
		{"a line of unknown age", -1, line(10, 10), 0, 10, false, finding.Problem, ""},
		{"a curve", 0, slowing, 0, 20, false, finding.Warning, "does not grow steadily"},
		{"waves", 0, waves, 0, 30, false, finding.Warning, "does not grow steadily"},
		{"waves of unknown age", -1, waves, 0, 30, false, finding.Warning, "not known"},
		{"a load", 0, line(10, 100), 1, 30, false, finding.Warning, "as when loading"},
		{"a load of an older one", 300, line(10, 100), 1, 30, false, finding.Problem, ""},
		{"a job", 0, line(10, 10), 0, 30, true, finding.Warning, "soon after its start"},
		{"a server that ends", 300, line(10, 10), 0, 30, true, finding.Problem, ""},
		{"a server for a moment", 300, line(10, 10), 0, 3, false, finding.Warning, "--duration 5s"},
		{"a server", 300, line(10, 10), 0, 5, false, finding.Problem, ""},
		{"waves of a server", 300, waves, 0, 20, false, finding.Warning, "does not grow steadily"},
		{"a cache", 0, then(line(10, 50), 8, 0), 0, 12, false, finding.Info, "does not grow any more"},
	} {
		w := New()
		for at := 0.0; at <= c.seconds; at += 0.125 {
			s := made{anonymous: c.level, file: constant(1), shared: constant(1)}.at(at)
			p := &s.Processes[0]
			if c.age >= 0 {
				p.Age = &c.age
			}
			p.Read = bytesOf(50 + c.read*(c.level(at)-c.level(0)))
			w.Add(s)
		}
		if c.over {
			w.Add(&sample.Sample{Over: []sample.Group{}})
		}
		out := w.Findings()
		if len(out) != 1 || out[0].Severity != c.want || !strings.Contains(strings.Join(out[0].Detail, " "), c.detail) {
			t.Errorf("%s: %+v", c.name, out)
		}
	}
}

// TestGroupForAMoment checks that a group that grows for a moment is not a problem, whether
// or not a process of it may leak.
func TestGroupForAMoment(t *testing.T) {
	for _, l := range []level{constant(900), line(900, 30)} {
		w := New()
		for at := range 20 {
			s := made{anonymous: l, file: constant(1), shared: constant(1)}.at(float64(at) / 4)
			s.Groups[0].Used = bytesOf(2000 + 30*float64(at))
			w.Add(s)
		}
		for _, f := range w.Findings() {
			if f.Severity == finding.Problem {
				t.Errorf("%s %q", f.Title, f.Detail)
			}
		}
	}
}

func TestClassesOfGrowth(t *testing.T) {
	p := &sample.Process{PID: 7, Grown: &sample.Growth{Seconds: 30, Classes: []sample.Class{
		{Class: string(finding.KernelMemory), Bytes: 900 << 20}, {Class: string(finding.MemoryFiles), Bytes: 700 << 20}, {Class: string(finding.PythonObjects), Bytes: 12 << 20},
	}}}
	var f finding.Finding
	classes(&f, p)
	want := "by its mappings, these came within 30 s: 700 MiB in unnamed files in memory (memfd, or removed from /dev/shm); 12 MiB in use by Python objects"
	if len(f.Detail) != 1 || f.Detail[0] != want || len(f.Remedies) != 1 || !strings.Contains(f.Remedies[0].Text, "close the files") {
		t.Errorf("%q, %+v", f.Detail, f.Remedies)
	}
	f = finding.Finding{}
	classes(&f, &sample.Process{PID: 7, Grown: &sample.Growth{}})
	if classes(&f, &sample.Process{PID: 7}); f.Detail != nil || f.Remedies != nil {
		t.Errorf("nothing is known: %+v", f)
	}
}

// BenchmarkCurrent is what a watch of 200 growing processes finds with each sample.
func BenchmarkCurrent(b *testing.B) {
	w := New()
	growing := made{anonymous: noisy(line(900, 3), 2), file: constant(1), shared: constant(1)}
	add := func(t int) {
		s := growing.at(float64(t))
		for pid := range 200 {
			p := s.Processes[0]
			p.PID += 1 + pid
			s.Processes = append(s.Processes, p)
		}
		w.Add(s)
	}
	const since = 600 // seconds
	for t := range since {
		add(t)
	}
	for t := since; b.Loop(); t++ {
		b.StopTimer()
		add(t)
		b.StartTimer()
		if len(w.Current()) < 100 {
			b.Fatal(len(w.Current()))
		}
	}
}

// TestPromptCache has a server whose memory grows by its cache of prompts: that is no problem below the cache's bound.
func TestPromptCache(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		command string
		bound   int64 // of the environment or of a longer command; 0 where the command states it
		problem bool
		detail  string
	}{
		{"/opt/llama-server -m a.gguf", 0, false, "8 GiB"},
		{"llama-server -m a.gguf --cache-ram 1024", 0, false, "1 GiB"},
		{"llama-server --cache-ram=256 -m a.gguf", 0, true, ""},
		{"llama-server -m a.gguf -cram 0", 0, true, ""},
		{"llama-server -m a.gguf -cram -1 --port 1", 0, true, "no bound"},
		{"llama-server -m a.gguf …", 256 * mib, true, ""},
		{"llama-server -m a.gguf …", 2048 * mib, false, "2 GiB"},
		{"llama-server -m a.gguf …", -1, true, "no bound"},
		{"llama-cli -m a.gguf", 0, true, ""},
		{"llama-cli -m a.gguf --cache-ram 1024", 0, false, "1 GiB"},
		{"python -m vllm.entrypoints.openai.api_server", 0, true, ""},
		{"python serve.py --name llama-server --cache-ram 9", 0, true, ""},
	} {
		for _, course := range []struct {
			age     float64
			seconds int
			grown   func(at int) int // MiB
		}{
			{300, 120, func(at int) int { return 5 * at }},
			{20, 30, func(at int) int { return at * at * at / 900 * 5 }}, // like a start, which is another doubt
		} {
			age := course.age
			if c.problem && age < 300 {
				continue
			}
			w := New()
			for at := range course.seconds {
				p := sample.Process{PID: 7, Started: 1, Command: c.command, Age: &age, Devices: []sample.DeviceShare{}, Host: &sample.Host{Anonymous: int64(100+course.grown(at)) * mib}}
				if c.bound != 0 {
					p.PromptCache = &c.bound
				}
				w.Add(&sample.Sample{Seconds: float64(at), Processes: []sample.Process{p}})
			}
			found := w.Findings()
			if len(found) != 1 || (found[0].Severity == finding.Problem) != c.problem || !strings.Contains(strings.Join(found[0].Detail, "\n"), c.detail) || strings.Contains(strings.Join(found[0].Detail, "\n"), "cache-ram") != (c.detail != "") {
				t.Errorf("%s, %d: %+v", c.command, c.bound, found)
			}
		}
	}
}

// TestRayTasks has Ray's gcs_server, which keeps events of tasks up to a bound.
func TestRayTasks(t *testing.T) {
	for _, c := range []struct {
		name    string
		tasks   int64 // of its environment; 0 where that is not known
		each    int64 // MiB a second
		problem bool
		detail  string
	}{
		{"gcs_server", 0, 1, false, "100,000 tasks"}, {"gcs_server", 0, 10, true, ""}, {"raylet", 0, 1, true, ""},
		{"gcs_server", 50_000, 1, false, "50,000 tasks"}, {"gcs_server", 10_000, 1, true, ""}, {"gcs_server", -1, 1, true, "all tasks"},
	} {
		w := New()
		for at := range 120 {
			age := 300.0
			p := sample.Process{PID: 7, Started: 1, Name: c.name, Command: "/opt/" + c.name, Age: &age, Devices: []sample.DeviceShare{},
				Host: &sample.Host{Anonymous: 100<<20 + int64(at)*c.each<<20}}
			if c.tasks != 0 {
				p.TaskEvents = &c.tasks
			}
			w.Add(&sample.Sample{Seconds: float64(at), Processes: []sample.Process{p}})
		}
		found := w.Findings()
		if len(found) != 1 || (found[0].Severity == finding.Problem) != c.problem {
			t.Errorf("%s, %d tasks: %+v", c.name, c.tasks, found)
			continue
		}
		if text := strings.Join(found[0].Detail, "\n"); !strings.Contains(text, c.detail) || strings.Contains(text, "task_events") != (c.detail != "") {
			t.Errorf("%s, %d tasks: %s", c.name, c.tasks, text)
		}
	}
}

// TestYoungGrowth doubts a little growth of a process that may still be starting.
func TestYoungGrowth(t *testing.T) {
	for kib, problem := range map[int64]bool{40: false, 400: true} { // a second
		w := New()
		for at := range 45 {
			age := 20.0
			w.Add(&sample.Sample{Seconds: float64(at), Processes: []sample.Process{{PID: 7, Started: 1, Name: "raylet", Command: "raylet", Age: &age, Devices: []sample.DeviceShare{},
				Host: &sample.Host{Anonymous: 10<<20 + int64(at)*kib<<10}}}})
		}
		found := w.Findings()
		if len(found) != 1 || (found[0].Severity == finding.Problem) != problem {
			t.Errorf("%d KiB a second: %+v", kib, found)
		}
	}
}
