package model

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]string{ // the format of most weights
		"RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic":    "fp8",
		"neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8":     "fp8",
		"Qwen/Qwen2.5-14B-Instruct-AWQ":                  "awq-int4",
		"Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8":             "gptq-int8",
		"unsloth/Qwen2.5-1.5B-Instruct-unsloth-bnb-4bit": "nf4",
		"RedHatAI/phi-4-quantized.w8a8":                  "int8",
		"Qwen/Qwen3-8B":                                  "",
		"deepseek-ai/DeepSeek-R1":                        "fp8-block",
	} {
		m, err := Find(name, "")
		if err != nil || m.Quant != want {
			t.Errorf("%s: %v, %v; want %q", name, m, err, want)
		}
	}
	for dir, want := range map[string]string{
		"/data/DeepSeek-R1/": "DeepSeek-R1", `C:\models\Qwen3-8B`: "Qwen3-8B", "Qwen/Qwen3-8B": "Qwen3-8B",
		"/root/.cache/huggingface/hub/models--Qwen--Qwen3-8B/snapshots/0123abcd": "Qwen/Qwen3-8B",
	} {
		if got := FolderName(dir); got != want {
			t.Errorf("%s is named after %q, want %q", dir, got, want)
		}
	}
	if _, err := Find("Qwen/Qwen3-8B-4bit", ""); err == nil || !strings.Contains(err.Error(), "--quant") {
		t.Errorf("an unknown format: %v", err)
	}
}

// TestQuantInTheName takes the format from a name where the config states none.
func TestQuantInTheName(t *testing.T) {
	const config = `{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":128,"vocab_size":1024,"dtype":"bfloat16"}`
	for name, want := range map[string]string{
		"a/B-7B-NVFP4": "nvfp4", "a/B-7B": "", "/models/B-7B-AWQ/": "awq-int4", "a/B-7B-NVFP4A16": "nvfp4", "a/B-7B-MXFP4": "mxfp4",
		"a/B-7B-FP8-dynamic": "fp8", "a/B-7B-w4a16": "int4", "a/B-7B-W4AFP8": "int4", "a/B-7B-W8A16": "int8", "a/B-7B-GPTQ-Int4": "gptq-int4",
		"a/B-7B-AutoRound": "gptq-int4", "a/B-7B-HQQ": "hqq-int4", "a/B-7B-Q4_K_M": "gguf-Q4_K_M",
		"mlx-community/B-7B-6bit": "mlx-int6", "a/B-7B-MLX-4bit": "mlx-int4", "a/B-7B-MLX-bf16": "",
	} {
		m, err := Parse(name, []byte(config), "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if m.Quant != want || (m.Unsure != "") != (want != "") {
			t.Errorf("%s: %q, unsure %q, want %q", name, m.Quant, m.Unsure, want)
		}
	}
	for _, name := range []string{"a/B-7B-4bit", "a/B-7B-3-bit", "a/B-7B-exl3", "a/B-7B-AQLM-2Bit", "a/B-7B-FP4"} {
		if _, err := Parse(name, []byte(config), ""); err == nil || !strings.Contains(err.Error(), "give --quant") {
			t.Errorf("%s states a format that is not known: %v", name, err)
		}
	}
	if m, err := Parse("a/B-7B-AWQ", []byte(config), "bf16"); err != nil || m.Quant != "" {
		t.Error("the format that is asked for is not taken", err)
	}
}
