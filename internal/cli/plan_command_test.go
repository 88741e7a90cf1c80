package cli

import (
	"slices"
	"strings"
	"testing"
)

func TestEngineCommand(t *testing.T) {
	for _, c := range []struct{ command, want, left string }{
		{"vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --max-model-len 32k --port 8000 --enforce-eager", "engine=vllm model=Qwen/Qwen3-8B tp=2 gpus=2 max-model-len=32000 eager=true", ""},
		{"CUDA_VISIBLE_DEVICES=0 python3 -m vllm.entrypoints.openai.api_server --model=Qwen/Qwen3-8B --gpu_memory_utilization=0.8 --quantization compressed-tensors --enable-lora", "model=Qwen/Qwen3-8B mem-fraction=0.8 tp=1 quant=", "--enable-lora"},
		{"vllm serve deepseek-ai/DeepSeek-R1 -tp 1 --data-parallel-size 8 --enable-expert-parallel --max-num-seqs 64", "tp=8 dp=8 ep=8 gpus=8 max-num-seqs=64", ""},
		{"vllm serve Qwen/Qwen3-8B -dp 2", "tp=1 gpus=1 dp=0", "--data-parallel-size (one replica is planned)"},
		{"python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 --dp 8 --enable-dp-attention --trust-remote-code --context-length 8192 --mem-fraction-static 0.85 --chunked-prefill-size 4096 --max-running-requests 128 --page-size 64",
			"engine=sglang model=deepseek-ai/DeepSeek-V3 tp=8 dp=8 gpus=8 max-model-len=8192 mem-fraction=0.85 max-batched-tokens=4096 max-num-seqs=128 block-size=64", ""},
	} {
		cmd := newPlan(&globals{})
		left, err := engineCommand(cmd, []string{c.command})
		if err != nil || strings.Join(left, " ") != c.left {
			t.Errorf("%s: %v, %v", c.command, left, err)
		}
		for pair := range strings.FieldsSeq(c.want) {
			name, want, _ := strings.Cut(pair, "=")
			if got := cmd.Flags().Lookup(name).Value.String(); got != want {
				t.Errorf("%s: --%s is %q, want %q", c.command, name, got, want)
			}
		}
	}
	cmd := newPlan(&globals{})
	if err := cmd.Flags().Set("tp", "4"); err != nil {
		t.Fatal(err)
	}
	if _, err := engineCommand(cmd, strings.Fields("vllm serve a/b --tp 2")); err != nil || cmd.Flags().Lookup("tp").Value.String() != "4" {
		t.Error("a flag that is given is not kept", err)
	}
	for _, bad := range []string{"python train.py", "vllm serve a/b --tp x", "vllm serve a/b -dp 0"} {
		if _, err := engineCommand(newPlan(&globals{}), []string{bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
	if slices.ContainsFunc(noMemory, func(s string) bool { return engineFlags["vllm"][s] != "" }) {
		t.Error("a flag is both planned and left out")
	}
}
