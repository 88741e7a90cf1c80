package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"strandline/face/report"
	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/internal/secret"
	"strandline/internal/shell"
	"strandline/judge/processes"
	"strandline/run/trace"
)

type traceOptions struct {
	pid      int
	command  []string
	backend  string
	out      string
	maxSize  string // how large the file of out may become
	size     int64  // the same in bytes
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
		Short: "Find the calls that make a process grow",
		Long: `Watch a process and its children, and name the calls behind their growth:
mappings that are never unmapped, the heap, Python's arenas. strandline sees the
system calls themselves, and so more than heap profilers do.

With BPF and without --gpu, the process is neither stopped nor changed. BPF
programs in the kernel watch it until strandline ends, however it ends. They
need root, or CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE. Otherwise a running
process is only polled, which shows how it grows but not why.
` + "`" + `strandline doctor` + "`" + ` reports the limits of this machine.

A command after -- is watched from its first call on. Without BPF, ptrace and a
seccomp filter watch it; they need no privileges. Each call that changes mappings
then takes about 50 µs. Such a program cannot become another user, and ends when
strandline does. With --json, its standard output goes to standard error.

--gpu also lists memory taken from the GPU driver, by owner: PyTorch, NCCL,
cuBLAS or your library. The kernel sets breakpoints on driver functions in these
processes until strandline ends. Give --device-used where nvidia-smi is missing.
PyTorch's share comes from a snapshot that each process writes meanwhile
(--snapshot).

Exit status: 0 no leak; 1 leak; 125 undecided; 4 the command itself failed, and
nothing leaks; 2 wrong usage; 3 snapshot partly readable; 130 interrupted.`,
		Example: `  sudo strandline trace --pid 4242
  sudo strandline trace --pid 4242 --duration 1h --out server.trace
  strandline trace -- python train.py
  strandline diagnose server.trace`,
		Args: cobra.ArbitraryArgs,
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
	c.Flags().DurationVar(&o.duration, "duration", time.Minute, "watch for the time `D`, such as 30s or 10m (a command: until it ends)")
	c.Flags().StringVar(&o.backend, "backend", "", "use `BACKEND`: bpf, ptrace (commands only) or polling")
	c.Flags().StringVar(&o.backend, "rung", "", "the former name of --backend")
	c.Flags().MarkHidden("rung")
	c.Flags().BoolVar(&o.gpu, "gpu", false, "also list GPU driver memory (libcuda) by owner; needs BPF")
	c.Flags().StringArrayVar(&o.snapshot, "snapshot", nil, "with --gpu: a snapshot `FILE` that the process writes meanwhile")
	c.Flags().StringVar(&o.used, "device-used", "", "with --gpu: the `SIZE` used of the device at the end, where nvidia-smi does not report it")
	c.Flags().StringVar(&o.out, "out", "", "record to a new `FILE`, for diagnose, view and export")
	c.Flags().StringVar(&o.maxSize, "max-size", "256MiB", "with --out: limit the file to `SIZE`; moments become rarer")
	return c
}

// check returns what is wrong with the options.
func (o *traceOptions) check(c *cobra.Command) error {
	given := c.Flags().Changed("duration")
	if c.Flags().Changed("device-used") {
		var err error
		if o.device, err = sizeFlag("device-used", o.used); err != nil {
			return err
		}
	}
	var err error
	if o.size, err = fileSizeFlag("max-size", o.maxSize); err != nil {
		return err
	}
	switch {
	case c.Flags().Changed("max-size") && o.out == "":
		return errMaxSize
	case c.Flags().Changed("pid") == (len(o.command) > 0):
		return errors.New("give a process (--pid N), or a command (-- CMD…)")
	case len(o.command) > 0 && c.ArgsLenAtDash() != 0:
		return fmt.Errorf("the command to run must follow --: strandline trace -- %s", shell.Line(secret.Args(o.command)...))
	case given && o.duration <= 0:
		return fmt.Errorf("--duration %s: want a time above 0", o.duration)
	case o.backend != "" && o.backend != trace.BPF && o.backend != trace.Ptrace && o.backend != trace.Polling:
		return fmt.Errorf("--backend %s: want bpf, ptrace or polling", o.backend)
	case o.backend == trace.Ptrace && len(o.command) == 0:
		return errors.New("--backend ptrace is only for a command to start: strandline trace --backend ptrace -- CMD…")
	case o.gpu && o.backend != "" && o.backend != trace.BPF:
		return fmt.Errorf("--gpu needs BPF; --backend %s does not use it", o.backend)
	case !o.gpu && (len(o.snapshot) > 0 || o.device > 0):
		return errors.New("--snapshot and --device-used need --gpu")
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
		return errors.New("/proc belongs to another pid namespace than strandline, so a command cannot be followed: mount the right one (mount -t proc proc /proc)")
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	screen := g.screen(&o)
	options := trace.Options{
		PID: o.pid, Command: o.command, Backend: o.backend, Duration: o.duration, GPU: o.gpu, Used: o.device,
		Helper: []string{exe, filtered}, Stdout: g.outputOfCommand(), Warn: g.warn, Progress: g.progressOf(screen),
	}
	if o.out != "" { // before a command is started
		if options.Out, err = recording.Create(o.out, o.size); err != nil {
			return err
		}
		defer options.Out.Close()
	}
	s, err := trace.Start(ctx, options)
	if failed := (*trace.ProcessError)(nil); errors.As(err, &failed) {
		return reach(failed.PID, failed.Err)
	}
	if err != nil {
		return err
	}
	defer s.Close()
	g.concludes.Store(true)
	if err := s.Run(ctx); err != nil {
		return err
	}
	snapshots, whole := g.writtenMeanwhile(ctx, s.Began(), o.snapshot)
	doc := s.Document(snapshots)
	if screen != nil {
		screen.clear()
	}
	if err := g.print(doc, func(out io.Writer, s report.Style) { doc.Text(out, s) }); err != nil {
		return err
	}
	switch {
	case s.Lost() != nil:
		return s.Lost()
	case ctx.Err() != nil:
		return exit(exitInterrupted)
	case problems(doc.Findings):
		return exit(exitProblem)
	}
	if how := s.CommandFailed(); how != "" {
		g.warn("%s failed by itself: %s", o.command[0], how)
		return exit(exitCommand)
	}
	switch {
	case !whole:
		return exit(exitPartial)
	case processes.Undecided(doc.Findings):
		if len(o.command) > 0 {
			g.warn("it cannot be decided yet whether this is a leak: let the command do more work")
		} else {
			g.warn("it cannot be decided yet whether this is a leak: let it run, and trace it, for longer")
		}
		return exit(exitCannotJudge)
	}
	return nil
}

// progressOf shows the figures so far on a terminal: on a screen, otherwise as a
// line, once a minute at first.
func (g *globals) progressOf(screen *screen) func(now func() *report.Trace) {
	const every = time.Minute
	began, next := time.Now(), time.Time{}
	return func(now func() *report.Trace) {
		switch {
		case screen != nil:
			screen.draw(func(rows int) []string { return now().Live(g.style(), rows) })
		case !g.json && !time.Now().Before(next):
			if !next.IsZero() {
				g.warn("%s", now().Headline())
			}
			next = time.Now().Add(max(every, time.Since(began)))
		}
	}
}

func problems(some []finding.Finding) bool {
	return slices.ContainsFunc(some, func(f finding.Finding) bool { return f.Severity == finding.Problem })
}

// outputOfCommand keeps the standard output for the document where it is JSON.
func (g *globals) outputOfCommand() *os.File {
	if g.json {
		return os.Stderr
	}
	return os.Stdout
}

// filtered is the hidden command that replaces this program by another that is
// traced.
const filtered = "run-filtered"

func newFiltered() *cobra.Command {
	return &cobra.Command{
		Use: filtered, Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			return trace.Become(args)
		},
	}
}
