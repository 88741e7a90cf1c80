package serving

import (
	"os"
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	enginelog "strandline/logs/engine"
	"strandline/plan"
	"strandline/plan/engine"
)

func scanned(t *testing.T, text string) *engine.Log {
	t.Helper()
	log, err := enginelog.Scan(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return log
}

func TestCheck(t *testing.T) {
	data, err := os.ReadFile("../../logs/testdata/vllm-0.11.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, to, off, cause string }{
		{"", "", "", ""},
		{"0.07 GiB for non-torch", "8.29 GiB for non-torch", plan.NonTorch, "another process"},
		{"14.99 GiB for weight", "8.6 GiB for weight", plan.Weights, "quantized"},
		{"2.44 GiB for peak", "9.96 GiB for peak", plan.Activations, "requests at once"},
		{"440,480 tokens", "880,960 tokens", "tokens of that KV cache", "--kv-dtype"},
		{"0.67 GiB", "7.46 GiB", plan.Graphs, "more sizes"},
	} {
		log := scanned(t, strings.ReplaceAll(string(data), c.from, c.to))
		rows, err := Setup{Model: plantest.Model(t, "Llama-3.1-8B", "")}.From(log).Check(log)
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
	if _, err := (Setup{Model: plantest.Model(t, "Llama-3.1-8B", "")}).Check(scanned(t, "nothing here\n")); err == nil {
		t.Error("a log without figures is checked")
	}
}

// TestCheckWithoutAGPU gives the figures of a log that nothing can be planned for.
func TestCheckWithoutAGPU(t *testing.T) {
	for text, want := range map[string]string{
		"Model loading took 14.98 GiB and 3 seconds\nAvailable KV cache memory: 12.50 GiB\n": plan.KVCache,
		"Model loading took 14.98 GiB and 3 seconds\nGPU KV cache size: 4,096 tokens\n":      "tokens of the KV cache",
	} {
		rows, err := Setup{Model: plantest.Model(t, "Llama-3.1-8B", "")}.Check(scanned(t, text))
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
