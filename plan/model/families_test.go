package model

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestFamilies counts models of other families by the fields that their published
// configs have, against the sizes of their published files, in billions of
// parameters.
func TestFamilies(t *testing.T) {
	for _, c := range []struct {
		name   string
		want   float64
		config string
	}{
		{"gemma-3-27b", 27.432, `{"model_type":"gemma3","torch_dtype":"bfloat16","text_config":{"model_type":"gemma3_text","head_dim":128,"hidden_size":5376,"intermediate_size":21504,"num_attention_heads":32,"num_hidden_layers":62,"num_key_value_heads":16,"sliding_window":1024},"vision_config":{"hidden_size":1152,"image_size":896,"intermediate_size":4304,"model_type":"siglip_vision_model","num_attention_heads":16,"num_hidden_layers":27,"patch_size":14,"vision_use_head":false}}`},
		{"gemma-3-1b", 0.99989, `{"model_type":"gemma3_text","head_dim":256,"hidden_size":1152,"intermediate_size":6912,"num_attention_heads":4,"num_hidden_layers":26,"num_key_value_heads":1,"vocab_size":262144,"sliding_window":512}`},
		{"phi3-mini", 3.82108, `{"model_type":"phi3","hidden_size":3072,"intermediate_size":8192,"num_attention_heads":32,"num_hidden_layers":32,"num_key_value_heads":32,"vocab_size":32064,"tie_word_embeddings":false}`},
		{"phi4-mini", 3.83602, `{"model_type":"phi3","hidden_size":3072,"intermediate_size":8192,"num_attention_heads":24,"num_hidden_layers":32,"num_key_value_heads":8,"vocab_size":200064,"tie_word_embeddings":true}`},
		{"phi3-medium", 13.96024, `{"model_type":"phi3","hidden_size":5120,"intermediate_size":17920,"num_attention_heads":40,"num_hidden_layers":40,"num_key_value_heads":10,"vocab_size":32064,"tie_word_embeddings":false}`},
		{"falcon-7b", 7.21719, `{"model_type":"falcon","hidden_size":4544,"num_hidden_layers":32,"num_attention_heads":71,"multi_query":true,"parallel_attn":true,"new_decoder_architecture":false,"bias":false,"vocab_size":65024}`},
		{"falcon-40b", 41.84, `{"model_type":"falcon","hidden_size":8192,"num_hidden_layers":60,"num_attention_heads":128,"num_kv_heads":8,"parallel_attn":true,"new_decoder_architecture":true,"bias":false,"vocab_size":65024}`},
		{"falcon-rw-1b", 1.311625, `{"model_type":"falcon","alibi":true,"bias":true,"hidden_size":2048,"num_hidden_layers":24,"num_attention_heads":32,"multi_query":false,"new_decoder_architecture":false,"parallel_attn":false,"vocab_size":50304}`},
		{"zamba2-2.7b", 2.662215, `{"model_type":"zamba2","adapter_rank":128,"attention_head_dim":160,"hidden_size":2560,"intermediate_size":10240,"kv_channels":80,"mamba_d_conv":4,"mamba_d_state":64,"mamba_expand":2,"mamba_headdim":64,"mamba_ngroups":1,"n_mamba_heads":80,"num_attention_heads":32,"num_hidden_layers":54,"num_key_value_heads":32,"num_mem_blocks":2,"use_shared_attention_adapter":false,"vocab_size":32000,"layers_block_type":[` + hybridLayers(54, 6, 12, 18, 24, 30, 36, 42, 47, 51) + `]}`},
		{"zamba2-7b", 7.35675, `{"model_type":"zamba2","adapter_rank":128,"hidden_size":3584,"intermediate_size":14336,"mamba_d_state":64,"mamba_ngroups":2,"n_mamba_heads":112,"mamba_headdim":64,"num_attention_heads":32,"num_hidden_layers":81,"num_key_value_heads":32,"num_mem_blocks":2,"vocab_size":32000,"layers_block_type":[` + hybridLayers(81, 6, 11, 17, 23, 29, 35, 41, 47, 53, 59, 65, 71, 77) + `]}`},
		{"qwen2-vl-7b", 8.29138, `{"model_type":"qwen2_vl","hidden_size":3584,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"intermediate_size":18944,"vocab_size":152064,"tie_word_embeddings":false,"vision_config":{"depth":32,"embed_dim":1280,"mlp_ratio":4,"num_heads":16,"in_chans":3,"hidden_size":3584,"patch_size":14,"spatial_merge_size":2,"temporal_patch_size":2}}`},
		{"qwen2.5-vl-3b", 3.75462, `{"model_type":"qwen2_5_vl","hidden_size":2048,"num_hidden_layers":36,"num_attention_heads":16,"num_key_value_heads":2,"intermediate_size":11008,"vocab_size":151936,"tie_word_embeddings":true,"vision_config":{"depth":32,"hidden_size":1280,"intermediate_size":3420,"num_heads":16,"in_chans":3,"out_hidden_size":2048,"patch_size":14,"spatial_merge_size":2,"temporal_patch_size":2}}`},
		{"glm4.5-air", 106.85, `{"model_type":"glm4_moe","hidden_size":4096,"num_hidden_layers":46,"num_attention_heads":96,"num_key_value_heads":8,"head_dim":128,"intermediate_size":10944,"moe_intermediate_size":1408,"n_routed_experts":128,"n_shared_experts":1,"first_k_dense_replace":1,"num_experts_per_tok":8,"vocab_size":151552,"attention_bias":true,"use_qk_norm":false,"num_nextn_predict_layers":1,"tie_word_embeddings":false}`},
		{"qwen1.5moe", 14.31578, `{"model_type":"qwen2_moe","hidden_size":2048,"num_hidden_layers":24,"num_attention_heads":16,"num_key_value_heads":16,"intermediate_size":5632,"moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_experts":60,"num_experts_per_tok":4,"vocab_size":151936,"tie_word_embeddings":false,"sliding_window":32768,"use_sliding_window":false}`},
		{"opt-125m", 0.12524, `{"model_type":"opt","hidden_size":768,"ffn_dim":3072,"num_hidden_layers":12,"num_attention_heads":12,"vocab_size":50272,"max_position_embeddings":2048,"word_embed_proj_dim":768,"torch_dtype":"float16"}`},
		{"neox", 20.55457, `{"model_type":"gpt_neox","hidden_size":6144,"intermediate_size":24576,"num_hidden_layers":44,"num_attention_heads":64,"vocab_size":50432,"tie_word_embeddings":false}`},
		{"ministral8b", 8.01981, `{"model_type":"mistral","hidden_size":4096,"intermediate_size":12288,"num_hidden_layers":36,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"vocab_size":131072,"sliding_window":32768,"tie_word_embeddings":false}`},
		{"mistral-small-3.1", 24.01136, `{"model_type":"mistral3","architectures":["Mistral3ForConditionalGeneration"],"spatial_merge_size":2,"text_config":{"model_type":"mistral","hidden_size":5120,"intermediate_size":32768,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"vocab_size":131072},"vision_config":{"model_type":"pixtral","hidden_size":1024,"intermediate_size":4096,"num_hidden_layers":24,"num_attention_heads":16,"patch_size":14,"image_size":1540,"head_dim":64}}`},
		{"deepseek-v2", 235.74, `{"model_type":"deepseek_v2","hidden_size":5120,"intermediate_size":12288,"moe_intermediate_size":1536,"num_hidden_layers":60,"num_attention_heads":128,"num_key_value_heads":128,"n_routed_experts":160,"n_shared_experts":2,"first_k_dense_replace":1,"num_experts_per_tok":6,"q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":102400}`},
		{"starcoder2-7b", 7.17367, `{"model_type":"starcoder2","hidden_size":4608,"intermediate_size":18432,"num_hidden_layers":32,"num_attention_heads":36,"num_key_value_heads":4,"vocab_size":49152,"use_bias":true}`},
		{"command-r", 34.98, `{"model_type":"cohere","hidden_size":8192,"intermediate_size":22528,"num_hidden_layers":40,"num_attention_heads":64,"num_key_value_heads":64,"vocab_size":256000}`},
		{"internlm2-7b", 7.7377, `{"model_type":"internlm2","hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":92544,"tie_word_embeddings":false}`},
		{"llama4-scout", 108.64, `{"model_type":"llama4","text_config":{"model_type":"llama4_text","hidden_size":5120,"intermediate_size":8192,"intermediate_size_mlp":16384,"num_hidden_layers":48,"num_attention_heads":40,"num_key_value_heads":8,"head_dim":128,"num_local_experts":16,"num_experts_per_tok":1,"interleave_moe_layer_step":1,"vocab_size":202048,"attention_chunk_size":8192},"vision_config":{"model_type":"llama4_vision_model","hidden_size":1408,"image_size":336,"intermediate_size":5632,"num_hidden_layers":34,"num_attention_heads":16,"patch_size":14,"pixel_shuffle_ratio":0.5,"projector_input_dim":4096,"projector_output_dim":4096,"vision_output_dim":7680}}`},
		{"smollm2-1.7b", 1.71138, `{"model_type":"llama","hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":24,"num_attention_heads":32,"num_key_value_heads":32,"vocab_size":49152,"tie_word_embeddings":true}`},
		{"olmo2-7b", 7.29862, `{"model_type":"olmo2","hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"vocab_size":100352,"tie_word_embeddings":false}`},
		{"granite-8b", 8.17, `{"model_type":"granite","hidden_size":4096,"intermediate_size":12800,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":49155,"tie_word_embeddings":true}`},
		{"gptj", 6.05, `{"model_type":"gptj","n_embd":4096,"n_layer":28,"n_head":16,"vocab_size":50400,"n_positions":2048}`},
		{"bloom7b", 7.069, `{"model_type":"bloom","hidden_size":4096,"n_layer":30,"n_head":32,"vocab_size":250880}`},
		{"ernie-4.5-21b", 21.8255, `{"model_type":"ernie4_5_moe","hidden_size":2560,"intermediate_size":12288,"num_hidden_layers":28,"num_attention_heads":20,"num_key_value_heads":4,"moe_num_experts":64,"moe_k":6,"moe_intermediate_size":1536,"moe_num_shared_experts":2,"moe_layer_start_index":1,"moe_layer_interval":1,"moe_layer_end_index":27,"vocab_size":103424,"tie_word_embeddings":true,"use_bias":false}`},
		{"granite-4.0-h-small", 32.2075, `{"model_type":"granitemoehybrid","hidden_size":4096,"intermediate_size":768,"shared_intermediate_size":1536,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":8,"num_local_experts":72,"num_experts_per_tok":10,"mamba_n_heads":128,"mamba_d_head":64,"mamba_d_state":128,"mamba_n_groups":1,"mamba_d_conv":4,"layer_types":[` + strings.Repeat(`"mamba",`, 36) + `"attention","attention","attention","attention"],"vocab_size":100352,"tie_word_embeddings":true}`},
		{"hunyuan-a13b", 80.3931, `{"model_type":"hunyuan_v1_moe","hidden_size":4096,"intermediate_size":3072,"moe_intermediate_size":[3072` + strings.Repeat(",3072", 31) + `],"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"num_experts":64,"moe_topk":[8` + strings.Repeat(",8", 31) + `],"num_shared_expert":[1` + strings.Repeat(",1", 31) + `],"use_qk_norm":true,"vocab_size":128167,"tie_word_embeddings":true}`},
		{"qwen2-audio-7b", 8.3971, `{"model_type":"qwen2_audio","audio_config":{"model_type":"qwen2_audio_encoder","d_model":1280,"encoder_attention_heads":20,"encoder_ffn_dim":5120,"encoder_layers":32,"num_mel_bins":128,"max_source_positions":1500},"text_config":{"model_type":"qwen2","intermediate_size":11008,"vocab_size":156032}}`},
		{"voxtral-mini-3b", 4.6761, `{"model_type":"voxtral","audio_config":{"model_type":"voxtral_encoder","hidden_size":1280,"intermediate_size":5120,"num_hidden_layers":32,"num_attention_heads":20,"num_mel_bins":128,"max_source_positions":1500},"text_config":{"model_type":"llama","hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":30,"num_attention_heads":32,"num_key_value_heads":8,"head_dim":128,"vocab_size":131072,"tie_word_embeddings":false}}`},
		{"apertus-8b", 8.0533, `{"model_type":"apertus","hidden_size":4096,"intermediate_size":21504,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"vocab_size":131072,"tie_word_embeddings":false,"hidden_act":"xielu","qk_norm":true}`},
		{"chatglm3-6b", 6.243, `{"model_type":"chatglm","hidden_size":4096,"ffn_hidden_size":13696,"num_layers":28,"num_attention_heads":32,"multi_query_attention":true,"multi_query_group_num":2,"kv_channels":128,"padded_vocab_size":65024,"add_qkv_bias":true}`},
		{"deepseek-ocr-2", 3.38962, `{"language_config":{"first_k_dense_replace":1,"hidden_size":1280,"intermediate_size":6848,"max_position_embeddings":8192,"moe_intermediate_size":896,"n_routed_experts":64,"n_shared_experts":2,"num_attention_heads":10,"num_experts_per_tok":6,"num_hidden_layers":12,"num_key_value_heads":10,"qk_nope_head_dim":0,"qk_rope_head_dim":0,"use_mla":false,"v_head_dim":0,"vocab_size":129280},"model_type":"deepseek_vl_v2","projector_config":{"input_dim":896,"model_type":"mlp_projector","n_embed":1280,"projector_type":"linear"},"vision_config":{"image_size":1024,"mlp_ratio":3.7362,"model_name":"deepencoderv2","model_type":"vision","width":{"qwen2-0-5b":{"dim":896},"sam_vit_b":{"downsample_channels":[512,1024],"global_attn_indexes":[2,5,8,11],"heads":12,"layers":12,"width":768}}}}`},
	} {
		m, err := Parse(c.name, []byte(c.config), "")
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := float64(m.Params()) / 1e9; math.Abs(got-c.want) > 0.001*c.want || m.Unsure != "" {
			t.Errorf("%s: %.4f billion parameters, want %.4f; %s", c.name, got, c.want, m.Unsure)
		}
	}
}

// published are models with the number of parameters that their published files hold,
// those of multi-token prediction included where predictors is set.
func published(t testing.TB) (all []publishedModel) {
	data, err := os.ReadFile("testdata/families.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var one publishedModel
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

type publishedModel struct {
	Name       string
	Params     int64
	Predictors bool
	Config     json.RawMessage
}

// TestPublished counts models of each family against their published files, to a part in
// ten thousand: small biases may be left out, and no matrix.
func TestPublished(t *testing.T) {
	for _, c := range published(t) {
		m, err := Parse(c.Name, c.Config, "")
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		got := m.Params()
		for i := range m.notLoaded {
			got += m.notLoaded[i].Params()
		}
		if c.Predictors {
			for i := range m.Predictors {
				got += m.Predictors[i].Params()
			}
		}
		if math.Abs(float64(got-c.Params)) > 1e-4*float64(c.Params) || m.Unsure != "" {
			t.Errorf("%s: %d parameters, want %d; %s", c.Name, got, c.Params, m.Unsure)
		}
	}
}

// TestCaches checks what the layers of a family keep: how many keep each token, a window
// of them, or a state, and how many numbers a token takes in all.
func TestCaches(t *testing.T) {
	want := map[string]struct {
		full, window, state int
		token               int64
	}{
		"jamba-1.5-mini":       {full: 4, state: 28, token: 4 * 2 * 1024},
		"lfm2-1.2b":            {full: 6, state: 10, token: 6 * 2 * 512},
		"falcon-h1-7b":         {full: 44, state: 44, token: 44 * 2 * 256},
		"llama-3.2-11b-vision": {full: 32, state: 8, token: 32 * 2 * 1024},
		"gemma-3n-e4b":         {full: 7, window: 28, token: 20 * 2 * 512}, // 15 of 35 share
		"whisper-large-v3":     {full: 32, state: 32, token: 32 * 2 * 1280},
		"bge-m3":               {},
		"minimax-text-01":      {full: 10, state: 70, token: 10 * 2 * 1024},
		"exaone-4-32b":         {full: 16, window: 48, token: 64 * 2 * 1024},
		"kimi-linear-48b":      {full: 7, state: 20, token: 7 * 576},
	}
	for _, c := range published(t) {
		w, ok := want[c.Name]
		if !ok {
			continue
		}
		delete(want, c.Name)
		m, err := Parse(c.Name, c.Config, "")
		if err != nil {
			t.Fatal(err)
		}
		got := w
		got.full, got.window, got.state, got.token = 0, 0, 0, 0
		for _, l := range m.Layers {
			switch l.Cache.Kind {
			case Full, Latent:
				got.full++
			case Window:
				got.window++
			case State:
				got.state++
			}
			if l.Cache.Kind != None {
				got.token += l.Cache.Heads*(l.Cache.Key+l.Cache.Value)*int64(min(1, l.Cache.Heads)) + l.Cache.Latent
			}
		}
		if got != w {
			t.Errorf("%s: %+v, want %+v", c.Name, got, w)
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}

// TestUnknownTypes checks that a model of which the type is not known states so, also one
// whose name only begins like a known one, and one of whose towers that holds.
func TestUnknownTypes(t *testing.T) {
	tower := `,"vision_config":{"hidden_size":64,"num_hidden_layers":2,"patch_size":14}`
	for config, want := range map[string]string{
		llama: "",
		strings.Replace(llama, `"llama"`, `"llama9"`, 1):                                          `type "llama9"`,
		strings.Replace(llama, `"llama"`, `"nemotron_labs"`, 1):                                   `type "nemotron_labs"`,
		strings.Replace(llama, `"llama"`, `"wizard_moe"`, 1):                                      `type "wizard_moe"`,
		`{"model_type":"seer","text_config":` + llama + `}`:                                       "",
		`{"model_type":"seer","text_config":` + llama + tower + `}`:                               `vision tower of a "seer"`,
		`{"model_type":"hearer","text_config":` + llama + `,"audio_config":{"model_type":"ear"}}`: `audio tower of type "ear"`,
	} {
		m, err := Parse("test", []byte(config), "")
		if err != nil || (m.Unsure == "") != (want == "") || !strings.Contains(m.Unsure, want) {
			t.Errorf("%s: %v, unsure %q, want %q", config, err, m.Unsure, want)
		}
	}
}

// TestFewHeads reads sparse attention with fewer heads than its outputs usually have groups,
// or none.
func TestFewHeads(t *testing.T) {
	for _, kind := range []string{"deepseek_v4", "mamba"} {
		config := `{"model_type":"` + kind + `","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"head_dim":16,"intermediate_size":64,"vocab_size":100,
			"compress_ratios":[4,4,4],"num_nextn_predict_layers":1}`
		if m, err := Parse(kind, []byte(config), ""); err == nil && len(m.Layers) != 2 {
			t.Errorf("%s has %d layers", kind, len(m.Layers))
		}
	}
}

// hybridLayers lists layers of Zamba2, of which some are hybrid.
func hybridLayers(n int, hybrid ...int) string {
	kinds := slices.Repeat([]string{`"mamba"`}, n)
	for _, i := range hybrid {
		kinds[i] = `"hybrid"`
	}
	return strings.Join(kinds, ",")
}
