package logs

import (
	"bufio"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// EngineLog is what the log of an inference engine or of a trainer tells of memory.
// Nothing in it is 0 because it was not said: what is missing is not in the maps.
type EngineLog struct {
	Engine  string // "vllm", "sglang", "" if no line tells
	Version string // as the log has it
	// Setup are settings by their names: model, tp, pp, dp, max_len, dtype, quant,
	// kv_dtype, eager, fraction, chunk, graphs (the largest batch captured), v0 (vLLM's first engine).
	Setup map[string]string
	Ranks []Rank
}

// Rank is what one process of the log says, of its last start.
type Rank struct {
	Name string // as its lines begin, "" if they do not say
	// Sizes are in bytes, by the names below.
	Sizes map[string]int64
	// Lines are the numbers of the lines on which figures stand.
	Lines  map[string]int64
	Tokens *int64   // that the KV cache holds
	Blocks *int64   // of the KV cache
	Length *int64   // tokens of a request, of Concurrency
	Many   *float64 // requests of that length at once
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
	{regexp.MustCompile(`Free memory on device \(` + number + `/` + sizeOf + `\)`), []string{"", LogTotal}, false},
	{regexp.MustCompile(`Actual usage is ` + sizeOf + ` for weight, ` + sizeOf + ` for peak activation, ` + sizeOf + ` for non-torch`),
		[]string{LogWeights, LogActivation, LogNonTorch}, false},
	{regexp.MustCompile(`Actual usage is .{1,200} and ` + sizeOf + ` for CUDAGraph memory`), []string{LogGraphs}, false},
	{regexp.MustCompile(`CUDA graph pool memory: ` + sizeOf + ` \(actual\)`), []string{LogGraphs}, false},
	{regexp.MustCompile(`Actual usage is ` + sizeOf + ` for consumed memory \(weights \+ non-torch\), ` + sizeOf + ` for peak activation`),
		[]string{LogConsumed, LogActivation}, false},
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
	logStart       = regexp.MustCompile(`Load weight begin\.|Starting to load model|Loading model from scratch`)
	logVLLM        = regexp.MustCompile(`Initializing an? (?:V1 |V0 )?LLM engine \(v([\w.+-]{1,40})\)|vLLM API server version ([\w.+-]{1,40})`)
	logSGLang      = regexp.MustCompile(`server_args=ServerArgs\(|^.{0,60}Load weight begin\. avail mem=`)
	logChunk       = regexp.MustCompile(`(?:max_num_batched_tokens|chunked_prefill_size)=(\d{1,9})`)
	logFraction    = regexp.MustCompile(`(?:gpu_memory_utilization(?: \(|=)|memory utilization is \(|mem_fraction_static=)` + number)
)

// settings are what the engines print of their set-up, by its name here.
var settings = map[string]*regexp.Regexp{
	"model":    regexp.MustCompile(`(?:\bmodel|\bmodel_path)='([^']{1,300})'`),
	"tp":       regexp.MustCompile(`(?:tensor_parallel_size|\btp_size)=(\d{1,6})`),
	"pp":       regexp.MustCompile(`(?:pipeline_parallel_size|\bpp_size)=(\d{1,6})`),
	"dp":       regexp.MustCompile(`(?:\bdp_size)=(\d{1,6})`),
	"max_len":  regexp.MustCompile(`(?:max_seq_len|context_len(?:gth)?)=(\d{1,12})`),
	"dtype":    regexp.MustCompile(`\bdtype=(?:torch\.)?'?([\w]{1,20})`),
	"quant":    regexp.MustCompile(`\bquantization='?([\w-]{1,40})`),
	"kv_dtype": regexp.MustCompile(`\bkv_cache_dtype='?([\w]{1,30})`),
	"graphs":   regexp.MustCompile(`\bcuda_graph_max_bs=(\d{1,6})|"?max_cudagraph_capture_size"?[=:] ?(\d{1,6})`),
	"eager":    regexp.MustCompile(`(?:enforce_eager|disable_cuda_graph)=(True|False)`),
}

// mostWorkers are as many as a log is read for; the largest runs have some thousands.
const mostWorkers = 1 << 14

// ScanEngine reads a log to its end. Of several starts the last one counts, and of
// several figures of a rank the last one.
func ScanEngine(r io.Reader) (*EngineLog, error) {
	e := &EngineLog{Setup: map[string]string{}}
	ranks := map[string]*Rank{}
	in := bufio.NewReaderSize(unicode16(r), longestLine)
	for n := int64(1); ; n++ {
		line, more, err := in.ReadLine()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			e.collect(ranks)
			return e, err
		}
		if more {
			n-- // the rest is another piece of the same line
		}
		if engineLine(line) {
			e.line(string(line), n, ranks)
		}
	}
}

// engineLine tells lines that may say something, without a regular expression.
func engineLine(line []byte) bool {
	text := string(line)
	for _, word := range []string{"GiB", "GB", "tokens", "blocks:", "ServerArgs(", "LLM engine", "API server version", "batched_tokens", "Starting to load",
		"memory_utilization", "max_memory_allocated"} {
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
		r = &Rank{Name: name, Sizes: map[string]int64{}, Lines: map[string]int64{}}
		ranks[name] = r
	}
	if logStart.MatchString(text) {
		*r = Rank{Name: name, Sizes: map[string]int64{}, Lines: map[string]int64{}}
	}
	r.line(text, n)
}

func (r *Rank) line(text string, n int64) {
	for _, f := range loggedSizes {
		m := f.expr.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		line := map[string]int64{}
		for i, name := range f.names {
			if size, ok := gibs(m[i+1]); ok && name != "" {
				line[name] += size
			}
		}
		for name, size := range line {
			if f.add && r.Lines[name] > 0 {
				size += r.Sizes[name]
			}
			r.Sizes[name], r.Lines[name] = size, n
		}
	}
	if m := peakTorch.FindStringSubmatch(text); m != nil && r.Lines[LogWeights] > 0 {
		if peak, ok := gibs(m[1]); ok {
			r.Sizes[LogActivation], r.Lines[LogActivation] = peak-r.Sizes[LogWeights], n
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
	if strings.Contains(text, "LLM engine (v") || strings.Contains(text, "ServerArgs(") {
		for name, expr := range settings {
			if m := expr.FindStringSubmatch(text); m != nil && m[1] != "None" {
				e.Setup[name] = strings.Join(m[1:], "") // one of its groups is there
			}
		}
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
		if r := ranks[name]; len(r.Sizes) > 0 || r.Tokens != nil || r.Blocks != nil {
			e.Ranks = append(e.Ranks, *r)
		}
	}
}

// Largest is the largest figure of that name of all ranks, and the line it is on.
func (e *EngineLog) Largest(name string) (size, line int64, ok bool) {
	for _, r := range e.Ranks {
		if s, there := r.Sizes[name]; there && (!ok || s > size) {
			size, line, ok = s, r.Lines[name], true
		}
	}
	return size, line, ok
}

// Smallest is the smallest one.
func (e *EngineLog) Smallest(name string) (size, line int64, ok bool) {
	for _, r := range e.Ranks {
		if s, there := r.Sizes[name]; there && (!ok || s < size) {
			size, line, ok = s, r.Lines[name], true
		}
	}
	return size, line, ok
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

// counted is a number with separators of thousands.
func counted(text string) *int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(text, ",", ""), 10, 64)
	if err != nil || n > 1<<50 {
		return nil
	}
	return &n
}
