package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"strandline/bpf"
	"strandline/detect"
	"strandline/finding"
	"strandline/footprint"
	"strandline/hostleak"
	"strandline/image"
	"strandline/procfs"
	"strandline/recording"
	"strandline/report"
)

type traceOptions struct {
	pid      int
	out      string
	duration time.Duration
}

func newTrace(g *globals) *cobra.Command {
	var o traceOptions
	c := &cobra.Command{
		Use:   "trace --pid N",
		Short: "Tell what maps the memory by which a process grows",
		Long: `Watch a running process and its children, and tell which calls made the memory
by which they grow: mappings that nobody unmaps, the heap, the arenas of Python.
It sees the system calls themselves, and so also what no heap profiler can.

The process is not stopped and not changed. BPF programs in the kernel watch it,
and go when strandline ends, however it ends. They need root, or CAP_BPF,
CAP_PERFMON and CAP_SYS_PTRACE; without them the process is only polled, which
tells how it grows and not why. ` + "`strandline doctor`" + ` says what this machine allows.`,
		Example: "  sudo strandline trace --pid 4242\n  sudo strandline trace --pid 4242 --duration 1h --out server.trace && strandline diagnose server.trace",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := onLinux(); err != nil {
				return err
			}
			if o.duration <= 0 {
				return fmt.Errorf("--duration %s: nothing can be seen in no time", o.duration)
			}
			return runTrace(c.Context(), g, o)
		},
	}
	c.Flags().IntVar(&o.pid, "pid", 0, "the process `N`")
	c.Flags().DurationVar(&o.duration, "duration", time.Minute, "watch for the time `D`, such as 30s or 10m")
	c.Flags().StringVar(&o.out, "out", "", "keep what is seen in a new `FILE`, for `strandline diagnose` and `export`")
	c.MarkFlagRequired("pid")
	return c
}

func runTrace(ctx context.Context, g *globals, o traceOptions) error {
	names := hostleak.NewNames()
	defer names.Close()
	source, rung := g.watcher(names)
	defer source.Close()
	t, err := hostleak.NewTrace(procfs.Process(o.pid), source, names)
	if err != nil {
		return reach(o.pid, err)
	}
	w := watch{g: g, trace: t, rung: rung, began: time.Now(), ends: o.duration}
	if o.out != "" {
		header := recording.Header{PID: o.pid, Name: t.Processes[uint32(o.pid)].First.Name, Rung: rung, BeganUS: w.began.UnixMicro()}
		if w.out, err = recording.Create(o.out, header); err != nil {
			return err
		}
		defer w.out.Close()
	}
	if err := w.run(ctx); err != nil {
		return err
	}
	doc := w.document(w.grown(), knownLibraries(o.pid))
	if w.out != nil {
		if err := w.out.Document(&doc.Document); err != nil {
			return err
		}
	}
	w.clear()
	if err := g.print(doc, func(out io.Writer, s report.Style) { doc.Text(out, s) }); err != nil {
		return err
	}
	switch {
	case ctx.Err() != nil:
		return exit(exitInterrupted)
	case problems(doc.Findings):
		return exit(exitProblem)
	}
	return nil
}

func problems(some []finding.Finding) bool {
	for _, f := range some {
		if f.Severity == finding.Problem {
			return true
		}
	}
	return false
}

// The rungs of the ladder: how much can be seen.
const (
	rungBPF  = "bpf"
	rungPoll = "polling"
)

// A watcher is a source that can be closed.
type watcher interface {
	hostleak.Source
	Close()
}

// watcher is the best that this machine and user can have.
func (g *globals) watcher(names *hostleak.Names) (watcher, string) {
	t, err := bpf.Start()
	if err != nil {
		g.warn("only polling, which sees that memory grows and not what makes it grow: %v; `strandline doctor` says what to do", err)
		return hostleak.Poller{}, rungPoll
	}
	names.Cut = func(pid int) { t.LargeStacks(pid) }
	names.Python = func(pid int, p bpf.Python) { t.Python(pid, p) }
	return t, rungBPF
}

// A watch is one run of trace.
type watch struct {
	g     *globals
	trace *hostleak.Trace
	rung  string
	began time.Time
	ends  time.Duration
	sums  *hostleak.Sums // the latest, for when the process ends
	lines int            // that the live view has drawn
	looks []*footprint.Observation
	out   *recording.Writer
	kept  time.Time // when a judgement was last put into it
}

const (
	pollEvery  = 50 * time.Millisecond
	checkEvery = time.Second
	// marks are how many moments growth is judged at.
	marks     = 24
	markLeast = 250 * time.Millisecond
	// share is how much of the time reckoning up may take.
	share = 20
)

// run follows the process until the time is over, the process ends or the user
// has seen enough.
func (w *watch) run(ctx context.Context) error {
	end := w.began.Add(w.ends)
	markEvery := max(w.ends/marks, markLeast)
	nextMark, nextCheck := w.began, w.began.Add(checkEvery)
	if err := w.reckon(); err != nil {
		return err
	}
	w.look()
	for now := time.Now(); now.Before(end) && w.trace.Alive(); now = time.Now() {
		if !now.Before(nextMark) {
			nextMark = nextMark.Add(markEvery)
			if err := w.trace.Mark(); err != nil {
				return err
			}
		}
		if !now.Before(nextCheck) {
			if err := w.reckon(); err != nil {
				return err
			}
			took := time.Since(now)
			nextCheck = time.Now().Add(max(checkEvery, share*took))
			w.draw()
		}
		if len(w.looks) == 1 && now.Sub(w.began) >= w.ends/2 {
			w.look()
		}
		select {
		case <-ctx.Done():
			return w.finish()
		case <-time.After(min(pollEvery, time.Until(end))):
		}
		if err := w.trace.Step(); err != nil {
			return err
		}
	}
	return w.finish()
}

// reckon holds the ledger against the kernel's list and keeps the sums.
func (w *watch) reckon() error {
	if err := w.trace.Check(); err != nil {
		return err
	}
	if w.trace.Alive() {
		w.sums = w.trace.Sums()
	}
	return w.keep()
}

// keep writes how things stand to the recording, and a judgement at first every
// ten seconds and then ever more seldom.
func (w *watch) keep() error {
	if w.out == nil {
		return nil
	}
	s, doc := w.sums, w.document(nil, nil)
	mark := recording.Mark{Seconds: doc.Duration, RSS: s.RSS, Anonymous: s.Anon, File: s.File, Shared: s.Shared, Drops: doc.Drops}
	if err := w.out.Mark(mark, doc.Stacks); err != nil {
		return err
	}
	const often, grows = 10 * time.Second, 4
	since := time.Since(w.began)
	if since < often || !w.kept.IsZero() && time.Since(w.kept) < max(often, since/grows) {
		return nil
	}
	w.kept = time.Now()
	return w.out.Document(&doc.Document)
}

func (w *watch) finish() error {
	if err := w.trace.Sure(); err != nil {
		return err
	}
	if err := w.trace.Mark(); err != nil {
		return err
	}
	if w.trace.Alive() {
		w.sums = w.trace.Sums()
		w.look()
	}
	return nil
}

// look looks at the process from outside, if it still runs.
func (w *watch) look() {
	o, err := footprint.Observe(w.trace.Root)
	if err != nil {
		return
	}
	if w.rung == rungBPF && w.sums != nil {
		var n uint64
		for i := range w.sums.Uses {
			if u := &w.sums.Uses[i]; u.Op == bpf.Remap {
				n += uint64(u.Live)
			}
		}
		o.Remapped = &n
	}
	w.looks = append(w.looks, o)
}

// grown is what the looks from the first to the last tell; nil if the process
// ended too soon.
func (w *watch) grown() *footprint.Growth {
	if len(w.looks) < 2 {
		return nil
	}
	memory, err := w.trace.Root.Memory()
	if err != nil {
		return footprint.Over(w.looks, nil)
	}
	defer memory.Close()
	return footprint.Over(w.looks, memory)
}

func (w *watch) document(looks *footprint.Growth, known []hostleak.Known) *report.Trace {
	return report.NewTrace(w.trace, w.sums, detect.Host(w.sums, looks, known), w.rung, time.Since(w.began))
}

// draw shows the figures so far, if a person looks.
func (w *watch) draw() {
	if !w.g.env.StdoutTerminal || w.g.json {
		return
	}
	w.clear()
	doc := w.document(nil, nil)
	w.lines = doc.Live(report.PrintableWriter(w.g.env.Stdout), w.g.env.style())
}

func (w *watch) clear() {
	if w.lines > 0 {
		fmt.Fprintf(w.g.env.Stdout, "\x1b[%dA\x1b[J", w.lines)
	}
	w.lines = 0
}

// knownLibraries are those in a process that hook memory functions; none of one
// that cannot be read any more.
func knownLibraries(pid int) []hostleak.Known {
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(procfs.Process(pid), files)
	if err != nil {
		return nil
	}
	defer im.Close()
	pages, err := im.Process.Pages()
	if err != nil {
		return nil
	}
	defer pages.Close()
	found, err := hostleak.FindHooks(im, pages)
	if err != nil {
		return nil
	}
	return found.Known
}
