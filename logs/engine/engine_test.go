package engine

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"strandline/plan/engine"
)

// TestObservedLines reads lines of many releases, as people published them, and
// compares the figures with those that a person read off them.
func TestObservedLines(t *testing.T) {
	f, err := os.Open("../../plan/observed/testdata/observed.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	seen := map[string]int{}
	for _, row := range rows[1:] {
		get := func(name string) string { return row[column[name]] }
		if get("kind") != "inference" || strings.Contains(get("framework"), "TPU") {
			continue
		}
		log, err := Scan(strings.NewReader(linesOf(get("log_line"))))
		if err != nil {
			t.Fatal(err)
		}
		for name, from := range map[string]string{engine.Weights: "weights_gib", engine.NonTorch: "non_torch_gib", engine.Activation: "activation_gib", engine.KV: "kv_gib", engine.Total: "total_gpu_gib"} {
			got, ok := log.Largest(name)
			want, err := strconv.ParseFloat(get(from), 64)
			if !ok || err != nil {
				continue
			}
			seen[name]++
			if x := float64(got.Size) / (1 << 30); math.Abs(x-want) > 0.0101+0.0001*math.Abs(want) {
				t.Errorf("%s: %s read as %.3f GiB, want %g\n%s", get("id"), name, x, want, get("log_line"))
			}
		}
		if want, err := strconv.ParseInt(get("kv_tokens"), 10, 64); err == nil {
			if got, ok := log.Tokens(16); ok && get("id") != "G035" {
				seen["tokens"]++
				if got != want {
					t.Errorf("%s: %d tokens, want %d", get("id"), got, want)
				}
			}
		}
	}
	for name, least := range map[string]int{engine.Weights: 25, engine.KV: 10, engine.Activation: 6, engine.NonTorch: 8, "tokens": 11} {
		if seen[name] < least {
			t.Errorf("%s is found in %d lines, want %d or more", name, seen[name], least)
		}
	}
}

// linesOf puts lines that are in one cell below one another. vLLM's own summary
// has semicolons in one line.
func linesOf(cell string) string {
	if !strings.Contains(cell, "weights take") {
		cell = strings.ReplaceAll(cell, "; ", "\n")
	}
	return strings.ReplaceAll(strings.ReplaceAll(cell, ". KV Cache is", ".\nKV Cache is"), ". #", ".\n#")
}

func scanFile(t *testing.T, name string) *engine.Log {
	t.Helper()
	f, err := os.Open("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	log, err := Scan(f)
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// TestScanEngine reads logs whose lines have the shapes of their release.
func TestScanEngine(t *testing.T) {
	v := scanFile(t, "vllm-0.11.txt")
	if v.Engine != "vllm" || v.Version != "0.11.0" || v.Setup["model"] != "meta-llama/Llama-3.1-8B-Instruct" || v.Setup["max_len"] != "32768" ||
		v.Setup["chunk"] != "8192" || v.Setup["eager"] != "False" || v.Setup["fraction"] != "0.9" || v.Setup["quant"] != "" {
		t.Errorf("vLLM: %+v", v)
	}
	if len(v.Ranks) != 1 || *v.Ranks[0].Tokens != 440480 || *v.Ranks[0].AtOnce != 13.44 || *v.Ranks[0].Length != 32768 {
		t.Errorf("vLLM: ranks %+v", v.Ranks)
	}
	s := scanFile(t, "sglang-tp2.txt")
	if s.Engine != "sglang" || s.Setup["tp"] != "2" || s.Setup["fraction"] != "0.83" || len(s.Ranks) != 2 {
		t.Errorf("SGLang: %+v", s)
	}
	for name, want := range map[string]float64{engine.Weights: 13.95, engine.KV: 50.44, engine.GraphPool: 0.92} {
		if got, ok := s.Largest(name); !ok || math.Abs(float64(got.Size)/(1<<30)-want) > 0.001 {
			t.Errorf("SGLang: %s is %d bytes, want %g GiB", name, got, want)
		}
	}
}

// TestRestart takes the figures of the last start only, and none of a line that is
// cut off.
func TestRestart(t *testing.T) {
	log, err := Scan(strings.NewReader(`Load weight begin. avail mem=78.81 GB
Load weight end. type=X, avail mem=63.72 GB, mem usage=15.09 GB.
KV Cache is allocated. #tokens: 10, K size: 27.13 GB, V size: 27.13 GB
Load weight begin. avail mem=78.81 GB
Load weight end. type=X, avail mem=63.72 GB, mem usage=14.00 GB.
KV Cache is allocated. #tokens: 99, K size: 2.
[rank0]:step:  7  loss:  9.1  memory: 48.87GiB(51.44%)  tps: 5,000
`))
	if err != nil {
		t.Fatal(err)
	}
	weights, _ := log.Largest(engine.Weights)
	if weights.Size != 14<<30 || weights.Line != 5 {
		t.Errorf("weights of %d bytes on line %d", weights.Size, weights.Line)
	}
	if n, ok := log.Largest(engine.KV); ok {
		t.Errorf("KV cache of %d bytes", n.Size)
	}
	if n, ok := log.Largest(engine.Train); !ok || math.Abs(float64(n.Size)/(1<<30)-48.87) > 0.001 {
		t.Errorf("a training peak of %d bytes", n.Size)
	}
}

func FuzzScanEngine(f *testing.F) {
	for _, name := range []string{"vllm-0.11.txt", "sglang-tp2.txt"} {
		data, err := os.ReadFile("../testdata/" + name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		log, err := Scan(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range log.Ranks {
			for name, s := range r.Figures {
				if s.Line < 1 || s.Size > 1<<60 || s.Size < -1<<60 {
					t.Errorf("%s: %d bytes on line %d", name, s.Size, s.Line)
				}
			}
		}
	})
}

// TestLoggedModels finds the model where a log names it, whatever the line.
func TestLoggedModels(t *testing.T) {
	for text, want := range map[string]string{
		"INFO api_server.py:530] args: Namespace(host=None, model='Qwen/Qwen3-8B', max_model_len=4096, tensor_parallel_size=2)\n":               "Qwen/Qwen3-8B",
		"INFO utils.py:326] non-default args: {'model_tag': '/data/DeepSeek-R1/', 'model': 'Qwen/Qwen3-0.6B', 'max_model_len': 4096}\n":         "/data/DeepSeek-R1/",
		"[2025-11-02 10:00:00] Found local HF snapshot for zai-org/GLM-4.6-FP8 at /root/.cache; skipping download.\n":                           "zai-org/GLM-4.6-FP8",
		"INFO 05-30 06:40:04 model_runner.py:1110] Starting to load model Qwen/Qwen2.5-1.5B-Instruct...\n":                                      "Qwen/Qwen2.5-1.5B-Instruct",
		"INFO core.py:93] Initializing a V1 LLM engine (v0.11.2) with config: model='a/b', speculative_config=None, tensor_parallel_size=4, \n": "a/b",
	} {
		log, err := Scan(strings.NewReader(text))
		if err != nil || log.Setup["model"] != want {
			t.Errorf("%q: the model is %q, %v", text, log.Setup["model"], err)
		}
		if strings.Contains(text, "4096") && log.Setup["max_len"] != "4096" {
			t.Errorf("%q: the longest request is %q", text, log.Setup["max_len"])
		}
	}
}

// TestMasked reads the other numbers of a line of which one is masked.
func TestMasked(t *testing.T) {
	log, err := Scan(strings.NewReader("Free memory on device (***/79.19 GiB) on startup. Desired GPU memory utilization is (0.9, 71.27 GiB). " +
		"Actual usage is *** GiB for weight, 2.44 GiB for peak activation, *** for non-torch memory, and 0.67 GiB for CUDAGraph memory.\n" +
		"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{engine.Total: 79.19, engine.Activation: 2.44, engine.GraphPool: 0.67} {
		if got, ok := log.Largest(name); !ok || math.Abs(float64(got.Size)/(1<<30)-want) > 0.001 || got.Rounding != 5368710 && got.Rounding != 5368709 && got.Rounding != 5368711 {
			t.Errorf("%s: %+v, want %g GiB", name, got, want)
		}
	}
	for _, name := range []string{engine.Weights, engine.NonTorch} {
		if got, ok := log.Largest(name); ok {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
	if log.Failure == nil || log.Failure.Line != 2 {
		t.Errorf("the failure is %+v", log.Failure)
	}
}

// TestDifferences takes what SGLang's first releases state by what is free.
func TestDifferences(t *testing.T) {
	log, err := Scan(strings.NewReader(`[2024-12-13 01:44:40 TP0] Load weight begin. avail mem=23.20 GB
[2024-12-13 01:44:59 TP0] Load weight end. type=MistralForCausalLM, dtype=torch.bfloat16, avail mem=9.70 GB
[2024-12-13 01:44:59 TP0] Memory pool end. avail mem=2.45 GB
[2024-12-13 01:44:59 TP0] Capture cuda graph begin. This can take up to several minutes. avail mem=2.40 GB
[2024-12-13 01:45:01 TP0] Capture cuda graph end. Time elapsed: 2.19 s. avail mem=2.15 GB
`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{engine.Weights: 13.5, engine.Pool: 7.25, engine.GraphPool: 0.25} {
		if got, ok := log.Largest(name); !ok || math.Abs(float64(got.Size)/(1<<30)-want) > 0.001 {
			t.Errorf("%s: %+v, want %g GiB", name, got, want)
		}
	}
	if len(log.Ranks) != 1 || len(log.Ranks[0].Figures) != 3 {
		t.Errorf("%+v", log.Ranks)
	}
}

// TestOtherEngines reads the lines of TensorRT-LLM and llama.cpp; the devices of the
// latter are summed.
func TestOtherEngines(t *testing.T) {
	for _, c := range []struct {
		text, engine string
		sizes        map[string]int64
		tokens       int64
	}{
		{"[TensorRT-LLM][INFO] Loaded engine size: 12855 MiB\n[TensorRT-LLM][INFO] Allocate 2097152 bytes for k/v cache. \n[TensorRT-LLM][INFO] Using 4 tokens in paged KV cache.\n",
			engine.TensorRT, map[string]int64{engine.Weights: 12855 << 20, engine.KV: 2 << 20}, 4},
		{"[TensorRT-LLM][INFO] [MemUsageChange] Allocated 1.50 GiB for max tokens in paged KV cache (12288).\n", engine.TensorRT, map[string]int64{engine.KV: 3 << 29}, 12288},
		{"llama_model_loader: loaded meta data with 29 key-value pairs and 292 tensors from a.gguf\nprint_info: file type   = Q4_K - Medium\nprint_info: general.name     = Llama 3.1 8B Instruct\n" +
			"load_tensors:        CUDA0 model buffer size =  2048.00 MiB\nload_tensors:   CPU_Mapped model buffer size =   256.50 MiB\nllama_context: n_ctx         = 8192\n" +
			"llama_kv_cache_unified:      CUDA0 KV buffer size =   512.00 MiB\nllama_kv_cache_unified:      CUDA1 KV buffer size =   512.00 MiB\n" +
			"llama_context:      CUDA0 compute buffer size =   258.50 MiB\nllama_context:  CUDA_Host compute buffer size =    24.01 MiB\n",
			engine.LlamaCPP, map[string]int64{engine.Weights: 2304<<20 + 1<<19, engine.KV: 1 << 30, engine.Activation: 258<<20 + 1<<19}, 0},
		{"time=2025-11-11T00:42 msg=\"model weights\" device=CUDA0 size=\"4.5 GiB\"\ntime=2025-11-11T00:42 msg=\"model weights\" device=CPU size=\"512.0 MiB\"\n" +
			"time=2025-11-11T00:43 msg=\"model weights\" device=CUDA0 size=\"4.0 GiB\"\ntime=2025-11-11T00:43 msg=\"compute graph\" device=CUDA0 size=\"64.0 MiB\"\n" +
			"time=2025-11-11T00:43 msg=\"compute graph\" device=CPU size=\"128.0 MiB\"\n", engine.LlamaCPP, map[string]int64{engine.Weights: 9 << 29, engine.Activation: 64 << 20}, 0},
	} {
		log, err := Scan(strings.NewReader(c.text))
		if err != nil || log.Engine != c.engine || len(log.Ranks) != 1 {
			t.Fatalf("%q: %+v, %v", c.text, log, err)
		}
		for name, want := range c.sizes {
			if got, ok := log.Largest(name); !ok || got.Size != want {
				t.Errorf("%s: %s is %+v, want %d", c.engine, name, got, want)
			}
		}
		if got, _ := log.Tokens(64); got != c.tokens {
			t.Errorf("%s: %d tokens, want %d", c.engine, got, c.tokens)
		}
		if strings.HasPrefix(c.text, "llama") && (log.Setup["model"] != "Llama 3.1 8B Instruct" || log.Setup["file_type"] != "Q4_K - Medium" || log.Setup["max_len"] != "8192") {
			t.Errorf("set-up %v", log.Setup)
		}
	}
}

// TestOnProcessor reads the lines of vLLM for the CPU.
func TestOnProcessor(t *testing.T) {
	e, err := Scan(strings.NewReader("INFO 11-28 18:35:56 [cpu_worker.py:260] Explicitly set (1.5/23.54) GiB for KV cache on node 0.\n" +
		"INFO 11-28 18:35:56 [kv_cache_utils.py:2327] CPU KV cache size: 3,145,728 tokens, Maximum concurrency for 256 tokens per request: 12288.00x\n"))
	if err != nil {
		t.Fatal(err)
	}
	cache, _ := e.Largest(engine.KV)
	if tokens, _ := e.Tokens(16); e.Engine != engine.VLLM || cache.Size != 3<<29 || tokens != 3145728 {
		t.Errorf("%q, %+v, %d", e.Engine, cache, tokens)
	}
}

// TestBrokenLines reads a log whose lines a terminal broke anywhere, and to which something
// was added at each line after that.
func TestBrokenLines(t *testing.T) {
	const log = "INFO 11-22 17:10:11 [core.py:93] Initializing a V1 LLM engine (v0.11.2) with config: model='acme/Large-70B-Instruct', speculative_config=None, tokenizer='acme/Large-70B-Instruct', tensor_parallel_size=4, dtype=torch.bfloat16, max_seq_len=8192\n" +
		"INFO 11-22 17:10:58 [gpu_model_runner.py:3259] Model loading took 16.9617 GiB memory and 31.123456 seconds with the weights of a checkpoint\n" +
		"\x1b[36m(Worker pid=7)\x1b[0m INFO 11-22 17:11:20 │ [gpu_worker.py:359] Available KV cache memory: 50.37 GiB for the blocks of this worker, by what was measured\n" +
		"INFO 11-22 17:11:20 [kv_cache_utils.py:1229] GPU KV cache size: 660,128 tokens\n"
	prefixes := []string{"", "2026-11-22T17:10:11.%09dZ stdout F ", "│ ", "Nov 22 17:10:11 node-1 vllm[%04d]: "}
	for width := 60; width < 130; width++ {
		prefix := prefixes[width%len(prefixes)]
		number := 0
		begin := func(b *strings.Builder) {
			if number++; strings.Contains(prefix, "%") {
				fmt.Fprintf(b, prefix, number)
			} else {
				b.WriteString(prefix)
			}
		}
		text := strings.NewReplacer("\x1b[36m", "", "\x1b[0m", "").Replace(log)
		var b strings.Builder
		for line := range strings.Lines(text) {
			begin(&b)
			for n, c := range []rune(strings.TrimSuffix(line, "\n")) {
				if n > 0 && n%width == 0 {
					b.WriteByte('\n')
					begin(&b)
				}
				b.WriteRune(c)
			}
			b.WriteByte('\n')
		}
		e, err := Scan(strings.NewReader(b.String()))
		if err != nil || e.Setup["model"] != "acme/Large-70B-Instruct" || e.Setup["tp"] != "4" || e.Setup["max_len"] != "8192" {
			t.Fatalf("at %d: %v, %v", width, e.Setup, err)
		}
		weights, _ := e.Largest(engine.Weights)
		cache, _ := e.Largest(engine.KV)
		if tokens, _ := e.Tokens(16); weights.Size>>20 != 17368 || cache.Size>>20 != 51578 || tokens != 660128 {
			t.Errorf("at %d: %+v, %+v, %d", width, weights, cache, tokens)
		}
	}
}

// TestStartsOfSGLang reads a log whose beginning is cut off, pasted several times: the pools
// of one start are added up, those of several are not, and neither are those of two ranks.
func TestStartsOfSGLang(t *testing.T) {
	const start = "[2026-01-02 03:04:05 TP0] Load weight end. type=X, avail mem=60.00 GB, mem usage=8.00 GB.\n" +
		"[2026-01-02 03:04:06 TP0] KV Cache is allocated. #tokens: 1000, K size: 2.00 GB, V size: 2.00 GB\n" +
		"[2026-01-02 03:04:06 TP0] KV Cache is allocated. #tokens: 500, K size: 1.00 GB, V size: 1.00 GB\n" +
		"[2026-01-02 03:04:07 TP0] Memory pool end. avail mem=54.00 GB\n" +
		"[2026-01-02 03:04:09 TP0] Capture cuda graph end. Time elapsed: 9.00 s. mem usage=1.50 GB. avail mem=52.50 GB.\n"
	var ranks strings.Builder // each line once from both
	for line := range strings.Lines(start) {
		ranks.WriteString("[rank0]: " + line + "[rank1]: " + line)
	}
	for _, text := range []string{start, strings.Repeat(start, 5), strings.Repeat(start[strings.IndexByte(start, '\n')+1:], 3), ranks.String()} {
		e, err := Scan(strings.NewReader(text))
		cache, _ := e.Largest(engine.KV)
		if graphs, _ := e.Largest(engine.GraphPool); err != nil || e.Engine != "sglang" || cache.Size != 6<<30 || graphs.Size != 3<<29 {
			t.Errorf("%q: %+v, %+v, %v", text, cache, graphs, err)
		}
	}
}

// TestLlamaSetup reads what llama.cpp and Ollama print of their set-up, the context from
// the summary of the cache where no line states it.
func TestLlamaSetup(t *testing.T) {
	for text, want := range map[string]string{
		"llama_kv_cache: size = 11440.00 MiB ( 28160 cells, 104 layers,  4/1 seqs), K (f16): 5720.00 MiB, V (q8_0): 5720.00 MiB\n":                                                                                             "max_len=28160 slots=4 unified=true kv_dtype=f16 kv_dtype_v=q8_0",
		"llama_kv_cache: size = 1.00 MiB ( 8192 cells,  32 layers,  2/2 seqs), K (f16): 0.50 MiB\nllama_kv_cache: size = 1.00 MiB ( 768 cells, 1 layers, 2/2 seqs)\n":                                                          "max_len=16384 slots=2 unified=",
		"llama_context: n_ctx = 4096\nllama_kv_cache: size = 1.00 MiB ( 2048 cells,  32 layers,  2/2 seqs)\nload_tensors: offloaded 20/33 layers to GPU\n":                                                                     "max_len=4096 gpu_layers=20",
		"msg=load request=\"{Operation:commit Parallel:2 BatchSize:512 FlashAttention:Enabled KvSize:8192 KvCacheType:}\"\n":                                                                                                   "max_len=8192 slots=2 chunk=512 flash=Enabled",
		"load_tensors: CUDA0 model buffer size = 1.00 MiB\nload_tensors: CUDA1 model buffer size = 1.00 MiB\nload_tensors: CPU_Mapped model buffer size = 1.00 MiB\nllama_context: CUDA_Host compute buffer size = 1.00 MiB\n": "gpus=CUDA0+CUDA1",
	} {
		log, err := Scan(strings.NewReader(text))
		if err != nil || log.Engine != engine.LlamaCPP {
			t.Fatalf("%q: %+v, %v", text, log, err)
		}
		for pair := range strings.FieldsSeq(want) {
			name, value, _ := strings.Cut(pair, "=")
			if got := strings.ReplaceAll(log.Setup[name], " ", "+"); got != value {
				t.Errorf("%q: %s is %q, want %q", text, name, got, value)
			}
		}
	}
}

// TestOllamaEstimates reads what Ollama expected of a model before it loaded it: where the
// model is on the GPU as a whole, and as far as nothing else states it.
func TestOllamaEstimates(t *testing.T) {
	const whole = `time=2026-01-02 level=INFO msg="offload to cuda" layers.requested=-1 layers.model=9 layers.offload=9 layers.split="" memory.available="[8.0 GiB]" memory.required.kv="64.0 MiB" memory.required.allocations="[3.0 GiB]" memory.weights.total="2.5 GiB" memory.graph.full="32.0 MiB"` + "\n" +
		`level=INFO msg="starting llama server" cmd="ollama runner --model /m --ctx-size 4096 --batch-size 256 --n-gpu-layers 9 --parallel 2"` + "\n"
	for _, c := range []struct {
		text, layers   string
		weights, cache int64 // MiB
	}{
		{whole, "9", 2560, 64},
		{whole + "load_tensors: CUDA0 model buffer size = 2048.00 MiB\n", "9", 2048, 64},
		{strings.Replace(whole, "offload=9", "offload=4", 1), "4", 0, 0},
		{"{\"log\":\"" + strings.ReplaceAll(strings.TrimSpace(whole), `"`, `\"`) + "\"}\n", "9", 2560, 64},
	} {
		log, err := Scan(strings.NewReader(c.text))
		if err != nil || log.Engine != engine.LlamaCPP || log.Setup["gpu_layers"] != c.layers || log.Setup["max_len"] != "4096" || log.Setup["slots"] != "2" || log.Setup["chunk"] != "256" {
			t.Errorf("%s: %+v, %v", c.text, log, err)
		}
		for name, want := range map[string]int64{engine.Weights: c.weights, engine.KV: c.cache} {
			if got, ok := log.Largest(name); ok != (want > 0) || got.Size != want<<20 {
				t.Errorf("%s: %s is %+v, want %d MiB", c.text, name, got, want)
			}
		}
	}
}

// TestSameWithOthers reads figures among lines that are skipped, cut into pieces or full
// of other words: they are the same as alone.
func TestSameWithOthers(t *testing.T) {
	const text = "Load weight end. type=X, avail mem=63.72 GB, mem usage=15.09 GB.\nKV Cache is allocated. #tokens: 10, K size: 2.00 GB, V size: 2.00 GB\n"
	for _, between := range []string{"", strings.Repeat("nothing of it\n", 30_000), strings.Repeat("x", 300<<10) + "\n", strings.Repeat("Load weight end. ", 9000) + "\n"} {
		log, err := Scan(strings.NewReader(between + text + between))
		if err != nil {
			t.Fatal(err)
		}
		before := int64(strings.Count(between, "\n"))
		for name, want := range map[string]engine.Stated{engine.Weights: {Size: 16202764124, Line: before + 1}, engine.KV: {Size: 4 << 30, Line: before + 2}} {
			if got, ok := log.Largest(name); !ok || got.Line != want.Line || got.Size != want.Size {
				t.Errorf("%s behind %d bytes: %+v, want %+v", name, len(between), got, want)
			}
		}
	}
}
