package model

import (
	"fmt"
	"strings"
	"testing"
)

// TestQuantBytes checks what a matrix of 1024 × 1024 takes in each format, weights and
// metadata, in bytes.
func TestQuantBytes(t *testing.T) {
	const (
		n                = 1 << 20
		rows             = 1 << 10
		bf16, int8, int4 = 2 * n, n, n / 2
		groups           = 8 * rows // of 128
		o                = "model.layers.0.self_attn.o_proj"
	)
	compressed := func(format, weights string) string {
		return fmt.Sprintf(`{"quant_method":"compressed-tensors","format":%q,"ignore":["lm_head"],"config_groups":{"group_0":{"targets":["Linear"],"weights":%s}}}`, format, weights)
	}
	for config, want := range map[string]int64{
		`{"quant_method":"gptq","bits":4,"group_size":128,"desc_act":false}`:                                                 int4 + groups*2 + groups/2 + rows*4,
		`{"quant_method":"gptq","bits":4,"group_size":-1}`:                                                                   int4 + rows*2 + rows/2 + rows*4,
		`{"quant_method":"gptq","bits":8,"group_size":32}`:                                                                   int8 + 4*groups*2 + 4*groups + rows*4,
		`{"bits":4,"group_size":128,"desc_act":true,"sym":true}`:                                                             int4 + groups*2 + groups/2 + rows*4,
		`{"quant_method":"gptq","bits":4,"group_size":128,"dynamic":{"-:.*o_proj.*":{}}}`:                                    bf16,
		`{"quant_method":"gptq","bits":4,"group_size":128,"dynamic":{"+:.*o_proj.*":{"bits":8,"group_size":64}}}`:            int8 + 2*groups*2 + 2*groups + rows*4,
		`{"quant_method":"awq","bits":4,"group_size":128,"zero_point":true}`:                                                 int4 + groups*2 + groups/2,
		`{"w_bit":4,"q_group_size":64,"zero_point":true,"version":"GEMM"}`:                                                   int4 + 2*groups*2 + 2*groups/2,
		`{"quant_method":"awq","bits":4,"modules_to_not_convert":["self_attn.o_proj"]}`:                                      bf16,
		`{"quant_method":"auto-round","bits":4,"group_size":128,"packing_format":"auto_round:auto_gptq"}`:                    int4 + groups*2 + groups/2,
		`{"quant_method":"auto-round","bits":4,"group_size":128,"extra_config":{"` + o + `":{"bits":16}}}`:                   bf16,
		`{"quant_method":"auto-round","bits":4,"data_type":"mx_fp","group_size":32}`:                                         int4 + 4*groups,
		`{"quant_method":"bitsandbytes","load_in_4bit":true}`:                                                                int4 + n/64*4 + 154,
		`{"load_in_4bit":true,"bnb_4bit_use_double_quant":true}`:                                                             int4 + n/64 + n/64/256*4 + 1178,
		`{"quant_method":"bitsandbytes","load_in_8bit":true}`:                                                                int8 + rows*4,
		`{"quant_method":"bitsandbytes","load_in_4bit":true,"llm_int8_skip_modules":["lm_head","model.layers.0.self_attn"]}`: bf16,
		`{"quant_method":"fp8","activation_scheme":"dynamic","weight_block_size":[128,128]}`:                                 int8 + 64*4,
		`{"quant_method":"fp8","activation_scheme":"static"}`:                                                                int8 + 8,
		`{"quant_method":"fbgemm_fp8"}`:                                                                                      int8 + rows*4,
		compressed("pack-quantized", `{"num_bits":4,"type":"int","strategy":"group","group_size":128,"symmetric":true}`):     int4 + groups*2 + 16,
		compressed("pack-quantized", `{"num_bits":4,"type":"int","strategy":"group","group_size":128,"symmetric":false}`):    int4 + groups*2 + groups/2 + 16,
		compressed("pack-quantized", `{"num_bits":4,"type":"int","strategy":"group","group_size":128,"actorder":"group"}`):   int4 + groups*2 + rows*4 + 16,
		compressed("pack-quantized", `{"num_bits":8,"type":"int","strategy":"channel"}`):                                     int8 + rows*2 + 16,
		compressed("int-quantized", `{"num_bits":8,"type":"int","strategy":"channel"}`):                                      int8 + rows*2,
		compressed("float-quantized", `{"num_bits":8,"type":"float","strategy":"channel"}`):                                  int8 + rows*2,
		compressed("float-quantized", `{"num_bits":8,"type":"float","strategy":"tensor"}`):                                   int8 + 4,
		compressed("float-quantized", `{"num_bits":8,"type":"float","strategy":"block","block_structure":[128,128]}`):        int8 + 64*4,
		compressed("nvfp4-pack-quantized", `{"num_bits":4,"type":"float","strategy":"tensor_group","group_size":16}`):        int4 + 8*groups + 8,
		compressed("mxfp4-pack-quantized", `{"num_bits":4,"type":"float","strategy":"group","group_size":32}`):               int4 + 4*groups,
		compressed("mxfp8-quantized", `{"num_bits":8,"type":"float","strategy":"group","group_size":32}`):                    int8 + 4*groups,
		`{"quant_method":"modelopt","quant_algo":"NVFP4","group_size":16}`:                                                   int4 + 8*groups + 8,
		`{"quant_algo":"NVFP4_AWQ"}`:                         int4 + 8*groups + 8 + rows*2,
		`{"quant_algo":"FP8"}`:                               int8 + 8,
		`{"quant_algo":"FP8_PER_CHANNEL_PER_TOKEN"}`:         int8 + rows*4,
		`{"quant_algo":"W4A16_AWQ"}`:                         int4 + groups*2 + rows*2,
		`{"quant_algo":"FP8","exclude_modules":["*o_proj"]}`: bf16,
		`{"quant_method":"quark","global_quant_config":{"weight":{"dtype":"fp8_e4m3","qscheme":"per_tensor"}},"exclude":["lm_head"]}`: int8 + 4,
		`{"quant_method":"quark","global_quant_config":{"weight":{"dtype":"fp4","qscheme":"per_group","group_size":32}}}`:             int4 + 4*groups,
		`{"quant_method":"quark","global_quant_config":{"weight":[{"dtype":"fp8_e4m3"},{"dtype":"int4","qscheme":"per_channel"}]}}`:   int4 + rows*4,
		`{"quant_method":"quark","global_quant_config":{},"layer_quant_config":{"*mlp.*":{"weight":{"dtype":"fp4"}}}}`:                bf16,
		`{"quant_method":"quark","global_quant_config":{},"layer_quant_config":{"*self_attn.*":{"weight":{"dtype":"fp4"}}}}`:          int4 + 4*groups,
		`{"quant_method":"hqq","quant_config":{"weight_quant_params":{"nbits":4,"group_size":64}}}`:                                   int4 + 2*groups*4,
		`{"quant_method":"torchao","quant_type":{"default":{"_type":"Int4WeightOnlyConfig","_data":{"group_size":128}}}}`:             int4 + groups*4,
		`{"quant_method":"torchao","quant_type":"float8_dynamic_activation_float8_weight"}`:                                           int8 + rows*4,
		`{"group_size":64,"bits":4}`:                                        int4 + 2*groups*4,
		`{"group_size":64,"bits":4,"` + o + `":{"bits":8,"group_size":64}}`: int8 + 2*groups*4,
	} {
		text := strings.NewReplacer(`"hidden_size":64`, `"hidden_size":1024`).Replace(with(llama, `"quantization_config":`+config))
		m, err := Parse("test", []byte(text), "")
		if err != nil {
			t.Errorf("%s: %v", config, err)
			continue
		}
		for _, x := range m.Layers[0].Tensors {
			if x.Name == "self_attn.o_proj" && x.Bytes() != want {
				t.Errorf("%s: %d bytes in %s, want %d", config, x.Bytes(), x.Format.Name, want)
			}
		}
	}
}

// TestKVFormat reads which format a checkpoint states for keys and values.
func TestKVFormat(t *testing.T) {
	for config, want := range map[string]string{
		`{"quant_method":"modelopt","quant_algo":"FP8","kv_cache_quant_algo":"FP8"}`:                               "fp8",
		`{"quant_method":"modelopt","quant_algo":"NVFP4","kv_cache_quant_algo":null}`:                              "",
		`{"quant_method":"compressed-tensors","config_groups":{},"kv_cache_scheme":{"num_bits":8,"type":"float"}}`: "fp8",
		`{"quant_method":"compressed-tensors","config_groups":{},"kv_cache_scheme":null}`:                          "",
	} {
		m, err := Parse("test", []byte(strings.Replace(llama, "{", `{"quantization_config":`+config+",", 1)), "")
		if err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		if m.KVFormat != want {
			t.Errorf("%s: %q, want %q", config, m.KVFormat, want)
		}
	}
}

// TestQuantBeside reads the quantization from a file beside config.json.
func TestQuantBeside(t *testing.T) {
	for _, c := range []struct{ name, beside, want string }{
		{"hf_quant_config.json", `{"producer":{"name":"modelopt"},"quantization":{"quant_algo":"NVFP4","exclude_modules":["lm_head"]}}`, "nvfp4"},
		{"quantize_config.json", `{"bits":4,"group_size":128,"damp_percent":0.01,"desc_act":true,"sym":true}`, "gptq-int4"},
		{"quant_config.json", `{"zero_point":true,"q_group_size":128,"w_bit":4,"version":"GEMM"}`, "awq-int4"},
		{"quantization_config.json", `{"bits":4,"group_size":128,"sym":true,"quant_method":"auto-round"}`, "gptq-int4"},
	} {
		config, err := WithQuantization([]byte(llama), c.name, []byte(c.beside))
		if err != nil {
			t.Fatal(err)
		}
		if m, err := Parse("test", config, ""); err != nil || m.Quant != c.want {
			t.Errorf("%s: %v, %v; want %s", c.name, m, err, c.want)
		}
	}
	if _, err := WithQuantization([]byte(llama), "quant_config.json", []byte(`[]`)); err == nil || !strings.Contains(err.Error(), "quant_config.json") {
		t.Errorf("a broken file beside the config: %v", err)
	}
}

// TestOtherMethods plans methods that few models have, and says so of one that is not
// known.
func TestOtherMethods(t *testing.T) {
	const config = `{"model_type":"llama","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,"num_key_value_heads":4,"intermediate_size":128,"vocab_size":1000,"dtype":"bfloat16","quantization_config":%s}`
	const matrices, rows, vectors = 4*64*64 + 3*64*128, 5*64 + 2*128, (2*1000*64 + 3*64) * 2
	for quant, want := range map[string]struct {
		bytes  float64
		unsure string
	}{
		`{"quant_method":"bitnet"}`: {matrices/4 + 7*2, ""},
		`{"quant_method":"eetq"}`:   {matrices + 2*rows, ""},
		`{"quant_method":"aqlm","in_group_size":8,"out_group_size":1,"num_codebooks":1,"nbits_per_codebook":8}`: {matrices/8 + 2*rows + 7*2*256*8, ""},
		`{"quant_method":"exl9","bits":4.5,"group_size":64}`:                                                    {matrices*4.5/8 + matrices/64*4, `"exl9" is not known`},
	} {
		m, err := Parse("a/B", []byte(strings.Replace(config, "%s", quant, 1)), "")
		if err != nil {
			t.Errorf("%s: %v", quant, err)
			continue
		}
		if got := m.Bytes(); got != int64(want.bytes)+vectors {
			t.Errorf("%s: %d bytes, want %d", quant, got, int64(want.bytes)+vectors)
		}
		if (m.Unsure == "") != (want.unsure == "") || !strings.Contains(m.Unsure, want.unsure) {
			t.Errorf("%s: unsure %q", quant, m.Unsure)
		}
	}
	if _, err := Parse("a/B", []byte(strings.Replace(config, "%s", `{"quant_method":"exl9"}`, 1)), ""); err == nil || !strings.Contains(err.Error(), "is not known") {
		t.Errorf("a method that is not known: %v", err)
	}
}

// TestOtherParts says of a part with layers, which no tower is made of, that it is not
// counted.
func TestOtherParts(t *testing.T) {
	m, err := Parse("a/B", []byte(strings.Replace(llama, "{", `{"gene_config":{"nlayers":12,"dim_model":512},"slice_config":{"patch_size":14},`, 1)), "")
	if err != nil || !strings.Contains(m.Unsure, "gene_config") {
		t.Errorf("%v, %v", m, err)
	}
}

// TestUntied counts lm_head in the files that AutoGPTQ wrote of a tied model.
func TestUntied(t *testing.T) {
	const config = `{"model_type":"llama","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,"num_key_value_heads":4,"intermediate_size":128,"vocab_size":1000,"dtype":"bfloat16","tie_word_embeddings":true,"quantization_config":{"bits":4,"group_size":32,"desc_act":false%s}}`
	size := func(more string) int64 {
		m, err := Parse("a/B", []byte(strings.Replace(config, "%s", more, 1)), "")
		if err != nil {
			t.Fatal(err)
		}
		return m.CheckpointBytes()
	}
	plain, old, named := size(`,"quant_method":"gptq"`), size(""), size(`,"quant_method":"gptq","model_file_base_name":"model"`)
	if want := plain + 2*1000*64 + entry; old != want || named != want {
		t.Errorf("%d and %d bytes, want %d", old, named, want)
	}
}

// TestQuantizationBit reads ChatGLM's own field, which stands outside
// quantization_config.
func TestQuantizationBit(t *testing.T) {
	const config = `{"model_type":"chatglm","hidden_size":64,"num_layers":1,"num_attention_heads":4,"multi_query_attention":true,"multi_query_group_num":2,"ffn_hidden_size":128,"padded_vocab_size":1000,"torch_dtype":"float16","quantization_bit":%s}`
	const matrices, rows = 2*64*64 + 2*32*64 + 3*64*128, 2*64 + 2*32 + 2*128 + 64
	size := map[string]int64{}
	for _, bits := range []string{"0", "4", "8"} {
		m, err := Parse("a/B", []byte(strings.Replace(config, "%s", bits, 1)), "")
		if err != nil {
			t.Fatal(err)
		}
		size[bits] = m.Bytes()
	}
	if size["0"]-size["8"] != matrices-2*rows || size["8"]-size["4"] != matrices/2 {
		t.Errorf("%v bytes", size)
	}
}

// TestCacheAlone reads a checkpoint of which only keys and values have a format.
func TestCacheAlone(t *testing.T) {
	config, err := WithQuantization([]byte(llama), "hf_quant_config.json", []byte(`{"quantization":{"quant_algo":null,"kv_cache_quant_algo":"FP8","exclude_modules":["lm_head"]}}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse("a/B", config, "")
	if err != nil || m.Quant != "bf16" && m.Quant != "" || m.KVFormat != "fp8" || m.Unsure != "" {
		t.Errorf("%v, %+v", err, m)
	}
}
