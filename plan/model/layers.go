package model

import (
	"cmp"
	"fmt"
	"strings"
)

// layerBuilder collects the tensors of one layer.
type layerBuilder struct {
	*builder
	name  string // of the layer, for the lists of a quantization
	layer Layer
	edge  bool // the first or the last layer
	// kvHeads are the layer's own, 0 if it has as many as the others.
	kvHeads int64
}

func (b *builder) layer(i int, k layerKind) Layer {
	l := layerBuilder{builder: b, name: fmt.Sprintf("model.layers.%d.", i)}
	l.edge = i == 0 || i == int(b.layerCount())-1
	l.layer.Matrices = b.matrices
	l.kvHeads = k.kv
	l.mix(i, k.mixer)
	if b.family.denseBeside && k.ffn == expertFFN {
		l.dense("mlp", b.ffn)
	}
	switch k.ffn {
	case denseFFN:
		width := b.text.whole(b.ffn, 0, maxFFN, "intermediate_size_mlp")
		if _, list := b.text.of["intermediate_size"].([]any); list {
			width = b.text.each(i, width, 1, maxFFN, "intermediate_size")
		}
		if k.width > 0 {
			width = k.width
		}
		if width == 0 {
			b.missing(b.text, "intermediate_size")
			return l.layer
		}
		if b.family.widths != nil {
			width = b.family.widths(b, i, width)
		}
		l.dense("mlp", width)
	case expertFFN:
		l.moe(i)
	case replacedFFN:
		l.add("mlp.linear", b.hidden, b.hidden, ByOut, MLP)
	}
	l.norms(k)
	if n := b.text.whole(0, 0, maxHidden, "hidden_size_per_layer_input"); n > 0 && b.family.layerInputs {
		l.add("per_layer_input_gate", n, b.hidden, ByOut, MLP)
		l.add("per_layer_projection", b.hidden, n, ByIn, MLP)
		l.vector("post_per_layer_input_norm", b.hidden)
	}
	if b.family.extra != nil {
		b.family.extra(&l, k)
	}
	return l.layer
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

// vector adds a vector that is never quantized.
func (l *layerBuilder) vector(name string, n int64) *Tensor {
	t := l.add(name, n, 1, Whole, Norm)
	t.Format = l.full
	return t
}

// norm adds a norm, with a bias in families that have LayerNorm.
func (l *layerBuilder) norm(name string, n int64) {
	if l.family.normBias {
		n *= 2
	}
	l.vector(name, n)
}

// mix adds the part by which tokens see others.
func (l *layerBuilder) mix(i int, kind mixer) {
	l.layer.Cache.QueryHeads = l.heads
	c := &l.layer.Cache
	switch kind {
	case fullAttention:
		l.attention(i, false)
	case windowAttention:
		l.attention(i, true)
	case latentAttention:
		l.latent(i)
	case sparseAttention:
		l.sparse(i)
	case mamba2:
		l.mamba()
	case mamba1:
		l.mamba1()
	case shortConvolution:
		l.convolution()
	case linearAttention:
		if l.family.linear == nil {
			l.delta()
		} else {
			l.family.linear(l)
		}
	case bothWays:
		l.attention(i, false)
		*c = Cache{Kind: None, Key: c.Key, Value: c.Value, QueryHeads: c.QueryHeads, QueryWidth: c.QueryWidth, OutputWidth: c.OutputWidth}
	case oneMatrix:
		l.add("self_attn.linear", l.hidden, l.hidden, ByOut, Attention)
	}
}

func (l *layerBuilder) attention(i int, window bool) {
	t, h := l.text, l.hidden
	a := heads{query: l.heads, kv: l.kv, key: l.dim, value: l.vdim}
	if l.kvHeads > 0 {
		a.kv = l.kvHeads
	}
	c := &l.layer.Cache
	c.Kind = Full
	if window {
		c.Kind = Window
		c.Window = l.assumed(t, cmp.Or(l.family.windowSize, 4096), 1, maxContext, l.family.window())
		a.query = t.whole(a.query, 1, maxHeads, "swa_num_attention_heads")
		a.kv = t.whole(a.kv, 1, maxHeads, "swa_num_key_value_heads")
		a.key = t.whole(a.key, 1, maxHeadDim, "swa_head_dim")
		a.value = t.whole(a.value, 1, maxHeadDim, "swa_v_head_dim")
	}
	if l.family.heads != nil {
		l.family.heads(l, i, window, &a)
	}
	c.Heads, c.Key, c.Value = a.kv, a.key, a.value
	if a.shared {
		c.Heads = 0
	}
	c.QueryWidth, c.OutputWidth = a.query*a.key, a.query*a.value
	q := a.query * a.key
	if l.outGate {
		q *= 2
	}
	fused := func(name string, out int64, part Part) {
		x := l.add("self_attn."+name, out, h, part, Attention)
		x.Fused, x.Heads = "qkv", a.kv
	}
	fused("q_proj", q, ByOut)
	fused("k_proj", a.kv*a.key, ByKV)
	if !a.tied {
		fused("v_proj", a.kv*a.value, ByKV)
	}
	l.add("self_attn.o_proj", h, a.query*a.value, ByIn, Attention)
	if t.flag(false, "use_head_wise_attn_gate") {
		l.add("self_attn.g_proj", a.query, h, ByOut, Router)
	}
	if l.bias {
		l.vector("self_attn.qkv_bias", q+a.kv*(a.key+a.value))
		if l.family.outBias {
			l.vector("self_attn.o_proj.bias", h)
		}
	}
	if l.family.sinks {
		l.vector("self_attn.sinks", a.query)
	}
	switch {
	case l.qkNorm && l.family.qkFull:
		l.vector("self_attn.q_norm", q)
		l.vector("self_attn.k_norm", a.kv*a.key)
	case l.qkNorm:
		l.vector("self_attn.q_norm", a.key)
		l.vector("self_attn.k_norm", a.key)
	}
}

// latent is multi-head latent attention (DeepSeek-V2, section 2.1), with the
// indexer of DeepSeek sparse attention where there is one.
func (l *layerBuilder) latent(i int) {
	t, h, n := l.text, l.hidden, l.heads
	rank := t.whole(512, 1, maxHidden, "kv_lora_rank")
	rope := l.assumed(t, 64, 0, maxHeadDim, "qk_rope_head_dim")
	nope := l.assumed(t, 128, 1, maxHeadDim, "qk_nope_head_dim")
	v := l.assumed(t, cmp.Or(l.family.valueDim, 128), 1, maxHeadDim, "v_head_dim")
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
	if l.family.latentGate != "" && l.family.latentGate == l.m.Type {
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

// sparse is DeepSeek-V4's attention over compressed groups of tokens: queries and
// outputs of low rank, one key head whose values are the keys, compressors, and an
// indexer where groups are of four.
func (l *layerBuilder) sparse(i int) {
	t, h, n, d := l.text, l.hidden, l.heads, l.dim
	qRank := t.whole(1024, 1, maxHidden, "q_lora_rank")
	ratio := l.ratio(i)
	groups := l.assumed(t, max(n/8, 1), 1, maxHeads, "o_groups")
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
		x.Format = fp32
	}
}

// ratio returns how many tokens a layer compresses to one key, 0 if it has a window only.
// transformers names the kinds of layers, and what they compress beside them.
func (l *layerBuilder) ratio(i int) int64 {
	t := l.text
	if t.has("compress_ratios") {
		if r := t.integers("compress_ratios", 0, 1<<16); i < len(r) {
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
		t.fail("layer_types", "%s is not a known kind of layer", shown(types[i]))
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
	l.add(name+".ape", ratio, width, Whole, Norm).Format = fp32
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
	if l.family.mlpBias || l.text.flag(false, "mlp_bias") {
		l.vector(name+".biases", (l.matrices-1)*width+l.hidden)
	}
}

func (l *layerBuilder) moe(i int) {
	t, h := l.text, l.hidden
	e := l.experts()
	widths := l.modalities("moe_intermediate_size", maxFFN)
	counts := l.modalities("moe_num_experts", maxExperts)
	if len(widths) == 0 || len(widths) != len(counts) {
		widths, counts = []int64{t.each(i, l.ffn, 1, maxFFN, "moe_intermediate_size", "expert_ffn_hidden_size")}, []int64{e}
	}
	width := widths[0]
	if width == 0 {
		l.missing(t, "moe_intermediate_size")
		return
	}
	l.layer.Experts, l.layer.ExpertFFN = e, width
	if l.layer.TopK = l.topK(i); l.layer.TopK > e {
		t.fail("num_experts_per_tok", "%d is more than there are experts, %d", l.layer.TopK, e)
	}
	in := t.whole(h, 1, maxHidden, "moe_latent_size")
	idle := t.whole(0, 0, maxExperts, "zero_expert_num") // that the router may choose, and that have no weights
	l.add("mlp.gate", e+idle, h, Whole, Router)
	if l.family.routerBias || t.flag(false, "moe_router_enable_expert_bias") || t.flag(false, "use_moe_router_bias") {
		l.vector("mlp.gate.e_score_correction_bias", e+idle).Format = fp32
	}
	types := t.texts("mlp_layer_types")
	if hashed := i < len(types) && types[i] == "hash_moe"; hashed || int64(i) < t.whole(0, 0, maxLayers, "num_hash_layers") {
		l.add("mlp.gate.tid2eid", l.m.Vocab, l.layer.TopK, Whole, Router).Format = i64
	}
	if in != h {
		l.add("mlp.latent_down", in, h, Whole, MLP)
		l.add("mlp.latent_up", h, in, Whole, MLP)
	}
	for j, n := range counts {
		if l.matrices == 3 {
			l.expert("gate_proj", n, widths[j], in, ByOut).Fused = "w13"
			l.expert("up_proj", n, widths[j], in, ByOut).Fused = "w13"
		} else {
			l.expert("up_proj", n, widths[j], in, ByOut)
		}
		l.expert("down_proj", n, in, widths[j], ByIn)
	}
	if l.family.expertBias {
		l.add("mlp.experts.bias", e, 2*width+h, Whole, Norm)
	}
	shared := t.whole(0, 0, maxFFN, "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size", "shared_intermediate_size", "share_expert_dim")
	n := t.each(i, 0, 0, maxExperts, "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
	if l.family.shared != nil {
		shared = l.family.shared(width, n, shared)
	} else if shared == 0 {
		shared = n * width
	}
	if shared > 0 {
		l.dense("mlp.shared_experts", shared)
		if l.family.sharedGate {
			l.add("mlp.shared_expert_gate", 1, h, Whole, Router)
		}
	}
}

// topK returns how many experts a token goes through in layer i.
func (l *layerBuilder) topK(i int) int64 {
	for _, name := range []string{"moe_topk", "num_experts_per_tok"} { // Hunyuan has lists by layer
		if _, list := l.text.of[name].([]any); list {
			return l.text.each(i, 1, 1, maxExperts, name)
		}
	}
	return l.assumed(l.text, 1, 1, maxExperts, "num_experts_per_tok", "num_experts_per_token", "experts_per_token", "top_k_experts", "moe_top_k", "moe_topk", "moe_k")
}

func (l *layerBuilder) expert(name string, count, out, in int64, part Part) *Tensor {
	x := l.addMany("mlp.experts.0."+name, count, out, in, part, Expert)
	if !l.named && (l.text.text("expert_dtype") == "fp4" || l.family.fp4Experts && !l.text.has("expert_dtype")) {
		x.Format = mxfp4()
	}
	return x
}

func (l *layerBuilder) norms(k layerKind) {
	n := max(cmp.Or(l.family.norms, 2), 0)
	if l.family.norms == 0 && (k.mixer == noMixer || k.ffn == noFFN) {
		n = 1
	}
	for i := range n {
		l.norm(fmt.Sprintf("norm%d", i), l.hidden)
	}
}

// ends adds the embedding, the last norm and lm_head.
func (b *builder) ends() {
	l := layerBuilder{builder: b, name: "model."}
	width := b.hidden
	if b.kind != "molmo" { // whose embedding_size is a number of tokens
		width = b.text.whole(width, 1, maxHidden, "word_embed_proj_dim", "embedding_size") // of OPT-350m, and of Qwen's talker
	}
	l.add("embed_tokens", b.m.Vocab, width, ByVocab, Embedding)
	if width != b.hidden {
		l.add("project_in", b.hidden, width, Whole, MLP)
	}
	if width != b.hidden && b.m.Tied {
		l.add("project_out", width, b.hidden, Whole, MLP)
	}
	if b.family.positions != nil {
		l.add("embed_positions", b.family.positions(b), b.hidden, Whole, Embedding)
	}
	if n := b.text.whole(0, 0, maxHidden, "hidden_size_per_layer_input"); n > 0 && b.family.layerInputs {
		all := int64(len(b.m.Layers)) * n
		l.add("embed_tokens_per_layer", b.text.whole(b.m.Vocab, 1, maxVocab, "vocab_size_per_layer_input"), all, ByVocab, Embedding)
		l.add("per_layer_model_projection", all, b.hidden, ByOut, MLP).Format = b.full
		l.vector("per_layer_projection_norm", n)
	}
	if b.family.addEnds != nil {
		b.family.addEnds(&l)
	}
	b.m.Embedding, l.layer.Tensors = l.layer.Tensors, nil
	l.norm("norm", b.hidden)
	if b.family.headBias || b.text.flag(false, "lm_head_bias") {
		l.vector("lm_head.bias", b.m.Vocab)
	}
	if task := b.task(); task != "" { // a head of its own in place of lm_head
		l.name = ""
		if task == "reward" {
			l.add("score.0", b.hidden, b.hidden+1, Whole, MLP)
		}
		if task != "embedding" {
			l.add("score", max(int64(len(b.f.object("id2label").of)), 1), b.hidden, Whole, MLP)
		}
	} else if !b.m.Tied {
		l.name = ""
		l.add("lm_head", b.m.Vocab, b.hidden, ByVocab, Head)
	} else if w := b.wholeOf(); b.q.untied || w != nil && w.head {
		b.m.notLoaded = append(b.m.notLoaded, Tensor{Name: "lm_head", Count: 1, Out: b.m.Vocab, In: b.hidden, Role: Head, Format: b.full})
	}
	b.m.Last = l.layer.Tensors
}

// encodersOf are the classes of decoders that files without lm_head name.
var encodersOf = []string{"LlamaModel", "MistralModel", "MixtralModel", "Qwen2Model", "Qwen2MoeModel", "Qwen3Model", "Qwen3MoeModel", "GemmaModel", "Gemma2Model", "Gemma3TextModel", "Phi3Model", "GPTNeoXModel"}

// task is what a model is for that does not write text: classification, reward or
// embedding; "" for any other.
func (b *builder) task() string {
	arch := b.f.texts("architectures")
	switch {
	case len(arch) == 0:
		return ""
	case strings.HasSuffix(arch[0], "ForRewardModel"), strings.HasSuffix(arch[0], "ForProcessRewardModel"):
		return "reward"
	case strings.HasSuffix(arch[0], "ForSequenceClassification"), strings.HasSuffix(arch[0], "ForTokenClassification"), strings.HasSuffix(arch[0], "NeoXRewardModel"):
		return "classification"
	case oneOf(arch[0], encodersOf...):
		return "embedding"
	}
	for _, draft := range []string{"Eagle", "Medusa", "DFlash", "DSpark", "Speculator"} {
		if strings.Contains(arch[0], draft) {
			b.unsure("how a draft model of class " + shown(arch[0]) + " differs from the model it is made of is not known here")
		}
	}
	return ""
}

// predictorKind returns what a layer of multi-token prediction is made of.
func (b *builder) predictorKind(layer int) layerKind {
	if b.family.predictor != nil {
		return b.family.predictor(b, layer)
	}
	k := layerKind{mixer: fullAttention, ffn: denseFFN}
	switch {
	case b.text.has("compress_ratios"):
		k.mixer = sparseAttention
	case b.text.has("kv_lora_rank"):
		k.mixer = latentAttention
	}
	if b.experts() > 0 {
		k.ffn = expertFFN
	}
	return k
}

// withoutPredictors reports whether the files were written by a tool that leaves out the
// predictors that the config still names: MLX's converter, and transformers where it
// writes the language model of Qwen3.5 alone.
func (b *builder) withoutPredictors() bool {
	if b.f.object("mlx_lm_extra_tensors").has("mtp_file") {
		return false
	}
	return b.q.mlx || mlxName(b.m.Name) || oneOf(b.m.Type, "qwen3_5_text", "qwen3_5_moe_text")
}

// predictors adds the layers of multi-token prediction that files hold.
func (b *builder) predictors(layers int) {
	t := b.text
	n := t.whole(b.family.predicts, 0, maxLayers, "num_nextn_predict_layers", "mtp_num_hidden_layers")
	if b.family.notPredicting || b.withoutPredictors() {
		n = 0
	}
	b.m.PredictorLayers = n
	for i := range int(n) {
		l := layerBuilder{builder: b, name: fmt.Sprintf("mtp.layers.%d.", i)}
		if b.family.follow {
			l.name = fmt.Sprintf("model.layers.%d.", layers+i)
		}
		k := b.predictorKind(layers + i)
		l.layer.Matrices = b.matrices
		l.mix(layers+i, k.mixer)
		if k.ffn == expertFFN {
			l.moe(layers + i)
		} else if b.ffn > 0 {
			l.dense("mlp", b.ffn)
		}
		l.norms(k)
		l.add("eh_proj", b.hidden, 2*b.hidden, Whole, MLP)
		if b.family.predictorEnds != nil {
			for _, name := range []string{"shared_head.head", "embed_tokens"}[:b.family.predictorEnds(b)] {
				l.add(name, b.m.Vocab, b.hidden, ByVocab, Head)
			}
		}
		for j := range l.layer.Tensors {
			l.layer.Tensors[j].Role = Predictor
		}
		b.m.Predictors = append(b.m.Predictors, l.layer.Tensors...)
	}
}
