package serving

import (
	"fmt"
	"math"
	"slices"

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
	Whole   [2]float64 // seconds for a whole answer; 0 if its length is not stated
	Assumed string
}

// hostBandwidth is what two channels of DDR5-5600 give, less a tenth; bytes a second.
const hostBandwidth = 80e9

// hostLink is what PCIe 4.0 x16 gives, less a fifth; bytes a second.
const hostLink = 25e9

// read is what a step reads, in bytes: the experts of all in the parts that tokens go
// through.
type read struct{ dense, experts float64 }

// reads divides what a step reads among the GPUs and the host's memory.
func (s Setup) reads() (gpus, host read) {
	m := s.Model
	host.experts = float64(m.Host)
	m.Each(func(_ int, t *model.Tensor) {
		switch {
		case t.Role == model.Predictor, t.Role == model.Tower, t.Role == model.Embedding && !m.Heads(t):
		case t.Role == model.Expert:
			gpus.experts += float64(t.Bytes())
		default:
			gpus.dense += float64(t.Bytes())
		}
	})
	if !s.Engine.Local() {
		return gpus, host
	}
	l, w := s.layout(), s.layerSizes()
	for i := range m.Layers {
		if slices.Contains(l.host.layers, i) {
			host.dense += float64(w.dense[i])
		} else if int64(i) >= l.hostMoE {
			continue
		}
		host.experts += float64(w.experts[i])
	}
	if l.host.output {
		host.dense += float64(w.output + w.tied)
	}
	gpus.dense -= host.dense
	gpus.experts -= host.experts
	return gpus, host
}

// latency computes the time of a prompt and of a decoding step. Formulas: 2 FLOPs
// for each active parameter and token, and those of causal attention; weights and
// KV cache are read once a step; two all-reduces a layer, and what stages hand over. What is in the host's memory
// is read there, once for each pass of a prompt and once a step.
func (s Setup) latency() *Latency {
	g, m := s.GPU, s.Model
	if g.Bandwidth == 0 || g.BF16 == 0 {
		return nil
	}
	l := &Latency{Prompt: min(s.Length, 4096), Batch: s.batch(),
		Assumed: "40 to 60 % of the dense operations, 60 to 80 % of the bandwidth, 10 µs for an all-reduce"}
	if s.Load.Prompt > 0 {
		l.Prompt = min(s.Load.Prompt, s.Length)
	}
	encode := 0.0 // operations
	if i := s.Images.normal(); i.Count > 0 {
		if each, ok := s.Model.Encode(i.Width, i.Height); ok {
			l.Prompt += i.Count * each.Tokens
			encode = 2 * float64(m.TowerParams()) * float64(i.Count) * float64(each.Patches)
		}
	}
	tp, ranks := float64(s.Parallel.TP), float64(s.Parallel.TP*s.Parallel.PP)
	active := float64(m.ActiveParams())
	prompt, batch := float64(l.Prompt), float64(l.Batch)
	attention := 0.0
	layers := float64(len(m.Layers))
	gpus, host := s.reads()
	touched := 1.0
	for i := range m.Layers {
		attention += 2 * float64(m.Layers[i].Cache.QueryWidth+m.Layers[i].Cache.OutputWidth) / 2 * prompt * prompt
		if e := m.Layers[i].Experts; e > 0 {
			touched = 1 - math.Pow(1-float64(m.Layers[i].TopK)/float64(e), batch)
		}
	}
	flops := g.Flops(m.Quant)
	reduce := func(tokens float64) float64 {
		n := tokens * float64(m.Hidden) * 2
		return 2*layers*s.allReduce(n) + s.handOver(n)
	}
	cell := s.widest()
	kv := cell.sequence(l.Prompt, s.step(), s.Block) * math.Ceil(batch/float64(s.Parallel.DP))
	slow := s.HostBandwidth
	if slow == 0 {
		slow = hostBandwidth
	}
	offloaded := 0.0 // seconds of a pass
	if s.Offload > 0 {
		offloaded = float64(s.Offload*s.Parallel.PP) / hostLink
		l.Assumed += fmt.Sprintf(", %g GB/s between a GPU and the host", hostLink/1e9)
	}
	if host.dense+host.experts > 0 {
		l.Assumed += fmt.Sprintf(", %.4g GB/s of the host's memory", slow/1e9)
	}
	if s.Parallel.Nodes() > 1 {
		l.Assumed += fmt.Sprintf(", %.4g GB/s and %s", s.nodeLink()/1e9, network)
	}
	const mfuLow, mfuHigh, bwLow, bwHigh = 0.4, 0.6, 0.6, 0.8
	for i, eff := range [][2]float64{{mfuHigh, bwHigh}, {mfuLow, bwLow}} {
		compute := (2*active*prompt + attention) / (tp * flops * eff[0])
		passes := math.Ceil(prompt / float64(s.step()))
		read := (gpus.dense + gpus.experts) / (tp * g.Bandwidth * eff[1])
		l.First[i] = max(compute, read) + reduce(prompt) + encode/(g.BF16*eff[0]) + (host.dense+host.experts)*passes/(slow*eff[1]) + offloaded*passes
		memory := ((gpus.dense+gpus.experts*touched)/ranks + kv) * float64(s.Parallel.PP) / (g.Bandwidth * eff[1])
		step := 2 * active * batch / (tp * flops * eff[0])
		wait := (host.dense+host.experts*touched)/(slow*eff[1]) + offloaded
		l.Token[i] = max(memory, step) + reduce(batch) + wait
		l.Bound = "memory bandwidth"
		if step > memory {
			l.Bound = "operations"
		}
		if wait > max(memory, step) {
			l.Bound = "the host's memory"
		}
		if s.Load.Output > 0 {
			l.Whole[i] = l.First[i] + float64(s.Load.Output)*l.Token[i]
		}
	}
	return l
}

// batch returns how many requests decode at once.
func (s Setup) batch() int64 {
	const usual = 32
	switch {
	case s.Load.Requests > 0:
		return s.Load.Requests
	case s.Requests > 0:
		return min(s.Requests, usual)
	}
	return usual
}
