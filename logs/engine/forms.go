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

// To add a line, add a reading here (for the notation see [form]) and an example in
// TestScanEngine or TestOtherEngines. To add an engine, add it to the table of
// plan/engine too, and, so that a log can be held against a plan, From in plan/serving.

// readings are the lines of vLLM from 0.5 on, SGLang from 0.3 on, which writes GB and
// means GiB, torchtitan, verl, the C++ runtime of TensorRT-LLM, llama.cpp and Ollama.
var readings = append([]reading{
	{[]string{"Load weight begin.", "Starting to load model", "Loading model from scratch", "llama_model_loader: loaded meta data"}, (*reader).start},
	sizes(Weights, last, "Loading model weights took {gib}", "Model loading took {gib}", "model weights take {gib}", "Load weight end.{…}mem usage={gib}"),
	sizes(NonTorch, last, "non_torch_memory takes {gib}", "non_torch_memory{signs}{gib}"),
	sizes(Activation, last, "PyTorch activation peak memory takes {gib}", "PyTorch activation peak memory {gib}"),
	sizes(KV, last, "reserved for KV Cache is {gib}", "available_kv_cache_memory {gib}", "kv_cache_size={gib}", "Available KV cache memory: {gib}"),
	{[]string{"KV Cache is allocated.{…}K size: {gib}, V size: {gib}", "KV Cache is allocated.{…}KV size: {gib}"}, (*reader).pool},
	sizes(Total, last, "total_gpu_memory{signs}{gib}", "Free memory on device{…}/{gib})"),
	sizes(Graphs, last, "Graph capturing finished in{…}took {gib}", "CUDA graph pool memory: {gib} (actual)"),
	sizes(Graphs, summed, "cuda graph end.{…}mem usage={gib}"),
	sizes(freeFirst, last, "Load weight begin. avail mem={gib}"),
	ended(sizes(freeLoaded, last, "Load weight end.{…}avail mem={gib}")),
	ended(sizes(freePool, last, "Memory pool end. avail mem={gib}")),
	sizes(freeBefore, last, "cuda graph begin.{…}avail mem={gib}"),
	sizes(freeAfter, last, "cuda graph end.{…}avail mem={gib}"),
	sizes(Train, last, "step: {tail} {…}memory: {gib}", "perf/max_memory_allocated_gb{signs}{gb}"),
	{[]string{"Actual usage"}, (*reader).usage},
	{[]string{"peak_torch_memory={gib}"}, (*reader).peakTorch},
	{[]string{"# GPU blocks: {many}", "# CUDA blocks: {many}", "# rocm blocks: {many}"}, func(e *reader, m *text.Match) { e.rank().blocks = text.Count(m.Text[0]) }},
	{[]string{"GPU KV cache size: {many} tokens", "max_total_num_tokens={many}", "KV Cache is allocated.{…}#tokens: {many}"}, func(e *reader, m *text.Match) { e.rank().tokens = text.Count(m.Text[0]) }},
	{[]string{"Maximum concurrency for {many} tokens per request: {num}x"}, func(e *reader, m *text.Match) {
		if x, err := strconv.ParseFloat(string(m.Text[1]), 64); err == nil {
			e.rank().Length, e.rank().many = text.Count(m.Text[0]), &x
		}
	}},
	{[]string{"LLM engine (v{word})", "vLLM API server version {word}"}, func(e *reader, m *text.Match) { e.Engine, e.Version = engine.VLLM, string(m.Text[0]) }},
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
	settingOf("chunk", printedAs(engine.Step, "{int}")...),
	settingOf("fraction", append(printedAs(engine.Fraction, "{num}"), "gpu_memory_utilization ({num}", "memory utilization is ({num}")...),
}, otherReadings...)

// otherReadings are those of the engines that state sizes by device or in several units.
var otherReadings = append([]reading{
	{[]string{"[TensorRT-LLM]", "[TRT-LLM]"}, func(e *reader, _ *text.Match) { e.Engine = engine.TensorRT }},
	inTensorRT(sizes(KV, last, "Allocate {size} for k/v cache")),
	inTensorRT(tokens(0, sizes(KV, last, "Max tokens in paged KV cache: {int}. Allocating {size}"))),
	inTensorRT(tokens(1, sizes(KV, last, "Allocated {size} for max tokens in paged KV cache ({int})"))),
	inTensorRT(tokens(0, reading{[]string{"Using {int} tokens in paged KV cache"}, func(*reader, *text.Match) {}})),
	inTensorRT(sizes(Weights, last, "Loaded engine size: {size}")),
	inTensorRT(sizes(Activation, last, "Allocated {size} for execution context memory")),
	devices(Weights, summed, "load_tensors: {word} model buffer size = {size}", "load_tensors: {word} buffer size = {size}"),
	devices(KV, summed, "llama_kv_cache{tail}: {word} KV buffer size = {size}", "llama_kv_cache{tail}: {word} RS buffer size = {size}", "llama_memory{tail}: {word} RS buffer size = {size}", "llama_memory{tail}: {word} KV buffer size = {size}"),
	devices(Activation, largest, "llama_{tail}: {word} compute buffer size = {size}", "sched_reserve: {word} compute buffer size = {size}"),
	devices(Weights, newest, `msg="model weights" device={word} size="{size}`, `msg="model weights" buffer={word} size="{size}`),
	devices(KV, newest, `msg="kv cache" device={word} size="{size}`, `msg="kv cache" buffer={word} size="{size}`),
	devices(Activation, largest, `msg="compute graph" device={word}{…}size="{size}`, `msg="compute graph" backend={word}{…}size="{size}`),
	{[]string{"memory.weights.total="}, (*reader).estimate},
	{[]string{"llama_kv_cache: size ={…}( {int} cells,{…}layers, {int}/ {int} seqs)"}, (*reader).cells},
}, llamaSettings...)

// llamaSettings are what llama.cpp and Ollama print of their set-up.
var llamaSettings = []reading{
	llama("model", "", "print_info: name{signs}{rest}", "print_info: general.name{signs}{rest}", "print_meta: name{signs}{rest}", "print_meta: general.name{signs}{rest}"),
	llama("file_type", "", "print_info: file type{signs}{rest}", "print_info: model ftype{signs}{rest}", "print_meta: file type{signs}{rest}", "print_meta: model ftype{signs}{rest}"),
	llama("max_len", "", "llama_context: n_ctx = {int}", "llama_new_context_with_model: n_ctx = {int}", "KvSize:{int}"),
	llama("slots", "", "llama_context: n_seq_max = {int}", "llama_new_context_with_model: n_seq_max = {int}"),
	llama("slots", "KvSize:", "Parallel:{int}"),
	llama("chunk", "", "llama_context: n_ubatch = {int}", "llama_new_context_with_model: n_ubatch = {int}"),
	llama("chunk", "KvSize:", "BatchSize:{int}"),
	llama("flash", "", "llama_context: flash_attn = {word}", "llama_new_context_with_model: flash_attn = {word}", "Flash Attention was auto, set to {word}"),
	llama("flash", "KvSize:", "FlashAttention:{word}"),
	llama("max_len", "starting llama server", "--ctx-size {int}"),
	llama("slots", "starting llama server", "--parallel {int}"),
	llama("chunk", "starting llama server", "--batch-size {int}"),
	llama("unified", "", "llama_context: kv_unified = {word}"),
	llama("gpu_layers", "", "offloaded {int}/{int} layers to GPU"),
	llama("kv_dtype", "llama_", ", K ({word}): "),
	llama("kv_dtype_v", "llama_", ", V ({word}): "),
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

// pool reads one of the pools of the KV cache of SGLang, which are added up.
func (e *reader) pool(m *text.Match) {
	if r := e.rank(); r.ended {
		r.ended = false
		for _, name := range []string{KV, Graphs} {
			delete(r.Figures, name)
		}
	}
	e.size(KV, summed, nil, m.Text[:m.Count])
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
		e.rank().tokens = text.Count(m.Text[at])
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
