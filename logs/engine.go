package logs

import (
	"errors"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// EngineLog is what the log of an inference engine or of a trainer tells of memory.
// Nothing in it is 0 because it was not said: what is missing is not in the maps.
type EngineLog struct {
	Engine  string // "vllm", "sglang", "tensorrt-llm", "llama.cpp", "" if no line tells
	Version string // as the log has it
	// Setup are settings by their names: model, tp, pp, dp, max_len, dtype, quant,
	// kv_dtype, eager, fraction, chunk, graphs (the largest batch captured), v0 (vLLM's first engine).
	Setup map[string]string
	Ranks []Rank
	// Failure is the last statement of the log that memory ran out, but PyTorch's; nil
	// if there is none.
	Failure *Failure
}

// Rank is what one process of the log says, of its last start.
type Rank struct {
	Name string // as its lines begin, "" if they do not say
	// Sizes are in bytes, by the names below.
	Sizes map[string]int64
	// Lines are the numbers of the lines on which figures stand.
	Lines map[string]int64
	// Rounding is what the printed form of a size leaves open either way, in bytes.
	Rounding map[string]int64
	Tokens   *int64   // that the KV cache holds
	Blocks   *int64   // of the KV cache
	Length   *int64   // tokens of a request, of Concurrency
	Many     *float64 // requests of that length at once
}

// Names of the sizes of a rank.
const (
	LogWeights    = "weights"
	LogConsumed   = "weights and non-torch" // newer releases of vLLM log the sum
	LogNonTorch   = "non-torch"
	LogActivation = "activations"
	LogKV         = "KV cache"
	LogGraphs     = "CUDA graphs"
	LogTotal      = "GPU"
	LogTrain      = "training peak"
	LogPool       = "KV cache with its tables" // by the difference of what is free; SGLang to 0.4
)

// Free memory at moments of SGLang's start, of which differences are taken.
const (
	freeFirst  = "free before the weights"
	freeLoaded = "free after the weights"
	freePool   = "free after the pool"
	freeBefore = "free before the graphs"
	freeAfter  = "free after the graphs"
)

const (
	number = `(-?\d{1,12}(?:\.\d{1,6})?)`
	sizeOf = number + ` ?Gi?B`
	comma  = `(\d[\d,]{0,18})`
)

// logged is a pattern of which each group is a size in GiB, whatever it is called.
type logged struct {
	expr  *regexp.Regexp
	names []string
	add   bool // to what the rank has: graphs are captured in several goes
}

// usage is a figure of vLLM's summary of its memory, of which any may be masked.
func usage(what string) *regexp.Regexp {
	return regexp.MustCompile(`Actual usage(?: is|:) .{0,300}?` + sizeOf + ` for ` + what)
}

// The lines of vLLM from 0.5 on, SGLang from 0.3 on, torchtitan and verl. SGLang
// writes GB and means GiB.
var loggedSizes = []logged{
	{regexp.MustCompile(`(?:Loading model weights|Model loading) took ` + sizeOf), []string{LogWeights}, false},
	{regexp.MustCompile(`model weights take +` + sizeOf), []string{LogWeights}, false},
	{regexp.MustCompile(`non_torch_memory(?: takes |=| +)` + sizeOf), []string{LogNonTorch}, false},
	{regexp.MustCompile(`PyTorch activation peak memory(?: takes)? +` + sizeOf), []string{LogActivation}, false},
	{regexp.MustCompile(`(?:reserved for KV Cache is|available_kv_cache_memory) +` + sizeOf), []string{LogKV}, false},
	{regexp.MustCompile(`total_gpu_memory(?: ?[(=]| +)` + sizeOf), []string{LogTotal}, false},
	{regexp.MustCompile(`kv_cache_size=` + sizeOf), []string{LogKV}, false},
	{regexp.MustCompile(`Available KV cache memory: ` + sizeOf), []string{LogKV}, false},
	{regexp.MustCompile(`Graph capturing finished in .{1,20} secs?, took ` + sizeOf), []string{LogGraphs}, false},
	{regexp.MustCompile(`Free memory on device (?:\w{1,20} )?\([^/()]{1,20}/` + sizeOf + `\)`), []string{LogTotal}, false},
	{usage(`weights?\b`), []string{LogWeights}, false},
	{usage(`consumed memory`), []string{LogConsumed}, false},
	{usage(`peak activation`), []string{LogActivation}, false},
	{usage(`non-torch`), []string{LogNonTorch}, false},
	{usage(`(?:CUDAGraph|NPU graph) memory`), []string{LogGraphs}, false},
	{regexp.MustCompile(`CUDA graph pool memory: ` + sizeOf + ` \(actual\)`), []string{LogGraphs}, false},
	{regexp.MustCompile(`Load weight begin\. avail mem=` + sizeOf), []string{freeFirst}, false},
	{regexp.MustCompile(`Load weight end\..{0,200}avail mem=` + sizeOf), []string{freeLoaded}, false},
	{regexp.MustCompile(`Memory pool end\. avail mem=` + sizeOf), []string{freePool}, false},
	{regexp.MustCompile(`Capture .{0,30}(?i:cuda graph) begin\..{0,80}avail mem=` + sizeOf), []string{freeBefore}, false},
	{regexp.MustCompile(`Capture .{0,30}(?i:cuda graph) end\..{0,80}avail mem=` + sizeOf), []string{freeAfter}, false},
	{regexp.MustCompile(`Load weight end\..{0,200}mem usage=` + sizeOf), []string{LogWeights}, false},
	{regexp.MustCompile(`KV Cache is allocated\..{0,80}K size: ` + sizeOf + `, V size: ` + sizeOf), []string{LogKV, LogKV}, true},
	{regexp.MustCompile(`KV Cache is allocated\..{0,80}KV size: ` + sizeOf), []string{LogKV}, true},
	{regexp.MustCompile(`Capture .{0,30}(?i:cuda graph) end\..{0,80}mem usage=` + sizeOf), []string{LogGraphs}, true},
	{regexp.MustCompile(`\bstep: {1,4}\d{1,9} .{0,80}memory: {1,4}` + sizeOf), []string{LogTrain}, false},
	{regexp.MustCompile(`perf/max_memory_allocated_gb[:=]['" ]{0,3}` + number), []string{LogTrain}, false},
}

// peakTorch is the peak of PyTorch's memory in vLLM 0.6.4, weights included.
var peakTorch = regexp.MustCompile(`peak_torch_memory=` + sizeOf)

var (
	logBlocks      = regexp.MustCompile(`# (?:GPU|CUDA|cuda|rocm) blocks: ` + comma)
	logTokens      = regexp.MustCompile(`(?:GPU KV cache size: ` + comma + ` tokens|max_total_num_tokens=` + comma + `|KV Cache is allocated\..{0,60}#tokens: ` + comma + `)`)
	logConcurrency = regexp.MustCompile(`Maximum concurrency for ` + comma + ` tokens per request: ` + number + `x`)
	logRank        = regexp.MustCompile(`\(((?:Vllm|Ray)?Worker[^)]{0,80}|EngineCore[^)]{0,80})\)|\[[-0-9: ]{19}((?: (?:DP|TP|PP|EP)\d{1,5}){1,4})\]`)
	logStart       = regexp.MustCompile(`Load weight begin\.|Starting to load model|Loading model from scratch|llama_model_loader: loaded meta data`)
	logVLLM        = regexp.MustCompile(`Initializing an? (?:V1 |V0 )?LLM engine \(v([\w.+-]{1,40})\)|vLLM API server version ([\w.+-]{1,40})`)
	logSGLang      = regexp.MustCompile(`server_args=ServerArgs\(|^.{0,60}Load weight begin\. avail mem=`)
	logChunk       = regexp.MustCompile(`(?:max_num_batched_tokens|chunked_prefill_size)=(\d{1,9})`)
	logFraction    = regexp.MustCompile(`(?:gpu_memory_utilization(?: \(|=)|memory utilization is \(|mem_fraction_static=)` + number)
)

// settings are what the engines print of their set-up, by its name here.
var settings = map[string]*regexp.Regexp{
	"model":    set(`model|model_path`, `'([^']{1,300})'`),
	"tag":      set(`model_tag`, `'([^']{1,300})'`),
	"tp":       set(`tensor_parallel_size|tp_size`, `(\d{1,6})`),
	"pp":       set(`pipeline_parallel_size|pp_size`, `(\d{1,6})`),
	"dp":       set(`dp_size`, `(\d{1,6})`),
	"max_len":  set(`max_seq_len|max_model_len|context_len(?:gth)?`, `(\d{1,12})`),
	"seqs":     set(`max_num_seqs`, `(\d{1,9})`),
	"dtype":    set(`dtype`, `(?:torch\.)?'?([\w]{1,20})`),
	"quant":    set(`quantization`, `'?([\w-]{1,40})`),
	"kv_dtype": set(`kv_cache_dtype`, `'?([\w]{1,30})`),
	"graphs":   regexp.MustCompile(`\bcuda_graph_max_bs=(\d{1,6})|"?max_cudagraph_capture_size"?[=:] ?(\d{1,6})`),
	"eager":    set(`enforce_eager|disable_cuda_graph`, `(True|False)`),
}

// set is a setting as a Namespace or a dict of Python prints it.
func set(names, value string) *regexp.Regexp {
	return regexp.MustCompile(`(?:\b(?:` + names + `)=|'(?:` + names + `)': ?)` + value)
}

// logModel are lines that name the model by the way.
var logModel = regexp.MustCompile(`Found local HF snapshot for ([^\s;,]{1,300})|Starting to load model ([^\s]{1,300}?)(?:\.\.\.|$|\s)`)

// mostWorkers are as many as a log is read for; the largest runs have some thousands.
const mostWorkers = 1 << 14

// ScanEngine reads a log to its end. Of several starts the last one counts, and of
// several figures of a rank the last one.
func ScanEngine(r io.Reader) (*EngineLog, error) {
	e := &EngineLog{Setup: map[string]string{}}
	ranks := map[string]*Rank{}
	words := newFinder()
	in := newBlock(unicode16(r), words.v.words)
	n := int64(0)
	for more := false; in.fill(); {
		if !more { // what follows in a very long line has the same number
			n++
		}
		var line []byte
		var hits []hit
		line, hits, more = in.line()
		words.line(n, line, hits)
		if engineLine(line) {
			e.line(string(line), n, ranks)
		}
	}
	e.collect(ranks)
	e.fail(words.failures())
	if errors.Is(in.err, io.EOF) {
		return e, nil
	}
	return e, in.err
}

// fail keeps the last failure whose words are known.
func (e *EngineLog) fail(failures []Failure) {
	for i := range failures {
		if f := &failures[i]; f.Kind != Unknown && !f.Weak {
			e.Failure = f
		}
	}
}

// engineLine tells lines that may say something, without a regular expression.
func engineLine(line []byte) bool {
	text := string(line)
	for _, word := range []string{"GiB", "GB", "tokens", "blocks:", "ServerArgs(", "LLM engine", "API server version", "batched_tokens", "Starting to load",
		"memory_utilization", "max_memory_allocated", "Namespace(", "args: {", "HF snapshot",
		"TensorRT-LLM]", "buffer size", "print_info:", "print_meta:", "n_ctx", "llama_model_loader:"} {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

func (e *EngineLog) line(text string, n int64, ranks map[string]*Rank) {
	e.setup(text)
	name := ""
	if m := logRank.FindStringSubmatch(text); m != nil {
		name = strings.TrimSpace(m[1] + m[2])
	}
	r := ranks[name]
	if r == nil {
		if len(ranks) == mostWorkers {
			return
		}
		r = newRank(name)
		ranks[name] = r
	}
	if logStart.MatchString(text) {
		*r = *newRank(name)
	}
	r.line(text, n)
	e.otherLine(text, n, r)
}

func newRank(name string) *Rank {
	return &Rank{Name: name, Sizes: map[string]int64{}, Lines: map[string]int64{}, Rounding: map[string]int64{}}
}

func (r *Rank) line(text string, n int64) {
	for _, f := range loggedSizes {
		m := f.expr.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		line, rounding := map[string]int64{}, map[string]int64{}
		for i, name := range f.names {
			if size, ok := gibs(m[i+1]); ok {
				line[name] += size
				rounding[name] += halfDigit(m[i+1])
			}
		}
		for name, size := range line {
			if f.add && r.Lines[name] > 0 {
				size += r.Sizes[name]
				rounding[name] += r.Rounding[name]
			}
			r.Sizes[name], r.Lines[name], r.Rounding[name] = size, n, rounding[name]
		}
	}
	if m := peakTorch.FindStringSubmatch(text); m != nil && r.Lines[LogWeights] > 0 {
		if peak, ok := gibs(m[1]); ok {
			r.Sizes[LogActivation], r.Lines[LogActivation] = peak-r.Sizes[LogWeights], n
			r.Rounding[LogActivation] = halfDigit(m[1]) + r.Rounding[LogWeights]
		}
	}
	if m := logBlocks.FindStringSubmatch(text); m != nil {
		r.Blocks = counted(m[1])
	}
	if m := logTokens.FindStringSubmatch(text); m != nil {
		r.Tokens = counted(m[1] + m[2] + m[3])
	}
	if m := logConcurrency.FindStringSubmatch(text); m != nil {
		if x, err := strconv.ParseFloat(m[2], 64); err == nil {
			r.Length, r.Many = counted(m[1]), &x
		}
	}
}

func (e *EngineLog) setup(text string) {
	switch m := logVLLM.FindStringSubmatch(text); {
	case m != nil:
		e.Engine, e.Version = "vllm", m[1]+m[2]
	case logSGLang.MatchString(text):
		e.Engine = "sglang"
	case e.Engine == "" && (strings.Contains(text, "KV cache memory") || strings.Contains(text, "KV cache size") || strings.Contains(text, "model weights take")):
		e.Engine = "vllm"
	}
	if slices.ContainsFunc([]string{"LLM engine (v", "ServerArgs(", "args: Namespace(", "args: {"}, func(s string) bool { return strings.Contains(text, s) }) {
		for name, expr := range settings {
			if m := expr.FindStringSubmatch(text); m != nil && m[1] != "None" {
				e.Setup[name] = strings.Join(m[1:], "") // one of its groups is there
			}
		}
		if tag := e.Setup["tag"]; tag != "" && strings.Contains(text, "model_tag") { // beside it stands the default of --model
			e.Setup["model"] = tag
		}
	}
	if m := logModel.FindStringSubmatch(text); m != nil && e.Setup["model"] == "" {
		e.Setup["model"] = m[1] + m[2]
	}
	if strings.Contains(text, "V0 LLM engine") || strings.Contains(text, "model weights take") { // the second engine has other lines
		e.Setup["v0"] = "True"
	}
	if m := logChunk.FindStringSubmatch(text); m != nil {
		e.Setup["chunk"] = m[1]
	}
	if m := logFraction.FindStringSubmatch(text); m != nil {
		e.Setup["fraction"] = m[1]
	}
}

// collect keeps the ranks that say something, by name.
func (e *EngineLog) collect(ranks map[string]*Rank) {
	for _, name := range slices.Sorted(maps.Keys(ranks)) {
		ranks[name].differences()
		if r := ranks[name]; len(r.Sizes) > 0 || r.Tokens != nil || r.Blocks != nil {
			e.Ranks = append(e.Ranks, *r)
		}
	}
}

// differences are the sizes that a log states by what was free before and after,
// where it does not state them otherwise.
func (r *Rank) differences() {
	for _, d := range []struct{ name, not, before, after string }{
		{LogWeights, LogWeights, freeFirst, freeLoaded}, {LogPool, LogKV, freeLoaded, freePool}, {LogGraphs, LogGraphs, freeBefore, freeAfter},
	} {
		before, ok := r.Sizes[d.before]
		after, too := r.Sizes[d.after]
		if _, stated := r.Sizes[d.not]; ok && too && !stated {
			r.Sizes[d.name], r.Lines[d.name] = before-after, r.Lines[d.after]
			r.Rounding[d.name] = r.Rounding[d.before] + r.Rounding[d.after]
		}
	}
	for _, name := range []string{freeFirst, freeLoaded, freePool, freeBefore, freeAfter} {
		delete(r.Sizes, name)
	}
}

// A Stated is a figure of a log: bytes, the line that it is on, and what its printed
// form leaves open either way.
type Stated struct{ Size, Line, Rounding int64 }

func (r *Rank) stated(name string) (Stated, bool) {
	size, ok := r.Sizes[name]
	return Stated{size, r.Lines[name], r.Rounding[name]}, ok
}

// Largest is the largest figure of that name of all ranks.
func (e *EngineLog) Largest(name string) (most Stated, ok bool) {
	for _, r := range e.Ranks {
		if s, there := r.stated(name); there && (!ok || s.Size > most.Size) {
			most, ok = s, true
		}
	}
	return most, ok
}

// Smallest is the smallest one.
func (e *EngineLog) Smallest(name string) (least Stated, ok bool) {
	for _, r := range e.Ranks {
		if s, there := r.stated(name); there && (!ok || s.Size < least.Size) {
			least, ok = s, true
		}
	}
	return least, ok
}

// Tokens is what the KV cache holds: the fewest of all ranks, as engines take
// them. Blocks are of so many tokens.
func (e *EngineLog) Tokens(block int64) (n int64, ok bool) {
	for _, r := range e.Ranks {
		switch {
		case r.Tokens != nil && (!ok || *r.Tokens < n):
			n, ok = *r.Tokens, true
		case r.Tokens == nil && r.Blocks != nil && (!ok || *r.Blocks*block < n):
			n, ok = *r.Blocks*block, true
		}
	}
	return n, ok
}

func gibs(text string) (int64, bool) {
	x, err := strconv.ParseFloat(text, 64)
	const most = 1 << 20 // GiB
	if err != nil || x > most || x < -most {
		return 0, false
	}
	return int64(x * (1 << 30)), true
}

// halfDigit is half of the last printed digit of a number of GiB, in bytes.
func halfDigit(text string) int64 {
	_, decimals, _ := strings.Cut(text, ".")
	return int64(math.Ceil((1 << 29) / math.Pow10(len(decimals))))
}

// counted is a number with separators of thousands.
func counted(text string) *int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil || n > 1<<50 {
		return nil
	}
	return &n
}
