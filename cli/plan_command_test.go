package cli

import (
	"strings"
	"testing"

	"strandline/internal/test/live"
)

func TestEngineCommand(t *testing.T) {
	live.Sequential(t)
	for _, c := range []struct{ command, want, left string }{
		{"vllm serve Qwen/Qwen3-8B --tensor-parallel-size 2 --max-model-len 32k --port 8000 --enforce-eager", "engine=vllm model=Qwen/Qwen3-8B tp=2 gpus=2 max-model-len=32000 eager=true", ""},
		{"CUDA_VISIBLE_DEVICES=0 python3 -m vllm.entrypoints.openai.api_server --model=Qwen/Qwen3-8B --gpu_memory_utilization=0.8 --quantization compressed-tensors --enable-lora", "model=Qwen/Qwen3-8B mem-fraction=0.8 tp=1 quant=", "--enable-lora"},
		{"vllm serve deepseek-ai/DeepSeek-R1 -tp 1 --data-parallel-size 8 --enable-expert-parallel --max-num-seqs 64 --cpu-offload-gb 4", "cpu-offload-gb=4 tp=8 dp=8 ep=8 gpus=8 max-num-seqs=64", ""},
		{"vllm serve Qwen/Qwen3-8B --kv-cache-memory-bytes 2.5G --num_gpu_blocks_override=512", "kv-cache-bytes=2684354560 kv-blocks=512", ""},
		{"vllm serve Qwen/Qwen3-8B -dp 2", "tp=1 gpus=1 dp=0", "--data-parallel-size (one replica is planned)"},
		{"python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-V3 --tp 8 --dp 8 --enable-dp-attention --trust-remote-code --context-length 8192 --mem-fraction-static 0.85 --chunked-prefill-size 4096 --max-running-requests 128 --page-size 64",
			"engine=sglang model=deepseek-ai/DeepSeek-V3 tp=8 dp=8 gpus=8 max-model-len=8192 mem-fraction=0.85 max-batched-tokens=4096 max-num-seqs=128 block-size=64", ""},
		{"sglang serve --model deepseek-ai/DeepSeek-V3 --tp 16 --nnodes 2 --node-rank 1 --dist-init-addr a:1 --moe-a2a-backend deepep --cuda-graph-max-bs 128 --max-total-tokens 65536", "engine=sglang tp=16 gpus=16 nodes=2 ep=16 cuda-graph-max-bs=128 max-total-tokens=65536", ""},
		{"./llama-server -m qwen.gguf -c 65536 -np 4 -ngl 99 -ctk q8_0 --cache-type-v q4_0 -fa --n-cpu-moe 12 --port 8080 -md draft.gguf", "engine=llama.cpp model=qwen.gguf max-model-len=16384 max-num-seqs=4 gpu-layers=99 kv-dtype=q8_0 kv-dtype-v=q4_0 flash-attn=on n-cpu-moe=12", "-md"},
		{"llama-server -hf bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q5_K_M -c 32768 --kv-unified -np 2 -ngl auto", "model=bartowski/Meta-Llama-3.1-8B-Instruct quant=q5_k_m max-model-len=32768 kv-unified=true gpu-layers=-1", ""},
		{"OLLAMA_CONTEXT_LENGTH=8192 OLLAMA_NUM_PARALLEL=2 OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_FLASH_ATTENTION=1 OLLAMA_GPU_OVERHEAD=1 ollama run llama3.1:8b", "engine=ollama model=meta-llama/Llama-3.1-8B-Instruct max-model-len=8192 max-num-seqs=2 kv-dtype=q8_0 flash-attn=1", "OLLAMA_GPU_OVERHEAD"},
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
	for _, bad := range []string{"python train.py", "vllm serve a/b --tp x", "vllm serve a/b -dp 0", "llama-server -m a -c x"} {
		if _, err := engineCommand(newPlan(&globals{}), []string{bad}); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestOllamaModels finds the models that names of Ollama's library mean.
func TestOllamaModels(t *testing.T) {
	for name, want := range map[string]string{
		"llama3.1": "meta-llama/Llama-3.1-8B-Instruct", "llama3.1:70b-instruct-q8_0": "meta-llama/Meta-Llama-3.1-70B q8_0", "llama3.3:70b": "meta-llama/Llama-3.3-70B-Instruct",
		"qwen3:30b": "Qwen/Qwen3-30B-A3B", "qwen3:8b-q4_K_M": "Qwen/Qwen3-8B q4_k_m", "qwen2.5-coder:32b": "Qwen/Qwen2.5-Coder-32B-Instruct", "gpt-oss": "openai/gpt-oss-20b",
		"deepseek-r1:32b": "deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek-r1:671b": "deepseek-ai/DeepSeek-R1", "mistral": "mistralai/Mistral-7B-Instruct-v0.3", "phi4": "microsoft/phi-4",
		"gemma3:4b": "google/gemma-3-4b-it", "hf.co/bartowski/Qwen2.5-7B-Instruct-GGUF:Q6_K": "bartowski/Qwen2.5-7B-Instruct q6_k", "my-own": "my-own",
	} {
		m, quant := ollamaModel(name)
		if got := strings.TrimSpace(m + " " + quant); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
