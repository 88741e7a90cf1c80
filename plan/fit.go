package plan

import (
	"fmt"
	"math"
	"slices"

	"strandline/model"
)

// Component is a part of a GPU's memory.
type Component struct {
	Name   string
	Size   Range
	Source string // what the figure rests on
}

// Fit is a set-up of an inference engine laid out on the GPU that has least to
// spare.
type Fit struct {
	Serving    Serving
	Stages     []Stage
	Stage      int     // the one whose GPU has least to spare
	Fraction   float64 // of the GPU's memory that the engine takes
	Components []Component
	KV         Range   // the pool
	Tokens     Range   // that it holds, of long sequences
	PerToken   float64 // of every token
	InWindow   float64 // further bytes of a token inside the window
	Window     int64   // tokens
	State      int64   // of a sequence, whatever its length
	Need       int64   // what one request of the whole length takes
	Requests   [2]float64
	Longest    Range // a single request can have, tokens
	Verdict    Verdict
	Binding    string // what stands in the way, or would first
	Flags      []string
	Notes      []string
	Latency    *Latency
}

// Verdict tells whether a set-up fits.
type Verdict string

const (
	Fits    Verdict = "fits"
	Tight   Verdict = "may fit" // at one end of the ranges
	TooMuch Verdict = "does not fit"
)

// Judge tells whether a peak and what stands outside PyTorch fit a GPU.
func Judge(peak, outside Range, total int64) Verdict {
	switch all := peak.plus(outside); {
	case all.High <= total:
		return Fits
	case all.Low <= total:
		return Tight
	}
	return TooMuch
}

// Names of the components, in the order in which they are drawn.
const (
	Weights     = "weights"
	KVCache     = "KV cache"
	Activations = "activations"
	Graphs      = "CUDA graphs"
	NonTorch    = "non-torch"
	Slack       = "slack"
)

// graphs are the memory of captured CUDA graphs by the number of sizes that are
// captured: 2 to 32 MiB for each, as logs of models from 0.5B to 671B show. Their
// pool is shared, so that the cost is not linear.
func (s Serving) graphs() Range {
	if s.Eager {
		return Range{}
	}
	n := int64(35)
	switch {
	case s.Engine.Name == SGLang:
		n = captures(s.sglang().graphs)
	case s.Graphs > 0:
		n = captures(s.Graphs)
	case !s.Engine.V0 && !s.Engine.before(0, 11): // piecewise to 512, and full to 256
		n = 51 + 35
	case !s.Engine.V0:
		n = 67
	}
	const low, high = 2 << 20, 32 << 20
	return Range{n * low, n * high}
}

// captures is how many batch sizes are captured up to a largest.
func captures(most int64) int64 {
	n := min(most, 4)
	if most > 4 {
		n += most / 8
	}
	return n
}

// nonTorch is what stands outside PyTorch: the CUDA context, libraries and the
// buffers of collectives.
func (s Serving) nonTorch() (Range, string) {
	const mib = 1 << 20
	switch ranks := s.Parallel.TP * s.Parallel.PP; {
	case s.Engine.before(0, 7) && ranks == 1:
		return Range{350 * mib, 1830 * mib}, "logs of vLLM before 0.7 on one GPU"
	case s.Engine.before(0, 7):
		return Range{350 * mib, 3660 * mib}, "logs of vLLM before 0.7 on several GPUs"
	case s.Engine.Name == SGLang && ranks == 1:
		return Range{400 * mib, 1100 * mib}, "free memory before the weights, in logs of SGLang on one GPU"
	case s.Engine.Name == SGLang:
		return Range{1000 * mib, 2600 * mib}, "free memory before the weights, in logs of SGLang on 2 to 8 GPUs"
	case ranks == 1:
		return Range{50 * mib, 700 * mib}, "logs of vLLM from 0.7 on one GPU"
	}
	return Range{200 * mib, 2400 * mib}, "logs of vLLM from 0.7 on 2 to 16 GPUs"
}

// fraction is the share of the GPU that the engine takes.
func (s Serving) fraction() float64 {
	switch {
	case s.Fraction > 0:
		return s.Fraction
	case s.Engine.Name == SGLang:
		return s.sglang().fraction
	case !s.Engine.before(0, 21): // raised from 0.9; vLLM, config/cache.py
		return 0.92
	}
	return 0.9
}

// Fit lays the set-up out on its GPU.
func (s Serving) Fit() (*Fit, error) {
	if s.GPU == nil {
		return nil, fmt.Errorf("no GPU is given")
	}
	s = s.normal()
	if err := s.possible(); err != nil {
		return nil, err
	}
	f := &Fit{Serving: s, Stages: s.stages, Fraction: s.fraction()}
	if f.Stages == nil {
		f.Stages = s.loadStages()
	}
	activation, graphs := s.Activation(), s.graphs()
	outside, outsideSource := s.nonTorch()
	cell := f.narrowest(s.cells(), func(weights int64) Range { return s.pool(f.Fraction, weights, activation, graphs, outside) })
	weights := s.logged(f.Stages[f.Stage])
	f.KV = s.pool(f.Fraction, weights, activation, graphs, outside)
	f.capacity(cell)
	used := weights + activation.Middle() + graphs.Middle() + outside.Middle() + f.KV.Middle()
	f.Components = []Component{
		{Weights, exactly(weights), "the model's tensors, as the engine lays them out"},
		{KVCache, f.KV, "what is left of the engine's share"},
		{Activations, activation, fmt.Sprintf("a forward pass of %d tokens", s.step())},
		{Graphs, graphs, "2 to 32 MiB for each size that is captured, as logs show"},
		{NonTorch, outside, outsideSource},
		{Slack, exactly(max(s.GPU.Total-used, 0)), "the rest of the GPU"},
	}
	if s.Eager {
		f.Components[3].Source = "none: eager mode"
	}
	f.judge(weights, activation, graphs, outside)
	f.Flags = s.flags(f.Fraction)
	f.Notes = append(append(f.Notes, s.Model.Notes...), s.notes()...)
	f.Latency = s.latency()
	return f, nil
}

// pool is what is left for the KV cache of the share that the engine takes.
func (s Serving) pool(fraction float64, weights int64, activation, graphs, outside Range) Range {
	total := s.GPU.Total
	left := func(activation, graphs, outside int64) int64 {
		if s.Engine.Name == SGLang {
			// (1 − y) of what is free before the weights stays free of them and of the pool;
			// activations and graphs come out of that.
			return max(whole(float64(total-outside)*fraction)-weights, 0)
		}
		n := whole(float64(total)*fraction) - weights - activation - outside
		if s.Engine.counts() {
			n -= graphs
		}
		return max(n, 0)
	}
	return Range{left(activation.High, graphs.High, outside.High), left(activation.Low, graphs.Low, outside.Low)}
}

// narrowest finds the stage that holds the fewest tokens, which engines take for
// all, and what it keeps of a token.
func (f *Fit) narrowest(cells []KVCell, pool func(weights int64) Range) KVCell {
	least := math.Inf(1)
	for i := range f.Stages {
		weights := f.Serving.logged(f.Stages[i])
		tokens := math.MaxFloat64 // of a stage that keeps nothing of a token
		if cell := cells[i].Full + cells[i].Window; cell > 0 {
			tokens = float64(pool(weights).High) / cell
		}
		if tokens < least || tokens == least && weights > f.Serving.logged(f.Stages[f.Stage]) {
			least, f.Stage = tokens, i
		}
	}
	k := cells[f.Stage]
	f.PerToken, f.InWindow, f.Window, f.State = k.Full, k.Window, k.Size, whole(k.State)
	return k
}

// possible refuses what no engine takes.
func (s Serving) possible() error {
	p := s.Parallel
	if err := s.bounded(); err != nil {
		return err
	}
	if p.TP%p.DP != 0 {
		return fmt.Errorf("--dp %d: attention is divided among TP ranks, and %d is no multiple of it", p.DP, p.TP)
	}
	for i := range s.Model.Layers {
		if h := s.Model.Layers[i].Cache.QueryHeads; h > 0 && h%(p.TP/p.DP) != 0 && s.Model.Layers[i].Cache.Kind != model.State {
			return fmt.Errorf("--tp %d: layer %d has %d attention heads, which engines divide evenly", p.TP, i, h)
		}
	}
	if s.Fraction < 0 || s.Fraction > 1 {
		return fmt.Errorf("a memory fraction of %g is not between 0 and 1", s.Fraction)
	}
	return nil
}

// bounded refuses numbers that no run has.
func (s Serving) bounded() error {
	const ranks, tokens = 1 << 16, 1 << 32
	p := s.Parallel
	for _, n := range []int64{p.TP, p.PP, p.EP, p.DP, p.CP} {
		if n > ranks {
			return fmt.Errorf("%d ranks are beyond any engine", n)
		}
	}
	if int64(len(s.Model.Layers)) < p.PP {
		return fmt.Errorf("--pp %d: the model has %d layers", p.PP, len(s.Model.Layers))
	}
	for _, n := range []int64{s.Length, s.Step, s.Block, s.Requests} {
		if n < 0 || n > tokens {
			return fmt.Errorf("a context of %d tokens is no length", n)
		}
	}
	return nil
}

// capacity fills in what the pool holds.
func (f *Fit) capacity(k KVCell) {
	s := f.Serving
	f.Tokens = Range{s.tokens(k, f.KV.Low), s.tokens(k, f.KV.High)}
	f.Need = whole(k.Sequence(s.Length, s.step(), s.Block))
	for i, pool := range []int64{f.KV.Low, f.KV.High} {
		if f.Need > 0 {
			f.Requests[i] = float64(pool) / float64(f.Need)
			if s.MaxKV > 0 {
				f.Requests[i] = min(f.Requests[i], float64(s.MaxKV)/float64(s.Length))
			}
		}
	}
	f.Longest = Range{k.longest(f.KV.Low, s.step(), s.Block), k.longest(f.KV.High, s.step(), s.Block)}
}

// longest is the most tokens of one sequence that a pool holds.
func (k KVCell) longest(pool, step, block int64) int64 {
	const most = 1 << 40
	low, high := int64(0), int64(most)
	for low < high {
		mid := low + (high-low+1)/2
		if k.Sequence(mid, step, block) <= float64(pool) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

func (f *Fit) judge(weights int64, activation, graphs, outside Range) {
	s := f.Serving
	total := s.GPU.Total
	rest := func(a, g, o int64) bool { // whatever the fraction: it must fit on the GPU
		return weights+a+g+o+f.Need <= total
	}
	switch {
	case weights+outside.Low >= total:
		f.Verdict, f.Binding = TooMuch, "the weights alone are more than the GPU has"
	case f.KV.High < f.Need && !rest(activation.Low, graphs.Low, outside.Low):
		f.Verdict, f.Binding = TooMuch, "no room for the KV cache of one request of the whole context"
	case f.KV.High < f.Need:
		f.Verdict, f.Binding = TooMuch, fmt.Sprintf("the memory fraction of %.3g: a higher one would hold one request of the whole context", f.Fraction)
	case f.KV.Low < f.Need:
		f.Verdict, f.Binding = Tight, "the KV cache of one request of the whole context"
	default:
		f.Verdict, f.Binding = Fits, "the KV cache"
	}
	if f.Verdict == Fits && !s.Engine.counts() && weights+f.KV.High+activation.High+graphs.High+outside.High > total {
		f.Notes = append(f.Notes, "at the high end of the ranges, CUDA graphs and activations need more than the share that is left beside the KV cache")
	}
}

// counts tells whether the engine takes CUDA graphs into account for its pool.
func (e Engine) counts() bool { return e.Name == VLLM && !e.before(0, 21) }

func (s Serving) notes() (out []string) {
	if s.Model.Unsure != "" {
		out = append(out, s.Model.Unsure)
	}
	if windows := s.windows(); windows && !s.keepsWindows() {
		out = append(out, "this engine keeps every token in layers with a window, too")
	} else if windows && s.Engine.Name == VLLM {
		out = append(out, "layers with a window keep the window only while the hybrid KV cache manager is on; KV connectors turn it off, and every token counts in every layer then")
	}
	if k := s.widest(); k.State > 0 {
		out = append(out, "layers with a state keep the same for a sequence of any length; engines round their blocks up to it")
	}
	kv := int64(0)
	for i := range s.Model.Layers {
		if c := s.Model.Layers[i].Cache; c.Kind == model.Full && c.Heads > 0 {
			kv = c.Heads
		}
	}
	if tp := s.Parallel.TP / s.Parallel.DP; kv > 0 && kv < tp {
		out = append(out, fmt.Sprintf("the model has %d key-value heads: beyond TP %d every rank keeps a copy", kv, kv))
	}
	if s.Parallel.DP > 1 {
		out = append(out, fmt.Sprintf("tokens and requests are those of one of %d replicas of the attention", s.Parallel.DP))
	}
	for i := range s.Model.Layers {
		if s.Model.Layers[i].Cache.Kind == model.Sparse {
			out = append(out, "beside the compressed keys engines keep states of the compressors and a pool for the window: logs show up to twice as much for a token")
			break
		}
	}
	if s.GPU != nil && s.GPU.Name == "GB10" {
		out = append(out, "this GPU shares its memory with the host: what other programs use is missing here")
	}
	if len(s.Model.Predictors) > 0 && !s.Draft {
		out = append(out, "the layers for multi-token prediction are not loaded; --mtp plans them")
	}
	if s.Model.Quant == "" && s.Model.Width == 4 {
		out = append(out, "engines load fp32 weights as 16 bits unless told otherwise; this plan keeps them")
	}
	return out
}

// windows tells whether the model has layers with a window.
func (s Serving) windows() bool {
	return slices.ContainsFunc(s.Model.Layers, func(l model.Layer) bool { return l.Cache.Kind == model.Window })
}

// flags are what to paste after the engine's command.
func (s Serving) flags(fraction float64) []string {
	p := s.Parallel
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s.Engine.Name == SGLang {
		add("--tp-size %d", p.TP)
		if p.PP > 1 {
			add("--pp-size %d", p.PP)
		}
		if p.EP > 1 {
			add("--ep-size %d", p.EP)
		}
		if p.DP > 1 {
			add("--dp-size %d --enable-dp-attention", p.DP)
		}
		add("--context-length %d", s.Length)
		add("--mem-fraction-static %.3g", fraction)
		add("--chunked-prefill-size %d", s.step())
		switch s.KV.Name {
		case "auto":
		case "fp8":
			add("--kv-cache-dtype fp8_e4m3")
		default:
			add("--kv-cache-dtype %s", s.KV.Name)
		}
		if s.Eager {
			add("--disable-cuda-graph")
		}
		return out
	}
	add("--tensor-parallel-size %d", p.TP/p.DP)
	if p.PP > 1 {
		add("--pipeline-parallel-size %d", p.PP)
	}
	if p.DP > 1 {
		add("--data-parallel-size %d", p.DP)
	}
	if p.EP > 1 {
		add("--enable-expert-parallel")
	}
	add("--max-model-len %d", s.Length)
	add("--gpu-memory-utilization %.3g", fraction)
	add("--max-num-batched-tokens %d", s.step())
	if s.KV.Name != "auto" {
		add("--kv-cache-dtype %s", s.KV.Name)
	}
	if s.Eager {
		add("--enforce-eager")
	}
	return out
}

// Latency is a roofline: the time that the GPU's operations and memory need at
// least, at stated efficiencies.
type Latency struct {
	Prompt  int64      // tokens
	Batch   int64      // requests that decode at once
	First   [2]float64 // seconds to the first token of a prompt, without waiting
	Token   [2]float64 // seconds for a further token
	Bound   string     // what decoding waits for
	Assumed string
}

// latency computes the time of a prompt and of a decoding step. Formulas: 2 FLOPs
// for each active parameter and token, and those of causal attention; weights and
// KV cache are read once a step; two all-reduces a layer.
func (s Serving) latency() *Latency {
	g, m := s.GPU, s.Model
	if g.Bandwidth == 0 || g.BF16 == 0 {
		return nil
	}
	l := &Latency{Prompt: min(s.Length, 4096), Batch: 32,
		Assumed: "40 to 60 % of the dense operations, 60 to 80 % of the bandwidth, 10 µs for an all-reduce"}
	tp, ranks := float64(s.Parallel.TP), float64(s.Parallel.TP*s.Parallel.PP)
	active := float64(m.ActiveParams())
	prompt, batch := float64(l.Prompt), float64(l.Batch)
	attention := 0.0
	layers := float64(len(m.Layers))
	var dense, experts float64
	touched := 1.0
	m.Each(func(i int, t *model.Tensor) {
		switch t.Role {
		case model.Predictor, model.Tower, model.Embedding:
			if t.Role != model.Embedding || !m.Tied {
				return
			}
			dense += float64(t.Bytes())
		case model.Expert:
			experts += float64(t.Bytes())
		default:
			dense += float64(t.Bytes())
		}
	})
	for i := range m.Layers {
		attention += 2 * float64(m.Layers[i].Cache.QueryWidth+m.Layers[i].Cache.OutputWidth) / 2 * prompt * prompt
		if e := m.Layers[i].Experts; e > 0 {
			touched = 1 - math.Pow(1-float64(m.Layers[i].TopK)/float64(e), batch)
		}
	}
	flops := g.flops(m.Quant)
	reduce := func(tokens float64) float64 {
		if s.Parallel.TP == 1 {
			return 0
		}
		return 2 * layers * (2*(tp-1)/tp*tokens*float64(m.Hidden)*2/g.Link + 10e-6)
	}
	cell := s.widest()
	kv := cell.Sequence(l.Prompt, s.step(), s.Block) * batch
	const mfuLow, mfuHigh, bwLow, bwHigh = 0.4, 0.6, 0.6, 0.8
	for i, eff := range [][2]float64{{mfuHigh, bwHigh}, {mfuLow, bwLow}} {
		compute := (2*active*prompt + attention) / (tp * flops * eff[0])
		read := (dense + experts) / (tp * g.Bandwidth * eff[1])
		l.First[i] = max(compute, read) + reduce(prompt)
		memory := ((dense+experts*touched)/ranks + kv) * float64(s.Parallel.PP) / (g.Bandwidth * eff[1])
		step := 2 * active * batch / (tp * flops * eff[0])
		l.Token[i] = max(memory, step) + reduce(batch)
		l.Bound = "memory bandwidth"
		if step > memory {
			l.Bound = "operations"
		}
	}
	return l
}
