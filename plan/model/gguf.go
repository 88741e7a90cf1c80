package model

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Bounds of a GGUF header: the largest published files have some 250,000 tokens
// and some 2,000 tensors.
const (
	maxText    = 16 << 20
	maxItems   = 1 << 24
	maxEntries = 1 << 16
	maxTensors = 1 << 20
	maxGGUF    = 1 << 30 // bytes of a header
)

// ggufTypes are the names of llama.cpp's types by their number in a file. Source:
// enum ggml_type of ggml.h.
var ggufTypes = map[uint32]string{
	0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 10: "Q2_K", 11: "Q3_K", 12: "Q4_K", 13: "Q5_K",
	14: "Q6_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS",
	24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}

// gguf reads little-endian values; the first error stays.
type gguf struct {
	r    *bufio.Reader
	left int64
	err  error
}

func (g *gguf) fail(format string, args ...any) {
	if g.err == nil {
		g.err = fmt.Errorf(format, args...)
	}
}

func (g *gguf) bytes(n int64) []byte {
	if g.err != nil {
		return nil
	}
	if g.left -= n; g.left < 0 {
		g.fail("the GGUF header has more than %d bytes", maxGGUF)
		return nil
	}
	const short = 1 << 12
	if n <= short {
		b := make([]byte, n)
		if _, err := io.ReadFull(g.r, b); err != nil {
			g.fail("the GGUF header ends too early: %w", err)
			return nil
		}
		return b
	}
	var b bytes.Buffer // memory must not be allocated for missing data
	if _, err := io.CopyN(&b, g.r, n); err != nil {
		g.fail("the GGUF header ends too early: %w", err)
		return nil
	}
	return b.Bytes()
}

func (g *gguf) u32() uint32 {
	if b := g.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (g *gguf) u64() uint64 {
	if b := g.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (g *gguf) text() string {
	n := g.u64()
	if n > maxText {
		g.fail("a text of %d bytes in the GGUF header", n)
		return ""
	}
	return string(g.bytes(int64(n)))
}

// Value types of GGUF's metadata.
const (
	ggufString = 8
	ggufArray  = 9
)

var ggufWidths = map[uint32]int64{0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}

// value reads a value. Of a list it keeps the whole numbers if there are few, and
// else the length.
func (g *gguf) value(kind uint32, depth int) any {
	switch kind {
	case ggufString:
		return g.text()
	case ggufArray:
		return g.array(depth)
	}
	width := ggufWidths[kind]
	if width == 0 {
		g.fail("type %d of a value in the GGUF header is not known", kind)
		return nil
	}
	b := g.bytes(width)
	if b == nil {
		return nil
	}
	var wide [8]byte
	copy(wide[:], b)
	n := binary.LittleEndian.Uint64(wide[:])
	switch kind {
	case 1:
		return json.Number(strconv.Itoa(int(int8(n))))
	case 3:
		return json.Number(strconv.Itoa(int(int16(n))))
	case 5:
		return json.Number(strconv.Itoa(int(int32(n))))
	case 6:
		return decimal(float64(math.Float32frombits(uint32(n))))
	case 7:
		return n != 0
	case 11:
		return json.Number(strconv.FormatInt(int64(n), 10))
	case 12:
		return decimal(math.Float64frombits(n))
	}
	return json.Number(strconv.FormatUint(n, 10))
}

func decimal(x float64) any {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return nil
	}
	return json.Number(strconv.FormatFloat(x, 'g', -1, 64))
}

// ggufLength is a list of which only the length is kept.
type ggufLength int64

func (g *gguf) array(depth int) any {
	kind, n := g.u32(), g.u64()
	if n > maxItems || depth > 2 {
		g.fail("a list of %d values in the GGUF header", n)
		return nil
	}
	var list []any
	for range n {
		v := g.value(kind, depth+1)
		if g.err != nil {
			return nil
		}
		if n <= maxLayers {
			list = append(list, v)
		}
	}
	if n > maxLayers {
		return ggufLength(n)
	}
	return list
}

// ReadGGUF reads the headers of a GGUF file, or of the parts of one that is split, in
// their order.
func ReadGGUF(name string, parts ...io.Reader) (*Model, error) {
	var values map[string]any // of the first part, which describes the model
	var list []Stored
	for i, r := range parts {
		own, tensors, err := ggufHeader(r)
		if err != nil {
			return nil, err
		}
		if list = append(list, tensors...); i == 0 {
			values = own
		}
		if n := splitCount(own); n != len(parts) {
			return nil, fmt.Errorf("the file is one of %d parts, and %d are given", n, len(parts))
		}
	}
	if len(list) == 0 {
		return nil, errors.New("the GGUF file holds no tensors")
	}
	seen := map[string]bool{}
	for i := range list {
		if seen[list[i].Name] {
			return nil, fmt.Errorf("tensor %s is twice in the GGUF file", shown(list[i].Name))
		}
		seen[list[i].Name] = true
	}
	m, err := ggufModel(name, values, list)
	if err != nil {
		return nil, err
	}
	return m, m.Hold(list)
}

// splitCount returns the number of files that a file is split into.
func splitCount(values map[string]any) int {
	n, _ := values["split.count"].(json.Number)
	count, err := strconv.Atoi(n.String())
	if err != nil {
		return 1
	}
	return max(count, 1)
}

// ggufHeader reads the values and the tensors that a file names.
func ggufHeader(r io.Reader) (map[string]any, []Stored, error) {
	g := &gguf{r: bufio.NewReader(r), left: maxGGUF}
	if string(g.bytes(4)) != "GGUF" {
		if g.err == nil {
			g.err = errors.New("not a GGUF file: it does not begin with GGUF")
		}
		return nil, nil, g.err
	}
	if v := g.u32(); g.err == nil && (v < 2 || v > 3) {
		return nil, nil, fmt.Errorf("version %d of GGUF is not known; 2 and 3 are", v)
	}
	tensors, entries := g.u64(), g.u64()
	if tensors > maxTensors || entries > maxEntries {
		return nil, nil, fmt.Errorf("the GGUF header names %d tensors and %d values", tensors, entries)
	}
	values := map[string]any{}
	for range entries {
		key := g.text()
		values[key] = g.value(g.u32(), 0)
		if g.err != nil {
			return nil, nil, g.err
		}
	}
	var list []Stored
	for range tensors {
		list = append(list, g.tensor())
		if g.err != nil {
			return nil, nil, g.err
		}
	}
	return values, list, nil
}

func (g *gguf) tensor() Stored {
	s := Stored{Name: g.text()}
	dims := g.u32()
	if dims > 8 {
		g.fail("tensor %s: %d dimensions", shown(s.Name), dims)
		return s
	}
	shape := make([]int64, dims)
	for i := range shape { // the file has columns first
		n := g.u64()
		if n > maxParameters {
			g.fail("tensor %s: a side of %d", shown(s.Name), n)
		}
		shape[len(shape)-1-i] = int64(n)
	}
	kind := g.u32()
	g.u64() // the offset
	if g.err != nil {
		return s
	}
	if err := sensible(shape); err != nil {
		g.fail("tensor %s: %w", shown(s.Name), err)
		return s
	}
	s.Type, s.Shape = ggufTypes[kind], shape
	bits := ggufBits[s.Type]
	if bits == 0 {
		g.fail("tensor %s: type %d is not known", shown(s.Name), kind)
		return s
	}
	s.Bytes = int64(float64(product(shape)) * bits / 8)
	return s
}

// ggufFields are the fields of a config by llama.cpp's names, after the
// architecture.
var ggufFields = map[string]string{
	"block_count": "num_hidden_layers", "embedding_length": "hidden_size", "context_length": "max_position_embeddings",
	"feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
	"attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim", "expert_count": "num_experts",
	"expert_used_count": "num_experts_per_tok", "expert_feed_forward_length": "moe_intermediate_size",
	"expert_shared_count": "n_shared_experts", "leading_dense_block_count": "first_k_dense_replace",
	"attention.sliding_window": "sliding_window", "attention.q_lora_rank": "q_lora_rank",
	"attention.kv_lora_rank": "kv_lora_rank", "rope.dimension_count": "rotary_dim", "vocab_size": "vocab_size",
	"ssm.state_size": "ssm_state_size", "full_attention_interval": "full_attention_interval",
	"expert_shared_feed_forward_length": "shared_expert_intermediate_size",
}

// ggufModel reads a file's values as those of a config.
func ggufModel(name string, values map[string]any, list []Stored) (*Model, error) {
	arch, _ := values["general.architecture"].(string)
	if arch == "" {
		return nil, errors.New("general.architecture is missing")
	}
	config := map[string]any{"model_type": ggufTypeNames[arch], "dtype": "bfloat16"}
	var uneven []string
	if config["model_type"] == "" {
		config["model_type"] = arch
	}
	for short, field := range ggufFields {
		switch v := values[arch+"."+short].(type) {
		case nil:
		case []any: // one for each layer: the largest is taken for all
			if n := largest(v); n > 0 {
				config[field] = json.Number(strconv.FormatInt(n, 10))
			}
			if slices.ContainsFunc(v, func(x any) bool { return x != v[0] }) {
				uneven = append(uneven, short)
			}
		case ggufLength:
		default:
			config[field] = v
		}
	}
	ggufLatent(arch, values, config)
	if config["vocab_size"] == nil {
		switch v := values["tokenizer.ggml.tokens"].(type) {
		case []any:
			config["vocab_size"] = json.Number(strconv.Itoa(len(v)))
		case ggufLength:
			config["vocab_size"] = json.Number(strconv.FormatInt(int64(v), 10))
		}
	}
	if config["vocab_size"] == nil {
		for _, s := range list {
			if s.Name == "token_embd.weight" && len(s.Shape) == 2 {
				config["vocab_size"] = json.Number(strconv.FormatInt(s.Shape[0], 10))
			}
		}
	}
	f := fields{config, "", new(error)}
	m, err := read(name, f, "")
	if err != nil {
		return nil, fmt.Errorf("of the values of %s: %w", arch, err)
	}
	m.Quant = "gguf"
	if slices.Sort(uneven); len(uneven) > 0 {
		m.Notes = append(m.Notes, strings.Join(uneven, " and ")+" differs from layer to layer in the file; the largest is taken for all of them")
	}
	return m, nil
}

// ggufTypeNames are architectures whose name in a config differs.
var ggufTypeNames = map[string]string{
	"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "qwen3moe": "qwen3_moe", "qwen2moe": "qwen2_moe", "deepseek2": "deepseek_v3",
	"gemma2": "gemma2", "gemma3": "gemma3_text", "gpt-oss": "gpt_oss", "qwen3next": "qwen3_next", "olmo2": "olmo2", "phi3": "phi3",
}

// ggufLatent are the heads of MLA, of which llama.cpp keeps sums.
func ggufLatent(arch string, values, config map[string]any) {
	if config["kv_lora_rank"] == nil {
		return
	}
	whole := func(short string) int64 {
		n, ok := values[arch+"."+short].(json.Number)
		x, err := n.Int64()
		if !ok || err != nil || x < 1 || x > maxHeadDim {
			return 0
		}
		return x
	}
	rope := max(whole("rope.dimension_count"), 1)
	key, value := whole("attention.key_length_mla"), whole("attention.value_length_mla")
	if key == 0 { // before the compressed form: the widths of the heads themselves
		key, value = whole("attention.key_length"), whole("attention.value_length")
	}
	set := func(field string, n int64) {
		if n > 0 {
			config[field] = json.Number(strconv.FormatInt(n, 10))
		}
	}
	set("qk_rope_head_dim", rope)
	set("qk_nope_head_dim", key-rope)
	set("v_head_dim", value)
	delete(config, "head_dim")
	delete(config, "num_key_value_heads")
}

func largest(list []any) (most int64) {
	for _, v := range list {
		if n, ok := v.(json.Number); ok {
			if x, err := n.Int64(); err == nil {
				most = max(most, x)
			}
		}
	}
	return most
}

// IsGGUF reports whether a file's name is that of a GGUF file.
func IsGGUF(name string) bool { return strings.HasSuffix(strings.ToLower(name), ".gguf") }
