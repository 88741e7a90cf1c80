package model

import (
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Bounds of what is taken for a model; they keep products within an int64.
const (
	maxHidden  = 1 << 20
	maxHeads   = 1 << 14
	maxHeadDim = 1 << 16
	maxFFN     = 1 << 22
	maxVocab   = 1 << 26
	maxLayers  = 1 << 12
	maxExperts = 1 << 14
	maxContext = 1 << 32
	// mostMatches is how many patterns of a quantisation, times layers, are tried.
	mostMatches = 1 << 17
)

// Parse reads a config.json. Quant, if not empty, names a format that the weights
// have in the place of what the file says ("bf16", "fp8", "awq-int4", …).
func Parse(name string, data []byte, quant string) (*Model, error) {
	f, err := parseFields(data)
	if err != nil {
		return nil, err
	}
	return read(name, f, quant)
}

func read(name string, f fields, quant string) (*Model, error) {
	b := builder{f: f, text: f, m: &Model{Name: name, Copies: 1}}
	b.build(quant)
	if *f.err != nil {
		return nil, *f.err
	}
	if err := b.m.check(); err != nil {
		return nil, err
	}
	return b.m, nil
}

// builder makes a model of the fields of a config.
type builder struct {
	f, text fields // the whole config, and what it says of the language model
	m       *Model
	kind    string // model_type of the language model
	q       quant
	full    Format

	assumptions []string // "name (value)" of fields that are not there

	hidden, heads, kv, dim, vdim, ffn int64
	bias, qkNorm, qkFull, outGate     bool
	matrices                          int64
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func (b *builder) note(format string, args ...any) {
	b.m.Notes = append(b.m.Notes, fmt.Sprintf(format, args...))
}

// assumed is the first of some fields of the language model that is there, or def,
// of which the answer then says that it was assumed.
func (b *builder) assumed(f fields, def, low, high int64, names ...string) int64 {
	if !slices.ContainsFunc(names, f.has) {
		if text := fmt.Sprintf("%s%s (%d)", f.path, names[0], def); !slices.Contains(b.assumptions, text) {
			b.assumptions = append(b.assumptions, text)
		}
	}
	return f.whole(def, low, high, names...)
}

func (b *builder) unsure(why string) {
	if b.m.Unsure == "" {
		b.m.Unsure = why
	}
}

func (b *builder) is(kinds ...string) bool {
	for _, k := range kinds {
		if strings.HasPrefix(b.kind, k) {
			return true
		}
	}
	return false
}

// known are the types, or their beginnings, whose parts are known.
var known = []string{
	"llama", "mistral", "mixtral", "ministral", "qwen", "gemma", "phi", "deepseek", "kimi", "glm", "chatglm", "gpt2", "gptj", "gpt_neox", "gpt_oss",
	"gpt_bigcode", "minimax", "mimo", "nemotron", "olmo", "opt", "falcon", "bloom", "cohere", "starcoder2", "internlm2", "granite", "step3", "pixtral", "deci",
	"ernie4_5", "seed_oss", "exaone4", "smollm3", "bailing_moe", "hunyuan", "apertus", "voxtral",
}

// contextFields are the names of the longest context. Source: vLLM, config/model.py,
// _get_and_verify_max_len.
var contextFields = []string{"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "max_sequence_length", "max_seq_length", "seq_len"}

func (b *builder) build(quantName string) {
	if b.f.has("thinker_config") { // engines load what understands, and not what speaks
		b.f = b.f.object("thinker_config")
		b.text = b.f
		b.unsure("the thinker alone is planned; files hold the talker, too")
	}
	for _, inner := range []string{"text_config", "llm_config", "language_config"} {
		if b.f.has(inner) {
			b.text = b.f.object(inner)
			break
		}
	}
	t := b.text
	b.m.Type = b.f.text("model_type")
	if b.kind = t.text("model_type"); b.kind == "" {
		b.kind = b.m.Type
	}
	if !b.is(known...) {
		b.unsure(fmt.Sprintf("models of type %s are not known here; the usual parts are counted, as of a Llama", shown(b.kind)))
	}
	b.readFormat(quantName)
	if b.m.Hidden = t.whole(0, 1, maxHidden, "hidden_size", "n_embd", "d_model"); b.m.Hidden == 0 {
		b.missing(t, "hidden_size")
		return
	}
	b.hidden = b.m.Hidden
	b.readVocab()
	b.m.Context = t.whole(0, 1, maxContext, contextFields...)
	b.readAttention()
	kinds := b.layerKinds()
	if *b.f.err != nil {
		return
	}
	if len(kinds) == 0 {
		b.missing(t, "num_hidden_layers")
		return
	}
	if n := b.q.patterns() * len(kinds); n > mostMatches {
		b.f.fail("quantization_config", "%d patterns for %d layers are more than any model has", b.q.patterns(), len(kinds))
		return
	}
	for i, k := range kinds {
		b.m.Layers = append(b.m.Layers, b.layer(i, k))
		if *b.f.err != nil {
			return
		}
	}
	b.ends()
	b.predictors(len(kinds))
	b.towers()
	b.rotary(kinds)
	if len(b.assumptions) > 0 {
		b.note("the config does not say %s; what stands in brackets is assumed", strings.Join(b.assumptions, ", "))
	}
	if b.is("gpt_oss") {
		b.m.Copies = 2
		b.note("the published repository holds the weights twice, in the main folder and in original/; the size on disk counts both")
	}
}

func (b *builder) missing(f fields, name string) {
	if *f.err == nil {
		*f.err = fmt.Errorf("field %s%s is missing", f.path, name)
	}
}

// readFormat reads the type of the numbers and the quantisation.
func (b *builder) readFormat(quantName string) {
	b.readDtype()
	for _, f := range []fields{b.f, b.text} {
		if f.has("quantization_config") && !b.q.on {
			b.q = readQuant(f.object("quantization_config"))
		}
	}
	if b.q.assumed != "" {
		b.note("%s", b.q.assumed)
	}
	if b.q.on && b.q.base.Bits == 0 {
		b.q = quant{}
		b.note("quantization_config quantises no weights")
	}
	if b.full.Bits == 8 && !b.q.on {
		b.f.fail("quantization_config", "is missing, and dtype says numbers of 8 bits")
	}
	b.full.Bits = max(b.full.Bits, 16)
	if quantName == "" {
		quantName = b.nameQuant()
	}
	switch named, ok := quantNamed(quantName); {
	case quantName == "":
	case oneOf(quantName, "bf16", "fp16"):
		b.q, b.full = quant{}, BF16
	case oneOf(quantName, "fp32"):
		b.q, b.full = quant{}, FP32
	case !ok:
		b.f.fail("quantization", "%s is no format that is known", shown(quantName))
	case b.q.on && sameFamily(b.q, named):
	default:
		named.ignored = patterns{}
		if named.base.Name == "fp8" && b.is("llama") && len(named.only) > 0 {
			named.ignoreEnds = true
		}
		b.q = named
	}
	b.m.Width = int64(b.full.Bits / 8)
	b.m.Quant = b.q.base.Name
	if b.q.on {
		b.m.quantBits = b.q.base.Bits
	}
}

// dtypes are the types of numbers that configs name.
var dtypes = map[string]Format{"bfloat16": BF16, "float16": BF16, "half": BF16, "float32": FP32, "float": FP32, "float8_e4m3fn": {Name: "bf16", Bits: 8}}

// readDtype reads the type of the numbers that are not quantised. dtype is the newer
// name of torch_dtype; the language model's own wins.
func (b *builder) readDtype() {
	b.full = BF16
	for _, f := range []fields{b.text, b.f} {
		said := ""
		for _, name := range []string{"dtype", "torch_dtype"} {
			text := strings.TrimPrefix(f.text(name), "torch.")
			if text == "" {
				continue
			}
			form, ok := dtypes[text]
			if !ok {
				f.fail(name, "%s is not known", shown(text))
			}
			if said != "" && form.Bits != b.full.Bits {
				f.fail(name, "%s is not the %s of dtype", shown(text), said)
			}
			b.full, said = form, text
		}
		if said != "" {
			return
		}
	}
	b.note("the config names no dtype; 16 bits are assumed")
}

// sameFamily tells whether the file has the format that was named: then what the
// file says of its details holds.
func sameFamily(file, named quant) bool {
	family := func(s string) string { return strings.SplitN(s, "-", 2)[0] }
	return family(file.base.Name) == family(named.base.Name)
}

func (b *builder) readVocab() {
	t := b.text
	gemma := b.is("gemma3") && !b.is("gemma3n")
	def := int64(0)
	if gemma {
		def = 262208 // the class's default, which published files rely on
	}
	if b.m.Vocab = t.whole(def, 1, maxVocab, "vocab_size", "padded_vocab_size"); b.m.Vocab == 0 {
		b.m.Vocab = b.f.whole(0, 1, maxVocab, "vocab_size")
	}
	if b.m.Vocab == 0 {
		b.missing(t, "vocab_size")
	}
	tied := b.is("gemma", "gpt2", "phi4mm", "opt", "bloom", "cohere", "starcoder2")
	b.m.Tied = t.flag(b.f.flag(tied, "tie_word_embeddings"), "tie_word_embeddings")
	if t.has("tie_word_embeddings") && b.f.flag(false, "tie_word_embeddings") {
		b.m.Tied = true
	}
}

func (b *builder) readAttention() {
	t := b.text
	b.heads = t.whole(0, 1, maxHeads, "num_attention_heads", "n_head")
	if b.heads == 0 {
		b.missing(t, "num_attention_heads")
		return
	}
	b.kv = t.whole(b.heads, 1, maxHeads, "num_key_value_heads", "num_kv_heads", "num_attention_groups", "multi_query_group_num")
	if t.flag(false, "multi_query") && !t.has("num_key_value_heads") && !t.has("num_kv_heads") {
		b.kv = 1
	}
	def := b.hidden / b.heads
	b.dim = t.whole(def, 1, maxHeadDim, "head_dim", "attention_head_dim", "kv_channels")
	if !t.has("head_dim") && !t.has("kv_channels") && b.hidden%b.heads != 0 && !t.has("kv_lora_rank") {
		t.fail("head_dim", "is missing, and hidden_size %d is no multiple of num_attention_heads %d", b.hidden, b.heads)
	}
	b.vdim = t.whole(b.dim, 1, maxHeadDim, "v_head_dim")
	if b.kv > b.heads {
		t.fail("num_key_value_heads", "%d is more than num_attention_heads %d", b.kv, b.heads)
	} else if b.heads%b.kv != 0 && !t.has("kv_lora_rank") {
		t.fail("num_key_value_heads", "%d does not divide num_attention_heads %d", b.kv, b.heads)
	}
	b.ffn = t.whole(0, 0, maxFFN, "intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim")
	if b.ffn == 0 && b.is("gpt2", "gptj", "falcon", "bloom") {
		b.ffn = 4 * b.hidden
	}
	b.bias = t.flag(b.is("qwen2", "gpt2", "mimo", "opt", "bloom", "gpt_neox"), "attention_bias") || b.is("qwen2") ||
		t.flag(false, "_qkv_bias") || t.flag(false, "add_qkv_bias") || t.flag(false, "use_bias")
	b.qkNorm = b.is("qwen3", "gemma3", "gemma4", "olmo2", "olmo3", "exaone4") || t.flag(false, "use_qk_norm") || t.flag(false, "qk_norm")
	b.qkFull = b.is("olmo2", "olmo3", "minimax")
	b.outGate = t.flag(b.is("qwen3_next", "qwen3_5"), "attn_output_gate")
	b.matrices = 3
	act := t.text("hidden_act") + t.text("mlp_hidden_act")
	if oneOf(act, "relu2", "gelu_new", "relu") || b.is("gpt2", "gptj", "opt", "falcon", "bloom", "gpt_neox", "nemotron_h", "starcoder2", "gpt_bigcode", "phi-msft", "apertus") || b.kind == "phi" || b.kind == "nemotron" {
		b.matrices = 2
	}
}

// layerKind is what one layer is made of.
type layerKind struct {
	mixer string // full, window, latent, linear, mamba, none, sparse
	ffn   string // dense, moe, none
	kv    int64  // key-value heads, where the layer has its own number
	width int64  // of the dense part, likewise
}

func (b *builder) layerKinds() []layerKind {
	t := b.text
	if b.is("nemotron-nas", "deci") {
		return b.blocks()
	}
	if p := t.text("hybrid_override_pattern"); p != "" {
		return b.patterned(p)
	}
	if l := t.texts("layers_block_type"); len(l) > 0 {
		return b.blockTypes(l)
	}
	n := t.whole(0, 1, maxLayers, "num_hidden_layers", "n_layer", "num_layers")
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
	swa := t.wholes("hybrid_layer_pattern", 0, 1)
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
// has a shape of its own.
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
			b.text.fail("block_configs", "%s is no object", shown(v))
		}
		if *b.f.err != nil {
			return nil
		}
		f := fields{of, fmt.Sprintf("%sblock_configs[%d].", b.text.path, i), b.f.err}
		k := layerKind{mixer: "full", ffn: "dense"}
		attention, ffn := f.object("attention"), f.object("ffn")
		switch group := attention.whole(0, 1, maxHeads, "n_heads_in_group"); {
		case attention.flag(false, "no_op"):
			k.mixer = "none"
		case attention.flag(false, "replace_with_linear"):
			k.mixer = "replaced"
		case group == 0 || b.heads%group != 0:
			attention.fail("n_heads_in_group", "%d does not divide %d heads", group, b.heads)
		default:
			k.kv = b.heads / group
		}
		switch mult := ffn.number(0, 0, 64, "ffn_mult"); {
		case ffn.flag(false, "no_op"):
			k.ffn = "none"
		case ffn.flag(false, "replace_with_linear"):
			k.ffn = "replaced"
		case mult == 0:
			ffn.fail("ffn_mult", "is missing or 0")
		default: // two thirds, in whole steps of 256
			k.width = ceil(int64(2*mult*float64(b.hidden)/3), 256) * 256
		}
		kinds = append(kinds, k)
	}
	return kinds
}

func (b *builder) patterned(p string) (kinds []layerKind) {
	if len(p) > maxLayers {
		b.text.fail("hybrid_override_pattern", "has %d layers", len(p))
		return nil
	}
	for _, c := range p {
		switch c {
		case 'M':
			kinds = append(kinds, layerKind{mixer: "mamba", ffn: "none"})
		case '*':
			kinds = append(kinds, layerKind{mixer: "full", ffn: "none"})
		case '-':
			kinds = append(kinds, layerKind{mixer: "none", ffn: "dense"})
		case 'E':
			kinds = append(kinds, layerKind{mixer: "none", ffn: "moe"})
		case '|':
		default:
			b.text.fail("hybrid_override_pattern", "%q is no kind of layer", c)
			return nil
		}
	}
	return b.counted("hybrid_override_pattern", kinds)
}

// counted refuses a list of layers that num_hidden_layers contradicts, and one with
// experts that the config does not know.
func (b *builder) counted(name string, kinds []layerKind) []layerKind {
	if n := b.text.whole(int64(len(kinds)), 1, maxLayers, "num_hidden_layers"); n != int64(len(kinds)) {
		b.text.fail(name, "has %d layers, and num_hidden_layers is %d", len(kinds), n)
	}
	if b.experts() == 0 && slices.ContainsFunc(kinds, func(k layerKind) bool { return k.ffn == "moe" }) {
		b.missing(b.text, "n_routed_experts")
	}
	return kinds
}

func (b *builder) blockTypes(list []string) (kinds []layerKind) {
	for _, s := range list {
		switch s {
		case "mamba", "mamba2":
			kinds = append(kinds, layerKind{mixer: "mamba", ffn: "none"})
		case "attention":
			kinds = append(kinds, layerKind{mixer: "full", ffn: "none"})
		case "mlp":
			kinds = append(kinds, layerKind{mixer: "none", ffn: "dense"})
		case "moe":
			kinds = append(kinds, layerKind{mixer: "none", ffn: "moe"})
		default:
			b.text.fail("layers_block_type", "%s is no kind of layer", shown(s))
			return nil
		}
	}
	return b.counted("layers_block_type", kinds)
}

func (b *builder) mixerOf(i, n int64, types []string, swa []int64) string {
	t := b.text
	switch {
	case t.has("compress_ratios"), b.is("deepseek_v4") && len(types) > 0:
		return "sparse"
	case t.has("kv_lora_rank") && !b.is("kimi_linear"):
		return "latent"
	case b.is("kimi_linear"):
		if slices.Contains(t.object("linear_attn_config").wholes("full_attn_layers", 0, maxLayers), i+1) || !t.has("linear_attn_config") && (i+1)%4 == 0 {
			return "latent"
		}
		return "linear"
	case int64(len(types)) >= n && n > 0:
		switch types[i] {
		case "linear_attention":
			return "linear"
		case "sliding_attention", "chunked_attention":
			return "window"
		case "full_attention", "attention", "global":
			return "full"
		case "mamba":
			return "mamba"
		}
		t.fail("layer_types", "%s is no kind of layer", shown(types[i]))
		return "full"
	case int64(len(swa)) >= n && n > 0 && swa[i] == 1:
		return "window"
	case int64(len(swa)) >= n && n > 0:
		return "full"
	}
	if every := t.whole(0, 1, maxLayers, "full_attention_interval"); every > 0 {
		if (i+1)%every == 0 {
			return "full"
		}
		return "linear"
	}
	if b.windowed(i) {
		return "window"
	}
	return "full"
}

// windowed tells whether a layer sees a window only, where no list says so.
func (b *builder) windowed(i int64) bool {
	t := b.text
	if t.whole(0, 0, maxContext, "attention_chunk_size") > 0 && b.is("llama4") {
		return (i+1)%4 != 0 // every fourth layer has no rotary embedding and sees all
	}
	if t.whole(0, 0, maxContext, "sliding_window") == 0 {
		return false
	}
	switch every := t.whole(0, 1, maxLayers, "sliding_window_pattern", "_sliding_window_pattern"); {
	case every > 0:
		return (i+1)%every != 0
	case b.is("gemma2"):
		return i%2 == 0
	case b.is("gemma3"):
		return (i+1)%6 != 0
	case b.is("olmo3"):
		return (i+1)%4 != 0
	case b.is("gpt_oss"):
		return i%2 == 0
	}
	if !t.flag(!b.is("qwen", "mimo"), "use_sliding_window") {
		return false
	}
	return i >= t.whole(0, 0, maxLayers, "max_window_layers")
}

// experts is how many experts a layer of a mixture has, 0 for a dense model.
func (b *builder) experts() int64 {
	return b.text.whole(0, 0, maxExperts, "n_routed_experts", "num_local_experts", "num_experts", "moe_num_experts")
}

func (b *builder) ffnOf(i int64) string {
	t := b.text
	if b.experts() == 0 {
		return "dense"
	}
	if types := t.texts("mlp_layer_types"); int64(len(types)) > i {
		switch types[i] {
		case "dense":
			return "dense"
		case "sparse", "moe", "hash_moe":
		default:
			t.fail("mlp_layer_types", "%s is no kind of layer", shown(types[i]))
		}
		return "moe"
	}
	if i < t.whole(0, 0, maxLayers, "first_k_dense_replace", "moe_layer_start_index") {
		return "dense"
	}
	if last := t.whole(-1, -1, maxLayers, "moe_layer_end_index"); last >= 0 && i > last {
		return "dense"
	}
	if list, ok := t.of["moe_layer_freq"].([]any); ok {
		if int64(len(list)) <= i {
			t.fail("moe_layer_freq", "has %d entries for more layers", len(list))
		} else if t.wholes("moe_layer_freq", 0, 1)[i] == 0 {
			return "dense"
		}
		return "moe"
	}
	if every := t.whole(1, 1, maxLayers, "moe_layer_freq"); i%every != 0 {
		return "dense"
	}
	if every := t.whole(1, 1, maxLayers, "interleave_moe_layer_step", "decoder_sparse_step", "moe_layer_interval"); (i+1)%every != 0 {
		return "dense"
	}
	for _, l := range t.wholes("mlp_only_layers", 0, maxLayers) {
		if l == i {
			return "dense"
		}
	}
	return "moe"
}

func (b *builder) rotary(kinds []layerKind) {
	if b.m.Context == 0 || b.is("gpt2", "nemotron_h", "opt") {
		return
	}
	width := float64(b.dim)
	if r := b.text.whole(0, 1, maxHeadDim, "rotary_dim", "qk_rope_head_dim"); r > 0 {
		width = float64(r)
	} else {
		width *= b.text.number(1, 0, 1, "partial_rotary_factor")
	}
	b.m.Rotary = append(b.m.Rotary, Rotary{b.m.Context, int64(width)})
	window := slices.ContainsFunc(kinds, func(k layerKind) bool { return k.mixer == "window" })
	if window && (b.text.has("rope_local_base_freq") || b.is("gemma3", "gemma4")) {
		b.m.Rotary = append(b.m.Rotary, b.m.Rotary[0])
	}
}
