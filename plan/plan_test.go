package plan

import (
	"bytes"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"strandline/logs"
	"strandline/plan/model"
)

func find(t testing.TB, name, quant string) *model.Model {
	t.Helper()
	m, err := model.Find(name, quant)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func gpuNamed(t testing.TB, name string) *GPU {
	t.Helper()
	g, err := FindGPU(name)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func fitOf(t *testing.T, s Serving) *Fit {
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
		parallel  Parallel
		want      float64
	}{
		{"Llama-3.1-8B", "", Parallel{}, 131072},
		{"Llama-3.1-8B", "fp8", Parallel{TP: 2}, 32768},
		{"Llama-3.1-8B", "", Parallel{TP: 16}, 16384},            // 8 key-value heads: copies beyond TP 8
		{"moonshotai/Kimi-K2.5", "", Parallel{TP: 8}, 70272},     // MLA: whole on every rank
		{"DeepSeek-R1", "fp8_ds_mla", Parallel{TP: 8}, 61 * 656}, // packed form
		{"Qwen3-Next-80B-A3B-Instruct", "", Parallel{}, 24576},   // 12 of 48 layers
		{"gpt-oss-20b", "", Parallel{}, 24576},                   // 12 of 24 layers, the rest inside a window
	} {
		m := find(t, c.model, "")
		kv, ok := ParseKV(c.kv, m)
		if !ok {
			t.Fatal(c.kv)
		}
		s := Serving{Model: m, Engine: Engine{Name: VLLM}, Parallel: c.parallel, KV: kv}.normal()
		if got := s.widest().Full; got != c.want {
			t.Errorf("%s, %s, %+v: %g bytes a token, want %g", c.model, c.kv, c.parallel, got, c.want)
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
		{"DeepSeek-V4-Flash", SGLang, 15955.85, 0, 0},
		{"sgl-project/DeepSeek-V4-Pro-FP8", SGLang, 23749.84, 0, 0},
		{"DeepSeek-V4-Flash", VLLM, 21*(584+132)/4.0 + 20*584/128.0, 43 * 584, 21*8*(8192+2048) + 20*128*4096},
	} {
		f := fitOf(t, Serving{Model: find(t, c.model, ""), Engine: Engine{Name: c.engine}, GPU: gpuNamed(t, "B300"), Parallel: Parallel{TP: 8}})
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
		e, _ := ParseEngine("vllm", c.version)
		if got := (Serving{Model: find(t, "Llama-3.1-8B", ""), Engine: e, GPU: gpuNamed(t, c.gpu)}).normal().Engine.V0; got != c.want {
			t.Errorf("vLLM %q on %s: first engine %t, want %t", c.version, c.gpu, got, c.want)
		}
	}
	// The first engine does not cut the prompts of MLA.
	long := Serving{Model: find(t, "DeepSeek-R1", ""), Engine: Engine{Name: VLLM, Minor: 7, V0: true}, Length: 65536}
	if n := long.normal().step(); n != 65536 {
		t.Errorf("a forward pass of %d tokens", n)
	}
}

func TestWindows(t *testing.T) {
	s := Serving{Model: find(t, "gemma-2-9b-it", ""), GPU: gpuNamed(t, "H100")}
	for _, c := range []struct {
		engine, version string
		want            float64
	}{{"vllm", "0.11", 21 * 8192}, {"vllm", "0.6.4", 42 * 8192}, {"sglang", "", 42 * 8192}} {
		s.Engine, _ = ParseEngine(c.engine, c.version)
		if f := fitOf(t, s); f.PerToken != c.want {
			t.Errorf("%s %s: %g bytes of every token, want %g", c.engine, c.version, f.PerToken, c.want)
		}
		if n, want := s.normal().tokensLogged(10), int64(10*gib/(42*8192)); n > want || n < want-16 {
			t.Errorf("%s %s: 10 GiB are logged as %d tokens, want %d", c.engine, c.version, n, want)
		}
	}
}

func TestFit(t *testing.T) {
	llama := find(t, "Llama-3.1-8B", "")
	s := Serving{Model: llama, Engine: Engine{Name: VLLM}, GPU: gpuNamed(t, "H100"), Length: 8192}
	f := fitOf(t, s)
	if f.Verdict != Fits || f.Need != 1<<30 || f.KV.Low >= f.KV.High || f.Tokens.Low > f.Longest.Low+16 {
		t.Errorf("Llama on an H100: %+v", f)
	}
	var sum int64
	for _, c := range f.Components {
		sum += c.Size.Middle()
	}
	if math.Abs(float64(sum-s.GPU.Total)) > 16 {
		t.Errorf("the components sum up to %d of %d bytes", sum, s.GPU.Total)
	}
	s.GPU = gpuNamed(t, "L4")
	s.Length = 131072
	if got := fitOf(t, s); got.Verdict != TooMuch || got.Longest.High >= 131072 {
		t.Errorf("131072 tokens on an L4: %s, up to %d tokens", got.Verdict, got.Longest.High)
	}
	s.Model = find(t, "Llama-3.3-70B-Instruct", "")
	if got := fitOf(t, s); got.Verdict != TooMuch || !strings.Contains(got.Binding, "weights") {
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
		s := Serving{Model: find(t, "Llama-3.1-8B", ""), Engine: Engine{Name: SGLang}, GPU: gpuNamed(t, c.gpu), Parallel: Parallel{TP: c.tp}}.normal()
		if got := s.sglang().fraction; math.Abs(got-c.want) > 0.002 {
			t.Errorf("%s, TP %d: mem_fraction_static %g, want %g", c.gpu, c.tp, got, c.want)
		}
	}
}

func TestImpossible(t *testing.T) {
	m := find(t, "Llama-3.1-8B", "")
	for _, c := range []struct {
		s    Serving
		want string
	}{
		{Serving{Parallel: Parallel{TP: 7}}, "attention heads"},
		{Serving{Parallel: Parallel{PP: 40}}, "has 32 layers"},
		{Serving{Parallel: Parallel{TP: 8, DP: 3}}, "--dp 3"},
		{Serving{Fraction: 2}, "memory fraction"},
		{Serving{Length: 1 << 40}, "beyond any engine"},
	} {
		c.s.Model, c.s.Engine, c.s.GPU = m, Engine{Name: VLLM}, gpuNamed(t, "H100")
		if _, err := c.s.Fit(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.s.Parallel, err, c.want)
		}
	}
	if _, err := (Serving{Model: m, Engine: Engine{Name: VLLM}}).Fit(); err == nil {
		t.Error("a plan without a GPU")
	}
	small := Serving{Model: find(t, "Qwen2.5-0.5B", ""), Engine: Engine{Name: VLLM}, GPU: gpuNamed(t, "H100"), Parallel: Parallel{TP: 7}}
	if _, err := small.Fit(); err == nil || !strings.Contains(err.Error(), "2 key-value heads") {
		t.Errorf("14 heads with 2 key-value heads on 7 ranks: %v", err)
	}
}

func TestFindGPU(t *testing.T) {
	for asked, want := range map[string]string{
		"NVIDIA H100 80GB HBM3": "H100", "h200": "H200", "RTX 4090": "RTX-4090", "NVIDIA GeForce RTX 3090": "RTX-3090", "A100": "A100-80G",
		"NVIDIA A100-SXM4-40GB": "A100-40G", "AMD Instinct MI300X": "MI300X", "L40S": "L40S",
	} {
		if g, err := FindGPU(asked); err != nil || g.Name != want {
			t.Errorf("%s: got %v, %v; want %s", asked, g, err, want)
		}
	}
	if _, err := FindGPU("H900"); err == nil || !strings.Contains(err.Error(), "H200") {
		t.Errorf("an unknown GPU: %v", err)
	}
	for _, name := range GPUs() {
		g := gpuNamed(t, name)
		if g.Total <= 0 || g.Total > g.Board || g.Bandwidth <= 0 || g.BF16 <= 0 {
			t.Errorf("%s: %+v", name, g)
		}
	}
}

// TestZeRO checks the model states of the ZeRO paper's table 1: 7.5 billion
// parameters, 16 bytes each, in decimal GB.
func TestZeRO(t *testing.T) {
	for _, c := range []struct {
		stage, ranks int64
		want         float64
	}{
		{1, 4, 52.5}, {2, 4, 41.3}, {3, 4, 30}, {1, 64, 31.4}, {2, 64, 16.6}, {3, 64, 1.88}, {3, 1024, 0.12},
	} {
		tr, err := Trainer("zero1")
		if err != nil {
			t.Fatal(err)
		}
		tr.ZeRO, tr.Shard = c.stage, c.ranks
		st := tr.normal().states(held{blocks: 7.5e9})
		if got := (st.params + st.optimizer + st.master + st.grads) / 1e9; math.Abs(got-c.want) > 0.06 {
			t.Errorf("ZeRO-%d on %d ranks: %.2f GB, want %g", c.stage, c.ranks, got, c.want)
		}
	}
}

// TestTowersTrain counts the tower of a model for images: 16 bytes a parameter.
func TestTowersTrain(t *testing.T) {
	tr, err := Trainer("fsdp")
	if err != nil {
		t.Fatal(err)
	}
	tr.Model = find(t, "Qwen2.5-VL-7B", "")
	st := tr.normal().states(tr.normal().hold(0))
	if got, want := st.params+st.optimizer+st.grads, 16*float64(tr.Model.Params()); math.Abs(got-want) > 0.001*want {
		t.Errorf("states of %.3g bytes, want %.3g", got, want)
	}
}

// TestHuge checks that sums of what no GPU holds stay above what one has.
func TestHuge(t *testing.T) {
	tr, err := Trainer("fsdp")
	if err != nil {
		t.Fatal(err)
	}
	tr.Model, tr.Sequences, tr.Length, tr.Checkpointing = find(t, "Llama-3.1-8B", ""), 1<<20, 1<<32, KeepAll
	step := tr.Step()
	if step.Peak.Low < 1<<60 || Judge(step.Peak, tr.Outside(), 1<<40) != TooMuch {
		t.Errorf("a peak of %d bytes", step.Peak.Low)
	}
}

// TestTrainingMoves checks that what saves memory does so.
func TestTrainingMoves(t *testing.T) {
	base, err := Trainer("fsdp")
	if err != nil {
		t.Fatal(err)
	}
	base.Model, base.Shard, base.Sequences, base.Length, base.Checkpointing = find(t, "Qwen3-30B-A3B", ""), 8, 2, 8192, KeepAll
	peak := func(change func(t *Training)) int64 {
		v := base
		change(&v)
		if err := v.Check(); err != nil {
			t.Fatal(err)
		}
		return v.Step().Peak.High
	}
	all := peak(func(*Training) {})
	for name, change := range map[string]func(t *Training){
		"more ranks":           func(t *Training) { t.Shard = 16 },
		"TP and SP":            func(t *Training) { t.TP, t.SequenceParallel = 2, true },
		"CP":                   func(t *Training) { t.CP = 2 },
		"recomputation":        func(t *Training) { t.Checkpointing = KeepInputs },
		"selective":            func(t *Training) { t.Checkpointing = KeepMatmuls },
		"compiled":             func(t *Training) { t.Compile, t.LossCompiled = true, true },
		"chunked loss":         func(t *Training) { t.LossChunks = 8 },
		"optimizer in memory":  func(t *Training) { t.OffloadOptimizer = true },
		"everything offloaded": func(t *Training) { t.OffloadStates = true },
		"experts on the CPU":   func(t *Training) { t.ExpertsOnCPU = true },
		"8-bit Adam":           func(t *Training) { t.Optimizer, t.StateBytes = "adamw-8bit", 2 },
		"LoRA":                 func(t *Training) { t.LoRA = &Adapters{Rank: 16, Targets: []string{"q", "v"}} },
		"QLoRA":                func(t *Training) { t.LoRA = &Adapters{Rank: 16, Targets: []string{"q", "v"}, Base: "nf4"} },
	} {
		if got := peak(change); got >= all {
			t.Errorf("%s: a peak of %d bytes, not below %d", name, got, all)
		}
	}
	// Products of nvfp4 are not on the list of what is kept: a block's input and
	// attention's output are, with a fp32 number a head.
	kept := Training{Model: find(t, "Meta-Llama-3-8B", ""), Checkpointing: KeepMatmuls}.normal()
	block := kept.perToken(&kept.Model.Layers[0])
	for float8, want := range map[string]float64{"none": 2*(2*4096+2*4096+1024+14336) + 4*32, "nvfp4": 2*(4096+4096) + 4*32} {
		if kept.Float8 = float8; kept.kept(block, 0) != point(want) {
			t.Errorf("%s keeps %v bytes of a token, want %g", float8, kept.kept(block, 0), want)
		}
	}
	// The first stage keeps more micro-batches than the last one.
	staged := base
	staged.PP, staged.Accumulate, staged.Model = 4, 8, find(t, "Llama-3.1-8B", "")
	if a, b := staged.normal().inFlight(0), staged.normal().inFlight(3); a != 4 || b != 1 {
		t.Errorf("1F1B keeps %g and %g micro-batches, want 4 and 1", a, b)
	}
	staged.Interleaved = 9
	if err := staged.Check(); err == nil || !strings.Contains(err.Error(), "9 stages a rank") {
		t.Errorf("36 stages of 32 layers: %v", err)
	}
	staged.Interleaved = 0
	staged.LoRA = &Adapters{Rank: 0}
	if staged.Check() == nil {
		t.Error("a LoRA of rank 0 is taken")
	}
}

func rlPhases(t *testing.T, change func(r *RL)) *Phases {
	t.Helper()
	tr, err := Trainer("fsdp")
	if err != nil {
		t.Fatal(err)
	}
	m := find(t, "Qwen2.5-7B", "")
	tr.Model, tr.Shard, tr.Length = m, 8, 8192
	r := RL{Training: tr, Rollout: Serving{Model: m, Engine: Engine{Name: SGLang}, GPU: gpuNamed(t, "H200"), Length: 8192}}
	change(&r)
	p, err := r.Phases()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPhases(t *testing.T) {
	p := rlPhases(t, func(*RL) {})
	all := p.Outcomes()
	if len(all) != 4 {
		t.Fatalf("%d ways of sharing", len(all))
	}
	resident, paused, staged := all[0], all[2], all[3]
	switch {
	case resident.Fraction == nil || staged.Fraction == nil || paused.Fraction == nil:
		t.Fatalf("no fraction fits: %+v", all)
	case !(*resident.Fraction < *paused.Fraction && *paused.Fraction < *staged.Fraction):
		t.Errorf("fractions %g, %g and %g do not rise", *resident.Fraction, *paused.Fraction, *staged.Fraction)
	case resident.Verdict == Fits || staged.Verdict != Fits:
		t.Errorf("with the default fraction: %s resident, %s staged", resident.Verdict, staged.Verdict)
	}
	// At the largest fraction every phase fits, and a little above it one does not.
	for i, o := range all {
		for _, c := range []struct {
			more int64
			fits bool
		}{{0, true}, {1 << 28, false}} {
			grown := *p
			grown.Components = append([]Component(nil), p.Components...)
			for j := range grown.Components {
				if grown.Components[j].Name == p.Pool {
					grown.Components[j].Size = exactly(o.KV + c.more)
				}
			}
			if got := grown.Outcomes()[i].Verdict == Fits; got != c.fits {
				t.Errorf("%s: with %d bytes more than the largest pool: fits is %v", o.Way, c.more, got)
			}
		}
	}
	if critic := rlPhases(t, func(r *RL) { r.Critic, r.Reference = true, true }); critic.Outcomes()[0].Peaks[2].Size.Low <= resident.Peaks[2].Size.Low {
		t.Error("a critic takes nothing")
	}
}

func TestPhaseFile(t *testing.T) {
	p := rlPhases(t, func(*RL) {})
	var file bytes.Buffer
	if err := p.YAML(&file); err != nil {
		t.Fatal(err)
	}
	again, err := ReadPhases(bytes.NewReader(file.Bytes()))
	if err != nil {
		t.Fatalf("%v\n%s", err, file.String())
	}
	a, b := p.Outcomes(), again.Outcomes()
	for i := range a {
		if math.Abs(*a[i].Fraction-*b[i].Fraction) > 0.0011 || a[i].Verdict != b[i].Verdict {
			t.Errorf("%s: %g and %s, after reading again %g and %s", a[i].Way, *a[i].Fraction, a[i].Verdict, *b[i].Fraction, b[i].Verdict)
		}
	}
	var twice bytes.Buffer
	if err := again.YAML(&twice); err != nil || !reflect.DeepEqual(twice.String(), file.String()) {
		t.Errorf("written again it is another file: %v", err)
	}
	for _, c := range []struct{ file, want string }{
		{"", "empty"},
		{"gpu: 80GiB\nways: []\n", "there are none"},
		{"gpu: much\n", `gpu: "much" is no size`},
		{"gpu: 80GiB\ncolour: red\n", "colour"},
		{"gpu: 80GiB\ncomponents: [{name: a, size: 2GiB..1GiB}]\n", "ends before it begins"},
		{"gpu: 80GiB\ncomponents: [{name: a, size: 1GiB}, {name: a, size: 1GiB}]\n", "twice"},
		{"gpu: 80GiB\ncomponents: [{name: a, size: 1GiB}]\nways: [{name: w, phases: [{name: p, holds: [a, a]}]}]\n", `holds "a" twice`},
		{"gpu: 80GiB\ncomponents: [{name: a, size: 1GiB}]\nways: [{name: w, phases: [{name: p}]}, {name: w, phases: [{name: p}]}]\n", `way "w" is twice there`},
		{"gpu: 80GiB\n---\ngpu: 1GiB\n", "more than one document"},
		{"gpu: 0\n", "no memory"},
		{"gpu: 80GiB\ngpus: 2\nsize: 3\n", "line 2: field gpus not found"},
		{"gpu: 80GiB\nways: [{name: w, phases: [{name: p, holds: [b]}]}]\n", `holds "b"`},
		{"gpu: 80GiB\nways: [{name: w, phases: []}]\n", "no phases"},
		{"a: &a [*a]\n", "a"},
	} {
		if _, err := ReadPhases(strings.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.file, err, c.want)
		}
	}
}

func FuzzReadPhases(f *testing.F) {
	f.Add("gpu: 80GiB\ncomponents: [{name: a, size: 1GiB..2GiB}]\nways: [{name: w, phases: [{name: p, holds: [a]}]}]\nfraction: {sizes: a, of: 80GiB, less: 1GiB}\n")
	f.Fuzz(func(t *testing.T, text string) {
		if p, err := ReadPhases(strings.NewReader(text)); err == nil {
			p.Outcomes()
		}
	})
}

func TestSolve(t *testing.T) {
	s := Serving{Model: find(t, "Llama-3.1-8B", ""), Engine: Engine{Name: VLLM}, GPU: gpuNamed(t, "RTX-4090")}
	s.KV, _ = ParseKV("", s.Model)
	answers, err := Solve("context", Variants(s, []*model.Model{find(t, "Llama-3.1-8B", "int4")}))
	if err != nil || len(answers) != 4 {
		t.Fatal(answers, err)
	}
	if answers[0].Value != 131072 || answers[len(answers)-1].Setup != asGiven {
		t.Errorf("answers: %+v", answers)
	}
	// The answer fits, and a block more does not.
	own := answers[len(answers)-1]
	for _, c := range []struct {
		length int64
		want   bool
	}{{int64(own.Value), true}, {int64(own.Value) + 64, false}} {
		try := s
		try.Length = c.length
		if got := fitOf(t, try).Verdict == Fits; got != c.want {
			t.Errorf("a context of %d tokens fits: %v", c.length, got)
		}
	}
	fewest, err := Solve("gpus", Variants(Serving{Model: find(t, "DeepSeek-R1", ""), Engine: Engine{Name: VLLM}, GPU: gpuNamed(t, "H200"), KV: s.KV}, nil))
	if err != nil || fewest[0].Value != 8 {
		t.Errorf("GPUs for DeepSeek-R1: %+v, %v", fewest, err)
	}
	if _, err := Solve("happiness", Variants(s, nil)); err == nil {
		t.Error("an unknown question is answered")
	}
	tr, err := Trainer("fsdp")
	if err != nil {
		t.Fatal(err)
	}
	tr.Model, tr.Shard = s.Model, 8
	batches, err := SolveTraining("batch", tr, gpuNamed(t, "H100"))
	if err != nil || batches[0].Value < 2 {
		t.Fatal(batches, err)
	}
	for _, a := range batches {
		if a.Setup != asGiven {
			continue
		}
		for n, want := range map[int64]bool{int64(a.Value): true, int64(a.Value) + 1: false} {
			try := tr
			try.Sequences = n
			if got := Judge(try.Step().Peak, try.Outside(), gpuNamed(t, "H100").Total) == Fits; got != want {
				t.Errorf("a batch of %d fits: %v", n, got)
			}
		}
	}
}

func scanned(t *testing.T, text string) *logs.EngineLog {
	t.Helper()
	log, err := logs.ScanEngine(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestCheck(t *testing.T) {
	data, err := os.ReadFile("../logs/testdata/vllm-0.11.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, off, cause string }{
		{"", "", "", ""},
		{"0.07 GiB for non-torch", "8.29 GiB for non-torch", NonTorch, "another process"},
		{"14.99 GiB for weight", "8.6 GiB for weight", Weights, "quantised"},
		{"2.44 GiB for peak", "9.96 GiB for peak", Activations, "requests at once"},
		{"440,480 tokens", "880,960 tokens", "tokens of that KV cache", "--kv-dtype"},
		{"0.67 GiB", "7.46 GiB", Graphs, "more sizes"},
	} {
		log := scanned(t, strings.ReplaceAll(string(data), c.from, c.to))
		rows, err := Serving{Model: find(t, "Llama-3.1-8B", "")}.From(log).Check(log)
		if err != nil {
			t.Fatal(err)
		}
		off := ""
		if rows[0].Off != 0 {
			off = rows[0].Component
		}
		if off != c.off || !strings.Contains(rows[0].Cause, c.cause) {
			t.Errorf("%s: %s is off (%s), want %s (%s)", c.to, off, rows[0].Cause, c.off, c.cause)
		}
	}
	if _, err := (Serving{Model: find(t, "Llama-3.1-8B", "")}).Check(scanned(t, "nothing here\n")); err == nil {
		t.Error("a log without figures is checked")
	}
}

func TestCheckStep(t *testing.T) {
	tr, err := Trainer("zero1")
	if err != nil {
		t.Fatal(err)
	}
	tr.Model = find(t, "Llama-3.2-1B", "")
	st := tr.normal().states(tr.normal().hold(0))
	seen := map[string]int64{"parameters": int64(st.params + st.master), "optimizer": 2 * int64(st.optimizer), "gradients": int64(st.grads)}
	rows, err := tr.CheckStep(seen)
	if err != nil {
		t.Fatal(err)
	}
	if rows[0].Component != "optimizer" || rows[0].Off <= 0 || rows[0].Cause == "" {
		t.Errorf("a doubled optimizer: %+v", rows)
	}
	log := scanned(t, "step:  7  loss:  9.1  memory: 48.87GiB(51.44%)  tps: 5,000\n")
	if rows, err := tr.CheckLog(log); err != nil || rows[0].Off == 0 {
		t.Errorf("a logged peak: %+v, %v", rows, err)
	}
}

func TestTextbook(t *testing.T) {
	s := Serving{Model: find(t, "DeepSeek-R1", ""), Engine: Engine{Name: VLLM}, GPU: gpuNamed(t, "H200"), Parallel: Parallel{TP: 8}}
	s.KV, _ = ParseKV("fp8", s.Model)
	b, err := s.Textbook()
	if err != nil {
		t.Fatal(err)
	}
	if b.PerToken != 2*61*7168 || b.Tokens >= b.OwnTokens {
		t.Errorf("textbook: %+v", b)
	}
}

// TestLatency checks the roofline against a step that reads all weights once.
func TestLatency(t *testing.T) {
	f := fitOf(t, Serving{Model: find(t, "Llama-3.1-8B", ""), Engine: Engine{Name: VLLM}, GPU: gpuNamed(t, "H100"), Length: 8192})
	l := f.Latency
	weights := 15.0e9 / 3350e9 // seconds at full bandwidth
	if l.Token[0] < weights || l.Token[1] > 10*weights || l.First[0] <= 0 || l.First[1] < l.First[0] || l.Bound != "memory bandwidth" {
		t.Errorf("latency: %+v", l)
	}
}

// TestCheckWithoutAGPU gives the figures of a log that nothing can be planned for.
func TestCheckWithoutAGPU(t *testing.T) {
	for text, want := range map[string]string{
		"Model loading took 14.98 GiB and 3 seconds\nAvailable KV cache memory: 12.50 GiB\n": KVCache,
		"Model loading took 14.98 GiB and 3 seconds\nGPU KV cache size: 4,096 tokens\n":      "tokens of the KV cache",
	} {
		rows, err := Serving{Model: find(t, "Llama-3.1-8B", "")}.Check(scanned(t, text))
		if err != nil || len(rows) != 2 {
			t.Fatal(rows, err)
		}
		for _, r := range rows {
			if r.Unplanned != (r.Component == want) || r.Observed <= 0 {
				t.Errorf("%+v", r)
			}
		}
	}
}
