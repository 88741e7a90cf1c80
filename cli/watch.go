package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"strandline/face/report"
	"strandline/finding"
	"strandline/host/sampling/engine"
	"strandline/host/sampling/sample"
	"strandline/host/sampling/sampler"
	"strandline/host/store/series"
	"strandline/judge/samples"
)

type watchOptions struct {
	pid      int
	duration time.Duration
	interval time.Duration
	out      string
	maxSize  string // how large the file of out may become
	size     int64  // the same in bytes
	listen   string // the address at which metrics are served
	access   accessFiles
	metrics  string // the address of an engine's own
	single   bool   // one sample is taken
}

func newWatch(g *globals) *cobra.Command {
	var o watchOptions
	c := &cobra.Command{
		Use:   "watch [--pid N]",
		Short: "Watch who holds memory, whether it grows, and when it runs out",
		Long: `Watch running processes: the memory of each on the host and on GPUs, whether it
grows or levels off, and when it reaches a limit. Processes are not changed.
Watching costs about a hundredth of a core.

--pid selects one process and its children. Otherwise all processes that hold
GPU memory or are recorded are watched; without a GPU, the largest ones.

Device memory is split into PyTorch's allocated and cached memory and the rest
(context, libraries, graphs). The split needs the recorder of
` + "`" + `strandline record` + "`" + `, or permission to read the process (root, or the same user).
Host memory is anonymous, of files, or shared.

The shape of a curve decides: growth that levels off is no leak. A finding says
how fast a process grows, when the device or the control group is full, and
which command finds the cause.

On a terminal, ? lists the keys: choose, look closer, sort, filter, tree. q ends
the watch and prints the findings. --once prints one sample. With --json, each
sample is a line, and the last line is the document. --out appends samples to a
file, which ` + "`" + `strandline diagnose` + "`" + ` judges even during the watch. Beyond --max-size
every other sample is dropped.

--listen serves the same figures at /metrics for Prometheus and OpenMetrics.
Without a terminal, only findings are then printed. --tls-cert encrypts, and
--token-file or the variable STRANDLINE_METRICS_TOKEN demands a bearer token.

--metrics reads the load of a
vLLM or SGLang server and relates growth to requests and tokens.

Exit status: 0 nothing grows for good; 1 leak or fragmentation; 2 wrong usage, or
the process cannot be watched; 130 interrupted.`,
		Example: `  strandline watch
  strandline watch --once
  strandline watch --pid 4242 --duration 10m
  strandline watch --out node.strandline; strandline diagnose node.strandline
  strandline watch --pid 4242 --metrics localhost:8000
  strandline watch --json --duration 1m | tail -n 1 | jq .findings`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			return runWatch(c.Context(), g, o)
		},
	}
	c.Flags().IntVar(&o.pid, "pid", 0, "watch the process `N` and its children")
	c.Flags().DurationVar(&o.duration, "duration", 0, "watch for the time `D`, such as 30s or 10m (default: until Ctrl-C)")
	c.Flags().BoolVar(&o.single, "once", false, "take one sample, print it, and end")
	c.Flags().DurationVar(&o.interval, "interval", time.Second, "take a sample each `TIME` (more often if --duration is below 40s)")
	c.Flags().StringVar(&o.out, "out", "", "keep the samples in `FILE`, for `strandline diagnose`")
	c.Flags().StringVar(&o.maxSize, "max-size", "256MiB", "with --out: limit the file to `SIZE`")
	c.Flags().StringVar(&o.listen, "listen", "", "serve metrics at `ADDRESS`: :9400, or localhost:9400 for this machine only")
	c.Flags().StringVar(&o.access.certificate, "tls-cert", "", "with --listen: encrypt, with the certificate in `FILE`")
	c.Flags().StringVar(&o.access.key, "tls-key", "", "its key, in `FILE`")
	c.Flags().StringVar(&o.access.token, "token-file", "", "with --listen: answer requests with the bearer token in `FILE` only")
	c.MarkFlagsRequiredTogether("tls-cert", "tls-key")
	c.Flags().StringVar(&o.metrics, "metrics", "", "read the engine's metrics at `URL`, such as localhost:8000; needs --pid")
	c.MarkFlagsMutuallyExclusive("once", "duration")
	c.MarkFlagsMutuallyExclusive("once", "listen")
	return c
}

var errMaxSize = errors.New("--max-size is the bound of the file that --out names")

// shortest is the least time between samples.
const shortest = 10 * time.Millisecond

// check returns what is wrong with the options, and fills in what depends on others.
func (o *watchOptions) check(c *cobra.Command) error {
	given := c.Flags().Changed
	var err error
	if o.size, err = fileSizeFlag("max-size", o.maxSize); err != nil {
		return err
	}
	switch {
	case given("pid") && o.pid <= 0:
		return fmt.Errorf("--pid %d is not a process ID", o.pid)
	case given("duration") && o.duration <= 0:
		return fmt.Errorf("--duration %s: want a time above 0", o.duration)
	case o.interval < shortest:
		return fmt.Errorf("--interval %s: want at least %s", o.interval, shortest)
	case given("max-size") && o.out == "":
		return errMaxSize
	case o.listen == "" && o.access != accessFiles{}:
		return errors.New("--tls-cert, --tls-key and --token-file are for --listen")
	case o.metrics != "" && !given("pid"):
		return errors.New("--metrics is for the engine that --pid names: add --pid, such as `--pid $(pgrep -of 'vllm serve')`")
	case o.metrics != "":
		if o.metrics, err = engine.Endpoint(o.metrics); err != nil {
			return fmt.Errorf("--metrics: %w", err)
		}
	}
	if !given("interval") && o.duration > 0 {
		const enough, least = 40, 100 * time.Millisecond // samples for a verdict
		o.interval = min(o.interval, max(o.duration/enough, least))
	}
	return onLinux()
}

// A watchFace shows samples as they come.
type watchFace interface {
	sample(s *sample.Sample, w *samples.Watch) error
}

// watchFace is how a watch shows its samples. End is called when the watch is to end.
func (g *globals) watchFace(o watchOptions, end context.CancelFunc) watchFace {
	if o.single {
		return watchOnce{end}
	}
	if g.json {
		return watchLines{g}
	}
	if screen := g.terminal(end); screen != nil {
		return screen
	}
	return &watchLog{g: g, quiet: o.listen != ""}
}

func runWatch(ctx context.Context, g *globals, o watchOptions) error {
	if o.pid > 0 {
		p, err := reachable(o.pid)
		if err != nil {
			return err
		}
		o.pid = int(p)
	}
	if o.duration == 0 && g.env.getenv("GOMAXPROCS") == "" {
		// It does one thing after another: that others look for it costs a seventh more.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	exports, err := g.export(o)
	if err != nil {
		return err
	}
	defer exports.close()
	short := func(why error) { g.warn("some processes cannot be read for now: %v", why) }
	s, err := sampler.New(sampler.Options{PID: o.pid, Interval: o.interval, Devices: sampler.NewNVIDIA(), Short: short})
	if err != nil {
		return err
	}
	defer s.Close()
	var load *engine.Poller
	if o.metrics != "" {
		load = engine.Poll(o.metrics, max(o.interval, time.Second))
		defer load.Close()
	}
	g.concludes.Store(true)
	var kept *store
	if o.out != "" {
		file, err := series.Open(o.out, o.size)
		if err != nil {
			return err
		}
		defer file.Close()
		kept = &store{g: g, w: file}
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	face := g.watchFace(o, end)
	if screen, ok := face.(*watchTerminal); ok {
		defer screen.close() // also where the watch fails
	}
	w, samples := samples.New(), 0
	var last *sample.Sample
	err = s.Run(watching, o.duration, func(now *sample.Sample) error {
		last = now
		samples++
		if load != nil {
			now.Load = load.Now()
		}
		w.Add(now)
		if kept != nil {
			kept.add(now)
		}
		exports.sample(now, w)
		return face.sample(now, w)
	})
	interrupted := false
	if screen, ok := face.(*watchTerminal); ok {
		screen.close() // what was found is printed below it
		interrupted = screen.interrupted
	}
	var ended *sampler.Ended
	switch {
	case errors.As(err, &ended) && last != nil:
		end := &sample.Sample{Time: time.Now(), Seconds: last.Seconds, Over: append([]sample.Group{}, ended.Groups...)}
		w.Add(end)
		if kept != nil {
			kept.add(end)
		}
	case errors.As(err, &ended):
	case err != nil:
		return err
	}
	return g.concludeWatch(interrupted || ctx.Err() != nil, report.NewWatch(last, samples, w.Findings()))
}

// concludeWatch prints what was found, and returns the exit status.
func (g *globals) concludeWatch(interrupted bool, doc *report.Watch) error {
	if g.json {
		if err := report.JSONLine(g.env.stdout, doc); err != nil {
			return err
		}
	} else {
		doc.Text(g.text(), g.style())
	}
	switch {
	case interrupted:
		return exit(exitInterrupted)
	case problems(doc.Findings):
		return exit(exitProblem)
	}
	return nil
}

// watchOnce ends the watch with its first sample, which the report at the end shows.
type watchOnce struct{ end func() }

func (f watchOnce) sample(*sample.Sample, *samples.Watch) error {
	f.end()
	return nil
}

// watchLines prints each sample as a line of JSON.
type watchLines struct{ g *globals }

func (f watchLines) sample(s *sample.Sample, _ *samples.Watch) error {
	return report.JSONLine(f.g.env.stdout, s)
}

// watchLog prints a line for each process that changed, and each finding once.
type watchLog struct {
	g       *globals
	quiet   bool                // only findings are printed
	printed map[sample.ID]int64 // what each held when it was printed
	found   map[string]bool
	all     time.Time // when all were printed
	next    time.Time // when findings are looked for again
}

func (f *watchLog) sample(s *sample.Sample, w *samples.Watch) error {
	const every = time.Minute
	out := f.g.text()
	if f.quiet {
		return f.findings(out, w)
	}
	if s.Time.Sub(f.all) >= every || s.Time.Before(f.all) {
		f.all, f.printed = s.Time, map[sample.ID]int64{}
	}
	for i := range s.Processes {
		p := &s.Processes[i]
		held := heldBy(p)
		if before, ok := f.printed[p.ID()]; ok && !muchElse(before, held) {
			continue
		}
		f.printed[p.ID()] = held
		if _, err := fmt.Fprintln(out, report.SampleLine(s, p)); err != nil {
			return err
		}
	}
	return f.findings(out, w)
}

// pause is how long findings are not looked for after that took a time: of hundreds of
// processes it takes milliseconds. The document at the end has them all.
func pause(took time.Duration) time.Duration {
	const rarer, longest = 2000, 10 * time.Second
	return min(rarer*took, longest)
}

// findings prints the problems that are new.
func (f *watchLog) findings(out io.Writer, w *samples.Watch) error {
	began := time.Now()
	if began.Before(f.next) {
		return nil
	}
	if f.found == nil {
		f.found = map[string]bool{}
	}
	current := w.Current()
	f.next = began.Add(pause(time.Since(began)))
	for _, found := range current {
		key := string(found.Severity) + string(found.Kind) + found.Process
		if found.Severity == "info" || f.found[key] {
			continue
		}
		f.found[key] = true
		mark := "!" // as in the report at the end
		if found.Severity == finding.Problem {
			mark = "✗"
		}
		if _, err := fmt.Fprintf(out, "%s %s\n", mark, report.Line(found.Title)); err != nil {
			return err
		}
	}
	return nil
}

// heldBy is all that a process holds, bytes.
func heldBy(p *sample.Process) (n int64) {
	if p.Host != nil {
		n = p.Host.Resident()
	}
	for _, d := range p.Devices {
		if d.Used != nil {
			n += *d.Used
		}
	}
	return n
}

// muchElse reports whether a change is large enough for a line.
func muchElse(before, now int64) bool {
	const minBytes, share = 16 << 20, 20
	change := now - before
	if change < 0 {
		change = -change
	}
	return change >= max(minBytes, before/share)
}
