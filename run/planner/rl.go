package planner

import (
	"fmt"
	"slices"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/rl"
	"strandline/plan/serving"
)

// RL is a plan of a step of reinforcement learning.
type RL struct {
	Options
	train             trainOptions
	rollout, version  string
	tp                int64
	context           int64
	fraction          float64
	eager             bool
	reference, critic bool
	demand            rl.Demand
	speeds            rl.Speeds // GB/s
}

// Flags are the flags that set o.
func (o *RL) Flags() *Flags {
	f := newFlags()
	o.Options.add(f)
	o.train.add(f, "train-")
	f.StringVar(&o.rollout, "rollout", "sglang", "the inference `ENGINE`: sglang, vllm")
	f.StringVar(&o.version, "engine-version", "", "engine `VERSION` (default: newest)")
	f.Int64Var(&o.tp, "rollout-tp", 1, "the engine's tensor parallel ranks `N`")
	f.Int64Var(&o.context, "max-model-len", 0, "tokens `N` of a rollout request (default: --seq)")
	f.Float64Var(&o.fraction, "mem-fraction", 0, "the engine's share `X` of the GPU (default: the engine's)")
	f.BoolVar(&o.eager, "eager", false, "use no CUDA graphs")
	f.BoolVar(&o.reference, "reference", false, "include a reference model")
	f.BoolVar(&o.critic, "critic", false, "train a critic")
	f.Int64Var(&o.demand.Prompts, "prompts", 0, "prompts `N` of a step, for the KV cache of its rollouts")
	f.Int64Var(&o.demand.Group, "group", 1, "answers `N` to each prompt")
	f.Int64Var(&o.demand.Prompt, "prompt-tokens", 1024, "prompt length `N`, tokens")
	f.Int64Var(&o.demand.Response, "response-tokens", 0, "answer length `N`, tokens (default: the rest of --max-model-len)")
	f.Float64Var(&o.speeds.Host, "host-link", 0, "GPU to host bandwidth, `GB`/s (default 25)")
	f.Float64Var(&o.speeds.Link, "sync-link", 0, "trainer GPU to GPU bandwidth, `GB`/s (default: the GPU's links; 50 beyond a node)")
	f.Float64Var(&o.speeds.Disk, "disk", 0, "node storage bandwidth, `GB`/s (default 5)")
	f.offer("rollout", engine.SGLang, engine.VLLM)
	return f
}

// Setup is the set-up that the flags name.
func (o *RL) Setup(find Models) (set rl.Setup, err error) {
	trained := o.Options
	trained.Quant = "bf16"
	m, gpu, err := trained.read(find)
	if err != nil {
		return set, err
	}
	t, err := o.train.training(o.GPUs)
	if err != nil {
		return set, err
	}
	t.Model = m
	served := m
	if o.Quant != "" { // what is rolled out may be quantized
		if served, err = find(o.Model, o.Quant); err != nil {
			return set, err
		}
	}
	e, ok := engine.ParseRelease(o.rollout, o.version)
	if !ok || e.Local() {
		return set, fmt.Errorf("unknown --rollout %q: want sglang or vllm", o.rollout)
	}
	if o.tp < 1 || o.GPUs%o.tp != 0 {
		return set, fmt.Errorf("--rollout-tp %d does not divide %d GPUs", o.tp, o.GPUs)
	}
	length := o.context
	if length == 0 {
		length = o.train.length
	}
	s := serving.Setup{Model: served, Engine: e, Parallel: plan.Parallel{TP: o.tp, PP: 1}, Length: length, GPU: gpu, Fraction: o.fraction, Eager: o.eager}
	set = rl.Setup{Training: t, Rollout: s, Reference: o.reference, Critic: o.critic}
	return set, o.timed(&set)
}

// Plan is the plan of a step.
func (o *RL) Plan(find Models) (Document, bool, error) {
	set, err := o.Setup(find)
	if err != nil {
		return nil, false, err
	}
	p, err := set.Phases()
	if err != nil {
		return nil, false, err
	}
	e := set.Rollout.Engine
	title := fmt.Sprintf("%s  %d × %s, %s and %s (TP %d)%s", set.Training.Model.Name, o.GPUs, set.Rollout.GPU.Name, o.train.trainer, e, o.tp, o.train.words())
	doc, fits := Phases(title, e.Engine().Share.Setting, p, set.Training.Notes())
	return doc, fits, nil
}

// Phases is the plan of phases that are known, and whether a way of sharing fits.
// Fraction is what the engine calls its share of the GPU.
func Phases(title, fraction string, p *rl.Phases, notes []string) (Document, bool) {
	doc := report.RLPlan{RLPlan: api.NewRLPlan(title, fraction, p, notes)}
	return doc, slices.ContainsFunc(doc.Ways, func(w api.PlannedWay) bool { return w.Verdict != plan.TooMuch })
}

// Speeds are those that the flags give, 0 where they do not.
func (o *RL) Speeds() rl.Speeds {
	return rl.Speeds{Host: o.speeds.Host * 1e9, Link: o.speeds.Link * 1e9, Disk: o.speeds.Disk * 1e9}
}

// timed adds what hand-overs are timed with, and what the rollouts need.
func (o *RL) timed(s *rl.Setup) error {
	const maxTokens = 1 << 32
	d := o.demand
	if d.Workers = o.GPUs / o.tp; d.Response == 0 {
		d.Prompt = min(d.Prompt, s.Rollout.Length/2)
		d.Response = s.Rollout.Length - d.Prompt
	}
	for name, n := range map[string]int64{"prompts": d.Prompts, "group": d.Group, "prompt-tokens": d.Prompt, "response-tokens": d.Response} {
		if n < 0 || n > maxTokens {
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
	s.Speeds = o.Speeds()
	if s.Speeds.Link == 0 && o.GPUs > s.Rollout.GPU.Node() {
		s.Speeds.Link = plan.NodeLink
	}
	return nil
}
