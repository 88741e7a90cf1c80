package planner

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"strandline/face/report"
	"strandline/plan"
	"strandline/plan/model"
	"strandline/plan/rl"
	"strandline/plan/serving"
	"strandline/plan/training"
)

// parsed sets a kind by flags as people write them.
func parsed[K Kind](t *testing.T, kind K, flags string) K {
	t.Helper()
	if err := kind.Flags().Parse(strings.Fields(flags)); err != nil {
		t.Fatalf("%s: %v", flags, err)
	}
	return kind
}

// TestServing looks at what flags set of an engine.
func TestServing(t *testing.T) {
	for _, c := range []struct {
		flags string
		look  func(s *serving.Setup) any
		want  string
	}{
		{"", func(s *serving.Setup) any { return s.Parallel }, fmt.Sprint(plan.Parallel{TP: 8, PP: 1, Node: 8})},
		{"--tp 4", func(s *serving.Setup) any { return s.Parallel.PP }, "2"},
		{"--tp 4 --pp 2 --ep 8 --dp 4", func(s *serving.Setup) any { return s.Parallel }, fmt.Sprint(plan.Parallel{TP: 4, PP: 2, EP: 8, DP: 4, Node: 8})},
		{"--nodes 2 --gpus 1", func(s *serving.Setup) any { return s.Parallel.TP * s.Parallel.PP }, "16"},
		{"--cpu-offload-gb 1.5", func(s *serving.Setup) any { return s.Offload }, "1610612736"},
		{"--requests 4 --prompt-tokens 5 --output-tokens 6", func(s *serving.Setup) any { return s.Load }, "{4 5 6}"},
		{"--images 2 --image-size 640×480", func(s *serving.Setup) any { return []int64{s.Images.Count, s.Images.Width, s.Images.Height} }, "[2 640 480]"},
		{"--host-bandwidth 80", func(s *serving.Setup) any { return s.HostBandwidth == 80e9 }, "true"},
		{"--capacity 40GiB", func(s *serving.Setup) any { return s.GPU.Total / plan.GiB }, "40"},
		{"--max-total-tokens 5 --block-size 6 --max-num-seqs 7", func(s *serving.Setup) any { return []int64{s.MaxKV, s.Block, s.Requests} }, "[5 6 7]"},
		{"--kv-cache-bytes 20G", func(s *serving.Setup) any { return s.KVBytes / plan.GiB }, "20"},
		{"--kv-cache-bytes 5 --kv-blocks 6", func(s *serving.Setup) any { return []int64{s.KVBytes, s.Blocks} }, "[5 6]"},
		{"--engine llama.cpp --gpu-layers 3 --flash-attn off", func(s *serving.Setup) any { return fmt.Sprint(*s.Local.Layers, s.Local.Flash == serving.Off) }, "3 true"},
		{"--engine llama.cpp", func(s *serving.Setup) any { return s.Local.Layers == nil && s.Model.Quant != "" }, "true"},
	} {
		s, err := parsed(t, &Serving{}, "--model Meta-Llama-3.1-70B --gpu H100 --gpus 8 "+c.flags).Setup(model.Find)
		if err != nil {
			t.Errorf("%s: %v", c.flags, err)
		} else if got := fmt.Sprint(c.look(&s)); got != c.want {
			t.Errorf("%s: %s, want %s", c.flags, got, c.want)
		}
	}
}

// TestTraining looks at what flags set of a training step.
func TestTraining(t *testing.T) {
	for _, c := range []struct {
		flags string
		look  func(s *training.Setup) any
		want  string
	}{
		{"", func(s *training.Setup) any { return []int64{s.TP, s.PP, s.CP, s.Shard} }, "[1 1 1 16]"},
		{"--tp 2 --pp 2", func(s *training.Setup) any { return s.Shard }, "4"},
		{"--shard 8", func(s *training.Setup) any { return s.Shard }, "8"},
		{"--batch 2 --seq 8192 --accumulate 3", func(s *training.Setup) any { return []int64{s.Sequences, s.Length, s.Accumulate} }, "[2 8192 3]"},
		{"--lora 8", func(s *training.Setup) any { return fmt.Sprint(s.LoRA.Rank, s.LoRA.Targets, s.ParamBytes) }, "8 [q v] 2"},
		{"--offload optimizer", func(s *training.Setup) any { return fmt.Sprint(s.OffloadOptimizer, s.OffloadStates) }, "true false"},
		{"--offload all", func(s *training.Setup) any { return fmt.Sprint(s.OffloadOptimizer, s.OffloadStates) }, "false true"},
		{"--checkpointing none", func(s *training.Setup) any { return s.Checkpointing == training.KeepAll }, "true"},
		{"--compile", func(s *training.Setup) any { return s.Compile && s.LossCompiled }, "true"},
	} {
		s, gpu, err := parsed(t, &Training{}, "--model Meta-Llama-3.1-8B --gpu H100 --gpus 16 "+c.flags).Setup(model.Find)
		if err != nil {
			t.Errorf("%s: %v", c.flags, err)
		} else if got := fmt.Sprint(c.look(&s)); got != c.want || !strings.Contains(gpu.Name, "H100") || s.Model == nil {
			t.Errorf("%s: %s, want %s", c.flags, got, c.want)
		}
	}
}

// TestRL looks at what flags set of a step of reinforcement learning.
func TestRL(t *testing.T) {
	for _, c := range []struct {
		flags string
		look  func(s *rl.Setup) any
		want  string
	}{
		{"", func(s *rl.Setup) any {
			return []int64{s.Rollout.Length, s.Demand.Prompt, s.Demand.Response, s.Demand.Workers}
		}, "[4096 1024 3072 8]"},
		{"--rollout-tp 2 --max-model-len 1000", func(s *rl.Setup) any {
			return []int64{s.Rollout.Length, s.Demand.Prompt, s.Demand.Response, s.Demand.Workers}
		}, "[1000 500 500 4]"},
		{"--quant fp8", func(s *rl.Setup) any { return s.Rollout.Model.Quant != "" && s.Training.Model.Quant == "" }, "true"},
		{"--rollout vllm --reference --critic", func(s *rl.Setup) any { return fmt.Sprint(s.Rollout.Engine.Name, " ", s.Reference, s.Critic) }, "vllm true true"},
		{"--host-link 20 --disk 3", func(s *rl.Setup) any { return s.Speeds == rl.Speeds{Host: 20e9, Disk: 3e9} }, "true"},
		{"--gpus 16", func(s *rl.Setup) any { return s.Speeds.Link == plan.NodeLink }, "true"},
		{"--gpus 16 --sync-link 7", func(s *rl.Setup) any { return s.Speeds.Link == 7e9 }, "true"},
	} {
		s, err := parsed(t, &RL{}, "--model Qwen2.5-7B --gpu H100 --gpus 8 "+c.flags).Setup(model.Find)
		if err != nil {
			t.Errorf("%s: %v", c.flags, err)
		} else if got := fmt.Sprint(c.look(&s)); got != c.want {
			t.Errorf("%s: %s, want %s", c.flags, got, c.want)
		}
	}
}

// TestPlans returns the document that was asked for, and whether anything fits.
func TestPlans(t *testing.T) {
	for _, c := range []struct {
		kind  Kind
		flags string
		doc   Document
		fits  bool
	}{
		{&Serving{}, "--model Meta-Llama-3.1-8B --gpu H100", report.Plan{}, true},
		{&Serving{}, "--model Meta-Llama-3.1-405B --gpu H100", report.Plan{}, false},
		{&Serving{}, "--model Meta-Llama-3.1-405B --gpu H100 --solve gpus", report.Solved{}, true},
		{&Serving{}, "--model Meta-Llama-3.1-405B --capacity 1GiB --solve requests", report.Solved{}, false},
		{&Serving{}, "--model Meta-Llama-3.1-405B --gpu H100 --method textbook", report.Textbook{}, true},
		{&Training{}, "--model Meta-Llama-3.1-8B --gpu H100 --gpus 8", report.TrainPlan{}, true},
		{&Training{}, "--model Meta-Llama-3.1-8B --gpu H100", report.TrainPlan{}, false},
		{&Training{}, "--model Meta-Llama-3.1-8B --gpu H100 --gpus 8 --solve batch", report.Solved{}, true},
		{&RL{}, "--model Qwen2.5-7B --gpu H100 --gpus 8", report.RLPlan{}, true},
		{&RL{}, "--model Qwen2.5-72B --gpu H100 --gpus 1", report.RLPlan{}, false},
	} {
		doc, fits, err := parsed(t, c.kind, c.flags).Plan(model.Find)
		if err != nil || fmt.Sprintf("%T", doc) != fmt.Sprintf("%T", c.doc) || fits != c.fits {
			t.Errorf("%T %s: %T, fits: %t, %v", c.kind, c.flags, doc, fits, err)
		}
	}
}

// TestRefused says which flag is wrong.
func TestRefused(t *testing.T) {
	kinds := map[string]func() Kind{
		"serve": func() Kind { return &Serving{} }, "train": func() Kind { return &Training{} }, "rl": func() Kind { return &RL{} },
	}
	for _, c := range []struct{ kind, flags, want string }{
		{"serve", "--gpus 0", "--gpus 0"},
		{"serve", "--capacity x", `--capacity "x"`},
		{"serve", "--engine tgi", `unknown --engine "tgi"`},
		{"serve", "--kv-dtype int2", `unknown --kv-dtype "int2"`},
		{"serve", "--method guess", `--method "guess"`},
		{"serve", "--image-size 640", `--image-size "640"`},
		{"serve", "--image-size 0x4", `--image-size "0x4"`},
		{"serve", "--host-bandwidth NaN", "--host-bandwidth NaN"},
		{"serve", "--cpu-offload-gb -1", "--cpu-offload-gb -1"},
		{"serve", "--gpu-layers 3", "--gpu-layers is an option of llama.cpp"},
		{"serve", "--engine llama.cpp --tp 2", "--tp cannot be used with llama.cpp"},
		{"serve", "--engine llama.cpp --cpu-experts 2", "--n-cpu-moe"},
		{"serve", "--engine llama.cpp --mem-fraction 0.5", "--mem-fraction cannot be used"},
		{"serve", "--engine llama.cpp --flash-attn maybe", `--flash-attn "maybe"`},
		{"train", "--trainer x", "x"},
		{"train", "--optimizer x", "x"},
		{"train", "--batch 0", "--batch 0"},
		{"train", "--tp 3", "8 GPUs are not a multiple of TP 3"},
		{"train", "--tp 9223372036854775807 --pp 2", "8 GPUs are not a multiple"},
		{"train", "--shard 3", "--shard 3 does not divide 8"},
		{"train", "--checkpointing some", `unknown --checkpointing "some"`},
		{"train", "--offload some", `unknown --offload "some"`},
		{"train", "--lora-base nf4", "also give --lora"},
		{"train", "--lora 8 --lora-base int3", `unknown --lora-base "int3"`},
		{"rl", "--rollout llama.cpp", `unknown --rollout "llama.cpp"`},
		{"rl", "--rollout-tp 3", "--rollout-tp 3 does not divide 8"},
		{"rl", "--rollout-tp 0", "--rollout-tp 0"},
		{"rl", "--prompts -1", "--prompts -1 is out of range"},
		{"rl", "--prompts 1 --prompt-tokens 4000 --response-tokens 4000", "longer than a request may be, 4096"},
		{"rl", "--host-link -1", "--host-link -1"},
	} {
		kind := parsed(t, kinds[c.kind](), "--model Meta-Llama-3.1-8B --gpu H100 --gpus 8 "+c.flags)
		if _, _, err := kind.Plan(model.Find); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.kind, c.flags, err, c.want)
		}
	}
	for flags, want := range map[string]string{"": "no --model given", "--model Meta-Llama-3.1-8B": "neither --gpu nor --capacity given"} {
		if _, _, err := parsed(t, &Serving{}, flags).Plan(model.Find); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", flags, err, want)
		}
	}
}

// TestPageReads has a page read the model that it was given, once, and no other.
func TestPageReads(t *testing.T) {
	var read []string
	p := NewPage("own.gguf", func(name, quant string) (*model.Model, error) {
		read = append(read, name+" "+quant)
		return model.Find("Meta-Llama-3.1-8B", quant)
	})
	for _, c := range []struct {
		model string
		known bool
	}{{"own.gguf", true}, {"own.gguf", true}, {"other.gguf", false}, {"Qwen2.5-7B", true}} {
		a := p.Ask(t.Context(), "plan", map[string][]string{"mode": {"serve"}, "model": {c.model}, "gpu": {"H100"}})
		if a.Status != 200 || strings.Contains(string(a.Body), `"error"`) == c.known {
			t.Errorf("%s: status %d, %.200s", c.model, a.Status, a.Body)
		}
	}
	if !slices.Equal(read, []string{"own.gguf "}) {
		t.Errorf("read %q", read)
	}
}
