package soak

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/test/soakserver"
	"strandline/judge/gate"
	"strandline/run/soak/load"
)

var reach = flag.Int("reach", 0, "soak so many servers of each mood, and print the table of docs/soak.md")

func TestMain(m *testing.M) {
	soakserver.Main()
	goleak.VerifyTestMain(m)
}

// options are those of a quick experiment.
func options(url string) Options {
	return Options{
		Load: load.Options{
			URL: url, Stream: true, Concurrency: 4, Timeout: time.Minute,
			Input: load.Length{Low: 8, High: 24}, Output: load.Length{Low: 4, High: 4},
		},
		Waves: 5, Further: 10, Requests: 600, WarmUp: 1, Repeat: true,
		Quiet: 50 * time.Millisecond, Gap: 5 * time.Second, Return: time.Minute,
		Limits: map[string]gate.Limits{gate.Host: {}, gate.Device: {}},
	}
}

// run starts a server and soaks it.
func run(t *testing.T, server soakserver.Options, change func(*Options)) *api.Soak {
	t.Helper()
	url, _ := soakserver.Start(t, server)
	o := options(url)
	o.Load.Seed = server.Seed
	if change != nil {
		change(&o)
	}
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A mood is a kind of server, what is true of it, and the experiment.
type mood struct {
	name   string
	server func(r *rand.Rand) soakserver.Options
	leaks  bool
	change func(*Options)
	slow   bool // only with -reach
}

// many is an experiment of at most 48,000 requests.
func many(o *Options) { o.Waves, o.Further, o.Requests = 10, 0, 4000 }

var moods = []mood{
	{"clean", func(*rand.Rand) soakserver.Options { return soakserver.Options{Mood: soakserver.Clean} }, false, nil, false},
	{"caching", func(r *rand.Rand) soakserver.Options {
		return soakserver.Options{Mood: soakserver.Caching, Bytes: 16 << 10, Capacity: (8 + r.IntN(40)) << 20}
	}, false, nil, false},
	{"leaking", func(r *rand.Rand) soakserver.Options {
		return soakserver.Options{Mood: soakserver.Leaking, Bytes: (8 + r.IntN(56)) << 10}
	}, true, nil, false},
	{"fragmenting", func(r *rand.Rand) soakserver.Options {
		return soakserver.Options{Mood: soakserver.Fragmenting, Capacity: 100 + r.IntN(400)}
	}, false, nil, false},
	{"compiling", func(*rand.Rand) soakserver.Options {
		return soakserver.Options{Mood: soakserver.Compiling, Bytes: 32 << 10}
	}, false, nil, false},
	{"0.15 MB a token", func(*rand.Rand) soakserver.Options {
		return soakserver.Options{Mood: soakserver.Leaking, TokenBytes: 150 << 10}
	}, true, func(o *Options) { o.Waves, o.Further, o.Requests = 5, 0, 70 }, false},
	{"2 KiB a request", func(*rand.Rand) soakserver.Options {
		return soakserver.Options{Mood: soakserver.Leaking, Bytes: 2 << 10}
	}, true, many, true},
	{"clean, as long", func(*rand.Rand) soakserver.Options { return soakserver.Options{Mood: soakserver.Clean} }, false, many, true},
}

// TestMoods soaks servers whose truth is known. With -reach 100 it is the measurement
// that docs/soak.md states; without it each mood has one run, and only what is certain
// counts.
func TestMoods(t *testing.T) {
	for _, m := range moods {
		if testing.Short() && m.name != "leaking" {
			continue
		}
		if *reach == 0 && !m.slow {
			t.Run(m.name, func(t *testing.T) {
				server := m.server(rand.New(rand.NewPCG(1, 1)))
				if d := run(t, server, m.change); m.leaks != (d.Verdict == finding.Leaking) {
					t.Errorf("%s: %v%s", d.Verdict, d.Missing, levelsOf(d))
				}
			})
		} else if *reach > 0 {
			t.Run(m.name, func(t *testing.T) { m.reach(t, *reach) })
		}
	}
}

// reach soaks many servers of a mood and prints how often the verdict is right.
func (m *mood) reach(t *testing.T, runs int) {
	got := map[finding.Verdict]int{}
	want := finding.OK
	if m.leaks {
		want = finding.Leaking
	}
	var requests, tokens int64
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { // its server ends with it
			server := m.server(rand.New(rand.NewPCG(uint64(seed), 1)))
			server.Seed = uint64(seed)
			d := run(t, server, m.change)
			got[d.Verdict]++
			requests, tokens = requests+d.Load.Requests, tokens+d.Load.OutputTokens
			if d.Verdict != want {
				fmt.Printf("%s %d: %s: %v%s\n", m.name, seed, d.Verdict, d.Missing, levelsOf(d))
			}
		})
	}
	n := int64(runs)
	fmt.Printf("%-16s leak %d, ok %d, unknown %d of %d, after %d requests of %d tokens in the mean\n",
		m.name, got[finding.Leaking], got[finding.OK], got[finding.Unknown], runs, requests/n, tokens/max(requests, 1))
	if 100*got[want] < 99*runs {
		t.Errorf("%d of %d runs are %s", got[want], runs, want)
	}
}

// levelsOf are the levels of the host after each wave.
func levelsOf(d *api.Soak) (text string) {
	for _, w := range d.Waves {
		text += " ?"
		if w.HostBytes != nil {
			text = strings.TrimSuffix(text, "?") + fmt.Sprint(*w.HostBytes>>10)
		}
		if w.Repeats > 0 {
			text += "r"
		}
	}
	return text + " KiB"
}

// TestDocument reads the document of a leak.
func TestDocument(t *testing.T) {
	d := run(t, soakserver.Options{Mood: soakserver.Leaking, TokenBytes: 8 << 10}, nil)
	if d.Verdict != finding.Leaking || d.Growth == nil || d.Model != "test-model" || d.PID == 0 {
		t.Fatalf("%s %+v of %s, pid %d: %v", d.Verdict, d.Growth, d.Model, d.PID, d.Missing)
	}
	g := d.Growth
	if g.BytesPerToken == nil || g.LowPerToken == nil || g.HighPerToken == nil {
		t.Fatalf("%+v", g)
	}
	if near := float64(g.BytesPerRequest) / (32 << 10); near < 0.8 || near > 1.25 || g.Low > g.BytesPerRequest || g.High < g.BytesPerRequest {
		t.Errorf("32 KiB a request: %d, between %d and %d", g.BytesPerRequest, g.Low, g.High)
	}
	if near := *g.BytesPerToken / (8 << 10); near < 0.8 || near > 1.25 {
		t.Errorf("8 KiB a token: %g", *g.BytesPerToken)
	}
	if d.Repeated == nil || !d.Repeated.Grows {
		t.Errorf("repeated: %+v", d.Repeated)
	}
	if i := slices.IndexFunc(d.Findings, func(f finding.Finding) bool { return f.Kind == finding.Leak }); i != 0 {
		t.Errorf("%+v", d.Findings)
	}
	for _, w := range d.Waves[1:] {
		if w.Load.Completed != 600 || w.Load.TTFT == nil || len(w.Processes) != 1 || w.Engine == nil || w.Engine.KVCache == nil {
			t.Errorf("%+v %+v", w, w.Load)
		}
	}
}

// TestLastWave judges a leak that is not clear after the waves that were asked for: the
// requests are sent again, which shows it.
func TestLastWave(t *testing.T) {
	d := run(t, soakserver.Options{Mood: soakserver.Leaking, Bytes: 256 << 10}, func(o *Options) {
		o.Waves, o.Further, o.Requests = 5, 0, 100
	})
	if d.Verdict != finding.Leaking || d.Repeated == nil || !d.Repeated.Grows {
		t.Errorf("%s, %+v: %v", d.Verdict, d.Growth, d.Missing)
	}
}

// TestContent soaks a cache that is far from full: it grows by what is new alone.
func TestContent(t *testing.T) {
	server := soakserver.Options{Mood: soakserver.Caching, Bytes: 32 << 10, Capacity: 1 << 30}
	fewer := func(o *Options) { o.Further, o.Requests = 0, 300 }
	d := run(t, server, fewer)
	if d.Verdict != finding.Unknown || d.Repeated == nil || d.Repeated.Grows || len(d.Missing) != 1 || !strings.Contains(d.Missing[0], "This is a content cache") {
		t.Errorf("%s, repeated %+v: %v", d.Verdict, d.Repeated, d.Missing)
	}
	d = run(t, server, func(o *Options) { o.Repeat = false })
	if d.Verdict != finding.Leaking || d.Repeated != nil {
		t.Errorf("where nothing is cached: %s, repeated %+v: %v", d.Verdict, d.Repeated, d.Missing)
	}
}

// TestRestart soaks servers that end in the middle of a wave.
func TestRestart(t *testing.T) {
	server := soakserver.Options{Mood: soakserver.Clean, Ends: 1500, Restarts: true}
	d := run(t, server, func(o *Options) { o.Waves = 10 })
	if d.Verdict == finding.Leaking || d.Restarts != 1 || d.Failed != "" {
		t.Errorf("%s after %d restarts, %q: %v", d.Verdict, d.Restarts, d.Failed, d.Missing)
	}
	again := slices.IndexFunc(d.Waves, func(w api.SoakWave) bool { return w.Restarted })
	if again != 3 || !d.Waves[again].Unjudged || !d.Waves[again+1].WarmUp || d.Waves[1].Processes[0].PID == d.PID {
		t.Errorf("wave %d restarted the server: %+v", again, d.Waves)
	}
	d = run(t, soakserver.Options{Mood: soakserver.Clean, Ends: 1500}, func(o *Options) { o.Return = time.Second })
	last := d.Waves[len(d.Waves)-1]
	if d.Verdict != finding.Unknown || !strings.Contains(d.Failed, "ended in wave 3") || d.Restarts != 0 {
		t.Errorf("%s, %q, %d restarts", d.Verdict, d.Failed, d.Restarts)
	}
	if last.HostBytes != nil || last.Processes == nil || !last.Ended || last.Restarted {
		t.Errorf("the wave in which it ended: %+v", last)
	}
}

// TestFailures soaks servers that answer badly; what they answer does not count as growth.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		fault string
		kind  load.Kind
	}{{soakserver.Refusing, load.ServerError}, {soakserver.Limiting, load.RateLimited}, {soakserver.Garbage, load.Garbage}, {soakserver.Empty, load.Garbage}, {soakserver.Cut, load.Disconnected}} {
		t.Run(c.fault, func(t *testing.T) {
			server := soakserver.Options{Mood: soakserver.Clean, Fault: c.fault, Share: 0.1, Seed: 5}
			d := run(t, server, nil)
			if d.Verdict == finding.Leaking || d.Load.Errors[string(c.kind)] == 0 || d.Load.Completed == 0 || d.Load.Example == "" {
				t.Errorf("%s: %v, %d of %d failed", d.Verdict, d.Load.Errors, d.Load.Failed, d.Load.Requests)
			}
			if failed := d.Load.Failed > 0; failed == (c.kind == load.RateLimited) || noted(d, "requests failed") != failed {
				t.Errorf("%d failed, notes %q", d.Load.Failed, d.Notes)
			}
		})
	}
	url, _ := soakserver.Start(t, soakserver.Options{Fault: soakserver.Refusing})
	if d, err := Run(t.Context(), options(url)); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("a server that refuses everything: %v, %v", d, err)
	}
	if _, err := Run(t.Context(), options("http://127.0.0.1:1/v1")); err == nil || !strings.Contains(err.Error(), "is the server running") {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := Run(t.Context(), options("http://192.0.2.1:8000/v1")); err == nil || !strings.Contains(err.Error(), "is not this machine") {
		t.Errorf("another machine: %v", err)
	}
}

// TestReclaim tries a remedy: a command that has the server give back what it keeps.
func TestReclaim(t *testing.T) {
	d := run(t, soakserver.Options{Mood: soakserver.Leaking, Bytes: 64 << 10}, func(o *Options) {
		o.Further, o.Reclaim = 0, soakserver.FreeCommand(o.Load.URL)
	})
	if d.Verdict == finding.Leaking || d.Reclaim == nil || d.Reclaim.Without != finding.Leaking || d.Reclaim.ReleasedBytes < 30<<20 || d.Reclaim.ReleasedBytes > 50<<20 {
		t.Errorf("%s, %+v:%s", d.Verdict, d.Reclaim, levelsOf(d))
	}
	url, _ := soakserver.Start(t, soakserver.Options{})
	o := options(url)
	o.Reclaim = "echo no such cache >&2; false"
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no such cache") {
		t.Errorf("a command that fails: %v", err)
	}
}

// TestLimits allows growth.
func TestLimits(t *testing.T) {
	server := soakserver.Options{Mood: soakserver.Leaking, Bytes: 64 << 10}
	much, little := int64(1<<20), int64(1<<20)
	d := run(t, server, func(o *Options) { o.Further, o.Limits = 0, map[string]gate.Limits{gate.Host: {Growth: &much}} })
	if d.Verdict == finding.Leaking || d.Verdict == finding.OK && (d.Growth == nil || !d.Growth.Allowed) {
		t.Errorf("64 KiB a request of 1 MiB that are allowed: %s %v %+v", d.Verdict, d.Missing, d.Growth)
	}
	d = run(t, soakserver.Options{}, func(o *Options) { o.Further, o.Limits = 0, map[string]gate.Limits{gate.Host: {Peak: &little}} })
	if !slices.ContainsFunc(d.Findings, func(f finding.Finding) bool { return f.Kind == finding.AboveLimit }) {
		t.Errorf("a peak above 1 MiB: %s %+v", d.Verdict, d.Findings)
	}
}

// TestInterrupt ends an experiment in the middle of a wave.
func TestInterrupt(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	url, _ := soakserver.Start(t, soakserver.Options{Fault: soakserver.Slow})
	o := options(url)
	o.Progress = func(p Progress) {
		if p.Load != nil {
			stop()
		}
	}
	d, err := Run(ctx, o)
	if err != nil || d.Verdict != finding.Unknown || !d.Interrupted || len(d.Waves) != 2 || d.Waves[1].HostBytes != nil || d.Waves[1].Load == nil {
		t.Errorf("%+v, %v", d, err)
	}
}
