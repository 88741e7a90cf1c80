package model

import "strings"

// family is what is known of the models of some types, beside what their configs state: the
// one table of model families. To add an architecture, add a row to [families], and a
// function for what only that architecture needs.
type family struct {
	// types are values of model_type, separated by spaces: "x" is also the type of "x_y" and
	// "x-y". Those in exactly are not. Of several rows that match, the longest type counts.
	types, exactly string

	decoder *decoder              // the language model
	whole   *multimodal           // a model of text and images whose config does not name its parts
	tower   *tower                // the encoder of images, by the type of vision_config or of the whole model
	bridge  func(t *towerBuilder) // connects a tower to the language model, by the type of the whole model
	images  *Processor            // of images, by the type of the tower or of the whole model
	flash   bool                  // Ollama turns on flash attention. Source: fs/ggml/ggml.go, FlashAttention
	keeps   bool                  // SGLang keeps every token in layers with a window. Source: srt/server_args.py
}

// decoder is how a language model differs from the plain one: grouped-query attention that
// sees every token, a gated feed-forward part or a mixture of experts, two norms a layer,
// rotary positions, and an lm_head that is not the embedding.
type decoder struct {
	config
	attention
	layers
	feedForward
	ends
	predictors
	unsure string // a known gap
}

// config is what a configuration class takes for fields that a config leaves out.
type config struct {
	nested        []string // objects whose fields are the language model's own
	defaults      defaults
	tied          bool  // tie_word_embeddings
	attentionBias bool  // attention_bias
	windowOff     bool  // use_sliding_window is false
	windowSize    int64 // sliding_window, 4096 if 0
	chunks        bool  // attention_chunk_size is the window
	outGate       bool  // attn_output_gate
	ffnTimes      int64 // the feed-forward width, in hidden sizes
	predicts      int64 // num_nextn_predict_layers
}

// defaults are fields with the numbers that they have where a config leaves them out.
type defaults []struct {
	field string
	value int64
}

type attention struct {
	free       bool   // no layer has attention heads
	qkvBias    bool   // even where attention_bias does not state it
	outBias    bool   // the output projection has a bias if the others have
	sinks      bool   // a number for each head
	qkNorm     bool   // norms of queries and keys, as wide as a head
	qkFull     bool   // such norms are as wide as all heads
	valueDim   int64  // v_head_dim of latent attention, 128 if 0
	latentGate string // the type of whole models whose latent attention has a gate
	heads      func(l *layerBuilder, i int, window bool, h *heads)
}

type layers struct {
	kinds    func(b *builder) []layerKind       // of all layers
	mixer    func(b *builder, i int64) mixer    // of a layer where layer_types does not state it
	windowed func(i int64) bool                 // which layers see a window
	linear   func(l *layerBuilder)              // linear attention, if it is not Gated DeltaNet
	extra    func(l *layerBuilder, k layerKind) // further tensors
	norms    int64                              // of a layer, where it has other than two; none is -1
	normBias bool                               // norms have a bias: LayerNorm
}

type feedForward struct {
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
	endsWhole   bool // fbgemm leaves the first and the last layer as they are
}

// ends are outside the layers.
type ends struct {
	layerInputs bool // an embedding for each layer
	positions   func(b *builder) int64
	addEnds     func(l *layerBuilder) // further tensors
	headBias    bool                  // lm_head has a bias
	addTowers   func(b *builder)      // where the config does not describe them
	noRotary    bool
	localRotary bool // a second table, for layers with a window
	copies      int64
}

// predictors are the layers of multi-token prediction.
type predictors struct {
	notPredicting bool                                  // configs name predictors that files do not hold
	follow        bool                                  // they are named like layers after the last
	predictorEnds func(b *builder) int                  // matrices of embedding or lm_head that they repeat
	predictor     func(b *builder, layer int) layerKind // their kind, where it is not the usual one
}

// gpt is a decoder of GPT-2's generation: two matrices, and biases in them and in norms.
func gpt(d decoder) *decoder {
	d.ungated, d.normBias, d.mlpBias = true, true, true
	return &d
}

// absolute is such a decoder with an embedding for each position and some more.
func absolute(more int64, d decoder) *decoder {
	d.tied, d.noRotary = true, true
	d.positions = func(b *builder) int64 { return max(b.m.Context+more, 1) }
	return gpt(d)
}

// qwen is a decoder whose configs switch the window off.
func qwen(d decoder) *decoder {
	d.windowOff = true
	return &d
}

// gemma is a decoder with four norms a layer, and the embedding as its lm_head.
func gemma(qkNorm bool, vocab int64, d decoder) *decoder {
	d.tied, d.norms, d.qkNorm = true, 4, qkNorm
	if vocab > 0 {
		d.defaults = append(d.defaults, defaults{{"head_dim", 256}, {"vocab_size", vocab}}...)
	}
	return &d
}

// biasedRouter is a mixture of experts as DeepSeek-V3's, whose files name predictors like
// layers; they repeat some matrices of the ends.
func biasedRouter(repeated int, d decoder) *decoder {
	d.routerBias, d.follow = true, true
	if repeated > 0 {
		d.predictorEnds = repeats(repeated)
	}
	return &d
}

// encoder is a model whose layers keep nothing.
func encoder(d decoder) *decoder {
	d.tied, d.kinds = true, encoders
	return &d
}

// sevenB are the defaults of LlamaConfig and of those that were derived from it.
func sevenB(ffn, kv, vocab int64) config {
	d := defaults{{"hidden_size", 4096}, {"intermediate_size", ffn}, {"num_hidden_layers", 32}, {"num_attention_heads", 32}}
	if kv > 0 {
		d = append(d, defaults{{"num_key_value_heads", kv}}...)
	}
	return config{defaults: append(d, defaults{{"vocab_size", vocab}}...)}
}

// families are those that are known. Sources: transformers, models/*/configuration_*.py and
// modeling_*.py, and the code that model repositories hold; of image processors, the bounds of
// the published preprocessor_config.json.
var families []family

// init fills the table, which refers to functions that look something up in it.
//
// long: it has a row for each family
func init() {
	families = []family{
		{exactly: "llama", decoder: &decoder{config: sevenB(11008, 0, 32000), attention: attention{outBias: true}, feedForward: feedForward{endsWhole: true}}},
		{types: "llama4", decoder: &decoder{config: config{chunks: true, windowSize: 8192}, attention: attention{outBias: true}, layers: layers{windowed: threeOfFour},
			feedForward: feedForward{endsWhole: true, shared: sharedLikeExperts}},
			tower: &tower{grid: true, class: true, extra: fourNorms}, bridge: llama4Bridge, images: &Processor{Side: 336, Tokens: 144, MaxTiles: 16, Tiles: bestCanvas}},
		{types: "mllama", decoder: &decoder{layers: layers{kinds: crossLayers, linear: crossAttention}, ends: ends{addEnds: imageTokens}}, tower: &tower{noAttentionBias: true, extra: tiles},
			bridge: func(t *towerBuilder) {
				t.add("projector", 1, t.b.hidden, t.v.whole(7680, 1, maxFFN, "vision_output_dim")+1)
			}},
		{exactly: "mistral", decoder: &decoder{config: sevenB(14336, 8, 32000)}},
		{types: "mistral", bridge: mistralBridge},
		{types: "mistral3", flash: true, tower: pixtral, bridge: mistralBridge},
		{types: "mixtral voxtral internlm2 internlm3 granite granitemoe granitemoeshared step3 seed_oss hunyuan phi3 baichuan yi aquila orion xverse",
			exactly: "bailing_moe bailing_moe_v2 glm exaone", decoder: &decoder{}},
		{types: "ministral", decoder: &decoder{}},
		{types: "ministral3", decoder: &decoder{}, bridge: mistralBridge},
		{types: "pixtral", decoder: &decoder{}, tower: pixtral, bridge: twoMatrices},
		{types: "step3p5 step3p7", decoder: &decoder{attention: attention{qkNorm: true, heads: otherHeads}, predictors: predictors{follow: true, predictor: denseAsListed, predictorEnds: repeats(1)}}},
		{types: "granitemoehybrid", decoder: &decoder{feedForward: feedForward{widths: sharedWidth}}},
		{types: "bamba", decoder: &decoder{layers: layers{mixer: attentionAt}}},
		{types: "smollm3", decoder: &decoder{config: config{tied: true}}},
		{types: "internlm PanguEmbedded pangu_embedded", decoder: &decoder{config: config{attentionBias: true}, attention: attention{outBias: true}}},
		{exactly: "phi", decoder: gpt(decoder{attention: attention{qkvBias: true, outBias: true}, layers: layers{norms: 1}, ends: ends{headBias: true}})},
		{types: "phi-msft", decoder: &decoder{feedForward: feedForward{ungated: true}}},
		{types: "phi3small", decoder: &decoder{config: config{tied: true, attentionBias: true}, attention: attention{outBias: true}, layers: layers{normBias: true}, feedForward: feedForward{mlpBias: true}}},
		{types: "phimoe", decoder: &decoder{attention: attention{outBias: true}, layers: layers{normBias: true}, ends: ends{headBias: true}}},
		{types: "phi3_v", decoder: &decoder{ends: ends{addTowers: (*builder).phi3Towers}}},
		{types: "phi4mm phi4_multimodal", decoder: &decoder{config: config{tied: true}, ends: ends{addEnds: phiAdapters, addTowers: (*builder).phi4Towers}}},
		{types: "stablelm", decoder: &decoder{layers: layers{normBias: true}}},
		{types: "gpt_bigcode", decoder: absolute(0, decoder{config: config{ffnTimes: 4}, attention: attention{qkvBias: true, outBias: true}})},

		{exactly: "qwen", decoder: qwen(decoder{attention: attention{qkvBias: true}, feedForward: feedForward{widths: halfWidth}}), whole: &multimodal{language: is("qwen"), towers: (*builder).qwenVisual}},
		{types: "qwen2 qwen2_5", decoder: qwen(decoder{config: config{defaults: sevenB(22016, 32, 151936).defaults}, attention: attention{qkvBias: true}})},
		{types: "qwen2", tower: &tower{gated: true, extra: qwenMerger}, bridge: inTower, images: &Processor{Low: 56 * 56, High: 3584 * 3584}},
		{types: "qwen2_vl", tower: &tower{extra: qwenMerger}, bridge: inTower},
		{types: "qwen2_5_vl qwen2_5_omni", tower: &tower{gated: true, extra: qwenMerger}, bridge: inTower},
		{types: "qwen2_5_omni_talker", decoder: qwen(decoder{attention: attention{qkvBias: true}})},
		{types: "qwen3_omni_moe_talker", decoder: qwen(decoder{attention: attention{qkNorm: true}, feedForward: feedForward{sharedGate: true}, ends: ends{addEnds: codePredictor}})},
		{types: "qwen2_moe", decoder: qwen(decoder{attention: attention{qkvBias: true}, feedForward: feedForward{sharedGate: true}})},
		{types: "qwen3", flash: true, decoder: qwen(decoder{attention: attention{qkNorm: true}})},
		{types: "qwen3_vl qwen3_vl_moe qwen3_omni_moe", tower: &tower{extra: qwenMerger}, bridge: inTower, images: qwen3Images},
		{types: "qwen3_6", tower: &tower{extra: qwenMerger}, images: qwen3Images},
		{types: "qwen3_next", decoder: qwen(decoder{config: config{outGate: true, predicts: 1}, attention: attention{qkNorm: true}, feedForward: feedForward{sharedGate: true}})},
		{types: "qwen3_5", decoder: qwen(decoder{config: config{outGate: true}, attention: attention{qkNorm: true}, feedForward: feedForward{sharedGate: true}}),
			tower: &tower{extra: qwenMerger}, bridge: inTower, images: qwen3Images},
		{types: "mimo", decoder: qwen(decoder{config: config{attentionBias: true}, predictors: predictors{follow: true}})},
		{types: "mimo_v2_flash", decoder: qwen(decoder{config: config{attentionBias: true, predicts: 3}, predictors: predictors{predictor: always(windowDense)}})},

		{exactly: "gemma", keeps: true, decoder: &decoder{config: config{tied: true, defaults: defaults{{"head_dim", 256}, {"vocab_size", 256000}}}}},
		{types: "gemma2", keeps: true, decoder: gemma(false, 256000, decoder{config: config{defaults: defaults{{"num_attention_heads", 8}, {"num_key_value_heads", 4}}}, layers: layers{windowed: everyOther}})},
		{types: "gemma3", keeps: true, flash: true, bridge: func(t *towerBuilder) { t.add("projector", 1, t.b.hidden+1, t.h) },
			decoder: gemma(true, 262208, decoder{config: config{defaults: defaults{{"num_attention_heads", 8}, {"num_key_value_heads", 4}}}, layers: layers{windowed: fiveOfSix}, ends: ends{localRotary: true}})},
		{types: "gemma3n", keeps: true, flash: true, tower: &tower{params: 294126912}, bridge: tokenProjection, // MobileNet-V5, 300M; timm's count
			decoder: gemma(true, 262400, decoder{config: config{defaults: defaults{{"num_attention_heads", 8}, {"num_key_value_heads", 2}}}, attention: attention{heads: sharedKeys},
				layers: layers{windowed: fourOfFive, extra: alternating}, ends: ends{layerInputs: true, localRotary: true, addEnds: alternatingEnds}})},
		{types: "gemma4", keeps: true, flash: true, tower: &tower{gated: true, noBias: true, extra: gemma4Tower}, bridge: func(t *towerBuilder) { t.add("projector", 1, t.b.hidden, t.h) },
			decoder: gemma(true, 0, decoder{config: config{defaults: defaults{{"head_dim", 256}, {"global_head_dim", 512}, {"vocab_size", 262144}}}, attention: attention{heads: globalHeads},
				feedForward: feedForward{widths: doubleWide, denseBeside: true}, ends: ends{layerInputs: true, localRotary: true}})},
		{types: "paligemma", bridge: func(t *towerBuilder) { t.add("projector", 1, t.b.hidden, t.h+1) }},
		{types: "recurrent_gemma", decoder: &decoder{config: config{tied: true, windowSize: 2048}, layers: layers{kinds: recurrentBlocks, linear: recurrence}, feedForward: feedForward{mlpBias: true, widths: halfWidth}}},

		{types: "deepseek_v2 deepseek_ref", exactly: "deepseek", decoder: &decoder{predictors: predictors{follow: true}}},
		{types: "deepseek_v3 deepseek_v32", decoder: biasedRouter(2, decoder{})},
		{types: "deepseek_v4", decoder: &decoder{layers: layers{mixer: compressed}, feedForward: feedForward{fp4Experts: true}, predictors: predictors{follow: true}}},
		{types: "deepseek_vl_v2 DeepseekOCR deepseek_ocr deepseekocr", whole: &multimodal{language: is("deepseek_v2"), towers: (*builder).deepseekTowers}},
		{types: "kimi kimi_k2", decoder: biasedRouter(0, decoder{})},
		{types: "kimi kimi_vl kimi_k25 kimi_k3", tower: &tower{extra: squareGrid}, bridge: kimiBridge, images: moonImages},
		{types: "moonvit", tower: &tower{extra: squareGrid}, images: moonImages},
		{types: "kimi_linear", decoder: biasedRouter(0, decoder{attention: attention{latentGate: "kimi_k3"}, layers: layers{mixer: everyFourthLatent, linear: (*layerBuilder).kimiDelta}})},
		{types: "longcat_flash", decoder: &decoder{config: config{predicts: 1}, layers: layers{kinds: repeated(layerKind{mixer: latentAttention, ffn: expertFFN}, latentDense)},
			feedForward: feedForward{denseBeside: true, routerBias: true}, predictors: predictors{predictor: always(latentDense), predictorEnds: repeats(1)}}},
		{exactly: "minicpm", decoder: &decoder{config: config{tied: true}}},
		{types: "minicpm3", decoder: &decoder{config: config{tied: true}, attention: attention{valueDim: 64}}},
		{types: "minicpmv minicpmo", whole: &multimodal{language: (*builder).miniCPM, towers: (*builder).resampled}},
		{types: "glm4", decoder: &decoder{layers: layers{norms: 4}}},
		{types: "glm4v", decoder: &decoder{layers: layers{norms: 4}}, tower: glm4vTower, bridge: inTower, images: &Processor{Low: 112 * 112, High: 9633792}},
		{types: "glm4_moe", flash: true, decoder: biasedRouter(0, decoder{predictors: predictors{predictorEnds: untilGLM46}})},
		{types: "glm4v_moe", decoder: biasedRouter(0, decoder{predictors: predictors{predictorEnds: untilGLM46}}), tower: glm4vTower, bridge: inTower},
		{types: "glm4_moe_lite", decoder: biasedRouter(2, decoder{})},
		{types: "glm_moe_dsa", decoder: biasedRouter(0, decoder{})},
		{types: "chatglm", decoder: &decoder{}, whole: &multimodal{language: is("chatglm"), towers: (*builder).glmTower}},
		{types: "minimax_text_01 minimax_m1", exactly: "minimax", decoder: &decoder{layers: layers{mixer: lightningLayers, linear: lightning}}},
		{types: "minimax_m2 minimax_m3", decoder: &decoder{attention: attention{qkFull: true}, feedForward: feedForward{routerBias: true}, predictors: predictors{notPredicting: true}}},
		{types: "minimax_vl_01", bridge: twoMatrices},
		{types: "ernie4_5", decoder: &decoder{feedForward: feedForward{routerBias: true}, predictors: predictors{predictor: always(fullDense)}}},
		{types: "ernie4_5_vl ernie4_5_moe_vl", tower: &tower{extra: oneNorm}, bridge: ernieBridge},
		{types: "DFNRope_vision_transformer", tower: &tower{extra: oneNorm}},
		{types: "paddleocr_vl", whole: &multimodal{language: is("ernie4_5")}, tower: &tower{grid: true, singleFrame: true, extra: packedPositions}, bridge: paddleBridge},
		{types: "dbrx", decoder: &decoder{config: config{nested: []string{"attn_config", "ffn_config"}}}},
		{types: "grok-1", exactly: "grok git", decoder: &decoder{layers: layers{norms: 4}, feedForward: feedForward{denseBeside: true}}},
		{types: "afmoe", decoder: &decoder{config: config{outGate: true}, attention: attention{qkNorm: true}, layers: layers{norms: 4, windowed: threeOfFour}, feedForward: feedForward{routerBias: true}}},
		{types: "gpt_oss", keeps: true, flash: true, decoder: &decoder{attention: attention{outBias: true, sinks: true}, layers: layers{windowed: everyOther}, feedForward: feedForward{expertBias: true}, ends: ends{copies: 2}}},
		{types: "dots1", decoder: &decoder{attention: attention{qkNorm: true}, feedForward: feedForward{routerBias: true}}},
		{types: "dots_ocr", whole: &multimodal{language: is("qwen2")}, tower: &tower{gated: true, noBias: true, extra: dotsTower}, bridge: inTower},
		{types: "dots_vit", tower: &tower{gated: true, noBias: true, extra: dotsTower}},

		{exactly: "olmo", keeps: true, decoder: &decoder{layers: layers{norms: -1}}},
		{types: "olmo2 olmoe", keeps: true, decoder: &decoder{attention: attention{qkNorm: true, qkFull: true}}},
		{types: "flex_olmo", decoder: &decoder{attention: attention{qkNorm: true, qkFull: true}}},
		{types: "olmo3", keeps: true, flash: true, decoder: &decoder{attention: attention{qkNorm: true, qkFull: true}, layers: layers{windowed: threeOfFour}}},
		{exactly: "molmo", decoder: &decoder{attention: attention{qkFull: true}, feedForward: feedForward{widths: halfWidth}, ends: ends{addEnds: moreTokens}}, whole: &multimodal{language: is("molmo"), towers: (*builder).molmoTowers}},
		{types: "exaone4", decoder: &decoder{attention: attention{qkNorm: true}}},
		{types: "exaone_moe", decoder: &decoder{attention: attention{qkNorm: true}, feedForward: feedForward{routerBias: true},
			unsure: "models of type exaone_moe are counted from their config alone; no published files were compared"}},
		{types: "apertus arcee", decoder: &decoder{feedForward: feedForward{ungated: true}}},
		{types: "bitnet", decoder: &decoder{config: config{tied: true}, layers: layers{extra: subNorms}, feedForward: feedForward{gated: true}}},
		{types: "cohere cohere2", decoder: &decoder{config: config{tied: true}, attention: attention{qkFull: true}, layers: layers{norms: 1}}},
		{types: "cohere2_vision", bridge: cohereBridge},
		{types: "aya_vision", bridge: ayaBridge},
		{types: "starcoder2", decoder: gpt(decoder{config: config{tied: true}, attention: attention{outBias: true}})},

		{exactly: "nemotron", decoder: &decoder{layers: layers{normBias: true}, feedForward: feedForward{ungated: true}}},
		{types: "nemotron_h", flash: true, decoder: &decoder{feedForward: feedForward{ungated: true, shared: sharedTimes}, ends: ends{noRotary: true}}},
		{types: "nemotron-nas deci", decoder: &decoder{layers: layers{kinds: (*builder).blocks}}},
		{types: "jamba", decoder: &decoder{layers: layers{mixer: attentionEvery}, ends: ends{noRotary: true}}},
		{types: "falcon_h1", decoder: &decoder{layers: layers{kinds: repeated(mambaAlone, fullDense)}}}, // Mamba and attention are side by side; each keeps something else
		{types: "zamba2", decoder: &decoder{config: config{tied: true, ffnTimes: 4}, layers: layers{kinds: sharedBlocks, linear: sharedBlock}, ends: ends{addEnds: sharedWeights}}},
		{types: "falcon_mamba", exactly: "mamba", decoder: &decoder{config: config{tied: true}, attention: attention{free: true}, layers: layers{kinds: repeated(layerKind{mixer: mamba1, ffn: noFFN})}, ends: ends{noRotary: true}}},
		{types: "mamba2", decoder: &decoder{attention: attention{free: true}, layers: layers{kinds: repeated(mambaAlone)}, ends: ends{noRotary: true}}},
		{types: "lfm2 lfm2_moe", flash: true, decoder: &decoder{config: config{tied: true}, attention: attention{qkNorm: true}, layers: layers{mixer: convolutions}, feedForward: feedForward{widths: adjusted, routerBias: true}}},
		{types: "lfm2_vl lfm2-vl", flash: true, bridge: liquidBridge},

		{types: "gpt2", decoder: absolute(0, decoder{config: config{ffnTimes: 4, attentionBias: true}, attention: attention{outBias: true}})},
		{exactly: "opt", decoder: absolute(2, decoder{config: config{attentionBias: true}, attention: attention{outBias: true}})},
		{exactly: "gpt_neo", decoder: absolute(0, decoder{config: config{ffnTimes: 4}, layers: layers{extra: outputBias}})},
		{types: "persimmon", decoder: gpt(decoder{attention: attention{qkvBias: true, outBias: true}, ends: ends{addEnds: fuyuPatches}})},
		{types: "gptj codegen", decoder: gpt(decoder{config: config{ffnTimes: 4}, layers: layers{norms: 1}, ends: ends{headBias: true}})},
		{types: "gpt_neox", decoder: gpt(decoder{config: config{attentionBias: true}, attention: attention{outBias: true}})},
		{exactly: "falcon", decoder: &decoder{config: config{ffnTimes: 4}, layers: layers{normBias: true, extra: falconBiases}, feedForward: feedForward{ungated: true}, ends: ends{addEnds: tiedWithALiBi}}},
		{exactly: "RefinedWeb RefinedWebModel", whole: &multimodal{language: is("falcon")}},
		{types: "bloom", decoder: gpt(decoder{config: config{tied: true, ffnTimes: 4, attentionBias: true}, attention: attention{outBias: true}, ends: ends{addEnds: embeddingNorm, noRotary: true}})},
		{types: "mpt", decoder: &decoder{config: config{tied: true, ffnTimes: 4}, feedForward: feedForward{ungated: true}, ends: ends{noRotary: true}}},
		{types: "whisper", decoder: absolute(0, decoder{attention: attention{qkvBias: true, outBias: true}, // attention to the tokens and to the sound counts as two layers
			layers: layers{kinds: repeated(layerKind{mixer: fullAttention, ffn: noFFN}, linearDense), linear: whisperCross}, ends: ends{addTowers: func(b *builder) { b.whisper(b.text) }}})},
		{exactly: "bert roberta xlm-roberta camembert", decoder: encoder(*absolute(0, decoder{config: config{ffnTimes: 4}, attention: attention{qkvBias: true, outBias: true}, ends: ends{addEnds: pooler}}))},
		{types: "nomic_bert", decoder: encoder(decoder{layers: layers{normBias: true}, ends: ends{addEnds: tokenTypes}})},
		{types: "modernbert", decoder: encoder(decoder{ends: ends{addEnds: maskedHead}})},

		{types: "siglip siglip2", tower: &tower{grid: true, extra: pooled,
			defaults: defaults{{"hidden_size", 768}, {"intermediate_size", 3072}, {"num_hidden_layers", 12}, {"image_size", 224}, {"patch_size", 16}}}},
		{types: "clip", tower: &tower{grid: true, class: true, extra: fourNorms,
			defaults: defaults{{"hidden_size", 768}, {"intermediate_size", 3072}, {"num_hidden_layers", 12}, {"image_size", 224}, {"patch_size", 32}}}},
		{types: "idefics3 smolvlm", tower: &tower{grid: true, extra: lastNorm}, bridge: ideficsBridge},
		{types: "idefics3_vision smolvlm_vision", tower: &tower{grid: true, extra: lastNorm}},
		{types: "intern_vit_6b internvl_vision interns1_vision", tower: internViT, images: internImages},
		{types: "internvl_chat internvl", tower: internViT, bridge: internBridge, images: internImages},
		{types: "interns1", bridge: internBridge, images: internImages},
		{types: "h2ovl_chat skywork_chat", bridge: internBridge},
		{types: "locateanything", whole: &multimodal{head: true}, bridge: internBridge},
		{types: "llava_llama llava_mistral llava_qwen", exactly: "llava", whole: &multimodal{language: (*builder).llavaLanguage, towers: (*builder).llavaTower}},
		{types: "llava llava_next llava_next_video llava_onevision vipllava", bridge: twoMatrices},
		{types: "videollama3 videollama3_qwen2", whole: &multimodal{language: is("qwen2"), towers: (*builder).videoTower}},
	}
}

// What several families share.
var (
	pixtral = &tower{gated: true, noBias: true, extra: func(t *towerBuilder) { t.add("norm", 1, t.h, 1) },
		defaults: defaults{{"hidden_size", 1024}, {"intermediate_size", 4096}, {"num_hidden_layers", 24}, {"patch_size", 16}}}
	glm4vTower   = &tower{gated: true, noBias: true, grid: true, extra: downsampled}
	internViT    = &tower{grid: true, class: true, extra: layerScales}
	qwen3Images  = &Processor{Low: 256 * 256, High: 4096 * 4096}
	moonImages   = &Processor{Low: 28 * 28, High: 16384 * 14 * 14}
	internImages = &Processor{Side: 448, Tokens: 256, MaxTiles: 12, Tiles: nearestShape}
)

// lookup is the row of a type that has some knowledge, nil if there is none, and the length of
// the type by which it matches.
func lookup(kind string, has func(f *family) bool) (found *family, longest int) {
	for i := range families {
		f := &families[i]
		if n := max(matches(f.types, kind), exactly(f.exactly, kind)); n > longest && has(f) {
			found, longest = f, n
		}
	}
	return found, longest
}

// decoderOf is the language model of a type, and whether it is known. One that is not is
// the plain decoder.
func decoderOf(kind string) (*decoder, bool) {
	if f, n := lookup(kind, func(f *family) bool { return f.decoder != nil }); n > 0 {
		return f.decoder, true
	}
	return &decoder{}, false
}

// OllamaFlash reports whether Ollama turns on flash attention for the model by itself.
func (m *Model) OllamaFlash() bool {
	_, n := lookup(m.Type, func(f *family) bool { return f.flash })
	return n > 0
}

// SGLangKeepsAll reports whether SGLang keeps every token in layers with a window.
func (m *Model) SGLangKeepsAll() bool {
	_, n := lookup(m.Type, func(f *family) bool { return f.keeps })
	return n > 0
}

// matches is the length of the longest of some types that kind is, or begins with
// before "_" or "-"; 0 if there is none.
func matches(types, kind string) (longest int) {
	for t := range strings.FieldsSeq(types) {
		if rest, ok := strings.CutPrefix(kind, t); ok && (rest == "" || rest[0] == '_' || rest[0] == '-') {
			longest = max(longest, len(t))
		}
	}
	return longest
}

// exactly is the length of kind if it is one of some types.
func exactly(types, kind string) int {
	for t := range strings.FieldsSeq(types) {
		if t == kind {
			return len(t)
		}
	}
	return 0
}
