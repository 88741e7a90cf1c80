package training

import (
	"fmt"
	"slices"
	"strings"

	"strandline/plan"
)

// trainers are set-ups that go by a name. Bytes of a parameter, without
// activations: fsdp 4 + 4 + 8 of fp32, all sharded; zero 2 + 2 of bf16 and 12 of a
// master copy and two states, of which each stage shards more; megatron with its
// distributed optimizer 2 + 4, and 12 sharded; torchtune 2 + 2 + 4, all of bf16 and
// sharded. Sources: torchtitan; arXiv
// 1910.02054; Megatron-LM, docs of the distributed optimizer.
var trainers = map[string]Setup{
	"fsdp":     {Framework: "torchtitan", ZeRO: 3, ParamBytes: 4, ComputeBytes: 2, GradBytes: 4, StateBytes: 8, SequenceParallel: true},
	"fsdp1":    {Framework: "fsdp1", ZeRO: 3, ParamBytes: 4, ComputeBytes: 2, GradBytes: 4, StateBytes: 8, SequenceParallel: true},
	"ddp":      {Framework: "ddp", ParamBytes: 4, ComputeBytes: 2, GradBytes: 4, StateBytes: 8, Autocast: true, Buckets: true},
	"zero1":    {Framework: "deepspeed", ZeRO: 1, ParamBytes: 2, ComputeBytes: 2, GradBytes: 2, StateBytes: 8, Master: true},
	"zero2":    {Framework: "deepspeed", ZeRO: 2, ParamBytes: 2, ComputeBytes: 2, GradBytes: 2, StateBytes: 8, Master: true},
	"zero3":    {Framework: "deepspeed", ZeRO: 3, ParamBytes: 2, ComputeBytes: 2, GradBytes: 2, StateBytes: 8, Master: true},
	"megatron": {Framework: "megatron", ZeRO: 1, ParamBytes: 2, ComputeBytes: 2, GradBytes: 4, StateBytes: 8, Master: true, SequenceParallel: true},

	"torchtune": {Framework: "torchtune", ZeRO: 3, ParamBytes: 2, ComputeBytes: 2, GradBytes: 2, StateBytes: 4},
}

// Trainers are the names of the set-ups that are known.
func Trainers() (names []string) {
	for name := range trainers {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Trainer is a set-up by its name.
func Trainer(name string) (Setup, error) {
	if name == "fsdp2" {
		name = "fsdp"
	}
	t, ok := trainers[strings.ToLower(name)]
	if !ok {
		return t, fmt.Errorf("trainer %q is not known; these are: %s", name, strings.Join(Trainers(), ", "))
	}
	t.Optimizer = "adamw"
	return t, nil
}

// SetOptimizer takes an optimizer by its name.
func (t *Setup) SetOptimizer(name string) error {
	bytes, ok := map[string]float64{"adamw": 8, "adamw-bf16": 4, "adamw-8bit": 2, "paged-adamw-8bit": 0, "muon": 4, "sgd": 0}[name]
	if !ok {
		return fmt.Errorf("optimizer %q is not known; adamw, adamw-bf16, adamw-8bit, paged-adamw-8bit, muon and sgd are", name)
	}
	if (name == "adamw" || name == "muon") && t.pureBF16() { // their states are of the parameters' type
		bytes /= 2
	}
	t.Optimizer, t.StateBytes = name, bytes
	return nil
}

// pureBF16 reports whether nothing of a parameter is held in fp32.
func (t *Setup) pureBF16() bool { return t.ParamBytes == 2 && !t.Master }

// Outside returns what a training process holds outside PyTorch's allocator: the CUDA
// context, and NCCL's buffers where there are several ranks. Logs of FSDP and
// Megatron runs show 0.4 to 0.6 GiB and 0.3 to 1.5 GiB.
func (t Setup) Outside() plan.Range {
	const mib = 1 << 20
	r := plan.Range{Low: 400 * mib, High: 600 * mib}
	if t = t.Normal(); t.Shard*t.TP*t.PP*t.CP > 1 {
		r = r.Plus(plan.Range{Low: 300 * mib, High: 1500 * mib})
	}
	return r
}

// Notes returns what was assumed about the model, and what of it is not counted.
func (t Setup) Notes() []string {
	out := slices.Clone(t.Model.Notes)
	if t.Model.Unsure != "" {
		out = append(out, t.Model.Unsure)
	}
	if len(t.Model.Towers) > 0 {
		out = append(out, "towers for images or sound are also trained; their activations are not counted")
	}
	if len(t.Model.Predictors) > 0 {
		out = append(out, "the layers for multi-token prediction are not trained")
	}
	return out
}

// Check refuses impossible set-ups.
func (t Setup) Check() error {
	t = t.Normal()
	const maxDegree = 1 << 20
	for _, n := range []struct {
		name string
		n    int64
	}{{"sharding degree", t.Shard}, {"tp", t.TP}, {"pp", t.PP}, {"cp", t.CP}, {"batch", t.Sequences}, {"accumulate", t.Accumulate}, {"loss chunks", t.LossChunks}} {
		if n.n > maxDegree {
			return fmt.Errorf("%s %d is out of range", n.name, n.n)
		}
	}
	if t.Length > 1<<32 {
		return fmt.Errorf("a sequence of %d tokens is out of range", t.Length)
	}
	if t.PP > int64(len(t.Model.Layers)) {
		return fmt.Errorf("--pp %d: the model has %d layers", t.PP, len(t.Model.Layers))
	}
	if n := t.PP * min(t.Interleaved, maxDegree); n > int64(len(t.Model.Layers)) {
		return fmt.Errorf("--pp %d with %d stages a rank: the model has %d layers", t.PP, t.Interleaved, len(t.Model.Layers))
	}
	if t.LoRA != nil {
		if t.LoRA.Rank < 1 || t.LoRA.Rank > 1<<16 {
			return fmt.Errorf("a LoRA of rank %d is out of range", t.LoRA.Rank)
		}
		for _, x := range t.LoRA.Targets {
			if targetNames[x] == "" {
				return fmt.Errorf("LoRA target %q is not known; q, k, v, o, gate, up and down are", x)
			}
		}
		if t.hold(0).adapters == 0 {
			return fmt.Errorf("no LoRA target is in the model")
		}
	}
	return nil
}
