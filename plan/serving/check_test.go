package serving

import (
	"fmt"
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
		{"INFO 09-21 23:16:13", "args: {'num_gpu_blocks_override': 27530}", "", ""},
		{"INFO 09-21 23:16:13", "args: {'num_gpu_blocks_override': 2753}", "tokens of the KV cache", ""},
		{"INFO 09-21 23:16:13", "args: {'kv_cache_memory_bytes': 1073741824}", plan.KVCache, ""},
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

// TestCheckDraft keeps a draft model's weights and KV cache apart from the model's own.
func TestCheckDraft(t *testing.T) {
	log := scanned(t, `[2026-01-12 04:57:32] server_args=ServerArgs(model_path='a', speculative_algorithm='NEXTN')
[2026-01-12 04:57:56 TP0] Load weight begin. avail mem=138.77 GB
[2026-01-12 05:00:27 TP0] Load weight end. type=DeepseekV3ForCausalLM, avail mem=57.66 GB, mem usage=81.11 GB.
[2026-01-12 05:00:28 TP0] KV Cache is allocated. #tokens: 75904, KV size: 4.97 GB
[2026-01-12 05:00:28 TP0] Memory pool end. avail mem=52.53 GB
[2026-01-12 05:01:13 TP0] Load weight begin. avail mem=44.63 GB
[2026-01-12 05:01:25 TP0] Load weight end. type=DeepseekV3ForCausalLMNextN, avail mem=42.60 GB, mem usage=2.03 GB.
[2026-01-12 05:01:25 TP0] KV Cache is allocated. #tokens: 75904, KV size: 0.08 GB
`)
	s := Setup{Model: plantest.Model(t, "DeepSeek-R1", ""), Parallel: plan.Parallel{TP: 8}}.From(log)
	rows, err := s.Check(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if strings.HasPrefix(r.Component, engine.DraftPart) && (r.Unplanned || r.Off != 0) || r.Component == plan.KVCache && r.Observed != log.Ranks[0].Figures[engine.KV].Size {
			t.Errorf("%+v", r)
		}
	}
	if n := len(rows); n != 5 {
		t.Errorf("%d rows: %+v", n, rows)
	}
	restarted := scanned(t, "[2026-01-12 04:57:56 TP0] Load weight begin. avail mem=138 GB\n[2026-01-12 05:00:28 TP0] KV Cache is allocated. #tokens: 75904, KV size: 4.97 GB\n[2026-01-12 05:00:28 TP0] Memory pool end. avail mem=52.53 GB\n[2026-01-12 06:00:00 TP0] Load weight begin. avail mem=138 GB\n[2026-01-12 06:00:27 TP0] Load weight end. type=A, avail mem=57 GB, mem usage=81 GB.\n")
	if f := restarted.Ranks[0].Figures; f[engine.Weights].Size != 81<<30 || len(f) != 1 {
		t.Errorf("a second start: %+v", f)
	}
}

// TestCheckNotes finds graphs that a suggestion takes off twice by the log's own figures.
func TestCheckNotes(t *testing.T) {
	const log = "Model loading took 14.99 GiB memory and 3 seconds\nEstimated CUDA graph memory: 2.00 GiB total\nAvailable KV cache memory: 50.00 GiB\nGraph capturing finished in 5 secs, took 1.50 GiB\nReplace gpu_memory_utilization config with `--kv-cache-memory=%s` (1 GiB) to fit\n"
	for suggested, want := range map[string]string{"51919191040": "2 GiB more is free", "54066674688": ""} {
		if got := strings.Join(CheckNotes(scanned(t, strings.Replace(log, "%s", suggested, 1))), "; "); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", suggested, got, want)
		}
	}
	if rows := Breakdown(scanned(t, strings.Replace(log, "%s", "1", 1))); len(rows) != 3 || !rows[0].Unplanned {
		t.Errorf("%+v", rows)
	}
}

// TestSpread divides a model among the GPUs that are given, or as its weights show.
func TestSpread(t *testing.T) {
	const one = "INFO 04-02 19:40:50 worker.py:267] Memory profiling takes 16.56 secondsINFO 04-02 19:40:50 worker.py:267] model weights take %.2fGiB; non_torch_memory takes 2.30GiB; PyTorch activation peak memory takes 1.42GiB; the rest of the memory reserved for KV Cache is 43.94GiB.\n"
	for _, c := range []struct {
		model   string
		weights float64
		gpus    int64
		stated  int64
		tp      int64
	}{
		{"DeepSeek-R1", 42.59, 1, 0, 16},
		{"DeepSeek-R1", 42.59, 16, 0, 16},
		{"DeepSeek-R1", 80.2, 8, 0, 8},
		{"DeepSeek-R1", 42.59, 16, 4, 4},
		{"Llama-3.1-8B", 14.99, 1, 0, 0},
		{"Llama-3.1-8B", 3.9, 1, 0, 0}, // a quarter: four bits, or four ranks
		{"Llama-3.1-8B", 3.9, 4, 0, 4},
	} {
		log := scanned(t, fmt.Sprintf(one, c.weights))
		s := Setup{Model: plantest.Model(t, c.model, "")}
		s.Parallel.TP = c.stated
		got, note := s.From(log).Spread(log, c.gpus)
		if got.Parallel.TP != c.tp || (note != "") != (c.tp > c.stated) {
			t.Errorf("%s of %g GiB on %d GPUs: TP %d (%q), want %d", c.model, c.weights, c.gpus, got.Parallel.TP, note, c.tp)
		}
	}
}
