package serving

import (
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
)

func TestFormatsOfGPUs(t *testing.T) {
	for _, c := range []struct {
		model, quant, gpu, engine, version string
		tp, ep                             int64
		refused, note                      string
	}{
		{"Qwen3-8B", "fp8", "A100", "vllm", "", 1, 1, "", "computes in 16 bits (Marlin)"},
		{"Qwen3-8B", "fp8", "L40S", "vllm", "", 1, 1, "", ""},
		{"Qwen3-8B", "fp8", "V100", "vllm", "", 1, 1, "needs compute capability 7.5", ""},
		{"Qwen3-8B", "fp8", "T4", "vllm", "0.10", 1, 1, "needs compute capability 8.0", ""},
		{"Qwen3-8B", "fp8", "MI300X", "vllm", "", 1, 1, "", ""},
		{"Qwen3-8B", "fp8", "MI250", "vllm", "", 1, 1, "does not run fp8 on MI250 (cdna2)", ""},
		{"Qwen3-8B", "nvfp4", "H100", "vllm", "", 1, 1, "", "no units for nvfp4 (compute capability 10.0 has)"},
		{"Qwen3-8B", "nvfp4", "RTX-5090", "vllm", "", 1, 1, "", ""},
		{"Qwen3-8B", "", "P40", "vllm", "", 1, 1, "does not run 16 bits on P40", ""},
		{"Qwen3-8B", "", "V100", "sglang", "", 1, 1, "compute capability 7.5", ""},
		{"gpt-oss-20b", "", "A100", "vllm", "", 1, 1, "", "no units for mxfp4"},
		{"Qwen3-8B", "mlx-4bit", "H100", "vllm", "", 1, 1, "Apple's MLX", ""},
		{"Qwen3-8B", "awq", "RTX-4090", "llama.cpp", "", 1, 1, "it reads GGUF files", ""},
		{"Qwen3-8B", "iq4_xs", "RTX-4060", "llama.cpp", "", 1, 1, "", ""},
		{"Qwen3-235B-A22B-FP8", "", "H100", "vllm", "", 8, 1, "192 numbers a rank; fp8-block has a scale for 128", ""},
		{"Qwen3-235B-A22B-FP8", "", "H100", "vllm", "", 8, 8, "", ""},
		{"Qwen3-235B-A22B-FP8", "", "H100", "vllm", "", 4, 1, "", ""},
	} {
		e, _ := engine.ParseRelease(c.engine, c.version)
		s := Setup{Model: plantest.Model(t, c.model, c.quant), GPU: plantest.GPU(t, c.gpu), Engine: e, Parallel: plan.Parallel{TP: c.tp, EP: c.ep}, Length: 4096}
		f, err := s.Fit()
		if err != nil {
			t.Fatal(c, err)
		}
		notes := strings.Join(f.Notes, "; ")
		if refused := f.Verdict == plan.NotRun; refused != (c.refused != "") || refused && !strings.Contains(f.Binding, c.refused) || strings.Contains(notes, "no units") != (c.note != "") || !strings.Contains(notes, c.note) {
			t.Errorf("%+v: %s, %s; %s", c, f.Verdict, f.Binding, notes)
		}
	}
}
