package serving

import (
	"fmt"
	"math"
	"slices"

	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
)

// Local holds the options of llama.cpp and Ollama that other engines do not have.
type Local struct {
	Layers     *int64 // on the GPUs, the output one of them (-ngl, num_gpu); nil is as many as fit
	HostMoE    int64  // the first layers whose experts stay in the host's memory (--n-cpu-moe)
	Values     KVType // how values are stored where it is not as keys are
	Flash      Switch // flash attention
	FullWindow bool   // layers with a window keep every token (--swa-full)
	Unified    bool   // the requests share one context (--kv-unified)
	// Prompts is the host's memory that llama-server keeps of earlier prompts, bytes
	// (--cache-ram); nil is its default, a negative one has no limit.
	Prompts *int64
}

// defaultPrompts is what llama-server keeps of earlier prompts. Source: llama.cpp,
// common/common.h, cache_ram_mib.
const defaultPrompts = 8192 << 20

// Switch is an option that the engine decides itself unless it is set.
type Switch uint8

const (
	Auto Switch = iota
	On
	Off
)

// pad is the number of tokens in whose multiples llama.cpp makes its caches. Source:
// llama.cpp, src/llama-context.cpp and src/llama-kv-cache-iswa.cpp.
const pad = 256

// localNormal fills in what is not stated. Sources: llama.cpp, tools/server/server.cpp
// (4 requests that share one context) and common/common.h; Ollama, server/routes.go
// (the context by the memory of all GPUs) and envconfig/config.go (1 request).
func (s Setup) localNormal() Setup {
	s.Parallel = plan.Parallel{TP: 1, PP: max(s.Parallel.PP, 1)}.Normal()
	s.Block, s.stages = pad, nil
	if s.KV.bytes == 0 || s.KV.name == "auto" {
		s.KV = KVType{name: "auto", bytes: 2}
	}
	if s.Local.Values.bytes == 0 {
		s.Local.Values = s.KV
	}
	if s.Step == 0 {
		s.Step = 512
	}
	if s.Requests == 0 {
		s.Requests = 1
		if s.Engine.Name == engine.LlamaCPP {
			s.Requests, s.Local.Unified = 4, true
		}
	}
	if s.Length == 0 {
		s.Length = max(s.Model.Context, 1)
		if s.Engine.Name == engine.Ollama {
			s.Length = min(s.Length, s.ollamaContext())
		}
	}
	return s
}

func (s Setup) ollamaContext() int64 {
	if s.GPU == nil {
		return 4096
	}
	switch total := s.GPU.Total * s.Parallel.PP; {
	case total >= 47*plan.GiB:
		return 262144
	case total >= 23*plan.GiB:
		return 32768
	}
	return 4096
}

// flash reports whether flash attention is used. Ollama turns it on by default for
// some families only.
func (s Setup) flash() bool {
	if s.Local.Flash != Auto || s.Engine.Name != engine.Ollama {
		return s.Local.Flash != Off
	}
	return s.Model.OllamaFlash()
}

// A holding is what a device holds, or the host.
type holding struct {
	layers      []int // of the model
	output      bool  // it holds the output's matrix
	weights, kv int64
	buffer      plan.Range // for what a pass computes
	largest     int64      // tensor, bytes
}

// A layout is the division of a model among GPUs and the host's memory.
type layout struct {
	gpus    []holding
	host    holding
	onGPU   int64 // layers, the output one of them
	hostMoE int64 // layers whose experts are in the host's memory
}

// layerSizes is the memory that layers take, computed once.
type layerSizes struct {
	dense, experts    []int64
	largest           []int64 // tensor of a layer
	embedding, output int64
	tied              int64 // of the embedding, what is the output's matrix too
	first             int64 // what is with the first layer: towers, and matrices of the input
}

func (s Setup) layerSizes() layerSizes {
	sum := func(list []model.Tensor) (n int64) {
		for i := range list {
			n += list[i].Bytes()
		}
		return n
	}
	m := s.Model
	tables := slices.DeleteFunc(slices.Clone(m.Embedding), func(t model.Tensor) bool { return t.Role != model.Embedding })
	w := layerSizes{embedding: sum(tables), tied: sum(m.TiedHead()), output: sum(m.Last)}
	w.first = sum(m.Towers) + sum(m.Embedding) - w.embedding
	for i := range m.Layers {
		var dense, experts, largest int64
		for j := range m.Layers[i].Tensors {
			t := &m.Layers[i].Tensors[j]
			n := t.Bytes()
			if largest = max(largest, n); t.Role == model.Expert {
				experts += n
			} else {
				dense += n
			}
		}
		w.dense, w.experts, w.largest = append(w.dense, dense), append(w.experts, experts), append(w.largest, largest)
	}
	return w
}

// split lays out n layers on the GPUs, the last ones, in equal parts; the tables
// of the embedding stay in the host's memory, those of inputs to each layer too. llama.cpp's first layer on a GPU is the output; Ollama
// puts it there last. Sources: llama.cpp, src/llama-model.cpp, load_tensors; Ollama,
// llm/server.go.
func (s Setup) split(w *layerSizes, n, hostMoE int64) layout {
	layers := int64(len(s.Model.Layers))
	n = min(n, layers+1)
	repeating, output := max(n-1, 0), n > 0
	if s.Engine.Name == engine.Ollama {
		repeating, output = min(n, layers), n > layers
	}
	l := layout{gpus: make([]holding, s.Parallel.PP), onGPU: n, hostMoE: min(hostMoE, layers)}
	l.host.weights = w.embedding
	slots := repeating
	if output {
		slots++
	}
	of := func(at int64) *holding { return &l.gpus[at*s.Parallel.PP/slots] }
	for i := range layers {
		d, at := &l.host, i-(layers-repeating)
		if at >= 0 {
			d = of(at)
		}
		d.layers = append(d.layers, int(i))
		d.weights += w.dense[i]
		d.kv = min(d.kv+s.cached(&s.Model.Layers[i].Cache), plan.Most/4) // leaves room for sums
		if i < l.hostMoE {
			d = &l.host
		}
		d.weights += w.experts[i]
		if w.experts[i] > 0 || d == &l.host {
			d.largest = max(d.largest, w.largest[i])
		}
	}
	d, bytes := &l.host, w.output
	if output {
		d, bytes = of(repeating), bytes+w.tied // a copy
	}
	d.output, d.weights = true, d.weights+bytes
	if d == &l.host {
		d.largest = max(d.largest, bytes)
	}
	if l.onGPU > 0 {
		l.gpus[0].weights += w.first
	} else {
		l.host.weights += w.first
	}
	for i := range l.gpus {
		l.gpus[i].buffer = s.buffer(&l.gpus[i], l.host.largest)
	}
	l.host.buffer = s.hostBuffer(&l.host)
	return l
}

// cached returns what a layer's cache takes, for all requests.
func (s Setup) cached(c *model.Cache) int64 {
	streams, each, window := s.Requests, roundUp(s.Length, pad), c.Window
	if s.Local.Unified {
		streams, window = 1, c.Window*s.Requests
	}
	kept := each
	if c.Kind == model.Window && !s.Local.FullWindow {
		kept = min(each, roundUp(window+s.Step, pad))
	}
	k := s.localCell(c)
	return plan.Whole((k.full*float64(each)+k.window*float64(kept))*float64(streams) + k.state*float64(s.Requests))
}

// localCell returns what a layer keeps of a token, or of a request. States are kept in 32
// bits; source: llama.cpp, src/llama-memory-recurrent.cpp.
func (s Setup) localCell(c *model.Cache) (k kvCell) {
	pair := float64(c.Heads) * (float64(c.Key)*s.KV.bytes + float64(c.Value)*s.Local.Values.bytes)
	switch c.Kind {
	case model.Full:
		k.full = pair
	case model.Window:
		k.window, k.size = pair, c.Window
	case model.Latent:
		k.full = float64(c.Latent)*s.KV.bytes + 2*float64(c.Index)
	case model.State:
		k.state = 4 * float64(c.Conv+c.SSM)
	case model.Sparse:
		k = sparseOf(*c, s.Engine)
	}
	return k
}

// buffer returns what a pass computes on a device, in 32 bits: the widest of a layer's
// feed-forward part and attention. A build of before 2026, and programs that ask for
// all logits, make those of every token of a pass, too; llama-server makes one token's
// of each request. Without flash attention a layer makes the scores of all heads.
// Several GPUs work on up to four passes at once, each with its own mask. What
// the host keeps is copied for long passes, one tensor at a time.
func (s Setup) buffer(d *holding, copied int64) plan.Range {
	if len(d.layers) == 0 && !d.output {
		return plan.Range{}
	}
	const bytes = 4
	ub, h := float64(s.Step), float64(s.Model.Hidden)
	each := float64(roundUp(s.Length, pad))
	core := 0.0
	for _, i := range d.layers {
		core = max(core, s.localWork(i, each))
	}
	core = bytes * ub * (core + 2*h)
	mask, copies := ub*each*(bytes+2), 1.0
	if s.Parallel.PP > 1 {
		copies = 4
	}
	high := 1.5 * core
	if d.output {
		high = max(high, bytes*ub*(float64(s.Model.Vocab)+h))
	}
	return plan.Range{Low: plan.Whole(core), High: plan.Whole(high + mask*copies + float64(copied))}
}

// localWork are the numbers for a token of what is live at one time in a layer, beside
// the residual stream. each is how many tokens a request's cache has.
func (s Setup) localWork(i int, each float64) float64 {
	l := &s.Model.Layers[i]
	c := &l.Cache
	ffn := 2 * float64(l.FFN)
	if l.TopK > 0 {
		ffn = max(ffn, float64(l.TopK)*(2*float64(l.ExpertFFN)+float64(s.Model.Hidden)))
	}
	attention := float64(c.QueryWidth + c.OutputWidth + c.LinearWidths + c.Heads*(c.Key+c.Value))
	if c.Kind == model.Latent { // queries and outputs as wide as the latent vector
		attention += float64(2 * c.QueryHeads * c.Latent)
	}
	if !s.flash() && c.Kind != model.State {
		attention = float64(c.QueryHeads)*each + 3*float64(s.Model.Hidden)
	}
	return max(ffn, attention)
}

// hostBuffer returns what a pass takes in the host's memory: its input, the mask, the
// logits of each request, and what layers there compute.
func (s Setup) hostBuffer(d *holding) plan.Range {
	const bytes = 4
	ub, h := float64(s.Step), float64(s.Model.Hidden)
	each := float64(roundUp(s.Length, pad))
	work := bytes * (ub*h + ub*each + float64(s.Requests*s.Model.Vocab))
	r := plan.Range{Low: plan.Whole(work), High: plan.Whole(work)}
	if len(d.layers) > 0 {
		r = r.Plus(s.buffer(d, 0))
	}
	return r
}

// localOutside is what the driver takes on a GPU.
var localOutside = plan.Range{Low: 200 << 20, High: 600 << 20}

const localOutsideSource = "the context and the kernels of the driver; Ollama counts 457 MiB"

// spare returns what llama.cpp leaves free of each GPU where it decides what goes there
// (--fit-target).
func (s Setup) spare() int64 {
	if s.Engine.Name == engine.LlamaCPP {
		return plan.GiB
	}
	return 0
}

// holds reports whether the GPUs hold a layout with some memory to spare.
func (s Setup) holds(l *layout, spare int64) bool {
	return !slices.ContainsFunc(l.gpus, func(d holding) bool {
		return d.weights+d.kv+d.buffer.High+localOutside.High+spare > s.GPU.Total
	})
}

// layout returns what the set-up states, or what the engine does by default: all layers if
// they fit; otherwise llama.cpp keeps experts in the host's memory first; otherwise as many
// layers as fit. Ollama takes one GPU if that is enough. Sources: llama.cpp,
// common/fit.cpp; Ollama, llm/server.go.
func (s Setup) layout() layout {
	w := s.layerSizes()
	layers := int64(len(s.Model.Layers))
	if n := s.Local.Layers; n != nil {
		return s.split(&w, *n, s.Local.HostMoE)
	}
	fits := func(n, hostMoE int64) bool {
		l := s.split(&w, n, hostMoE)
		return s.holds(&l, s.spare())
	}
	hostMoE := s.Local.HostMoE
	if s.Engine.Name == engine.Ollama && s.Parallel.PP > 1 {
		one := s
		one.Parallel.PP = 1
		if l := one.split(&w, layers+1, hostMoE); one.holds(&l, 0) {
			return l
		}
	}
	if fits(layers+1, hostMoE) {
		return s.split(&w, layers+1, hostMoE)
	}
	if s.Engine.Name == engine.LlamaCPP && hostMoE == 0 && slices.Max(w.experts) > 0 {
		if fits(layers+1, layers) {
			most := plan.Largest(layers, func(n int64) bool { return fits(layers+1, layers-n) })
			return s.split(&w, layers+1, layers-most)
		}
		hostMoE = layers
	}
	return s.split(&w, plan.Largest(layers, func(n int64) bool { return fits(n, hostMoE) }), hostMoE)
}

// ownContext is the context that llama.cpp makes where none is asked for: the model's
// own, or the longest with which all layers fit, of at least 4,096 tokens. Source:
// llama.cpp, common/fit.cpp.
func (s Setup) ownContext() int64 {
	const minContext = 4096
	w := s.layerSizes()
	longest := s.Length
	n := plan.Largest(ceil(longest, pad), func(n int64) bool {
		s.Length = min(n*pad, longest)
		l := s.split(&w, math.MaxInt32, s.Local.HostMoE)
		return s.holds(&l, s.spare())
	})
	return min(max(n*pad, minContext), longest)
}

// possibleLocal refuses what llama.cpp does not take.
func (s Setup) possibleLocal() error {
	if err := s.Bounded(); err != nil {
		return err
	}
	for _, t := range []KVType{s.KV, s.Local.Values} {
		switch t.name {
		case "auto", "f16", "fp16", "bf16", "f32", "fp32":
		default:
			if !t.ggml {
				return fmt.Errorf("%s does not store keys and values as %s; f16, bf16, q8_0, q5_1, q5_0, q4_1, q4_0 and iq4_nl are known", s.Engine.Name, t.name)
			}
		}
	}
	if s.Engine.Name == engine.LlamaCPP && s.Local.Values.ggml && !s.flash() {
		return fmt.Errorf("llama.cpp stores values as %s with flash attention only", s.Local.Values.name)
	}
	if s.Offload > 0 {
		return fmt.Errorf("%s keeps whole layers in the host's memory (--gpu-layers), not a size (--cpu-offload-gb)", s.Engine.Name)
	}
	if n := s.Local.Layers; n != nil && *n < 0 {
		return fmt.Errorf("%d layers on the GPUs are not possible", *n)
	}
	return nil
}
