package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of what is accepted as a model; they keep products within an int64.
const (
	maxHidden  = 1 << 20
	maxHeads   = 1 << 14
	maxHeadDim = 1 << 16
	maxFFN     = 1 << 22
	maxVocab   = 1 << 26
	maxLayers  = 1 << 12
	maxExperts = 1 << 14
	maxContext = 1 << 32
	// mostMatches is how many patterns of a quantization, times layers, are tried.
	maxMatches = 1 << 17
)

// Parse reads a config.json. Quant, if not empty, names a format that the weights
// have instead of what the file states ("bf16", "fp8", "awq-int4", …).
func Parse(name string, data []byte, quant string) (*Model, error) {
	f, err := parseFields(data)
	if err != nil {
		return nil, err
	}
	return read(name, f, quant)
}

func read(name string, f fields, quant string) (*Model, error) {
	if class := f.text("_class_name"); class != "" && !f.has("model_type") { // of diffusers
		return nil, fmt.Errorf("_class_name %s: %s", shown(class), Diffusion)
	}
	b := builder{f: f, text: f, m: &Model{Name: name, copies: 1}}
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
	f, text fields // the whole config, and the part for the language model
	m       *Model
	kind    string // model_type of the language model
	family  *decoder
	q       quant
	named   bool // a format was asked for, also of experts that the files hold in another
	full    Format

	assumptions []string // "name (value)" of fields that are not there

	hidden, heads, kv, dim, vdim, ffn int64
	bias, qkNorm, outGate             bool
	matrices                          int64
}

func (b *builder) note(format string, args ...any) {
	b.m.Notes = append(b.m.Notes, fmt.Sprintf(format, args...))
}

// assumed is the first of some fields of the language model that is there, or def,
// which the answer then marks as assumed.
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

// contextFields are the names of the longest context. Source: vLLM, config/model.py,
// _get_and_verify_max_len.
var contextFields = []string{"max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "model_max_length", "max_sequence_length", "max_seq_length", "seq_len", "max_target_positions"}

func (b *builder) build(quantName string) {
	if b.f.has("thinker_config") { // engines load the part that understands, and not the one that speaks
		whole := b.f
		b.f = b.f.object("thinker_config")
		b.text = b.f
		b.talker(whole)
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
	w := b.wholeOf()
	if w != nil && w.language != nil && (!t.has("model_type") || b.kind == b.m.Type) {
		b.kind = w.language(b)
	}
	var known bool
	if b.family, known = decoderOf(b.kind); b.family.unsure != "" {
		b.unsure(b.family.unsure)
	} else if !known {
		b.unsure(fmt.Sprintf("models of type %s are not known here; they are planned as a plain decoder, such as Llama", shown(b.kind)))
	}
	b.text = b.withDefaults(withoutLatent(b.flat(t)), b.family.defaults)
	t = b.text
	b.readFormat(quantName)
	if b.m.Hidden = t.whole(0, 1, maxHidden, "hidden_size", "n_embd", "n_embed", "d_model"); b.m.Hidden == 0 {
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
	if n := b.q.patterns() * len(kinds); n > maxMatches {
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
		b.note("the config does not state %s; the values in parentheses are assumed", strings.Join(b.assumptions, ", "))
	}
	if b.family.copies > 1 {
		b.m.copies = b.family.copies
		b.note("the published repository holds the weights twice, in the main folder and in original/; the size on disk counts both")
	}
}

// flat are the fields of a family's nested objects beside those that are there.
func (b *builder) flat(f fields) fields {
	out := f
	for _, name := range b.family.nested {
		inner := f.object(name)
		out.of = maps.Clone(out.of)
		for key, value := range inner.of {
			if _, own := out.of[key]; !own {
				out.of[key] = value
			}
		}
	}
	return out
}

// withDefaults are fields with the defaults of a configuration class for those that are not
// there.
func (b *builder) withDefaults(f fields, list defaults) fields {
	out := f
	if out.of = maps.Clone(f.of); out.of == nil {
		return f
	}
	for _, d := range list {
		if f.has(d.field) || d.field == "vocab_size" && b.f.has(d.field) {
			continue
		}
		out.of[d.field] = json.Number(fmt.Sprint(d.value))
		b.assumptions = append(b.assumptions, fmt.Sprintf("%s%s (%d)", f.path, d.field, d.value))
	}
	return out
}

func (b *builder) missing(f fields, name string) {
	if *f.err == nil {
		*f.err = fmt.Errorf("field %s%s is missing", f.path, name)
	}
}

// readFormat reads the type of the numbers and the quantization.
func (b *builder) readFormat(quantName string) {
	b.readDtype()
	for _, f := range []fields{b.f, b.text} {
		for _, name := range []string{"quantization_config", "compression_config", "quantization"} {
			if f.has(name) && !b.q.on {
				b.q = readQuant(f.object(name))
			}
		}
	}
	if bits := b.text.whole(0, 0, 16, "quantization_bit"); !b.q.on && (bits == 4 || bits == 8) { // ChatGLM's own, a scale for each row
		b.q.on = true
		b.q.base = Format{Name: fmt.Sprintf("int%d", bits), Bits: float64(bits), groupOut: 1, scaleBytes: 2, parts: 2}
	}
	if b.q.unsure != "" {
		b.unsure(b.q.unsure)
	}
	if b.q.assumed != "" {
		b.note("%s", b.q.assumed)
	}
	if b.q.on && b.q.base.Bits == 0 {
		b.q = quant{cache: b.q.cache}
		b.note("quantization_config quantizes no weights")
	}
	if b.full.Bits == 8 && !b.q.on {
		b.f.fail("quantization_config", "is missing, and dtype is an 8-bit type")
	}
	b.full.Bits = max(b.full.Bits, 16)
	if quantName == "" {
		quantName = b.nameQuant()
	}
	switch named, ok := quantNamed(quantName); {
	case quantName == "":
	case oneOf(quantName, "bf16", "fp16"):
		b.q, b.named, b.full = quant{}, true, bf16
	case oneOf(quantName, "fp32"):
		b.q, b.named, b.full = quant{}, true, fp32
	case !ok:
		b.f.fail("quantization", "%s is not a known format", shown(quantName))
	case b.q.on && sameFamily(b.q, named):
		b.named = true
	default:
		named.ignored = patterns{}
		if named.base.Name == "mxfp4" && b.experts() == 0 {
			named.only = nil
		}
		if named.base.Name == "fp8" && b.family.endsWhole && len(named.only) > 0 {
			named.ignoreEnds = true
		}
		b.q, b.named = named, true
	}
	b.m.Width = int64(b.full.Bits / 8)
	b.m.Quant, b.m.KVFormat = b.q.base.Name, b.q.cache
	if b.q.on {
		b.m.quantBits = b.q.base.Bits
	}
}

// dtypes are the types of numbers that configs name.
var dtypes = map[string]Format{"bfloat16": bf16, "float16": bf16, "half": bf16, "float32": fp32, "float": fp32, "float8_e4m3fn": {Name: "bf16", Bits: 8}}

// readDtype reads the type of the numbers that are not quantized. dtype is the newer
// name of torch_dtype; the language model's has precedence.
func (b *builder) readDtype() {
	b.full = bf16
	for _, f := range []fields{b.text, b.f} {
		stated := ""
		for _, name := range []string{"dtype", "torch_dtype"} {
			text := strings.TrimPrefix(f.text(name), "torch.")
			if text == "" {
				continue
			}
			form, ok := dtypes[text]
			if !ok {
				f.fail(name, "%s is not known", shown(text))
			}
			if stated != "" && form.Bits != b.full.Bits {
				f.fail(name, "%s is not the %s of dtype", shown(text), stated)
			}
			b.full, stated = form, text
		}
		if stated != "" {
			return
		}
	}
	b.note("the config does not name a dtype; 16 bits are assumed")
}

// sameFamily reports whether the file has the format that was named: then what the
// file states about its details applies. A file of several formats does not.
func sameFamily(file, named quant) bool {
	family := func(s string) string { return strings.SplitN(s, "-", 2)[0] }
	return file.layers == nil && family(file.base.Name) == family(named.base.Name)
}

func (b *builder) readVocab() {
	t := b.text
	if b.m.Vocab = t.whole(0, 1, maxVocab, "vocab_size", "padded_vocab_size"); b.m.Vocab == 0 {
		b.m.Vocab = b.f.whole(0, 1, maxVocab, "vocab_size")
	}
	if b.m.Vocab == 0 {
		b.missing(t, "vocab_size")
	}
	b.m.Tied = t.flag(b.f.flag(b.family.tied, "tie_word_embeddings"), "tie_word_embeddings")
	if t.has("tie_word_embeddings") && b.f.flag(false, "tie_word_embeddings") {
		b.m.Tied = true
	}
}

func (b *builder) readAttention() {
	t := b.text
	if b.family.free {
		return
	}
	b.heads = t.whole(0, 1, maxHeads, "num_attention_heads", "n_head", "n_heads", "num_heads", "decoder_attention_heads")
	if b.heads == 0 {
		b.missing(t, "num_attention_heads")
		return
	}
	b.kv = t.whole(b.heads, 1, maxHeads, "num_key_value_heads", "num_kv_heads", "kv_n_heads", "num_attention_groups", "multi_query_group_num", "n_head_kv")
	if t.flag(false, "multi_query") && !t.has("num_key_value_heads") && !t.has("num_kv_heads") {
		b.kv = 1
	}
	def := b.hidden / b.heads
	b.dim = t.whole(def, 1, maxHeadDim, "head_dim", "attention_head_dim", "kv_channels")
	if !t.has("head_dim") && !t.has("kv_channels") && b.hidden%b.heads != 0 && !t.has("kv_lora_rank") {
		t.fail("head_dim", "is missing, and hidden_size %d is not a multiple of num_attention_heads %d", b.hidden, b.heads)
	}
	b.vdim = t.whole(b.dim, 1, maxHeadDim, "v_head_dim")
	if b.kv > b.heads {
		t.fail("num_key_value_heads", "%d is more than num_attention_heads %d", b.kv, b.heads)
	} else if b.heads%b.kv != 0 && !t.has("kv_lora_rank") {
		t.fail("num_key_value_heads", "%d does not divide num_attention_heads %d", b.kv, b.heads)
	}
	b.ffn = t.each(0, 0, 0, maxFFN, "block_ff_dim", "intermediate_size", "ff_intermediate_size", "n_inner", "ffn_hidden_size", "ffn_dim", "decoder_ffn_dim")
	if b.ffn == 0 {
		b.ffn = b.family.ffnTimes * b.hidden
	}
	b.bias = t.flag(b.family.attentionBias, "attention_bias") || b.family.qkvBias ||
		t.flag(false, "_qkv_bias") || t.flag(false, "add_qkv_bias") || t.flag(false, "use_bias") || t.flag(false, "qkv_bias") || t.flag(false, "use_qkv_bias")
	b.qkNorm = b.family.qkNorm || t.flag(false, "use_qk_norm") || t.flag(false, "qk_norm")
	b.outGate = t.flag(b.family.outGate, "attn_output_gate")
	b.matrices = 3
	if act := t.text("hidden_act") + t.text("mlp_hidden_act"); b.family.ungated || !b.family.gated && oneOf(act, "relu2", "gelu_new", "relu") {
		b.matrices = 2
	}
}

func (b *builder) rotary(kinds []layerKind) {
	if b.m.Context == 0 || b.family.noRotary {
		return
	}
	width := float64(b.dim)
	if r := b.text.whole(0, 1, maxHeadDim, "rotary_dim", "qk_rope_head_dim"); r > 0 {
		width = float64(r)
	} else {
		width *= b.text.number(1, 0, 1, "partial_rotary_factor")
	}
	b.m.Rotary = append(b.m.Rotary, Rotary{b.m.Context, int64(width)})
	window := slices.ContainsFunc(kinds, func(k layerKind) bool { return k.mixer == windowAttention })
	if window && (b.text.has("rope_local_base_freq") || b.family.localRotary) {
		b.m.Rotary = append(b.m.Rotary, b.m.Rotary[0])
	}
}
