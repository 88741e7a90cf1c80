package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/report"
	"strandline/plan"
	"strandline/plan/training"
)

// trainOptions are the flags of a training set-up.
type trainOptions struct {
	trainer, optimizer               string
	tp, pp, cp, dp, interleaved      int64
	batch, accumulate, length, chunk int64
	checkpointing, offload           string
	lora                             int64
	targets, base                    string
	compile, hostExperts             bool
}

func (o *trainOptions) add(c *cobra.Command, prefix string) {
	f := c.Flags()
	f.StringVar(&o.trainer, "trainer", "fsdp", "`NAME` of the set-up: "+strings.Join(training.Trainers(), ", "))
	f.StringVar(&o.optimizer, "optimizer", "", "`NAME`: "+strings.Join(optimizers(), ", "))
	f.Int64Var(&o.tp, prefix+"tp", 1, "tensor parallel ranks `N`")
	f.Int64Var(&o.pp, prefix+"pp", 1, "pipeline stages `N`")
	f.Int64Var(&o.interleaved, "interleaved", 1, "stages `N` of each rank")
	f.Int64Var(&o.cp, "cp", 1, "ranks `N` among which a sequence is divided")
	f.Int64Var(&o.dp, "shard", 0, "ranks `N` among which parameters are sharded; all remaining ones if not given")
	f.Int64Var(&o.batch, "batch", 1, "sequences `N` of one forward pass on a GPU")
	f.Int64Var(&o.accumulate, "accumulate", 1, "forward passes `N` of a step (with stages: micro-batches)")
	f.Int64Var(&o.length, "seq", 4096, "tokens `N` of a sequence")
	f.Int64Var(&o.chunk, "loss-chunks", 1, "parts `N` in which logits and loss are computed")
	f.StringVar(&o.checkpointing, "checkpointing", "full", "activation checkpointing, `KIND`: none, selective-op, full")
	f.StringVar(&o.offload, "offload", "none", "what is kept in the host's memory, `WHAT`: none, optimizer, all")
	f.Int64Var(&o.lora, "lora", 0, "train adapters of this `RANK` only")
	f.StringVar(&o.targets, "lora-targets", "q,v", "matrices with adapters, `LIST` of q,k,v,o,gate,up,down")
	f.StringVar(&o.base, "lora-base", "none", "`FORMAT` of the frozen weights: none, nf4")
	f.BoolVar(&o.compile, "compile", false, "blocks and loss are compiled")
	f.BoolVar(&o.hostExperts, "cpu-experts", false, "experts of a mixture are kept in the host's memory")
	completeWith(c, "trainer", training.Trainers)
	completeWith(c, "optimizer", optimizers)
	completeWith(c, "offload", func() []string { return []string{"none", "optimizer", "all"} })
	completeWith(c, "lora-base", func() []string { return []string{"none", "nf4"} })
	completeWith(c, "checkpointing", func() []string { return []string{"none", "selective-op", "full"} })
}

// training is the set-up on so many GPUs, without its model.
func (o *trainOptions) training(gpus int64) (t training.Setup, err error) {
	if t, err = training.Trainer(o.trainer); err != nil {
		return t, err
	}
	if o.optimizer != "" {
		if err := t.SetOptimizer(o.optimizer); err != nil {
			return t, err
		}
	}
	for name, n := range map[string]int64{"tp": o.tp, "pp": o.pp, "cp": o.cp, "batch": o.batch, "accumulate": o.accumulate, "seq": o.length,
		"loss-chunks": o.chunk, "interleaved": o.interleaved} {
		if n < 1 {
			return t, fmt.Errorf("--%s %d: want a number above 0", name, n)
		}
	}
	const most = 1 << 20
	if o.tp > most || o.pp > most || o.cp > most || gpus%(o.tp*o.pp*o.cp) != 0 {
		return t, fmt.Errorf("%d GPUs are not a multiple of TP %d × PP %d × CP %d", gpus, o.tp, o.pp, o.cp)
	}
	t.TP, t.PP, t.CP, t.Interleaved = o.tp, o.pp, o.cp, o.interleaved
	left := gpus / (o.tp * o.pp * o.cp)
	if t.Shard = left; o.dp > 0 {
		if left%o.dp != 0 {
			return t, fmt.Errorf("--shard %d does not divide %d ranks", o.dp, left)
		}
		t.Shard = o.dp
	}
	t.Sequences, t.Accumulate, t.Length, t.LossChunks = o.batch, o.accumulate, o.length, o.chunk
	switch t.Checkpointing = training.Checkpointing(o.checkpointing); t.Checkpointing {
	case training.KeepAll, training.KeepMatmuls, training.KeepInputs:
	default:
		return t, fmt.Errorf("unknown --checkpointing %q: want none, selective-op or full", o.checkpointing)
	}
	switch o.offload {
	case "none":
	case "optimizer":
		t.OffloadOptimizer = true
	case "all":
		t.OffloadStates = true
	default:
		return t, fmt.Errorf("unknown --offload %q: want none, optimizer or all", o.offload)
	}
	if o.lora != 0 {
		t.ParamBytes, t.GradBytes = 2, 2 // frozen weights are held in bf16
		t.LoRA = &training.Adapters{Rank: o.lora, Targets: strings.Split(o.targets, ","), Base: o.base}
	}
	switch {
	case o.base != "none" && o.base != "nf4":
		return t, fmt.Errorf("unknown --lora-base %q: want none or nf4", o.base)
	case o.base != "none" && o.lora == 0:
		return t, fmt.Errorf("--lora-base %s is for frozen weights: give --lora too", o.base)
	}
	t.Compile, t.LossCompiled, t.ExpertsOnCPU = o.compile, o.compile, o.hostExperts
	return t, nil
}

func (o *trainOptions) words() string {
	text := fmt.Sprintf(": %d × %d tokens, checkpointing %s", o.batch, o.length, o.checkpointing)
	for _, d := range []struct {
		name string
		n    int64
	}{{"TP", o.tp}, {"PP", o.pp}, {"CP", o.cp}} {
		if d.n > 1 {
			text += fmt.Sprintf(", %s %d", d.name, d.n)
		}
	}
	if o.lora > 0 {
		text += fmt.Sprintf(", LoRA of rank %d", o.lora)
	}
	return text
}

func newPlanTrain(g *globals) *cobra.Command {
	var p planOptions
	var o trainOptions
	var solve, check string
	c := &cobra.Command{
		Use:   "train",
		Short: "Plan the memory of a training step",
		Long: `Plan the peak of a training step on the GPU that needs most: parameters,
gradients, optimizer states, activations, logits and the buffers of sharding, at
the four moments at which memory may peak. The exit status is 1 where it does not
fit.`,
		Example: `  strandline plan train --model Llama-3.1-8B --gpu H100 --gpus 8 --batch 2 --seq 8192 --checkpointing selective-op
  strandline plan train --model Qwen2.5-7B --gpu RTX-4090 --lora 16 --lora-targets q,k,v,o --lora-base nf4`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if p.page.on {
				return g.planPage(c, &p)
			}
			p.quant = "bf16" // what is trained; frozen weights have --lora-base
			if check != "" && p.gpu == "" && p.capacity == "" {
				p.capacity = "80GiB" // a check needs no GPU
			}
			m, gpu, err := p.read(g)
			if err != nil {
				return err
			}
			t, err := o.training(p.gpus)
			if err != nil {
				return err
			}
			t.Model = m
			if err := t.Check(); err != nil {
				return err
			}
			if check != "" {
				return g.planCheckStep(c.Context(), p, t, check, o.trainer+o.words())
			}
			if solve != "" {
				answers, err := training.Solve(solve, t, gpu)
				if err != nil {
					return err
				}
				doc := report.NewSolved(m, solve, o.trainer+" on "+gpu.Name+o.words(), answers)
				return fitting(answered(answers), g.printPlan(p.markdown, doc, doc.Text, doc.Markdown))
			}
			doc := report.NewTrainPlan(t, o.trainer, o.words(), gpu, p.gpus)
			return fitting(doc.Verdict != plan.TooMuch, g.printPlan(p.markdown, doc, doc.Text, doc.Markdown))
		},
	}
	p.add(c)
	c.Flags().MarkHidden("quant")
	o.add(c, "")
	c.Flags().StringVar(&solve, "solve", "", "look for the best `WHAT`: "+strings.Join(training.Questions, ", "))
	c.Flags().StringVar(&check, "check", "", "check `FILE`, a snapshot or the log of a trainer, against the plan")
	c.Flags().BoolVar(&p.strict, "strict", false, "with --check: exit with 1 if more memory is used than planned")
	completeWith(c, "solve", func() []string { return training.Questions })
	return c
}

func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes only flags; got %q", c.CommandPath(), args[0])
	}
	return nil
}
