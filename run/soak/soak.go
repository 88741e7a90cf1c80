// Package soak sends equal waves of requests to a server, reads the memory of its
// processes in the quiet after each, and has package gate compare the waves. It reads no
// flags and prints nothing.
package soak

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/internal/secret"
	"strandline/judge/gate"
	"strandline/run/soak/load"
	"strandline/run/trace"
)

// Options state the experiment.
type Options struct {
	Load     load.Options
	PID      int // of the server; 0 for the process that listens on the port of the URL
	Waves    int // at most, without those that are sent again
	Requests int // of a wave
	// Further is how many waves may follow as long as the verdict is not clear.
	Further int
	AtMost  time.Duration // no wave begins after it; 0 for no limit
	WarmUp  int           // waves at first that are not judged
	// Repeat has requests of an earlier wave sent again before growth is called a leak: a
	// cache that is keyed by their content does not grow by them.
	Repeat bool
	// Quiet is how long memory may not have fallen for a level to be read; Gap is the
	// longest that is waited for that.
	Quiet, Gap time.Duration
	Return     time.Duration // how long the server may take to be there again after it ended
	Trace      time.Duration // how long a server that leaks is traced for its cause; 0 for not
	Reclaim    string        // a command of a shell that is run in each gap; "" for none
	Limits     map[string]gate.Limits
	Devices    func() sample.DeviceSource // nil for none
	Keep       func(*sample.Sample)       // is given each sample; nil for nothing
	Progress   func(Progress)             // is called about each second, and after each wave; nil for nothing
}

// A Progress is how far an experiment is.
type Progress struct {
	Stage     string // what is done before the first wave, otherwise ""
	Wave      int
	Requests  int
	Load      *load.Stats     // of the wave that is being sent; nil if none is
	Done      *api.SoakWave   // a wave that has ended, otherwise nil
	Judgments []gate.Judgment // after it
	Verdict   finding.Verdict
}

// An experiment is under way.
type experiment struct {
	o          Options
	began      time.Time
	client     *load.Client
	server     *server
	doc        *api.Soak
	total      load.Stats
	ends       int  // how often the server ended
	forwarding bool // it was noted that the server could be a proxy
	life       int  // the index in doc.Waves of the first wave since the server was started last
	// repeatedAt is how many fresh waves there were when requests were last sent again.
	repeatedAt int
	last       int // the content of the last fresh wave
	// code is what the server had compiled at each of doc.Waves, bytes.
	code []int64
	// caches are the processes of the server that are known to fill a cache, as last seen.
	caches []sample.Process
	// traced is what a trace found once the server leaked; nil without one.
	traced []finding.Finding
}

// Run does an experiment. The error is one of the set-up: a server that fails in the
// middle is part of the result.
func Run(ctx context.Context, o Options) (*api.Soak, error) {
	client, err := load.New(o.Load)
	if err != nil {
		return nil, err
	}
	e := &experiment{o: o, client: client, began: time.Now()}
	if e.server, err = findServer(ctx, &e.o); err != nil {
		return nil, err
	}
	defer func() { e.server.close() }()
	if o.Progress != nil {
		o.Progress(Progress{Stage: fmt.Sprintf("asking pid %d for one answer, for at most %s", e.server.root.PID, o.Load.Timeout)})
	}
	if err := client.Probe(ctx); err != nil {
		return nil, err
	}
	e.doc = &api.Soak{
		Schema: api.SoakSchema, Verdict: finding.Unknown, URL: secret.Text(o.Load.URL), Model: client.Model(),
		Findings: []finding.Finding{}, Waves: []api.SoakWave{},
	}
	if e.o.Progress == nil {
		e.o.Progress = func(Progress) {}
	}
	if e.o.Keep == nil {
		e.o.Keep = func(*sample.Sample) {}
	}
	if e.server.note != "" {
		e.doc.Notes = append(e.doc.Notes, e.server.note)
	}
	start := api.SoakWave{WarmUp: true, Devices: []api.SoakDevice{}, Processes: []api.SoakProcess{}}
	if err := e.quiet(ctx, &start); err != nil {
		return nil, err
	}
	e.doc.Waves, e.code = append(e.doc.Waves, start), append(e.code, compiled(start.Processes))
	if !e.unmeasured() {
		if err := e.run(ctx); err != nil {
			return nil, err
		}
	}
	e.trace(ctx)
	e.conclude(ctx)
	return e.doc, nil
}

// unmeasured reports whether nothing is measured of what is to be judged.
func (e *experiment) unmeasured() bool {
	_, host := e.o.Limits[gate.Host]
	return !host && len(e.devices()) == 0
}

// run sends waves until the verdict is clear.
func (e *experiment) run(ctx context.Context) error {
	for n := 1; n <= e.o.Waves+e.o.Further; n++ {
		if ctx.Err() != nil || n > 1 && e.pastDeadline() {
			return nil
		}
		if err := e.wave(ctx, n, 0); err != nil || e.doc.Failed != "" {
			return err
		}
		all := e.judge()
		last := n == e.o.Waves+e.o.Further
		if e.o.Repeat && e.suspect(all, last) && (last || n >= 2*e.repeatedAt) {
			e.repeatedAt = n
			of := len(e.doc.Waves) - 1
			for range repeats {
				if err := e.wave(ctx, e.last, of); err != nil || ctx.Err() != nil || e.doc.Failed != "" {
					return err
				}
			}
			all = e.judge()
		}
		if clear(all) && !last {
			e.doc.Stopped = true
			return nil
		}
	}
	return nil
}

// trace traces a server that leaks while further requests are sent: its calls name the
// cause. What these requests add is not judged.
func (e *experiment) trace(ctx context.Context) {
	leaks := slices.ContainsFunc(e.judge(), func(j gate.Judgment) bool { return j.Verdict == finding.Leaking && j.Series.Metric == gate.Host })
	if !leaks || e.o.Trace == 0 || e.doc.Failed != "" || ctx.Err() != nil {
		return
	}
	e.o.Progress(Progress{Stage: fmt.Sprintf("it leaks: tracing pid %d for its cause", e.server.root.PID)})
	follower := trace.Follow(ctx, e.server.root.PID)
	limited, stop := context.WithTimeout(ctx, e.o.Trace)
	defer stop()
	for content := e.last + 1; limited.Err() == nil; content++ {
		if e.client.Send(limited, load.Wave{Content: content, Requests: e.o.Requests}, nil).GaveUp {
			break
		}
	}
	if doc, err := follower.Close(); err == nil {
		e.traced = doc.Findings
	}
}

// repeats is how many waves are sent again.
const repeats = 2

// pastDeadline reports whether it is too late for a further wave to begin.
func (e *experiment) pastDeadline() bool { return e.o.AtMost > 0 && time.Since(e.began) > e.o.AtMost }

// clear reports whether further waves would not change the verdict.
func clear(all []gate.Judgment) bool {
	verdict := gate.Verdict(all)
	if verdict == finding.Unknown {
		return false
	}
	for i := range all {
		if all[i].Verdict == verdict && !all[i].Clear() {
			return false
		}
	}
	return true
}

// lookInterval is the time between two looks at the server while a wave is sent.
const lookInterval = 500 * time.Millisecond

// wave sends a wave, drawn by content, waits until memory settles, and reads it. If of is
// not 0, the requests are those of that wave.
func (e *experiment) wave(ctx context.Context, content, of int) error {
	w := api.SoakWave{
		Wave: len(e.doc.Waves), Repeats: of, WarmUp: len(e.doc.Waves)-e.life <= max(e.o.WarmUp, 1),
		Devices: []api.SoakDevice{}, Processes: []api.SoakProcess{},
	}
	e.last = content
	stats, end := e.send(ctx, w.Wave, content)
	e.total.Merge(stats)
	w.Load = loadOf(stats)
	w.Unjudged = 2*(stats.Completed+stats.Aborted) < int64(e.o.Requests)
	if end == part && !w.Unjudged {
		end = nothing
	}
	err := e.after(ctx, &w, end)
	if stats.GaveUp && e.doc.Failed == "" && end == nothing {
		e.doc.Failed = fmt.Sprintf("wave %d: too many requests in succession failed: %s", w.Wave, w.Load.Example)
	}
	w.Unjudged = w.Unjudged || w.HostBytes == nil
	e.doc.Waves, e.code = append(e.doc.Waves, w), append(e.code, compiled(w.Processes))
	if err != nil || ctx.Err() != nil {
		return err
	}
	all := e.judge()
	e.o.Progress(Progress{Wave: w.Wave, Requests: e.o.Requests, Done: &w, Judgments: all, Verdict: gate.Verdict(all)})
	return nil
}

// send sends the requests of a wave, and states what ended of the server meanwhile.
func (e *experiment) send(ctx context.Context, wave, content int) (stats *load.Stats, end ending) {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan *load.Stats, 1)
	progress := func(s *load.Stats) {
		e.o.Progress(Progress{Wave: wave, Requests: e.o.Requests, Load: s})
	}
	go func() {
		done <- e.client.Send(sending, load.Wave{Content: content, Requests: e.o.Requests}, progress)
	}()
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	lookout := lookout{found: e.forwarding}
	next := lookout.next(wave)
	for { // it ends soon where the context does
		select {
		case <-next:
			lookout.found = e.forwards()
			e.forwarding = lookout.found
			next = lookout.next(wave)
		case stats = <-done:
			if end != firstProcess && ctx.Err() == nil {
				if wave <= lookWaves && !lookout.found { // connections are still open
					e.forwarding = e.forwards()
				}
				end = max(end, e.look(ctx))
			}
			return stats, end
		case <-tick.C:
			if end != firstProcess {
				end = max(end, e.look(ctx))
			}
			if end == firstProcess {
				stop() // the rest would not be equal to the other waves
			}
		}
	}
}

// after reads what the server holds after a wave, of the one that comes back if it ended.
func (e *experiment) after(ctx context.Context, w *api.SoakWave, end ending) error {
	for {
		if end != nothing && !e.comeBack(ctx, w, end) || ctx.Err() != nil {
			return nil
		}
		err := e.quiet(ctx, w)
		if !errors.Is(err, errEnded) {
			return err
		}
		end = firstProcess
	}
}

// look takes a sample, and states what has ended of the server.
func (e *experiment) look(ctx context.Context) ending {
	s, err := e.server.sampler.Sample(ctx)
	if err != nil || e.server.sampler.Short() != nil {
		return nothing // known
	}
	e.o.Keep(s)
	return e.server.ended(s)
}

// maxRestarts is how often a server may end.
const maxRestarts = 3

// comeBack waits until the server answers again after it ended, or a process of it did
// without which it does not answer, and begins a new life of it. It returns false if the
// server does not answer, or the context ends.
func (e *experiment) comeBack(ctx context.Context, w *api.SoakWave, end ending) bool {
	was := e.server
	who := fmt.Sprintf("the server (pid %d)", was.root.PID)
	if end == part {
		who = "a process of " + who
	}
	e.ends++
	e.life, e.repeatedAt = len(e.doc.Waves), 0
	w.Ended, w.Restarted, w.Unjudged = true, false, true
	if e.ends > maxRestarts {
		e.doc.Failed = fmt.Sprintf("%s ended, for the %dth time, in wave %d", who, e.ends, w.Wave)
		return false
	}
	deadline := time.Now().Add(e.o.Return)
	for ctx.Err() == nil {
		if again, err := was.refind(ctx, &e.o); err == nil {
			if err := e.client.Probe(ctx); err == nil {
				was.close()
				e.server = again
				e.doc.Restarts++
				w.Restarted = true
				return true
			}
			again.close()
		}
		if time.Now().After(deadline) {
			e.doc.Failed = fmt.Sprintf("%s ended in wave %d, and did not answer again within %s", who, w.Wave, e.o.Return)
			return false
		}
		pause(ctx, lookInterval/2)
	}
	return false
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// quiet waits until memory settles and reads it, before and after the command that
// reclaims.
func (e *experiment) quiet(ctx context.Context, w *api.SoakWave) error {
	e.client.Close()
	if err := e.settle(ctx, w); err != nil || e.o.Reclaim == "" || ctx.Err() != nil {
		return err
	}
	w.BeforeReclaim, w.HostBytes = w.HostBytes, nil
	err := reclaim(ctx, e.o.Reclaim)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil && len(e.doc.Waves) == 0:
		return fmt.Errorf("the command of --reclaim-cmd failed: %w", err)
	case err != nil:
		e.doc.Failed = fmt.Sprintf("the command of --reclaim-cmd failed after wave %d: %v", w.Wave, err)
		return nil
	}
	return e.settle(ctx, w)
}

// reclaim runs a command of a shell. It is ended with all that it started.
func reclaim(ctx context.Context, command string) error {
	const long = 5 * time.Minute
	limited, stop := context.WithTimeout(ctx, long)
	defer stop()
	c := exec.CommandContext(limited, "sh", "-c", command)
	group(c)
	c.WaitDelay = time.Second
	out, err := c.CombinedOutput()
	switch text := strings.TrimSpace(string(out)); {
	case err == nil:
		return nil
	case limited.Err() != nil:
		return fmt.Errorf("it took longer than %s", long)
	case text != "":
		return fmt.Errorf("%w: %s", err, text)
	}
	return err
}
