package serving

import (
	"math"

	"strandline/plan/model"
)

// Latency is a roofline: the time that the GPU's operations and memory need at
// least, at stated efficiencies.
type Latency struct {
	Prompt  int64      // tokens
	Batch   int64      // requests that decode at once
	First   [2]float64 // seconds to the first token of a prompt, without waiting
	Token   [2]float64 // seconds for a further token
	Bound   string     // what decoding waits for
	Assumed string
}

// latency computes the time of a prompt and of a decoding step. Formulas: 2 FLOPs
// for each active parameter and token, and those of causal attention; weights and
// KV cache are read once a step; two all-reduces a layer.
func (s Setup) latency() *Latency {
	g, m := s.GPU, s.Model
	if g.Bandwidth == 0 || g.BF16 == 0 {
		return nil
	}
	l := &Latency{Prompt: min(s.Length, 4096), Batch: 32,
		Assumed: "40 to 60 % of the dense operations, 60 to 80 % of the bandwidth, 10 µs for an all-reduce"}
	tp, ranks := float64(s.Parallel.TP), float64(s.Parallel.TP*s.Parallel.PP)
	active := float64(m.ActiveParams())
	prompt, batch := float64(l.Prompt), float64(l.Batch)
	attention := 0.0
	layers := float64(len(m.Layers))
	var dense, experts float64
	touched := 1.0
	m.Each(func(i int, t *model.Tensor) {
		switch t.Role {
		case model.Predictor, model.Tower, model.Embedding:
			if t.Role != model.Embedding || !m.Tied {
				return
			}
			dense += float64(t.Bytes())
		case model.Expert:
			experts += float64(t.Bytes())
		default:
			dense += float64(t.Bytes())
		}
	})
	for i := range m.Layers {
		attention += 2 * float64(m.Layers[i].Cache.QueryWidth+m.Layers[i].Cache.OutputWidth) / 2 * prompt * prompt
		if e := m.Layers[i].Experts; e > 0 {
			touched = 1 - math.Pow(1-float64(m.Layers[i].TopK)/float64(e), batch)
		}
	}
	flops := g.Flops(m.Quant)
	reduce := func(tokens float64) float64 {
		if s.Parallel.TP == 1 {
			return 0
		}
		return 2 * layers * (2*(tp-1)/tp*tokens*float64(m.Hidden)*2/g.Link + 10e-6)
	}
	cell := s.widest()
	kv := cell.Sequence(l.Prompt, s.step(), s.Block) * math.Ceil(batch/float64(s.Parallel.DP))
	const mfuLow, mfuHigh, bwLow, bwHigh = 0.4, 0.6, 0.6, 0.8
	for i, eff := range [][2]float64{{mfuHigh, bwHigh}, {mfuLow, bwLow}} {
		compute := (2*active*prompt + attention) / (tp * flops * eff[0])
		read := (dense + experts) / (tp * g.Bandwidth * eff[1])
		l.First[i] = max(compute, read) + reduce(prompt)
		memory := ((dense+experts*touched)/ranks + kv) * float64(s.Parallel.PP) / (g.Bandwidth * eff[1])
		step := 2 * active * batch / (tp * flops * eff[0])
		l.Token[i] = max(memory, step) + reduce(batch)
		l.Bound = "memory bandwidth"
		if step > memory {
			l.Bound = "operations"
		}
	}
	return l
}
