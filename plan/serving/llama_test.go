package serving

import (
	"os"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
)

const mib = 1 << 20

func llama(t *testing.T, name, quant string) Setup {
	t.Helper()
	return Setup{Model: plantest.Model(t, name, quant), Engine: engine.Release{Name: engine.LlamaCPP}, GPU: plantest.GPU(t, "RTX-4090")}
}

func component(f *Fit, name string) plan.Range {
	for _, c := range f.Components {
		if c.Name == name {
			return c.Size
		}
	}
	return plan.Range{}
}

// TestLlamaCache holds the KV cache against what llama-server prints for models of
// known shape.
func TestLlamaCache(t *testing.T) {
	q8, _ := ParseKV("q8_0", nil)
	q4, _ := ParseKV("q4_0", nil)
	for _, c := range []struct {
		model  string
		change func(*Setup)
		mib    float64
	}{
		{"Qwen3-4B", func(s *Setup) { s.Length = 4096 }, 576},
		{"Qwen3-4B", func(s *Setup) { s.Length = 4000 }, 576}, // padded to 256
		{"Qwen3-4B", func(s *Setup) { s.Length, s.Requests = 4096, 2 }, 1152},
		{"Qwen3-4B", func(s *Setup) { s.Length, s.Requests, s.Local.Unified = 4096, 2, true }, 576},
		{"Qwen3-4B", func(s *Setup) { s.Length, s.KV = 4096, q8 }, 306},
		{"Qwen3-4B", func(s *Setup) { s.Length, s.KV, s.Local.Values = 4096, q8, q4 }, 153 + 81},
		// 12 layers keep 32,768 tokens and 12 the window of 128 and a pass of 512, padded.
		{"gpt-oss-20b", func(s *Setup) { s.Length, s.Requests = 32768, 1 }, 12 * 2 * (32768 + 768) / 1024.0},
		{"gpt-oss-20b", func(s *Setup) { s.Length, s.Requests, s.Local.FullWindow = 32768, 1, true }, 12 * 2 * 2 * 32768 / 1024.0},
		{"DeepSeek-V2-Lite", func(s *Setup) { s.Length = 4096 }, 27 * 576 * 2 * 4096 / float64(mib)},
	} {
		s := llama(t, c.model, "q4_k_m")
		c.change(&s)
		f := fitOf(t, s)
		if got := float64(component(f, plan.KVCache).High) / mib; got != c.mib {
			t.Errorf("%s: a KV cache of %g MiB, want %g", c.model, got, c.mib)
		}
		if n := int64(f.PerToken+f.InWindow) * f.Serving.Length; n == 0 {
			t.Errorf("%s: nothing a token", c.model)
		}
	}
}

// TestLlamaBuffer holds the compute buffer against sizes that logs print.
func TestLlamaBuffer(t *testing.T) {
	for _, c := range []struct {
		model  string
		length int64
		flash  Switch
		gpus   int64
		mib    float64
	}{
		{"Llama-3.1-8B", 8192, On, 1, 258.5},
		{"Llama-3.1-8B", 8192, Off, 1, 560},
		{"Qwen3-14B", 32768, On, 1, 306.75},
		{"Qwen3-4B", 4096, On, 1, 301.75},
		{"Llama-2-7b", 4096, Off, 4, 320.5},
	} {
		s := llama(t, c.model, "q4_k_m")
		s.Length, s.Local.Flash, s.Parallel.PP = c.length, c.flash, c.gpus
		r := component(fitOf(t, s), plan.Activations)
		if got := int64(c.mib * mib); r.Low > got || got > r.High {
			t.Errorf("%s: a compute buffer of %d to %d MiB, logged are %g", c.model, r.Low/mib, r.High/mib, c.mib)
		}
	}
}

// TestOffload leaves to the host what does not fit.
func TestOffload(t *testing.T) {
	layers := int64(20)
	s := llama(t, "Llama-3.1-8B", "q8_0")
	s.Length, s.Local.Layers = 4096, &layers
	some := fitOf(t, s)
	all := int64(33)
	s.Local.Layers = &all
	whole := fitOf(t, s)
	if some.Offload.Layers != 20 || some.Offload.Of != 33 || some.Host[0].Size.High <= whole.Host[0].Size.High || some.Host[1].Size.High == 0 || whole.Host[1].Size.High != 0 {
		t.Errorf("20 layers: %+v, host %+v; all: host %+v", some.Offload, some.Host, whole.Host)
	}
	sum := func(f *Fit) int64 { return component(f, plan.Weights).High + f.Host[0].Size.High }
	if sum(some) != sum(whole) {
		t.Errorf("the weights are %d bytes with 20 layers, %d with all", sum(some), sum(whole))
	}
	if kv := component(some, plan.KVCache).High; kv*32 != component(whole, plan.KVCache).High*19 { // the output is the 20th
		t.Errorf("19 layers keep %d bytes", kv)
	}
	if some.Latency.Token[0] <= whole.Latency.Token[0] || some.Latency.Bound != "the host's memory" {
		t.Errorf("a token takes %v with 20 layers, %v with all", some.Latency, whole.Latency)
	}
	s.Engine.Name, s.Local.Layers = engine.Ollama, &layers
	if kv := component(fitOf(t, s), plan.KVCache).High; kv*32 != component(whole, plan.KVCache).High*20 {
		t.Errorf("Ollama has %d bytes of 20 layers", kv)
	}
	if tied := llama(t, "Qwen3-4B", "q8_0"); fitOf(t, tied).Host[0].Size.High == 0 || sum(fitOf(t, tied)) <= tied.Model.Bytes() {
		t.Error("the embedding is not copied for the output")
	}
}

// TestAsManyAsFit finds the layers, the experts and the context as the engines do.
func TestAsManyAsFit(t *testing.T) {
	dense := llama(t, "Llama-3.3-70B", "q4_k_m")
	dense.Length = 8192
	f := fitOf(t, dense)
	n := f.Offload.Layers
	if n < 30 || n > 45 || f.Verdict != plan.Fits || !slices.Contains(f.Flags, "-ngl "+itoa(n)) {
		t.Errorf("%d layers, %s: %v", n, f.Verdict, f.Flags)
	}
	more := n + 8
	dense.Local.Layers = &more
	if f := fitOf(t, dense); f.Verdict != plan.TooMuch || !strings.Contains(f.Binding, "-ngl "+itoa(n)) {
		t.Errorf("%d layers: %s, %s", more, f.Verdict, f.Binding)
	}
	mixture := llama(t, "gpt-oss-120b", "")
	mixture.Length = 32768
	if f := fitOf(t, mixture); f.Offload.Layers != 37 || f.Offload.ExpertLayers < 15 || f.Verdict != plan.Fits || !strings.Contains(strings.Join(f.Flags, " "), "--n-cpu-moe") {
		t.Errorf("a mixture: %+v, %v", f.Offload, f.Flags)
	}
	own := llama(t, "Qwen3-32B", "q4_k_m")
	if f := fitOf(t, own); f.Serving.Length%256 != 0 || f.Serving.Length < 4096 || f.Serving.Length >= 40960 || f.Verdict != plan.Fits || f.Offload.Layers != 65 {
		t.Errorf("a context of %d tokens with %d layers", f.Serving.Length, f.Offload.Layers)
	}
	for gpu, want := range map[string]int64{"RTX-4090": 32768, "T4": 4096, "H100": 131072} {
		s := llama(t, "Llama-3.1-8B", "q4_k_m")
		s.Engine.Name, s.GPU = engine.Ollama, plantest.GPU(t, gpu)
		if got := fitOf(t, s).Serving.Length; got != want {
			t.Errorf("Ollama on %s: a context of %d, want %d", gpu, got, want)
		}
	}
	two := llama(t, "Llama-3.1-8B", "q4_k_m")
	two.Engine.Name, two.Parallel.PP, two.Length = engine.Ollama, 2, 8192
	if f := fitOf(t, two); len(f.Stages) != 1 {
		t.Errorf("Ollama takes %d GPUs where one is enough", len(f.Stages))
	}
}

func itoa(n int64) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func TestImpossibleLocal(t *testing.T) {
	q8, _ := ParseKV("q8_0", nil)
	fp8, _ := ParseKV("fp8", nil)
	for _, c := range []struct {
		change func(*Setup)
		want   string
	}{
		{func(s *Setup) { s.KV, s.Local.Flash = q8, Off }, "flash attention"},
		{func(s *Setup) { s.KV = fp8 }, "fp8"},
		{func(s *Setup) { s.Engine.Name, s.KV = engine.VLLM, q8 }, "llama.cpp's"},
		{func(s *Setup) { n := int64(-3); s.Local.Layers = &n }, "-3 layers"},
		{func(s *Setup) { s.Length = 1 << 40 }, "beyond any engine"},
	} {
		s := llama(t, "Llama-3.1-8B", "q4_k_m")
		c.change(&s)
		if _, err := s.Fit(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	ollama := llama(t, "Llama-3.1-8B", "q4_k_m")
	ollama.Engine.Name, ollama.KV = engine.Ollama, q8
	if f := fitOf(t, ollama); !f.Serving.flash() || !strings.Contains(f.Notes[0], "OLLAMA_FLASH_ATTENTION=1") {
		t.Errorf("a quantized cache without flash attention: %q", f.Notes)
	}
}

// TestSolveLocal asks for what fits with all layers on the GPU.
func TestSolveLocal(t *testing.T) {
	for question, want := range map[string][2]float64{"context": {18000, 21000}, "requests": {2, 3}, "gpus": {2, 2}, "fraction": {0, 0}} {
		s := llama(t, "Qwen3-32B", "q4_k_m")
		if question == "requests" {
			s.Length = 8192
		}
		a, err := solve(question, s)
		if err != nil || a.Value < want[0] || a.Value > want[1] {
			t.Errorf("%s: %+v, %v", question, a, err)
		}
	}
}

// TestCheckLlama compares logs of llama-server and Ollama with the plan.
func TestCheckLlama(t *testing.T) {
	for _, c := range []struct{ file, model, from, to, off string }{
		{"llama-server", "Llama-3.1-8B", "", "", ""},
		{"llama-server", "Llama-3.1-8B", "4403.49", "7605.33", plan.Weights},
		{"llama-server", "Llama-3.1-8B", "n_seq_max     = 2", "n_seq_max     = 1", ""}, // the same context
		{"llama-server", "Llama-3.1-8B", "n_ctx         = 16384", "n_ctx         = 32768", plan.KVCache},
		{"llama-server", "Llama-3.1-8B", "K (q8_0):  544.00 MiB, V (q8_0)", "K (f16):  544.00 MiB, V (f16)", plan.KVCache},
		{"llama-server", "Llama-3.1-8B", "CUDA0 compute buffer size =   258.50", "CUDA0 compute buffer size =   958.50", plan.Activations},
		{"ollama", "Qwen3-8B", "", "", ""},
		{"ollama", "Qwen3-8B", "KvSize:8192", "KvSize:4096", plan.KVCache},
	} {
		data, err := os.ReadFile("testdata/" + c.file + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		log := scanned(t, strings.ReplaceAll(string(data), c.from, c.to))
		s := Setup{Model: plantest.Model(t, c.model, "q4_k_m")}
		if log.Engine != engine.LlamaCPP {
			t.Fatalf("a log of %q", log.Engine)
		}
		s.KV, _ = ParseKV(log.Setup["kv_dtype"], s.Model)
		rows, err := s.From(log).CheckOther(log)
		if err != nil || len(rows) != 3 {
			t.Fatal(rows, err)
		}
		off := ""
		if rows[0].Differs() {
			off = rows[0].Component
		}
		if off != c.off || (off == "") != (rows[0].Cause == "") {
			t.Errorf("%s: %+v, want %q", c.to, rows[0], c.off)
		}
	}
}
