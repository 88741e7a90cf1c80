package report

import (
	"testing"

	"strandline/face/api"
	"strandline/plan"
	"strandline/plan/model"
)

// TestCheckedBegins names first what the rest follows from: the KV cache is what others leave,
// unless these are off by far less.
func TestCheckedBegins(t *testing.T) {
	row := func(component string, off int64) plan.Checked {
		return plan.Checked{Component: component, Planned: plan.Range{Low: 100, High: 100}, Observed: 100 + off, Off: off}
	}
	tokens := row("tokens of the KV cache", -5000)
	tokens.Tokens = true
	for _, c := range []struct {
		want string
		rows []plan.Checked
	}{
		{"CUDA graphs are off", []plan.Checked{tokens, row(plan.KVCache, -300), row("CUDA graphs", 30)}},
		{"KV cache is off", []plan.Checked{tokens, row(plan.KVCache, -301), row("CUDA graphs", 30)}},
		{"KV cache is off", []plan.Checked{tokens, row(plan.KVCache, -40)}},
		{"tokens of the KV cache are off", []plan.Checked{tokens}},
		{"non-torch is off", []plan.Checked{row("non-torch", 50)}},
		{"everything that can be checked is as planned", []plan.Checked{row("weights", 0)}},
	} {
		if got := (Checked{api.NewChecked("x.log", &model.Model{}, "vllm", c.rows)}).sentence(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
