package training

import (
	"slices"
	"strings"

	"strandline/plan"
	"strandline/plan/model"
)

// held are the parameters of a stage, by what they are, on one rank of TP.
type held struct {
	blocks      float64 // all transformer blocks
	block       float64 // the largest of them
	embed, head float64 // embedding, lm_head; a tied one is embed alone
	norms       float64
	towers      float64 // on the first stage
	largest     float64 // the largest single tensor
	matrices    float64 // of blocks: what Muon updates, and what is stored in few bits under adapters
	adapters    float64 // parameters of LoRA
	layers      int64
}

func (h held) all() float64 { return h.blocks + h.embed + h.head + h.norms + h.towers }

// divided is a tensor's parameters on one rank of TP.
func (t Setup) divided(x *model.Tensor) float64 {
	n := float64(x.Params())
	if x.Part != model.Whole {
		n /= float64(t.TP)
	}
	return n
}

func (t Setup) hold(stage int64) (h held) {
	m := t.Model
	first, count := int64(0), int64(0)
	for i, n := range (plan.Parallel{PP: t.PP}).Layers(int64(len(m.Layers))) {
		if int64(i) == stage {
			count = n
			break
		}
		first += n
	}
	h.layers = count
	for i := first; i < first+count; i++ {
		block := 0.0
		for j := range m.Layers[i].Tensors {
			x := &m.Layers[i].Tensors[j]
			if t.ExpertsOnCPU && x.Role == model.Expert {
				continue
			}
			n := t.divided(x)
			block += n
			if x.Out > 1 && x.In > 1 {
				h.matrices += n
			}
			h.largest = max(h.largest, n/float64(max(x.Count, 1)))
			h.adapters += t.adapters(x)
		}
		h.blocks += block
		h.block = max(h.block, block)
	}
	for i := range m.Embedding {
		if x := &m.Embedding[i]; stage == 0 || stage == t.PP-1 && m.Heads(x) {
			h.embed += t.divided(x)
		}
	}
	if stage == 0 {
		for i := range m.Towers {
			h.towers += float64(m.Towers[i].Params())
		}
	}
	if stage == t.PP-1 {
		for i := range m.Last {
			if m.Last[i].Role == model.Head {
				h.head += t.divided(&m.Last[i])
			} else {
				h.norms += t.divided(&m.Last[i])
			}
		}
	}
	h.largest = max(h.largest, h.embed, h.head)
	return h
}

var targetNames = map[string]string{
	"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj", "gate": "gate_proj", "up": "up_proj", "down": "down_proj",
}

func (t Setup) targets(x string) bool {
	return t.LoRA != nil && slices.Contains(t.LoRA.Targets, x)
}

// adapters are the parameters of LoRA beside a matrix, r(in + out).
func (t Setup) adapters(x *model.Tensor) float64 {
	if t.LoRA == nil || x.Role == model.Router || x.Role == model.Norm {
		return 0
	}
	for _, target := range t.LoRA.Targets {
		if name := targetNames[target]; name != "" && strings.HasSuffix(x.Name, name) {
			return float64(t.LoRA.Rank * (x.In + x.Out) * x.Count)
		}
	}
	return 0
}

// States are the bytes that stay from step to step, and the gradients when all
// of them are there, on one rank.
type States struct{ Parameters, Optimizer, Master, Gradients float64 }

// adam8Scales are the scales of block-wise 8-bit states, 4 bytes for 256 numbers
// of two states.
const adam8Scales = 2 * 4.0 / 256

// States returns what the ranks of a pipeline stage keep.
func (t Setup) States(stage int64) States { return t.states(t.hold(stage)) }

func (t Setup) states(h held) (s States) {
	sharded, gradShard, stateShard := 1.0, 1.0, 1.0
	n := float64(t.Shard * t.CP)
	if t.ZeRO >= 1 {
		stateShard = n
	}
	if t.ZeRO >= 2 {
		gradShard = n
	}
	if t.ZeRO >= 3 {
		sharded = n
	}
	perParam := t.StateBytes
	if t.Optimizer == "adamw-8bit" {
		perParam += adam8Scales
	}
	trained := h.all()
	if t.LoRA != nil {
		base := h.all() * t.ParamBytes
		if t.LoRA.Base == "nf4" {
			base = h.matrices*nf4Bytes + (h.all()-h.matrices)*t.ParamBytes
		}
		s.Parameters = (base + h.adapters*t.ParamBytes) / sharded
		trained = h.adapters
	} else {
		s.Parameters = trained * t.ParamBytes / sharded
	}
	s.Optimizer = trained * perParam / stateShard
	if t.Optimizer == "muon" && t.LoRA == nil { // AdamW's two states elsewhere
		s.Optimizer = (h.matrices + (trained-h.matrices)*2) * perParam / stateShard
	}
	if t.Master {
		s.Master = trained * 4 / stateShard
	}
	s.Gradients = trained * t.GradBytes / gradShard
	if t.OptimizerInBackward {
		s.Gradients = 0
	}
	return s
}

// nf4Bytes is a double-quantized nf4 number: 4 bits, one byte for 64 and four
// bytes for 64 × 256 numbers.
const nf4Bytes = (4 + 8.0/64 + 32.0/(64*256)) / 8
