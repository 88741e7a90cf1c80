// Package serving plans the memory of an inference engine (vLLM, SGLang, llama.cpp,
// Ollama): weights, KV cache, activations, CUDA graphs and what is outside PyTorch, on
// the GPU that has the least free memory. [Setup.Fit] is the entry point; kv.go counts what a token and a
// sequence take in the KV cache (cells, by stage), fit.go what is left for it (pool);
// weights.go counts the weights, activation.go a forward pass. llama.cpp and Ollama are
// counted in llama.go (KV cache: localCell, cached) and llama_fit.go.
package serving

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
)

// Setup is a set-up of an inference engine.
type Setup struct {
	Model    *model.Model
	Engine   engine.Release
	Parallel plan.Parallel
	KV       KVType
	Length   int64 // tokens a request may have; 0 is the model's own limit
	Block    int64 // tokens a block of the KV cache holds; 0 is the engine's default
	Step     int64 // tokens that a forward pass takes at most; 0 is the engine's default
	Requests int64 // that run at once at most; 0 means the engine's default
	MaxKV    int64 // a limit of the KV cache in tokens; 0 if none
	// KVBytes is the size of the KV cache on each GPU, Blocks the number of its blocks: vLLM takes
	// them instead of the rest of its share. 0 if they are not set.
	KVBytes, Blocks int64
	Eager           bool // no CUDA graphs
	Draft           bool // the model's own layers for multi-token prediction are loaded
	GPU             *plan.GPU
	Fraction        float64 // of the GPU's memory; 0 is the engine's default
	Graphs          int64   // the largest batch that is captured; 0 is the engine's default
	Offload         int64   // bytes of each GPU's weights that vLLM keeps in the host's memory
	Local           Local   // of llama.cpp and engine.Ollama
	Load            Load    // what is asked of it
	Images          Images  // of each request
	// HostBandwidth is that of the host's memory, bytes a second; 0 is two channels of DDR5.
	HostBandwidth float64
	// NodeLink is what a GPU has of the network between nodes, bytes a second in one
	// direction; 0 is [plan.NodeLink].
	NodeLink float64

	stages []Stage // of weights whose layout was computed before
}

// Load describes the requests. It does not change the memory that is planned, but
// states what of the KV cache they need, and the times.
type Load struct {
	Requests       int64 // at once; 0 means 32
	Prompt, Output int64 // tokens of each
}

// Normal fills in what is not stated.
func (s Setup) Normal() Setup {
	if s.Engine.Local() {
		return s.localNormal()
	}
	if s.Parallel = s.Parallel.Normal(); s.GPU != nil {
		s.Engine = s.Engine.On(plan.PlainGPU(s.GPU.Name))
	}
	if s.KV.bytes == 0 {
		s.KV, _ = ParseKV("auto", s.Model)
	}
	if s.Length == 0 {
		s.Length = max(s.Model.Context, 1)
	}
	if s.Block == 0 {
		s.Block = s.ownBlock()
	}
	return s
}

// ownBlock is the engine's default of a block, in tokens; 16 of engines that do not state it.
func (s Setup) ownBlock() int64 {
	if s.Engine.Name == engine.SGLang && s.hasKind(model.Sparse) {
		return 256
	}
	return cmp.Or(s.Engine.Engine().Block, 16)
}

var argNumber = lazyregexp.New(`(?i)(max[-_]total[-_]tokens|max[-_]num[-_]seqs|chunked[-_]prefill(?:[-_]size)?|max[-_]num[-_]batched[-_]tokens|block[-_]size|block)[ =:]+(\d{1,12})`)

var argStages = lazyregexp.New(`VLLM_PP_LAYER_PARTITION=([\d,]+)`)

// ReadArgs reads flags from free text.
func (s *Setup) ReadArgs(text string) {
	for _, m := range argNumber.FindAllStringSubmatch(text, -1) {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil || n < 1 {
			continue
		}
		switch name := strings.ToLower(strings.ReplaceAll(m[1], "_", "-")); {
		case name == "max-total-tokens":
			s.MaxKV = n
		case name == "max-num-seqs":
			s.Requests = n
		case strings.HasPrefix(name, "block"):
			s.Block = n
		default:
			s.Step = n
		}
	}
	s.Eager = s.Eager || strings.Contains(strings.ReplaceAll(text, "_", "-"), "enforce-eager")
	if m := argStages.FindStringSubmatch(text); m != nil {
		var stages []int64
		sum := int64(0)
		for _, part := range strings.Split(m[1], ",") {
			n, _ := strconv.ParseInt(part, 10, 32)
			stages, sum = append(stages, n), sum+n
		}
		if sum == int64(len(s.Model.Layers)) && int64(len(stages)) == s.Parallel.PP {
			s.Parallel.Stages = stages
		}
	}
}

// Weights are the bytes of the rank that holds most, as the engine logs them:
// vLLM what PyTorch allocated, SGLang what left the device.
func (s Setup) Weights() (most int64) {
	for _, st := range s.loadStages() {
		most = max(most, s.logged(st))
	}
	return most
}

func (s Setup) logged(st Stage) int64 {
	if s.Engine.Name == engine.SGLang {
		return st.Weights.Reserved
	}
	return st.Weights.Allocated
}

// keepsWindows reports whether the engine keeps only the window in layers that have
// one. vLLM does with its hybrid KV cache manager, on by default from 0.10. SGLang
// has it off for some families; source: SGLang, srt/server_args.py,
// _handle_model_specific_adjustments.
func (s Setup) keepsWindows() bool {
	if s.Engine.Name == engine.VLLM {
		return !s.Engine.V0 && s.Engine.Has(engine.KeepsWindows)
	}
	return !s.Model.SGLangKeepsAll()
}

// widest is the stage that keeps most of a token.
func (s Setup) widest() (most kvCell) {
	for _, k := range s.cells() {
		if k.full+k.window > most.full+most.window {
			most = k
		}
	}
	return most
}

// tokens returns how many tokens a pool of that size holds when all are of long
// sequences, in whole blocks.
func (s Setup) tokens(k kvCell, pool int64) int64 {
	cell := k.full
	if cell == 0 {
		cell = k.window
	}
	if cell == 0 {
		return 0
	}
	n := int64(float64(pool)/(cell*float64(s.Block))) * s.Block
	if s.MaxKV > 0 {
		n = min(n, s.MaxKV)
	}
	return n
}

// printed returns what a token takes where engines print how many there is room for.
func (s Setup) printed() kvCell {
	if s.windows() {
		return s.widest().unwindowed()
	}
	return s.widest()
}

// TokensLogged is the number of tokens that goes with a KV size which an engine
// logged. Of layers with a window it counts every token, as engines print it. vLLM's
// refusal to start names the KV that one request of the whole model needs, whatever
// the pipeline stages: a size that is just that is taken for it.
func (s Setup) TokensLogged(gibs float64) int64 {
	whole := cellOf(s.Model.Layers, s.KV, s.Engine, s.Parallel)
	const rounding = 0.006 // of a figure with two decimals
	if need := whole.full * float64(s.Length) / plan.GiB; s.Engine.Name == engine.VLLM && !whole.hybrid() && math.Abs(need-gibs) < rounding {
		return s.Length
	}
	return s.tokens(s.printed(), int64(gibs*plan.GiB))
}
