package serving

import (
	"errors"

	"strandline/plan"
	"strandline/plan/model"
)

// Textbook holds the results of the simple formulas that are used without looking at the
// architecture, beside what this package computes.
type Textbook struct {
	Weights, OwnWeights         int64 // all GPUs together, bytes
	PerToken, OwnPerToken       int64 // of the KV cache, all GPUs together, bytes
	Activations, OwnActivations int64 // of a GPU
	Tokens, OwnTokens           int64 // that the GPUs hold
	Why                         []string
}

// Textbook computes the formulas: weights are parameters times bytes; KV cache is
// 2 × layers × hidden size × bytes a token; activations are active parameters times
// bytes; 90 % of the GPUs is for all of them.
func (s Setup) Textbook() (*Textbook, error) {
	f, err := s.Fit()
	if err != nil {
		return nil, err
	}
	s = f.Serving
	m := s.Model
	ranks := s.Parallel.TP * s.Parallel.PP
	width := float64(m.Width)
	switch bits := float64(m.Bytes()) * 8 / float64(max(m.Params(), 1)); {
	case bits < 6:
		width = 0.5
	case bits < 12:
		width = 1
	}
	b := &Textbook{Weights: plan.Whole(float64(m.Params()) * width), Activations: plan.Whole(float64(m.ActiveParams()) * width),
		PerToken: plan.Whole(2 * float64(len(m.Layers)) * float64(m.Hidden) * s.KV.bytes)}
	room := plan.Whole(0.9*float64(s.GPU.Total*ranks)) - b.Weights
	b.Tokens = max(room, 0) / max(b.PerToken, 1)
	for _, st := range f.Stages {
		b.OwnWeights += st.Weights.Allocated * s.Parallel.TP
	}
	for _, k := range s.cells() {
		b.OwnPerToken += plan.Whole((k.full + k.window) * float64(s.Parallel.TP))
	}
	b.OwnTokens, b.OwnActivations = f.Tokens.Middle(), s.Activation().Middle()
	b.Why = s.textbookFaults()
	if b.PerToken == 0 {
		return nil, errors.New("the model keeps nothing of a token; there is no textbook formula for it")
	}
	return b, nil
}

// textbookFaults returns what of the model the formulas do not know.
func (s Setup) textbookFaults() (out []string) {
	say := func(when bool, text string) {
		if when {
			out = append(out, text)
		}
	}
	var gqa, mla, window, state bool
	for i := range s.Model.Layers {
		c := &s.Model.Layers[i].Cache
		gqa = gqa || c.Kind == model.Full && c.Heads < c.QueryHeads
		mla = mla || c.Kind == model.Latent
		window = window || c.Kind == model.Window
		state = state || c.Kind == model.State
	}
	say(gqa, "KV cache: keys and values have fewer heads than queries (GQA); the formula counts the hidden size")
	say(mla, "KV cache: a token is one compressed vector (MLA), whole on every rank of TP")
	say(window, "KV cache: some layers keep a window only")
	say(state, "KV cache: some layers keep a state of constant size")
	say(s.Model.Quant != "", "weights: embedding, norms and more are not quantized, and scales come on top")
	say(s.Model.Bytes() > 0, "activations: they follow from the tokens of a step, not from the parameters")
	say(true, "room: CUDA graphs, collectives and the context are left out")
	return out
}
