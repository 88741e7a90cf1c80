package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// layerCount returns how many layers the config states.
func (b *builder) layerCount() int64 {
	return b.text.whole(0, 1, maxLayers, "decoder_layers", "num_hidden_layers", "n_layer", "num_layers", "n_layers")
}

// mixer is the part of a layer by which tokens see others.
type mixer uint8

const (
	undecided mixer = iota // the config decides
	noMixer
	fullAttention
	windowAttention
	latentAttention
	sparseAttention
	linearAttention // of the family's kind
	bothWays        // attention to all tokens, of which nothing is kept
	mamba1
	mamba2
	shortConvolution
	oneMatrix // in place of attention
)

// ffn is the other part of a layer.
type ffn uint8

const (
	noFFN ffn = iota
	denseFFN
	expertFFN // of experts
	replacedFFN
)

// layerKind is what one layer is made of.
type layerKind struct {
	mixer mixer
	ffn   ffn
	kv    int64 // key-value heads, where the layer has its own number
	width int64 // of the dense part, where the layer has its own
}

// Kinds that families share.
var (
	fullDense   = layerKind{mixer: fullAttention, ffn: denseFFN}
	windowDense = layerKind{mixer: windowAttention, ffn: denseFFN}
	latentDense = layerKind{mixer: latentAttention, ffn: denseFFN}
	linearDense = layerKind{mixer: linearAttention, ffn: denseFFN}
	fullAlone   = layerKind{mixer: fullAttention}
	mambaAlone  = layerKind{mixer: mamba2}
	denseAlone  = layerKind{mixer: noMixer, ffn: denseFFN}
	expertAlone = layerKind{mixer: noMixer, ffn: expertFFN}
)

func (b *builder) layerKinds() []layerKind {
	t := b.text
	if b.family.kinds != nil {
		return b.family.kinds(b)
	}
	if p := t.text("hybrid_override_pattern"); p != "" {
		if len(p) > maxLayers {
			t.fail("hybrid_override_pattern", "has %d layers", len(p))
			return nil
		}
		return b.listed("hybrid_override_pattern", strings.Split(strings.ReplaceAll(p, "|", ""), ""), func(letter string) string { return strconv.QuoteRune([]rune(letter)[0]) })
	}
	if l := t.texts("layers_block_type"); len(l) > 0 {
		return b.listed("layers_block_type", l, func(word string) string { return shown(word) })
	}
	n := b.layerCount()
	kinds := make([]layerKind, n)
	types := t.texts("layer_types")
	for _, name := range []string{"layer_types", "mlp_layer_types", "compress_ratios", "hybrid_layer_pattern"} {
		b.covers(name, n)
	}
	if t.whole(0, 0, maxLayers, "first_k_dense_replace") > n {
		t.fail("first_k_dense_replace", "is more than the %d layers", n)
	}
	if *b.f.err != nil {
		return nil
	}
	swa := t.integers("hybrid_layer_pattern", 0, 1)
	for i := range kinds {
		kinds[i] = layerKind{mixer: b.mixerOf(int64(i), n, types, swa), ffn: b.ffnOf(int64(i))}
	}
	return kinds
}

// covers refuses a list that leaves out layers. Longer ones name the layers of
// multi-token prediction, too.
func (b *builder) covers(name string, layers int64) {
	if list := b.text.list(name); len(list) > 0 && int64(len(list)) < layers {
		b.text.fail(name, "has %d entries for %d layers", len(list), layers)
	}
}

// blocks reads the layers of NVIDIA's searched architectures (DeciLM), each of which
// may have a different shape.
func (b *builder) blocks() (kinds []layerKind) {
	list := b.text.list("block_configs")
	if len(list) == 0 {
		b.missing(b.text, "block_configs")
	}
	if len(list) > maxLayers {
		b.text.fail("block_configs", "has %d layers", len(list))
	}
	for i, v := range list {
		of, ok := v.(map[string]any)
		if !ok {
			b.text.fail("block_configs", "%s is not an object", shown(v))
		}
		if *b.f.err != nil {
			return nil
		}
		f := fields{of, fmt.Sprintf("%sblock_configs[%d].", b.text.path, i), b.f.err}
		k := layerKind{mixer: fullAttention, ffn: denseFFN}
		attention, ffn := f.object("attention"), f.object("ffn")
		switch group := attention.whole(0, 1, maxHeads, "n_heads_in_group"); {
		case attention.flag(false, "no_op"):
			k.mixer = noMixer
		case attention.flag(false, "replace_with_linear"):
			k.mixer = oneMatrix
		case group == 0 || b.heads%group != 0:
			attention.fail("n_heads_in_group", "%d does not divide %d heads", group, b.heads)
		default:
			k.kv = b.heads / group
		}
		switch mult := ffn.number(0, 0, 64, "ffn_mult"); {
		case ffn.flag(false, "no_op"):
			k.ffn = noFFN
		case ffn.flag(false, "replace_with_linear"):
			k.ffn = replacedFFN
		case mult == 0:
			ffn.fail("ffn_mult", "is missing or 0")
		default: // two thirds, in whole steps of 256
			k.width = ceil(int64(2*mult*float64(b.hidden)/3), 256) * 256
		}
		kinds = append(kinds, k)
	}
	return kinds
}

// spelled are the layers of a pattern with a letter for each, or of a list of names.
var spelled = map[string]layerKind{
	"M": mambaAlone, "*": fullAlone, "-": denseAlone, "E": expertAlone,
	"mamba": mambaAlone, "mamba2": mambaAlone, "attention": fullAlone, "mlp": denseAlone, "moe": expertAlone,
}

// listed reads the layers of a field in such words; shown is how an error shows one.
func (b *builder) listed(name string, words []string, shown func(word string) string) (kinds []layerKind) {
	for _, word := range words {
		k, ok := spelled[word]
		if !ok {
			b.text.fail(name, "%s is not a known kind of layer", shown(word))
			return nil
		}
		kinds = append(kinds, k)
	}
	return b.counted(name, kinds)
}

// counted refuses a list of layers that num_hidden_layers contradicts, and one with
// experts that the config does not know.
func (b *builder) counted(name string, kinds []layerKind) []layerKind {
	if n := b.text.whole(int64(len(kinds)), 1, maxLayers, "num_hidden_layers"); n != int64(len(kinds)) {
		b.text.fail(name, "has %d layers, and num_hidden_layers is %d", len(kinds), n)
	}
	if b.experts() == 0 && slices.ContainsFunc(kinds, func(k layerKind) bool { return k.ffn == expertFFN }) {
		b.missing(b.text, "n_routed_experts")
	}
	return kinds
}

func (b *builder) mixerOf(i, n int64, types []string, swa []int64) mixer {
	t := b.text
	if b.family.mixer != nil {
		if kind := b.family.mixer(b, i); kind != undecided {
			return kind
		}
	}
	switch {
	case t.has("compress_ratios"):
		return sparseAttention
	case t.has("kv_lora_rank"):
		return latentAttention
	case int64(len(types)) >= n && n > 0:
		switch types[i] {
		case "linear_attention":
			return linearAttention
		case "sliding_attention", "chunked_attention":
			return windowAttention
		case "full_attention", "attention", "global":
			return fullAttention
		case "mamba":
			return mamba2
		case "conv":
			return shortConvolution
		}
		t.fail("layer_types", "%s is not a known kind of layer", shown(types[i]))
		return fullAttention
	case int64(len(swa)) >= n && n > 0 && swa[i] == 1:
		return windowAttention
	case int64(len(swa)) >= n && n > 0:
		return fullAttention
	}
	if every := t.whole(0, 1, maxLayers, "full_attention_interval"); every > 0 {
		if (i+1)%every == 0 {
			return fullAttention
		}
		return linearAttention
	}
	if b.windowed(i) {
		return windowAttention
	}
	return fullAttention
}

// windowed reports whether a layer sees a window only, where no list states so.
func (b *builder) windowed(i int64) bool {
	t := b.text
	if t.whole(0, 0, maxContext, b.family.window()) == 0 {
		return false
	}
	if marks, ok := t.of["sliding_window_pattern"].(string); ok && marks != "" { // EXAONE 4 has "LLLG"
		return marks[i%int64(len(marks))] != 'G'
	}
	switch every := t.whole(0, 1, maxLayers, "sliding_window_pattern", "_sliding_window_pattern"); {
	case every > 0:
		return (i+1)%every != 0
	case b.family.windowed != nil:
		return b.family.windowed(i)
	case !t.flag(!b.family.windowOff, "use_sliding_window"):
		return false
	}
	return i >= t.whole(0, 0, maxLayers, "max_window_layers")
}

// experts returns how many experts a layer of a mixture has, 0 for a dense model.
func (b *builder) experts() (sum int64) {
	for _, n := range b.modalities("moe_num_experts", maxExperts) {
		sum += n
	}
	if sum > 0 {
		return min(sum, maxExperts)
	}
	return b.text.whole(0, 0, maxExperts, "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
}

// modalities is a field with a number for text and one for images, as ERNIE 4.5 VL's
// experts have; empty for any other.
func (b *builder) modalities(name string, high int64) []int64 {
	if _, list := b.text.of["moe_num_experts"].([]any); !list {
		return nil
	}
	return b.text.integers(name, 0, high)
}

func (b *builder) ffnOf(i int64) ffn {
	t := b.text
	if b.experts() == 0 || b.experts() == 1 && t.has("expert_layer_period") {
		return denseFFN
	}
	if period := t.whole(0, 1, maxLayers, "expert_layer_period"); period > 0 && i%period != t.whole(0, 0, maxLayers, "expert_layer_offset") {
		return denseFFN
	}
	if enum, ok := t.of["moe_layers_enum"].(string); ok { // Step 3.5 has "3,4,5,…"
		if !slices.Contains(strings.Split(enum, ","), strconv.FormatInt(i, 10)) {
			return denseFFN
		}
		return expertFFN
	}
	if types := t.texts("mlp_layer_types"); int64(len(types)) > i {
		switch types[i] {
		case "dense":
			return denseFFN
		case "sparse", "moe", "hash_moe":
		default:
			t.fail("mlp_layer_types", "%s is not a known kind of layer", shown(types[i]))
		}
		return expertFFN
	}
	if i < t.each(0, 0, 0, maxLayers, "first_k_dense_replace", "moe_layer_start_index", "num_dense_layers") {
		return denseFFN
	}
	if last := t.each(0, -1, -1, maxLayers, "moe_layer_end_index"); last >= 0 && i > last {
		return denseFFN
	}
	if list, ok := t.of["moe_layer_freq"].([]any); ok {
		if int64(len(list)) <= i {
			t.fail("moe_layer_freq", "has %d entries for more layers", len(list))
		} else if t.integers("moe_layer_freq", 0, 1)[i] == 0 {
			return denseFFN
		}
		return expertFFN
	}
	if every := t.whole(1, 1, maxLayers, "moe_layer_freq"); i%every != 0 {
		return denseFFN
	}
	if every := t.whole(1, 1, maxLayers, "interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval"); (i+1)%every != 0 {
		return denseFFN
	}
	for _, l := range t.integers("mlp_only_layers", 0, maxLayers) {
		if l == i {
			return denseFFN
		}
	}
	return expertFFN
}
