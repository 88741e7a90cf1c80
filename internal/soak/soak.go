// Package soak sends equal waves of requests to a server, reads the memory of its
// processes in the quiet after each, and has package gate compare the waves. It reads no
// flags and prints nothing.
package soak

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/sample"
	"strandline/internal/soak/load"
	"strandline/judge/gate"
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
	Reclaim    string        // a command of a shell that is run in each gap; "" for none
	Limits     map[string]gate.Limits
	Devices    func() sample.DeviceSource // nil for none
	Keep       func(*sample.Sample)       // is given each sample; nil for nothing
	Progress   func(Progress)             // is called about each second, and after each wave; nil for nothing
}

// A Progress is how far an experiment is.
type Progress struct {
	Wave      int
	Requests  int
	Load      *load.Stats     // of the wave that is being sent; nil if none is
	Done      *api.SoakWave   // a wave that has ended, else nil
	Judgments []gate.Judgment // after it
	Verdict   finding.Verdict
}

// An experiment is under way.
type experiment struct {
	o      Options
	began  time.Time
	client *load.Client
	server *server
	doc    *api.Soak
	total  load.Stats
	life   int // the index in doc.Waves of the first wave since the server was started last
	// repeatedAt is how many fresh waves there were when requests were last sent again.
	repeatedAt int
	last       int // the content of the last fresh wave
}

// Run does an experiment. The error is one of the set-up: a server that fails in the
// middle is part of the result.
func Run(ctx context.Context, o Options) (*api.Soak, error) {
	client, err := load.New(o.Load)
	if err != nil {
		return nil, err
	}
	e := &experiment{o: o, client: client, began: time.Now()}
	if e.server, err = findServer(&e.o); err != nil {
		return nil, err
	}
	defer func() { e.server.close() }()
	if err := client.Probe(ctx); err != nil {
		return nil, err
	}
	e.doc = &api.Soak{
		Schema: api.SoakSchema, Verdict: finding.Unknown, URL: o.Load.URL, Model: client.Model(),
		Findings: []finding.Finding{}, Waves: []api.SoakWave{},
	}
	if e.o.Progress == nil {
		e.o.Progress = func(Progress) {}
	}
	if e.o.Keep == nil {
		e.o.Keep = func(*sample.Sample) {}
	}
	start := api.SoakWave{WarmUp: true}
	if err := e.quiet(ctx, &start); err != nil {
		return nil, err
	}
	e.doc.Waves = append(e.doc.Waves, start)
	if err := e.run(ctx); err != nil {
		return nil, err
	}
	e.conclude(ctx)
	return e.doc, nil
}

// run sends waves until the verdict is clear.
func (e *experiment) run(ctx context.Context) error {
	for n := 1; n <= e.o.Waves+e.o.Further; n++ {
		if e.over(ctx) && n > 1 {
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
				if ctx.Err() != nil {
					return nil
				}
				if err := e.wave(ctx, e.last, of); err != nil || e.doc.Failed != "" {
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

// repeats is how many waves are sent again.
const repeats = 2

// over reports whether no further wave may begin.
func (e *experiment) over(ctx context.Context) bool {
	return ctx.Err() != nil || e.o.AtMost > 0 && time.Since(e.began) > e.o.AtMost
}

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

// every is the time between two looks at the server while a wave is sent.
const every = 500 * time.Millisecond

// wave sends a wave, drawn by content, waits until memory settles, and reads it. If of is
// not 0, the requests are those of that wave.
func (e *experiment) wave(ctx context.Context, content, of int) error {
	w := api.SoakWave{Wave: len(e.doc.Waves), Repeats: of, WarmUp: len(e.doc.Waves)-e.life <= max(e.o.WarmUp, 1)}
	e.last = content
	sending, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan *load.Stats, 1)
	progress := func(s *load.Stats) {
		e.o.Progress(Progress{Wave: w.Wave, Requests: e.o.Requests, Load: s})
	}
	go func() {
		done <- e.client.Send(sending, load.Wave{Content: content, Requests: e.o.Requests}, progress)
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	var stats *load.Stats
	for stats == nil { // it comes soon where the context ends
		select {
		case stats = <-done:
		case <-tick.C:
			if !w.Restarted && e.look(ctx) {
				w.Restarted = true
				stop() // the rest would not be equal to the other waves
			}
		}
	}
	e.total.Merge(stats)
	w.Load = loadOf(stats)
	if ctx.Err() == nil && (w.Restarted || e.look(ctx)) {
		w.Restarted, w.Unjudged = true, true
		e.doc.Restarts++
		e.life = len(e.doc.Waves)
		e.repeatedAt = 0
		if err := e.comeBack(ctx, w.Wave); err != nil || e.doc.Failed != "" {
			e.doc.Waves = append(e.doc.Waves, w)
			return err
		}
	}
	if stats.GaveUp && !w.Restarted {
		e.doc.Failed = fmt.Sprintf("wave %d: too many requests in succession failed: %s", w.Wave, w.Load.Example)
	}
	w.Unjudged = w.Unjudged || 2*(stats.Completed+stats.Aborted) < int64(e.o.Requests)
	if err := e.quiet(ctx, &w); err != nil || ctx.Err() != nil {
		return err
	}
	e.doc.Waves = append(e.doc.Waves, w)
	all := e.judge()
	e.o.Progress(Progress{Wave: w.Wave, Requests: e.o.Requests, Done: &w, Judgments: all, Verdict: gate.Verdict(all)})
	return nil
}

// look takes a sample, and reports whether a process of the server has ended.
func (e *experiment) look(ctx context.Context) bool {
	s, err := e.server.sampler.Sample(ctx)
	if err != nil {
		return false
	}
	e.o.Keep(s)
	return e.server.ended(s)
}

// mostRestarts is how often a server may end.
const mostRestarts = 3

// comeBack waits until the server answers again after a process of it ended.
func (e *experiment) comeBack(ctx context.Context, wave int) error {
	was := e.server
	if e.doc.Restarts > mostRestarts {
		e.doc.Failed = fmt.Sprintf("the server (pid %d) ended %d times, the last time in wave %d", was.root.PID, e.doc.Restarts, wave)
		return nil
	}
	deadline := time.Now().Add(e.o.Return)
	for ctx.Err() == nil {
		if again, err := was.again(&e.o); err == nil {
			if err := e.client.Probe(ctx); err == nil {
				was.close()
				e.server = again
				return nil
			}
			again.close()
		}
		if time.Now().After(deadline) {
			e.doc.Failed = fmt.Sprintf("the server (pid %d) ended in wave %d, and did not answer again within %s", was.root.PID, wave, e.o.Return)
			return nil
		}
		pause(ctx, every/2)
	}
	return nil
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
	if err := e.settle(ctx, w); err != nil || e.o.Reclaim == "" {
		return err
	}
	before := w.HostBytes
	w.BeforeReclaim = &before
	const long = 5 * time.Minute
	limited, stop := context.WithTimeout(ctx, long)
	defer stop()
	c := exec.CommandContext(limited, "sh", "-c", e.o.Reclaim)
	c.WaitDelay = time.Second
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("the command of --reclaim-cmd failed: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return e.settle(ctx, w)
}
