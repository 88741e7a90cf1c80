package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/host/store/recording"
	"strandline/input"
	"strandline/judge/handovers"
	"strandline/pausable/history"
	"strandline/plan/rl"
	"strandline/run/planner"
)

// rlPlan is plan rl.
type rlPlan struct {
	planFlags
	planner.RL
	phases, check string
	trace         string
	yaml          bool
	device        int
	tags          []string
}

func newPlanRL(g *globals) *cobra.Command {
	var o rlPlan
	c := &cobra.Command{
		Use:   "rl",
		Short: "Plan a reinforcement learning step: phases and their peaks",
		Long: `Plan one step of reinforcement learning in which a trainer and an inference engine
share the GPUs. The plan is a timeline of phases (rollout, log-probs, update,
weight sync) under four ways of sharing. It names the peak and cause of each
phase, and the largest engine memory fraction that fits.

Phases are data: --yaml prints them, --phases reads them back. The exit status
is 1 if no way fits.

--check compares the plan with the record of pausable memory: the log of a process
with STRANDLINE_MEM_LOG=FOLDER, a folder of logs, or a recording of
` + "`" + `strandline trace --gpu` + "`" + ` (sizes without tags). The exit status is 1 if each cycle
leaves more behind; with --strict also if a phase used more than planned. Beside
a log, --trace names the libraries that hold the rest.`,
		Example: `  strandline plan rl --model Qwen2.5-32B --gpu H200 --gpus 8 --rollout-tp 4
  strandline plan rl --model Qwen2.5-7B --gpu H100 --gpus 8 --yaml > phases.yaml
  strandline plan rl --phases phases.yaml --check logs/
  strandline plan rl --phases phases.yaml --check gpu.strandline \
    --tag "group1=rollout KV cache"
  strandline plan rl --phases phases.yaml --check 4242-1795467009.pausable \
    --trace gpu.strandline`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case o.page.on:
			case o.check != "":
				return g.checkPhases(c.Context(), &o)
			case o.phases != "":
				return g.planPhases(&o)
			case o.yaml:
				return g.printYAML(&o)
			}
			return g.planned(c, &o.planFlags, &o.RL, o.Model)
		},
	}
	o.add(c, &o.RL)
	c.Flags().StringVar(&o.phases, "phases", "", "take the phases from a `FILE`")
	c.Flags().BoolVar(&o.yaml, "yaml", false, "print the phases as YAML, to edit")
	c.Flags().StringVar(&o.check, "check", "", "compare a log of pausable memory, a `FILE` or a folder of them, or a recording of trace --gpu with the plan")
	c.Flags().StringVar(&o.trace, "trace", "", "with --check of one process: a recording of trace --gpu made meanwhile, in a `FILE`")
	c.Flags().IntVar(&o.device, "device", 0, "with --check: device `N`, as CUDA counts in the process")
	c.Flags().StringArrayVar(&o.tags, "tag", nil, "with --check: the component of the plan that a tag is, `TAG=COMPONENT`")
	o.checks(c)
	return c
}

// printYAML prints the phases of a set-up, for a person to edit.
func (g *globals) printYAML(o *rlPlan) error {
	set, err := o.Setup(loadModel)
	if err != nil {
		return err
	}
	p, err := set.Phases()
	if err != nil {
		return err
	}
	return p.YAML(g.env.stdout)
}

func (g *globals) planPhases(o *rlPlan) error {
	p, err := g.readPhases(o.phases)
	if err != nil {
		return err
	}
	name := ""
	if p.Pool != "" {
		name = "memory fraction"
	}
	if o.yaml {
		return p.YAML(g.env.stdout)
	}
	doc, fits := planner.Phases(o.phases, name, p, nil)
	return fitting(fits, g.printPlan(o.markdown, doc))
}

func (g *globals) readPhases(path string) (*rl.Phases, error) {
	f, err := g.openInput(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := rl.ReadPhases(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// checkPhases lays logs of pausable memory beside the phases.
func (g *globals) checkPhases(ctx context.Context, o *rlPlan) error {
	p, err := g.plannedPhases(o)
	if err != nil {
		return err
	}
	if p.Speeds.Host == 0 {
		p.Speeds = o.Speeds()
	}
	names := map[string]string{}
	for _, given := range o.tags {
		tag, component, ok := strings.Cut(given, "=")
		if !ok || tag == "" || component == "" {
			return fmt.Errorf("--tag %q: want TAG=COMPONENT", given)
		}
		names[tag] = component
	}
	files, err := g.open([]string{o.check})
	if err != nil {
		return err
	}
	defer files.Close()
	if f := files.Named(input.TraceRecording); f != nil {
		return g.checkTrace(ctx, o, p, names, f)
	}
	logs := slices.DeleteFunc(files.List, func(f *input.File) bool { return !f.Named && f.Kind() != input.PauseLog })
	if len(logs) == 0 {
		return fmt.Errorf("%s: there is no log of pausable memory in it (*%s), which STRANDLINE_MEM_LOG makes", o.check, history.Suffix)
	}
	var trace *recording.Run
	if o.trace != "" {
		if len(logs) > 1 {
			return fmt.Errorf("--trace is of one process, and %s has logs of %d: give one of them to --check", o.check, len(logs))
		}
		f, err := g.openFile(o.trace, "")
		if err == nil {
			trace, err = readTrace(ctx, f)
		}
		if err != nil {
			return err
		}
	}
	var checks []*handovers.Check
	for _, f := range logs {
		in, err := f.ReadAs(ctx, input.PauseLog)
		if err != nil {
			return err
		}
		log, ok := in.(*input.Pauses)
		if !ok {
			return in.(*input.Unknown).Err
		}
		c, err := handovers.New(p, log.Log, o.device, names, trace)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Path, err)
		}
		checks = append(checks, c)
	}
	return g.printChecks(o, checks)
}

func (g *globals) printChecks(o *rlPlan, checks []*handovers.Check) error {
	good := true
	for _, c := range checks {
		good = good && !c.Failed(o.strict)
	}
	return fitting(good, g.printPlan(o.markdown, report.HandOvers{HandOvers: api.NewHandOvers(o.check, checks)}))
}

// readTrace reads the recording of a trace.
func readTrace(ctx context.Context, f *input.File) (*recording.Run, error) {
	in, err := f.ReadAs(ctx, input.TraceRecording)
	if err != nil {
		return nil, err
	}
	if t, ok := in.(*input.Trace); ok {
		return t.Run, nil
	}
	return nil, in.(*input.Unknown).Err
}

// checkTrace lays a recording of trace --gpu beside the phases.
func (g *globals) checkTrace(ctx context.Context, o *rlPlan, p *rl.Phases, names map[string]string, f *input.File) error {
	if o.trace != "" {
		return fmt.Errorf("--trace goes with a log of pausable memory, and %s is a recording itself", o.check)
	}
	run, err := readTrace(ctx, f)
	if err != nil {
		return err
	}
	checks, err := handovers.Traced(p, run, o.device, names)
	if err != nil {
		return fmt.Errorf("%s: %w", o.check, err)
	}
	return g.printChecks(o, checks)
}

// planned is the phases of a file, or of the set-up that the flags give.
func (g *globals) plannedPhases(o *rlPlan) (*rl.Phases, error) {
	if o.phases != "" {
		return g.readPhases(o.phases)
	}
	set, err := o.Setup(loadModel)
	if err != nil {
		return nil, err
	}
	return set.Phases()
}
