package model

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

const llama = `{"model_type":"llama","dtype":"bfloat16","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
"num_key_value_heads":2,"intermediate_size":128,"vocab_size":1000,"max_position_embeddings":512}`

const mixture = `"num_experts":8,"moe_intermediate_size":32`

// with is a config with some fields in place of others.
func with(config, fields string) string {
	return strings.TrimSuffix(strings.TrimSpace(config), "}") + "," + fields + "}"
}

// TestPublishedSizes checks numbers of parameters that the models' authors state,
// in billions.
func TestPublishedSizes(t *testing.T) {
	for _, c := range []struct {
		name          string
		total, active float64
	}{
		{"meta-llama/Meta-Llama-3.1-8B", 8.03, 7.5},
		{"meta-llama/Meta-Llama-3.1-405B", 405.85, 403.7},
		{"Qwen/Qwen2.5-0.5B-Instruct", 0.494, 0.494},
		{"Qwen/Qwen3-30B-A3B", 30.5, 3.04},
		{"Qwen/Qwen3-235B-A22B", 235.1, 21.6},
		{"deepseek-ai/DeepSeek-R1", 671, 36.6},
		{"deepseek-ai/DeepSeek-V2-Lite", 15.7, 2.45},
		{"openai/gpt-oss-20b", 20.9, 3.61},
		{"openai/gpt-oss-120b", 116.8, 5.17},
		{"mistralai/Mixtral-8x7B-v0.1", 46.7, 12.75},
		{"google/gemma-3-4b-it", 4.30, 3.88},
		{"nvidia/Nemotron-H-56B-Base-8K", 56.3, 55.2},
		{"openai-community/gpt2", 0.124, 0.124},
		{"moonshotai/Kimi-Linear-48B-A3B-Instruct", 49.12, 3.107},
		{"ai21labs/AI21-Jamba-Mini-1.5", 51.57, 11.84},
		{"stepfun-ai/Step-3.5-Flash", 196.96, 11.46},
		{"zai-org/GLM-4.5-Air", 106.85, 12.80},
	} {
		m, err := Find(c.name, "")
		if err != nil {
			t.Error(err)
			continue
		}
		near := func(what string, got int64, want float64) {
			if math.Abs(float64(got)/1e9-want) > 0.005*want {
				t.Errorf("%s: %s %.3f billion, want %.3f", c.name, what, float64(got)/1e9, want)
			}
		}
		near("parameters", m.Params(), c.total)
		near("active parameters", m.ActiveParams(), c.active)
	}
}

// TestCatalog checks that every model that is built in can be read.
func TestCatalog(t *testing.T) {
	if n := len(Catalog()); n < 80 {
		t.Fatalf("only %d models", n)
	}
	for _, name := range Catalog() {
		m, err := Find(name, "")
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if m.Name != name || len(m.Layers) == 0 || m.Bytes() < 1<<28 {
			t.Errorf("%s: read as %s with %d layers and %d bytes", name, m.Name, len(m.Layers), m.Bytes())
		}
	}
}

func TestFindByShortName(t *testing.T) {
	for _, c := range []struct{ name, want, format string }{
		{"qwen2.5-32b", "Qwen/Qwen2.5-32B-Instruct", ""},
		{"DeepSeek-R1", "deepseek-ai/DeepSeek-R1", "fp8-block"},
		{"deepseek-ai/DeepSeek-R1 (AWQ)", "deepseek-ai/DeepSeek-R1", "awq-int4"},
		{"Llama-3.2-1B", "meta-llama/Llama-3.2-1B-Instruct", ""},
	} {
		m, err := Find(c.name, "")
		if err != nil || m.Name != c.want || m.Quant != c.format {
			t.Errorf("%s: got %+v, %v; want %s in %q", c.name, m, err, c.want, c.format)
		}
	}
	_, err := Find("Llama-9-8B", "")
	if err == nil || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestPitfalls checks what is easily missed, in numbers of parameters.
func TestPitfalls(t *testing.T) {
	parse := func(config string) *Model {
		t.Helper()
		m, err := Parse("test", []byte(config), "")
		if err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		return m
	}
	base := parse(llama)
	if want := int64(2*1000*64 + 2*(64*64*2+2*32*64+3*64*128+2*64) + 64); base.Params() != want {
		t.Errorf("%d parameters, want %d", base.Params(), want)
	}
	if got := base.Params() - parse(with(llama, `"tie_word_embeddings":true`)).Params(); got != 64000 {
		t.Errorf("tied embeddings save %d parameters", got)
	}
	if got := parse(with(llama, `"head_dim":32`)).Layers[0].Cache; got.Key != 32 || got.QueryWidth != 128 {
		t.Errorf("head_dim of its own: %+v", got)
	}
	all := parse(strings.Replace(llama, `"num_key_value_heads":2,`, "", 1))
	if got := all.Layers[0].Cache.Heads; got != 4 {
		t.Errorf("without num_key_value_heads there are %d of them, want as many as heads", got)
	}
	nested := parse(`{"model_type":"llava","text_config":` + llama + `}`)
	if nested.Params() != base.Params() {
		t.Errorf("a nested config has %d parameters, want %d", nested.Params(), base.Params())
	}
	unused := parse(strings.Replace(with(llama, `"sliding_window":128`), `"llama"`, `"qwen2"`, 1))
	if got := unused.Layers[0].Cache.Kind; got != Full {
		t.Errorf("a sliding window that is not used makes kind %d", got)
	}
	mla := with(llama, `"kv_lora_rank":16,"qk_rope_head_dim":8,"qk_nope_head_dim":16,"v_head_dim":16,"q_lora_rank":null`)
	if got := parse(mla).Layers[0].Cache; got.Kind != Latent || got.Latent != 24 {
		t.Errorf("MLA without q_lora_rank: %+v", got)
	}
}

// TestBadConfigs checks that what cannot be planned names its field.
func TestBadConfigs(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{``, "not a JSON object"},
		{`[]`, "not a JSON object"},
		{`{}`, "field hidden_size is missing"},
		{with(llama, `"hidden_size":"64"`), `field hidden_size: "64" is not a number`},
		{with(llama, `"hidden_size":-1`), "field hidden_size: -1 is not between"},
		{with(llama, `"hidden_size":1e300`), "field hidden_size"},
		{with(llama, `"hidden_size":1e999`), "field hidden_size"},
		{with(llama, `"hidden_size":64.5`), "not a whole number"},
		{with(llama, `"num_hidden_layers":1000000000`), "field num_hidden_layers"},
		{with(llama, `"num_key_value_heads":8`), "field num_key_value_heads: 8 is more than num_attention_heads 4"},
		{with(llama, `"num_attention_heads":7`), "field head_dim"},
		{with(llama, `"text_config":7`), "field text_config: 7 is not an object"},
		{with(llama, `"layer_types":["full_attention"]`), "field layer_types: has 1 entries for 2 layers"},
		{with(llama, `"layer_types":["full_attention","odd"]`), `field layer_types: "odd" is not a known kind of layer`},
		{with(llama, `"quantization_config":{"quant_method":"magic"}`), "field quantization_config.quant_method"},
		{with(llama, `"torch_dtype":"complex64","dtype":null`), "field torch_dtype"},
		{with(llama, `"quantization_config":{"quant_method":"fp8","ignored_layers":["re:("]}`), "regular expression"},
		{with(llama, `"num_hidden_layers":4096,"quantization_config":{"quant_method":"fp8","ignored_layers":["re:a.*b`+strings.Repeat(`","re:a.*b`, 400)+`"]}`), "401 patterns for 4096 layers"},
		{llama + "{}", "the config continues after its end"},
		{with(llama, `"num_key_value_heads":3`), "field num_key_value_heads: 3 does not divide num_attention_heads 4"},
		{with(llama, `"dtype":"bfloat16","torch_dtype":"float32"`), `field torch_dtype: "float32" is not the bfloat16 of dtype`},
		{with(llama, `"dtype":"float8_e4m3fn"`), "field quantization_config: is missing"},
		{with(llama, `"partial_rotary_factor":"half"`), `field partial_rotary_factor: "half" is not a number`},
		{with(llama, `"partial_rotary_factor":5`), "field partial_rotary_factor: 5 is not between 0 and 1"},
		{with(llama, `"compress_ratios":[4]`), "field compress_ratios: has 1 entries for 2 layers"},
		{with(llama, `"hybrid_override_pattern":"M*-"`), "field hybrid_override_pattern: has 3 layers, and num_hidden_layers is 2"},
		{with(llama, `"hybrid_override_pattern":"*E"`), "field n_routed_experts is missing"},
		{with(llama, mixture+`,"num_experts_per_tok":9`), "field num_experts_per_tok: 9 is more than there are experts, 8"},
		{with(llama, mixture+`,"first_k_dense_replace":3`), "field first_k_dense_replace: is more than the 2 layers"},
		{with(llama, mixture+`,"moe_layer_freq":[1]`), "field moe_layer_freq: has 1 entries"},
		{with(llama, mixture+`,"mlp_layer_types":["sparse","odd"]`), `field mlp_layer_types: "odd" is not a known kind of layer`},
		{with(llama, `"quantization_config":{"quant_method":"fp8","weight_block_size":[128]}`), "field quantization_config.weight_block_size"},
		{`{"hidden_size":1048576,"num_attention_heads":16,"num_hidden_layers":4096,"intermediate_size":4194304,"vocab_size":67108864,` +
			`"num_experts":16384,"moe_intermediate_size":4194304}`, "is not a plausible size"},
	} {
		m, err := Parse("test", []byte(c.config), "")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v; want an error with %q", c.config, m != nil, err, c.want)
		}
	}
}

// TestSparseSpellings reads DeepSeek-V4's layers as its authors and as transformers
// write them.
func TestSparseSpellings(t *testing.T) {
	const v4 = `{"model_type":"deepseek_v4","dtype":"bfloat16","hidden_size":512,"head_dim":64,"num_hidden_layers":3,"num_attention_heads":16,"num_key_value_heads":1,` +
		`"vocab_size":1000,"n_routed_experts":4,"num_experts_per_tok":2,"moe_intermediate_size":128,"q_lora_rank":64,"o_lora_rank":64,"o_groups":2,"hc_mult":4,"sliding_window":128,` +
		`"qk_rope_head_dim":16,"index_n_heads":4,"index_head_dim":32,`
	own, err := Parse("own", []byte(v4+`"compress_ratios":[0,4,128,0],"num_hash_layers":1}`), "")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := Parse("theirs", []byte(v4+`"layer_types":["sliding_attention","compressed_sparse_attention","heavily_compressed_attention"],`+
		`"compress_rates":{"compressed_sparse_attention":4,"heavily_compressed_attention":128},"mlp_layer_types":["hash_moe","moe","moe"]}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(own.Layers, theirs.Layers) || own.Layers[2].Cache.Ratio != 128 || own.Layers[1].Cache.Rope != 16 {
		t.Errorf("layers differ: %+v\n%+v", own.Layers[2].Cache, theirs.Layers[2].Cache)
	}
}

// TestAssumed checks that the notes name what a config leaves open.
func TestAssumed(t *testing.T) {
	for fields, want := range map[string]string{
		mixture: "num_experts_per_tok (1)",
		`"layer_types":["sliding_attention","sliding_attention"]`:                        "sliding_window (4096)",
		`"kv_lora_rank":16,"qk_rope_head_dim":8`:                                         "qk_nope_head_dim (128), v_head_dim (128);",
		`"quantization_config":{"quant_method":"compressed-tensors","config_groups":{}}`: "quantizes no weights",
		`"quantization_config":{"quant_method":"modelopt"}`:                              "NVFP4 is assumed",
		`"dtype":null`: "16 bits are assumed",
	} {
		m, err := Parse("test", []byte(with(llama, fields)), "")
		if err != nil || !strings.Contains(strings.Join(m.Notes, "\n"), want) || m.Bytes() <= 0 {
			t.Errorf("%s: %v; want a note with %q", fields, err, want)
		}
	}
}

// TestFormats checks bytes of a matrix of 4096 × 4096 in bits a weight.
func TestFormats(t *testing.T) {
	const n = 4096
	for _, c := range []struct {
		quant string
		bits  float64
	}{
		{"bf16", 16}, {"fp8-block", 8 + 32.0/16384}, {"awq", 4 + 16.0/128 + 4.0/128}, {"nf4", 4.5}, {"nvfp4", 4.5}, {"int8", 8 + 32.0/n},
	} {
		m, err := Parse("test", []byte(strings.Replace(strings.Replace(llama, `"hidden_size":64`, `"hidden_size":4096`, 1), `"num_attention_heads":4`, `"num_attention_heads":32`, 1)), c.quant)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range m.Layers[1].Tensors {
			if x.Name != "self_attn.o_proj" {
				continue
			}
			if got := 8 * float64(x.Bytes()) / (n * n); math.Abs(got-c.bits) > 0.001 {
				t.Errorf("%s: %.4f bits a weight, want %.4f", c.quant, got, c.bits)
			}
		}
	}
}

// TestBlocks reads a searched architecture: layers with other heads and widths,
// and layers without a part.
func TestBlocks(t *testing.T) {
	const head = `{"model_type":"nemotron-nas","hidden_size":8192,"num_hidden_layers":3,"num_attention_heads":64,"num_key_value_heads":null,` +
		`"intermediate_size":null,"vocab_size":1000,"tie_word_embeddings":true,"block_configs":`
	m, err := Parse("test", []byte(head+`[{"attention":{"n_heads_in_group":8},"ffn":{"ffn_mult":2.625}},`+
		`{"attention":{"no_op":true},"ffn":{"ffn_mult":1.3125}},{"attention":{"n_heads_in_group":16},"ffn":{"no_op":true}}]}`), "")
	if err != nil {
		t.Fatal(err)
	}
	if a, b, c := m.Layers[0], m.Layers[1], m.Layers[2]; a.FFN != 14336 || b.FFN != 7168 || a.Cache.Heads != 8 || b.Cache.Kind != None || c.Cache.Heads != 4 || c.FFN != 0 {
		t.Errorf("layers %+v, %+v, %+v", a, b, c)
	}
	for blocks, want := range map[string]string{
		`[]}`: "block_configs is missing", `[7]}`: "not an object", `[{"attention":{"n_heads_in_group":7},"ffn":{"ffn_mult":1}}]}`: "block_configs[0].attention.n_heads_in_group",
		`[{"attention":{"no_op":true},"ffn":{"ffn_mult":1e9}}]}`: "ffn_mult",
	} {
		if _, err := Parse("test", []byte(head+blocks), ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", blocks, err, want)
		}
	}
}

func TestWithoutExperts(t *testing.T) {
	m, err := Find("Qwen3-30B-A3B", "")
	if err != nil {
		t.Fatal(err)
	}
	few := m.WithoutExperts(96)
	left := m.Bytes() - few.Bytes()
	if want := int64(48 * 96 * 3 * 2048 * 768 * 2); left != want {
		t.Errorf("96 experts less save %d bytes, want %d", left, want)
	}
	if m.WithoutExperts(500).Bytes() >= few.Bytes() {
		t.Error("all experts less save no more")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(llama), "")
	f.Add([]byte(with(llama, `"quantization_config":{"quant_method":"awq","bits":4}`)), "fp8")
	f.Add([]byte(`{"model_type":"nemotron_h","hybrid_override_pattern":"M*-E|","hidden_size":NaN}`), "int4")
	for _, name := range []string{"zai-org/GLM-5.2-FP8", "deepseek-ai/DeepSeek-V4-Flash", "google/gemma-4-26B-A4B", "Qwen/Qwen3.5-27B"} {
		f.Add([]byte(catalog()[name]), "")
	}
	for _, c := range published(f) {
		f.Add([]byte(c.Config), "")
	}
	f.Fuzz(func(t *testing.T, data []byte, quant string) {
		m, err := Parse("fuzz", data, quant)
		if err != nil {
			return
		}
		if m.Params() <= 0 || m.Bytes() <= 0 || m.CheckpointBytes() < m.Bytes() || m.ActiveParams() < 0 || m.ActiveParams() > m.Params() {
			t.Errorf("%d parameters, %d of them active, in %d bytes, %d on disk", m.Params(), m.ActiveParams(), m.Bytes(), m.CheckpointBytes())
		}
	})
}

// TestWithoutPredictors leaves out predictors that the config names and the tool that
// wrote the files does not keep.
func TestWithoutPredictors(t *testing.T) {
	const text = `"hidden_size":64,"num_hidden_layers":4,"num_attention_heads":4,"head_dim":16,"intermediate_size":128,"vocab_size":1024,"dtype":"bfloat16","mtp_num_hidden_layers":1,` +
		`"full_attention_interval":4,"linear_num_key_heads":2,"linear_num_value_heads":4,"linear_key_head_dim":16,"linear_value_head_dim":16,"linear_conv_kernel_dim":4`
	for _, c := range []struct {
		name, config string
		want         int64
	}{
		{"a/B", `{"model_type":"qwen3_5","text_config":{"model_type":"qwen3_5_text",` + text + `}}`, 1},
		{"a/B-mlx-bf16", `{"model_type":"qwen3_5","text_config":{"model_type":"qwen3_5_text",` + text + `}}`, 0},
		{"a/B", `{"model_type":"qwen3_5","quantization":{"bits":8,"group_size":64},"text_config":{"model_type":"qwen3_5_text",` + text + `}}`, 0},
		{"a/B", `{"model_type":"qwen3_5_text",` + text + `}`, 0},
	} {
		m, err := Parse(c.name, []byte(c.config), "")
		if err != nil || m.PredictorLayers != c.want || (len(m.Predictors) > 0) != (c.want > 0) {
			t.Errorf("%s, %s: %v, %d predictors, want %d", c.name, c.config, err, m.PredictorLayers, c.want)
		}
	}
}
