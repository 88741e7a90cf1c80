// Package rl plans a step of reinforcement learning in which a trainer and an
// inference engine share the GPUs, phase by phase, under four ways of sharing.
// [Setup.Phases] is the way in.
package rl

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"strandline/plan"
	"strandline/plan/serving"
	"strandline/plan/training"
)

// Setup is a set-up of reinforcement learning in which a trainer and an inference
// engine share the GPUs.
type Setup struct {
	Training training.Setup
	Rollout  serving.Setup
	// Reference and Critic are further models of the same shape: a reference whose
	// weights are sharded, and a critic that is trained.
	Reference, Critic bool
}

// Names of the components of a step of reinforcement learning.
const (
	TrainerWeights   = "trainer weights"
	TrainerOptimizer = "optimizer"
	TrainerGradients = "gradients"
	TrainerWork      = "training activations"
	TrainerCache     = "trainer's cache"
	LogProbs         = "log-prob pass"
	ReferenceWeights = "reference weights"
	CriticStates     = "critic"
	RolloutWeights   = "rollout weights"
	RolloutKV        = "rollout KV cache"
	RolloutGraphs    = "rollout graphs"
	RolloutWork      = "rollout activations"
	SyncBuffers      = "sync buffers"
	Processes        = "contexts and NCCL"
)

// A Phase is a time of the step, and what is on the GPU then.
type Phase struct {
	Name  string   `yaml:"name"`
	Holds []string `yaml:"holds"`
}

// A Way is one of the ways of sharing the GPU.
type Way struct {
	Name   string  `yaml:"name"`
	Phases []Phase `yaml:"phases"`
}

// Phases is a step as data, which a person can edit.
type Phases struct {
	Total      int64 // memory of the GPU
	Components []plan.Component
	Ways       []Way
	// Pool says which component the memory fraction sizes, and of what: the pool is
	// fraction × Free − Fixed.
	Pool        string
	Free, Fixed int64
	Need        int64 // bytes of the pool below which no request fits
}

// size is what a component takes; one that is not there takes nothing.
func (p *Phases) size(name string) plan.Range {
	for _, c := range p.Components {
		if c.Name == name {
			return c.Size
		}
	}
	return plan.Range{}
}

// A Peak is what a phase takes.
type Peak struct {
	Phase string
	Size  plan.Range
	Parts []plan.Component // the largest first
	Over  int64            // of the high end, beyond the GPU; negative is room
}

// Outcome is a way of sharing, phase by phase.
type Outcome struct {
	Way     string
	Peaks   []Peak
	Highest int // index of the phase that peaks
	Verdict plan.Verdict
	// Fraction is the largest memory fraction with which every phase fits at the high
	// end of the ranges, nil if none does, and KV the pool that it makes.
	Fraction *float64
	KV       int64
	Binding  string // the phase that binds it
}

// Outcomes computes the peaks of every way.
func (p *Phases) Outcomes() (out []Outcome) {
	for i := range p.Ways {
		out = append(out, p.outcome(&p.Ways[i]))
	}
	return out
}

func (p *Phases) outcome(w *Way) Outcome {
	o := Outcome{Way: w.Name, Verdict: plan.Fits}
	room, blocked := int64(math.MaxInt64), ""
	for _, ph := range w.Phases {
		peak := p.peak(ph)
		left := -peak.Over
		if slices.Contains(ph.Holds, p.Pool) {
			if left += p.size(p.Pool).High; left < room {
				room, o.Binding = left, ph.Name
			}
		} else if left < 0 && blocked == "" {
			blocked = ph.Name // no pool however small helps
		}
		o.Peaks = append(o.Peaks, peak)
		if peak.Size.Middle() > o.Peaks[o.Highest].Size.Middle() {
			o.Highest = len(o.Peaks) - 1
		}
		switch {
		case peak.Size.Low > p.Total:
			o.Verdict = plan.TooMuch
		case peak.Over > 0 && o.Verdict == plan.Fits:
			o.Verdict = plan.Tight
		}
	}
	if blocked != "" {
		o.Binding = blocked
	} else if p.Free > 0 && room >= max(p.Need, 1) && room < math.MaxInt64 {
		most := math.Floor(1000*float64(min(room, p.Free-p.Fixed)+p.Fixed)/float64(p.Free)) / 1000
		if pool := plan.Whole(most*float64(p.Free)) - p.Fixed; pool >= p.Need {
			o.Fraction, o.KV = &most, pool
		}
	}
	return o
}

// peak is what a phase takes.
func (p *Phases) peak(ph Phase) Peak {
	peak := Peak{Phase: ph.Name}
	for _, name := range ph.Holds {
		if c := (plan.Component{Name: name, Size: p.size(name)}); c.Size.High > 0 {
			peak.Size = peak.Size.Plus(c.Size)
			peak.Parts = append(peak.Parts, c)
		}
	}
	slices.SortStableFunc(peak.Parts, func(a, b plan.Component) int { return cmp.Compare(b.Size.Middle(), a.Size.Middle()) })
	peak.Over = peak.Size.High - p.Total
	return peak
}

// ways are the four ways of sharing the GPU.
func ways() []Way {
	phase := func(name string, holds ...string) Phase {
		return Phase{name, append(holds, Processes)}
	}
	log := []string{TrainerWeights, ReferenceWeights, LogProbs}
	update := []string{TrainerWeights, TrainerOptimizer, TrainerGradients, TrainerWork, CriticStates}
	engine := []string{RolloutWeights, RolloutKV, RolloutGraphs}
	states := []string{TrainerWeights, TrainerOptimizer, ReferenceWeights, CriticStates, TrainerCache}
	return []Way{
		{"both resident", []Phase{
			phase("rollout", slices.Concat(engine, []string{RolloutWork}, states)...),
			phase("log-probs", slices.Concat(engine, []string{TrainerWeights, TrainerOptimizer, ReferenceWeights, CriticStates, LogProbs})...),
			phase("update", slices.Concat(engine, update, []string{ReferenceWeights})...),
			phase("weight sync", slices.Concat(engine, states, []string{SyncBuffers})...),
		}},
		{"offload and restart", []Phase{
			phase("rollout", slices.Concat(engine, []string{RolloutWork})...),
			phase("log-probs", log...),
			phase("update", update...),
			phase("restart with new weights", slices.Concat(engine, []string{RolloutWork})...),
		}},
		{"pause and resume", []Phase{
			phase("rollout", slices.Concat(engine, []string{RolloutWork})...),
			phase("log-probs", append(slices.Clone(log), RolloutGraphs)...),
			phase("update", append(slices.Clone(update), RolloutGraphs)...),
			phase("resume, and weight sync", slices.Concat(engine, []string{TrainerWeights, TrainerCache, SyncBuffers})...),
		}},
		{"staged resume by tag", []Phase{
			phase("rollout", slices.Concat(engine, []string{RolloutWork})...),
			phase("log-probs", append(slices.Clone(log), RolloutGraphs)...),
			phase("update", append(slices.Clone(update), RolloutGraphs)...),
			phase("resume weights, and sync", RolloutWeights, RolloutGraphs, TrainerWeights, TrainerCache, SyncBuffers),
			phase("resume KV cache", engine...),
		}},
	}
}

// Phases plans the components and the phases of a step.
func (r Setup) Phases() (*Phases, error) {
	t, s := r.Training.Normal(), r.Rollout
	if err := t.Check(); err != nil {
		return nil, err
	}
	if s.GPU == nil {
		return nil, fmt.Errorf("no GPU is given")
	}
	fit, err := s.Fit()
	if err != nil {
		return nil, err
	}
	s = fit.Serving
	step := t.Step()
	st := t.States(step.Stage)
	if t.OffloadStates {
		st = training.States{}
	}
	fixed := st.Parameters + st.Optimizer + st.Master
	work := plan.Span{Low: float64(step.Peak.Low) - fixed - st.Gradients, High: float64(step.Peak.High) - fixed - st.Gradients}
	part := func(name string) plan.Range {
		for _, c := range fit.Components {
			if c.Name == name {
				return c.Size
			}
		}
		return plan.Range{}
	}
	// Two processes, 0.5 GiB of CUDA context each, and NCCL's buffers of both.
	processes := t.Outside().Plus(plan.Range{Low: 400 << 20, High: 600 << 20})
	weights := part(plan.Weights).High
	p := &Phases{Total: s.GPU.Total, Ways: ways(), Pool: RolloutKV, Need: fit.Need}
	p.Free, p.Fixed = s.GPU.Total, weights+part(plan.Activations).High+processes.High
	if s.Engine.Name == serving.SGLang {
		p.Free, p.Fixed = s.GPU.Total-processes.Low, weights
	}
	pool := max(plan.Whole(fit.Fraction*float64(p.Free))-p.Fixed, 0)
	add := func(name string, size plan.Range, source string) {
		if size.High > 0 {
			p.Components = append(p.Components, plan.Component{Name: name, Size: size, Source: source})
		}
	}
	add(TrainerWeights, plan.Exactly(plan.Whole(st.Parameters)), "sharded parameters")
	add(TrainerOptimizer, plan.Exactly(plan.Whole(st.Optimizer+st.Master)), "optimizer states and master weights")
	add(TrainerGradients, plan.Exactly(plan.Whole(st.Gradients)), "reduced gradients")
	add(TrainerWork, plan.Span{Low: max(work.Low, 0), High: max(work.High, 0)}.Bytes(), "the peak of a training step, without its states: "+step.Moments[step.Largest].Name)
	add(TrainerCache, plan.Range{Low: 0, High: plan.Whole(0.25 * max(work.Low, 0))}, "what the trainer's allocator keeps of it; empty_cache before the hand-over gives back most")
	add(LogProbs, t.LogProbs(), "logits of one forward, and the block at work")
	if r.Reference {
		add(ReferenceWeights, plan.Exactly(plan.Whole(st.Parameters)), "a frozen copy of the shape, sharded")
	}
	if r.Critic {
		add(CriticStates, plan.Exactly(plan.Whole(fixed)), "a critic of the same shape, without its head")
	}
	add(RolloutWeights, plan.Exactly(weights), "as the engine lays them out")
	add(RolloutKV, plan.Exactly(pool), fmt.Sprintf("a memory fraction of %.4g", fit.Fraction))
	add(RolloutGraphs, part(plan.Graphs), "not released by a pause unless asked for")
	add(RolloutWork, part(plan.Activations), "a forward pass of the engine")
	add(SyncBuffers, plan.Range{Low: 512 << 20, High: 2 << 30}, "buckets of gathered weights, handed over by IPC: 0.5 to 2 GiB in verl and slime")
	add(Processes, processes, "two CUDA contexts, and NCCL's buffers")
	return p, nil
}

// Host is what the phases that offload keep in the host's memory for a GPU: the
// trainer's states, and the engine's weights.
func (p *Phases) Host() int64 {
	n := int64(0)
	for _, name := range []string{TrainerWeights, TrainerOptimizer, CriticStates, RolloutWeights} {
		n += p.size(name).High
	}
	return n
}
