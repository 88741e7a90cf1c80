// Package rl plans a step of reinforcement learning in which a trainer and an
// inference engine share the GPUs, phase by phase, under four ways of sharing.
// [Setup.Phases] is the entry point.
package rl

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"strandline/internal/sorts"
	"strandline/plan"
	"strandline/plan/engine"
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
	Speeds            Speeds // 0 are the defaults
	Demand            Demand // of the rollouts; no prompts are not planned
}

// Names of the components of a step of reinforcement learning.
const (
	trainerWeights   = "trainer weights"
	trainerOptimizer = "optimizer"
	trainerGradients = "gradients"
	trainerWork      = "training activations"
	trainerCache     = "trainer's cache"
	logProbs         = "log-prob pass"
	referenceWeights = "reference weights"
	criticStates     = "critic"
	rolloutWeights   = "rollout weights"
	rolloutKV        = "rollout KV cache"
	rolloutGraphs    = "rollout graphs"
	rolloutWork      = "rollout activations"
	syncBuffers      = "sync buffers"
	contexts         = "contexts and NCCL"
)

// A stepPhase is a time of the step, and what is on the GPU then.
type stepPhase struct {
	Name  string   `yaml:"name"`
	Holds []string `yaml:"holds"`
	// Restarts marks a phase for which the engine is restarted.
	Restarts bool `yaml:"restarts,omitempty"`
}

// A sharing is one of the ways of sharing the GPU.
type sharing struct {
	Name   string      `yaml:"name"`
	Phases []stepPhase `yaml:"phases"`
}

// Phases is a step as data, which a person can edit.
type Phases struct {
	Total      int64 // memory of the GPU
	Components []plan.Component
	sharings   []sharing
	// Pool states which component the memory fraction sizes, and of what: the pool is
	// fraction × free − fixed.
	Pool        string
	free, fixed int64
	need        int64 // bytes of the pool below which no request fits
	Speeds      Speeds
	Rollouts    *Needed // nil if not stated

	restart restart
}

// size returns what a component takes; one that is not there takes nothing.
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
	// HandOvers are the times between its phases, Step their sum; none are known of
	// phases that were read from a file.
	HandOvers []HandOver
	Step      Seconds
	AtOnce    *int64 // rollouts that the pool KV holds, nil if none are asked for
}

// Outcomes computes the peaks of every way.
func (p *Phases) Outcomes() (out []Outcome) {
	for i := range p.sharings {
		out = append(out, p.outcome(&p.sharings[i]))
	}
	return out
}

func (p *Phases) outcome(w *sharing) Outcome {
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
	} else if p.free > 0 && room >= max(p.need, 1) && room < math.MaxInt64 {
		most := math.Floor(1000*float64(min(room, p.free-p.fixed)+p.fixed)/float64(p.free)) / 1000
		if pool := plan.Whole(most*float64(p.free)) - p.fixed; pool >= p.need {
			o.Fraction, o.KV = &most, pool
		}
	}
	o.HandOvers = p.handOvers(w)
	for _, h := range o.HandOvers {
		o.Step = o.Step.plus(h.Seconds[0], h.Seconds[1])
	}
	if p.Rollouts != nil && o.Fraction != nil {
		n := p.Rollouts.atOnce(o.KV)
		o.AtOnce = &n
	}
	return o
}

// peak returns what a phase takes.
func (p *Phases) peak(ph stepPhase) Peak {
	peak := Peak{Phase: ph.Name}
	for _, name := range ph.Holds {
		if c := (plan.Component{Name: name, Size: p.size(name)}); c.Size.High > 0 {
			peak.Size = peak.Size.Plus(c.Size)
			peak.Parts = append(peak.Parts, c)
		}
	}
	sorts.StableBy(peak.Parts, func(a, b plan.Component) int { return cmp.Compare(b.Size.Middle(), a.Size.Middle()) })
	peak.Over = peak.Size.High - p.Total
	return peak
}

// ways are the four ways of sharing the GPU.
func ways() []sharing {
	phase := func(name string, holds ...string) stepPhase {
		return stepPhase{Name: name, Holds: append(holds, contexts)}
	}
	log := []string{trainerWeights, referenceWeights, logProbs}
	update := []string{trainerWeights, trainerOptimizer, trainerGradients, trainerWork, criticStates}
	engine := []string{rolloutWeights, rolloutKV, rolloutGraphs}
	states := []string{trainerWeights, trainerOptimizer, referenceWeights, criticStates, trainerCache}
	return []sharing{
		{"both resident", []stepPhase{
			phase("rollout", slices.Concat(engine, []string{rolloutWork}, states)...),
			phase("log-probs", slices.Concat(engine, []string{trainerWeights, trainerOptimizer, referenceWeights, criticStates, logProbs})...),
			phase("update", slices.Concat(engine, update, []string{referenceWeights})...),
			phase("weight sync", slices.Concat(engine, states, []string{syncBuffers})...),
		}},
		{"offload and restart", []stepPhase{
			phase("rollout", slices.Concat(engine, []string{rolloutWork})...),
			phase("log-probs", log...),
			phase("update", update...),
			{Name: "restart with new weights", Holds: slices.Concat(engine, []string{rolloutWork, contexts}), Restarts: true},
		}},
		{"pause and resume", []stepPhase{
			phase("rollout", slices.Concat(engine, []string{rolloutWork})...),
			phase("log-probs", append(slices.Clone(log), rolloutGraphs)...),
			phase("update", append(slices.Clone(update), rolloutGraphs)...),
			phase("resume, and weight sync", slices.Concat(engine, []string{trainerWeights, trainerCache, syncBuffers})...),
		}},
		{"staged resume by tag", []stepPhase{
			phase("rollout", slices.Concat(engine, []string{rolloutWork})...),
			phase("log-probs", append(slices.Clone(log), rolloutGraphs)...),
			phase("update", append(slices.Clone(update), rolloutGraphs)...),
			phase("resume weights, and sync", rolloutWeights, rolloutGraphs, trainerWeights, trainerCache, syncBuffers),
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
	p := &Phases{Total: s.GPU.Total, sharings: ways(), Pool: rolloutKV, need: fit.Need}
	p.free, p.fixed = s.GPU.Total, weights+part(plan.Activations).High+processes.High
	if s.Engine.Name == engine.SGLang {
		p.free, p.fixed = s.GPU.Total-processes.Low, weights
	}
	p.time(r, s.Model.Params())
	p.Rollouts = r.Demand.needed(fit.Sequence, fit.PerToken)
	pool := max(plan.Whole(fit.Fraction*float64(p.free))-p.fixed, 0)
	add := func(name string, size plan.Range, source string) {
		if size.High > 0 {
			p.Components = append(p.Components, plan.Component{Name: name, Size: size, Source: source})
		}
	}
	add(trainerWeights, plan.Exactly(plan.Whole(st.Parameters)), "sharded parameters")
	add(trainerOptimizer, plan.Exactly(plan.Whole(st.Optimizer+st.Master)), "optimizer state and master weights")
	add(trainerGradients, plan.Exactly(plan.Whole(st.Gradients)), "reduced gradients")
	add(trainerWork, plan.Span{Low: max(work.Low, 0), High: max(work.High, 0)}.Bytes(), "the peak of a training step, without its state: "+step.Moments[step.Largest].Name)
	add(trainerCache, plan.Range{Low: 0, High: plan.Whole(0.25 * max(work.Low, 0))}, "the part that the trainer's allocator keeps; empty_cache before the hand-over returns most")
	add(logProbs, t.LogProbs(), "logits of one forward, and the block at work")
	if r.Reference {
		add(referenceWeights, plan.Exactly(plan.Whole(st.Parameters)), "a frozen copy of the shape, sharded")
	}
	if r.Critic {
		add(criticStates, plan.Exactly(plan.Whole(fixed)), "a critic of the same shape, without its head")
	}
	add(rolloutWeights, plan.Exactly(weights), "as the engine lays them out")
	add(rolloutKV, plan.Exactly(pool), fmt.Sprintf("a memory fraction of %.4g", fit.Fraction))
	add(rolloutGraphs, part(plan.Graphs), "not released by a pause unless asked for")
	add(rolloutWork, part(plan.Activations), "a forward pass of the engine")
	add(syncBuffers, plan.Range{Low: 512 << 20, High: 2 << 30}, "buckets of gathered weights, handed over by IPC: 0.5 to 2 GiB in verl and slime")
	add(contexts, processes, "two CUDA contexts, and NCCL's buffers")
	return p, nil
}

// time fills in what hand-overs are timed with. The trainer writes 16 bits of each
// parameter.
func (p *Phases) time(r Setup, params int64) {
	p.Speeds = r.Speeds
	if p.Speeds.Host == 0 {
		p.Speeds.Host = defaultHost
	}
	if p.Speeds.Disk == 0 {
		p.Speeds.Disk = defaultDisk
	}
	if p.Speeds.Link == 0 {
		p.Speeds.Link = max(r.Rollout.GPU.Link, defaultHost)
	}
	p.restart = restart{checkpoint: 2 * float64(params), captures: r.Rollout.Normal().Captures()}
}

// Host returns what the phases that offload keep in the host's memory for a GPU: the
// trainer's states, and the engine's weights.
func (p *Phases) Host() int64 {
	n := int64(0)
	for _, name := range []string{trainerWeights, trainerOptimizer, criticStates, rolloutWeights} {
		n += p.size(name).High
	}
	return n
}
