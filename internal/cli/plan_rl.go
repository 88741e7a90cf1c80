package cli

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/plan"
	"strandline/plan/rl"
	"strandline/plan/serving"
)

type rlOptions struct {
	planOptions
	train             trainOptions
	rollout, version  string
	tp                int64
	context           int64
	fraction          float64
	eager             bool
	reference, critic bool
	demand            rl.Demand
	speeds            rl.Speeds // GB/s
	phases            string
	yaml              bool
}

func newPlanRL(g *globals) *cobra.Command {
	var o rlOptions
	c := &cobra.Command{
		Use:   "rl",
		Short: "Plan a step of reinforcement learning: its phases, and their peaks",
		Long: `Plan one step of reinforcement learning, in which a trainer and an inference
engine share the GPUs, as a timeline of phases (rollout, log-probs, update, weight
sync) under four ways of sharing, with the peak of each phase, what causes it, and
the largest memory fraction of the engine that fits.

The phases are data: --yaml prints them, --phases reads them back. The exit
status is 1 where no way fits.`,
		Example: `  strandline plan rl --model Qwen2.5-32B --gpu H200 --gpus 8 --trainer fsdp --rollout sglang --rollout-tp 4
  strandline plan rl --model Qwen2.5-7B --gpu H100 --gpus 8 --yaml > phases.yaml
  strandline plan rl --model Qwen2.5-7B --gpu H100 --gpus 8 --page
  strandline plan rl --phases phases.yaml`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if o.page.on {
				return g.planPage(c, &o.planOptions)
			}
			return runPlanRL(g, &o)
		},
	}
	o.planOptions.add(c)
	o.train.add(c, "train-")
	f := c.Flags()
	f.StringVar(&o.rollout, "rollout", "sglang", "the inference `ENGINE`: sglang, vllm")
	f.StringVar(&o.version, "engine-version", "", "its `VERSION`")
	f.Int64Var(&o.tp, "rollout-tp", 1, "its tensor parallel ranks `N`")
	f.Int64Var(&o.context, "max-model-len", 0, "tokens `N` of one of its requests; --seq if not given")
	f.Float64Var(&o.fraction, "mem-fraction", 0, "its share `X` of the GPU; its default if not given")
	f.BoolVar(&o.eager, "eager", false, "without CUDA graphs")
	f.BoolVar(&o.reference, "reference", false, "a reference model takes part")
	f.BoolVar(&o.critic, "critic", false, "a critic is trained too")
	f.Int64Var(&o.demand.Prompts, "prompts", 0, "prompts `N` of a step; says what KV cache its rollouts need")
	f.Int64Var(&o.demand.Group, "group", 1, "answers `N` to each prompt")
	f.Int64Var(&o.demand.Prompt, "prompt-tokens", 1024, "tokens `N` of a prompt")
	f.Int64Var(&o.demand.Response, "response-tokens", 0, "tokens `N` of an answer; what a prompt leaves of --max-model-len if not given")
	f.Float64Var(&o.speeds.Host, "host-link", 0, "between a GPU and the host's memory, `GB` a second; 25 if not given")
	f.Float64Var(&o.speeds.Link, "sync-link", 0, "of a GPU to the others of the trainer, `GB` a second; the GPU's links, 50 beyond a node")
	f.Float64Var(&o.speeds.Disk, "disk", 0, "of a node's storage, `GB` a second; 5 if not given")
	f.StringVar(&o.phases, "phases", "", "take the phases from a `FILE`")
	f.BoolVar(&o.yaml, "yaml", false, "print the phases as YAML, to edit")
	completeWith(c, "rollout", func() []string { return []string{serving.SGLang, serving.VLLM} })
	return c
}

func runPlanRL(g *globals, o *rlOptions) error {
	if o.phases != "" {
		return g.planPhases(o)
	}
	format := o.quant
	o.quant = "bf16" // what is trained
	m, gpu, err := o.read(g)
	if err != nil {
		return err
	}
	t, err := o.train.training(o.gpus)
	if err != nil {
		return err
	}
	t.Model = m
	served := m
	if format != "" { // what is rolled out may be quantized
		if served, err = g.model(o.model, format); err != nil {
			return err
		}
	}
	e, ok := serving.ParseEngine(o.rollout, o.version)
	if !ok || e.Local() {
		return fmt.Errorf("unknown --rollout %q: want sglang or vllm", o.rollout)
	}
	if o.tp < 1 || o.gpus%o.tp != 0 {
		return fmt.Errorf("--rollout-tp %d does not divide %d GPUs", o.tp, o.gpus)
	}
	length := o.context
	if length == 0 {
		length = o.train.length
	}
	s := serving.Setup{Model: served, Engine: e, Parallel: plan.Parallel{TP: o.tp, PP: 1}, Length: length, GPU: gpu, Fraction: o.fraction, Eager: o.eager}
	set := rl.Setup{Training: t, Rollout: s, Reference: o.reference, Critic: o.critic}
	if err := o.timed(&set); err != nil {
		return err
	}
	p, err := set.Phases()
	if err != nil {
		return err
	}
	if o.yaml {
		return p.YAML(g.env.Stdout)
	}
	title := fmt.Sprintf("%s  %d × %s, %s and %s (TP %d)%s", m.Name, o.gpus, gpu.Name, o.train.trainer, e, o.tp, o.train.words())
	return g.printPhases(o, title, fractionName(e), p, t.Notes())
}

// timed adds what hand-overs are timed with, and what the rollouts need.
func (o *rlOptions) timed(s *rl.Setup) error {
	const most = 1 << 32
	d := o.demand
	if d.Workers = o.gpus / o.tp; d.Response == 0 {
		d.Prompt = min(d.Prompt, s.Rollout.Length/2)
		d.Response = s.Rollout.Length - d.Prompt
	}
	for name, n := range map[string]int64{"prompts": d.Prompts, "group": d.Group, "prompt-tokens": d.Prompt, "response-tokens": d.Response} {
		if n < 0 || n > most {
			return fmt.Errorf("--%s %d is out of range", name, n)
		}
	}
	if d.Prompts > 0 && d.Prompt+d.Response > s.Rollout.Length {
		return fmt.Errorf("a prompt of %d and an answer of %d tokens are longer than a request may be, %d (--max-model-len)", d.Prompt, d.Response, s.Rollout.Length)
	}
	s.Demand = d
	for name, x := range map[string]float64{"host-link": o.speeds.Host, "sync-link": o.speeds.Link, "disk": o.speeds.Disk} {
		if !(x >= 0 && x < 1e5) {
			return fmt.Errorf("--%s %g is not a speed in GB/s", name, x)
		}
	}
	s.Speeds = rl.Speeds{Host: o.speeds.Host * 1e9, Link: o.speeds.Link * 1e9, Disk: o.speeds.Disk * 1e9}
	if s.Speeds.Link == 0 && o.gpus > s.Rollout.GPU.Node() {
		s.Speeds.Link = plan.NodeLink
	}
	return nil
}

// fractionName returns what an engine calls its share of the GPU.
func fractionName(e serving.Engine) string {
	if e.Name == serving.SGLang {
		return "mem_fraction_static"
	}
	return "gpu_memory_utilization"
}

func (g *globals) planPhases(o *rlOptions) error {
	f, err := os.Open(o.phases)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := rl.ReadPhases(f)
	if err != nil {
		return fmt.Errorf("%s: %w", o.phases, err)
	}
	name := ""
	if p.Pool != "" {
		name = "memory fraction"
	}
	if o.yaml {
		return p.YAML(g.env.Stdout)
	}
	return g.printPhases(o, o.phases, name, p, nil)
}

func (g *globals) printPhases(o *rlOptions, title, fraction string, p *rl.Phases, notes []string) error {
	doc := report.NewRLPlan(title, fraction, p, notes)
	fits := slices.ContainsFunc(doc.Ways, func(w api.PlannedWay) bool { return w.Verdict != plan.TooMuch })
	return fitting(fits, g.printPlan(o.markdown, doc, doc.Text, doc.Markdown))
}
