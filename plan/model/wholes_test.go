package model

import (
	"strings"
	"testing"
)

// TestWholes checks what is read of models whose configs have fields of their own.
func TestWholes(t *testing.T) {
	const text = `"hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":4,"intermediate_size":128,"vocab_size":1000,"dtype":"bfloat16"`
	for _, c := range []struct {
		config, unsure string
		vectors        string // of the language model's attention
	}{
		{`{"model_type":"minicpmv","version":2.6,` + text + `}`, "the shape of the vision tower", "self_attn.qkv_bias"},
		{`{"model_type":"minicpmv","version":"4.5",` + text + `,"vision_config":{"hidden_size":32,"num_hidden_layers":1,"image_size":28}}`, "", "self_attn.q_norm"},
		{`{"model_type":"minicpmo","version":"2.6",` + text + `,"vision_config":{"hidden_size":32,"num_hidden_layers":1,"image_size":28}}`, "hears and speaks", "self_attn.qkv_bias"},
		{`{"model_type":"videollama3_qwen2",` + text + `}`, "no vision_encoder_config", "self_attn.qkv_bias"},
		{`{"model_type":"llava_mistral","mm_hidden_size":32,"mm_projector_type":"resampler",` + text + `}`, "projector of type", ""},
		{`{"model_type":"llava_llama","mm_hidden_size":32,"mm_vision_tower":"a/b","unfreeze_mm_vision_tower":true,` + text + `}`, `tower "a/b" is not known`, ""},
		{`{"model_type":"llava",` + text + `}`, "no vision_config", ""},
		{`{"model_type":"chatglm","architectures":["ChatGLMForConditionalGeneration"],"add_qkv_bias":true,` + text + `}`, "", "self_attn.qkv_bias"},
		{`{"model_type":"deepseek_vl_v2","language_config":{"use_mla":false,"v_head_dim":0,"qk_rope_head_dim":0,` + text + `},"vision_config":{"width":32,"layers":1,"model_name":"siglip"},"projector_config":{"n_embed":64}}`, "", ""},
	} {
		m, err := Parse("a/B", []byte(c.config), "")
		if err != nil {
			t.Errorf("%s: %v", c.config, err)
			continue
		}
		if (m.Unsure == "") != (c.unsure == "") || !strings.Contains(m.Unsure, c.unsure) {
			t.Errorf("%s: unsure %q, want %q", c.config, m.Unsure, c.unsure)
		}
		found := c.vectors == ""
		for i := range m.Layers[0].Tensors {
			found = found || m.Layers[0].Tensors[i].Name == c.vectors
		}
		if !found {
			t.Errorf("%s: no %s in a layer", c.config, c.vectors)
		}
		if m.Layers[0].Cache.Kind != Full {
			t.Errorf("%s: attention of kind %d", c.config, m.Layers[0].Cache.Kind)
		}
	}
}

// TestTasks counts a head for what a model is made for, in place of lm_head.
func TestTasks(t *testing.T) {
	const config = `{"model_type":"llama","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,"intermediate_size":128,"vocab_size":1000,"dtype":"bfloat16","tie_word_embeddings":false,"id2label":{"0":"a","1":"b","2":"c"},"architectures":["%s"]}`
	params := func(class string) (int64, string) {
		m, err := Parse("a/B", []byte(strings.Replace(config, "%s", class, 1)), "")
		if err != nil {
			t.Fatal(err)
		}
		return m.Params(), m.Unsure
	}
	text, _ := params("LlamaForCausalLM")
	for class, head := range map[string]int64{"LlamaModel": 0, "LlamaForSequenceClassification": 3 * 64, "Qwen2ForRewardModel": 64*65 + 3*64, "LlamaForCausalLM": 1000 * 64} {
		if got, unsure := params(class); got != text-1000*64+head || unsure != "" {
			t.Errorf("%s: %d parameters, want %d; %s", class, got, text-1000*64+head, unsure)
		}
	}
	if _, unsure := params("LlamaForCausalLMEagle3"); !strings.Contains(unsure, "draft model") {
		t.Errorf("a draft model is planned as a whole one: %q", unsure)
	}
	m, err := Parse("a/B", []byte(`{"model_type":"ovis","visual_tokenizer_config":{"backbone_config":{"num_hidden_layers":24}},"llm_config":`+llama+`}`), "")
	if err != nil || !strings.Contains(m.Unsure, "visual_tokenizer_config") {
		t.Errorf("a tower inside another object: %v, %v", m, err)
	}
}
