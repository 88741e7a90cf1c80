package serving

import (
	"math/rand/v2"
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
)

// TestExtremes plans set-ups of which every number may be absurd: each is refused, or
// has sizes that a sum can hold.
func TestExtremes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	number := func() int64 {
		return []int64{0, 0, 0, 1, 2, 7, 8, 100, 4096, 65536, 1 << 20, 1 << 32}[r.IntN(12)]
	}
	models := []string{"Llama-3.1-8B", "gpt-oss-20b", "DeepSeek-V2-Lite", "Qwen3-VL-8B-Instruct", "Qwen3-Next-80B-A3B-Instruct", "DeepSeek-V4-Flash"}
	q8, _ := ParseKV("q8_0", nil)
	planned := 0
	for range 400 {
		s := Setup{Model: plantest.Model(t, models[r.IntN(len(models))], ""), GPU: plantest.GPU(t, []string{"T4", "H200", "GB200"}[r.IntN(3)]),
			Engine: engine.Release{Name: []string{engine.VLLM, engine.SGLang, engine.LlamaCPP, engine.Ollama}[r.IntN(4)]}, Length: number(), Step: number(), Requests: number(), Block: number(), MaxKV: number(), Graphs: number(),
			Load: Load{number(), number(), number()}, HostBandwidth: float64(number()), NodeLink: float64(number())}
		s.Parallel = plan.Parallel{TP: 1 << r.IntN(5), PP: 1 + r.Int64N(4), Node: r.Int64N(9)}
		s.Local = Local{HostMoE: number(), FullWindow: r.IntN(2) == 0, Unified: r.IntN(2) == 0, Flash: Switch(r.IntN(3))}
		if n := number(); n > 0 {
			s.Local.Layers = &n
		}
		if s.Engine.Local() && r.IntN(2) == 0 {
			s.KV = q8
		}
		if r.IntN(2) == 0 && s.Model.Vision.Layers > 0 {
			s.Images = Images{number() % (1 << 17), number() % (1 << 17), number() % (1 << 17)}
		}
		f, err := s.Fit()
		if err != nil {
			continue
		}
		planned++
		for _, c := range append(f.Components, f.Host...) {
			if c.Size.Low < 0 || c.Size.High < c.Size.Low || c.Size.High > plan.Most {
				t.Fatalf("%+v: %s is %+v", s, c.Name, c.Size)
			}
		}
		if f.Need < 0 || f.Tokens.Low < 0 || f.Longest.Low < 0 || f.Longest.High < f.Longest.Low || len(f.Flags) == 0 || f.Verdict == "" {
			t.Fatalf("%+v: %+v", s, f)
		}
		if l := f.Latency; l != nil && !(l.First[0] >= 0 && l.First[1] >= l.First[0] && l.Token[1] >= l.Token[0]) {
			t.Fatalf("%+v: %+v", s, l)
		}
	}
	if planned < 60 {
		t.Errorf("%d set-ups are planned", planned)
	}
}
