package engine

import (
	"bytes"
	"strconv"
	"strings"

	"strandline/logs/text"
	"strandline/plan/engine"
)

// A reading is what a line states in one of several wordings, of which the first that
// is in a line counts.
type reading struct {
	forms []string
	take  func(*reader, *text.Match)
}

// To add a line, add a reading here (for the notation see [text.Wording]) and an example in
// TestScanEngine or TestOtherEngines. To add an engine, add it to the table of
// plan/engine too, and, so that a log can be held against a plan, From in plan/serving.

// readings are the lines of vLLM from 0.5 on, SGLang from 0.3 on, which writes GB and
// means GiB, torchtitan, verl, the C++ runtime of TensorRT-LLM, llama.cpp and Ollama.
var readings = append([]reading{
	{[]string{"Load weight begin. avail mem={GiB}"}, (*reader).second},
	{[]string{"Starting to load model", "Loading model from scratch", "llama_model_loader: loaded meta data"}, (*reader).start},
	sizes(engine.Weights, last, "Loading model weights took {GiB}", "Model loading took {GiB}", "model weights take {GiB}", "Load weight end.{…}mem usage={GiB}"),
	sizes(engine.NonTorch, last, "non_torch_memory takes {GiB}", "non_torch_memory{:signs}{GiB}"),
	sizes(engine.Activation, last, "PyTorch activation peak memory takes {GiB}", "PyTorch activation peak memory {GiB}"),
	sizes(engine.Estimated, last, "Estimated CUDA graph memory: {GiB} total"),
	{[]string{"with `--kv-cache-memory={digits}`", "--kv-cache-memory={digits}"}, func(e *reader, m *text.Match) {
		if n := text.Count(m.Text[0]); n != nil {
			e.rank().Figures[engine.Suggested] = engine.Stated{Size: *n, Line: e.number}
		}
	}},
	sizes(engine.KV, last, "reserved for KV Cache is {GiB}", "available_kv_cache_memory {GiB}", "kv_cache_size={GiB}", "Available KV cache memory: {GiB}"),
	{[]string{"Explicitly set ({number}/{number}) GiB for KV cache"}, func(e *reader, m *text.Match) { // on the processor
		if x, err := strconv.ParseFloat(string(m.Text[0]), 64); err == nil && x >= 0 && x < 1<<20 {
			e.rank().Figures[engine.KV] = engine.Stated{Size: int64(x * (1 << 30)), Line: e.number}
		}
	}},
	{[]string{"KV Cache is allocated.{…}K size: {GiB}, V size: {GiB}", "KV Cache is allocated.{…}KV size: {GiB}"}, (*reader).pool},
	sizes(engine.Total, last, "total_gpu_memory{:signs}{GiB}", "Free memory on device{…}/{GiB})"),
	sizes(engine.GraphPool, last, "Graph capturing finished in{…}took {GiB}", "CUDA graph pool memory: {GiB} (actual)"),
	sizes(engine.GraphPool, summed, "cuda graph end.{…}mem usage={GiB}", "npu graph end.{…}mem usage={GiB}"),
	ended(sizes(freeLoaded, last, "Load weight end.{…}avail mem={GiB}")),
	ended(sizes(freePool, last, "Memory pool end. avail mem={GiB}")),
	sizes(freeBefore, last, "cuda graph begin.{…}avail mem={GiB}"),
	sizes(freeAfter, last, "cuda graph end.{…}avail mem={GiB}"),
	sizes(engine.Train, last, "step: {:tail} {…}memory: {GiB}", "perf/max_memory_allocated_gb{:signs}{number}"),
	{[]string{"Actual usage"}, (*reader).usage},
	{[]string{"peak_torch_memory={GiB}"}, (*reader).peakTorch},
	{[]string{"# GPU blocks: {count}", "# CUDA blocks: {count}", "# rocm blocks: {count}"}, func(e *reader, m *text.Match) { e.rank().Blocks = text.Count(m.Text[0]) }},
	{[]string{"GPU KV cache size: {count} tokens", "CPU KV cache size: {count} tokens", "max_total_num_tokens={count}", "KV Cache is allocated.{…}#tokens: {count}"}, func(e *reader, m *text.Match) { e.rank().Tokens = text.Count(m.Text[0]) }},
	{[]string{"SpeculativeConfig(method='{name}'", "speculative_algorithm='{name}'", "'method': '{name}'"}, func(e *reader, m *text.Match) {
		if bytes.Contains(bytes.ToLower(e.text), []byte("speculative")) {
			e.Setup["draft"] = strings.ToLower(string(m.Text[0]))
		}
	}},
	{[]string{"Maximum concurrency for {count} tokens per request: {number}x"}, func(e *reader, m *text.Match) {
		if x, err := strconv.ParseFloat(string(m.Text[1]), 64); err == nil {
			e.rank().Length, e.rank().AtOnce = text.Count(m.Text[0]), &x
		}
	}},
	{[]string{"LLM engine (v{name})", "vLLM API server version {name}"}, func(e *reader, m *text.Match) { e.Engine, e.Version = engine.VLLM, string(m.Text[0]) }},
	{[]string{"server_args=ServerArgs(", "Load weight begin. avail mem="}, func(e *reader, _ *text.Match) { e.Engine = engine.SGLang }},
	{[]string{"Load weight end.", "Memory pool end. avail mem=", "KV Cache is allocated."}, func(e *reader, _ *text.Match) { // the beginning is cut off
		if e.Engine == "" {
			e.Engine = engine.SGLang
		}
	}},
	{[]string{"KV cache memory", "KV cache size", "model weights take"}, func(e *reader, _ *text.Match) {
		if e.Engine == "" {
			e.Engine = engine.VLLM
		}
	}},
	{[]string{"V0 LLM engine", "model weights take"}, func(e *reader, _ *text.Match) { e.Setup["v0"] = "True" }}, // the second engine has other lines
	{[]string{"Found local HF snapshot for {path}", "Starting to load model {path}"}, (*reader).named},
	settingOf("chunk", printedAs(engine.Step, "{digits}")...),
	settingOf("fraction", append(printedAs(engine.Fraction, "{number}"), "gpu_memory_utilization ({number}", "memory utilization is ({number}")...),
}, otherReadings...)

// otherReadings are those of the engines that state sizes by device or in several units.
var otherReadings = append([]reading{
	{[]string{"[TensorRT-LLM]", "[TRT-LLM]"}, func(e *reader, _ *text.Match) { e.Engine = engine.TensorRT }},
	inTensorRT(sizes(engine.KV, last, "Allocate {bytes} for k/v cache")),
	inTensorRT(tokens(0, sizes(engine.KV, last, "Max tokens in paged KV cache: {digits}. Allocating {bytes}"))),
	inTensorRT(tokens(1, sizes(engine.KV, last, "Allocated {bytes} for max tokens in paged KV cache ({digits})"))),
	inTensorRT(tokens(0, reading{[]string{"Using {digits} tokens in paged KV cache"}, func(*reader, *text.Match) {}})),
	inTensorRT(sizes(engine.Weights, last, "Loaded engine size: {bytes}")),
	inTensorRT(sizes(engine.Activation, last, "Allocated {bytes} for execution context memory")),
	devices(engine.Weights, summed, "load_tensors: {name} model buffer size = {bytes}", "load_tensors: {name} buffer size = {bytes}"),
	devices(engine.KV, summed, "llama_kv_cache{:tail}: {name} KV buffer size = {bytes}", "llama_kv_cache{:tail}: {name} RS buffer size = {bytes}", "llama_memory{:tail}: {name} RS buffer size = {bytes}", "llama_memory{:tail}: {name} KV buffer size = {bytes}"),
	devices(engine.Activation, largest, "llama_{:tail}: {name} compute buffer size = {bytes}", "sched_reserve: {name} compute buffer size = {bytes}"),
	devices(engine.Weights, newest, `msg="model weights" device={name} size="{bytes}`, `msg="model weights" buffer={name} size="{bytes}`),
	devices(engine.KV, newest, `msg="kv cache" device={name} size="{bytes}`, `msg="kv cache" buffer={name} size="{bytes}`),
	devices(engine.Activation, largest, `msg="compute graph" device={name}{…}size="{bytes}`, `msg="compute graph" backend={name}{…}size="{bytes}`),
	{[]string{"memory.weights.total="}, (*reader).estimate},
	{[]string{"llama_kv_cache: size ={…}( {digits} cells,{…}layers, {digits}/ {digits} seqs)"}, (*reader).cells},
}, llamaSettings...)

// llamaSettings are what llama.cpp and Ollama print of their set-up.
var llamaSettings = []reading{
	llama("model", "", "print_info: name{:signs}{rest}", "print_info: general.name{:signs}{rest}", "print_meta: name{:signs}{rest}", "print_meta: general.name{:signs}{rest}"),
	llama("file_type", "", "print_info: file type{:signs}{rest}", "print_info: model ftype{:signs}{rest}", "print_meta: file type{:signs}{rest}", "print_meta: model ftype{:signs}{rest}"),
	llama("max_len", "", "llama_context: n_ctx = {digits}", "llama_new_context_with_model: n_ctx = {digits}", "KvSize:{digits}"),
	llama("slots", "", "llama_context: n_seq_max = {digits}", "llama_new_context_with_model: n_seq_max = {digits}"),
	llama("slots", "KvSize:", "Parallel:{digits}"),
	llama("chunk", "", "llama_context: n_ubatch = {digits}", "llama_new_context_with_model: n_ubatch = {digits}"),
	llama("chunk", "KvSize:", "BatchSize:{digits}"),
	llama("flash", "", "llama_context: flash_attn = {name}", "llama_new_context_with_model: flash_attn = {name}", "Flash Attention was auto, set to {name}"),
	llama("flash", "KvSize:", "FlashAttention:{name}"),
	llama("max_len", "starting llama server", "--ctx-size {digits}"),
	llama("slots", "starting llama server", "--parallel {digits}"),
	llama("chunk", "starting llama server", "--batch-size {digits}"),
	llama("unified", "", "llama_context: kv_unified = {name}"),
	llama("gpu_layers", "", "offloaded {digits}/{digits} layers to GPU"),
	llama("kv_dtype", "llama_", ", K ({name}): "),
	llama("kv_dtype_v", "llama_", ", V ({name}): "),
}

// sizes is a reading of which each figure is of a size, and added up.
func sizes(name string, join joined, forms ...string) reading {
	return reading{forms, func(e *reader, m *text.Match) { e.size(name, join, nil, m.Text[:m.Count]) }}
}

// ended adds that the pools which follow in SGLang's log are those of another start, whose
// beginning may not be in it.
func ended(of reading) reading {
	return reading{of.forms, func(e *reader, m *text.Match) {
		of.take(e, m)
		e.rank().ended = true
	}}
}

// second begins the weights of SGLang: a rank's first, or those of a draft model, as the pool
// of the first is still there.
func (e *reader) second(m *text.Match) {
	r := e.rank()
	free, _, ok := sized(m.Text[0])
	if pool, there := r.Figures[freePool]; ok && there && r.Tokens != nil && free <= pool.Size {
		r.draft = engine.DraftPart
	} else {
		e.start(m)
	}
	e.size(freeFirst, last, nil, m.Text[:1])
}

// pool reads one of the pools of the KV cache of SGLang, which are added up.
func (e *reader) pool(m *text.Match) {
	if r := e.rank(); r.ended && r.draft == "" {
		r.ended = false
		for _, name := range []string{engine.KV, engine.GraphPool} {
			delete(r.Figures, name)
		}
	}
	e.size(engine.KV, summed, nil, m.Text[:m.Count])
}

// devices is a reading of a device and a size.
func devices(name string, join joined, forms ...string) reading {
	return reading{forms, func(e *reader, m *text.Match) {
		e.Engine = engine.LlamaCPP
		e.device(m.Text[0])
		e.size(name, join, m.Text[0], m.Text[1:2])
	}}
}

// tokens adds that a figure of a reading is the tokens of the KV cache.
func tokens(at int, of reading) reading {
	return reading{of.forms, func(e *reader, m *text.Match) {
		e.rank().Tokens = text.Count(m.Text[at])
		if m.Count > 1 {
			m.Text[0], m.Count = m.Text[1-at], 1
		}
		of.take(e, m)
	}}
}

// inTensorRT is a reading in lines of TensorRT-LLM alone.
func inTensorRT(of reading) reading {
	return reading{of.forms, func(e *reader, m *text.Match) {
		if bytes.Contains(e.text, []byte("[TensorRT-LLM]")) || bytes.Contains(e.text, []byte("[TRT-LLM]")) {
			of.take(e, m)
		}
	}}
}

// llama is a setting of llama.cpp's, in lines with some words.
func llama(name, with string, forms ...string) reading {
	return reading{forms, func(e *reader, m *text.Match) {
		if bytes.Contains(e.text, []byte(with)) {
			e.Engine, e.Setup[name] = engine.LlamaCPP, strings.TrimSpace(string(m.Text[0]))
		}
	}}
}

// settingOf is a setting in any line.
func settingOf(name string, forms ...string) reading {
	return reading{forms, func(e *reader, m *text.Match) { e.Setup[name] = string(m.Text[0]) }}
}

// printedAs are the forms in which engines print a setting with its value.
func printedAs(s engine.Setting, value string) (forms []string) {
	for _, name := range engine.PrintedAs(s) {
		forms = append(forms, name+"="+value)
	}
	return forms
}

// An argument is a setting as a Namespace or a dict of Python prints it.
type argument struct {
	name   string   // here
	names  []string // there
	quoted bool     // it is a text in quotation marks
	value  func(c byte) bool
}

// arguments are what vLLM and SGLang print of their set-up.
var arguments = []argument{
	{"model", engine.PrintedAs(engine.Model), true, nil},
	{"tag", []string{"model_tag"}, true, nil},
	{"tp", engine.PrintedAs(engine.TP), false, text.Digit},
	{"pp", engine.PrintedAs(engine.PP), false, text.Digit},
	{"dp", engine.PrintedAs(engine.DP), false, text.Digit},
	{"max_len", engine.PrintedAs(engine.Length), false, text.Digit},
	{"seqs", engine.PrintedAs(engine.Requests), false, text.Digit},
	{"dtype", []string{"dtype"}, false, text.Wordly},
	{"quant", engine.PrintedAs(engine.Quant), false, func(c byte) bool { return text.Wordly(c) || c == '-' }},
	{"kv_dtype", engine.PrintedAs(engine.KVType), false, text.Wordly},
	{"graphs", engine.PrintedAs(engine.Graphs), false, text.Digit},
	{"eager", engine.PrintedAs(engine.Eager), false, text.Wordly},
	{"kv_bytes", engine.PrintedAs(engine.KVBytes), false, text.Digit},
	{"blocks", engine.PrintedAs(engine.Blocks), false, text.Digit},
}

// inArguments are words of which one is in a line that states arguments.
var inArguments = [][]byte{[]byte("LLM engine (v"), []byte("ServerArgs("), []byte("args: Namespace("), []byte("args: {")}

// read is the value of an argument that follows its name, "" if none is there.
func (a *argument) read(line []byte) string {
	if a.quoted {
		if len(line) == 0 || line[0] != '\'' {
			return ""
		}
		end := bytes.IndexByte(line[1:min(len(line), 302)], '\'')
		if end <= 0 {
			return ""
		}
		return string(line[1 : 1+end])
	}
	line = bytes.TrimPrefix(line, []byte("torch."))
	line = bytes.TrimPrefix(line, []byte("'"))
	return string(line[:text.Run(line, 40, a.value)])
}
