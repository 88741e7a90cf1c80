package engine

import "math"

// Log is what the log of an inference engine or of a trainer states about memory.
// No value in it is 0 because it was not logged: a missing figure is not in the maps.
type Log struct {
	Engine  string // "vllm", "sglang", "tensorrt-llm", "llama.cpp", "" if no line shows it
	Version string // as the log has it
	// Setup are settings by their names: model, tp, pp, dp, max_len, dtype, quant,
	// kv_dtype, eager, fraction, chunk, graphs (the largest batch captured), v0 (vLLM's first
	// engine), draft (the method of speculative decoding).
	Setup map[string]string
	Ranks []Rank
	// Failure is the last statement of the log that memory ran out, other than PyTorch's;
	// nil if there is none.
	Failure *Failed
}

// Failed is where a log states that memory ran out.
type Failed struct {
	Line  int64  // from 1
	Quote string // the line, as in the text
}

// Rank is what one process of the log states about its last start.
type Rank struct {
	Name string // as its lines begin, "" if they do not state it
	// Figures are by the names below.
	Figures map[string]Stated
	Tokens  *int64   // that the KV cache holds
	Blocks  *int64   // of the KV cache
	Length  *int64   // tokens of a request, of AtOnce
	AtOnce  *float64 // requests of that length
}

// Names of the sizes of a rank.
const (
	Weights    = "weights"
	Consumed   = "weights and non-torch" // newer releases of vLLM log the sum
	NonTorch   = "non-torch"
	Activation = "activations"
	KV         = "KV cache"
	GraphPool  = "CUDA graphs"
	Total      = "GPU"
	Train      = "training peak"
	Pool       = "KV cache with its tables" // by the difference of what is free; SGLang to 0.4
	Estimated  = "estimated CUDA graphs"
	Suggested  = "suggested KV cache" // vLLM's --kv-cache-memory
	DraftPart  = "draft "             // before the names of a model that is loaded beside the first
)

// A Stated is a figure of a log: bytes, the line that it is on, and its possible
// rounding error, either way.
type Stated struct{ Size, Line, Rounding int64 }

// Largest is the largest figure of that name of all ranks.
func (e *Log) Largest(name string) (most Stated, ok bool) {
	for _, r := range e.Ranks {
		if s, there := r.Figures[name]; there && (!ok || s.Size > most.Size) {
			most, ok = s, true
		}
	}
	return most, ok
}

// Smallest is the smallest one.
func (e *Log) Smallest(name string) (least Stated, ok bool) {
	for _, r := range e.Ranks {
		if s, there := r.Figures[name]; there && (!ok || s.Size < least.Size) {
			least, ok = s, true
		}
	}
	return least, ok
}

// Tokens returns what the KV cache holds: the least of all ranks, as engines take
// them. Blocks are of so many tokens.
func (e *Log) Tokens(block int64) (n int64, ok bool) {
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

// Capacity reports whether the tokens that a rank states are those of requests of the
// whole length: as many of them at once, as long. Until 0.19 vLLM printed the blocks of one
// group of layers instead, which is the same only where all layers keep the same. Source:
// vLLM, v1/core/kv_cache_utils.py, get_kv_cache_capacity.
func (e *Log) Capacity() bool {
	const rounding = 0.006 // of requests, printed with two decimals
	for _, r := range e.Ranks {
		if r.Tokens != nil && r.Length != nil && r.AtOnce != nil {
			return math.Abs(float64(*r.Tokens)-*r.AtOnce*float64(*r.Length)) <= rounding*float64(*r.Length)
		}
	}
	return false
}

// TwiceGraphs returns how much more than vLLM suggests for the KV cache there is room for,
// where it takes the estimated CUDA graphs off beside those that were captured; 0 elsewhere.
// The log shows it: the suggestion is the pool less the captured graphs and a reserve, without
// the estimate that the pool left free. Source: vLLM, v1/worker/gpu_worker.py.
func (e *Log) TwiceGraphs() int64 {
	const reserve, near = 150 << 20, 1 << 26
	for _, r := range e.Ranks {
		pool, ok1 := r.Figures[KV]
		estimate, ok2 := r.Figures[Estimated]
		captured, ok3 := r.Figures[GraphPool]
		suggested, ok4 := r.Figures[Suggested]
		if !ok1 || !ok2 || !ok3 || !ok4 || estimate.Size < 2*near {
			continue
		}
		if off := pool.Size - captured.Size - reserve - suggested.Size; off > -near && off < near {
			return estimate.Size
		}
	}
	return 0
}
