package model

import "strings"

// family is how the models of an architecture differ from the plain decoder: grouped-
// query attention that sees every token, a gated feed-forward part or a mixture of
// experts, two norms a layer, rotary positions, and an lm_head that is not the
// embedding. What a config states itself is not repeated here. To add an architecture,
// add an entry to [families], and a function for what only that architecture needs.
type family struct {
	// types are the values of model_type, separated by spaces. "x" also matches "x_y"
	// and "x-y", and "x!" does not; of several that match, the longest is taken.
	types string

	// nested are objects of the config whose fields are the language model's own,
	// separated by spaces.
	nested string
	// Defaults of the configuration class, for fields that a config leaves out: first
	// whole numbers, as in "head_dim=256 vocab_size=256000".
	defaults      string
	tied          bool  // tie_word_embeddings
	attentionBias bool  // attention_bias
	windowOff     bool  // use_sliding_window is false
	windowSize    int64 // sliding_window, 4096 if 0
	outGate       bool  // attn_output_gate
	ffnTimes      int64 // the feed-forward width, in hidden sizes
	predicts      int64 // num_nextn_predict_layers

	// Attention.
	free       bool   // no layer has attention heads
	qkvBias    bool   // even where attention_bias does not state it
	outBias    bool   // the output projection has a bias if the others have
	sinks      bool   // a number for each head
	qkNorm     bool   // norms of queries and keys, as wide as a head
	qkFull     bool   // such norms are as wide as all heads
	valueDim   int64  // v_head_dim of latent attention, 128 if 0
	latentGate string // the type of whole models whose latent attention has a gate
	heads      func(l *layerBuilder, i int, window bool, h *heads)

	// Layers: the kinds of all, or of one where layer_types does not state it; which see
	// a window; the linear attention, if it is not Gated DeltaNet; further tensors.
	kinds    func(b *builder) []layerKind
	mixer    func(b *builder, i int64) string
	windowed func(i int64) bool
	linear   func(l *layerBuilder)
	extra    func(l *layerBuilder, k layerKind)
	chunks   bool  // a window is attention_chunk_size
	norms    int64 // of a layer, where it has other than two; none is -1
	normBias bool  // norms have a bias: LayerNorm

	// Feed-forward part.
	ungated     bool // two matrices instead of three
	gated       bool // three, whatever hidden_act is
	mlpBias     bool
	widths      func(b *builder, i int, width int64) int64 // of a dense part
	routerBias  bool                                       // a bias for each expert, in fp32
	expertBias  bool
	denseBeside bool // a dense part is added to the experts' output
	sharedGate  bool // the shared expert has a gate
	shared      func(width, count, stated int64) int64
	fp4Experts  bool // unless expert_dtype states another type

	// Outside the layers.
	layerInputs   bool // an embedding for each layer
	positions     func(b *builder) int64
	ends          func(l *layerBuilder) // further tensors
	headBias      bool                  // lm_head has a bias
	towers        func(b *builder)      // where the config does not describe them
	noRotary      bool
	localRotary   bool                                  // a second table, for layers with a window
	notPredicting bool                                  // configs name predictors that files do not hold
	follow        bool                                  // predictors are called layers after the last
	predictorEnds func(b *builder) int                  // matrices of embedding or lm_head that predictors repeat
	predictor     func(b *builder, layer int) layerKind // where predictors are not as the usual layers
	endsWhole     bool                                  // fbgemm leaves the first and the last layer as they are
	copies        int64
	unsure        string // what is known to be missing
}

// families are the architectures that are known. Sources: transformers, models/*/
// configuration_*.py and modeling_*.py, and the code that model repositories hold.
//
// What engines do differently for some families is in plan/serving, by prefixes of the
// type as well: keepsWindows (serving.go), flash (llama.go), and the image processors
// (images.go). Look there too when a family is added.
var families = []family{
	{types: "llama!", outBias: true, endsWhole: true, defaults: "hidden_size=4096 intermediate_size=11008 num_hidden_layers=32 num_attention_heads=32 vocab_size=32000"},
	{types: "llama4", outBias: true, endsWhole: true, chunks: true, windowSize: 8192, windowed: threeOfFour, shared: sharedLikeExperts},
	{types: "mllama", kinds: crossLayers, linear: crossAttention, ends: imageTokens},
	{types: "mistral!", defaults: "hidden_size=4096 intermediate_size=14336 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=8 vocab_size=32000"},
	{types: "mixtral ministral ministral3 pixtral voxtral internlm2 internlm3 granite granitemoe granitemoeshared step3 seed_oss " +
		"bailing_moe! bailing_moe_v2! hunyuan chatglm glm! phi3 baichuan yi aquila exaone! orion xverse"},
	{types: "step3p5 step3p7", qkNorm: true, heads: otherHeads, follow: true, predictor: denseAsListed, predictorEnds: repeats(1)},
	{types: "granitemoehybrid", widths: sharedWidth},
	{types: "bamba", mixer: attentionAt},
	{types: "smollm3", tied: true},
	{types: "internlm PanguEmbedded pangu_embedded", attentionBias: true, outBias: true},
	{types: "phi!", ungated: true, norms: 1, normBias: true, mlpBias: true, headBias: true, qkvBias: true, outBias: true},
	{types: "phi-msft", ungated: true},
	{types: "phi3small", tied: true, attentionBias: true, outBias: true, normBias: true, mlpBias: true},
	{types: "phimoe", normBias: true, outBias: true, headBias: true},
	{types: "phi3_v", towers: (*builder).phi3Towers},
	{types: "phi4mm phi4_multimodal", tied: true, ends: phiAdapters, towers: (*builder).phi4Towers},
	{types: "stablelm", normBias: true},
	{types: "gpt_bigcode", tied: true, ungated: true, ffnTimes: 4, normBias: true, mlpBias: true, qkvBias: true, outBias: true, noRotary: true, positions: learned(0)},

	{types: "qwen!", windowOff: true, qkvBias: true, widths: halfWidth},
	{types: "molmo!", qkFull: true, widths: halfWidth, ends: moreTokens},
	{types: "qwen2 qwen2_5", windowOff: true, qkvBias: true, defaults: "hidden_size=4096 intermediate_size=22016 num_hidden_layers=32 num_attention_heads=32 num_key_value_heads=32 vocab_size=151936"},
	{types: "qwen2_5_omni_talker", windowOff: true, qkvBias: true},
	{types: "qwen3_omni_moe_talker", windowOff: true, qkNorm: true, sharedGate: true, ends: codePredictor},
	{types: "qwen2_moe", windowOff: true, qkvBias: true, sharedGate: true},
	{types: "qwen3", windowOff: true, qkNorm: true},
	{types: "qwen3_next", windowOff: true, qkNorm: true, outGate: true, sharedGate: true, predicts: 1},
	{types: "qwen3_5", windowOff: true, qkNorm: true, outGate: true, sharedGate: true},
	{types: "mimo", windowOff: true, attentionBias: true, follow: true},
	{types: "mimo_v2_flash", windowOff: true, attentionBias: true, predicts: 3, predictor: denseWindow},

	{types: "gemma!", tied: true, defaults: "head_dim=256 vocab_size=256000"},
	{types: "gemma2", tied: true, defaults: "num_attention_heads=8 num_key_value_heads=4 head_dim=256 vocab_size=256000", norms: 4, windowed: everyOther},
	{types: "gemma3", tied: true, norms: 4, defaults: "num_attention_heads=8 num_key_value_heads=4 head_dim=256 vocab_size=262208", qkNorm: true, windowed: fiveOfSix, localRotary: true},
	{types: "gemma3n", tied: true, norms: 4, defaults: "num_attention_heads=8 num_key_value_heads=2 head_dim=256 vocab_size=262400", qkNorm: true, windowed: fourOfFive, localRotary: true, heads: sharedKeys, layerInputs: true, extra: alternating, ends: alternatingEnds},
	{types: "gemma4", tied: true, defaults: "head_dim=256 global_head_dim=512 vocab_size=262144", norms: 4, qkNorm: true, localRotary: true, heads: globalHeads, widths: doubleWide, denseBeside: true, layerInputs: true},

	{types: "recurrent_gemma", tied: true, kinds: recurrentBlocks, linear: recurrence, windowSize: 2048, mlpBias: true, widths: halfWidth},

	{types: "deepseek! deepseek_v2 deepseek_ref", follow: true},
	{types: "deepseek_v3 deepseek_v32", routerBias: true, follow: true, predictorEnds: repeats(2)},
	{types: "deepseek_v4", mixer: compressed, fp4Experts: true, follow: true},
	{types: "kimi kimi_k2", routerBias: true, follow: true},
	{types: "kimi_linear", routerBias: true, follow: true, mixer: everyFourthLatent, linear: (*layerBuilder).kimiDelta, latentGate: "kimi_k3"},
	{types: "longcat_flash", kinds: twoAndExperts, denseBeside: true, routerBias: true, predicts: 1, predictor: denseLatent, predictorEnds: repeats(1)},
	{types: "minicpm!", tied: true},
	{types: "minicpm3", tied: true, valueDim: 64},
	{types: "glm4 glm4v", norms: 4},
	{types: "glm4_moe glm4v_moe", routerBias: true, follow: true, predictorEnds: untilGLM46},
	{types: "glm4_moe_lite", routerBias: true, follow: true, predictorEnds: repeats(2)},
	{types: "glm_moe_dsa", routerBias: true, follow: true},
	{types: "minimax! minimax_text_01 minimax_m1", mixer: lightningLayers, linear: lightning},
	{types: "minimax_m2 minimax_m3", qkFull: true, routerBias: true, notPredicting: true},
	{types: "ernie4_5", routerBias: true, predictor: denseFull},
	{types: "dbrx", nested: "attn_config ffn_config"},
	{types: "grok-1 grok! git!", denseBeside: true, norms: 4},
	{types: "afmoe", qkNorm: true, outGate: true, norms: 4, routerBias: true, windowed: threeOfFour},
	{types: "gpt_oss", outBias: true, sinks: true, windowed: everyOther, expertBias: true, copies: 2},
	{types: "dots1", qkNorm: true, routerBias: true},

	{types: "olmo!", norms: -1},
	{types: "olmo2 olmoe flex_olmo", qkNorm: true, qkFull: true},
	{types: "olmo3", qkNorm: true, qkFull: true, windowed: threeOfFour},
	{types: "exaone4", qkNorm: true},
	{types: "exaone_moe", qkNorm: true, routerBias: true, unsure: "models of type exaone_moe are counted from their config alone; no published files were compared"},
	{types: "apertus arcee", ungated: true},
	{types: "bitnet", tied: true, gated: true, extra: subNorms},
	{types: "cohere cohere2", tied: true, norms: 1, qkFull: true},
	{types: "starcoder2", tied: true, ungated: true, normBias: true, mlpBias: true, outBias: true},

	{types: "nemotron!", ungated: true, normBias: true},
	{types: "nemotron_h", ungated: true, noRotary: true, shared: sharedTimes},
	{types: "nemotron-nas deci", kinds: (*builder).blocks},
	{types: "jamba", mixer: attentionEvery, noRotary: true},
	{types: "falcon_h1", kinds: mambaBeside},
	{types: "zamba2", tied: true, ffnTimes: 4, kinds: sharedBlocks, linear: sharedBlock, ends: sharedWeights},
	{types: "mamba! falcon_mamba", free: true, tied: true, noRotary: true, kinds: allOf("mamba1")},
	{types: "mamba2", free: true, noRotary: true, kinds: allOf("mamba")},
	{types: "lfm2 lfm2_moe", tied: true, qkNorm: true, mixer: convolutions, widths: adjusted, routerBias: true},

	{types: "gpt2", tied: true, ungated: true, ffnTimes: 4, attentionBias: true, outBias: true, normBias: true, mlpBias: true, noRotary: true, positions: learned(0)},
	{types: "opt!", tied: true, ungated: true, attentionBias: true, outBias: true, normBias: true, mlpBias: true, noRotary: true, positions: learned(2)},
	{types: "gpt_neo!", tied: true, ungated: true, ffnTimes: 4, normBias: true, mlpBias: true, noRotary: true, positions: learned(0), extra: outputBias},
	{types: "persimmon", ungated: true, qkvBias: true, outBias: true, normBias: true, mlpBias: true, ends: fuyuPatches},
	{types: "gptj codegen", ungated: true, ffnTimes: 4, norms: 1, normBias: true, mlpBias: true, headBias: true},
	{types: "gpt_neox", ungated: true, attentionBias: true, outBias: true, normBias: true, mlpBias: true},
	{types: "falcon!", ungated: true, ffnTimes: 4, normBias: true, ends: tiedWithALiBi, extra: falconBiases},
	{types: "bloom", tied: true, ungated: true, ffnTimes: 4, attentionBias: true, outBias: true, normBias: true, mlpBias: true, ends: embeddingNorm, noRotary: true},
	{types: "mpt", tied: true, ungated: true, ffnTimes: 4, noRotary: true},
	{types: "whisper", tied: true, ungated: true, qkvBias: true, outBias: true, normBias: true, mlpBias: true, noRotary: true, kinds: crossBeside, linear: whisperCross, positions: learned(0), towers: func(b *builder) { b.whisper(b.text) }},
	{types: "bert! roberta! xlm-roberta! camembert!", tied: true, ungated: true, ffnTimes: 4, qkvBias: true, outBias: true, normBias: true, mlpBias: true, noRotary: true, kinds: encoders, positions: learned(0), ends: pooler},
	{types: "nomic_bert", tied: true, normBias: true, kinds: encoders, ends: tokenTypes},
	{types: "modernbert", tied: true, kinds: encoders, ends: maskedHead},
}

// familyOf is the family of a model_type, and whether it is known. One that is not is
// the plain decoder.
func familyOf(kind string) (found *family, known bool) {
	found, longest := &family{}, 0
	for i := range families {
		if n := matches(families[i].types, kind); n > longest {
			found, longest = &families[i], n
		}
	}
	return found, longest > 0
}

// matches is the length of the longest of some types that kind is, or begins with
// before "_" or "-" where that is allowed; 0 if there is none.
func matches(types, kind string) (longest int) {
	for _, t := range strings.Fields(types) {
		t, exact := strings.CutSuffix(t, "!")
		if rest, ok := strings.CutPrefix(kind, t); ok && (rest == "" || !exact && (rest[0] == '_' || rest[0] == '-')) {
			longest = max(longest, len(t))
		}
	}
	return longest
}
