package cli

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strandline/internal/lazyregexp"
	"strandline/internal/safefile"
	"strandline/internal/secret"
	"strandline/internal/shell"
)

type checkOptions struct {
	allowed
	ciOutput
	dir              string
	warmUp           string
	steps, line      string
	untilVerdict     bool
	most             time.Duration
	skipFailures     bool
	named            []string // NAME=CMD
	abs              []string // NAME=VALUE of the environment, one at most
	ab               string   // the one
	baseline         string
	update           bool
	command          []string
	pattern          *regexp.Regexp
	only, stepsNoted string
}

func newCheck(g *globals) *cobra.Command {
	var o checkOptions
	c := &cobra.Command{
		Use:   "check [OPTIONS] -- CMD… | check --case NAME='CMD'…",
		Short: "Run a command, and fail if its memory leaks",
		Long: `Run a command and decide whether its processes leak: on the host by the kernel's
figures, on devices by those of PyTorch's allocator. It is a gate for CI, and
can be the command of ` + "`" + `git bisect run` + "`" + `.

Memory is judged step by step. A step is a call of strandline.step
(` + "`" + `import strandline` + "`" + ` works under check), else a step of PyTorch's optimizers,
else an output line that matches --step-line. A program without steps is judged
over time. That takes longer and is less sure: a job that fills its tables until
it ends looks like a leak.

A verdict needs 20 steps after the warm-up, or 2 seconds without steps. Initial
loading, caches that level off, and memory that is released again are no leaks.
In Python programs of 200 noisy steps, check found 100 of 100 leaks of 64 KiB a
step, and no leak in 300 runs without one.

--max-growth and --max-peak set limits for all metrics, or for one, as in
host=64KiB/step. Your command's output is unchanged; the report follows it.

Exit status: 0 no leak; 1 leak, or above a limit; 4 the command itself failed;
125 undecided, with what is missing; 2 wrong usage; 130 interrupted.`,
		Example: `  strandline check -- python -m pytest tests/soak.py
  strandline check --step-line '^iteration' --warmup 20 -- ./server_test
  strandline check --max-growth 4KiB/step --max-peak host=2GiB -- ./train.sh
  strandline check --case data='python load.py' --case all='python train.py'
  strandline check --ab UCX_MEM_MMAP_HOOK_MODE=none -- python train.py
  strandline check --baseline memory.json --junit check.xml -- python -m pytest
  git bisect run strandline check --skip-failures -- python soak.py`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			o.command = args
			if err := o.check(c); err != nil {
				return err
			}
			if err := onLinux(); err != nil {
				return err
			}
			return runCheck(c.Context(), g, &o)
		},
	}
	o.flags(c)
	return c
}

func (o *checkOptions) flags(c *cobra.Command) {
	f := c.Flags()
	o.allowed.flags(f, "step")
	f.StringVar(&o.warmUp, "warmup", "", "leave out the first `N` steps, or a time such as 30s (default: early growth)")
	f.StringVar(&o.steps, "steps-from", "auto", "count as steps `SOURCE`: call (of strandline.step), optimizer, annotation:NAME, MODULE:FUNCTION, time (none), or auto")
	f.StringVar(&o.line, "step-line", "", "count as a step each line of the command's output that matches `REGEXP`")
	f.BoolVar(&o.untilVerdict, "until-verdict", false, "stop the command as soon as the verdict is clear, or after an hour (--at-most)")
	f.DurationVar(&o.most, "at-most", 0, "stop the command after the time `D`, such as 10m, and judge the samples so far")
	f.BoolVar(&o.skipFailures, "skip-failures", false, "exit with 125 instead of 4 if the command itself fails, so that git bisect skips the commit")
	f.StringVarP(&o.dir, "out", "o", "", "keep the recording, with its snapshots, in the new folder `DIR`")
	f.StringArrayVar(&o.named, "case", nil, "run `NAME=CMD` in a shell, and judge it; several are compared side by side")
	f.StringArrayVar(&o.abs, "ab", nil, "run the command without and with `ENV=VALUE` in its environment, and report whether that cures the leak")
	f.StringVar(&o.baseline, "baseline", "", "fail if peak or level is above `FILE`, which is committed with the code")
	f.BoolVar(&o.update, "update-baseline", false, "accept the measurements: write them to the file of --baseline")
	o.ciOutput.flags(f)
}

// mostUntilVerdict is how long a command runs at most with --until-verdict: the verdict on
// some is never clear, and they need not end by themselves.
const maxUntilVerdict = time.Hour

// check returns what is wrong with the options, and completes them.
func (o *checkOptions) check(c *cobra.Command) (err error) {
	if len(o.abs) > 0 {
		o.ab = o.abs[0]
	}
	switch name, value, ok := strings.Cut(o.ab, "="); {
	case o.line != "" && c.Flags().Changed("steps-from"):
		return errors.New("give --steps-from or --step-line, and not both")
	case len(o.abs) > 0 && len(o.named) > 0:
		return errors.New("give --ab or --case, and not both")
	case len(o.abs) > 0 && o.baseline != "":
		return errors.New("give --ab or --baseline, and not both: a baseline is of one command as it is")
	case len(o.command) > 0 && o.command[0] == "":
		return errors.New("the command to run is an empty word")
	case len(o.abs) > 1:
		return fmt.Errorf("--ab %s: give one setting; several are tried one after another", strings.Join(secret.Args(o.abs), " --ab "))
	case len(o.command) == 0 && len(o.named) == 0:
		return errors.New("give a command: strandline check -- CMD…, or several: strandline check --case NAME='CMD'")
	case len(o.command) > 0 && len(o.named) > 0:
		return errors.New("give one command after --, or several by --case, and not both")
	case len(o.abs) > 0 && (!ok || name == "" || value == ""):
		return fmt.Errorf("--ab %s: want ENV=VALUE", secret.Text(o.ab))
	case o.update && o.baseline == "":
		return errors.New("--update-baseline needs --baseline FILE")
	case len(o.command) > 0 && c.ArgsLenAtDash() != 0:
		return fmt.Errorf("the command to run must follow --: strandline check -- %s", shell.Line(secret.Args(o.command)...))
	case c.Flags().Changed("at-most") && o.most <= 0:
		return fmt.Errorf("--at-most %s: want a time above 0", o.most)
	}
	if o.untilVerdict && o.most == 0 {
		o.most = maxUntilVerdict
	}
	seen := map[string]bool{}
	for _, text := range o.named {
		name, command, _ := strings.Cut(text, "=")
		if name == "" || strings.TrimSpace(command) == "" || seen[name] {
			return fmt.Errorf("--case %s: want NAME=CMD, each with a name of its own", secret.Text(text))
		}
		seen[name] = true
	}
	baseline := ""
	if o.update {
		baseline = o.baseline
	}
	if err := cmp.Or(o.ciOutput.check(), canHold("--baseline", baseline, safefile.Check), o.checkLimits()); err != nil {
		return err
	}
	return o.checkSteps()
}

func (o *checkOptions) checkLimits() error {
	o.byTime = o.steps == "time"
	if err := o.allowed.read(); err != nil {
		return err
	}
	if o.warmUp == "" {
		return nil
	}
	n, seconds, err := warmUp(o.warmUp)
	for metric, l := range o.limits {
		l.WarmUp, l.WarmUpSeconds = n, seconds
		o.limits[metric] = l
	}
	return err
}

// warmUp reads a number of steps, or a time in seconds.
func warmUp(text string) (steps, seconds float64, err error) {
	if n, err := strconv.Atoi(strings.TrimSuffix(text, "steps")); err == nil && n >= 0 {
		return float64(n), 0, nil
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return 0, d.Seconds(), nil
	}
	return 0, 0, fmt.Errorf("--warmup %s: want a number of steps, or a time such as 30s", text)
}

// namesSteps matches the name of an annotation, or a function and its module.
var namesSteps = lazyregexp.New(`^[^\s:]+:\S`)

// checkSteps reads what is a step.
func (o *checkOptions) checkSteps() (err error) {
	switch {
	case o.line != "":
		if o.pattern, err = regexp.Compile(o.line); err != nil {
			return fmt.Errorf("--step-line: %w", err)
		}
		o.stepsNoted = "time"
		o.only = fmt.Sprintf("lines of output that match %q", o.line)
	case o.steps == "auto", o.steps == "time":
		o.stepsNoted = o.steps
	case o.steps == "call", o.steps == "optimizer", namesSteps.MatchString(o.steps):
		o.stepsNoted, o.only = o.steps, "--steps-from "+o.steps
	default:
		return fmt.Errorf("--steps-from %s: want call, optimizer, annotation:NAME, MODULE:FUNCTION, time or auto", o.steps)
	}
	return nil
}
