package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
)

// Stored is a tensor as a file's header names it.
type Stored struct {
	Name  string
	Type  string // of its numbers, as the file calls it: "BF16", "Q4_K"
	Shape []int64
	Bytes int64
}

var filePart = lazyregexp.New(`^(.*-)\d{5}(-of-(\d{5})\.(?i:gguf|safetensors))$`)

// FileParts are the names of all files of which one is a part, in their order. Those
// of a model that is split are called NAME-00001-of-00003.gguf.
func FileParts(name string) []string {
	m := filePart.FindStringSubmatch(name)
	if m == nil {
		return []string{name}
	}
	n, _ := strconv.Atoi(m[3])
	const maxFiles = 1 << 10
	if n < 2 || n > maxFiles {
		return []string{name}
	}
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%05d%s", m[1], i+1, m[2]))
	}
	return out
}

// Hold takes the weights as files hold them instead of those that were
// counted from the config, which still states what the layers are. Where both
// agree to a thousandth, the counted ones stay: they know how engines fuse, pad and
// divide them.
func (m *Model) Hold(list []Stored) error {
	if len(list) == 0 {
		return nil
	}
	m.copies = 1
	var sum float64
	for i := range list {
		sum += float64(list[i].Bytes)
	}
	const agree = 0.001
	if counted := float64(m.Bytes()); m.Unsure == "" && math.Abs(sum-counted) <= agree*counted {
		return nil
	}
	own := make([][]Tensor, len(m.Layers))
	m.Towers, m.Embedding, m.Last, m.Predictors = nil, nil, nil, nil
	var total int64
	headed, beyond := false, -1
	for i := range list {
		s := &list[i]
		if s.Bytes < 0 || s.Bytes > 1<<52 {
			return fmt.Errorf("tensor %s: %d bytes is not a size that a tensor can have", shown(s.Name), s.Bytes)
		}
		if total += s.Bytes; total > 1<<52 {
			return fmt.Errorf("tensor %s: the sum of all sizes exceeds any model", shown(s.Name))
		}
		layer, t := m.place(s)
		switch {
		case t.Role == Tower:
			m.Towers = append(m.Towers, t)
		case layer >= len(m.Layers):
			beyond = max(beyond, layer)
			t.Role = Predictor
			fallthrough
		case t.Role == Predictor:
			m.Predictors = append(m.Predictors, t)
		case layer >= 0:
			own[layer] = append(own[layer], t)
		case t.Role == Embedding:
			m.Embedding = append(m.Embedding, t)
		default:
			headed = headed || t.Role == Head
			m.Last = append(m.Last, t)
		}
	}
	if err := m.missingLayer(own); err != nil {
		return err
	}
	for i := range own {
		sorts.StableBy(own[i], func(a, b Tensor) int { return cmp.Compare(creationOrder(&a), creationOrder(&b)) })
		m.Layers[i].Tensors = own[i]
	}
	if beyond >= 0 && m.PredictorLayers == 0 {
		m.Notes = append(m.Notes, fmt.Sprintf("the files hold layers up to %d, the config has %d. The others are assumed to be multi-token prediction, which is not loaded", beyond, len(m.Layers)))
	}
	m.Tied = !headed
	m.Unsure = ""
	return nil
}

// missingLayer refuses files that hold some layers and not others.
func (m *Model) missingLayer(own [][]Tensor) error {
	first := slices.IndexFunc(own, func(list []Tensor) bool { return len(list) > 0 })
	for i := range own {
		if first >= 0 && len(own[i]) == 0 && len(m.Layers[i].Tensors) > 0 {
			return fmt.Errorf("the files hold layer %d and nothing of layer %d; the config has %d", first, i, len(m.Layers))
		}
	}
	return nil
}

var layerOf = lazyregexp.New(`(?:^|\.)(?:layers|h|blocks|blk)\.(\d{1,6})\.`)

// place is the layer of a stored tensor, -1 outside of all, and what it is.
func (m *Model) place(s *Stored) (int, Tensor) {
	layer := -1
	inner := s.Name
	if at := layerOf.FindStringSubmatchIndex(s.Name); at != nil {
		layer, _ = strconv.Atoi(s.Name[at[2]:at[3]])
		inner = s.Name[at[1]:]
	}
	t := Tensor{Name: strings.TrimSuffix(inner, ".weight"), Count: 1, Out: 1, In: 1}
	for i, n := range s.Shape {
		if i == 0 {
			t.Out = n
		} else {
			t.In *= n
		}
	}
	t.Role, t.Part, t.Fused = m.meaning(s.Name, inner, layer)
	if t.Part == ByKV {
		t.Heads = 1
		if layer >= 0 && layer < len(m.Layers) {
			t.Heads = max(m.Layers[layer].Cache.Heads, 1)
		}
	}
	t.Meta = metadata(inner)
	t.Format = Format{Name: strings.ToLower(s.Type), Bits: 16}
	// A shape may be of packed numbers: the bytes are what counts.
	if n := t.Out * t.In; n > 0 {
		t.Format.Bits = 8 * float64(s.Bytes) / float64(n)
	} else {
		t.Out, t.In, t.Format.Bits = 1, 1, 8*float64(s.Bytes)
	}
	if packed := m.packing(s, &t); packed > 1 {
		t.In, t.Format.Bits = t.In*packed, t.Format.Bits/float64(packed)
	}
	return layer, t
}

// packing returns how many weights one number of a packed tensor holds, else 1.
func (m *Model) packing(s *Stored, t *Tensor) int64 {
	width := map[string]int64{"I32": 32, "U8": 8, "I8": 8}[s.Type]
	if width == 0 || t.Meta || m.quantBits == 0 {
		return 1
	}
	return max(width/int64(m.quantBits), 1)
}

// metadata reports whether a tensor belongs to the quantization of another.
func metadata(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	for _, word := range []string{"scale", "zeros", "g_idx", "absmax", "quant_map", "quant_state", "weight_shape", "_amax"} {
		if strings.Contains(last, word) {
			return true
		}
	}
	return false
}

func has(name string, words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(name, w) })
}

// meaning returns what a tensor is for, by the names of transformers and llama.cpp.
func (m *Model) meaning(name, inner string, layer int) (role Role, part Part, fused string) {
	switch {
	case has(name, "visual.", "vision", "audio", "mm_projector", "multi_modal_projector", "v.blk.", "mm."):
		return Tower, Whole, ""
	case strings.HasPrefix(name, "mtp.") || has(name, ".mtp.", "nextn"):
		return Predictor, Whole, ""
	case layer < 0 && has(name, "embed_tokens", "token_embd", "wte", "tok_embeddings", "wpe", "embedding"):
		return Embedding, ByVocab, ""
	case layer < 0 && has(name, "lm_head", "output.weight") && !has(name, "norm"):
		return Head, ByVocab, ""
	case has(inner, "norm", "bias", "sinks", "A_log", "ssm_a", "ssm_d", "dt_", "conv1d"):
		return Norm, Whole, ""
	case has(inner, "shared_expert_gate", "gate_inp", "mlp.gate.", "router", "block_sparse_moe.gate."):
		return Router, Whole, ""
	case has(inner, "experts.", "_exps", "experts_") && !has(inner, "shared_expert", "shexp"):
		role = Expert
	case has(inner, "attn", "attention", "mixer.", "ssm_"):
		role = Attention
	default:
		role = MLP
	}
	switch {
	case has(inner, "q_a_proj", "kv_a_proj", "indexer", "q_a.", "kv_a_mqa"):
		part = Whole
	case has(inner, "q_proj", "attn_q.", "q_b_proj"):
		part, fused = ByOut, "qkv"
	case has(inner, "k_proj", "v_proj", "attn_k.", "attn_v."):
		part, fused = ByKV, "qkv"
	case has(inner, "o_proj", "out_proj", "down_proj", "attn_output", "ffn_down", ".w2.", "c_proj", "o_b_proj"):
		part = ByIn
	case has(inner, "gate_proj", "up_proj", "ffn_gate", "ffn_up", ".w1.", ".w3."):
		part, fused = ByOut, "gate_up"
	default:
		part = ByOut
	}
	if role == Expert || metadata(inner) || has(inner, "q_b_proj") {
		fused = ""
	}
	return role, part, fused
}

// creationOrder is the order in which engines make the tensors of a layer.
func creationOrder(t *Tensor) int {
	order := map[Role]int{Attention: 0, Router: 2, Expert: 3, MLP: 4, Norm: 5}[t.Role] * 4
	switch {
	case t.Part == ByIn:
		return order + 3
	case t.Meta:
		return order + 2
	case t.Part == ByKV:
		return order + 1
	}
	return order
}
