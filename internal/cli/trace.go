package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strandline/face/report"
	"strandline/finding"
	"strandline/host/bpf"
	"strandline/host/event"
	"strandline/host/footprint"
	"strandline/host/hooks"
	"strandline/host/image"
	"strandline/host/ledger"
	"strandline/host/polling"
	"strandline/host/procfs"
	"strandline/host/ptrace"
	"strandline/host/recording"
	"strandline/host/symbolize"
	judgehost "strandline/judge/host"
)

type traceOptions struct {
	pid      int
	command  []string
	rung     string
	out      string
	duration time.Duration
	gpu      bool
	used     string
	device   int64 // bytes, of used; 0 if that is not given
	snapshot []string
}

func newTrace(g *globals) *cobra.Command {
	var o traceOptions
	c := &cobra.Command{
		Use:   "trace --pid N | trace -- CMD…",
		Short: "Tell what maps the memory by which a process grows",
		Long: `Watch a running process and its children, and tell which calls made the memory
by which they grow: mappings that nobody unmaps, the heap, the arenas of Python.
It sees the system calls themselves, and so also what no heap profiler can.

The process is not stopped and not changed. BPF programs in the kernel watch it,
and go when strandline ends, however it ends. They need root, or CAP_BPF,
CAP_PERFMON and CAP_SYS_PTRACE; without them a running process is only polled,
which tells how it grows and not why. ` + "`strandline doctor`" + ` says what this machine
allows.

A command behind -- is started and watched from its first call on. Where BPF is
not to be had it is traced by ptrace with a seccomp filter, which needs no
rights: each call that changes mappings then takes some 50 µs, programs cannot
become another user, and the command ends when strandline does (with BPF it runs
on). With --json its standard output goes to standard error.

With --gpu the memory that is taken from the GPU's driver is told, too, and by
whom: PyTorch, NCCL, cuBLAS, or a library of your own. The kernel then puts
breakpoints on the driver's functions in these processes, until strandline ends.
What the device holds beside that is told by nvidia-smi, where it is, or by
--device-used; and what PyTorch has reserved by a snapshot that the process
writes meanwhile (--snapshot, one for each process).`,
		Example: "  sudo strandline trace --pid 4242\n  sudo strandline trace --pid 4242 --duration 1h --out server.trace && strandline diagnose server.trace",
		Args:    cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.command = args
			if err := o.check(c); err != nil {
				return err
			}
			if err := onLinux(); err != nil {
				return err
			}
			return runTrace(c.Context(), g, o)
		},
	}
	c.Flags().IntVar(&o.pid, "pid", 0, "the process `N`")
	c.Flags().DurationVar(&o.duration, "duration", time.Minute, "watch for the time `D`, such as 30s or 10m; a command as long as it runs")
	c.Flags().StringVar(&o.rung, "rung", "", "see no more than `RUNG` does: bpf, ptrace (commands alone) or polling")
	c.Flags().BoolVar(&o.gpu, "gpu", false, "also tell what is taken from the GPU's driver (libcuda), and by whom; needs BPF")
	c.Flags().StringArrayVar(&o.snapshot, "snapshot", nil, "with --gpu: a snapshot `FILE` that the process writes by the end of the trace")
	c.Flags().StringVar(&o.used, "device-used", "", "with --gpu: how much of the device is used at the end, `SIZE`, where nvidia-smi does not tell")
	c.Flags().StringVar(&o.out, "out", "", "keep what is seen in a new `FILE`, for `strandline diagnose`, `view` and `export`")
	return c
}

// check tells what is wrong with the options.
func (o *traceOptions) check(c *cobra.Command) error {
	given := c.Flags().Changed("duration")
	if c.Flags().Changed("device-used") {
		var err error
		if o.device, err = sizeFlag("device-used", o.used); err != nil {
			return err
		}
	}
	switch {
	case c.Flags().Changed("pid") == (len(o.command) > 0):
		return errors.New("give a process (--pid N), or a command (-- CMD…)")
	case len(o.command) > 0 && c.ArgsLenAtDash() != 0:
		return fmt.Errorf("the command to run stands behind --: strandline trace -- %s", strings.Join(o.command, " "))
	case given && o.duration <= 0:
		return fmt.Errorf("--duration %s: nothing can be seen in no time", o.duration)
	case o.rung != "" && o.rung != rungBPF && o.rung != rungPtrace && o.rung != rungPoll:
		return fmt.Errorf("--rung %s: want bpf, ptrace or polling", o.rung)
	case o.rung == rungPtrace && len(o.command) == 0:
		return errors.New("--rung ptrace is for commands that are started: strandline trace --rung ptrace -- CMD…")
	case o.gpu && o.rung != "" && o.rung != rungBPF:
		return fmt.Errorf("--gpu needs BPF, and --rung %s does without", o.rung)
	case !o.gpu && (len(o.snapshot) > 0 || o.device > 0):
		return errors.New("--snapshot and --device-used are for traces with --gpu")
	case len(o.command) > 0 && !given:
		o.duration = forever
	}
	return nil
}

// forever is longer than any command runs.
const forever = 100 * 365 * 24 * time.Hour

func runTrace(ctx context.Context, g *globals, o traceOptions) error {
	if len(o.command) == 0 {
		p, err := reachable(o.pid)
		if err != nil {
			return err
		}
		o.pid = int(p)
	} else if own, _ := os.Readlink("/proc/self"); own != strconv.Itoa(os.Getpid()) {
		return errors.New("/proc is of another pid namespace than strandline, so that a command cannot be followed: mount its own (mount -t proc proc /proc)")
	}
	var out *recording.Writer
	if o.out != "" { // before a command is started
		var err error
		if out, err = recording.Create(o.out); err != nil {
			return err
		}
		defer out.Close()
	}
	names := symbolize.New()
	defer names.Close()
	source, rung, err := g.watcher(&o, names)
	if err != nil {
		return err
	}
	defer source.Close()
	t, err := ledger.NewTrace(procfs.Process(o.pid), source.Source, names)
	if err != nil {
		return reach(o.pid, err)
	}
	var gpu *gpuWatch
	if o.gpu {
		if gpu, err = watchGPU(ctx, t, source, rung, o.device); err != nil {
			return err
		}
	}
	source.begin()
	w := watch{g: g, trace: t, rung: rung, began: time.Now(), ends: o.duration, gpu: gpu, screen: g.screen(&o), launched: len(o.command) > 0}
	if gpu != nil {
		gpu.driver.Began = event.Now()
	}
	w.sum()
	if w.out = out; out != nil {
		header := recording.Header{PID: o.pid, Name: t.Processes[uint32(o.pid)].First.Name, Rung: rung, BeganUS: w.began.UnixMicro()}
		if err := out.Begin(header); err != nil {
			return err
		}
	}
	g.concludes.Store(true)
	if err := w.run(ctx); err != nil {
		return err
	}
	w.learn()
	whole := true
	if gpu != nil {
		if whole, err = gpu.finish(ctx, g, t, w.began, o.snapshot); err != nil {
			return err
		}
	}
	doc := w.document(w.grown())
	w.note(doc)
	w.clear()
	if err := g.print(doc, func(out io.Writer, s report.Style) { doc.Text(out, s) }); err != nil {
		return err
	}
	switch {
	case w.lost != nil:
		return w.lost
	case ctx.Err() != nil:
		return exit(exitInterrupted)
	case problems(doc.Findings):
		return exit(exitProblem)
	case !whole:
		return exit(exitPartial)
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
	rungBPF    = "bpf"
	rungPtrace = "ptrace"
	rungPoll   = "polling"
)

// A watcher is a source, and the command that it watches where one was started.
type watcher struct {
	event.Source
	begin, end func()
}

// Close ends the watching.
func (w watcher) Close() { w.end() }

// namer are the sources that can be told how a process's stacks are to be read.
type namer interface {
	LargeStacks(pid int) error
	Python(pid int, p event.PythonLayout) error
}

// watcher is the best that this machine and user can have, up to the rung that
// is asked for. A command is started, and waits until begin is called.
func (g *globals) watcher(o *traceOptions, names *symbolize.Symbolizer) (watcher, string, error) {
	tell := func(n namer) {
		names.Cut = func(pid int) { n.LargeStacks(pid) }
		names.Python = func(pid int, p event.PythonLayout) { n.Python(pid, p) }
		told := map[string]bool{} // its children run the same
		names.Unread = func(pid int, why error) {
			if !told[why.Error()] {
				told[why.Error()] = true
				g.warn("the functions of Python in process %d are not told: %v", pid, why)
			}
		}
	}
	if len(o.command) > 0 {
		if _, err := exec.LookPath(o.command[0]); err != nil {
			return watcher{}, "", err
		}
	}
	refused := error(nil)
	if o.rung == "" || o.rung == rungBPF {
		t, err := bpf.Start()
		if err == nil {
			tell(t)
			w := watcher{t, func() {}, t.Close}
			if len(o.command) > 0 {
				c, err := g.launch(o.command)
				if err != nil {
					t.Close()
					return w, "", err
				}
				o.pid, w.begin = c.pid, c.begin
			}
			return w, rungBPF, nil
		}
		if refused = err; o.rung == rungBPF {
			return watcher{}, "", err
		}
	}
	if len(o.command) > 0 && o.rung != rungPoll {
		exe, err := os.Executable()
		if err != nil {
			return watcher{}, "", err
		}
		if refused != nil {
			g.warn("BPF is not to be had: %v; the command is traced by ptrace, and slower", refused)
		}
		t, begin, err := ptrace.Start(exe, append([]string{filtered}, o.command...), os.Stdin, g.outputOfCommand(), os.Stderr)
		if err != nil {
			return watcher{}, "", err
		}
		tell(t)
		o.pid = t.PID
		end := func() {
			t.Close()
			if who := t.Nested(); who != "" {
				g.warn("%s wanted to trace a process itself and could not: with --rung ptrace strandline is its tracer; use --rung bpf, or trace the debugged process by its number", who)
			}
		}
		return watcher{t, begin, end}, rungPtrace, nil
	}
	if refused != nil {
		g.warn("only polling, which sees that memory grows and not what makes it grow: %v; `strandline doctor` says what to do", refused)
	}
	w := watcher{polling.Source{}, func() {}, func() {}}
	if len(o.command) > 0 {
		c, err := g.launch(o.command)
		if err != nil {
			return w, "", err
		}
		o.pid, w.begin = c.pid, c.begin
	}
	return w, rungPoll, nil
}

// outputOfCommand keeps the standard output for the document where it is JSON.
func (g *globals) outputOfCommand() *os.File {
	if g.json {
		return os.Stderr
	}
	return os.Stdout
}

// filtered is the hidden command by which this program becomes another that is
// traced.
const filtered = "run-filtered"

func newFiltered() *cobra.Command {
	return &cobra.Command{
		Use: filtered, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			const ready = 3
			return ptrace.Filtered(ready, args)
		},
	}
}

// A watch is one run of trace.
type watch struct {
	g        *globals
	trace    *ledger.Trace
	rung     string
	began    time.Time
	ends     time.Duration
	launched bool         // a command, which was started
	sums     *ledger.Sums // the latest, for when the process ends
	before   *ledger.Sums // those before them
	summed   time.Time    // when the latest were made
	gpu      *gpuWatch    // nil if the GPU's driver is not watched
	screen   *screen      // nil where no terminal can be drawn on
	told     time.Time    // when a line is next told where it cannot
	known    []hooks.Library
	looks    []*footprint.Observation
	out      *recording.Writer
	lost     error     // why the recording ended before the trace
	kept     time.Time // when a judgement was last put into it
}

const (
	pollEvery  = 50 * time.Millisecond
	checkEvery = time.Second
	// firstMarks is how far apart the moments are at which growth is judged; as the
	// ledger leaves out every second one when there are many, so does the clock.
	firstMarks = 250 * time.Millisecond
	// mostLooks at the process from outside are kept; they are firstLooks apart at
	// most, until there are more.
	mostLooks  = 6
	firstLooks = 10 * time.Second
	// tellEvery is how often a line says how things stand where nothing is drawn, at
	// first.
	tellEvery = time.Minute
	// share is how much of the time reckoning up may take.
	share = 20
)

// run follows the process until the time is over, the process ends or the user
// has seen enough.
func (w *watch) run(ctx context.Context) error {
	end := w.began.Add(w.ends)
	markEvery := firstMarks
	nextMark, nextCheck := w.began, w.began.Add(checkEvery)
	if !w.launched { // what comes next takes time, in which a process can grow
		w.look()
	}
	w.learn()
	if err := w.reckon(ctx); err != nil {
		return err
	}
	if len(w.looks) == 0 { // a command has become the program that it runs by now
		w.look()
	}
	lookEvery := min(w.ends/(mostLooks-1), firstLooks)
	nextLook := w.began.Add(lookEvery)
	for now := time.Now(); now.Before(end) && w.trace.Alive(); now = time.Now() {
		if !now.Before(nextMark) {
			had := len(w.trace.Ledger.Checkpoints())
			if err := w.trace.Checkpoint(); err != nil {
				return err
			}
			if len(w.trace.Ledger.Checkpoints()) < had {
				markEvery *= 2
			}
			nextMark = nextMark.Add(markEvery)
		}
		if !now.Before(nextCheck) {
			if err := w.reckon(ctx); err != nil {
				return err
			}
			took := time.Since(now)
			nextCheck = time.Now().Add(max(checkEvery, share*took))
			w.draw()
		}
		if !now.Before(nextLook) {
			if err := w.reckon(ctx); err != nil { // the look and the sums are of one moment
				return err
			}
			if w.look(); len(w.looks) == mostLooks {
				w.looks = slices.DeleteFunc(w.looks, everySecond())
				lookEvery *= 2
			}
			nextLook = time.Now().Add(max(lookEvery-time.Since(now), share*time.Since(now)))
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
func (w *watch) reckon(ctx context.Context) error {
	if err := w.trace.Check(); err != nil {
		return err
	}
	if w.trace.Alive() {
		w.sum()
		if w.gpu != nil {
			w.gpu.ask(ctx, time.Since(w.began))
		}
	}
	w.keep()
	return nil
}

// keep writes how things stand to the recording, and a judgement at first every
// five seconds and then ever more seldom.
func (w *watch) keep() {
	if w.out == nil {
		return
	}
	s, doc := w.sums, w.document(nil)
	w.record(func(to *recording.Writer) error {
		mark := recording.Mark{Seconds: doc.Duration, RSS: s.RSS, Anonymous: s.Anon, File: s.File, Shared: s.Shared, Drops: doc.Drops}
		if doc.GPU != nil {
			mark.GPU = doc.GPU.Owners
		}
		return to.Mark(mark, doc.Stacks)
	})
	const often, grows = 5 * time.Second, 4
	since := time.Since(w.began)
	if since < often || !w.kept.IsZero() && time.Since(w.kept) < max(often, since/grows) {
		return
	}
	w.kept = time.Now()
	w.note(doc)
}

// note writes a judgement to the recording, if there is one.
func (w *watch) note(doc *report.Trace) {
	w.record(func(to *recording.Writer) error {
		if w.gpu != nil {
			if err := to.GPU(w.gpu.state()); err != nil {
				return err
			}
		}
		return to.Document(&doc.Document)
	})
}

// record writes to the recording. Where that fails, as on a full disk, the trace
// goes on without it.
func (w *watch) record(write func(to *recording.Writer) error) {
	if w.out == nil || w.lost != nil {
		return
	}
	if w.lost = write(w.out); w.lost != nil {
		w.g.warn("the recording ends here, the trace goes on: %v", w.lost)
	}
}

// sum reckons up while there is something: the figures of before stay when the
// process ends.
func (w *watch) sum() {
	w.before, w.sums, w.summed = w.sums, w.trace.Sums(), time.Now()
	if w.gpu != nil {
		w.gpu.sum(time.Since(w.began))
	}
}

func (w *watch) finish() error {
	if err := w.trace.Sure(); err != nil {
		return err
	}
	if err := w.trace.Checkpoint(); err != nil {
		return err
	}
	if w.trace.Alive() {
		w.sum()
		w.look()
	} else if time.Since(w.summed) < ending && gaveBack(w.before, w.sums) {
		w.sums = w.before
	}
	return nil
}

// ending is how long a process may take to free what it has before it ends.
const ending = 300 * time.Millisecond

// gaveBack tells whether much was unmapped between two sums: of a process that ended
// then, they tell of its end and not of its growth.
func gaveBack(before, last *ledger.Sums) bool {
	return before != nil && mapped(last) < mapped(before)-mapped(before)/10
}

func mapped(s *ledger.Sums) (bytes int64) {
	for i := range s.Uses {
		bytes += s.Uses[i].Live
	}
	return bytes
}

// lives tells whether the process still runs: its number can be given to another.
func (w *watch) lives() bool { return !w.trace.Processes[uint32(w.trace.Root)].Ended }

// learn looks for libraries that hook memory functions. It is done first and
// last: the process can end, and can load more.
func (w *watch) learn() {
	if !w.lives() {
		return
	}
	if known := knownLibraries(int(w.trace.Root)); known != nil {
		w.known = known
	}
}

// look looks at the process from outside, if it still runs.
func (w *watch) look() {
	o, err := footprint.Observe(w.trace.Root)
	if err != nil || !w.lives() {
		return
	}
	if w.rung != rungPoll && w.sums != nil {
		var n uint64
		for i := range w.sums.Uses {
			if u := &w.sums.Uses[i]; u.Op == event.Remap {
				n += uint64(u.Live)
			}
		}
		o.Remapped = &n
	}
	o.At = time.Since(w.began)
	// A last look that follows close upon another takes its place.
	if n := len(w.looks); n > 2 && 2*(o.At-w.looks[n-1].At) < w.looks[n-1].At-w.looks[n-2].At {
		w.looks = w.looks[:n-1]
	}
	w.looks = append(w.looks, o)
}

// everySecond tells every second of some in a row, from the second on.
func everySecond() func(*footprint.Observation) bool {
	odd := true
	return func(*footprint.Observation) bool {
		odd = !odd
		return odd
	}
}

// grown is what the looks from the first to the last tell; nil if the process
// ended too soon.
func (w *watch) grown() *footprint.Growth {
	if len(w.looks) < 2 {
		return nil
	}
	memory, err := w.trace.Root.Memory()
	if err != nil || !w.lives() {
		return footprint.Over(w.looks, nil)
	}
	defer memory.Close()
	return footprint.Over(w.looks, memory)
}

func (w *watch) document(looks *footprint.Growth) *report.Trace {
	found := judgehost.Host(w.sums, looks, w.known)
	doc := report.NewTrace(w.trace, w.sums, found, w.rung, time.Since(w.began))
	if w.gpu != nil {
		w.gpu.document(&doc.Document)
	}
	return doc
}

// draw shows the figures so far, if a person looks.
func (w *watch) draw() {
	switch {
	case w.screen != nil:
		w.screen.draw(func(rows int) []string { return w.document(nil).Live(w.g.env.style(), rows) })
	case !w.g.json && !time.Now().Before(w.told):
		since := time.Since(w.began)
		if !w.told.IsZero() {
			w.g.warn("%s", w.document(nil).Headline())
		}
		w.told = time.Now().Add(max(tellEvery, since))
	}
}

func (w *watch) clear() {
	if w.screen != nil {
		w.screen.clear()
	}
}

// knownLibraries are those in a process that hook memory functions; none of one
// that cannot be read any more.
func knownLibraries(pid int) []hooks.Library {
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
	found, err := hooks.Find(im, pages)
	if err != nil {
		return nil
	}
	return found.Libraries
}
