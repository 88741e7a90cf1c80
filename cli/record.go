package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strandline/host/gpu/nvsmi"
	"strandline/internal/lazyregexp"
	"strandline/internal/safefile"
	"strandline/internal/secret"
	"strandline/internal/shell"
	"strandline/pausable"
	"strandline/record"
	"strandline/units"
)

// Exit statuses of a command that cannot be run, as shells have them.
const (
	exitCannotExecute = 126
	exitNotFound      = 127
)

type recordOptions struct {
	dir                                string
	every, above, maxSize, reclaim, on string
	module                             string
	progress, status                   bool
	command                            []string
	record                             record.Options
	signal                             os.Signal
	pid                                int           // 0 to run the command
	duration                           time.Duration // of a recording of the process
}

func newRecord(g *globals) *cobra.Command {
	var o recordOptions
	c := &cobra.Command{
		Use:   "record [-o DIR] -- CMD… | record [-o DIR] --pid N",
		Short: "Run a command and record its PyTorch memory",
		Long: `Run a command, and record the memory history of every PyTorch process that it
starts. Your program stays unchanged, and so do its output, exit status and
signals. At the end strandline judges the snapshots. Diagnose, compare and view
read the folder DIR at any time.

Snapshots come half a second after a device is initialized, then at intervals
that double up to 10 minutes (or --every), at the end of an optimizer step where
there is one. One is taken when memory runs out, before the program learns of
it, and one at exit. ` + "`" + `strandline snapshot --pid N` + "`" + ` takes one now.

A process keeps the last --entries events of a device, with Python stacks. That
costs 45 MiB of main memory, and 110 MiB more while it writes. --max-files and
--max-bytes drop intermediate snapshots first; requested ones, OOMs and those
above a level stay.

--pid records a running process from outside, without preparation. Kernel probes
see the allocator's requests; nothing runs in the process. This needs root, or
CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE. ` + "`" + `strandline doctor --pid N` + "`" + ` lists what
a process offers.

The guide has the lines for verl, vLLM, SGLang, torchtitan, Ray and others.

Exit status: the command's own, or 128+n if signal n ended it; 126 or 127 if it
cannot run; 2 wrong usage. With --pid: 0; 3 partial recording; 2 the process
cannot be recorded; 130 interrupted (the recording up to then is written).`,
		Example: `  strandline record -- python train.py
  strandline record -o rec --every 10steps -- torchrun train.py
  strandline record --above 70GiB -- vllm serve Qwen/Qwen3-8B
  strandline record --status
  sudo strandline record --pid 4242 --duration 60s -o rec`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.command = args
			switch {
			case o.status:
				return recordStatus(c.Context(), g, args)
			case o.module != "":
				return writeModule(o.module)
			}
			if err := o.check(c); err != nil {
				return err
			}
			if o.pid != 0 {
				return recordOutside(c.Context(), g, &o)
			}
			return runRecord(c.Context(), g, &o)
		},
	}
	o.flags(c)
	return c
}

// writeModule writes the Python module into a folder, and into it the library of pausable
// memory where there is one for this system.
func writeModule(dir string) error {
	if err := record.WriteModule(dir); err != nil {
		return err
	}
	library, err := pausable.Library()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	folder, err := safefile.MakeSharedFolder(dir)
	if err != nil {
		return err
	}
	defer folder.Close()
	if err := folder.Replace(filepath.Join("strandline", pausable.Name), library); err != nil {
		return err
	}
	// Programs look for it here, to preload it.
	alias := filepath.Join("strandline", "stand_in", "torch_memory_saver_hook_mode_preload.abi3.so")
	if err := folder.Link(filepath.Join("..", pausable.Name), alias); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func (o *recordOptions) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVarP(&o.dir, "out", "o", "", "record into the new folder `DIR`")
	f.StringVar(&o.every, "every", "", "take a snapshot each `INTERVAL`, such as 30s or 10steps")
	f.StringVar(&o.record.Steps, "steps", "", "count each end of an annotation, or each call of a function, as a step: `annotation:NAME` or MODULE:FUNCTION")
	f.StringVar(&o.above, "above", "", "take a snapshot when a process reserves `SIZE` of a device")
	f.StringVar(&o.on, "signal", "", "when strandline gets the signal `NAME`, such as USR2, take a snapshot of every process")
	f.IntVar(&o.record.Entries, "entries", 0, "keep the last `N` events of each device (default 100000)")
	f.StringVar(&o.record.Stacks, "stacks", "", "record stacks of `KIND`: python, or all (C++ too; a snapshot then takes minutes) (default python)")
	f.IntVar(&o.record.MaxFiles, "max-files", 0, "keep at most `N` snapshots of a process (default 24)")
	f.StringVar(&o.maxSize, "max-bytes", "", "keep at most `SIZE` of snapshots in total (default 20GiB)")
	f.StringVar(&o.reclaim, "reclaim", "", "give unused memory back at `WHEN`: every=100steps, every=30s, after=NAME (an annotation), or above=40GiB")
	f.BoolVar(&o.progress, "progress", false, "print progress while the command runs (default on a terminal)")
	f.BoolVar(&o.status, "status", false, "list the recorded processes of this machine, or of the folders that follow")
	f.IntVar(&o.pid, "pid", 0, "record the running process `N` from outside")
	f.DurationVar(&o.duration, "duration", time.Minute, "with --pid: record for the time `D`, such as 30s or 10m")
	f.StringVar(&o.module, "module", "", "only write the Python module strandline into the folder `DIR`, such as one of site-packages")
}

// check returns what is wrong with the options.
func (o *recordOptions) check(c *cobra.Command) (err error) {
	switch {
	case c.Flags().Changed("pid"):
		return o.checkOutside(c)
	case c.Flags().Changed("duration"):
		return errors.New("--duration is for --pid; a command is recorded as long as it runs")
	case len(o.command) == 0:
		return errors.New("give a command: strandline record -- CMD…, or a process: strandline record --pid N")
	case c.ArgsLenAtDash() != 0:
		return fmt.Errorf("the command to run must follow --: strandline record -- %s", shell.Line(secret.Args(o.command)...))
	case o.record.Stacks != "" && o.record.Stacks != "python" && o.record.Stacks != "all":
		return fmt.Errorf("--stacks %s: want python or all", o.record.Stacks)
	case o.record.Steps != "" && !strings.Contains(o.record.Steps, ":"):
		return fmt.Errorf("--steps %s: want annotation:NAME or MODULE:FUNCTION", o.record.Steps)
	}
	if o.record.EverySeconds, o.record.EverySteps, err = parseEvery("every", o.every); err != nil {
		return err
	}
	if o.above != "" {
		if o.record.Above, err = sizeFlag("above", o.above); err != nil {
			return err
		}
	}
	if o.maxSize != "" {
		if o.record.MaxBytes, err = units.ParseBytes(o.maxSize); err != nil {
			return fmt.Errorf("--max-bytes: %w", err)
		}
	}
	if o.on != "" {
		if o.signal = record.SignalNamed(o.on); o.signal == nil {
			return fmt.Errorf("--signal %s: want the name of a signal, such as USR2", o.on)
		}
	}
	return o.checkReclaim()
}

func (o *recordOptions) checkReclaim() (err error) {
	when, value, _ := strings.Cut(o.reclaim, "=")
	switch {
	case o.reclaim == "":
	case when == "every" && value != "":
		o.record.ReclaimSeconds, o.record.ReclaimSteps, err = parseEvery("reclaim every", value)
	case when == "above":
		o.record.ReclaimAbove, err = sizeFlag("reclaim above", value)
	case when == "after" && value != "":
		o.record.ReclaimAfter = value
	default:
		err = fmt.Errorf("--reclaim %s: want every=100steps, every=100requests, every=30s, after=NAME or above=40GiB", o.reclaim)
	}
	return err
}

var everySteps = lazyregexp.New(`^(\d+) ?(?:steps?|requests?)$`)

// parseEvery reads a time or a number of steps; text that is empty is neither.
func parseEvery(flag, text string) (seconds float64, steps int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	if m := everySteps.FindStringSubmatch(text); m != nil {
		if steps, err = strconv.Atoi(m[1]); err == nil && steps > 0 {
			return 0, steps, nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, 0, fmt.Errorf("--%s %q: want a time or a number of steps, such as 30s or 10steps", flag, text)
	}
	return d.Seconds(), 0, nil
}

func runRecord(ctx context.Context, g *globals, o *recordOptions) error {
	g.concludes.Store(true) // an interrupt is the command's own matter
	ctx = context.WithoutCancel(ctx)
	if o.dir == "" {
		o.dir = time.Now().Format("strandline-20060102-150405")
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	o.record.Dir = dir
	command := record.Command{Args: o.command, Env: os.Environ()}
	session, err := record.Begin(o.record, manifestOf(o.command))
	if err == nil {
		command.Env, err = session.Environ(command.Env)
	}
	switch {
	case errors.Is(err, record.ErrExists), errors.Is(err, safefile.ErrForeign):
		return err
	case err != nil:
		session = nil
		g.warn("the command is not recorded: %v", err)
	default:
		shown := recordProgress{g: g, on: !g.printing.quiet && !g.json && (o.progress || g.env.stderrTerminal), began: time.Now()}
		ooms := 0
		command.Look = func(pid int) {
			m, err := session.Look(pid)
			if err != nil {
				return
			}
			if n := m.Failures(); n > ooms {
				ooms = n
				readDriver(ctx, session)
			}
			shown.show(m)
		}
		command.Signal, command.Do = o.signal, func() { session.SnapshotAll(ctx, "signal") }
	}
	status, err := command.Run()
	if err != nil {
		status = statusOf(err)
		g.warn("%v", err)
	}
	if session == nil {
		return exit(status)
	}
	m, err := session.End(status)
	if err != nil {
		g.warn("the recording is not complete: %v", err)
	}
	if m != nil && !g.printing.quiet {
		g.recorded(ctx, o.dir, m)
	}
	return exit(status)
}

// readDriver notes which processes hold memory of the devices, where nvidia-smi is available.
func readDriver(ctx context.Context, session *record.Session) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Second)
	defer stop()
	now, err := nvsmi.Read(ctx)
	if err != nil {
		return
	}
	r := record.Reading{Time: time.Now().UTC()}
	for _, u := range now.Processes {
		if u.Used != nil {
			r.Processes = append(r.Processes, record.Use{PID: u.PID, UUID: u.UUID, Bytes: *u.Used})
		}
	}
	session.AddReading(r)
}

func manifestOf(command []string) record.Manifest {
	dir, _ := os.Getwd()
	host, _ := os.Hostname()
	return record.Manifest{Strandline: version(), Command: secret.Args(command), Directory: dir, Host: host, Started: time.Now()}
}

// statusOf is the exit status of a command that could not be started.
func statusOf(err error) int {
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return exitNotFound
	}
	return exitCannotExecute
}
