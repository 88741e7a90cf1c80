package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strandline/model"
)

// trainingOf reads a row of a table with the columns of a training set-up.
func trainingOf(r row, m *model.Model) (Training, error) {
	for _, name := range []string{"micro_batch", "seq_len", "optimizer", "param_dtype"} {
		if r[name] == "" {
			return Training{}, fmt.Errorf("the column %s is empty; there is no plan without it", name)
		}
	}
	t := Training{
		Model: m, Framework: strings.ToLower(r["framework"]), Year: yearOf(r["version"]),
		Shard: r.whole("dp_shard", 1), TP: r.whole("tp", 1), PP: r.whole("pp", 1), CP: r.whole("cp", 1), ZeRO: r.whole("zero_stage", 0),
		SequenceParallel: r["sequence_parallel"] == "1", Keep: r["reshard_after_forward"] == "no",
		Sequences: r.whole("micro_batch", 1), Accumulate: r.whole("grad_accum", 1), Length: r.whole("seq_len", 1),
		ParamBytes: widthOf(r["param_dtype"]), ComputeBytes: widthOf(r["compute_dtype"]), GradBytes: widthOf(r["grad_dtype"]),
		Optimizer: r["optimizer"], Master: r["master_weights"] == "yes",
		Compile: r["compile"] == "1", LossCompiled: r["loss_compiled"] == "1", Float8: r["float8"], LossChunks: r.whole("loss_chunks", 1),
		OptimizerInBackward: r["optimizer_in_backward"] == "1", OffloadActivations: r["activation_offload"] == "1",
		OffloadStates: strings.Contains(r["cpu_offload"], "params"), OffloadOptimizer: r["cpu_offload"] == "optimizer",
		Checkpointing: Checkpointing(r["activation_checkpointing"]), Observed: r["observed_what"],
	}
	t.StateBytes, _ = r.number("optimizer_state_bytes_per_param")
	if t.ZeRO > 3 {
		return t, fmt.Errorf("zero_stage %d is not known", t.ZeRO)
	}
	if n, ok := strings.CutPrefix(r["activation_checkpointing"], "selective-layer-"); ok {
		every, err := strconv.ParseInt(n, 10, 32)
		if err != nil || every < 1 {
			return t, fmt.Errorf("activation_checkpointing %q is not known", r["activation_checkpointing"])
		}
		t.EveryNth = every
	} else if !slices.Contains([]Checkpointing{KeepAll, KeepMatmuls, KeepInputs, ""}, t.Checkpointing) {
		return t, fmt.Errorf("activation_checkpointing %q is not known", t.Checkpointing)
	}
	if n, ok := strings.CutPrefix(r["pp_schedule"], "interleaved-1F1B-"); ok {
		t.Interleaved, _ = strconv.ParseInt(n, 10, 32)
	}
	if r["method"] == "lora" || r["method"] == "qlora" {
		t.LoRA = &Adapters{Rank: r.whole("lora_rank", 8), Targets: strings.Fields(r["lora_targets"]), Base: r["base_quant"]}
	}
	return t, nil
}

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

// widthOf is the bytes of a number by the name of its type, 0 if unknown.
func widthOf(name string) float64 {
	return map[string]float64{"fp32": 4, "float32": 4, "bf16": 2, "bfloat16": 2, "fp16": 2, "float16": 2, "fp8": 1}[name]
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
	return compared(r, component, column, float64(p.Low)/gib, float64(p.High)/gib, "")
}
