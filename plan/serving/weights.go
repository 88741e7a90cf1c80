package serving

import (
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/torch/allocator"
)

// device is a driver that never runs out: it counts what it gives.
type device struct{ next uint64 }

// placed is the memory that tensors take in PyTorch's caching allocator.
type placed struct {
	Allocated int64 // blocks in use, rounding included
	Reserved  int64 // what was taken from the driver
}

// share is the size of a tensor on one rank: its numbers and the metadata of its
// quantization, in bytes. With replicas, vLLM divides only the experts among all
// ranks; SGLang replicates only the attention.
func share(t *model.Tensor, e engine.Release, p plan.Parallel) (data, meta int64) {
	out, in, count := t.Out, t.In, t.Count
	tp := p.TP
	expert := t.Role == model.Expert || t.Role == model.Predictor && t.Count > 1
	switch {
	case expert && p.EP > 1:
		count, tp = ceil(count, p.EP), max(tp/p.EP, 1)
	case expert:
	case t.Role == model.Attention || e.Name == engine.VLLM:
		tp = max(tp/p.DP, 1)
	}
	switch t.Part {
	case model.ByOut:
		out = ceil(out, tp)
	case model.ByIn:
		in = ceil(in, tp)
	case model.ByKV:
		out = ceil(out, min(tp, max(t.Heads, 1)))
	case model.ByVocab:
		out = ceil(roundUp(out, 64), tp)
	}
	if e.Name == engine.VLLM && t.Role == model.Expert && t.Format.Name == "mxfp4" {
		out, in = marlin(t.Part, out, in)
	}
	whole := t.Format.Bytes(out, in)
	data = int64(float64(out) * float64(in) * t.Format.Bits / 8)
	return data * count, (whole - data) * count
}

// marlin are the rows and columns to which vLLM's Marlin kernel for MXFP4 pads the
// matrices of experts: the intermediate size to 128, the hidden size to 256.
// Source: vLLM, quantization/mxfp4.py.
func marlin(part model.Part, out, in int64) (int64, int64) {
	if part == model.ByIn {
		return roundUp(out, 256), roundUp(in, 128)
	}
	return roundUp(out, 128), roundUp(in, 256)
}

func ceil(a, b int64) int64 { return (a + b - 1) / b }

func roundUp(a, to int64) int64 { return ceil(a, to) * to }

// device is a driver that never runs out.
func (d *device) Malloc(size int64) (uint64, bool) {
	addr := d.next
	d.next += uint64(size)
	return addr, true
}

func (d *device) Free(uint64, int64) {}

func (d *device) Reserve(int64) (addr uint64, n int64) { return 0, 0 }

func (d *device) Within(uint64, int64) bool { return true }

func (d *device) Map(uint64, int64) bool { return false }

func (d *device) Unmap(uint64, int64) {}

// loader allocates tensors in the order in which an engine makes them.
type loader struct {
	a      *allocator.Allocator
	stream allocator.Stream
	pool   allocator.Pool
	exact  int64 // bytes asked for
}

func newLoader() *loader {
	l := &loader{a: allocator.New(allocator.DefaultSettings(), 0, &device{next: 1 << 21})}
	l.stream, l.pool = l.a.Stream(0), l.a.Pool(allocator.PoolID{})
	return l
}

func (l *loader) alloc(bytes int64) {
	if bytes > 0 {
		l.exact += bytes
		l.a.Malloc(bytes, l.stream, l.pool)
	}
}

func (l *loader) placed() placed {
	s := l.a.Stats
	return placed{Allocated: s.Allocated, Reserved: s.Reserved}
}

// tensors allocates a list, those that engines fuse as one.
func (l *loader) tensors(list []model.Tensor, e engine.Release, p plan.Parallel) {
	for i := 0; i < len(list); {
		data, meta := share(&list[i], e, p)
		name := list[i].Fused
		for i++; name != "" && i < len(list) && list[i].Fused == name; i++ {
			d, m := share(&list[i], e, p)
			data, meta = data+d, meta+m
		}
		l.alloc(data)
		l.alloc(meta)
	}
}

// Stage is what one pipeline stage holds on each of its ranks.
type Stage struct {
	first, Layers int64
	Weights       placed
	copies        int64 // of Weights: what the engine keeps beside the weights
	offloaded     int64 // to the host's memory, not in Weights
}

// loadStage allocates a stage's weights as the engine does.
func (s Setup) loadStage(first, n int64) Stage {
	m, e, p := s.Model, s.Engine, s.Parallel
	l := newLoader()
	st := Stage{first: first, Layers: n}
	begin, end := first == 0, first+n == int64(len(m.Layers))
	if begin {
		l.tensors(m.Embedding, e, p)
	}
	for i := first; i < first+n; i++ {
		l.tensors(m.Layers[i].Tensors, e, p)
		if i == first {
			for _, r := range m.Rotary {
				l.alloc(r.Length * r.Width * 2)
			}
		}
		if c := absorbed(&m.Layers[i], m, e, p); c > 0 {
			l.alloc(c)
			st.copies += c
		}
	}
	if end {
		if !begin {
			l.tensors(m.TiedHead(), e, p)
		}
		l.tensors(m.Last, e, p)
		if s.Draft {
			l.tensors(m.Predictors, e, p)
		}
	}
	l.tensors(m.Towers, e, p)
	st.Weights = l.placed()
	st.offloaded = min(s.Offload, st.Weights.Allocated)
	st.Weights.Allocated -= st.offloaded
	st.Weights.Reserved -= st.offloaded
	return st
}

// absorbed returns what engines keep of MLA's up-projection beside the weight itself:
// its two halves in 16 bits, for decoding. Until 0.7 vLLM kept the products with
// the query's and the output's projections instead, in the format of the weights.
// Source: vLLM, attention/backends/mla/common.py of 0.7.2 and 0.8.
func absorbed(l *model.Layer, m *model.Model, e engine.Release, p plan.Parallel) int64 {
	c := l.Cache
	if c.Kind != model.Latent {
		return 0
	}
	heads := ceil(c.QueryHeads, max(p.TP/p.DP, 1))
	rope := c.QueryWidth/c.QueryHeads - c.Key
	rank := c.Latent - rope
	if e.Name == engine.VLLM && !e.Has(engine.OwnWeightsMLA) {
		width := m.Width
		for i := range l.Tensors {
			if t := &l.Tensors[i]; t.Name == "self_attn.kv_b_proj" && t.Format.Bits == 8 {
				width = 1
			}
		}
		qRank := m.Hidden
		for i := range l.Tensors {
			if t := &l.Tensors[i]; t.Name == "self_attn.q_b_proj" {
				qRank = t.In
			}
		}
		return (qRank*heads*rank+heads*rank*m.Hidden)*width + qRank*heads*rope*m.Width
	}
	return heads * (c.Key + c.Value) * rank * 2
}

// loadStages are all stages of a model.
func (s Setup) loadStages() (out []Stage) {
	first := int64(0)
	for _, n := range s.Parallel.Layers(int64(len(s.Model.Layers))) {
		out = append(out, s.loadStage(first, n))
		first += n
	}
	return out
}
