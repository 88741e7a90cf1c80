package model

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// tower is how an encoder of images differs from the plain one: layers of attention and
// two matrices, all with biases, over patches that a convolution makes. A bridge connects it
// to the language model.
type tower struct {
	defaults        defaults // of its configuration class
	gated           bool     // three matrices instead of two
	noBias          bool     // only the norms have vectors
	noAttentionBias bool     // attention has none, in a tower that has others
	grid            bool     // learned positions, one for each patch of the largest image and the class token
	class           bool     // the class token has a vector
	singleFrame     bool     // patches are of one image, whatever temporal_patch_size states
	extra           func(t *towerBuilder)
	params          int64 // of a tower whose shape the config does not state
}

// towers adds what turns images and sound into tokens. Engines keep a copy on
// every rank unless configured otherwise.
func (b *builder) towers() {
	b.noteUncounted()
	own := b.family.addTowers
	if w := b.wholeOf(); w != nil && w.towers != nil {
		own = w.towers
	}
	if b.f.has("vision_config") {
		v := b.f.object("vision_config")
		b.m.Vision = b.visionOf(v)
		if own == nil {
			b.vision(v)
		}
	}
	if own != nil {
		own(b)
		return
	}
	switch audio := b.f.object("audio_config"); {
	case !b.f.has("audio_config"):
	case matches("gemma3n gemma4", b.m.Type) > 0:
		b.conformer(audio)
	case audio.has("encoder_layers"), audio.has("num_mel_bins") && audio.has("max_source_positions"):
		b.whisper(audio)
	default:
		b.unsure("the audio tower of type " + shown(audio.text("model_type")) + " is not known; it is left out")
	}
	for _, name := range []string{"audio_processor", "speech_lora", "vision_lora", "img_processor"} {
		if b.f.has(name) {
			b.unsure("the config does not state the shape of the towers behind " + name + "; they are left out")
		}
	}
	if b.f.has("vision_config") || b.f.has("audio_config") {
		return
	}
	if arch := b.f.texts("architectures"); len(arch) > 0 && strings.Contains(arch[0], "ForConditionalGeneration") && matches("chatglm t5 umt5 mt5 bart mbart m2m_100 pegasus", b.m.Type) == 0 {
		b.unsure("the config has no vision_config, so the vision tower is left out")
	}
}

// partsKnown are the objects of a config that are read elsewhere, or describe no weights of
// the files.
var partsKnown = []string{"text_config", "llm_config", "language_config", "vision_config", "audio_config", "visual", "vision_encoder_config", "talker_config",
	"token2wav_config", "code2wav_config", "speculative_config", "attn_config", "ffn_config"}

// noteUncounted states what of the config describes a part with layers that is not counted.
func (b *builder) noteUncounted() {
	for _, name := range slices.Sorted(maps.Keys(b.f.of)) {
		part, ok := b.f.of[name].(map[string]any)
		if !ok || slices.Contains(partsKnown, name) {
			continue
		}
		if layered(part) {
			b.unsure("what " + name + " describes is not counted")
		}
	}
}

// layered reports whether an object, or one in it, states a number of layers.
func layered(part map[string]any) bool {
	for _, name := range []string{"num_hidden_layers", "num_layers", "nlayers", "n_layers", "n_layer", "encoder_layers", "depth"} {
		if part[name] != nil {
			return true
		}
	}
	for _, inner := range part {
		if inner, ok := inner.(map[string]any); ok && layered(inner) {
			return true
		}
	}
	return false
}

// towerBuilder collects the tensors of one tower.
type towerBuilder struct {
	b         *builder
	name      string
	v         fields
	h, n, ffn int64
	patch     int64
	kind      string
}

func (t *towerBuilder) add(part string, count, out, in int64) {
	if count > 0 {
		t.b.m.Towers = append(t.b.m.Towers, Tensor{Name: t.name + "." + part, Count: count, Out: out, In: in, Role: Tower, Format: t.b.full})
	}
}

// twoLayers adds a projector of two matrices, with or without biases.
func (t *towerBuilder) twoLayers(in, out int64, biases bool) {
	more := int64(0)
	if biases {
		more = 1
	}
	t.add("projector.0", 1, out, in+more)
	t.add("projector.1", 1, out, out+more)
}

// side returns how many patches the largest image has in a row.
func (t *towerBuilder) side() int64 {
	size := t.v.whole(0, 1, 1<<14, "image_size")
	if list, ok := t.v.of["image_size"].([]any); ok && len(list) > 0 {
		size = t.v.integer("image_size", list[0], 1, 1<<14)
	}
	return max(size/t.patch, 1)
}

// merged returns how many patches become one token, in a row.
func (t *towerBuilder) merged() int64 { return t.v.whole(2, 1, 16, "spatial_merge_size") }

// vision adds the tower of vision_config.
func (b *builder) vision(v fields) {
	t := &towerBuilder{b: b, name: "vision_config", v: v, kind: v.text("model_type")}
	found, known := &tower{}, false
	for _, kind := range []string{t.kind, b.m.Type} {
		if f, n := lookup(kind, func(f *family) bool { return f.tower != nil }); n > 0 {
			found, known = f.tower, true
			break
		}
	}
	t.v = b.withDefaults(v, found.defaults)
	if found.params > 0 {
		t.h = v.whole(2048, 1, maxHidden, "hidden_size")
		t.add("all", 1, found.params, 1)
	} else if !t.read() {
		b.unsure("the shape of vision_config is not in the config; the tower is left out")
		return
	} else {
		t.layers(*found)
	}
	f, n := lookup(b.m.Type, func(f *family) bool { return f.bridge != nil })
	if n > 0 {
		f.bridge(t)
	}
	if !known || n == 0 {
		b.unsure("the vision tower of a " + shown(b.m.Type) + " is not known here; it is counted as a plain one")
	}
}

// read reads the shape, and reports whether there is one.
func (t *towerBuilder) read() bool {
	v := t.v
	t.h = v.whole(0, 1, maxHidden, "embed_dim", "vt_hidden_size", "hidden_size", "width")
	t.n = v.whole(0, 1, maxLayers, "depth", "vt_num_hidden_layers", "num_hidden_layers", "layers")
	t.ffn = v.whole(int64(v.number(4, 0, 64, "mlp_ratio")*float64(t.h)), 1, maxFFN, "vt_intermediate_size", "intermediate_size")
	t.patch = v.whole(14, 1, 1<<10, "patch_size")
	if matches("glm4v glm4v_moe", t.b.m.Type) > 0 {
		t.ffn = v.whole(t.ffn, 1, maxFFN, "out_hidden_size")
	}
	return t.h > 0 && t.n > 0
}

func (t *towerBuilder) layers(w tower) {
	h, n, ffn := t.h, t.n, t.ffn
	t.add("attn.qkv", n, 3*h, h)
	t.add("attn.proj", n, h, h)
	if w.gated {
		t.add("mlp.gate", n, ffn, h)
	}
	t.add("mlp.up", n, ffn, h)
	t.add("mlp.down", n, h, ffn)
	patch := t.v.whole(3, 1, 64, "in_channels", "in_chans", "num_channels") * t.patch * t.patch
	if !w.singleFrame {
		patch *= t.v.whole(1, 1, 64, "temporal_patch_size")
	}
	switch {
	case w.noBias:
		t.add("norms", n, 2*h, 1)
	case w.gated:
		t.add("biases", n, 7*h+2*ffn, 1)
	case w.noAttentionBias:
		t.add("biases", n, 5*h+ffn, 1)
	case !t.v.flag(true, "qkv_bias"):
		t.add("biases", n, 6*h+ffn, 1)
	default:
		t.add("biases", n, 9*h+ffn, 1)
	}
	t.add("patch_embed", 1, h, patch)
	class := int64(0)
	if w.class {
		class = 1
		t.add("class_embed", 1, h, 1)
	}
	if w.grid {
		t.add("pos_embed", 1, t.v.whole(t.side()*t.side(), 1, maxVocab, "num_patches")+class, h)
	}
	if w.extra != nil {
		w.extra(t)
	}
}

// qwenMerger merges patches and projects them, in some towers also from layers between.
func qwenMerger(t *towerBuilder) {
	wide := t.h * t.merged() * t.merged()
	if n := t.v.whole(0, 1, maxVocab, "num_position_embeddings"); n > 0 {
		t.add("pos_embed", 1, n, t.h)
	}
	mergers := 1 + int64(len(t.v.list("deepstack_visual_indexes")))
	out := t.b.hidden
	if matches("qwen2_vl", t.b.m.Type) == 0 { // whose hidden_size is that of the language model
		out = t.v.whole(out, 1, maxHidden, "out_hidden_size")
	}
	t.add("merger.0", mergers, wide, wide+1)
	t.add("merger.1", mergers, out, wide+1)
	t.add("merger.norm", 1, 2*t.h+(mergers-1)*2*wide, 1)
}

func lastNorm(t *towerBuilder) {
	t.add("patch_embed.bias", 1, t.h, 1)
	t.add("norm", 1, 2*t.h, 1)
}

// pooled is SigLIP's last norm, and the head that pools unless vision_use_head states no.
func pooled(t *towerBuilder) {
	lastNorm(t)
	if !t.v.flag(true, "vision_use_head") {
		return
	}
	t.add("head.attention", 1, 4*t.h, t.h+1)
	t.add("head.mlp", 2, t.ffn, t.h)
	t.add("head.vectors", 1, 4*t.h+t.ffn, 1)
}

// tiles is Llama 3.2 Vision's: global layers, and embeddings of tiles. Its attention has
// no biases. Source: transformers, models/mllama/modeling_mllama.py.
func tiles(t *towerBuilder) {
	global := t.v.whole(8, 0, maxLayers, "num_global_layers")
	t.add("global.attention", global, 4*t.h, t.h)
	t.add("global.mlp", 2*global, t.ffn, t.h)
	t.add("global.biases", global, 5*t.h+t.ffn+2, 1)
	ratios, most := int64(9), t.v.whole(4, 1, 64, "max_num_tiles")
	if list := t.v.list("supported_aspect_ratios"); len(list) > 0 {
		ratios = int64(len(list)) + 1
	}
	positions := t.side()*t.side() + 1
	t.add("class_embed", 1, t.h, 1)
	t.add("pos_embed", 1, positions, t.h)
	t.add("tile_embed", ratios, most*positions, t.h)
	t.add("tile_norms", 2*ratios, most, t.h)
	t.add("norms", 1, 4*t.h, 1)
}

// layerScales are InternViT's: two vectors a layer, and norms of queries and keys in the
// large one, which has no bias there.
func layerScales(t *towerBuilder) {
	t.add("scales", t.n, 2*t.h, 1)
	t.add("patch_embed.bias", 1, t.h, 1)
	if t.v.flag(false, "qk_normalization") {
		t.add("qk_norm", t.n, 2*t.h, 1)
	}
}

// squareGrid is MoonViT's: positions for a square of patches.
func squareGrid(t *towerBuilder) {
	t.add("pos_embed", 1, t.v.whole(64, 1, 1<<12, "init_pos_emb_height")*t.v.whole(64, 1, 1<<12, "init_pos_emb_width"), t.h)
	lastNorm(t)
}

// downsampled is GLM-4V's merger. Source: transformers, models/glm4v/modeling_glm4v.py.
func downsampled(t *towerBuilder) {
	out := t.ffn
	inner := t.v.whole(4*out, 1, maxFFN, "intermediate_size")
	merge := t.merged()
	t.add("patch_embed.bias", 1, t.h, 1)
	t.add("norms", 1, 2*t.h, 1)
	t.add("downsample", 1, out, t.h*merge*merge+1)
	t.add("merger.proj", 1, out, out)
	t.add("merger.mlp", 3, inner, out)
	t.add("merger.norm", 1, 2*out, 1)
}

// tokenProjection is Gemma 3n's from a tower to the language model, with further
// tokens.
func tokenProjection(t *towerBuilder) {
	t.add("embedding", 1, t.v.whole(128, 1, maxVocab, "vocab_size")+2, t.h)
	t.add("projector", 1, t.b.hidden, t.h)
}

// conformer is the encoder of sound of Gemma 3n, and of Gemma 4 with other names.
// Source: transformers, models/gemma3n and models/gemma4, their audio encoders.
func (b *builder) conformer(a fields) {
	t := &towerBuilder{b: b, name: "audio_config", v: a}
	h := b.assumed(a, 1536, 1, maxHidden, "hidden_size")
	n := b.assumed(a, 12, 1, maxLayers, "conf_num_hidden_layers", "num_hidden_layers")
	heads := a.whole(8, 1, maxHeads, "conf_num_attention_heads", "num_attention_heads")
	t.h = h
	t.add("feed_forward", 4*n, 4*h, h)
	t.add("attention", 5*n, h, h)
	t.add("convolution", n, 3*h, h)
	t.add("vectors", n, (4+2+2+1)*h+h/heads+h*a.whole(5, 1, 1<<10, "conf_conv_kernel_size", "conv_kernel_size"), 1)
	c0, c1 := int64(128), int64(32)
	for _, name := range []string{"sscp_conv_channel_size", "subsampling_conv_channels"} {
		if c := a.integers(name, 1, 1<<14); len(c) == 2 {
			c0, c1 = c[0], c[1]
		}
	}
	t.add("conv.0", 1, c0, 9+1)
	t.add("conv.1", 1, c1, 9*c0+1)
	t.add("conv.out", 1, h, c1*ceil(a.whole(128, 1, 1<<12, "input_feat_size"), 4))
	if matches("gemma4", b.m.Type) > 0 {
		out := a.whole(1536, 1, maxHidden, "output_proj_dims")
		t.add("output", 1, out, h+1)
		t.add("projector", 1, b.hidden, out)
		return
	}
	tokenProjection(t)
}

// phi3Towers are Phi-3.5-vision's: CLIP's large model for images of 336 × 336.
func (b *builder) phi3Towers() {
	v := fields{of: map[string]any{"image_size": json.Number("336")}, err: b.f.err}
	t := &towerBuilder{b: b, name: "vision_config", h: 1024, n: 24, ffn: 4096, patch: 14, v: v}
	t.layers(tower{grid: true, class: true})
	t.add("norms", 1, 4*t.h, 1)
	t.add("separators", 2, 4*t.h, 1)
	t.twoLayers(4*t.h, b.hidden, true)
}

// phi4Towers are Phi-4-multimodal's, whose config does not state all of the shape: SigLIP
// of 27 layers for images, and a conformer for sound as large as in the published files.
func (b *builder) phi4Towers() {
	t := &towerBuilder{b: b, name: "vision_config", h: 1152, n: 27, ffn: 4304, patch: 14, v: fields{of: map[string]any{}, err: b.f.err}}
	t.layers(tower{})
	t.add("pos_embed", 1, 32*32, t.h)
	pooled(t)
	t.add("norms", 1, 2*t.h, 1)
	t.twoLayers(t.h, b.hidden, true)
	const conformer = 441238304
	t.name, t.h = "audio_config", 1024
	t.add("all", 1, conformer, 1)
	for range 2 {
		t.twoLayers(t.h, b.hidden, true)
	}
}

// whisper adds an encoder of sound as Whisper has it: two convolutions, or three over
// time and pitch (Qwen3-Omni), layers with two matrices, and a projector. Source:
// transformers, models/whisper, qwen2_audio, qwen3_omni_moe and voxtral.
func (b *builder) whisper(a fields) {
	t := &towerBuilder{b: b, name: "audio_config", v: a}
	h := a.whole(0, 1, maxHidden, "d_model", "hidden_size")
	n := a.whole(0, 1, maxLayers, "encoder_layers", "num_hidden_layers")
	if h == 0 || n == 0 {
		b.unsure("the shape of audio_config is not in the config; the tower is left out")
		return
	}
	ffn := a.whole(4*h, 1, maxFFN, "encoder_ffn_dim", "intermediate_size")
	mels := b.assumed(a, 128, 1, 1<<12, "num_mel_bins")
	t.add("attn.qkv", n, 3*h, h)
	t.add("attn.proj", n, h, h)
	t.add("mlp.up", n, ffn, h)
	t.add("mlp.down", n, h, ffn)
	t.add("biases", n, 8*h+ffn, 1)
	t.add("norm", 1, 2*h, 1)
	out := a.whole(b.hidden, 1, maxHidden, "output_dim")
	if c := a.whole(0, 1, maxHidden, "downsample_hidden_size"); c > 0 {
		t.add("conv.0", 1, c, 9)
		t.add("conv.1", 2, c, 9*c)
		t.add("conv.out", 1, h, c*ceil(mels, 8))
		t.add("projector.0", 1, h, h)
		t.add("projector.1", 1, out, h)
		return
	}
	t.add("conv.0", 1, h, 3*mels+1)
	t.add("conv.1", 1, h, 3*h+1)
	if !a.has("output_dim") { // else positions are computed
		t.add("positions", 1, b.assumed(a, 1500, 1, maxContext, "max_source_positions"), h)
	}
	switch {
	case b.family.addTowers != nil: // an encoder and a decoder
	case b.m.Type == "voxtral":
		t.add("projector.0", 1, b.hidden, 4*h)
		t.add("projector.1", 1, b.hidden, b.hidden)
	default:
		t.add("projector", 1, out, h+1)
		if matches("qwen2_audio qwen2_5_omni qwen3_omni_moe", b.m.Type) == 0 {
			b.unsure("the connection of audio tower and language model of a " + shown(b.m.Type) + " is not known here")
		}
	}
}

// inTower is the bridge of towers that project to the language model themselves.
func inTower(*towerBuilder) {}

func twoMatrices(t *towerBuilder) { t.twoLayers(t.h, t.b.hidden, true) }

func fourNorms(t *towerBuilder) { t.add("norms", 1, 4*t.h, 1) }

func oneNorm(t *towerBuilder) { t.add("norm", 1, 2*t.h, 1) }

func gemma4Tower(t *towerBuilder) {
	t.add("norms.more", t.n, 2*t.h+2*t.v.whole(64, 1, maxHeadDim, "head_dim"), 1)
	t.add("pos_embed", 2, t.v.whole(10240, 1, maxVocab, "position_embedding_size"), t.h)
}

func dotsTower(t *towerBuilder) {
	qwenMerger(t)
	t.add("patch_embed.vectors", 1, 3*t.h, 1)
}

// packedPositions are PaddleOCR-VL's, of images in a row.
func packedPositions(t *towerBuilder) {
	pooled(t)
	const packed = 1 << 15
	t.add("packing_pos_embed", 1, packed, t.h)
}

// shuffled is how wide patches are after a number of them, in a row, are joined.
func (t *towerBuilder) shuffled(field string) int64 {
	scale := t.b.f.whole(2, 1, 16, field)
	return t.h * scale * scale
}

// normed is a projector of a norm and two matrices; the second takes a part of what the first makes.
func (t *towerBuilder) normed(norm, in, inner, part int64) {
	if norm > 0 {
		t.add("projector.norm", 1, norm, 1)
	}
	t.add("projector.0", 1, inner, in+1)
	t.add("projector.1", 1, t.b.hidden, inner/part+1)
}

func ayaBridge(t *towerBuilder) {
	wide := t.shuffled("downsample_factor")
	t.normed(2*wide, wide, t.b.f.whole(t.b.hidden, 1, maxFFN, "alignment_intermediate_size"), 2)
}

func cohereBridge(t *towerBuilder) {
	t.normed(0, t.shuffled("downsample_factor"), t.b.f.whole(36864, 1, maxFFN, "alignment_intermediate_size"), 2)
}

func liquidBridge(t *towerBuilder) {
	wide := t.shuffled("downsample_factor")
	t.normed(2*wide, wide, t.b.f.whole(2560, 1, maxFFN, "projector_hidden_size"), 1)
}

func paddleBridge(t *towerBuilder) {
	wide := t.h * t.merged() * t.merged()
	t.normed(2*t.h, wide, wide, 1)
}

func kimiBridge(t *towerBuilder) { t.normed(2*t.h, 4*t.h, 4*t.h, 1) }

func internBridge(t *towerBuilder) {
	t.add("projector.norm", 1, 8*t.h, 1)
	t.twoLayers(4*t.h, t.b.hidden, true)
}

func ideficsBridge(t *towerBuilder) { t.add("projector", 1, t.b.hidden, t.shuffled("scale_factor")) }

func mistralBridge(t *towerBuilder) {
	t.add("patch_merger", 1, t.h, t.shuffled("spatial_merge_size")+1)
	t.twoLayers(t.h, t.b.hidden, false)
}

// ernieBridge merges patches over space, and over pairs of frames.
func ernieBridge(t *towerBuilder) {
	wide := t.shuffled("spatial_conv_size")
	t.add("resampler.spatial", 2, wide, wide+1)
	t.add("resampler.temporal.0", 1, wide, 2*wide+1)
	t.add("resampler.temporal.1", 1, wide, wide+1)
	t.add("resampler.norms", 4, wide, 1)
	t.add("resampler.mlp", 1, t.b.hidden, wide+1)
	t.add("resampler.after_norm", 1, t.b.hidden, 1)
}

func llama4Bridge(t *towerBuilder) {
	in := t.v.whole(4*t.h, 1, maxFFN, "projector_input_dim")
	out := t.v.whole(4096, 1, maxHidden, "projector_output_dim", "vision_output_dim")
	t.add("adapter.0", 1, in, t.ffn)
	t.add("adapter.1", 1, out, in)
	t.add("projector", 1, t.b.hidden, out)
}
