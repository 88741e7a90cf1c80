package serving

import (
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
)

func TestTextbook(t *testing.T) {
	s := Setup{Model: plantest.Model(t, "DeepSeek-R1", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: plantest.GPU(t, "H200"), Parallel: plan.Parallel{TP: 8}}
	s.KV, _ = ParseKV("fp8", s.Model)
	b, err := s.Textbook()
	if err != nil {
		t.Fatal(err)
	}
	if b.PerToken != 2*61*7168 || b.Tokens >= b.OwnTokens {
		t.Errorf("textbook: %+v", b)
	}
}
