package planner

import (
	"fmt"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/plan/serving"
)

// Serving is a plan of an inference engine.
type Serving struct {
	Options
	Engine, Version, KV       string
	tp, pp, ep, dp, host      int64
	length, step, seqs, block int64
	tokens, graphs            int64
	pool, blocks              int64
	fraction, offload         float64
	eager, mtp, formats       bool
	method, solve             string
	local                     localOptions
	load                      loadOptions
	machines                  machineOptions
}

// Flags are the flags that set o.
func (o *Serving) Flags() *Flags {
	f := newFlags()
	o.Options.add(f)
	f.StringVar(&o.Engine, "engine", "vllm", "`ENGINE`: "+strings.Join(engine.Planned(), ", "))
	f.StringVar(&o.Version, "engine-version", "", "engine `VERSION`, such as 0.8 (default: newest)")
	f.Int64Var(&o.tp, "tp", 0, "tensor parallel ranks `N` (default: up to 8 of the GPUs)")
	f.Int64Var(&o.pp, "pp", 0, "pipeline stages `N`")
	f.Int64Var(&o.ep, "ep", 0, "expert parallel ranks `N`")
	f.Int64Var(&o.dp, "dp", 0, "data parallel attention replicas `N` within the TP ranks")
	f.Int64Var(&o.host, "cpu-experts", 0, "experts `N` of each layer in host memory")
	f.Float64Var(&o.offload, "cpu-offload-gb", 0, "vLLM: weights `GIB` of each GPU in host memory")
	f.StringVar(&o.KV, "kv-dtype", "", "key and value `TYPE`, such as fp8")
	f.Int64Var(&o.length, "max-model-len", 0, "tokens `N` of a request (default: the model's limit)")
	f.Int64Var(&o.step, "max-batched-tokens", 0, "tokens `N` of a forward pass, the chunked prefill size (default: the engine's)")
	f.Int64Var(&o.seqs, "max-num-seqs", 0, "concurrent requests `N` (default: the engine's)")
	f.Int64Var(&o.block, "block-size", 0, "tokens `N` of a KV cache block")
	f.Int64Var(&o.tokens, "max-total-tokens", 0, "KV cache limit `N`, tokens")
	f.Var((*sizeFlag)(&o.pool), "kv-cache-bytes", "vLLM: KV cache `SIZE` on each GPU, such as 20GiB")
	f.Int64Var(&o.blocks, "kv-blocks", 0, "vLLM: KV cache size on each GPU, blocks `N`")
	f.Int64Var(&o.graphs, "cuda-graph-max-bs", 0, "largest batch `N` captured as a CUDA graph (default: the engine's)")
	f.Float64Var(&o.fraction, "mem-fraction", 0, "the engine's share `X` of the GPU (gpu_memory_utilization, mem_fraction_static)")
	f.BoolVar(&o.eager, "eager", false, "use no CUDA graphs")
	f.BoolVar(&o.mtp, "mtp", false, "load the model's layers for multi-token prediction")
	f.BoolVar(&o.formats, "formats", false, "compare BF16, FP8, INT8 and INT4 weights side by side")
	f.StringVar(&o.method, "method", "", "also compute by `METHOD`: textbook, the common formulas")
	f.StringVar(&o.solve, "solve", "", "look for the best `WHAT`: "+strings.Join(serving.Questions, ", "))
	o.local.add(f)
	o.load.add(f)
	o.machines.add(f)
	f.Choices["engine"], f.Choices["kv-dtype"] = engine.Planned, kvTypes
	f.offer("solve", serving.Questions...)
	f.offer("method", "textbook")
	return f
}

// Plan is the plan of the set-up, or what --solve or --method ask for.
func (o *Serving) Plan(find Models) (doc Document, fits bool, err error) {
	s, err := o.Setup(find)
	if err != nil {
		return nil, false, err
	}
	switch {
	case o.method == "textbook":
		book, err := s.Textbook()
		if err != nil {
			return nil, false, err
		}
		return report.Textbook{Textbook: api.NewTextbook(s, book)}, true, nil
	case o.method != "":
		return nil, false, fmt.Errorf("--method %q: the only method is textbook", o.method)
	case o.solve != "":
		return o.solved(find, s)
	}
	fit, err := s.Fit()
	if err != nil {
		return nil, false, err
	}
	var formats []*serving.Fit
	if o.formats {
		if formats, err = o.sideBySide(find, s); err != nil {
			return nil, false, err
		}
	}
	for _, other := range formats {
		if other.Verdict == plan.NotRun {
			fit.Notes = append(fit.Notes, other.Binding)
		}
	}
	return report.Plan{Plan: api.NewPlan(fit, formats)}, fit.Verdict.Possible(), nil
}

// answered reports whether anything fits.
func answered(answers []plan.Answer) bool {
	return slices.ContainsFunc(answers, func(a plan.Answer) bool { return a.Value > 0 })
}

// Setup is the set-up that the flags name.
func (o *Serving) Setup(find Models) (s serving.Setup, err error) {
	m, gpu, err := o.read(find)
	if err != nil {
		return s, err
	}
	e, ok := engine.ParseRelease(o.Engine, o.Version)
	if !ok {
		return s, fmt.Errorf("unknown --engine %q: want one of %s", o.Engine, strings.Join(engine.Planned(), ", "))
	}
	if err := o.local.refuseOthers(e, o); err != nil {
		return s, err
	}
	if e.Local() {
		if m, err = o.ggufModel(find, m); err != nil {
			return s, err
		}
	}
	kv, ok := serving.ParseKV(o.KV, m)
	if !ok {
		return s, fmt.Errorf("unknown --kv-dtype %q", o.KV)
	}
	for name, n := range map[string]int64{"tp": o.tp, "pp": o.pp, "ep": o.ep, "dp": o.dp, "max-model-len": o.length, "max-batched-tokens": o.step,
		"max-num-seqs": o.seqs, "block-size": o.block, "cpu-experts": o.host, "n-cpu-moe": o.local.hostMoE, "requests": o.load.requests, "prompt-tokens": o.load.prompt, "output-tokens": o.load.output, "images": o.load.images, "max-total-tokens": o.tokens, "kv-blocks": o.blocks, "cuda-graph-max-bs": o.graphs} {
		if const40 := int64(1) << 40; n < 0 || n > const40 {
			return s, fmt.Errorf("--%s %d is out of range", name, n)
		}
	}
	if o.pool < 0 || o.pool > 1<<50 {
		return s, fmt.Errorf("--kv-cache-bytes %d is out of range", o.pool)
	}
	if o.host > 0 {
		m = m.WithoutExperts(o.host)
	}
	p := plan.Parallel{TP: 1, PP: o.GPUs}
	if !e.Local() {
		gpus, node, err := o.machines.divide(o.GPUs, gpu)
		if err != nil {
			return s, err
		}
		if p, err = plan.Divide(m, gpus, o.tp, o.pp, node); err != nil {
			return s, err
		}
		p.EP, p.DP = o.ep, o.dp
	}
	s = serving.Setup{Model: m, Engine: e, Parallel: p, KV: kv, Length: o.length, Block: o.block, Step: o.step,
		Requests: o.seqs, MaxKV: o.tokens, KVBytes: o.pool, Blocks: o.blocks, Graphs: o.graphs, Eager: o.eager, Draft: o.mtp, GPU: gpu, Fraction: o.fraction}
	if s.Local, err = o.local.local(m); err != nil {
		return s, err
	}
	if !(o.offload >= 0 && o.offload < 1e6) {
		return s, fmt.Errorf("--cpu-offload-gb %g is not a size in GiB", o.offload)
	}
	s.Offload = plan.Whole(o.offload * plan.GiB)
	s.NodeLink = o.machines.link * 1e9
	return s, o.load.fill(&s)
}

// solved looks for the best value of something, as given and with changes.
func (o *Serving) solved(find Models, s serving.Setup) (doc Document, fits bool, err error) {
	var others []*model.Model
	if s.Model.Quant == "" {
		formats := []string{"fp8", "int4"}
		if s.Engine.Local() {
			formats = nil
		}
		for _, quant := range formats {
			m, err := find(o.Model, quant)
			if err != nil {
				return nil, false, err
			}
			others = append(others, m)
		}
	}
	answers, err := serving.Solve(o.solve, serving.Variants(s, others))
	if err != nil {
		return nil, false, err
	}
	setup := fmt.Sprintf("%s on %s", s.Engine, s.GPU.Name)
	if o.solve != "gpus" {
		setup = fmt.Sprintf("%s on %d × %s", s.Engine, o.GPUs, s.GPU.Name)
	}
	return report.Solved{Solved: api.NewSolved(s.Model, o.solve, setup, answers)}, answered(answers), nil
}

// sideBySide returns the plans of the same set-up in the usual formats.
func (o *Serving) sideBySide(find Models, s serving.Setup) (out []*serving.Fit, err error) {
	formats := []string{"bf16", "fp8", "int8", "int4"}
	if s.Engine.Local() {
		formats = []string{"bf16", "q8_0", "q6_k", "q4_k_m", "q3_k_m"}
	}
	for _, quant := range formats {
		other := s
		if other.Model, err = find(o.Model, quant); err != nil {
			return nil, err
		}
		if o.host > 0 {
			other.Model = other.Model.WithoutExperts(o.host)
		}
		fit, err := other.Fit()
		if err != nil {
			return nil, err
		}
		out = append(out, fit)
	}
	return out, nil
}

// Given is what the flags state of a set-up of a model without its GPU, for the log of
// a run to add to.
func (o *Serving) Given(m *model.Model) (s serving.Setup, err error) {
	s = serving.Setup{Model: m, Length: o.length, Block: o.block, Step: o.step, Requests: o.seqs, Eager: o.eager, Draft: o.mtp, Fraction: o.fraction, KVBytes: o.pool, Blocks: o.blocks}
	s.Parallel = plan.Parallel{TP: o.tp, PP: o.pp, EP: o.ep, DP: o.dp}
	s.Local, err = o.local.local(m)
	return s, err
}
