package planner

import (
	"fmt"
	"strings"

	"strandline/face/api"
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

func (o *trainOptions) add(f *Flags, prefix string) {
	f.StringVar(&o.trainer, "trainer", "fsdp", "`NAME` of the set-up: "+strings.Join(training.Trainers(), ", "))
	f.StringVar(&o.optimizer, "optimizer", "", "`NAME`: "+strings.Join(optimizers(), ", "))
	f.Int64Var(&o.tp, prefix+"tp", 1, "tensor parallel ranks `N`")
	f.Int64Var(&o.pp, prefix+"pp", 1, "pipeline stages `N`")
	f.Int64Var(&o.interleaved, "interleaved", 1, "stages `N` of each rank")
	f.Int64Var(&o.cp, "cp", 1, "ranks `N` that share a sequence")
	f.Int64Var(&o.dp, "shard", 0, "ranks `N` that share the parameters (default: all others)")
	f.Int64Var(&o.batch, "batch", 1, "sequences `N` of a forward pass on one GPU")
	f.Int64Var(&o.accumulate, "accumulate", 1, "forward passes `N` of a step (micro-batches of stages)")
	f.Int64Var(&o.length, "seq", 4096, "sequence length `N`, tokens")
	f.Int64Var(&o.chunk, "loss-chunks", 1, "parts `N` of logits and loss, computed in turn")
	f.StringVar(&o.checkpointing, "checkpointing", "full", "activation checkpointing, `KIND`: none, selective-op, full")
	f.StringVar(&o.offload, "offload", "none", "keep `WHAT` in host memory: none, optimizer, all")
	f.Int64Var(&o.lora, "lora", 0, "train only adapters of this `RANK`")
	f.StringVar(&o.targets, "lora-targets", "q,v", "matrices with adapters, `LIST` of q,k,v,o,gate,up,down")
	f.StringVar(&o.base, "lora-base", "none", "`FORMAT` of the frozen weights: none, nf4")
	f.BoolVar(&o.compile, "compile", false, "compile blocks and loss")
	f.BoolVar(&o.hostExperts, "cpu-experts", false, "keep experts in host memory")
	f.Choices["trainer"] = training.Trainers
	f.Choices["optimizer"] = optimizers
	f.offer("offload", "none", "optimizer", "all")
	f.offer("lora-base", "none", "nf4")
	f.offer("checkpointing", "none", "selective-op", "full")
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
	const maxCount = 1 << 20
	if o.tp > maxCount || o.pp > maxCount || o.cp > maxCount || gpus%(o.tp*o.pp*o.cp) != 0 {
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
		return t, fmt.Errorf("--lora-base %s is for frozen weights: also give --lora", o.base)
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

// Training is a plan of a training step.
type Training struct {
	Options
	train trainOptions
	solve string
}

// Flags are the flags that set o.
func (o *Training) Flags() *Flags {
	f := newFlags()
	o.Options.add(f)
	f.MarkHidden("quant")
	o.train.add(f, "")
	f.StringVar(&o.solve, "solve", "", "look for the best `WHAT`: "+strings.Join(training.Questions, ", "))
	f.offer("solve", training.Questions...)
	return f
}

// Setup is the set-up that the flags name, with its GPU.
func (o *Training) Setup(find Models) (t training.Setup, gpu *plan.GPU, err error) {
	o.Quant = "bf16" // what is trained; frozen weights have --lora-base
	m, gpu, err := o.read(find)
	if err != nil {
		return t, nil, err
	}
	if t, err = o.train.training(o.GPUs); err != nil {
		return t, nil, err
	}
	t.Model = m
	return t, gpu, t.Check()
}

// Words describe the set-up: the trainer, and what its flags change.
func (o *Training) Words() string { return o.train.trainer + o.train.words() }

// Plan is the plan of a step, or what --solve asks for.
func (o *Training) Plan(find Models) (Document, bool, error) {
	t, gpu, err := o.Setup(find)
	if err != nil {
		return nil, false, err
	}
	if o.solve != "" {
		answers, err := training.Solve(o.solve, t, gpu)
		return report.Solved{Solved: api.NewSolved(t.Model, o.solve, o.train.trainer+" on "+gpu.Name+o.train.words(), answers)}, answered(answers), err
	}
	doc := report.TrainPlan{TrainPlan: api.NewTrainPlan(t, o.train.trainer, o.train.words(), gpu, o.GPUs)}
	return doc, doc.Verdict.Possible(), nil
}
