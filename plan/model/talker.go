package model

import "maps"

// Vocoders of Qwen's Omni models, in parameters: their configs do not state all of the
// shape. They are what the published files of the 7B and of the 30B hold beside thinker
// and talker, the first in fp32.
const (
	token2wav = 449_000_000
	code2wav  = 216_000_000
)

// talker adds what makes speech of an Omni model's answers: the files hold it, and the
// engines that serve text do not load it.
func (b *builder) talker(whole fields) {
	if !whole.has("talker_config") {
		return
	}
	b.note("the thinker alone is planned, as engines load it; the size on disk also counts the talker and its vocoder")
	t := whole.object("talker_config")
	inner := t
	if t.has("text_config") {
		inner = t.object("text_config")
	}
	of := maps.Clone(inner.of)
	if of == nil {
		of = map[string]any{}
	}
	of["model_type"] = t.text("model_type")
	if _, ok := of["code_predictor_config"]; !ok && t.has("code_predictor_config") {
		of["code_predictor_config"] = t.of["code_predictor_config"]
	}
	m, err := read("talker", fields{of, inner.path, new(error)}, "")
	if err != nil {
		b.unsure("the shape of the talker is not in the config; the size on disk leaves it out")
		return
	}
	m.Each(func(_ int, x *Tensor) { b.m.notLoaded = append(b.m.notLoaded, *x) })
	if whole.has("token2wav_config") {
		b.m.notLoaded = append(b.m.notLoaded, Tensor{Name: "token2wav", Count: 1, Out: token2wav, In: 1, Role: Tower, Format: fp32})
	}
	if whole.has("code2wav_config") {
		b.m.notLoaded = append(b.m.notLoaded, Tensor{Name: "code2wav", Count: 1, Out: code2wav, In: 1, Role: Tower, Format: bf16})
	}
}

// codePredictor is the small decoder of Qwen3-Omni's talker, with an embedding and a head
// for each group of codes but the first, and two projections of what the thinker says.
// Source: transformers, models/qwen3_omni_moe/modeling_qwen3_omni_moe.py.
func codePredictor(l *layerBuilder) {
	for _, name := range []string{"text_projection", "hidden_projection"} {
		l.add(name+".0", 2*l.hidden, 2*l.hidden+1, Whole, MLP)
		l.add(name+".1", l.hidden, 2*l.hidden+1, Whole, MLP)
	}
	c := l.text.object("code_predictor_config")
	h := c.whole(l.hidden, 1, maxHidden, "hidden_size")
	n := c.whole(5, 1, maxLayers, "num_hidden_layers")
	q := c.whole(16, 1, maxHeads, "num_attention_heads") * c.whole(128, 1, maxHeadDim, "head_dim")
	kv := c.whole(8, 1, maxHeads, "num_key_value_heads") * c.whole(128, 1, maxHeadDim, "head_dim")
	l.addMany("code_predictor.attention", n, 2*q+2*kv, h, Whole, MLP)
	l.addMany("code_predictor.mlp", 3*n, c.whole(3*h, 1, maxFFN, "intermediate_size"), h, Whole, MLP)
	groups := c.whole(16, 2, 1<<10, "num_code_groups") - 1
	l.addMany("code_predictor.ends", 2*groups, c.whole(2048, 1, maxVocab, "vocab_size"), h, Whole, MLP)
}
