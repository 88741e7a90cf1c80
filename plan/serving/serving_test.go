package serving

import (
	"math"
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
)

func fitOf(t *testing.T, s Setup) *Fit {
	t.Helper()
	f, err := s.Fit()
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestPerToken checks bytes of a token on a rank that were observed or are known.
func TestPerToken(t *testing.T) {
	for _, c := range []struct {
		model, kv string
		parallel  plan.Parallel
		want      float64
	}{
		{"Llama-3.1-8B", "", plan.Parallel{}, 131072},
		{"Llama-3.1-8B", "fp8", plan.Parallel{TP: 2}, 32768},
		{"Llama-3.1-8B", "", plan.Parallel{TP: 16}, 16384},            // 8 key-value heads: copies beyond TP 8
		{"moonshotai/Kimi-K2.5", "", plan.Parallel{TP: 8}, 70272},     // MLA: whole on every rank
		{"DeepSeek-R1", "fp8_ds_mla", plan.Parallel{TP: 8}, 61 * 656}, // packed form
		{"Qwen3-Next-80B-A3B-Instruct", "", plan.Parallel{}, 24576},   // 12 of 48 layers
		{"gpt-oss-20b", "", plan.Parallel{}, 24576},                   // 12 of 24 layers, the rest inside a window
	} {
		m := plantest.Model(t, c.model, "")
		kv, ok := ParseKV(c.kv, m)
		if !ok {
			t.Fatal(c.kv)
		}
		s := Setup{Model: m, Engine: engine.Release{Name: engine.VLLM}, Parallel: c.parallel, KV: kv}.Normal()
		if got := s.widest().full; got != c.want {
			t.Errorf("%s, %s, %+v: %g bytes a token, want %g", c.model, c.kv, c.parallel, got, c.want)
		}
	}
}

// TestStatedKV notes a format of keys and values that the checkpoint states, unless the
// plan is of a stated one.
func TestStatedKV(t *testing.T) {
	m := *plantest.Model(t, "Llama-3.1-8B", "")
	m.KVFormat = "fp8"
	for kv, noted := range map[string]bool{"": true, "fp8": false, "bf16": false} {
		form, ok := ParseKV(kv, &m)
		if !ok {
			t.Fatal(kv)
		}
		notes := Setup{Model: &m, Engine: engine.Release{Name: engine.VLLM}, KV: form}.Normal().notes()
		if got := strings.Contains(strings.Join(notes, "\n"), "--kv-dtype fp8"); got != noted {
			t.Errorf("%q: %q", kv, notes)
		}
	}
}

// TestWindows: engines without a manager for it keep every token in all layers.
// TestSparse checks what SGLang logs as bytes_per_full_token of DeepSeek-V4, and the
// pages that vLLM keeps of a token, 584 bytes an entry.
func TestSparse(t *testing.T) {
	for _, c := range []struct {
		model, engine string
		full, window  float64
		state         int64
	}{
		{"DeepSeek-V4-Flash", engine.SGLang, 15955.85, 0, 0},
		{"sgl-project/DeepSeek-V4-Pro-FP8", engine.SGLang, 23749.84, 0, 0},
		{"DeepSeek-V4-Flash", engine.VLLM, 21*(584+132)/4.0 + 20*584/128.0, 43 * 584, 21*8*(8192+2048) + 20*128*4096},
	} {
		f := fitOf(t, Setup{Model: plantest.Model(t, c.model, ""), Engine: engine.Release{Name: c.engine}, GPU: plantest.GPU(t, "B300"), Parallel: plan.Parallel{TP: 8}})
		if math.Abs(f.PerToken-c.full) > 0.01 || f.InWindow != c.window || f.State != c.state {
			t.Errorf("%s in %s: %.2f bytes a token, %.0f in the window, %d a request; want %.2f, %.0f, %d", c.model, c.engine, f.PerToken, f.InWindow, f.State, c.full, c.window, c.state)
		}
	}
}

// TestFallback checks where vLLM runs its first engine.
func TestFallback(t *testing.T) {
	for _, c := range []struct {
		version, gpu string
		want         bool
	}{
		{"0.8.5", "H100", false}, {"0.8.5", "MI300X", true}, {"0.9.2", "MI300X", false}, {"0.9.2", "T4", true}, {"0.10", "T4", false},
		{"0.7.3", "H100", true}, {"", "T4", false}, {"0.8.5 V0", "H100", true},
	} {
		e, _ := engine.ParseRelease("vllm", c.version)
		if got := (Setup{Model: plantest.Model(t, "Llama-3.1-8B", ""), Engine: e, GPU: plantest.GPU(t, c.gpu)}).Normal().Engine.V0; got != c.want {
			t.Errorf("vLLM %q on %s: first engine %t, want %t", c.version, c.gpu, got, c.want)
		}
	}
	// The first engine does not cut the prompts of MLA.
	long := Setup{Model: plantest.Model(t, "DeepSeek-R1", ""), Engine: engine.Release{Name: engine.VLLM, Version: engine.Version{Minor: 7}, V0: true}, Length: 65536}
	if n := long.Normal().step(); n != 65536 {
		t.Errorf("a forward pass of %d tokens", n)
	}
}

func TestWindows(t *testing.T) {
	s := Setup{Model: plantest.Model(t, "gemma-2-9b-it", ""), GPU: plantest.GPU(t, "H100")}
	for _, c := range []struct {
		engine, version string
		want            float64
	}{{"vllm", "0.11", 21 * 8192}, {"vllm", "0.6.4", 42 * 8192}, {"sglang", "", 42 * 8192}} {
		s.Engine, _ = engine.ParseRelease(c.engine, c.version)
		if f := fitOf(t, s); f.PerToken != c.want {
			t.Errorf("%s %s: %g bytes of every token, want %g", c.engine, c.version, f.PerToken, c.want)
		}
		if n, want := s.Normal().TokensLogged(10), int64(10*plan.GiB/(42*8192)); n > want || n < want-16 {
			t.Errorf("%s %s: 10 GiB are logged as %d tokens, want %d", c.engine, c.version, n, want)
		}
	}
}

func TestFit(t *testing.T) {
	llama := plantest.Model(t, "Llama-3.1-8B", "")
	s := Setup{Model: llama, Engine: engine.Release{Name: engine.VLLM}, GPU: plantest.GPU(t, "H100"), Length: 8192}
	f := fitOf(t, s)
	if f.Verdict != plan.Fits || f.Need != 1<<30 || f.KV.Low >= f.KV.High || f.Tokens.Low > f.Longest.Low+16 {
		t.Errorf("Llama on an H100: %+v", f)
	}
	var sum int64
	for _, c := range f.Components {
		sum += c.Size.Middle()
	}
	if math.Abs(float64(sum-s.GPU.Total)) > 16 {
		t.Errorf("the components sum up to %d of %d bytes", sum, s.GPU.Total)
	}
	s.GPU = plantest.GPU(t, "L4")
	s.Length = 131072
	if got := fitOf(t, s); got.Verdict != plan.TooMuch || got.Longest.High >= 131072 {
		t.Errorf("131072 tokens on an L4: %s, up to %d tokens", got.Verdict, got.Longest.High)
	}
	s.Model = plantest.Model(t, "Llama-3.3-70B-Instruct", "")
	if got := fitOf(t, s); got.Verdict != plan.TooMuch || !strings.Contains(got.Binding, "weights") {
		t.Errorf("70B on an L4: %s, %s", got.Verdict, got.Binding)
	}
}

// TestSGLangDefaults checks default fractions that documentation and logs show.
func TestSGLangDefaults(t *testing.T) {
	for _, c := range []struct {
		gpu  string
		tp   int64
		want float64
	}{{"RTX-4090", 1, 0.847}, {"H200", 8, 0.898}} {
		s := Setup{Model: plantest.Model(t, "Llama-3.1-8B", ""), Engine: engine.Release{Name: engine.SGLang}, GPU: plantest.GPU(t, c.gpu), Parallel: plan.Parallel{TP: c.tp}}.Normal()
		if got := s.sglang().fraction; math.Abs(got-c.want) > 0.002 {
			t.Errorf("%s, TP %d: mem_fraction_static %g, want %g", c.gpu, c.tp, got, c.want)
		}
	}
}

func TestImpossible(t *testing.T) {
	m := plantest.Model(t, "Llama-3.1-8B", "")
	for _, c := range []struct {
		s    Setup
		want string
	}{
		{Setup{Parallel: plan.Parallel{TP: 7}}, "attention heads"},
		{Setup{Parallel: plan.Parallel{PP: 40}}, "has 32 layers"},
		{Setup{Parallel: plan.Parallel{TP: 8, DP: 3}}, "--dp 3"},
		{Setup{Fraction: 2}, "memory fraction"},
		{Setup{Length: 1 << 40}, "beyond any engine"},
	} {
		c.s.Model, c.s.Engine, c.s.GPU = m, engine.Release{Name: engine.VLLM}, plantest.GPU(t, "H100")
		if _, err := c.s.Fit(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.s.Parallel, err, c.want)
		}
	}
	if _, err := (Setup{Model: m, Engine: engine.Release{Name: engine.VLLM}}).Fit(); err == nil {
		t.Error("a plan without a GPU")
	}
	small := Setup{Model: plantest.Model(t, "Qwen2.5-0.5B", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: plantest.GPU(t, "H100"), Parallel: plan.Parallel{TP: 7}}
	if _, err := small.Fit(); err == nil || !strings.Contains(err.Error(), "2 key-value heads") {
		t.Errorf("14 heads with 2 key-value heads on 7 ranks: %v", err)
	}
}

// TestLatency checks the roofline against a step that reads all weights once.
func TestLatency(t *testing.T) {
	f := fitOf(t, Setup{Model: plantest.Model(t, "Llama-3.1-8B", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: plantest.GPU(t, "H100"), Length: 8192})
	l := f.Latency
	weights := 15.0e9 / 3350e9 // seconds at full bandwidth
	if l.Token[0] < weights || l.Token[1] > 10*weights || l.First[0] <= 0 || l.First[1] < l.First[0] || l.Bound != "memory bandwidth" {
		t.Errorf("latency: %+v", l)
	}
}

// TestVisionFraction lowers SGLang's fraction by the size of the tower, as its code does.
func TestVisionFraction(t *testing.T) {
	gpu, err := plan.FindGPU("H100")
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Engine: engine.Release{Name: engine.SGLang}, GPU: gpu, Parallel: plan.Parallel{TP: 1}.Normal()}
	fraction := func(name string) float64 {
		s.Model = plantest.Model(t, name, "")
		return s.fraction()
	}
	text, vision := fraction("Qwen2.5-7B-Instruct"), fraction("Qwen2.5-VL-7B-Instruct")
	if got := vision / text; math.Abs(got-0.95*(1-0.1*0.5625)) > 1e-9 { // 24 layers of 1280
		t.Errorf("a fraction of %g with a tower, of %g without", vision, text)
	}
}

// TestGraphsOfMixtures holds SGLang's graphs against a run of DeepSeek-V3 on 8 H200
// whose 35 sizes took 6.2 GB, and one of Kimi-K2 on 32, whose 20 took 20 GB.
func TestGraphsOfMixtures(t *testing.T) {
	gpu, err := plan.FindGPU("H200")
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Model: plantest.Model(t, "DeepSeek-V3", ""), Engine: engine.Release{Name: engine.SGLang}, GPU: gpu, Parallel: plan.Parallel{TP: 8}, Graphs: 248}.Normal()
	if s.Captures() != 35 {
		t.Fatalf("%d sizes are captured", s.Captures())
	}
	if r, _ := s.graphs(); r.Low > 6_200_000_000 || r.High < 6_200_000_000 || r.High > 4*r.Low {
		t.Errorf("planned are %d to %d bytes", r.Low, r.High)
	}
	s.Model, s.Parallel, s.Graphs = plantest.Model(t, "Kimi-K2-Instruct", ""), plan.Parallel{TP: 32, DP: 32, EP: 32}, 128
	if r, _ := s.Normal().graphs(); s.Normal().Captures() != 20 || r.Low > 20_000_000_000 || r.High < 20_000_000_000 {
		t.Errorf("of 32 ranks, %d to %d bytes are planned", r.Low, r.High)
	}
}

// TestSizes counts the batch sizes that are captured, as logs list them.
func TestSizes(t *testing.T) {
	for most, want := range map[int64][2]int64{ // of vLLM, of engine.SGLang
		0: {0, 0}, 1: {1, 1}, 3: {3, 3}, 10: {5, 5}, 32: {7, 8}, 160: {23, 24}, 256: {35, 36}, 512: {51, 52}, 520: {52, 53},
	} {
		if got := [2]int64{vllmSizes(most), sglangSizes(most)}; got != want {
			t.Errorf("up to %d: %d sizes, want %d", most, got, want)
		}
	}
}

// TestLongerThanContext asks for requests that no engine takes.
func TestLongerThanContext(t *testing.T) {
	gpu, err := plan.FindGPU("H100")
	if err != nil {
		t.Fatal(err)
	}
	s := Setup{Model: plantest.Model(t, "Qwen2.5-VL-7B-Instruct", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: gpu}
	for _, c := range []struct {
		load   Load
		images int64
		want   plan.Verdict
	}{
		{Load{}, 90, plan.Fits}, {Load{}, 1500, plan.TooMuch},
		{Load{Prompt: 100_000, Output: 28_000}, 0, plan.Fits}, {Load{Prompt: 100_000, Output: 28_001}, 0, plan.TooMuch},
	} {
		s.Load, s.Images = c.load, Images{Count: c.images}
		f, err := s.Fit()
		if err != nil {
			t.Fatal(err)
		}
		if f.Verdict != c.want || c.want == plan.TooMuch && !strings.Contains(f.Binding, "the context of 128,000 tokens") {
			t.Errorf("%+v, %d images: %s, %s", c.load, c.images, f.Verdict, f.Binding)
		}
		a, err := s.longest()
		if err != nil {
			t.Fatal(err)
		}
		if fits := c.want == plan.Fits; fits != (a.Value == 128_000) || fits != (a.Value > 0) {
			t.Errorf("%+v, %d images: the longest context is %g, %s", c.load, c.images, a.Value, a.Binding)
		}
	}
}

// TestPasted prints what was given of requests and blocks.
func TestPasted(t *testing.T) {
	gpu, err := plan.FindGPU("H100")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ engine, want string }{{engine.VLLM, "--max-num-seqs 12 --block-size 64"}, {engine.SGLang, "--max-running-requests 12 --page-size 64"}} {
		s := Setup{Model: plantest.Model(t, "Qwen3-8B", ""), Engine: engine.Release{Name: c.engine}, GPU: gpu, Length: 1024, Requests: 12, Block: 64}
		fit, err := s.Fit()
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(fit.Flags, " "); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.engine, got)
		}
		if fit.Requests[1] != 12 {
			t.Errorf("%s: %g requests at once", c.engine, fit.Requests[1])
		}
		s.Requests, s.Block = 0, 0
		if fit, err = s.Fit(); err != nil || strings.Contains(strings.Join(fit.Flags, " "), "ge-size") || fit.Requests[1] <= 12 {
			t.Errorf("%s: %v, %v", c.engine, fit.Flags, err)
		}
	}
}

// TestOffloadedWeights moves weights of each GPU to the host.
func TestOffloadedWeights(t *testing.T) {
	s := Setup{Model: plantest.Model(t, "Qwen3-8B", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: plantest.GPU(t, "L4"), Length: 8192, Parallel: plan.Parallel{TP: 2, PP: 1}}
	all := fitOf(t, s)
	s.Offload = 4 * plan.GiB
	some := fitOf(t, s)
	if got := all.Components[0].Size.High - some.Components[0].Size.High; got != s.Offload {
		t.Errorf("%d bytes are offloaded of each GPU", got)
	}
	if some.Tokens.Low <= all.Tokens.Low || len(some.Host) != 1 || some.Host[0].Size.High != 2*s.Offload || len(all.Host) != 0 {
		t.Errorf("%+v, %+v", some.Tokens, some.Host)
	}
	if some.Latency.Token[0] < all.Latency.Token[0]+0.1 { // 4 GiB over PCIe
		t.Errorf("a token takes %v, %v without", some.Latency.Token, all.Latency.Token)
	}
	s.Engine.Name = engine.SGLang
	if _, err := s.Fit(); err == nil {
		t.Error("SGLang offloads weights")
	}
}

// TestSetPool has a KV cache of a set size, in bytes or in blocks, which the memory fraction does
// not change.
func TestSetPool(t *testing.T) {
	of := func(change func(s *Setup)) *Fit {
		s := Setup{Model: plantest.Model(t, "Llama-3.1-8B", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: plantest.GPU(t, "H100"), Length: 4096}
		change(&s)
		return fitOf(t, s)
	}
	const token = 131072
	for name, c := range map[string]struct {
		change  func(s *Setup)
		tokens  int64
		verdict plan.Verdict
		flag    string
	}{
		"bytes":             {func(s *Setup) { s.KVBytes = 1 << 30 }, 8192, plan.Fits, "--kv-cache-memory-bytes 1073741824"},
		"whatever fraction": {func(s *Setup) { s.KVBytes, s.Fraction = 40<<30, 0.2 }, 327680, plan.Fits, "--kv-cache-memory-bytes 42949672960"},
		"too many bytes":    {func(s *Setup) { s.KVBytes = 70 << 30 }, 573440, plan.TooMuch, ""},
		"too few":           {func(s *Setup) { s.KVBytes = 2048 * token }, 2048, plan.TooMuch, ""},
		"blocks":            {func(s *Setup) { s.Blocks = 1000 }, 16000, plan.Fits, "--num-gpu-blocks-override 1000"},
		"larger blocks":     {func(s *Setup) { s.Blocks, s.Block = 1000, 32 }, 32000, plan.Fits, "--block-size 32"},
	} {
		f := of(c.change)
		if want := plan.Exactly(c.tokens); f.Tokens != want || f.KV != plan.Exactly(c.tokens*token) || f.Verdict != c.verdict {
			t.Errorf("%s: %v tokens in %v, %v (%s)", name, f.Tokens, f.KV, f.Verdict, f.Binding)
		}
		if flags := strings.Join(f.Flags, " "); !strings.Contains(flags, c.flag) || strings.Contains(flags, "--gpu-memory-utilization") {
			t.Errorf("%s: %s", name, flags)
		}
	}
	for gib, want := range map[float64]string{14: "the weights alone", 15.5: "weights, activations, CUDA graphs and non-torch memory"} {
		for _, bytes := range []int64{0, 1 << 30} {
			f := of(func(s *Setup) {
				gpu := *s.GPU
				gpu.Total, s.GPU, s.KVBytes = int64(gib*(1<<30)), &gpu, bytes
			})
			if alone := strings.Contains(f.Binding, "the weights alone"); f.Verdict != plan.TooMuch || bytes > 0 && !strings.HasPrefix(f.Binding, want) || alone != (gib == 14) {
				t.Errorf("%g GiB, %d bytes: %v (%s)", gib, bytes, f.Verdict, f.Binding)
			}
		}
	}
	free := of(func(*Setup) {})
	mixed := fitOf(t, Setup{Model: plantest.Model(t, "gpt-oss-20b", ""), Engine: free.Serving.Engine, GPU: free.Serving.GPU, Blocks: 1000})
	if mixed.KV.Low == mixed.KV.High || !strings.Contains(strings.Join(mixed.Notes, "\n"), "number of blocks") {
		t.Errorf("layers of several kinds: %v, %q", mixed.KV, mixed.Notes)
	}
	s := free.Serving
	s.KVBytes = 1
	if _, err := Solve("fraction", Variants(s, nil)); err == nil {
		t.Error("a fraction is looked for")
	}
	if s.Engine = (engine.Release{Name: engine.SGLang}); s.possible() == nil {
		t.Error("SGLang takes it")
	}
}
