package training

import (
	"math"
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/model"
)

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
		st := tr.Normal().states(held{blocks: 7.5e9})
		if got := (st.Parameters + st.Optimizer + st.Master + st.Gradients) / 1e9; math.Abs(got-c.want) > 0.06 {
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
	tr.Model = plantest.Model(t, "Qwen2.5-VL-7B", "")
	st := tr.Normal().states(tr.Normal().hold(0))
	if got, want := st.Parameters+st.Optimizer+st.Gradients, 16*float64(tr.Model.Params()); math.Abs(got-want) > 0.001*want {
		t.Errorf("states of %.3g bytes, want %.3g", got, want)
	}
}

// TestHuge checks that sums of what no GPU holds stay above what one has.
func TestHuge(t *testing.T) {
	tr, err := Trainer("fsdp")
	if err != nil {
		t.Fatal(err)
	}
	tr.Model, tr.Sequences, tr.Length, tr.Checkpointing = plantest.Model(t, "Llama-3.1-8B", ""), 1<<20, 1<<32, KeepAll
	step := tr.Step()
	if step.Peak.Low < 1<<60 || plan.Judge(step.Peak, tr.Outside(), 1<<40) != plan.TooMuch {
		t.Errorf("a peak of %d bytes", step.Peak.Low)
	}
}

// TestTrainingMoves checks that what saves memory does so.
func TestTrainingMoves(t *testing.T) {
	base, err := Trainer("fsdp")
	if err != nil {
		t.Fatal(err)
	}
	base.Model, base.Shard, base.Sequences, base.Length, base.Checkpointing = plantest.Model(t, "Qwen3-30B-A3B", ""), 8, 2, 8192, KeepAll
	peak := func(change func(t *Setup)) int64 {
		v := base
		change(&v)
		if err := v.Check(); err != nil {
			t.Fatal(err)
		}
		return v.Step().Peak.High
	}
	all := peak(func(*Setup) {})
	for name, change := range map[string]func(t *Setup){
		"more ranks":           func(t *Setup) { t.Shard = 16 },
		"TP and SP":            func(t *Setup) { t.TP, t.SequenceParallel = 2, true },
		"CP":                   func(t *Setup) { t.CP = 2 },
		"recomputation":        func(t *Setup) { t.Checkpointing = KeepInputs },
		"selective":            func(t *Setup) { t.Checkpointing = KeepMatmuls },
		"compiled":             func(t *Setup) { t.Compile, t.LossCompiled = true, true },
		"chunked loss":         func(t *Setup) { t.LossChunks = 8 },
		"optimizer in memory":  func(t *Setup) { t.OffloadOptimizer = true },
		"everything offloaded": func(t *Setup) { t.OffloadStates = true },
		"experts on the CPU":   func(t *Setup) { t.ExpertsOnCPU = true },
		"8-bit Adam":           func(t *Setup) { t.Optimizer, t.StateBytes = "adamw-8bit", 2 },
		"LoRA":                 func(t *Setup) { t.LoRA = &Adapters{Rank: 16, Targets: []string{"q", "v"}} },
		"QLoRA":                func(t *Setup) { t.LoRA = &Adapters{Rank: 16, Targets: []string{"q", "v"}, Base: "nf4"} },
	} {
		if got := peak(change); got >= all {
			t.Errorf("%s: a peak of %d bytes, not below %d", name, got, all)
		}
	}
	// Products of nvfp4 are not on the list of what is kept: a block's input and
	// attention's output are, with a fp32 number a head.
	kept := Setup{Model: plantest.Model(t, "Meta-Llama-3-8B", ""), Checkpointing: KeepMatmuls}.Normal()
	block := kept.perToken(&kept.Model.Layers[0])
	for float8, want := range map[string]float64{"none": 2*(2*4096+2*4096+1024+14336) + 4*32, "nvfp4": 2*(4096+4096) + 4*32} {
		if kept.Float8 = float8; kept.kept(block, 0) != plan.Point(want) {
			t.Errorf("%s keeps %v bytes of a token, want %g", float8, kept.kept(block, 0), want)
		}
	}
	// The first stage keeps more micro-batches than the last one.
	staged := base
	staged.PP, staged.Accumulate, staged.Model = 4, 8, plantest.Model(t, "Llama-3.1-8B", "")
	if a, b := staged.Normal().inFlight(0), staged.Normal().inFlight(3); a != 4 || b != 1 {
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

// TestAutocast holds DDP under autocast against a step that was measured on an H200: 25,448
// MiB allocated. DDP's buckets, autocast's copies of the weights and those of the inputs of
// matrices are in it.
func TestAutocast(t *testing.T) {
	m, err := model.Parse("llama", []byte(`{"model_type":"llama","hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":12,"num_attention_heads":16,"num_key_value_heads":8,
		"vocab_size":32000,"max_position_embeddings":4096,"tie_word_embeddings":false,"torch_dtype":"bfloat16"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	ddp, err := Trainer("ddp")
	if err != nil {
		t.Fatal(err)
	}
	ddp.Model, ddp.Sequences, ddp.Length, ddp.Checkpointing = m, 4, 2048, KeepAll
	const measured = 25448 << 20
	if active := ddp.Step().Active; active.Low > measured*102/100 || active.High < measured*98/100 {
		t.Errorf("planned %d to %d bytes, measured %d", active.Low, active.High, measured)
	}
	parts := map[string]int64{}
	step := ddp.Step()
	for _, p := range step.Moments[step.Largest].Parts {
		parts[p.Name] = p.Size.Middle()
	}
	matrices := m.Params() - m.Vocab*m.Hidden
	if b, c := parts["gradient buckets"], parts["cast weights"]; b != 4*m.Params() || c < 2*matrices*99/100 || c > 2*matrices {
		t.Errorf("%v of %d parameters", parts, m.Params())
	}
	ddp.Checkpointing = KeepInputs
	full := ddp.Step()
	ddp.Autocast = false
	if narrow := ddp.Step(); full.Active.Low <= narrow.Active.Low {
		t.Errorf("with checkpointing %d bytes, without autocast %d", full.Active.Low, narrow.Active.Low)
	}
}

// TestTorchtune holds pure bf16 training against peaks of active memory that torchtune published for
// Llama-3.2-3B on one A100: 2 sequences of 4,096 tokens.
func TestTorchtune(t *testing.T) {
	m, err := model.Parse("llama", []byte(`{"model_type":"llama","hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":28,"num_attention_heads":24,"num_key_value_heads":8,
		"head_dim":128,"vocab_size":128256,"max_position_embeddings":131072,"tie_word_embeddings":true,"torch_dtype":"bfloat16"}`), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		published float64 // GiB
		set       func(*Setup)
	}{
		{60.0, func(s *Setup) { s.Checkpointing = KeepAll }},
		{42.9, func(s *Setup) { s.Checkpointing, s.Compile, s.LossCompiled, s.LossChunks = KeepAll, true, true, 8 }},
		{24.9, func(s *Setup) { s.Checkpointing, s.Compile, s.LossCompiled, s.LossChunks = KeepInputs, true, true, 8 }},
	} {
		s, err := Trainer("torchtune")
		if err != nil {
			t.Fatal(err)
		}
		s.Model, s.Sequences, s.Length = m, 2, 4096
		c.set(&s)
		low, high := float64(s.Step().Active.Low)/(1<<30), float64(s.Step().Active.High)/(1<<30)
		if c.published < low || c.published > high || high > 1.6*low {
			t.Errorf("published %.1f GiB, planned %.1f to %.1f", c.published, low, high)
		}
		states := s.StateBytes
		if err := s.SetOptimizer("adamw"); err != nil || s.StateBytes != states || states != 4 {
			t.Errorf("AdamW has %.0f bytes, %.0f if it is named: %v", states, s.StateBytes, err)
		}
		s = s.Normal()
		optimizer := s.States(0).Optimizer
		if err := s.SetOptimizer("muon"); err != nil || s.States(0).Optimizer >= 0.75*optimizer {
			t.Errorf("Muon's states are %.0f bytes, AdamW's %.0f: %v", s.States(0).Optimizer, optimizer, err)
		}
	}
	if zero, _ := Trainer("zero2"); zero.SetOptimizer("adamw") != nil || zero.StateBytes != 8 {
		t.Errorf("with a master copy AdamW has %.0f bytes", zero.StateBytes)
	}
}
