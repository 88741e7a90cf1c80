// Package training plans the memory of a training step: parameters, gradients,
// optimizer states and activations, at each of four moments of which the largest is
// the peak. [Setup.Step] is the entry point.
package training

import (
	"slices"

	"strandline/plan"
	"strandline/plan/model"
)

// Checkpointing states what of a block's activations is kept for the backward pass.
type Checkpointing string

const (
	KeepAll     Checkpointing = "none"
	KeepMatmuls Checkpointing = "selective-op" // attention's output and every second product
	KeepInputs  Checkpointing = "full"
)

// Adapters are LoRA's.
type Adapters struct {
	Rank    int64
	Targets []string // of q, k, v, o, gate, up, down
	Base    string   // the format of the frozen weights: "none" or "nf4"
}

// Setup is a set-up of a training run.
type Setup struct {
	Model *model.Model
	// Framework and Year state whose conventions hold: torchtitan, torchtune,
	// deepspeed, megatron; others are taken for plain FSDP2.
	Framework string
	Year      float64 // with the month as a fraction; 0 is the newest

	Shard, TP, PP, CP int64
	ZeRO              int64 // 0 to 3; 3 is FSDP
	SequenceParallel  bool
	Autocast          bool  // fp32 weights and residual stream, which autocast copies to ComputeBytes
	Buckets           bool  // DDP's: a second copy of all gradients, from the first step on
	Interleaved       int64 // stages a rank has; 0 and 1 are plain 1F1B
	Keep              bool  // gathered parameters stay until their backward pass

	Sequences, Accumulate, Length int64 // a forward's sequences; forwards a step; tokens of a sequence

	ParamBytes, ComputeBytes, GradBytes float64
	Optimizer                           string
	StateBytes                          float64 // optimizer states of a parameter
	Master                              bool    // a further fp32 copy of the parameters

	Checkpointing         Checkpointing
	EveryNth              int64 // of selective-layer: every n-th block is recomputed
	Compile, LossCompiled bool
	Float8                string
	LoRA                  *Adapters
	LossChunks            int64
	OptimizerInBackward   bool
	OffloadStates         bool // parameters and optimizer in the host's memory
	OffloadOptimizer      bool
	OffloadActivations    bool
	ExpertsOnCPU          bool
	Observed              string // "peak active" or "peak reserved"; anything else may be either
}

func (t Setup) Normal() Setup {
	for _, n := range []*int64{&t.Shard, &t.TP, &t.PP, &t.CP, &t.Sequences, &t.Accumulate, &t.LossChunks, &t.Interleaved} {
		*n = max(*n, 1)
	}
	if t.Length == 0 {
		t.Length = 4096
	}
	for _, b := range []*float64{&t.ParamBytes, &t.ComputeBytes, &t.GradBytes} {
		if *b == 0 {
			*b = 2
		}
	}
	if t.Checkpointing == "" {
		t.Checkpointing = KeepInputs
	}
	if t.Year == 0 {
		t.Year = 2026
	}
	return t
}

// A Moment is a time in a training step at which memory may peak.
type Moment struct {
	Name  string
	Parts []plan.Component
}

// Size is the sum of the parts.
func (m *Moment) Size() (sum plan.Range) {
	for _, p := range m.Parts {
		sum = sum.Plus(p.Size)
	}
	return sum
}

func (m *Moment) add(name string, s plan.Span) {
	if s.High > 0 {
		m.Parts = append(m.Parts, plan.Component{Name: name, Size: s.Bytes()})
	}
}

// Step is the memory of a training step on the rank that takes most.
type Step struct {
	Stage   int64 // of the pipeline
	Moments []Moment
	Largest int        // index of the moment that peaks
	Active  plan.Range // what the largest moment sums up to
	Peak    plan.Range // the same as what is logged, as Observed names it
	Host    int64      // bytes in the host's memory for a rank
}

// Step plans one training step.
func (t Setup) Step() Step {
	t = t.Normal()
	var worst Step
	for _, stage := range slices.Compact([]int64{0, t.PP - 1}) {
		s := t.stage(stage)
		if s.Active.Middle() > worst.Active.Middle() || len(worst.Moments) == 0 {
			worst = s
		}
	}
	low, high := t.margins()
	active := plan.Span{Low: float64(worst.Active.Low), High: float64(worst.Active.High)}
	worst.Peak = active.Stretched(low, high).Within(1.5).Bytes()
	return worst
}

// margins are the bounds of what is logged, as factors of what is counted here.
// Reserved memory runs up to a quarter above it; active memory is a little less
// where a compiler fuses away a tensor that is counted, and a little more for
// rounding and what is too small to be counted. Where the source does not state which of the
// two was logged, it may be either, except for torchtune, whose published peaks are all within
// the bounds of active memory.
func (t Setup) margins() (low, high float64) {
	const fused, rounded, reserved = 0.93, 1.12, 1.25
	observed := t.Observed
	if observed == "" && t.Framework == "torchtune" {
		observed = "peak active"
	}
	switch observed {
	case "peak active":
		return fused, rounded
	case "peak reserved":
		return 1, reserved
	}
	return fused, reserved
}
