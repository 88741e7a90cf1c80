package model

import "slices"

// window is the field that states how many tokens a layer with a window sees.
func (d *decoder) window() string {
	if d.chunks {
		return "attention_chunk_size"
	}
	return "sliding_window"
}

// Which layers see a window only.
func everyOther(i int64) bool  { return i%2 == 0 }
func threeOfFour(i int64) bool { return (i+1)%4 != 0 }
func fourOfFive(i int64) bool  { return (i+1)%5 != 0 }
func fiveOfSix(i int64) bool   { return (i+1)%6 != 0 }

// heads are the attention heads of one layer.
type heads struct {
	query, kv, key, value int64 // how many, and how wide
	shared                bool  // keys and values are those of another layer
	tied                  bool  // values are the keys
}

// sharedKeys is Gemma 3n's and Gemma 4's: the last layers use the keys and values of one
// before. Files still hold weights for them.
func sharedKeys(l *layerBuilder, i int, _ bool, h *heads) {
	h.shared = l.text.has("num_kv_shared_layers") && i >= l.sharedFrom()
}

// globalHeads is Gemma 4's: layers that see all tokens have other heads.
func globalHeads(l *layerBuilder, i int, window bool, h *heads) {
	sharedKeys(l, i, window, h)
	if window {
		return
	}
	h.kv = l.text.whole(h.kv, 1, maxHeads, "num_global_key_value_heads")
	h.key = l.text.whole(h.key, 1, maxHeadDim, "global_head_dim")
	h.value = h.key
	h.tied = l.text.flag(false, "attention_k_eq_v")
}

// sharedFrom is the first layer that uses the keys and values of another.
func (b *builder) sharedFrom() int {
	n := b.text.whole(0, 0, maxLayers, "num_hidden_layers")
	return int(n - b.text.whole(0, 0, maxLayers, "num_kv_shared_layers"))
}

// doubleWide is Gemma 4's: layers that share keys and values may have twice the width.
func doubleWide(b *builder, i int, width int64) int64 {
	if b.text.flag(false, "use_double_wide_mlp") && i >= b.sharedFrom() {
		return 2 * width
	}
	return width
}

// sharedLikeExperts is Llama 4's: what all tokens go through is as wide as an expert.
func sharedLikeExperts(width, _, _ int64) int64 { return width }

// sharedTimes is Nemotron-H's: the width that the config states is of one of several.
func sharedTimes(width, count, stated int64) int64 {
	if stated > 0 {
		return stated * max(count, 1)
	}
	return width * count
}

// compressed is DeepSeek-V4's, of which transformers names the layers.
func compressed(b *builder, _ int64) mixer {
	if len(b.text.list("layer_types")) > 0 {
		return sparseAttention
	}
	return undecided
}

// everyFourthLatent is Kimi Linear's.
func everyFourthLatent(b *builder, i int64) mixer {
	listed := b.text.object("linear_attn_config")
	if slices.Contains(listed.integers("full_attn_layers", 0, maxLayers), i+1) || len(listed.of) == 0 && (i+1)%4 == 0 {
		return latentAttention
	}
	return linearAttention
}

func repeats(n int) func(b *builder) int { return func(*builder) int { return n } }

// untilGLM46 is 2 if the files are like GLM-4.5's, whose predictor repeats embedding and
// lm_head. Those of GLM-4.6, with a longer context, do not.
func untilGLM46(b *builder) int {
	const context45 = 131072
	if b.m.Context == context45 {
		return 2
	}
	return 0
}

// denseAsListed is Step 3.5's: predictors have no experts, and layer_types also
// states which attention they have.
func denseAsListed(b *builder, layer int) layerKind {
	if types := b.text.texts("layer_types"); layer < len(types) && types[layer] == "sliding_attention" {
		return layerKind{mixer: windowAttention, ffn: denseFFN}
	}
	return layerKind{mixer: fullAttention, ffn: denseFFN}
}

// otherHeads is Step 3.5's: layers with a window have another number of heads.
func otherHeads(l *layerBuilder, _ int, window bool, h *heads) {
	if !window {
		return
	}
	other := l.text.object("attention_other_setting")
	if len(other.of) == 0 {
		l.unsure("the config does not state attention_other_setting; layers with a window are counted with the heads of the others")
	}
	h.query = other.whole(h.query, 1, maxHeads, "num_attention_heads")
	h.kv = other.whole(h.kv, 1, maxHeads, "num_attention_groups")
}

// embeddingNorm is Bloom's norm of the embedding.
func embeddingNorm(l *layerBuilder) { l.norm("word_embeddings_layernorm", l.hidden) }

// halfWidth is of the first Qwen, whose intermediate_size counts gate and up together.
func halfWidth(_ *builder, _ int, width int64) int64 { return width / 2 }

// sharedWidth is Granite 4's without experts: the dense part is the shared one.
func sharedWidth(b *builder, _ int, width int64) int64 {
	return b.text.whole(width, 1, maxFFN, "shared_intermediate_size")
}

// adjusted is LFM2's width, two thirds of the stated one in whole multiples. Source:
// transformers, models/lfm2/modeling_lfm2.py, Lfm2MLP.
func adjusted(b *builder, _ int, width int64) int64 {
	t := b.text
	if !t.flag(b.kind == "lfm2", "block_auto_adjust_ff_dim") {
		return width
	}
	width = int64(t.number(1, 0, 64, "block_ffn_dim_multiplier") * float64(2*width/3))
	step := t.whole(256, 1, maxFFN, "block_multiple_of")
	return ceil(max(width, 1), step) * step
}

// convolutions is LFM2's: layers are short convolutions except for some.
func convolutions(b *builder, i int64) mixer {
	switch {
	case len(b.text.list("layer_types")) > 0:
		return undecided
	case slices.Contains(b.text.integers("full_attn_idxs", 0, maxLayers), i):
		return fullAttention
	}
	return shortConvolution
}

// attentionEvery is Jamba's: one layer of a period has attention, the others Mamba.
func attentionEvery(b *builder, i int64) mixer {
	if i%b.text.whole(8, 1, maxLayers, "attn_layer_period") == b.text.whole(4, 0, maxLayers, "attn_layer_offset") {
		return fullAttention
	}
	return mamba1
}

// attentionAt is Bamba's: the config lists the layers with attention.
func attentionAt(b *builder, i int64) mixer {
	if slices.Contains(b.text.integers("attn_layer_indices", 0, maxLayers), i) {
		return fullAttention
	}
	return mamba2
}

// lightningLayers is MiniMax-Text-01's list of the layers with softmax attention.
func lightningLayers(b *builder, i int64) mixer {
	list := b.text.integers("attn_type_list", 0, 1)
	switch {
	case i >= int64(len(list)):
		return undecided
	case list[i] == 1:
		return fullAttention
	}
	return linearAttention
}

// repeated are layers of kinds that alternate.
func repeated(kinds ...layerKind) func(b *builder) []layerKind {
	return func(b *builder) []layerKind { return slices.Repeat(kinds, int(b.layerCount())) }
}

// always is one kind of predictors.
func always(k layerKind) func(*builder, int) layerKind {
	return func(*builder, int) layerKind { return k }
}

// sharedBlocks are Zamba2's layers: all are Mamba-2, and hybrid ones run a block of
// attention and a feed-forward part before it, of which there are few for all of them.
// Source: transformers, models/zamba2/modeling_zamba2.py.
func sharedBlocks(b *builder) (kinds []layerKind) {
	types := b.text.list("layers_block_type")
	if len(types) == 0 {
		b.missing(b.text, "layers_block_type")
	}
	if len(types) > maxLayers {
		b.text.fail("layers_block_type", "has %d layers", len(types))
		return nil
	}
	b.covers("layers_block_type", b.layerCount())
	for _, kind := range types {
		switch kind {
		case "hybrid":
			kinds = append(kinds, layerKind{mixer: linearAttention, ffn: noFFN})
		case "mamba":
		default:
			b.text.fail("layers_block_type", "%s is not a known kind of layer", shown(kind))
			return nil
		}
		kinds = append(kinds, layerKind{mixer: mamba2, ffn: noFFN})
	}
	return kinds
}

// sharedBlock is what a layer of Zamba2 adds to its shared block, and what it keeps of
// the tokens: adapters, and the way back to the width of the layers.
func sharedBlock(l *layerBuilder) {
	h := l.hidden
	wide := 2 * h
	dim := wide / max(l.heads, 1)
	rank := l.assumed(l.text, 128, 1, maxHidden, "adapter_rank")
	l.layer.Cache = Cache{Kind: Full, Heads: l.kv, Key: dim, Value: dim, QueryHeads: l.heads, QueryWidth: wide, OutputWidth: wide}
	l.add("linear", h, h, ByOut, MLP)
	l.add("gate_up_proj_adapter", rank, h, Whole, MLP)
	l.add("gate_up_proj_adapter", 2*l.ffn, rank, ByOut, MLP)
	if l.text.flag(false, "use_shared_attention_adapter") {
		l.addMany("qkv_adapter", 3, 2*rank, wide, Whole, Attention)
	}
}

// sharedWeights are the blocks themselves: their attention sees the embedding of a token
// beside its state.
func sharedWeights(l *layerBuilder) {
	h := l.hidden
	wide := 2 * h
	kept := l.kv * (wide / max(l.heads, 1))
	n := l.assumed(l.text, 1, 1, maxLayers, "num_mem_blocks")
	l.addMany("shared.q_proj", n, wide, wide, ByOut, Attention)
	l.addMany("shared.kv_proj", 2*n, kept, wide, ByKV, Attention)
	l.addMany("shared.o_proj", n, h, wide, ByIn, Attention)
	l.addMany("shared.gate_up_proj", n, 2*l.ffn, h, ByOut, MLP)
	l.addMany("shared.down_proj", n, h, l.ffn, ByIn, MLP)
	l.vector("shared.norms", n*wide)
}

// tiedWithALiBi is Falcon-RW's: its files hold no lm_head, while those of the models with
// rotary positions do. FalconConfig states neither.
func tiedWithALiBi(l *layerBuilder) {
	if l.text.flag(false, "alibi") && !l.text.has("tie_word_embeddings") {
		l.m.Tied = true
	}
}

// falconBiases are of Falcon-RW's matrices.
func falconBiases(l *layerBuilder, _ layerKind) {
	if l.text.flag(false, "bias") {
		l.vector("biases", (l.heads+2*l.kv)*l.dim+l.hidden+l.ffn+l.hidden)
	}
}

// encoders are layers that keep nothing of the tokens they have seen.
func encoders(b *builder) []layerKind {
	b.note("the model is an encoder: it keeps no keys and values, so the KV cache shown stays unused")
	return repeated(layerKind{mixer: bothWays, ffn: denseFFN})(b)
}

// pooler is BERT's: embeddings of token types, a norm of them all, and what makes one
// vector of a sequence.
func pooler(l *layerBuilder) {
	tokenTypes(l)
	l.add("pooler", l.hidden, l.hidden+1, Whole, MLP)
}

// whisperCross is attention over an encoder's output, which is kept for each sequence.
func whisperCross(l *layerBuilder) {
	l.attention(0, false)
	c := &l.layer.Cache
	kept := l.text.whole(1500, 1, maxContext, "max_source_positions")
	*c = Cache{Kind: State, SSM: kept * c.Heads * (c.Key + c.Value), SSMBytes: l.m.Width, QueryHeads: c.QueryHeads, OutputWidth: c.OutputWidth}
}

// crossLayers is Llama 3.2 Vision's: some layers look at the image alone.
func crossLayers(b *builder) []layerKind {
	at := b.text.integers("cross_attention_layers", 0, maxLayers)
	kinds := make([]layerKind, b.layerCount())
	for i := range kinds {
		kinds[i] = layerKind{mixer: fullAttention, ffn: denseFFN}
		if slices.Contains(at, int64(i)) {
			kinds[i].mixer = linearAttention
		}
	}
	return kinds
}

// crossAttention is attention over the tokens of an image. Source: transformers,
// models/mllama/modeling_mllama.py.
func crossAttention(l *layerBuilder) {
	l.attention(0, false)
	l.vector("cross_attn.q_norm", l.dim)
	l.vector("cross_attn.k_norm", l.dim)
	l.vector("cross_attn.gates", 2)
	c := &l.layer.Cache
	v := l.f.object("vision_config")
	patches := v.whole(560, 1, 1<<14, "image_size") / v.whole(14, 1, 1<<10, "patch_size")
	kept := v.whole(4, 1, 64, "max_num_tiles") * (patches*patches + 1)
	*c = Cache{Kind: State, SSM: kept * c.Heads * (c.Key + c.Value), SSMBytes: l.m.Width, QueryHeads: c.QueryHeads, OutputWidth: c.OutputWidth}
}

// imageTokens are eight further rows of Llama 3.2 Vision's embedding.
func imageTokens(l *layerBuilder) { l.add("embed_tokens.image", 8, l.hidden, Whole, Embedding) }

// phiAdapters are Phi-4-multimodal's adapters for images and sound, which its files hold
// beside every matrix.
func phiAdapters(l *layerBuilder) {
	rank := l.f.object("vision_lora").whole(256, 0, maxHidden, "r") + l.f.object("speech_lora").whole(320, 0, maxHidden, "r")
	h, q := l.hidden, l.heads*l.dim
	widths := h + q + 2*l.kv*l.dim + q + h + h + 2*l.ffn + l.ffn + h
	l.add("lora", rank, widths*int64(len(l.m.Layers)), Whole, Norm)
}

// alternating is what a layer of Gemma 3n adds: the predictions of its other streams, and
// a low-rank residual. Source: transformers, models/gemma3n/modeling_gemma3n.py.
func alternating(l *layerBuilder, _ layerKind) {
	n := l.assumed(l.text, 4, 1, 64, "altup_num_inputs")
	rank := l.assumed(l.text, 64, 1, maxHidden, "laurel_rank")
	l.add("altup.modality_router", n, l.hidden, Whole, Router)
	l.vector("altup.coefs", n*n+n*n*n)
	l.vector("altup.norms", 3*l.hidden)
	l.add("laurel.linear_left", rank, l.hidden, Whole, MLP)
	l.add("laurel.linear_right", l.hidden, rank, Whole, MLP)
}

// alternatingEnds makes Gemma 3n's streams of the embedding, and one of them again.
func alternatingEnds(l *layerBuilder) {
	n := l.text.whole(4, 1, 64, "altup_num_inputs")
	l.addMany("altup_projections", max(2*(n-1), 1), l.hidden, l.hidden, Whole, MLP)
}

// tokenTypes are embeddings of the types of tokens.
func tokenTypes(l *layerBuilder) {
	l.add("token_type_embeddings", l.text.whole(2, 1, 1<<10, "type_vocab_size"), l.hidden, Whole, Embedding)
}

// maskedHead is ModernBERT's: a norm of the embeddings, and the head that predicts masked
// tokens. Source: transformers, models/modernbert/modeling_modernbert.py.
func maskedHead(l *layerBuilder) {
	l.vector("embeddings.norm", l.hidden)
	if arch := l.f.texts("architectures"); len(arch) > 0 && arch[0] == "ModernBertModel" {
		return
	}
	l.add("head.dense", l.hidden, l.hidden+1, Whole, MLP)
	l.vector("decoder.bias", l.m.Vocab)
}

// outputBias is GPT-Neo's: queries, keys and values have no bias.
func outputBias(l *layerBuilder, _ layerKind) { l.vector("attn.out_proj.bias", l.hidden) }

// fuyuPatches makes tokens of the pixels of a patch, in Fuyu, whose language model is
// Persimmon.
func fuyuPatches(l *layerBuilder) {
	if l.m.Type == "fuyu" {
		side := l.f.whole(30, 1, 1<<10, "patch_size")
		l.add("vision_embed_tokens", l.hidden, side*side*l.f.whole(3, 1, 16, "num_channels")+1, Whole, Tower)
	}
}

// recurrentBlocks are RecurrentGemma's: the list of kinds is repeated.
func recurrentBlocks(b *builder) []layerKind {
	types := b.text.texts("block_types")
	if len(types) == 0 {
		types = []string{"recurrent", "recurrent", "attention"}
	}
	kinds := make([]layerKind, b.layerCount())
	for i := range kinds {
		kinds[i] = layerKind{mixer: linearAttention, ffn: denseFFN}
		if types[i%len(types)] == "attention" {
			kinds[i].mixer = windowAttention
		}
	}
	return kinds
}

// recurrence is RecurrentGemma's layer with a gated linear recurrence. Source:
// transformers, models/recurrent_gemma/modeling_recurrent_gemma.py.
func recurrence(l *layerBuilder) {
	h, w := l.hidden, l.text.whole(l.hidden, 1, maxHidden, "lru_width")
	kernel := l.assumed(l.text, 4, 1, 1<<10, "conv1d_width")
	l.add("temporal_block.linear_x", w, h+1, ByOut, Attention)
	l.add("temporal_block.linear_y", w, h+1, ByOut, Attention)
	l.add("temporal_block.conv_1d", w, kernel+1, ByOut, Norm)
	l.addMany("temporal_block.rg_lru.gates", 2*l.heads, max(w/l.heads, 1), w/l.heads+1, ByOut, Norm)
	l.vector("temporal_block.rg_lru.recurrent_param", w)
	l.add("temporal_block.linear_out", h, w+1, ByIn, Attention)
	l.layer.Cache = Cache{Kind: State, Conv: w * (kernel - 1), SSM: w, SSMBytes: 4, QueryHeads: l.heads, LinearWidths: 2 * w, OutputWidth: w}
}

// subNorms are BitNet's, before the last matrix of attention and of the feed-forward part.
func subNorms(l *layerBuilder, _ layerKind) {
	l.vector("self_attn.attn_sub_norm", l.hidden)
	l.vector("mlp.ffn_sub_norm", l.ffn)
}
