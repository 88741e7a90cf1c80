package training

import (
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
)

func TestSolve(t *testing.T) {
	tr, err := Trainer("fsdp")
	if err != nil {
		t.Fatal(err)
	}
	tr.Model, tr.Shard = plantest.Model(t, "Llama-3.1-8B", ""), 8
	batches, err := Solve("batch", tr, plantest.GPU(t, "H100"))
	if err != nil || batches[0].Value < 2 {
		t.Fatal(batches, err)
	}
	for _, a := range batches {
		if a.Setup != plan.AsGiven {
			continue
		}
		for n, want := range map[int64]bool{int64(a.Value): true, int64(a.Value) + 1: false} {
			try := tr
			try.Sequences = n
			if got := plan.Judge(try.Step().Peak, try.Outside(), plantest.GPU(t, "H100").Total) == plan.Fits; got != want {
				t.Errorf("a batch of %d fits: %v", n, got)
			}
		}
	}
}
