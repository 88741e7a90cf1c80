package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/report"
	"strandline/plan"
	"strandline/plan/model"
	"strandline/plan/observed"
	"strandline/plan/serving"
	"strandline/units"
)

// planOptions are the flags of plan that its subcommands have too.
type planOptions struct {
	model, quant string
	gpu          string
	gpus         int64
	capacity     string
	markdown     bool
	strict       bool
	page         pageOptions
}

func (o *planOptions) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&o.model, "model", "", "a folder, a config.json, a GGUF file, or the `NAME` of a well-known model")
	f.StringVar(&o.quant, "quant", "", "plan the weights in `FORMAT`: "+strings.Join(quantFormats(), ", "))
	f.StringVar(&o.gpu, "gpu", "", "the `NAME` of the GPU, such as H200")
	f.Int64Var(&o.gpus, "gpus", 1, "the number `N` of GPUs")
	f.StringVar(&o.capacity, "capacity", "", "the memory `SIZE` that the driver reports for a GPU, instead of the table's")
	f.BoolVar(&o.markdown, "markdown", false, "print Markdown, for a ticket")
	o.page.add(c)
	completeWith(c, "quant", quantFormats)
	completeWith(c, "gpu", plan.GPUs)
	completeWith(c, "model", model.Catalog)
}

func completeWith(c *cobra.Command, flag string, values func() []string) {
	c.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveDefault
	})
}

// read finds the model and the GPU.
func (o *planOptions) read(g *globals) (*model.Model, *plan.GPU, error) {
	if o.model == "" {
		return nil, nil, errors.New("no --model given")
	}
	m, err := g.model(o.model, o.quant)
	if err != nil {
		return nil, nil, err
	}
	gpu, err := o.device()
	return m, gpu, err
}

func (o *planOptions) device() (*plan.GPU, error) {
	if o.gpus < 1 {
		return nil, fmt.Errorf("--gpus %d: want a number above 0", o.gpus)
	}
	var size int64
	if o.capacity != "" {
		var err error
		if size, err = units.ParseBytes(o.capacity); err != nil || size <= 0 {
			return nil, fmt.Errorf("--capacity %q is not a size", o.capacity)
		}
	}
	if o.gpu == "" {
		if size == 0 {
			return nil, errors.New("neither --gpu nor --capacity given")
		}
		return &plan.GPU{Name: "GPU", Total: size, Board: size, Source: "given"}, nil
	}
	g, err := plan.FindGPU(o.gpu)
	if err != nil || size == 0 {
		return g, err
	}
	own := *g
	own.Total, own.Source = size, "total: given"
	return &own, nil
}

type servingOptions struct {
	planOptions
	engine, version                string
	tp, pp, ep, dp, host           int64
	kv                             string
	length, step, seqs, block      int64
	tokens, graphs                 int64
	fraction, offload              float64
	eager, mtp, formats            bool
	method, against, models, check string
	solve                          string
	local                          localOptions
	load                           loadOptions
	machines                       machineOptions
}

// newPlan is long because it is a flat list of flags and what they set.
func newPlan(g *globals) *cobra.Command {
	var o servingOptions
	c := &cobra.Command{
		Use:   "plan",
		Short: "Plan memory before the run, and check the run against the plan",
		Long: `Plan the memory of an inference engine (vLLM, SGLang, llama.cpp, Ollama):
weights, KV cache, activations, CUDA graphs and memory outside PyTorch, on the
GPU with the least headroom; what stays in the host's memory; what fits, and the
flags for it. "plan train" plans a training step, "plan rl" the phases of
reinforcement learning; "plan gpus" and "plan models" list what is built in.

What cannot be computed is a range, with its source. --page opens a form in the
browser that plans as you type, filled with the flags given. The command line of
an engine after -- gives the flags that are not given. The exit status is 1
where nothing fits.`,
		Example: `  strandline plan --model DeepSeek-R1 --gpu H200 --gpus 16 --engine vllm
  strandline plan --model ./my-model --gpu L40S --engine sglang --formats
  strandline plan --model Qwen3-32B --gpu H100 --gpus 2 --solve context
  strandline plan --gpu H200 -- vllm serve Qwen/Qwen3-32B --tensor-parallel-size 2
  strandline plan --gpu RTX-4090 -- llama-server -m model.gguf -c 32768 -np 2
  strandline plan --page
  strandline plan --check vllm.log --model Llama-3.1-8B
  strandline plan --against observed.csv --models configs.json`,
		Args: func(c *cobra.Command, args []string) error {
			if c.ArgsLenAtDash() == 0 {
				return nil
			}
			return noArguments(c, args)
		},
		RunE: func(c *cobra.Command, command []string) error {
			if len(command) == 0 {
				return runPlan(c, g, o)
			}
			left, err := engineCommand(c, command)
			if err != nil {
				return err
			}
			if len(left) > 0 {
				fmt.Fprintf(g.env.Stderr, "strandline: ignored, it does not affect the plan: %s\n", report.Printable(strings.Join(left, ", ")))
			}
			return runPlan(c, g, o)
		},
	}
	o.add(c)
	f := c.Flags()
	f.StringVar(&o.engine, "engine", "vllm", "`ENGINE`: "+strings.Join(engines(), ", "))
	f.StringVar(&o.version, "engine-version", "", "its `VERSION`, such as 0.8; the newest if not given")
	f.Int64Var(&o.tp, "tp", 0, "tensor parallel ranks `N`; up to 8 of the GPUs if not given")
	f.Int64Var(&o.pp, "pp", 0, "pipeline stages `N`")
	f.Int64Var(&o.ep, "ep", 0, "ranks `N` among which whole experts are divided")
	f.Int64Var(&o.dp, "dp", 0, "replicas `N` of the attention among the TP ranks")
	f.Int64Var(&o.host, "cpu-experts", 0, "experts `N` of each layer that are kept in the host's memory")
	f.Float64Var(&o.offload, "cpu-offload-gb", 0, "of vLLM: weights `GIB` of each GPU that are kept in the host's memory")
	f.StringVar(&o.kv, "kv-dtype", "", "the `TYPE` of keys and values, such as fp8")
	f.Int64Var(&o.length, "max-model-len", 0, "tokens `N` of a request; the model's own limit if not given")
	f.Int64Var(&o.step, "max-batched-tokens", 0, "tokens `N` of a forward pass (chunked prefill size); the engine's default if not given")
	f.Int64Var(&o.seqs, "max-num-seqs", 0, "requests `N` that run at once; the engine's default if not given")
	f.Int64Var(&o.block, "block-size", 0, "tokens `N` of a block of the KV cache")
	f.Int64Var(&o.tokens, "max-total-tokens", 0, "a limit `N` of the KV cache, in tokens")
	f.Int64Var(&o.graphs, "cuda-graph-max-bs", 0, "the largest batch `N` that is captured as a CUDA graph; the engine's default if not given")
	f.Float64Var(&o.fraction, "mem-fraction", 0, "the share `X` of the GPU for the engine (gpu_memory_utilization, mem_fraction_static)")
	f.BoolVar(&o.eager, "eager", false, "without CUDA graphs")
	f.BoolVar(&o.mtp, "mtp", false, "load the model's layers for multi-token prediction")
	f.BoolVar(&o.formats, "formats", false, "compare BF16, FP8, INT8 and INT4 weights side by side")
	f.StringVar(&o.method, "method", "", "`METHOD`: textbook, the simple formulas in common use, beside this plan")
	f.StringVar(&o.solve, "solve", "", "look for the best `WHAT`: "+strings.Join(serving.Questions, ", "))
	f.StringVar(&o.against, "against", "", "check plans against a `TABLE` (CSV) of observed figures")
	f.StringVar(&o.check, "check", "", "check the `LOG` of an engine against the plan of its set-up")
	f.BoolVar(&o.strict, "strict", false, "with --check: exit with 1 if more memory is used than planned")
	o.local.add(c)
	o.load.add(c)
	o.machines.add(c)
	f.StringVar(&o.models, "models", "", "a JSON `FILE` of configs by the name of their model, for --against")
	c.MarkFlagsMutuallyExclusive("against", "check", "solve", "method", "formats")
	completeWith(c, "engine", engines)
	completeWith(c, "kv-dtype", kvTypes)
	completeWith(c, "solve", func() []string { return serving.Questions })
	completeWith(c, "method", func() []string { return []string{"textbook"} })
	for _, sub := range []*cobra.Command{newPlanTrain(g), newPlanRL(g), newPlanGPUs(g), newPlanModels(g)} {
		sub.Long += "\n\n" + exitStatus
		c.AddCommand(sub)
	}
	return c
}

func runPlan(c *cobra.Command, g *globals, o servingOptions) error {
	if o.page.on {
		return g.planPage(c, &o.planOptions)
	}
	if o.against != "" {
		return g.planAgainst(o)
	}
	if o.check != "" {
		return g.planCheck(c.Context(), o)
	}
	s, err := o.serving(g)
	if err != nil {
		return err
	}
	if o.method != "" {
		if o.method != "textbook" {
			return fmt.Errorf("--method %q: the only method is textbook", o.method)
		}
		book, err := s.Textbook()
		if err != nil {
			return err
		}
		doc := report.NewTextbook(s, book)
		return g.printPlan(o.markdown, doc, doc.Text, doc.Markdown)
	}
	if o.solve != "" {
		return g.planSolve(o, s)
	}
	fit, err := s.Fit()
	if err != nil {
		return err
	}
	var formats []*serving.Fit
	if o.formats {
		if formats, err = o.sideBySide(g, s); err != nil {
			return err
		}
	}
	doc := report.NewPlan(fit, formats)
	return fitting(fit.Verdict != plan.TooMuch, g.printPlan(o.markdown, doc, doc.Text, doc.Markdown))
}

// fitting is the end of a command that printed a plan: what does not fit is a
// problem.
func fitting(fits bool, err error) error {
	if err == nil && !fits {
		return exit(exitProblem)
	}
	return err
}

// answered reports whether anything fits.
func answered(answers []plan.Answer) bool {
	return slices.ContainsFunc(answers, func(a plan.Answer) bool { return a.Value > 0 })
}

// printPlan prints a document as JSON, as Markdown or as text.
func (g *globals) printPlan(markdown bool, doc any, text func(io.Writer, report.Style), md func(io.Writer)) error {
	if markdown && !g.json {
		md(report.PrintableWriter(g.env.Stdout))
		return nil
	}
	return g.print(doc, text)
}

// serving is the set-up that the flags name.
func (o *servingOptions) serving(g *globals) (s serving.Setup, err error) {
	m, gpu, err := o.read(g)
	if err != nil {
		return s, err
	}
	e, ok := serving.ParseEngine(o.engine, o.version)
	if !ok {
		return s, fmt.Errorf("unknown --engine %q: want one of %s", o.engine, strings.Join(engines(), ", "))
	}
	if err := o.local.only(e, o); err != nil {
		return s, err
	}
	if e.Local() {
		if m, err = o.ggufModel(g, m); err != nil {
			return s, err
		}
	}
	kv, ok := serving.ParseKV(o.kv, m)
	if !ok {
		return s, fmt.Errorf("unknown --kv-dtype %q", o.kv)
	}
	for name, n := range map[string]int64{"tp": o.tp, "pp": o.pp, "ep": o.ep, "dp": o.dp, "max-model-len": o.length, "max-batched-tokens": o.step,
		"max-num-seqs": o.seqs, "block-size": o.block, "cpu-experts": o.host, "n-cpu-moe": o.local.hostMoE, "requests": o.load.requests, "prompt-tokens": o.load.prompt, "output-tokens": o.load.output, "images": o.load.images, "max-total-tokens": o.tokens, "cuda-graph-max-bs": o.graphs} {
		if const40 := int64(1) << 40; n < 0 || n > const40 {
			return s, fmt.Errorf("--%s %d is out of range", name, n)
		}
	}
	if o.host > 0 {
		m = m.WithoutExperts(o.host)
	}
	p := plan.Parallel{TP: 1, PP: o.gpus}
	if !e.Local() {
		gpus, node, err := o.machines.divide(o.gpus, gpu)
		if err != nil {
			return s, err
		}
		if p, err = plan.Divide(m, gpus, o.tp, o.pp, node); err != nil {
			return s, err
		}
		p.EP, p.DP = o.ep, o.dp
	}
	s = serving.Setup{Model: m, Engine: e, Parallel: p, KV: kv, Length: o.length, Block: o.block, Step: o.step,
		Requests: o.seqs, MaxKV: o.tokens, Graphs: o.graphs, Eager: o.eager, Draft: o.mtp, GPU: gpu, Fraction: o.fraction}
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

// planSolve looks for the best value of something, as given and with changes.
func (g *globals) planSolve(o servingOptions, s serving.Setup) error {
	var others []*model.Model
	if s.Model.Quant == "" {
		formats := []string{"fp8", "int4"}
		if s.Engine.Local() {
			formats = nil
		}
		for _, quant := range formats {
			m, err := g.model(o.model, quant)
			if err != nil {
				return err
			}
			others = append(others, m)
		}
	}
	answers, err := serving.Solve(o.solve, serving.Variants(s, others))
	if err != nil {
		return err
	}
	setup := fmt.Sprintf("%s on %s", s.Engine, s.GPU.Name)
	if o.solve != "gpus" {
		setup = fmt.Sprintf("%s on %d × %s", s.Engine, o.gpus, s.GPU.Name)
	}
	doc := report.NewSolved(s.Model, o.solve, setup, answers)
	return fitting(answered(answers), g.printPlan(o.markdown, doc, doc.Text, doc.Markdown))
}

// sideBySide returns the plans of the same set-up in the usual formats.
func (o *servingOptions) sideBySide(g *globals, s serving.Setup) (out []*serving.Fit, err error) {
	formats := []string{"bf16", "fp8", "int8", "int4"}
	if s.Engine.Local() {
		formats = []string{"bf16", "q8_0", "q6_k", "q4_k_m", "q3_k_m"}
	}
	for _, quant := range formats {
		other := s
		if other.Model, err = g.model(o.model, quant); err != nil {
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

func (g *globals) planAgainst(o servingOptions) error {
	find, err := modelConfigs(o.models)
	if err != nil {
		return err
	}
	f, err := os.Open(o.against)
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := observed.Against(f, find)
	if err != nil {
		return fmt.Errorf("%s: %w", o.against, err)
	}
	if len(rows) == 0 {
		return fmt.Errorf("%s: no row of it can be planned: want the columns id, kind and model_id, or those of a training set-up", o.against)
	}
	doc := report.NewAgainst(strings.TrimSpace(o.against), rows)
	return g.printPlan(o.markdown, doc, doc.Text, doc.Markdown)
}
