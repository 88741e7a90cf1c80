package model

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// multimodal is a model of text and images whose config names neither the family of its
// language model nor its towers as others do.
type multimodal struct {
	language func(b *builder) string // the type of the language model
	towers   func(b *builder)
	head     bool // the files hold lm_head, though the config ties it to the embedding
}

func is(kind string) func(*builder) string { return func(*builder) string { return kind } }

// wholeOf is what is known of a whole model, nil if nothing is.
func (b *builder) wholeOf() *multimodal {
	if f, n := lookup(b.m.Type, func(f *family) bool { return f.whole != nil }); n > 0 {
		return f.whole
	}
	return nil
}

// withoutLatent are the fields of a model whose config states the sizes of latent
// attention, as zeros, and that it has none.
func withoutLatent(f fields) fields {
	if f.flag(true, "use_mla") {
		return f
	}
	f.of = maps.Clone(f.of)
	for _, name := range []string{"kv_lora_rank", "q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"} {
		delete(f.of, name)
	}
	return f
}

// shaped is a builder of a tower whose shape the config does not state; image_size is of
// the largest image, 0 for a tower without learned positions.
func (b *builder) shaped(name string, hidden, layers, ffn, patch, image int64) *towerBuilder {
	v := fields{of: map[string]any{}, err: b.f.err}
	if image > 0 {
		v.of["image_size"] = json.Number(fmt.Sprint(image))
	}
	return &towerBuilder{b: b, name: name, v: v, h: hidden, n: layers, ffn: ffn, patch: patch}
}

// miniCPM is the family of the language model of MiniCPM-V and -o, by their version.
func (b *builder) miniCPM() string {
	switch fmt.Sprint(b.f.of["version"]) {
	case "2.6":
		return "qwen2"
	case "4.5":
		return "qwen3"
	}
	if b.f.has("vision_config") {
		return "llama"
	}
	return "minicpm" // 1.0 and 2.0
}

// resampled are MiniCPM-V's: SigLIP without its head, and attention of a number of
// queries. Source: the modeling_minicpmv.py and resampler.py of the model repositories.
func (b *builder) resampled() {
	t := b.soViT("vision_encoder")
	if v := b.f.object("vision_config"); len(v.of) > 0 {
		t = &towerBuilder{b: b, name: "vision_config", v: v}
		if !t.read() {
			b.unsure("the shape of vision_config is not in the config; the tower is left out")
			return
		}
	} else if t == nil {
		b.unsure("the config does not state the shape of the vision tower; it is left out")
		return
	}
	if b.f.flag(false, "drop_vision_last_layer") {
		t.n--
	}
	t.layers(tower{grid: true, extra: lastNorm})
	h := b.hidden
	if !b.f.has("vision_config") { // positions of the queries are in the files
		t.add("resampler.pos_embed", 1, b.f.whole(64, 1, maxVocab, "query_num"), h)
	}
	t.add("resampler.query", 1, b.f.whole(64, 1, maxVocab, "query_num"), h)
	t.add("resampler.kv_proj", 1, h, t.h)
	t.add("resampler.attention", 4, h, h+1)
	t.add("resampler.norms", 6, h, 1)
	t.add("resampler.proj", 1, h, h)
	if b.m.Type == "minicpmo" {
		b.unsure("what a " + shown(b.m.Type) + " hears and speaks with is not counted")
	}
}

// soViT is the SigLIP that a field names, of 400 million parameters for images of 384 ×
// 384; nil if it names another.
func (b *builder) soViT(name string) *towerBuilder {
	named := strings.ToLower(b.f.text(name))
	if !strings.Contains(named, "so400m") || !strings.Contains(named, "384") {
		return nil
	}
	return b.shaped(name, 1152, 27, 4304, 14, 384)
}

// llavaTower is that of the first LLaVA models, whose files hold the projector, and the
// tower only where it was trained.
func (b *builder) llavaTower() {
	if b.f.has("vision_config") {
		b.vision(b.f.object("vision_config"))
		return
	}
	in := b.f.whole(0, 1, maxHidden, "mm_hidden_size")
	if in == 0 {
		b.unsure("the config has no vision_config, so the vision tower is left out")
		return
	}
	t := b.shaped("mm_projector", in, 1, 1, 1, 0)
	layers := int64(1)
	if kind := b.f.text("mm_projector_type"); strings.HasPrefix(kind, "mlp") && len(kind) > 3 {
		layers = max(int64(kind[3]-'0'), 1)
	} else if kind != "" && kind != "linear" {
		b.unsure("the projector of type " + shown(kind) + " is not known here; it is counted as a matrix")
	}
	t.add("0", 1, b.hidden, in+1)
	t.add("1", layers-1, b.hidden, b.hidden+1)
	if !b.f.flag(false, "unfreeze_mm_vision_tower") {
		b.note("the tower %s is no part of the files", b.f.text("mm_vision_tower"))
		return
	}
	t.add("newline", 1, b.hidden, 1)
	tower336 := tower{grid: true, class: true, extra: func(t *towerBuilder) { t.add("norms", 1, 4*t.h, 1) }}
	switch named := b.f.text("mm_vision_tower"); {
	case strings.Contains(named, "clip-vit-large-patch14-336"):
		b.shaped("mm_vision_tower", 1024, 24, 4096, 14, 336).layers(tower336)
	case b.soViT("mm_vision_tower") != nil:
		t := b.soViT("mm_vision_tower")
		t.n-- // the layer before the last is used
		t.layers(tower{grid: true, extra: lastNorm})
	default:
		b.unsure("the tower " + shown(named) + " is not known here; it is left out")
	}
}

// llavaLanguage is the family of such a model's language model.
func (b *builder) llavaLanguage() string {
	switch b.m.Type {
	case "llava_mistral":
		return "mistral"
	case "llava_qwen":
		return "qwen2"
	}
	return "llama"
}

// videoTower is VideoLLaMA 3's: SigLIP with rotary positions.
func (b *builder) videoTower() {
	if !b.f.has("vision_encoder_config") {
		b.unsure("the config has no vision_encoder_config, so the vision tower is left out")
		return
	}
	t := &towerBuilder{b: b, name: "vision_encoder_config", v: b.f.object("vision_encoder_config")}
	if !t.read() {
		b.unsure("the shape of vision_encoder_config is not in the config; the tower is left out")
		return
	}
	t.layers(tower{extra: lastNorm})
	t.twoLayers(t.h, b.hidden, true)
}

// molmoTowers are Molmo's: CLIP's large model for images of 336 × 336, of which the last
// layer but one is used, attention that pools the features of two layers, and a gated
// projector. Source: the modeling_molmo.py of the model repositories.
func (b *builder) molmoTowers() {
	t := b.shaped("vision_backbone", 1024, 23, 4096, 14, 336)
	t.layers(tower{grid: true, class: true})
	t.add("pre_ln", 1, 2*t.h, 1)
	t.add("pooling.qkv", 3, t.h, 2*t.h+1)
	t.add("pooling.out", 1, t.h, t.h+1)
	t.add("projector.up", 2, b.ffn/2, t.h)
	t.add("projector.down", 1, b.hidden, b.ffn/2)
	t.add("pad_embed", 2, 2*t.h, 1)
}

// moreTokens are Molmo's 128 further tokens.
func moreTokens(l *layerBuilder) {
	l.add("embed_tokens.more", 128, l.hidden, Whole, Embedding)
}

// qwenVisual is Qwen-VL's tower, where there is one: a large vision transformer with
// positions for images of 224 × 224, and attention of 256 queries.
func (b *builder) qwenVisual() {
	if !b.f.has("visual") {
		return
	}
	v := b.f.object("visual")
	t := &towerBuilder{b: b, name: "visual", v: v}
	if !t.read() {
		b.unsure("the shape of visual is not in the config; the tower is left out")
		return
	}
	t.layers(tower{})
	out := v.whole(b.hidden, 1, maxHidden, "output_dim")
	const positions, queries = 256, 256
	t.add("pos_embed", 1, positions, t.h)
	t.add("ln_pre", 1, 2*t.h, 1)
	t.add("pool.query", 2, queries, out)
	t.add("pool.kv_proj", 1, out, t.h)
	t.add("pool.attention", 4, out, out+1)
	t.add("pool.norms", 6, out, 1)
	t.add("pool.proj", 1, out, out)
}

// deepseekTowers are those of DeepSeek-VL2, one SigLIP, and of DeepSeek-OCR: SAM's base
// model, and after it CLIP's large one or, in the second version, a small decoder.
// Source: the deepencoder.py and deepencoderv2.py of the model repositories.
func (b *builder) deepseekTowers() {
	v := b.f.object("vision_config")
	out := b.f.object("projector_config").whole(b.hidden, 1, maxHidden, "n_embed")
	in := b.f.object("projector_config").whole(0, 1, maxFFN, "input_dim")
	if parts, ok := v.of["width"].(map[string]any); ok {
		if _, second := parts["qwen2-0-5b"]; second {
			const wide, queries = 896, 144 + 256
			b.segmentAnything(wide)
			t := b.shaped("qwen2_model", wide, 24, 4864, 1, 0)
			t.add("attn.q", t.n, wide, wide+1)
			t.add("attn.kv", 2*t.n, wide/7, wide+1) // two of fourteen heads
			t.add("attn.proj", t.n, wide, wide)
			t.add("mlp", 3*t.n, t.ffn, wide)
			t.add("norms", 2*t.n+1, wide, 1)
			t.add("queries", 1, queries, wide)
			t.add("projector", 1, out, max(in, 1)+1)
			t.add("separator", 1, out, 1)
			return
		}
		b.segmentAnything(1024)
		t := b.shaped("vision_model", 1024, 24, 4096, 14, 224)
		t.layers(tower{grid: true, class: true})
		t.add("pre_layrnorm", 1, 2*t.h, 1)
		t.add("projector", 1, out, max(in, 1)+1)
		t.add("separators", 2, out, 1)
		return
	}
	t := &towerBuilder{b: b, name: "vision_config", v: v}
	t.v = b.withDefaults(v, defaults{{"image_size", 384}})
	if !t.read() {
		b.unsure("the shape of vision_config is not in the config; the tower is left out")
		return
	}
	t.layers(tower{grid: true, extra: pooled})
	t.add("pool.latent", 1, t.h, 1)
	t.twoLayers(4*t.h, out, true)
	t.add("separators", 2, out, 1)
}

// segmentAnything is the encoder of SAM's base model for images of 1024 × 1024, and two
// convolutions to a width.
func (b *builder) segmentAnything(width int64) {
	t := b.shaped("sam_model", 768, 12, 3072, 16, 1024)
	t.layers(tower{grid: true, extra: func(t *towerBuilder) { t.add("patch_embed.bias", 1, t.h, 1) }})
	const global, window, side, head = 4, 14, 64, 64
	t.add("rel_pos", 2*(t.n-global), 2*window-1, head)
	t.add("rel_pos.global", 2*global, 2*side-1, head)
	const neck = 256
	t.add("neck.0", 1, neck, t.h)
	t.add("neck.1", 1, neck, 9*neck)
	t.add("neck.norms", 4, neck, 1)
	t.add("net.2", 1, 2*neck, 9*neck)
	t.add("net.3", 1, width, 9*2*neck)
}

// glmTower is GLM-4V's, where there is one: a large vision transformer, a convolution, and
// a gated projector. Source: the visual.py of the model repository.
func (b *builder) glmTower() {
	if !b.f.has("vision_config") {
		return
	}
	v := b.f.object("vision_config")
	t := &towerBuilder{b: b, name: "vision_config", v: v}
	if !t.read() {
		b.unsure("the shape of vision_config is not in the config; the tower is left out")
		return
	}
	t.layers(tower{class: true})
	t.add("patch_embed.bias", 1, t.h, 1)
	t.add("pos_embed", 1, v.whole(t.side()*t.side()+1, 1, maxVocab, "num_positions"), t.h)
	h := b.hidden
	t.add("separators", 2, h, 1)
	t.add("conv", 1, h, 4*t.h+1)
	t.add("projector.linear", 1, h, h)
	t.add("projector.norm", 1, 2*h, 1)
	t.add("projector.mlp", 3, b.ffn, h)
}
