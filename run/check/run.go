// Package check runs a command and measures the memory of its processes over its steps,
// for package gate to judge: from outside by the kernel's figures, from inside by what
// the recorder's Python module records, and by PyTorch's snapshots. It reads no flags
// and prints nothing.
package check

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"sync/atomic"

	"time"

	"strandline/face/report"
	"strandline/host/calls/malloc"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/levels"
	"strandline/judge/processes"
	"strandline/record"
	"strandline/run/trace"
)

// Options state what is run and what its steps are.
type Options struct {
	Command []string
	Env     []string // of the command
	Dir     string   // of the recording, absolute
	Device  bool     // have processes with a device write snapshots
	// Steps is what processes count as a step: see [record.Options]; time for none.
	Steps string
	// Line matches a line of the command's output that ends a step; nil for none.
	Line     *regexp.Regexp
	Stdout   *os.File
	Only     string // see [Measured]
	Manifest record.Manifest
	// Look is called about once a second with what is known so far; it reports whether
	// to stop the command. Nil for none.
	Look func(*Measured) bool
	// Lines has the line of a leak on the host looked for, as soon as the command leaks
	// according to these limits; nil for not.
	Lines Limits
	// Interrupted is called at the first SIGINT or SIGTERM, which the command gets, too; a
	// second one kills it. Nil for nothing.
	Interrupted func()
	// Most is how long the command may run before it is stopped; 0 for no limit.
	Most time.Duration
}

// Measured is what is known of a command's memory.
type Measured struct {
	levels  [][]record.StepLevel // by process
	Samples levels.Samples
	lines   int // how many ended a step
	began   time.Time
	growing []record.Growing // what Python processes traced
	// traces are the times in which a Python process without steps traced its allocations,
	// so that its levels are not those of the program alone.
	traces []interval
	// only names in words what the steps must be counted by, so that nothing is judged
	// by time instead; "" if they need not be counted.
	only string
	// guessed reports whether a program in which no steps are seen is judged by time although
	// nobody asked for that.
	guessed bool
}

// A Run is a command that has ended.
type Run struct {
	Measured
	command  []string
	Status   int  // exit status, 128+n for signal n
	Signaled bool // a signal ended it
	Error    error
	lasted   time.Duration
	Manifest *record.Manifest
	// Stopped reports whether the command was stopped by Look or after Most, so that
	// Status is not its own.
	Stopped bool
	// Interrupted reports whether it was interrupted before its end, and Killed whether it
	// was killed then, by a second interrupt.
	Interrupted, Killed bool
	// unseen are the processes that use PyTorch's device and did not load the recorder, and
	// others those that use a device without PyTorch.
	unseen, others []record.Note
	// left are the processes of the command that are still running after it ended.
	left []procfs.Process
	// traced is what a trace of the command found; nil if it was not traced, with the
	// reason in untraced.
	traced   *report.Trace
	untraced error
	// kept is what a process allocated by malloc and did not free until a time, and in which
	// spans; nil if that was not sampled.
	kept func(pid int, until time.Time) ([]malloc.Kept, []malloc.Span)
	// containers are those of a Python process that grew while it was traced.
	containers func(pid int) []processes.Container
}

// Do runs a command to its end. The error is one of the set-up; if the command cannot be
// run, the result holds that error.
func Do(ctx context.Context, o Options) (*Run, error) {
	session, err := record.Begin(record.Options{Dir: o.Dir, Levels: o.Steps, Steps: recorderSteps(o.Steps), Entries: entries, NoSnapshots: !o.Device}, o.Manifest)
	if err != nil {
		return nil, err
	}
	env, err := session.Environ(o.Env)
	if err != nil {
		return nil, err
	}
	var mallocs *malloc.Sampling // nil where calls of malloc cannot be sampled
	if o.Lines != nil {
		if mallocs, err = malloc.New(); err == nil {
			defer mallocs.Close()
			env = mallocs.Environ(env)
		}
	}
	r := &Run{Measured: Measured{began: time.Now(), only: o.Only, guessed: o.Steps == "auto"}, command: o.Command}
	w := &watch{o: o, run: r, session: session, mallocs: mallocs, running: make(chan struct{}), stop: make(chan struct{})}
	command := record.Command{Args: o.Command, Env: env, Stdout: o.Stdout, Stop: w.stop, Started: w.started, Look: w.look, Every: often, Interrupted: w.interrupted}
	finish := func() {}
	if o.Line != nil {
		if command.Stdout, finish, err = w.lines(); err != nil {
			return nil, err
		}
	}
	r.Status, r.Error = command.Run()
	r.Signaled = command.Signaled
	r.lasted = time.Since(r.began)
	finish()
	if s := w.sampler.Load(); s != nil {
		s.Close()
	}
	if w.follower != nil {
		r.traced, r.untraced = w.follower.Close()
		r.containers = w.follower.Containers
	}
	if mallocs != nil {
		mallocs.Sample(false)
		r.kept = mallocs.Kept
	}
	w.measure()
	if !r.Killed {
		r.left = left(session, r.lasted)
	}
	if r.Manifest, err = session.End(r.Status); err != nil {
		return nil, fmt.Errorf("the recording is not complete: %w", err)
	}
	r.unseen, r.others = session.Unseen, session.Others
	return r, nil
}

// entries bounds the history of a device, whose events take host memory until that many
// are recorded: with more, the history would look like a leak for longer.
const entries = 10_000

// recorderSteps returns the kind of steps as the recorder of snapshots knows it.
func recorderSteps(steps string) string {
	switch steps {
	case "auto", "call", "optimizer", "time":
		return ""
	}
	return steps
}

// A watch follows a command while it runs.
type watch struct {
	o       Options
	run     *Run
	session *record.Session
	mallocs *malloc.Sampling               // nil for none
	sampler atomic.Pointer[levels.Sampler] // nil until the command runs
	running chan struct{}                  // closed when the sampler has been set
	steps   atomic.Int64                   // lines that ended a step
	stop    chan struct{}
	looked  time.Time // when processes were looked for last
	// What was done to name a line: the trace, nil if there is none, and the steps at which
	// processes were asked last.
	follower *trace.Follower
	asked    int
	next     time.Time // when the levels are judged next
	periods  periods
}

func (w *watch) started(pid int) {
	w.sampler.Store(levels.Start(pid))
	close(w.running)
}

// interrupted is called at each signal that is to end the command.
func (w *watch) interrupted(n, pid int) {
	w.run.Interrupted = true
	if n == 1 {
		if w.o.Interrupted != nil {
			w.o.Interrupted()
		}
		return
	}
	w.run.Killed = true
	root := procfs.Process(pid)
	others, _ := w.session.Running(time.Since(w.run.began))
	children, _ := root.Descendants()
	for _, p := range slices.Concat([]procfs.Process{root}, children, others) {
		if p, err := os.FindProcess(int(p)); err == nil {
			p.Kill()
		}
	}
}

// often is how often a command is looked at for what it leaks.
const often = 50 * time.Millisecond

// look is called often.
func (w *watch) look(pid int) {
	w.suspect(pid)
	w.endPeriod()
	w.sampleMallocs()
	if time.Since(w.looked) < time.Second {
		return
	}
	w.looked = time.Now()
	w.session.Look(pid)
	enough := w.o.Most > 0 && time.Since(w.run.began) > w.o.Most
	if w.o.Look != nil && !enough && !w.run.Stopped {
		w.measure()
		enough = w.o.Look(&w.run.Measured) && !w.looking()
	}
	if enough && !w.run.Stopped {
		w.run.Stopped = true
		close(w.stop)
	}
}

// measure reads what is known so far.
func (w *watch) measure() {
	w.run.levels, w.run.growing = w.session.Levels(), w.session.Growing()
	w.run.lines = int(w.steps.Load())
	if s := w.sampler.Load(); s != nil {
		w.run.Samples = s.Samples()
	}
}

// lines returns a file for the command's output, which is passed on and in which matching
// lines end a step. The second result waits for the end of the output.
func (w *watch) lines() (*os.File, func(), error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	shrink(to)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.passOn(from)
	}()
	return to, func() {
		to.Close()
		from.SetReadDeadline(time.Now().Add(time.Second)) // a process that is still running may hold it open
		<-done
		from.Close()
	}, nil
}

// passOn copies the command's output and counts steps. Only the beginning of a very long
// line is examined. Memory is measured when no further line is waiting to be read, since
// the command is ahead of lines that are.
func (w *watch) passOn(from io.Reader) {
	in := bufio.NewReaderSize(from, 64<<10)
	begins := true // what comes next is the beginning of a line
	for {
		line, err := in.ReadSlice('\n')
		w.o.Stdout.Write(line)
		began := begins
		begins = err == nil
		if began && w.o.Line.Match(bytes.TrimRight(line, "\r\n")) {
			<-w.running // there is no line before the command runs
			n := w.steps.Add(1)
			if next, _ := in.Peek(in.Buffered()); !bytes.Contains(next, []byte("\n")) {
				w.sampler.Load().Step(int(n))
			}
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// left returns the processes on this machine that belong to a session, which lasted until
// now: they inherited its environment. A helper that ends once it sees that the command
// has ended, such as the resource tracker of Python's multiprocessing, is waited for.
func left(session *record.Session, lasted time.Duration) []procfs.Process {
	const patience = 2 * time.Second // also for a process to begin its program
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		out, unclear := session.Running(lasted + time.Since(began))
		if len(out) == 0 && !unclear || time.Since(began) > patience {
			return out
		}
	}
}
