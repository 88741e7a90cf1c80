package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/ci"
	"strandline/face/report"
	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/host/sampling/sampler"
	"strandline/host/store/series"
	"strandline/internal/secret"
	"strandline/judge/gate"
	"strandline/run/soak"
	"strandline/run/soak/load"
	"strandline/units"
)

type soakOptions struct {
	allowed
	ciOutput
	soak          soak.Options
	endpoint      string
	input, output string
	imageSize     string
	imageFormat   string
	abort         string
	untilVerdict  bool
	out           string
}

func newSoak(g *globals) *cobra.Command {
	var o soakOptions
	c := &cobra.Command{
		Use:   "soak --url URL",
		Short: "Load a server in equal waves, and fail if its memory leaks",
		Long: `Send equal waves of requests to a server with the OpenAI API (vLLM, SGLang and
others), and compare its memory after each wave. A leak adds the same amount each
time; a cache adds less and less. soak stops as soon as the answer is clear. A
verdict needs 5 waves.

Run it on the server's machine. It reads the process that listens on the URL's
port, or --pid, with its children, on the host and on devices. The engine's own
figures at /metrics are shown beside them.

Requests are new in each wave, drawn by --seed. Growth that looks like a leak is
checked by two more waves, which resend earlier requests: a cache of prompts or
images does not grow by them. If only new content makes memory grow, the verdict
is unknown. --repeat=false says that the server has no such cache.

If the server ends and restarts, the next wave warms it up, and only later waves
count. Failed requests are counted apart, by kind. The API key is read from
$OPENAI_API_KEY.

A length is a number of tokens (200), a uniform range (50-400), or ~200:
log-normal with median 200, like prompts of people.

Exit status: 0 no leak; 1 leak, or above a limit; 4 the server failed midway; 125
undecided, with what is missing; 2 wrong usage, or the server cannot be reached;
130 interrupted.`,
		Example: `  strandline soak --url http://localhost:8000/v1 --waves 5 --requests 100
  strandline soak --url http://localhost:8000/v1 --input ~300 --until-verdict
  strandline soak --url http://localhost:8000/v1 --images 2 --turns 3
  strandline soak --url http://localhost:8000/v1 --max-growth 1KiB/request
  strandline soak --url http://localhost:30000/v1 \
    --reclaim-cmd 'curl -s -X POST localhost:30000/flush_cache'`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("soak takes no argument; got %q: the server is given with --url", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			if err := onLinux(); err != nil {
				return err
			}
			return runSoak(c.Context(), g, &o)
		},
	}
	o.flags(c)
	return c
}

func (o *soakOptions) flags(c *cobra.Command) {
	f, s, l := c.Flags(), &o.soak, &o.soak.Load
	f.StringVar(&l.URL, "url", "", "the `URL` of the API, such as http://localhost:8000/v1")
	f.StringVar(&l.Model, "model", "", "the `NAME` of the model (default: the server's first)")
	f.IntVar(&s.PID, "pid", 0, "the server's process `N` and its children (default: the listener on the port)")
	f.IntVar(&s.Waves, "waves", 10, "send at most `N` waves; 2 more then check growth")
	f.IntVar(&s.Requests, "requests", 100, "send `N` requests in each wave")
	f.BoolVar(&o.untilVerdict, "until-verdict", false, "send up to 5 times as many waves while the verdict is unknown")
	f.DurationVar(&s.AtMost, "at-most", 0, "start no wave after the time `D`, such as 2h")
	f.IntVar(&s.WarmUp, "warmup", 1, "leave out the first `N` waves")
	f.BoolVar(&s.Repeat, "repeat", true, "check growth by resending earlier requests")
	f.DurationVar(&s.Quiet, "settle", 2*time.Second, "read memory once it has not fallen for the time `D`")
	f.DurationVar(&s.Gap, "gap", 30*time.Second, "wait at most the time `D` for memory to stop falling")
	f.DurationVar(&s.Return, "restart-wait", 5*time.Minute, "wait at most `D` for a server that ended to answer again")
	f.StringVar(&s.Reclaim, "reclaim-cmd", "", "run the shell command `CMD` after each wave, and judge the memory that is left")
	o.allowed.flags(f, "request")
	o.ciOutput.flags(f)
	f.StringVarP(&o.out, "out", "o", "", "keep the samples in `FILE`, for strandline diagnose")
	f.StringVar(&o.endpoint, "endpoint", "chat", "ask `NAME`: chat or completions")
	f.BoolVar(&l.Stream, "stream", true, "stream the answers")
	f.IntVar(&l.Concurrency, "concurrency", 8, "send `N` requests at a time")
	f.DurationVar(&l.Timeout, "timeout", 5*time.Minute, "give a request up after the time `D`")
	f.StringVar(&o.input, "input", "50-400", "prompt `LENGTH`, tokens")
	f.StringVar(&o.output, "output", "64", "answer `LENGTH`, tokens")
	f.IntVar(&l.Prefix, "prefix", 0, "start prompts with `N` shared tokens")
	f.IntVar(&l.Prefixes, "prefixes", 1, "use `N` different prefixes")
	f.IntVar(&l.Images, "images", 0, "send `N` random images in each request")
	f.StringVar(&o.imageSize, "image-size", "640x480", "image size `WIDTHxHEIGHT`, pixels")
	f.StringVar(&o.imageFormat, "image-format", "png", "send images as `FORMAT`: png or jpeg")
	f.IntVar(&l.Turns, "turns", 1, "make conversations of `N` requests, each with the whole conversation so far")
	f.StringVar(&o.abort, "abort", "0", "cancel this `SHARE` of requests during the answer, such as 10%")
	f.Uint64Var(&l.Seed, "seed", 1, "draw requests by the number `N`")
}

// leastWaves is how many waves after the warm-up a verdict needs: with the last of the
// warm-up they are 5.
const minWaves = 4

// maxRepeats is how many times --waves may follow with --until-verdict.
const maxRepeats = 4

// check returns what is wrong with the options, and completes them.
func (o *soakOptions) check(c *cobra.Command) (err error) {
	s, l := &o.soak, &o.soak.Load
	given := c.Flags().Changed
	switch {
	case l.URL == "":
		return errors.New("give the server: strandline soak --url http://localhost:8000/v1")
	case s.Waves < 1 || s.Requests < 1:
		return errors.New("want at least 1 wave, of at least 1 request")
	case given("pid") && s.PID <= 0:
		return fmt.Errorf("--pid %d is not a process ID", s.PID)
	case given("at-most") && s.AtMost <= 0:
		return fmt.Errorf("--at-most %s: want a time above 0", s.AtMost)
	case s.WarmUp < 1:
		return fmt.Errorf("--warmup %d: want at least 1: loading for the first requests is no leak", s.WarmUp)
	case s.Quiet <= 0 || s.Gap < s.Quiet:
		return fmt.Errorf("--settle %s, --gap %s: want times above 0, and a gap that is not shorter", s.Quiet, s.Gap)
	case l.Timeout <= 0 || s.Return < 0:
		return fmt.Errorf("--timeout %s, --restart-wait %s: want a time above 0, and one that is not below 0", l.Timeout, s.Return)
	case l.Concurrency < 1:
		return fmt.Errorf("--concurrency %d: want at least 1", l.Concurrency)
	case o.endpoint != "chat" && o.endpoint != "completions":
		return fmt.Errorf("--endpoint %s: want chat or completions", o.endpoint)
	case o.imageFormat != "png" && o.imageFormat != "jpeg":
		return fmt.Errorf("--image-format %s: want png or jpeg", o.imageFormat)
	case l.Images < 0 || l.Turns < 1 || l.Prefix < 0 || l.Prefixes < 1:
		return errors.New("--images, --turns, --prefix and --prefixes: want no number below 0, and at least 1 turn and 1 prefix")
	}
	l.Completions, l.JPEG = o.endpoint == "completions", o.imageFormat == "jpeg"
	if l.Input, err = load.ParseLength(o.input); err != nil {
		return fmt.Errorf("--input %w", err)
	}
	if l.Output, err = load.ParseLength(o.output); err != nil {
		return fmt.Errorf("--output %w", err)
	}
	if l.Width, l.Height, err = pixels(o.imageSize); err != nil {
		return err
	}
	if l.Abort, err = share(o.abort); err != nil {
		return err
	}
	if o.untilVerdict {
		s.Further = maxRepeats * s.Waves
	}
	if most := s.Waves + s.Further; given("warmup") && most < s.WarmUp+minWaves {
		return fmt.Errorf("--warmup %d of at most %s: nothing could be judged; want %d more than the warm-up", s.WarmUp, units.Plural(int64(most), "wave"), minWaves)
	}
	if err := cmp.Or(o.ciOutput.check(), o.allowed.read()); err != nil {
		return err
	}
	s.Limits = o.limits
	return nil
}

// pixels reads a size such as 640x480.
func pixels(text string) (width, height int, err error) {
	w, h, _ := strings.Cut(text, "x")
	width, err = strconv.Atoi(w)
	if err == nil {
		height, err = strconv.Atoi(h)
	}
	if err != nil || width < 1 || height < 1 {
		return 0, 0, fmt.Errorf("--image-size %s: want WIDTHxHEIGHT, such as 640x480", text)
	}
	return width, height, nil
}

// share reads a share such as 10% or 0.1.
func share(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if percent {
		x /= 100
	}
	if err != nil || !(0 <= x && x <= 1) {
		return 0, fmt.Errorf("--abort %s: want a share such as 10%% or 0.1", text)
	}
	return x, nil
}

// soakSuite is the name of the suite that soak writes.
const soakSuite = "strandline soak"

func runSoak(ctx context.Context, g *globals, o *soakOptions) error {
	s := &o.soak
	s.Load.Key = g.env.getenv("OPENAI_API_KEY")
	if s.PID > 0 {
		p, err := reachable(s.PID)
		if err != nil {
			return err
		}
		s.PID = int(p)
	}
	if _, ok := s.Limits[gate.Device]; ok {
		s.Devices = func() sample.DeviceSource { return sampler.NewNVIDIA() }
	}
	if o.out != "" {
		const maxBytes = 256 << 20
		file, err := series.Open(o.out, maxBytes)
		if err != nil {
			return err
		}
		defer file.Close()
		kept := &store{g: g, w: file}
		s.Keep = kept.add
	}
	progress := soakProgress{g: g}
	s.Progress = progress.show
	g.concludes.Store(true)
	began := time.Now()
	s.Trace = 10 * time.Second
	d, err := soak.Run(ctx, *s)
	progress.clear()
	if err != nil {
		c := ci.Case{Name: secret.Text(s.Load.URL), Seconds: time.Since(began).Seconds(), Verdict: finding.Unknown, Failed: err.Error()}
		if bad := o.ciOutput.write(ctx, g, soakSuite, "FAILED", []ci.Case{c}, []ci.Case{c}); bad != nil {
			g.warn("%v", bad)
		}
		return err
	}
	doc := &report.Soak{Soak: d}
	if err := g.print(doc, func(w io.Writer, s report.Style) { doc.Text(w, s) }); err != nil {
		return err
	}
	code := soakExit(g, d)
	cases := soakCases(doc)
	if err := o.ciOutput.write(ctx, g, soakSuite, doc.Word(), cases, cases); err != nil {
		if code == exitOK {
			return err
		}
		g.warn("%v", err) // the verdict counts for more
	}
	if code == exitOK {
		return nil
	}
	return exit(code)
}

// soakExit is the exit status that an experiment has, with the reason on standard error.
func soakExit(g *globals, d *api.Soak) int {
	switch {
	case d.Interrupted:
		return exitInterrupted
	case fails(d.Verdict):
		return exitProblem
	case d.Failed != "":
		g.warn("%s", d.Failed)
		return exitCommand
	case d.Verdict == finding.Unknown:
		for _, m := range d.Missing {
			g.warn("cannot be judged: %s", m)
		}
		return exitCannotJudge
	}
	return exitOK
}

// soakProgress shows how far an experiment is: a line for each wave, and on a terminal
// one that is overwritten while a wave is sent.
type soakProgress struct {
	g       *globals
	pending bool
}

func (p *soakProgress) show(now soak.Progress) {
	if now.Done != nil {
		p.clear()
		growth := ""
		for i := range now.Judgments { // the host comes first
			if j := &now.Judgments[i]; j.Growth.Unit != "" && (growth == "" || j.Verdict == finding.Leaking) {
				growth = j.Growth.String()
			}
		}
		p.g.warn("%s", report.SoakProgress(now.Done, now.Verdict, growth))
		return
	}
	if now.Stage != "" {
		p.g.warn("%s", now.Stage)
		return
	}
	if !p.g.progressTerminal() || now.Load == nil {
		return
	}
	s := now.Load
	text := fmt.Sprintf("wave %d: %s of %s requests, %.0f a second", now.Wave, units.Count(s.Sent), units.Count(int64(now.Requests)), float64(s.Sent)/max(s.Elapsed.Seconds(), 1e-3))
	if n := s.Failed(); n > 0 {
		text += fmt.Sprintf(", %s failed", units.Count(n))
	}
	if n := s.Errors[load.RateLimited]; n > 0 {
		text += fmt.Sprintf(", asked to wait %s (429)", units.Plural(n, "time"))
	}
	if s.TTFT.Count() > 0 {
		text += fmt.Sprintf(", TTFT %s, p95 %s", units.Duration(s.TTFT.Quantile(0.5)), units.Duration(s.TTFT.Quantile(0.95)))
	}
	fmt.Fprintf(p.g.env.stderr, "\r\x1b[K%s", report.Line(text))
	p.pending = true
}

// clear removes the line that is overwritten.
func (p *soakProgress) clear() {
	if p.pending {
		fmt.Fprint(p.g.env.stderr, "\r\x1b[K")
		p.pending = false
	}
}
