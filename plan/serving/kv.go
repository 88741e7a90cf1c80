package serving

import (
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
)

// KVType is how keys and values are stored.
type KVType struct {
	name  string
	bytes float64 // of a number
	// perHead are further bytes of a head of a token, for keys and for values each.
	perHead float64
	ggml    bool // one of llama.cpp's quantized types
}

// ggmlTypes are the bytes of a number in llama.cpp's quantized types, scales included.
var ggmlTypes = map[string]float64{
	"q8_0": 34.0 / 32, "q5_1": 24.0 / 32, "q5_0": 22.0 / 32, "q4_1": 20.0 / 32, "q4_0": 18.0 / 32, "iq4_nl": 18.0 / 32,
}

// ParseKV reads the name of a type as the engines take it; "" and auto are the
// model's own.
func ParseKV(name string, m *model.Model) (KVType, bool) {
	switch name {
	case "", "auto", "model":
		return KVType{name: "auto", bytes: float64(min(m.Width, 2))}, true
	case "bf16", "bfloat16", "fp16", "float16", "half", "f16":
		return KVType{name: name, bytes: 2}, true
	case "fp32", "float32", "f32":
		return KVType{name: name, bytes: 4}, true
	case "fp8", "fp8_e4m3", "fp8_e5m2", "fp8_ds_mla", "int8":
		return KVType{name: name, bytes: 1}, true
	case "int8_per_token_head", "fp8_per_token_head":
		return KVType{name: name, bytes: 1, perHead: 4}, true
	case "nvfp4", "fp4", "fp4_e2m1":
		return KVType{name: name, bytes: 9.0 / 16}, true
	}
	n, ok := ggmlTypes[name]
	return KVType{name: name, bytes: n, ggml: true}, ok
}

// layerToken returns what a layer keeps of a token, in bytes on one rank; state layers
// keep nothing of a token. Sources: GQA, arXiv 2305.13245; MLA, arXiv 2405.04434,
// section 2.1.2; the packed fp8 form of MLA (512 fp8, 4 fp32 scales, 64 bf16) is
// vLLM's fp8_ds_mla.
func layerToken(c model.Cache, t KVType, p plan.Parallel) float64 {
	tp := max(p.TP/p.DP, 1)
	switch c.Kind {
	case model.Full, model.Window:
		heads := float64(ceil(c.Heads, min(tp, max(c.Heads, 1))))
		n := heads * (float64(c.Key+c.Value)*t.bytes + 2*t.perHead)
		return n
	case model.Latent:
		n := float64(c.Latent) * t.bytes
		if t.name == "fp8_ds_mla" {
			n = 656
		}
		return n + indexBytes(c.Index)
	}
	return 0
}

// indexBytes are the indexer's keys of a token in fp8, with a fp32 scale for 128.
func indexBytes(width int64) float64 {
	return float64(width) + 4*float64(ceil(width, 128))
}

// kvCell is what a rank keeps of one token of a long sequence, by kind of layer,
// in bytes.
type kvCell struct {
	full   float64 // of every token
	window float64 // of a token inside the window
	state  float64 // of a sequence, whatever its length
	size   int64   // the longest window, tokens
}

func cellOf(layers []model.Layer, t KVType, e engine.Release, p plan.Parallel) (k kvCell) {
	tp := float64(max(p.TP/p.DP, 1))
	for i := range layers {
		c := layers[i].Cache
		n := layerToken(c, t, p) / float64(p.CP)
		switch c.Kind {
		case model.Window:
			k.window += n
			k.size = max(k.size, c.Window)
		case model.State:
			k.state += (float64(c.Conv)*2 + float64(c.SSM*c.SSMBytes)) / tp
		case model.Sparse:
			k = k.plus(sparseOf(c, e), 1/float64(p.CP))
		default:
			k.full += n
		}
	}
	return k
}

// plus adds a part of what another cell keeps.
func (k kvCell) plus(o kvCell, part float64) kvCell {
	return kvCell{k.full + part*o.full, k.window + part*o.window, k.state + part*o.state, max(k.size, o.size)}
}

// sparseOf returns what a layer of DeepSeek-V4 keeps on a rank: a key of every group of
// tokens and of every token in the window, in fp8 with the rotary part in 16 bits
// and 8 bytes of scales; the indexer's keys; and what its compressors have not
// compressed yet, a key and a weight in fp32 for each token of a group, twice where
// groups overlap. vLLM keeps the window and the compressors' part of each sequence.
// SGLang makes their pools a tenth of the tokens, whatever the sequences. Sources:
// SGLang, srt/model_executor/pool_configurator.py, DSV4PoolConfigurator; vLLM,
// models/deepseek_v4/compressor.py.
func sparseOf(c model.Cache, e engine.Release) kvCell {
	const scales, fp32 = 8, 4
	entry := float64(c.Latent + c.Rope + scales)
	k := kvCell{window: entry, size: c.Window}
	if c.Ratio > 0 {
		k.full = (entry + indexBytes(c.Index)) / float64(c.Ratio)
		overlap := int64(1)
		if c.Index > 0 {
			overlap = 2
		}
		group, width := overlap*c.Ratio, overlap*(c.Latent+c.Index)
		k.state = float64(group * width * 2 * fp32)
	}
	if e.Name == engine.SGLang {
		const pools = 0.1 // swa_full_tokens_ratio of these models
		k = kvCell{full: k.full + pools*(k.window+k.state/float64(max(c.Window, 1)))}
	}
	return k
}

// sequence returns what a sequence of n tokens takes. What an engine keeps of a window
// is the window and the tokens of one step, in whole blocks and one more.
func (k kvCell) sequence(n, step, block int64) float64 {
	kept := n
	if k.size > 0 {
		kept = min(n, roundUp(k.size-1+step, block)+block)
	}
	return k.full*float64(roundUp(n, block)) + k.window*float64(kept) + k.state
}

// unwindowed is the cell where layers with a window keep every token, too.
func (k kvCell) unwindowed() kvCell {
	return kvCell{full: k.full + k.window, state: k.state}
}

// hybrid reports whether layers differ in what they keep.
func (k kvCell) hybrid() bool { return k.window > 0 || k.state > 0 }

// KVDoubt returns why the tokens that an engine logs need not follow from its KV size,
// or nothing.
func (s Setup) KVDoubt() string {
	k := s.widest()
	switch {
	case s.Engine.V0 && s.Parallel.TP*s.Parallel.PP > 1:
		return "this engine logs the KV size of each worker and takes the tokens of the smallest. The size may be another worker's"
	case k.state > 0 || k.window > 0:
		return "layers keep different parts of a token: the number that engines print is no capacity"
	}
	return ""
}

// cells returns what each pipeline stage keeps of a token.
func (s Setup) cells() (out []kvCell) {
	first := int64(0)
	for _, n := range s.Parallel.Layers(int64(len(s.Model.Layers))) {
		k := cellOf(s.Model.Layers[first:first+n], s.KV, s.Engine, s.Parallel)
		if s.windows() && !s.keepsWindows() {
			k = k.unwindowed()
		}
		out = append(out, k)
		first += n
	}
	if s.Engine.Name == engine.SGLang && s.hasKind(model.Sparse) && !s.Draft { // it counts the draft's window in any case
		c := s.Model.Layers[len(s.Model.Layers)-1].Cache
		c.Ratio, c.Index = 0, 0
		out[len(out)-1] = out[len(out)-1].plus(sparseOf(c, s.Engine), float64(s.Model.PredictorLayers))
	}
	if s.Draft { // a layer as the last one
		last := len(s.Model.Layers) - 1
		draft := cellOf(s.Model.Layers[last:], s.KV, s.Engine, s.Parallel)
		n := float64(s.Model.PredictorLayers)
		out[len(out)-1].full += n * draft.full
		out[len(out)-1].window += n * draft.window
	}
	return out
}
