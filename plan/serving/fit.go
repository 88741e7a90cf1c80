package serving

import (
	"fmt"
	"math"
	"slices"

	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/units"
)

// Fit is a set-up of an inference engine on the GPU that has the least free
// memory.
type Fit struct {
	Serving    Setup
	Stages     []Stage
	Stage      int     // the one whose GPU has the least free memory
	Fraction   float64 // of the GPU's memory that the engine takes
	Components []plan.Component
	KV         plan.Range // the pool
	Tokens     plan.Range // that it holds, of long sequences
	PerToken   float64    // of every token
	InWindow   float64    // further bytes of a token inside the window
	Window     int64      // tokens
	State      int64      // of a sequence, whatever its length
	Need       int64      // what one request of the whole length takes
	Requests   [2]float64
	Longest    plan.Range // a single request can have, tokens
	Verdict    plan.Verdict
	Binding    string // what prevents it from fitting, or would first
	Flags      []string
	Notes      []string
	Latency    *Latency
	Host       []plan.Component // in the host's memory, of all GPUs
	Offload    *Offload         // of llama.cpp and engine.Ollama
	Load       *Loaded          // what the requests that are asked for need
	Images     *ImageLoad       // what the images that are asked for take
}

// Loaded is a load beside the KV cache.
type Loaded struct {
	Load
	KV     int64      // bytes that all of it needs on the GPU that has the least free memory
	AtOnce [2]float64 // requests that fit
}

// sequence returns what a sequence of n tokens takes of the pool, in bytes.
func (f *Fit) Sequence(n int64) int64 {
	k := kvCell{f.PerToken, f.InWindow, float64(f.State), f.Window}
	return plan.Whole(k.sequence(n, f.Serving.step(), f.Serving.Block))
}

// load fills in what the stated requests need, if any are stated.
func (f *Fit) load(k kvCell) {
	n := f.Serving.Load
	if n == (Load{}) {
		return
	}
	s := f.Serving
	n.Requests = s.batch()
	if n.Prompt == 0 {
		n.Prompt = min(s.Length, 4096)
	}
	images := int64(0)
	if f.Images != nil {
		images = f.Images.Tokens
	}
	one := k.sequence(n.Prompt+images+n.Output, s.step(), s.Block)
	f.Load = &Loaded{Load: n, KV: plan.Whole(one * float64(ceil(n.Requests, max(s.Parallel.DP, 1))))}
	for i, pool := range []int64{f.KV.Low, f.KV.High} {
		if one > 0 {
			f.Load.AtOnce[i] = float64(pool) / one
		}
		if s.Requests > 0 {
			f.Load.AtOnce[i] = min(f.Load.AtOnce[i], float64(s.Requests))
		}
	}
}

// requestTokens returns how many tokens a request has that is asked for, with its images and its
// answer; 0 if none is.
func (f *Fit) requestTokens() (n int64) {
	if f.Images != nil {
		n = f.Images.Tokens
	}
	if f.Load != nil {
		n += f.Load.Prompt + f.Load.Output
	}
	return n
}

// exceedsContext reports whether a request that is asked for is longer than the context, which no
// engine takes. One that is not fits if one of the whole context does.
func (f *Fit) exceedsContext() bool { return f.requestTokens() > f.Serving.Length }

// judgeAsked adds to the verdict what follows from a request that is asked for.
func (f *Fit) judgeAsked() {
	if f.exceedsContext() {
		f.Verdict = plan.TooMuch
		f.Binding = fmt.Sprintf("the context of %s tokens, as a request has %s", units.Count(f.Serving.Length), units.Count(f.requestTokens()))
	}
}

// judgeFormat adds to the verdict that the engine refuses the weights.
func (f *Fit) judgeFormat() {
	if why := f.Serving.refusal(); why != "" {
		f.Verdict, f.Binding = plan.NotRun, why
	}
}

// Offload is how much of a model is on GPUs.
type Offload struct {
	Layers, Of   int64 // the output counts as one
	ExpertLayers int64 // whose experts are in the host's memory
}

// unstated is the longest request of a model that names none and needs no memory for its
// length. Source: vLLM, config/model.py, _get_and_verify_max_len.
const unstated = 2048

// keepsTokens reports whether a layer keeps something of each token.
func (s Setup) keepsTokens() bool {
	return slices.ContainsFunc(s.Model.Layers, func(l model.Layer) bool { return l.Cache.Kind != model.State && l.Cache.Kind != model.None })
}

// Fit computes the memory of the set-up on its GPU.
func (s Setup) Fit() (*Fit, error) {
	if s.GPU == nil {
		return nil, fmt.Errorf("no GPU is given")
	}
	if s.Length == 0 && s.Model.Context == 0 && !s.keepsTokens() {
		s.Length = unstated
	}
	if s.Length == 0 && s.Model.Context == 0 {
		return nil, fmt.Errorf("the model names no longest context (max_position_embeddings), and none is given")
	}
	if s.Engine.Local() {
		return s.fitLocal()
	}
	s = s.Normal()
	if err := s.possible(); err != nil {
		return nil, err
	}
	f := &Fit{Serving: s, Stages: s.stages, Fraction: s.fraction()}
	if f.Stages == nil {
		f.Stages = s.loadStages()
	}
	activation := s.Activation()
	graphs, graphsSource := s.graphs()
	outside, outsideSource := s.nonTorch()
	cell := f.narrowest(s.cells(), func(weights int64) plan.Range { return s.pool(f.Fraction, weights, activation, graphs, outside) })
	weights := s.logged(f.Stages[f.Stage])
	f.KV = s.pool(f.Fraction, weights, activation, graphs, outside)
	source := "the rest of the engine's share"
	switch {
	case s.blocks() > 0:
		f.KV, source = plan.Exactly(plan.Whole(math.Ceil(cell.full*float64(s.Blocks*s.Block)))), "the number of blocks that is set"
	case s.KVBytes > 0:
		source = "the size that is set"
	}
	if s.MaxKV > 0 && cell.full > 0 {
		most := plan.Whole(cell.full * float64(s.MaxKV))
		f.KV = plan.Range{Low: min(f.KV.Low, most), High: min(f.KV.High, most)}
	}
	f.capacity(cell)
	var err error
	if f.Images, err = s.images(cell); err != nil {
		return nil, err
	}
	f.load(cell)
	used := weights + activation.Middle() + graphs.Middle() + outside.Middle() + f.KV.Middle()
	f.Components = []plan.Component{
		{Name: plan.Weights, Size: plan.Exactly(weights), Source: "the model's tensors, as the engine lays them out"},
		{Name: plan.KVCache, Size: f.KV, Source: source},
		{Name: plan.Activations, Size: activation, Source: s.activationSource()},
		{Name: plan.Graphs, Size: graphs, Source: graphsSource},
		{Name: plan.NonTorch, Size: outside, Source: outsideSource},
		{Name: plan.Slack, Size: plan.Exactly(max(s.GPU.Total-used, 0)), Source: "the rest of the GPU"},
	}
	f.offload()
	if s.setPool() {
		f.judgeSet(weights, activation.Plus(graphs).Plus(outside))
	} else {
		f.judge(weights, activation, graphs, outside)
	}
	f.judgeAsked()
	f.judgeFormat()
	f.Flags = s.flags(f.Fraction)
	f.Notes = append(append(f.Notes, s.Model.Notes...), s.notes()...)
	f.Notes = append(f.Notes, s.imageNotes(f.Images)...)
	f.Latency = s.latency()
	return f, nil
}

// offload fills in what stays in the host's memory.
func (f *Fit) offload() {
	s := f.Serving
	if n := s.Model.Host; n > 0 {
		f.Host = append(f.Host, plan.Component{Name: plan.Weights, Size: plan.Exactly(n), Source: "the experts that stay there"})
	}
	all := int64(0)
	for _, st := range f.Stages {
		all += st.offloaded * s.Parallel.TP
	}
	if all > 0 {
		f.Host = append(f.Host, plan.Component{Name: "offloaded weights", Size: plan.Exactly(all), Source: "of all GPUs, read over their links to the host in every pass"})
	}
}

func (s Setup) activationSource() string {
	text := fmt.Sprintf("a forward pass of %d tokens", s.step())
	if t := s.towers(); s.Images.Count > 0 && t.Middle() > s.forward().Middle() {
		text += ", or encoding images, which takes more"
	}
	return text
}

// pool returns what is left for the KV cache of the share that the engine takes.
func (s Setup) pool(fraction float64, weights int64, activation, graphs, outside plan.Range) plan.Range {
	if s.KVBytes > 0 {
		return plan.Exactly(s.KVBytes)
	}
	total := s.GPU.Total
	left := func(activation, graphs, outside int64) int64 {
		if s.Engine.Name == engine.SGLang {
			// (1 − y) of what is free before the weights stays free of them and of the pool;
			// activations and graphs come out of that.
			return max(plan.Whole(float64(total-outside)*fraction)-weights, 0)
		}
		n := plan.Whole(float64(total)*fraction) - weights - activation - outside
		if s.Engine.Has(engine.CountsGraphs) {
			n -= graphs
		}
		return max(n, 0)
	}
	return plan.Range{Low: left(activation.High, graphs.High, outside.High), High: left(activation.Low, graphs.Low, outside.Low)}
}

// narrowest returns the stage that holds the fewest tokens, which engines take for
// all, and what it keeps of a token.
func (f *Fit) narrowest(cells []kvCell, pool func(weights int64) plan.Range) kvCell {
	least := math.Inf(1)
	for i := range f.Stages {
		weights := f.Serving.logged(f.Stages[i])
		tokens := math.MaxFloat64 // of a stage that keeps nothing of a token
		if cell := cells[i].full + cells[i].window; cell > 0 {
			tokens = float64(pool(weights).High) / cell
		}
		if tokens < least || tokens == least && weights > f.Serving.logged(f.Stages[f.Stage]) {
			least, f.Stage = tokens, i
		}
	}
	k := cells[f.Stage]
	f.PerToken, f.InWindow, f.Window, f.State = k.full, k.window, k.size, plan.Whole(k.state)
	return k
}

// possible refuses what no engine takes.
func (s Setup) possible() error {
	p := s.Parallel
	if err := s.Bounded(); err != nil {
		return err
	}
	if s.KV.ggml {
		return fmt.Errorf("%s does not store keys and values as %s, which is llama.cpp's", s.Engine.Name, s.KV.name)
	}
	if p.TP%p.DP != 0 {
		instead := ""
		if ranks := p.TP * p.PP; ranks%p.DP == 0 {
			instead = fmt.Sprintf("; --tp %d would be", ranks)
		}
		return fmt.Errorf("--dp %d: attention is divided among TP ranks, and --tp %d is not a multiple of it%s", p.DP, p.TP, instead)
	}
	for i := range s.Model.Layers {
		if heads := plan.Undivided(&s.Model.Layers[i].Cache, p.TP/p.DP); heads != "" {
			return fmt.Errorf("--tp %d: layer %d has %s, which engines divide evenly", p.TP, i, heads)
		}
	}
	if s.Offload > 0 && s.Engine.Name != engine.VLLM {
		return fmt.Errorf("%s keeps no weights in the host's memory by size (--cpu-offload-gb)", s.Engine.Name)
	}
	if (s.KVBytes > 0 || s.Blocks > 0) && s.Engine.Name != engine.VLLM {
		return fmt.Errorf("%s does not take the size of its KV cache in bytes or blocks (--kv-cache-bytes, --kv-blocks)", s.Engine.Name)
	}
	if !(s.Fraction >= 0 && s.Fraction <= 1) { // so that NaN is none either
		return fmt.Errorf("a memory fraction of %g is not between 0 and 1", s.Fraction)
	}
	return nil
}

// Bounded refuses numbers that no run has.
func (s Setup) Bounded() error {
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
	if i := s.Images; min(i.Count, i.Width, i.Height) < 0 || max(i.Width, i.Height) > ranks || i.Count > ranks {
		return fmt.Errorf("%d images of %d × %d pixels are beyond any engine", i.Count, i.Width, i.Height)
	}
	for _, f := range []struct {
		what string
		n    int64
	}{{"a KV cache of %d blocks", s.Blocks}, {"a context of %d tokens", s.Length}, {"a forward pass of %d tokens", s.Step}, {"a block of %d tokens", s.Block}, {"%d requests at once", s.Requests}} {
		if f.n < 0 || f.n > tokens {
			return fmt.Errorf(f.what+" is beyond any engine", f.n)
		}
	}
	return nil
}

// capacity fills in what the pool holds.
func (f *Fit) capacity(k kvCell) {
	s := f.Serving
	f.Tokens = plan.Range{Low: s.tokens(k, f.KV.Low), High: s.tokens(k, f.KV.High)}
	f.Need = plan.Whole(k.sequence(s.Length, s.step(), s.Block))
	for i, pool := range []int64{f.KV.Low, f.KV.High} {
		if f.Need > 0 {
			f.Requests[i] = float64(pool) / float64(f.Need)
			if s.Requests > 0 {
				f.Requests[i] = min(f.Requests[i], float64(s.Requests))
			}
			if s.MaxKV > 0 {
				f.Requests[i] = min(f.Requests[i], float64(s.MaxKV)/float64(s.Length))
			}
		}
	}
	f.Longest = plan.Range{Low: k.longest(f.KV.Low, s.step(), s.Block), High: k.longest(f.KV.High, s.step(), s.Block)}
}

// longest is the most tokens of one sequence that a pool holds.
func (k kvCell) longest(pool, step, block int64) int64 {
	const maxTokens = 1 << 40
	low, high := int64(0), int64(maxTokens)
	for low < high {
		mid := low + (high-low+1)/2
		if k.sequence(mid, step, block) <= float64(pool) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

func (f *Fit) judge(weights int64, activation, graphs, outside plan.Range) {
	s := f.Serving
	total := s.GPU.Total
	rest := func(a, g, o int64) bool { // whatever the fraction: it must fit on the GPU
		return weights+a+g+o+f.Need <= total
	}
	switch {
	case weights+outside.Low >= total:
		f.Verdict, f.Binding = plan.TooMuch, f.tooLarge(weights, "the weights and non-torch memory")
	case f.KV.High < f.Need && !rest(activation.Low, graphs.Low, outside.Low):
		f.Verdict, f.Binding = plan.TooMuch, "no room for the KV cache of one request of the whole context"
	case f.KV.High < f.Need:
		f.Verdict, f.Binding = plan.TooMuch, fmt.Sprintf("the memory fraction of %.4g: a higher one would hold one request of the whole context", f.Fraction)
	case f.KV.Low < f.Need:
		f.Verdict, f.Binding = plan.Tight, "the KV cache of one request of the whole context"
	default:
		f.Verdict, f.Binding = plan.Fits, "the KV cache"
	}
	of, need, what := s.outsideShare(activation, graphs, outside)
	switch left := of - plan.Whole(f.Fraction*float64(of)); {
	case f.Verdict != plan.TooMuch && left < need.Low:
		f.Verdict, f.Binding = plan.TooMuch, fmt.Sprintf("the memory fraction of %.4g leaves no room for %s", f.Fraction, what)
	case f.Verdict == plan.Fits && left < need.High:
		f.Verdict, f.Binding = plan.Tight, fmt.Sprintf("the memory fraction of %.4g leaves little room for %s", f.Fraction, what)
	}
}

// tooLarge says that the weights, or else they and others, leave nothing of the GPU.
func (f *Fit) tooLarge(weights int64, all string) string {
	if weights >= f.Serving.GPU.Total {
		all = "the weights alone"
	}
	return all + " are more than the GPU has"
}

// judgeSet judges a set-up whose KV cache has a set size, whatever the memory fraction is. Its
// fraction becomes the share that it uses.
func (f *Fit) judgeSet(weights int64, others plan.Range) {
	total := f.Serving.GPU.Total
	used := plan.Range{Low: weights + others.Low + f.KV.Low, High: weights + others.High + f.KV.High}
	f.Fraction = min(float64(used.High)/float64(total), 1)
	switch {
	case weights+others.Low >= total:
		f.Verdict, f.Binding = plan.TooMuch, f.tooLarge(weights, "weights, activations, CUDA graphs and non-torch memory")
	case used.Low > total:
		f.Verdict, f.Binding = plan.TooMuch, "the KV cache of that size is more than the GPU has beside weights, activations and CUDA graphs"
	case f.KV.High < f.Need:
		f.Verdict, f.Binding = plan.TooMuch, "the size of the KV cache: a larger one would hold one request of the whole context"
	case used.High > total:
		f.Verdict, f.Binding = plan.Tight, "the KV cache of that size leaves little room for activations and CUDA graphs"
	default:
		f.Verdict, f.Binding = plan.Fits, "the KV cache"
	}
}

// setPool reports whether the size of the KV cache is set, by bytes or by blocks.
func (s Setup) setPool() bool { return s.KVBytes > 0 || s.blocks() > 0 }

// blocks is the number of blocks that is set, 0 where a block is not so many tokens of all
// layers: layers of several kinds share them.
func (s Setup) blocks() int64 {
	if s.windows() && s.keepsWindows() || s.hasKind(model.State) {
		return 0
	}
	return s.Blocks
}

// outsideShare returns what must fit outside the engine's share, and the memory that the
// memory fraction is a share of.
func (s Setup) outsideShare(activation, graphs, outside plan.Range) (of int64, need plan.Range, what string) {
	// An engine that counts everything still makes its CUDA context before it looks
	// how much is free.
	need, what = plan.Range{Low: 0, High: 600 << 20}, "the CUDA context: no more is free when the engine starts"
	switch {
	case s.Engine.Name == engine.SGLang:
		return s.GPU.Total - outside.High, activation.Plus(graphs), "activations and CUDA graphs, which are outside the pool"
	case !s.Engine.Has(engine.CountsGraphs) && graphs.High > need.High:
		return s.GPU.Total, graphs, "CUDA graphs, which this engine does not count"
	}
	return s.GPU.Total, need, what
}

// fraction is the share of the GPU that the engine takes.
func (s Setup) fraction() float64 {
	switch {
	case s.Fraction > 0:
		return s.Fraction
	case s.Engine.Name == engine.SGLang:
		return s.sglang().fraction
	}
	return s.Engine.Share()
}
