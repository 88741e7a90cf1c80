package model

import "fmt"

// layerBuilder collects the tensors of one layer.
type layerBuilder struct {
	*builder
	name  string // of the layer, for the lists of a quantisation
	layer Layer
	edge  bool // the first or the last layer
	// kvHeads are the layer's own, 0 if it has as many as the others.
	kvHeads int64
}

func (b *builder) layer(i int, k layerKind) Layer {
	l := layerBuilder{builder: b, name: fmt.Sprintf("model.layers.%d.", i)}
	last := int(b.text.whole(0, 1, maxLayers, "num_hidden_layers", "n_layer", "num_layers")) - 1
	l.edge = i == 0 || i == last
	l.layer.Matrices = b.matrices
	l.kvHeads = k.kv
	l.mixer(i, k.mixer)
	if b.is("gemma4") && k.ffn == "moe" { // a dense part stands beside the experts
		l.dense("mlp", b.ffn)
	}
	switch k.ffn {
	case "dense":
		width := b.text.whole(b.ffn, 0, maxFFN, "intermediate_size_mlp")
		if k.width > 0 {
			width = k.width
		}
		if width == 0 {
			b.missing(b.text, "intermediate_size")
			return l.layer
		}
		if b.is("gemma4") && b.text.flag(false, "use_double_wide_mlp") && i >= b.sharedFrom() {
			width *= 2
		}
		l.dense("mlp", width)
	case "moe":
		l.moe(i)
	case "replaced":
		l.add("mlp.linear", b.hidden, b.hidden, ByOut, MLP)
	}
	l.norms(k)
	if n := b.text.whole(0, 0, maxHidden, "hidden_size_per_layer_input"); n > 0 && b.is("gemma4", "gemma3n") {
		l.add("per_layer_input_gate", n, b.hidden, ByOut, MLP)
		l.add("per_layer_projection", b.hidden, n, ByIn, MLP)
		l.vector("post_per_layer_input_norm", b.hidden)
	}
	return l.layer
}

// sharedFrom is the first layer that uses the keys and values of another.
func (b *builder) sharedFrom() int {
	n := b.text.whole(0, 0, maxLayers, "num_hidden_layers")
	return int(n - b.text.whole(0, 0, maxLayers, "num_kv_shared_layers"))
}

// add adds a matrix.
func (l *layerBuilder) add(name string, out, in int64, part Part, role Role) *Tensor {
	return l.addMany(name, 1, out, in, part, role)
}

func (l *layerBuilder) addMany(name string, count, out, in int64, part Part, role Role) *Tensor {
	t := Tensor{Name: name, Out: out, In: in, Count: count, Part: part, Role: role}
	if l.edge && l.q.ignoreEnds {
		t.Format = l.full
	} else {
		t.Format = l.q.format(l.name+name, &t, l.full)
	}
	l.layer.Tensors = append(l.layer.Tensors, t)
	return &l.layer.Tensors[len(l.layer.Tensors)-1]
}

// vector adds a vector that is never quantised.
func (l *layerBuilder) vector(name string, n int64) *Tensor {
	t := l.add(name, n, 1, Whole, Norm)
	t.Format = l.full
	return t
}

func (l *layerBuilder) mixer(i int, kind string) {
	c := &l.layer.Cache
	c.QueryHeads = l.heads
	switch kind {
	case "full", "window":
		l.attention(i, kind == "window")
	case "latent":
		l.latent(i)
	case "linear":
		if l.is("kimi_linear") {
			l.kimiDelta()
		} else {
			l.delta()
		}
	case "mamba":
		l.mamba()
	case "sparse":
		l.sparse(i)
	case "replaced":
		l.add("self_attn.linear", l.hidden, l.hidden, ByOut, Attention)
	}
}

func (l *layerBuilder) attention(i int, window bool) {
	t, h := l.text, l.hidden
	heads, kv, dim, vdim := l.heads, l.kv, l.dim, l.vdim
	if l.kvHeads > 0 {
		kv = l.kvHeads
	}
	c := &l.layer.Cache
	c.Kind = Full
	tied := false // values are the keys
	if window {
		c.Kind = Window
		if l.is("llama4") {
			c.Window = l.assumed(t, 8192, 1, maxContext, "attention_chunk_size")
		} else {
			c.Window = l.assumed(t, 4096, 1, maxContext, "sliding_window")
		}
		heads = t.whole(heads, 1, maxHeads, "swa_num_attention_heads")
		kv = t.whole(kv, 1, maxHeads, "swa_num_key_value_heads")
		dim = t.whole(dim, 1, maxHeadDim, "swa_head_dim")
		vdim = t.whole(vdim, 1, maxHeadDim, "swa_v_head_dim")
	} else if l.is("gemma4") {
		kv = t.whole(kv, 1, maxHeads, "num_global_key_value_heads")
		dim = t.whole(dim, 1, maxHeadDim, "global_head_dim")
		vdim = dim
		tied = t.flag(false, "attention_k_eq_v")
	}
	shared := l.is("gemma4", "gemma3n") && t.has("num_kv_shared_layers") && i >= l.sharedFrom()
	c.Heads, c.Key, c.Value = kv, dim, vdim
	c.QueryWidth, c.OutputWidth = heads*dim, heads*vdim
	q := heads * dim
	if l.outGate {
		q *= 2
	}
	fused := func(name string, out int64, part Part) {
		x := l.add("self_attn."+name, out, h, part, Attention)
		x.Fused, x.Heads = "qkv", kv
	}
	fused("q_proj", q, ByOut)
	if !shared {
		fused("k_proj", kv*dim, ByKV)
		if !tied {
			fused("v_proj", kv*vdim, ByKV)
		}
	}
	l.add("self_attn.o_proj", h, heads*vdim, ByIn, Attention)
	if l.bias {
		l.vector("self_attn.qkv_bias", q+kv*(dim+vdim))
		if l.is("gpt_oss", "gpt2", "llama") {
			l.vector("self_attn.o_proj.bias", h)
		}
	}
	if l.is("gpt_oss") {
		l.vector("self_attn.sinks", heads)
	}
	switch {
	case l.qkNorm && l.qkFull:
		l.vector("self_attn.q_norm", q)
		l.vector("self_attn.k_norm", kv*dim)
	case l.qkNorm:
		l.vector("self_attn.q_norm", dim)
		l.vector("self_attn.k_norm", dim)
	}
}

// latent is multi-head latent attention (DeepSeek-V2, section 2.1), with the
// indexer of DeepSeek sparse attention where there is one.
func (l *layerBuilder) latent(i int) {
	t, h, n := l.text, l.hidden, l.heads
	rank := t.whole(512, 1, maxHidden, "kv_lora_rank")
	rope := l.assumed(t, 64, 0, maxHeadDim, "qk_rope_head_dim")
	nope := l.assumed(t, 128, 1, maxHeadDim, "qk_nope_head_dim")
	v := l.assumed(t, 128, 1, maxHeadDim, "v_head_dim")
	qRank := t.whole(0, 1, maxHidden, "q_lora_rank")
	l.layer.Cache = Cache{Kind: Latent, Latent: rank + rope, QueryHeads: n, QueryWidth: n * (nope + rope), OutputWidth: n * v, Key: nope, Value: v}
	if qRank > 0 {
		l.add("self_attn.q_a_proj", qRank, h, Whole, Attention)
		l.vector("self_attn.q_a_layernorm", qRank)
		l.add("self_attn.q_b_proj", n*(nope+rope), qRank, ByOut, Attention)
	} else {
		l.add("self_attn.q_proj", n*(nope+rope), h, ByOut, Attention)
	}
	l.add("self_attn.kv_a_proj_with_mqa", rank+rope, h, Whole, Attention)
	l.vector("self_attn.kv_a_layernorm", rank)
	l.add("self_attn.kv_b_proj", n*(nope+v), rank, ByOut, Attention)
	l.add("self_attn.o_proj", h, n*v, ByIn, Attention)
	if l.is("kimi_linear") {
		l.add("self_attn.g_proj", n*v, h, ByOut, Attention)
	}
	if types := t.list("indexer_types"); t.has("index_n_heads") && (len(types) <= i || types[i] == "full") {
		l.indexer(qRank)
	}
}

func (l *layerBuilder) indexer(qRank int64) {
	t := l.text
	heads := l.assumed(t, 64, 1, maxHeads, "index_n_heads")
	dim := l.assumed(t, 128, 1, maxHeadDim, "index_head_dim")
	l.layer.Cache.Index = dim
	l.add("self_attn.indexer.wq_b", heads*dim, max(qRank, 1), Whole, Attention)
	l.add("self_attn.indexer.wk", dim, l.hidden, Whole, Attention)
	l.vector("self_attn.indexer.k_norm", 2*dim)
	l.add("self_attn.indexer.weights_proj", heads, l.hidden, Whole, Router)
}

// delta is a Gated DeltaNet layer, as in Qwen3-Next.
func (l *layerBuilder) delta() {
	t, h := l.text, l.hidden
	keyHeads := l.assumed(t, 16, 1, maxHeads, "linear_num_key_heads")
	keyDim := l.assumed(t, 128, 1, maxHeadDim, "linear_key_head_dim")
	heads := l.assumed(t, 32, 1, maxHeads, "linear_num_value_heads")
	dim := l.assumed(t, 128, 1, maxHeadDim, "linear_value_head_dim")
	kernel := l.assumed(t, 4, 1, 1<<10, "linear_conv_kernel_dim")
	k, w := keyHeads*keyDim, heads*dim
	l.add("linear_attn.in_proj_qkv", 2*k+w, h, ByOut, Attention).Fused = "qkvz"
	l.add("linear_attn.in_proj_z", w, h, ByOut, Attention).Fused = "qkvz"
	ba := l.add("linear_attn.in_proj_ba", 2*heads, h, ByOut, Attention)
	if heads < 128 {
		ba.Format = l.full
	}
	l.add("linear_attn.conv1d", 2*k+w, kernel, ByOut, Norm)
	l.vector("linear_attn.dt_bias", 2*heads)
	l.vector("linear_attn.norm", dim)
	l.add("linear_attn.out_proj", h, w, ByIn, Attention)
	l.layer.Cache = Cache{Kind: State, Conv: (2*k + w) * (kernel - 1), SSM: heads * keyDim * dim, SSMBytes: l.stateBytes(),
		QueryHeads: heads, LinearWidths: 2*k + 2*w, OutputWidth: w}
}

// kimiDelta is Kimi Delta Attention, as in Kimi-Linear.
func (l *layerBuilder) kimiDelta() {
	c := l.text.object("linear_attn_config")
	heads := c.whole(l.heads, 1, maxHeads, "num_heads")
	dim := c.whole(128, 1, maxHeadDim, "head_dim")
	kernel := c.whole(4, 1, 1<<10, "short_conv_kernel_size")
	h, w := l.hidden, heads*dim
	for _, name := range []string{"q_proj", "k_proj", "v_proj"} {
		l.add("self_attn."+name, w, h, ByOut, Attention).Fused = "qkv"
		l.add("self_attn."+name+"_conv1d", w, kernel, ByOut, Norm)
	}
	l.add("self_attn.f_a_proj", dim, h, Whole, Attention)
	l.add("self_attn.f_b_proj", w, dim, ByOut, Attention)
	l.add("self_attn.b_proj", heads, h, ByOut, Attention)
	l.add("self_attn.g_a_proj", dim, h, Whole, Attention)
	l.add("self_attn.g_b_proj", w, dim, ByOut, Attention)
	l.add("self_attn.o_proj", h, w, ByIn, Attention)
	l.layer.Cache = Cache{Kind: State, Conv: 3 * w * (kernel - 1), SSM: heads * dim * dim, SSMBytes: 4, QueryHeads: heads, LinearWidths: 4 * w, OutputWidth: w}
	l.unsure("the parts of Kimi's linear attention are taken from Kimi-Linear's code")
}

// mamba is a Mamba-2 layer, as in Nemotron-H.
func (l *layerBuilder) mamba() {
	t, h := l.text, l.hidden
	heads := t.whole(0, 1, maxHeads, "mamba_num_heads", "mamba_n_heads")
	dim := l.assumed(t, 64, 1, maxHeadDim, "mamba_head_dim", "mamba_d_head")
	state := l.assumed(t, 128, 1, maxHeadDim, "ssm_state_size", "mamba_d_state")
	groups := l.assumed(t, 1, 1, maxHeads, "n_groups", "mamba_n_groups")
	kernel := l.assumed(t, 4, 1, 1<<10, "conv_kernel", "mamba_d_conv")
	if heads == 0 {
		l.missing(t, "mamba_num_heads")
		return
	}
	inner := heads * dim
	conv := inner + 2*groups*state
	l.add("mixer.in_proj", inner+conv+heads, h, ByOut, Attention)
	l.add("mixer.conv1d", conv, kernel+1, ByOut, Norm)
	l.vector("mixer.A_log", 3*heads)
	l.vector("mixer.norm", inner)
	l.add("mixer.out_proj", h, inner, ByIn, Attention)
	l.layer.Cache = Cache{Kind: State, Conv: conv * (kernel - 1), SSM: inner * state, SSMBytes: l.stateBytes(), QueryHeads: heads, LinearWidths: inner + conv, OutputWidth: inner}
}

func (l *layerBuilder) stateBytes() int64 {
	if l.text.text("mamba_ssm_dtype") == "float32" {
		return 4
	}
	return 2
}

// sparse is DeepSeek-V4's attention over compressed groups of tokens: queries and
// outputs of low rank, one key head whose values are the keys, compressors, and an
// indexer where groups are of four.
func (l *layerBuilder) sparse(i int) {
	t, h, n, d := l.text, l.hidden, l.heads, l.dim
	qRank := t.whole(1024, 1, maxHidden, "q_lora_rank")
	ratio := l.ratio(i)
	groups := l.assumed(t, n/8, 1, maxHeads, "o_groups")
	oRank := l.assumed(t, 1024, 1, maxHidden, "o_lora_rank")
	l.layer.Cache = Cache{Kind: Sparse, Latent: d, Rope: l.assumed(t, 64, 0, d, "qk_rope_head_dim"), Ratio: ratio, Window: t.whole(128, 1, maxContext, "sliding_window"),
		QueryHeads: n, QueryWidth: n * d, OutputWidth: n * d}
	l.add("self_attn.q_a_proj", qRank, h, Whole, Attention)
	l.add("self_attn.q_b_proj", n*d, qRank, ByOut, Attention)
	l.add("self_attn.kv_proj", d, h, Whole, Attention)
	l.add("self_attn.o_a_proj", groups*oRank, n*d/groups, ByOut, Attention)
	l.add("self_attn.o_b_proj", h, groups*oRank, ByIn, Attention)
	l.vector("self_attn.norms", qRank+d+n)
	if ratio > 0 {
		l.compressor("self_attn.compressor", ratio, d)
	}
	if ratio == 4 {
		heads := l.assumed(t, 64, 1, maxHeads, "index_n_heads")
		dim := l.assumed(t, 128, 1, maxHeadDim, "index_head_dim")
		l.layer.Cache.Index = dim
		l.add("self_attn.indexer.wq_b", heads*dim, qRank, Whole, Attention)
		l.add("self_attn.indexer.weights_proj", heads, h, Whole, Router)
		l.compressor("self_attn.indexer.compressor", ratio, dim)
	}
	if hc := l.assumed(t, 4, 0, 64, "hc_mult"); hc > 0 {
		x := l.add("hyper_connections", 2*(2+hc)*hc, hc*h, Whole, Router)
		x.Format = FP32
	}
}

// ratio is how many tokens a layer compresses to one key, 0 if it has a window only.
// transformers names the kinds of layers, and what they compress beside them.
func (l *layerBuilder) ratio(i int) int64 {
	t := l.text
	if t.has("compress_ratios") {
		if r := t.wholes("compress_ratios", 0, 1<<16); i < len(r) {
			return r[i]
		}
		return 0
	}
	types, rates := t.texts("layer_types"), t.object("compress_rates")
	if i >= len(types) {
		return 0
	}
	switch types[i] {
	case "sliding_attention":
	case "compressed_sparse_attention":
		return l.assumed(rates, 4, 1, 1<<16, types[i])
	case "heavily_compressed_attention":
		return l.assumed(rates, 128, 1, 1<<16, types[i])
	default:
		t.fail("layer_types", "%s is no kind of layer", shown(types[i]))
	}
	return 0
}

// compressor makes one key of a group of tokens; groups of four overlap, which
// doubles its width.
func (l *layerBuilder) compressor(name string, ratio, dim int64) {
	width := dim
	if ratio == 4 {
		width *= 2
	}
	l.add(name+".wkv", width, l.hidden, Whole, Router)
	l.add(name+".wgate", width, l.hidden, Whole, Router)
	l.add(name+".ape", ratio, width, Whole, Norm).Format = FP32
}

// dense is a feed-forward part that every token goes through.
func (l *layerBuilder) dense(name string, width int64) {
	l.layer.FFN += width
	if l.matrices == 3 {
		l.add(name+".gate_proj", width, l.hidden, ByOut, MLP).Fused = name + "gate_up"
	}
	x := l.add(name+".up_proj", width, l.hidden, ByOut, MLP)
	if l.matrices == 3 {
		x.Fused = name + "gate_up"
	}
	l.add(name+".down_proj", l.hidden, width, ByIn, MLP)
}

func (l *layerBuilder) moe(i int) {
	t, h := l.text, l.hidden
	e := l.experts()
	width := t.each(i, l.ffn, 1, maxFFN, "moe_intermediate_size", "expert_ffn_hidden_size")
	if width == 0 {
		l.missing(t, "moe_intermediate_size")
		return
	}
	l.layer.Experts, l.layer.ExpertFFN = e, width
	if l.layer.TopK = l.topK(i); l.layer.TopK > e {
		t.fail("num_experts_per_tok", "%d is more than there are experts, %d", l.layer.TopK, e)
	}
	in := t.whole(h, 1, maxHidden, "moe_latent_size")
	l.add("mlp.gate", e, h, Whole, Router)
	if l.is("deepseek_v3", "kimi", "glm", "minimax", "ernie4_5") || l.is("bailing_moe") && t.flag(false, "moe_router_enable_expert_bias") {
		l.vector("mlp.gate.e_score_correction_bias", e).Format = FP32
	}
	types := t.texts("mlp_layer_types")
	if hashed := i < len(types) && types[i] == "hash_moe"; hashed || int64(i) < t.whole(0, 0, maxLayers, "num_hash_layers") {
		l.add("mlp.gate.tid2eid", l.m.Vocab, l.layer.TopK, Whole, Router).Format = I64
	}
	if in != h {
		l.add("mlp.latent_down", in, h, Whole, MLP)
		l.add("mlp.latent_up", h, in, Whole, MLP)
	}
	if l.matrices == 3 {
		l.expert("gate_proj", e, width, in, ByOut).Fused = "w13"
		l.expert("up_proj", e, width, in, ByOut).Fused = "w13"
	} else {
		l.expert("up_proj", e, width, in, ByOut)
	}
	l.expert("down_proj", e, in, width, ByIn)
	if l.is("gpt_oss") {
		l.add("mlp.experts.bias", e, 2*width+h, Whole, Norm)
	}
	shared := t.whole(0, 0, maxFFN, "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size")
	if n := t.each(i, 0, 0, maxExperts, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert"); shared == 0 && n > 0 {
		shared = n * width
	} else if shared > 0 && l.is("nemotron_h") {
		shared *= max(n, 1)
	}
	if l.is("llama4") {
		shared = width
	}
	if shared > 0 {
		l.dense("mlp.shared_experts", shared)
		if l.is("qwen2_moe", "qwen3_next", "qwen3_5") {
			l.add("mlp.shared_expert_gate", 1, h, Whole, Router)
		}
	}
}

// topK is how many experts a token goes through in layer i.
func (l *layerBuilder) topK(i int) int64 {
	for _, name := range []string{"moe_topk", "num_experts_per_tok"} { // Hunyuan has lists by layer
		if _, list := l.text.of[name].([]any); list {
			return l.text.each(i, 1, 1, maxExperts, name)
		}
	}
	return l.assumed(l.text, 1, 1, maxExperts, "num_experts_per_tok", "experts_per_token", "top_k_experts", "moe_top_k", "moe_topk", "moe_k")
}

func (l *layerBuilder) expert(name string, count, out, in int64, part Part) *Tensor {
	x := l.addMany("mlp.experts.0."+name, count, out, in, part, Expert)
	if l.text.text("expert_dtype") == "fp4" || l.is("deepseek_v4") && !l.text.has("expert_dtype") {
		x.Format = mxfp4()
	}
	return x
}

func (l *layerBuilder) norms(k layerKind) {
	n := int64(2)
	switch {
	case l.is("gemma"):
		n = 4
	case k.mixer == "none" || k.ffn == "none":
		n = 1
	}
	for i := range n {
		l.vector(fmt.Sprintf("norm%d", i), l.hidden)
	}
}

// ends adds the embedding, the last norm and lm_head.
func (b *builder) ends() {
	l := layerBuilder{builder: b, name: "model."}
	l.add("embed_tokens", b.m.Vocab, b.hidden, ByVocab, Embedding)
	switch {
	case b.is("gpt2"):
		l.add("wpe", max(b.m.Context, 1), b.hidden, Whole, Embedding)
	case b.is("opt"):
		l.add("embed_positions", b.m.Context+2, b.hidden, Whole, Embedding)
	}
	if n := b.text.whole(0, 0, maxHidden, "hidden_size_per_layer_input"); n > 0 && b.is("gemma4", "gemma3n") {
		all := int64(len(b.m.Layers)) * n
		l.add("embed_tokens_per_layer", b.text.whole(b.m.Vocab, 1, maxVocab, "vocab_size_per_layer_input"), all, ByVocab, Embedding)
		l.add("per_layer_model_projection", all, b.hidden, ByOut, MLP).Format = b.full
	}
	b.m.Embedding, l.layer.Tensors = l.layer.Tensors, nil
	l.vector("norm", b.hidden)
	if !b.m.Tied {
		l.name = ""
		l.add("lm_head", b.m.Vocab, b.hidden, ByVocab, Head)
	}
	b.m.Last = l.layer.Tensors
}

// predictors adds the layers of multi-token prediction that files hold.
func (b *builder) predictors(layers int) {
	t := b.text
	n := t.whole(0, 0, maxLayers, "num_nextn_predict_layers", "mtp_num_hidden_layers")
	switch {
	case b.is("qwen3_next") && !t.has("num_nextn_predict_layers"):
		n = 1
	case b.is("minimax"):
		n = 0
	}
	b.m.PredictorLayers = n
	for i := range int(n) {
		l := layerBuilder{builder: b, name: fmt.Sprintf("mtp.layers.%d.", i)}
		if b.is("deepseek", "glm", "kimi", "mimo") {
			l.name = fmt.Sprintf("model.layers.%d.", layers+i)
		}
		k := layerKind{mixer: "full", ffn: "dense"}
		switch {
		case t.has("compress_ratios"):
			k.mixer = "sparse"
		case t.has("kv_lora_rank"):
			k.mixer = "latent"
		}
		if b.experts() > 0 {
			k.ffn = "moe"
		}
		l.layer.Matrices = b.matrices
		l.mixer(layers+i, k.mixer)
		if k.ffn == "moe" {
			l.moe(layers + i)
		} else if b.ffn > 0 {
			l.dense("mlp", b.ffn)
		}
		l.norms(k)
		l.add("eh_proj", b.hidden, 2*b.hidden, Whole, MLP)
		if b.is("deepseek_v3") {
			for _, name := range []string{"embed_tokens", "shared_head.head"} {
				l.add(name, b.m.Vocab, b.hidden, ByVocab, Head)
			}
		}
		for j := range l.layer.Tensors {
			l.layer.Tensors[j].Role = Predictor
		}
		b.m.Predictors = append(b.m.Predictors, l.layer.Tensors...)
	}
}
