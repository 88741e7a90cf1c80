package training

import (
	"strandline/plan"
	"strandline/plan/model"
)

// tokens are those that a rank puts through one forward.
func (t Setup) tokens() float64 {
	return float64(t.Sequences) * float64(t.Length) / float64(t.CP)
}

// perToken are the bytes that a block keeps of a token: h of the residual stream,
// q and kv of the attention, i of the feed-forward part, n its heads.
type perToken struct{ h, q, kv, i, n float64 }

func (t Setup) perToken(l *model.Layer) perToken {
	c := &l.Cache
	p := perToken{h: float64(t.Model.Hidden), n: float64(c.QueryHeads)}
	switch c.Kind {
	case model.State:
		p.q, p.kv = float64(c.OutputWidth), float64(c.LinearWidths)/2
	case model.Latent: // keys and values are made for every head
		p.q, p.kv = float64(c.QueryWidth), float64(c.QueryWidth+c.OutputWidth)/2
	default:
		p.q, p.kv = float64(c.QueryWidth), float64(c.Heads*c.Key)
	}
	p.i = float64(l.FFN) + float64(l.TopK*l.ExpertFFN)
	if l.TopK > 0 { // a token's copy for each of its experts, in and out
		p.i += float64(l.TopK) * p.h / 2
	}
	return p
}

// share divides what TP divides: everything with sequence parallelism, otherwise all but
// the residual stream.
func (t Setup) share(p perToken) perToken {
	n := float64(t.TP)
	p.q, p.kv, p.i, p.n = p.q/n, p.kv/n, p.i/n, p.n/n
	if t.SequenceParallel {
		p.h /= n
	}
	return p
}

// casting reports whether autocast works with copies of wider weights and of a wider
// residual stream.
func (t Setup) casting() bool { return t.Autocast && t.ParamBytes > t.ComputeBytes }

// input are the bytes of a block's input for a token.
func (t Setup) input(p perToken) float64 {
	if t.casting() {
		return t.ParamBytes * p.h
	}
	return 2 * p.h
}

// all are the bytes of a token and block where nothing is recomputed. They count
// the inputs of the norms, of the linear layers, of attention and of the gate;
// eager norms work in fp32. Attention takes keys and values as they are, or
// repeated for every query head.
func (t Setup) all(p perToken) plan.Span {
	w := t.ComputeBytes / 2
	switch {
	case t.LoRA != nil:
		// A frozen linear layer keeps its input only where an adapter needs it.
		h, i := 4*p.h, 4*p.i
		if t.targets("q") || t.targets("k") || t.targets("v") {
			h += 2 * p.h
		}
		if t.targets("gate") || t.targets("up") {
			h += 2 * p.h
		}
		if t.targets("down") {
			i += 2 * p.i
		}
		if !t.Compile {
			h, i = 2*h, i+2*p.i
		}
		return plan.Between(h+4*p.q+4*p.kv+i, h+8*p.q+i+2*p.i).Times(w)
	case t.Compile:
		return plan.Between(8*p.h+4*p.q+4*p.kv+6*p.i, 8*p.h+8*p.q+8*p.i).Times(w)
	}
	h := 16 * p.h
	if t.casting() { // each of q, k, v, gate and up has a copy of its fp32 input
		h += 5 * t.ComputeBytes * p.h
	}
	return plan.Between(h+6*p.q+4*p.kv+8*p.i, h+10*p.q+8*p.i).Times(w)
}

// kept are the bytes of a token and block that wait for the backward pass.
func (t Setup) kept(p perToken, layer int64) plan.Span {
	switch {
	case t.Checkpointing == KeepInputs:
		return plan.Point(t.input(p))
	case t.EveryNth > 1:
		if layer%t.EveryNth == 0 {
			return plan.Point(2 * p.h)
		}
		return t.all(p)
	case t.EveryNth == 1:
		return plan.Point(2 * p.h)
	case t.Checkpointing == KeepMatmuls:
		// The block's input and attention's output with 4 bytes a head for its
		// log-sum-exp; and the products q, v, gate and down. The list of what is kept
		// names aten.mm: nvfp4 multiplies in another function, whose products are
		// computed again. Source: torchtitan, components/quantization/nvfp4.py.
		s := plan.Point(t.input(p) + 2*p.q + 4*p.n)
		if t.Float8 != "nvfp4" {
			s = s.Plus(plan.Point(2 * (p.h + p.q + p.kv + p.i)))
		}
		return s
	}
	return t.all(p)
}

// inFlight returns how many micro-batches of all its layers a stage keeps. Sources:
// 1F1B, and Narayanan et al. 2021 for interleaved stages.
func (t Setup) inFlight(stage int64) float64 {
	if t.PP == 1 {
		return 1
	}
	if t.Interleaved > 1 {
		chunks := 2*(t.PP-stage-1) + (t.Interleaved-1)*t.PP + 1
		return min(float64(chunks)/float64(t.Interleaved), float64(t.Accumulate))
	}
	return float64(min(t.PP-stage, t.Accumulate))
}

// saved are the activations that wait for the backward pass.
func (t Setup) saved(h held, stage int64) (sum plan.Span) {
	if t.OffloadActivations && t.Checkpointing == KeepInputs {
		const left = 5 // tensors on their way
		p := t.share(perToken{h: float64(t.Model.Hidden)})
		return plan.Between(1, left).Times(2 * p.h * t.tokens())
	}
	first := int64(0)
	for i, n := range (plan.Parallel{PP: t.PP}).Layers(int64(len(t.Model.Layers))) {
		if int64(i) == stage {
			break
		}
		first += n
	}
	for i := first; i < first+h.layers; i++ {
		sum = sum.Plus(t.kept(t.share(t.perToken(&t.Model.Layers[i])), i))
	}
	return sum.Times(t.tokens() * t.inFlight(stage))
}

// working returns what the block whose backward pass runs has beside what was saved of
// it: what is recomputed, and the gradients of its activations.
func (t Setup) working() plan.Span {
	var most plan.Span
	for i := range t.Model.Layers {
		p := t.share(t.perToken(&t.Model.Layers[i]))
		all, kept := t.all(p), t.kept(p, int64(i))
		s := plan.Between(max(all.Low-kept.Low, 0), max(all.High-kept.High, 0)).Plus(plan.Between(2*p.h+2*p.i, 4*p.h+4*p.i))
		if t.SequenceParallel && t.TP > 1 { // the block works on all of the sequence
			s = s.Plus(plan.Between(4*float64(t.Model.Hidden), 8*float64(t.Model.Hidden)))
		}
		if s.High > most.High {
			most = s
		}
	}
	return most.Times(t.tokens())
}

// loss are the logits and what the loss makes of them, by the bytes of a logit.
func (t Setup) loss() plan.Span {
	n := t.tokens() * float64(t.Model.Vocab) / float64(t.TP)
	chunks := float64(t.LossChunks)
	switch {
	case t.LossChunks > 1 && t.Framework == "torchtitan":
		// lm_head, loss and backward of one chunk after the other; the gradient of
		// lm_head's input waits.
		return plan.Between(8, 14).Times(n / chunks).Plus(plan.Point(2 * t.tokens() * float64(t.Model.Hidden)))
	case t.LossChunks > 1 && t.LossCompiled:
		return plan.Between(2, 2+4/chunks).Times(n) // bf16 logits of all, fp32 of one
	case t.LossChunks > 1:
		return plan.Between(2+4/chunks, 2+12/chunks).Times(n)
	case t.TP > 1 && t.SequenceParallel:
		return plan.Between(14, 19).Times(n) // loss parallel over TP
	case t.LossCompiled && (t.Framework == "torchtune" || t.Framework == "torchtitan" && t.Year < 2025.2):
		return plan.Point(8 * n) // the model casts to fp32
	case t.LossCompiled:
		return plan.Point(4 * n)
	case t.Framework == "deepspeed":
		return plan.Point(14 * n) // outputs hold the bf16 logits through backward
	}
	return plan.Point(12 * n)
}
