// Package model is the architecture of a language model as far as memory goes:
// every weight matrix with its shape, format and how an engine divides it among
// ranks, and what each layer keeps for a token. It is read from a config.json,
// from the headers of safetensors or GGUF files, or from a built-in catalog: [Parse],
// [ReadSafetensors], [ReadGGUF] and [Find] are the entry points. families.go is the one
// table of model families, config.go applies it.
//
// Sizes are bytes unless a name states otherwise; shapes count numbers.
package model

import (
	"fmt"
	"math"
	"slices"
)

// Part states how tensor parallelism divides a matrix.
type Part uint8

const (
	Whole   Part = iota // every rank has all of it
	ByOut               // rows are divided: column-parallel
	ByIn                // columns are divided: row-parallel
	ByKV                // as ByOut, but no further than there are key-value heads
	ByVocab             // as ByOut, of a number of rows that is padded first
)

// Role is what a tensor is there for.
type Role uint8

const (
	Attention Role = iota
	MLP
	Expert // one of many, of which a token goes through some
	Router
	Norm
	Embedding
	Head
	Tower // vision, audio
	Predictor
)

// Tensor is a weight matrix, or several alike.
type Tensor struct {
	Name    string // inside its layer, as in checkpoints: "self_attn.q_proj"
	Out, In int64  // rows and columns; a vector has one column
	Count   int64  // how many there are, such as experts
	Part    Part
	Role    Role
	Format  Format
	Fused   string // engines hold tensors of the same name as one
	Heads   int64  // of ByKV: the heads that can be divided
	Meta    bool   // it belongs to the quantization of another, and holds no parameters
}

// Params returns how many parameters the tensor holds.
func (t *Tensor) Params() int64 {
	if t.Meta {
		return 0
	}
	return t.Out * t.In * t.Count
}

// Bytes returns what the tensor takes on disk.
func (t *Tensor) Bytes() int64 { return t.Format.Bytes(t.Out, t.In) * t.Count }

// Kind is what a layer keeps of the tokens it has seen.
type Kind uint8

const (
	None   Kind = iota // nothing: the layer has no attention
	Full               // keys and values of every token
	Window             // keys and values of the newest tokens
	Latent             // one compressed vector of every token, as MLA
	State              // a state of constant size
	Sparse             // compressed keys of groups of tokens, as DeepSeek-V4
)

// Cache is what a layer keeps, in numbers.
type Cache struct {
	Kind         Kind
	Heads        int64 // key-value heads
	Key, Value   int64 // width of a head; Value is 0 where values are the keys
	Latent       int64 // of a token, not divided among ranks
	Rope         int64 // of Latent: what has positions, which engines keep in 16 bits beside fp8
	Index        int64 // width of the indexer's keys, 0 without one
	Window       int64 // tokens
	Ratio        int64 // tokens of a compressed group
	Conv         int64 // of a sequence: the convolution's inputs
	SSM          int64 // of a sequence: the recurrent state
	SSMBytes     int64 // of one number of it
	QueryHeads   int64
	QueryWidth   int64 // query heads times the width of a head
	OutputWidth  int64 // query heads times the width of a value
	LinearWidths int64 // linear attention: what the in-projection makes of a token
}

// Layer is one layer of the model.
type Layer struct {
	Tensors []Tensor
	Cache   Cache
	// FFN is the width of the dense part, experts that every token goes through
	// included; Experts, TopK and ExpertFFN are those that are chosen from.
	FFN, Experts, TopK, ExpertFFN int64
	// Matrices of a feed-forward part: 3 where it is gated, else 2.
	Matrices int64
}

// Rotary is a table of sines and cosines that engines keep.
type Rotary struct{ Length, Width int64 }

// Model is an architecture.
type Model struct {
	Name, Type string
	Hidden     int64
	Vocab      int64
	Context    int64 // max_position_embeddings; 0 if unknown
	Tied       bool  // lm_head is the embedding
	Width      int64 // bytes of a number that is not quantized
	Layers     []Layer
	Embedding  []Tensor
	Last       []Tensor // final norm and lm_head
	Towers     []Tensor
	Predictors []Tensor // multi-token prediction: in the files, loaded on demand
	notLoaded  []Tensor // what else the files hold, and engines do not load
	// PredictorLayers is how many layers the predictors are.
	PredictorLayers int64
	Rotary          []Rotary
	Vision          Vision
	Quant           string // the name of the format of most weights; "" if none
	KVFormat        string // the format of keys and values that the checkpoint states; "" if none
	Host            int64  // bytes of experts that are kept in the host's memory, and are not part of the layers
	copies          int64  // how often the published files hold the model
	Notes           []string
	// Unsure states what of the architecture is taken from few facts; a plan of it is
	// less reliable.
	Unsure string

	quantBits float64 // of a quantized number; 0 without a quantization
}

// Each calls f for every tensor of the model, predictors included, and the layer
// it is in; -1 is outside the layers.
func (m *Model) Each(f func(layer int, t *Tensor)) {
	group := func(list []Tensor) {
		for i := range list {
			f(-1, &list[i])
		}
	}
	group(m.Towers)
	group(m.Embedding)
	for l := range m.Layers {
		for i := range m.Layers[l].Tensors {
			f(l, &m.Layers[l].Tensors[i])
		}
	}
	group(m.Last)
	group(m.Predictors)
}

// Heads reports whether an embedding is lm_head too: of several tables that of the tokens,
// where the model has no other head. Tables of further inputs to each layer are not.
func (m *Model) Heads(t *Tensor) bool {
	return m.Tied && t.Role == Embedding && t.Part == ByVocab && !has(t.Name, "per_layer")
}

// TiedHead is the embedding that lm_head is, empty where it is a matrix of its own.
func (m *Model) TiedHead() []Tensor {
	return slices.DeleteFunc(slices.Clone(m.Embedding), func(t Tensor) bool { return !m.Heads(&t) })
}

// Params is the number of parameters, multi-token prediction left out.
func (m *Model) Params() (n int64) {
	m.Each(func(_ int, t *Tensor) {
		if t.Role != Predictor {
			n += t.Params()
		}
	})
	return n
}

// ActiveParams is the number of parameters that a token goes through: of the
// experts those that are chosen, of the embedding one row.
func (m *Model) ActiveParams() (n int64) {
	m.Each(func(l int, t *Tensor) {
		switch t.Role {
		case Predictor, Tower:
		case Expert:
			n += t.Params() / max(m.Layers[l].Experts, 1) * m.Layers[l].TopK
		case Embedding:
			if m.Heads(t) {
				n += t.Params()
			}
		default:
			n += t.Params()
		}
	})
	return n
}

// Bytes is the size of all tensors as they are stored.
func (m *Model) Bytes() (n int64) {
	m.Each(func(_ int, t *Tensor) { n += t.Bytes() })
	return n
}

// entry is the bytes of a tensor's entry in a safetensors header: its name, type,
// shape and two offsets.
const entry = 130

// CheckpointBytes is the size of the published files: the tensors and the
// headers, as often as the repository holds them.
func (m *Model) CheckpointBytes() (n int64) {
	add := func(_ int, t *Tensor) { n += t.Bytes() + entry*t.Count*max(t.Format.parts, 1) }
	m.Each(add)
	for i := range m.notLoaded {
		add(-1, &m.notLoaded[i])
	}
	return n * max(m.copies, 1)
}

// maxParameters is the largest number of parameters that is accepted; it leaves
// room for sums of bytes in 63 bits.
const maxParameters = 1 << 50

// check refuses sizes whose sums would overflow.
func (m *Model) check() error {
	var sum float64
	var err error
	m.Each(func(l int, t *Tensor) {
		n := float64(t.Out) * float64(t.In) * float64(t.Count)
		if sum += n; err == nil && (sum > maxParameters || math.IsNaN(sum) || t.Out <= 0 || t.In <= 0 || t.Count <= 0) {
			err = fmt.Errorf("tensor %s: %d × %d, %d of them, is not a plausible size", t.Name, t.Out, t.In, t.Count)
			if l >= 0 {
				err = fmt.Errorf("layer %d: %w", l, err)
			}
		}
	})
	return err
}
