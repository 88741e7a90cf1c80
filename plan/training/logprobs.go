package training

import (
	"strandline/plan"
)

// LogProbs is a forward pass without gradients: bf16 and fp32 logits and their
// log-softmax or entropy, and what one block has live.
func (t Setup) LogProbs() plan.Range {
	n := t.tokens() * float64(t.Model.Vocab) / float64(t.TP)
	logits := plan.Between(6, 10).Times(n)
	if t.LossChunks > 1 {
		logits = plan.Between(2, 10).Times(n / float64(t.LossChunks))
	}
	h := t.hold(t.PP - 1)
	block := plan.Point(0)
	if t.ZeRO == 3 {
		block = plan.Between(h.block, 2*h.block).Times(t.ComputeBytes)
	}
	var most float64
	for i := range t.Model.Layers {
		p := t.share(t.perToken(&t.Model.Layers[i]))
		most = max(most, 2*(2*p.h+max(3*p.i, p.q+2*p.kv)))
	}
	return logits.Plus(block).Plus(plan.Between(most, 1.5*most).Times(t.tokens())).Bytes()
}
