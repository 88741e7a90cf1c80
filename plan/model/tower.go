package model

import "strings"

// towers adds what turns images and sound into tokens. Engines keep a copy on
// every rank unless told otherwise.
func (b *builder) towers() {
	if b.f.has("vision_config") {
		v := b.f.object("vision_config")
		b.m.Vision = Vision{v.whole(24, 0, maxLayers, "num_hidden_layers"), v.whole(1024, 0, maxHidden, "hidden_size")}
		b.tower("vision_config", v)
	}
	switch audio := b.f.object("audio_config"); {
	case !b.f.has("audio_config"):
	case audio.has("encoder_layers"), audio.has("num_mel_bins") && audio.has("max_source_positions"):
		b.whisper(audio)
	default:
		b.tower("audio_config", audio)
	}
	for _, name := range []string{"audio_processor", "speech_lora", "vision_lora"} {
		if b.f.has(name) {
			b.unsure("the config does not say the shape of the towers behind " + name + "; they are left out")
		}
	}
	if b.f.has("vision_config") || b.f.has("audio_config") {
		return
	}
	if arch := b.f.texts("architectures"); len(arch) > 0 && strings.Contains(arch[0], "ForConditionalGeneration") {
		b.unsure("the config has no vision_config, so that the vision tower is left out")
	}
}

// whisper adds an encoder of sound as Whisper has it: two convolutions, or three over
// time and pitch (Qwen3-Omni), layers with two matrices, and a projector. Source:
// transformers, models/whisper, qwen2_audio, qwen3_omni_moe and voxtral.
func (b *builder) whisper(a fields) {
	h := a.whole(0, 1, maxHidden, "d_model", "hidden_size")
	n := a.whole(0, 1, maxLayers, "encoder_layers", "num_hidden_layers")
	if h == 0 || n == 0 {
		b.unsure("the shape of audio_config is not said; the tower is left out")
		return
	}
	ffn := a.whole(4*h, 1, maxFFN, "encoder_ffn_dim", "intermediate_size")
	mels := b.assumed(a, 128, 1, 1<<12, "num_mel_bins")
	add := func(part string, count, out, in int64) {
		b.m.Towers = append(b.m.Towers, Tensor{Name: "audio_config." + part, Count: count, Out: out, In: in, Role: Tower, Format: b.full})
	}
	add("attn.qkv", n, 3*h, h)
	add("attn.proj", n, h, h)
	add("mlp.up", n, ffn, h)
	add("mlp.down", n, h, ffn)
	add("biases", n, 8*h+ffn, 1)
	add("norm", 1, 2*h, 1)
	out := a.whole(b.hidden, 1, maxHidden, "output_dim")
	if c := a.whole(0, 1, maxHidden, "downsample_hidden_size"); c > 0 {
		add("conv.0", 1, c, 9)
		add("conv.1", 2, c, 9*c)
		add("conv.out", 1, h, c*ceil(mels, 8))
		add("projector.0", 1, h, h)
		add("projector.1", 1, out, h)
		return
	}
	add("conv.0", 1, h, 3*mels)
	add("conv.1", 1, h, 3*h)
	if !a.has("output_dim") { // else positions are computed
		add("positions", 1, b.assumed(a, 1500, 1, maxContext, "max_source_positions"), h)
	}
	if b.m.Type == "voxtral" {
		add("projector.0", 1, b.hidden, 4*h)
		add("projector.1", 1, b.hidden, b.hidden)
		return
	}
	add("projector", 1, out, h)
}

func (b *builder) tower(name string, v fields) {
	h := v.whole(0, 1, maxHidden, "embed_dim", "vt_hidden_size", "hidden_size")
	if name == "vision_config" && b.m.Type == "qwen2_vl" {
		h = v.whole(0, 1, maxHidden, "embed_dim")
	}
	n := v.whole(0, 1, maxLayers, "depth", "vt_num_hidden_layers", "num_hidden_layers")
	if h == 0 || n == 0 {
		b.unsure("the shape of " + name + " is not said; the tower is left out")
		return
	}
	ffn := v.whole(int64(v.number(4, 0, 64, "mlp_ratio")*float64(h)), 1, maxFFN, "vt_intermediate_size", "intermediate_size")
	kind := v.text("model_type")
	if kind == "" {
		kind = b.m.Type
	}
	gated := strings.HasPrefix(kind, "qwen2_5_vl") || strings.HasPrefix(kind, "pixtral") || strings.HasPrefix(kind, "gemma4") ||
		strings.Contains(b.m.Type, "mistral") || b.is("qwen2") && (v.text("hidden_act") == "silu" || v.has("out_hidden_size")) // Qwen2.5-VL, whose text config may be all there is
	add := func(part string, count, out, in int64) {
		t := Tensor{Name: name + "." + part, Count: count, Out: out, In: in, Role: Tower, Format: b.full}
		b.m.Towers = append(b.m.Towers, t)
	}
	add("attn.qkv", n, 3*h, h)
	add("attn.proj", n, h, h)
	if gated {
		add("mlp.gate", n, ffn, h)
	}
	add("mlp.up", n, ffn, h)
	add("mlp.down", n, h, ffn)
	add("biases", n, 9*h+ffn, 1)
	patch := v.whole(14, 1, 1<<10, "patch_size")
	depth := v.whole(1, 1, 64, "temporal_patch_size")
	add("patch_embed", 1, h, v.whole(3, 1, 64, "in_channels", "in_chans", "num_channels")*depth*patch*patch)
	b.projector(name, v, h, patch, add)
}

// projector adds the positions and what stands between tower and language model.
func (b *builder) projector(name string, v fields, h, patch int64, add func(part string, count, out, in int64)) {
	merge := v.whole(2, 1, 16, "spatial_merge_size")
	wide := h * merge * merge
	if n := v.whole(0, 1, maxVocab, "num_position_embeddings"); n > 0 {
		add("pos_embed", 1, n, h)
	}
	switch {
	case strings.HasPrefix(b.m.Type, "gemma3"):
		if size := v.whole(896, 1, 1<<14, "image_size"); patch > 0 {
			add("pos_embed", 1, max(size/patch, 1)*max(size/patch, 1), h)
		}
		add("projector", 1, b.hidden, h)
	case strings.HasPrefix(b.m.Type, "gemma4"):
		if name == "vision_config" {
			add("pos_embed", 2, 10240, h)
		}
		add("projector", 1, b.hidden, h)
	case strings.HasPrefix(b.m.Type, "kimi"):
		add("pos_embed", 1, v.whole(64, 1, 1<<12, "init_pos_emb_height")*v.whole(64, 1, 1<<12, "init_pos_emb_width"), h)
		add("projector.0", 1, 4*h, 4*h)
		add("projector.1", 1, b.hidden, 4*h)
	case strings.Contains(b.m.Type, "mistral"), b.m.Type == "pixtral":
		merge = b.f.whole(merge, 1, 16, "spatial_merge_size")
		add("patch_merger", 1, h, h*merge*merge)
		add("projector.0", 1, b.hidden, h)
		add("projector.1", 1, b.hidden, b.hidden)
	case b.is("llama4"):
		out := v.whole(4096, 1, maxHidden, "projector_output_dim", "vision_output_dim")
		add("adapter.0", 1, out, v.whole(wide, 1, maxFFN, "projector_input_dim"))
		add("adapter.1", 1, out, out)
		add("projector", 1, b.hidden, out)
	default:
		mergers := 1 + int64(len(v.list("deepstack_visual_indexes")))
		add("merger.0", mergers, wide, wide)
		add("merger.1", mergers, v.whole(b.hidden, 1, maxHidden, "out_hidden_size"), wide)
	}
}
