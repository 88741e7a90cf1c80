// Package trace runs one trace of a process, from its start to the document of what was
// seen: it selects the best source of events, follows the processes, looks at them from
// outside now and then, has all of it judged, and keeps a recording.
//
// It reads no flags and prints nothing. Note that the process can end at any moment, so
// what is reported about it is read in advance and kept.
package trace

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"strandline/face/report"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/cpython"
	"strandline/host/code/symbolize"
	"strandline/host/proc/autograd"
	"strandline/host/proc/footprint"
	"strandline/host/proc/hooks"
	"strandline/host/proc/procfs"
	"strandline/host/store/recording"
	"strandline/judge/processes"
	"strandline/torch/snapshot"
)

// Options state what is traced, and how.
type Options struct {
	PID      int
	Command  []string // started, and traced in place of PID, if given
	Backend  string   // the best that may be used; empty for the best available
	Duration time.Duration
	Out      *recording.Writer // nil where nothing is kept
	GPU      bool              // watch the GPU's driver, too
	Used     int64             // bytes of the device in use at the end; 0 if not known
	// Helper is the program, with its first arguments, that becomes the command when it
	// is traced by ptrace; see [Become].
	Helper []string
	Stdout *os.File // of a command
	// Warn is called with a sentence that the user should see immediately.
	Warn func(format string, args ...any)
	// Progress is called about once a second, with a function that returns the figures
	// so far.
	Progress func(now func() *report.Trace)
}

// A ProcessError states why a process cannot be followed.
type ProcessError struct {
	PID int
	Err error
}

func (e *ProcessError) Error() string { return fmt.Sprintf("process %d: %v", e.PID, e.Err) }

// Unwrap returns the system's error.
func (e *ProcessError) Unwrap() error { return e.Err }

// A Session is one trace that has been started.
type Session struct {
	options Options
	backend string
	source  source
	names   *symbolize.Symbolizer
	trace   *ledger.Trace
	gpu     *gpuWatch // nil if the GPU's driver is not watched
	began   time.Time
	sums    *ledger.Sums // the latest, for when the process ends
	past    []pastSums   // those of the last seconds, the latest last
	known   []hooks.Library
	looks   map[procfs.Process][]*footprint.Observation
	// containers are how many objects the containers of Python programs held, look by look.
	containers map[procfs.Process]*cpython.History
	graphs     map[procfs.Process]*autograd.Graphs
	lost       error         // why the recording ended before the trace
	judged     time.Time     // when a judgment was last put into it
	checked    *report.Trace // as of the last check; nil until it is asked for
}

// Start begins a trace. If there is a command, it runs from then on.
func Start(ctx context.Context, o Options) (*Session, error) {
	w := &Session{options: o, names: symbolize.New(), looks: map[procfs.Process][]*footprint.Observation{}}
	if err := w.start(ctx); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

func (w *Session) start(ctx context.Context) (err error) {
	o := &w.options
	if w.source, w.backend, err = open(o, w.names); err != nil {
		return err
	}
	if w.trace, err = ledger.NewTrace(procfs.Process(o.PID), w.source.Source, w.names, event.System); err != nil {
		return &ProcessError{o.PID, err}
	}
	if o.GPU {
		if w.gpu, err = watchGPU(ctx, w.trace, w.source.Source, w.backend, o.Used); err != nil {
			return err
		}
	}
	w.source.begin()
	w.began = time.Now()
	if w.gpu != nil {
		w.gpu.begin()
	}
	w.sum()
	if o.Out != nil {
		header := recording.Header{PID: o.PID, Name: w.trace.Processes[uint32(o.PID)].First.Name, Backend: w.backend, BeganUS: w.began.UnixMicro()}
		return o.Out.Begin(header)
	}
	return nil
}

// Close ends the trace and frees what it used.
func (w *Session) Close() {
	if w.source.end != nil {
		w.source.end()
	}
	if w.gpu != nil {
		w.gpu.close()
	}
	w.names.Close()
}

// Began returns when the trace began.
func (w *Session) Began() time.Time { return w.began }

// Lost returns why the recording ended before the trace; nil if it did not.
func (w *Session) Lost() error { return w.lost }

// CommandFailed returns how the command failed, such as "exit status 1"; it is empty if
// there is no command, it is still running, or it did not fail.
func (w *Session) CommandFailed() string {
	if w.trace.Alive() {
		return ""
	}
	return w.source.failed()
}

// Document returns what was seen, with what PyTorch reserved according to snapshots that
// the process wrote meanwhile. It ends the recording with that document.
func (w *Session) Document(snapshots []*snapshot.Snapshot) *report.Trace {
	if w.gpu != nil {
		w.gpu.snapshots = snapshots
	}
	doc := w.document(w.grown())
	w.keepJudgment(doc)
	return doc
}

func (w *Session) document(looks *footprint.Growth) *report.Trace {
	found := processes.Host(w.sums, looks, w.known)
	w.nameKeepers(found)
	w.nameContainers(found)
	w.doubtCaches(found)
	if w.gpu == nil {
		return report.NewTrace(w.trace, w.sums, found, w.backend, time.Since(w.began))
	}
	gpu := w.gpu.judge(w.sums.Processes)
	doc := report.NewTrace(w.trace, w.sums, processes.OneCause(gpu.Findings, found), w.backend, time.Since(w.began))
	doc.AddGPU(w.gpu.taken, gpu.Devices, gpu.Reserved)
	return doc
}

// current returns what was seen at the last check. It is judged once, for the recording
// and for who follows the trace.
func (w *Session) current() *report.Trace {
	if w.checked == nil {
		w.checked = w.document(nil)
	}
	return w.checked
}

const (
	pollEvery  = 50 * time.Millisecond
	checkEvery = time.Second
	// firstCheckpoints is the initial time between the moments at which growth is
	// measured. When there are many, the ledger drops every second one and the clock
	// doubles the time between them.
	firstCheckpoints = 250 * time.Millisecond
	// share is how much of a processor summing up may take, as 1 in that many: on a loaded
	// machine it takes long and costs no more.
	share = 20
)

// Run follows the process until the time is over, the process ends or the context is
// done.
func (w *Session) Run(ctx context.Context) error {
	if err := w.first(ctx); err != nil {
		return err
	}
	end := w.began.Add(w.options.Duration)
	c := newClock(w.began, w.options.Duration)
	for now := time.Now(); now.Before(end) && w.trace.Alive(); now = time.Now() {
		if err := w.due(ctx, c, now); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return w.interrupted(ctx)
		case <-time.After(min(pollEvery, time.Until(end))):
		}
		if err := w.trace.Step(); err != nil {
			return err
		}
	}
	return w.finish(ctx)
}

// first looks at the process for the first time, before its growth is measured.
func (w *Session) first(ctx context.Context) error {
	if len(w.options.Command) == 0 { // what comes next takes time, during which a process can grow
		w.look()
	}
	w.learn()
	if err := w.check(ctx); err != nil {
		return err
	}
	if len(w.looks) == 0 { // by now a command has become the program that it runs
		w.look()
	}
	return nil
}

// A clock holds when each periodic task is due next.
type clock struct {
	checkpoint, check, look          time.Time
	betweenCheckpoints, betweenLooks time.Duration
}

func newClock(began time.Time, duration time.Duration) *clock {
	looks := min(duration/(maxLooks-1), firstLooks)
	return &clock{checkpoint: began, check: began.Add(checkEvery), look: began.Add(looks), betweenCheckpoints: firstCheckpoints, betweenLooks: looks}
}

// afterCheckpoint sets when the checkpoint after the one of now is due. On a busy machine some are
// missed: made up for at once, they would show growth that ended.
func (c *clock) afterCheckpoint(now time.Time) {
	missed := max(0, now.Sub(c.checkpoint)) / c.betweenCheckpoints
	c.checkpoint = c.checkpoint.Add((1 + missed) * c.betweenCheckpoints)
}

// due runs the tasks that are due by now.
func (w *Session) due(ctx context.Context, c *clock, now time.Time) error {
	if !now.Before(c.checkpoint) {
		had := len(w.trace.Ledger.Checkpoints())
		if err := w.trace.Checkpoint(); err != nil {
			return err
		}
		if len(w.trace.Ledger.Checkpoints()) < had {
			c.betweenCheckpoints *= 2
		}
		c.afterCheckpoint(now)
	}
	if !now.Before(c.check) {
		was := spent()
		if err := w.check(ctx); err != nil {
			return err
		}
		c.check = time.Now().Add(max(checkEvery, share*(spent()-was)))
		w.options.Progress(w.current)
	}
	if !now.Before(c.look) {
		was := spent()
		if err := w.check(ctx); err != nil { // the look and the sums are from the same moment
			return err
		}
		if w.look(); w.thinLooks() {
			c.betweenLooks *= 2
		}
		w.learn() // a command can load libraries at any time, and ends by itself
		c.look = time.Now().Add(max(c.betweenLooks-time.Since(now), share*(spent()-was)))
	}
	return nil
}

// check compares the ledger with the kernel's list and keeps the sums.
func (w *Session) check(ctx context.Context) error {
	w.checked = nil
	if err := w.trace.Check(); err != nil {
		return err
	}
	if w.trace.Alive() {
		w.sum()
		w.lookAtContainers()
		if w.gpu != nil {
			w.gpu.ask(ctx, time.Since(w.began))
		}
	}
	w.keep()
	return nil
}

// sum sums up as long as there is something to sum up: when the process ends, the earlier
// figures stay.
func (w *Session) sum() {
	w.sums = w.trace.Sums()
	now := time.Since(w.began)
	w.past = slices.DeleteFunc(w.past, func(p pastSums) bool { return p.at < now-2*ending })
	w.past = append(w.past, pastSums{w.sums, now})
	if w.gpu != nil {
		w.gpu.sum(time.Since(w.began))
	}
}

// finish takes the last figures, even after an interrupt.
func (w *Session) finish(ctx context.Context) error {
	if err := w.trace.Settle(); err != nil {
		return err
	}
	if err := w.trace.Checkpoint(); err != nil {
		return err
	}
	if w.trace.Alive() {
		w.sum()
		w.look()
	} else {
		w.withoutLastLooks(time.Since(w.began))
		w.beforeTeardown()
	}
	w.sums.Ended = !w.running() && w.source.failed() == ""
	w.learn()
	if w.gpu != nil {
		return w.gpu.finish(ctx)
	}
	return nil
}

// interrupted takes the last figures after an interrupt. A command that was started here
// gets it, too: what it frees as it ends is not what it held.
func (w *Session) interrupted(ctx context.Context) error {
	if len(w.options.Command) == 0 {
		return w.finish(ctx)
	}
	if w.gpu != nil {
		return w.gpu.finish(ctx)
	}
	return nil
}

// pastSums are sums with their time in the trace.
type pastSums struct {
	*ledger.Sums
	at time.Duration
}

// ending is how long a process may take, before it ends, to free what it holds.
const ending = 3 * time.Second

// beforeTeardown goes back to the sums from before a process, which has ended, began to
// free what it held, and forgets the looks since then.
func (w *Session) beforeTeardown() {
	i := len(w.past) - 1
	for i > 0 && w.past[len(w.past)-1].at-w.past[i-1].at < ending && gaveBack(w.past[i-1].Sums, w.past[i].Sums) {
		i--
	}
	if i < 0 || i == len(w.past)-1 {
		return
	}
	w.sums = w.past[i].Sums
	for p, looks := range w.looks {
		w.looks[p] = slices.DeleteFunc(looks, func(o *footprint.Observation) bool { return o.At > w.past[i].at+checkEvery/2 })
	}
}

// withoutLastLooks forgets the looks shortly before a process ended, as long as there are enough
// others: what it gave back to malloc then is no memory that malloc keeps from it. A loaded machine
// takes longer to end it.
func (w *Session) withoutLastLooks(ended time.Duration) {
	for p, looks := range w.looks {
		for n := len(looks); n > minLooks; n-- {
			last := looks[n-1]
			if last.At <= ended-ending && (last.At <= ended-ended/10 || !freed(looks[n-2], last)) {
				break
			}
			w.looks[p] = looks[:n-1]
		}
	}
}

// freed reports whether a tenth of what the heap had in use was given back to malloc between two looks.
func freed(before, last *footprint.Observation) bool {
	use := func(o *footprint.Observation) uint64 { return o.System() - o.Free() }
	return 10*use(last) < 9*use(before)
}

// gaveBack reports whether much was unmapped between two sums.
func gaveBack(before, last *ledger.Sums) bool { return mapped(last) < mapped(before)-mapped(before)/10 }

func mapped(s *ledger.Sums) (bytes int64) {
	for i := range s.Uses {
		bytes += s.Uses[i].Live
	}
	return bytes
}
