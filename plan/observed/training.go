package observed

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/plan"
	"strandline/plan/model"
	"strandline/plan/training"
)

// trainingOf reads a row of a table with the columns of a training set-up.
func trainingOf(r row, m *model.Model) (training.Setup, error) {
	for _, name := range []string{"micro_batch", "seq_len", "optimizer", "param_dtype"} {
		if r[name] == "" {
			return training.Setup{}, fmt.Errorf("the column %s is empty; there is no plan without it", name)
		}
	}
	if err := r.setup(); err != nil {
		return training.Setup{}, err
	}
	t := training.Setup{
		Model: m, Framework: strings.ToLower(r["framework"]), Year: yearOf(r["version"]),
		Shard: r.integer("dp_shard", 1), TP: r.integer("tp", 1), PP: r.integer("pp", 1), CP: r.integer("cp", 1), ZeRO: r.integer("zero_stage", 0),
		SequenceParallel: r["sequence_parallel"] == "1", Keep: r["reshard_after_forward"] == "no",
		Sequences: r.integer("micro_batch", 1), Accumulate: r.integer("grad_accum", 1), Length: r.integer("seq_len", 1),
		ParamBytes: widthOf(r["param_dtype"]), ComputeBytes: widthOf(r["compute_dtype"]), GradBytes: widthOf(r["grad_dtype"]),
		Master:  r["master_weights"] == "yes",
		Compile: r["compile"] == "1", LossCompiled: r["loss_compiled"] == "1", Float8: r["float8"], LossChunks: r.integer("loss_chunks", 1),
		OptimizerInBackward: r["optimizer_in_backward"] == "1", OffloadActivations: r["activation_offload"] == "1",
		OffloadStates: strings.Contains(r["cpu_offload"], "params"), OffloadOptimizer: r["cpu_offload"] == "optimizer",
		Checkpointing: training.Checkpointing(r["activation_checkpointing"]), Observed: r["observed_what"],
	}
	if err := t.SetOptimizer(r["optimizer"]); err != nil {
		return t, err
	}
	if x, ok := r.number("optimizer_state_bytes_per_param"); ok {
		t.StateBytes = x
	}
	if r["grad_dtype"] == "" { // gradients are made in the type of their parameters
		t.GradBytes = t.ParamBytes
	}
	if n, ok := strings.CutPrefix(r["activation_checkpointing"], "selective-layer-"); ok {
		every, err := strconv.ParseInt(n, 10, 32)
		if err != nil || every < 1 {
			return t, fmt.Errorf("activation_checkpointing %q is not known", r["activation_checkpointing"])
		}
		t.EveryNth = every
	} else if !slices.Contains([]training.Checkpointing{training.KeepAll, training.KeepMatmuls, training.KeepInputs, ""}, t.Checkpointing) {
		return t, fmt.Errorf("activation_checkpointing %q is not known", t.Checkpointing)
	}
	if n, ok := strings.CutPrefix(r["pp_schedule"], "interleaved-1F1B-"); ok {
		t.Interleaved, _ = strconv.ParseInt(n, 10, 32)
	}
	if r["method"] == "lora" || r["method"] == "qlora" {
		t.LoRA = &training.Adapters{Rank: r.integer("lora_rank", 8), Targets: strings.Fields(r["lora_targets"]), Base: r["base_quant"]}
	}
	return t, nil
}

// setupWords are what the columns of words can have; an empty cell is unknown or does
// not apply.
var setupWords = map[string][]string{
	"zero_stage": {"0", "1", "2", "3"}, "sequence_parallel": {"0", "1"}, "master_weights": {"no", "yes"},
	"param_dtype": dtypeNames, "compute_dtype": dtypeNames, "grad_dtype": dtypeNames,
	"compile": {"0", "1"}, "loss_compiled": {"0", "1"}, "float8": {"none", "linear", "all-gather", "mxfp8", "nvfp4"},
	"method": {"full", "lora", "qlora"}, "base_quant": {"none", "nf4"}, "optimizer_in_backward": {"0", "1"}, "activation_offload": {"0", "1"},
	"cpu_offload": {"none", "params+optimizer", "params", "optimizer"}, "reshard_after_forward": {"yes", "no", "all-but-last"},
}

// setup refuses cells with unknown values: a default instead would be a guess.
func (r row) setup() error {
	for _, name := range slices.Sorted(maps.Keys(setupWords)) {
		if r[name] != "" && !slices.Contains(setupWords[name], r[name]) {
			return fmt.Errorf("the column %s: %q is not known; these are: %s", name, r[name], strings.Join(setupWords[name], ", "))
		}
	}
	if x, ok := r.number("optimizer_state_bytes_per_param"); r["optimizer_state_bytes_per_param"] != "" && (!ok || x < 0 || x > 64) {
		return fmt.Errorf("the column optimizer_state_bytes_per_param: %q is not a value it can have", r["optimizer_state_bytes_per_param"])
	}
	if s := r["pp_schedule"]; s != "" && s != "1F1B" && !interleaved.MatchString(s) {
		return fmt.Errorf("the column pp_schedule: %q is not known; 1F1B and interleaved-1F1B-N are", s)
	}
	return r.numbers(1, "dp_shard", "dp_replicate", "tp", "pp", "cp", "micro_batch", "grad_accum", "seq_len", "loss_chunks", "lora_rank")
}

var interleaved = lazyregexp.New(`^interleaved-1F1B-[1-9]\d{0,3}$`)

// yearOf is a version that is a date, such as "2024-12", as a year.
func yearOf(version string) float64 {
	year, rest, _ := strings.Cut(version, "-")
	y, err := strconv.Atoi(year)
	if err != nil || y < 2000 || y > 2100 {
		return 0
	}
	month, err := strconv.Atoi(rest)
	if err != nil || month < 1 || month > 12 {
		return float64(y)
	}
	return float64(y) + float64(month-1)/12
}

var dtypeNames = []string{"fp32", "float32", "bf16", "bfloat16", "fp16", "float16", "fp8"}

// widthOf is the bytes of a number by the name of its type, 0 if it is not stated.
func widthOf(name string) float64 {
	switch {
	case name == "":
		return 0
	case strings.HasSuffix(name, "32"):
		return 4
	case name == "fp8":
		return 1
	}
	return 2
}

func trainingRow(r row, find func(id, quant string) (*model.Model, error)) Compared {
	const component, column = "train_peak", "train_peak_gib"
	m, err := find(r["model_id"], "bf16")
	if err != nil {
		return unplanned(r, component, column, err)
	}
	t, err := trainingOf(r, m)
	if err == nil {
		err = t.Check()
	}
	if err != nil {
		return unplanned(r, component, column, err)
	}
	p := t.Step().Peak
	return compared(r, component, column, float64(p.Low)/plan.GiB, float64(p.High)/plan.GiB, "")
}
