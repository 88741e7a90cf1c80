package serving

import (
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
)

func TestSolve(t *testing.T) {
	s := Setup{Model: plantest.Model(t, "Llama-3.1-8B", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: plantest.GPU(t, "RTX-4090")}
	s.KV, _ = ParseKV("", s.Model)
	answers, err := Solve("context", Variants(s, []*model.Model{plantest.Model(t, "Llama-3.1-8B", "int4")}))
	if err != nil || len(answers) != 4 {
		t.Fatal(answers, err)
	}
	if answers[0].Value != 131072 || answers[len(answers)-1].Setup != plan.AsGiven {
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
		if got := fitOf(t, try).Verdict == plan.Fits; got != c.want {
			t.Errorf("a context of %d tokens fits: %v", c.length, got)
		}
	}
	fewest, err := Solve("gpus", Variants(Setup{Model: plantest.Model(t, "DeepSeek-R1", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: plantest.GPU(t, "H200"), KV: s.KV}, nil))
	if err != nil || fewest[0].Value != 8 {
		t.Errorf("GPUs for DeepSeek-R1: %+v, %v", fewest, err)
	}
	if _, err := Solve("happiness", Variants(s, nil)); err == nil {
		t.Error("an unknown question is answered")
	}
}
