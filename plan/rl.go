package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// RL is a set-up of reinforcement learning in which a trainer and an inference
// engine share the GPUs.
type RL struct {
	Training Training
	Rollout  Serving
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
	Components []Component
	Ways       []Way
	// Pool says which component the memory fraction sizes, and of what: the pool is
	// fraction × Free − Fixed.
	Pool        string
	Free, Fixed int64
	Need        int64 // bytes of the pool below which no request fits
}

// size is what a component takes; one that is not there takes nothing.
func (p *Phases) size(name string) Range {
	for _, c := range p.Components {
		if c.Name == name {
			return c.Size
		}
	}
	return Range{}
}

// A Peak is what a phase takes.
type Peak struct {
	Phase string
	Size  Range
	Parts []Component // the largest first
	Over  int64       // of the high end, beyond the GPU; negative is room
}

// Outcome is a way of sharing, phase by phase.
type Outcome struct {
	Way     string
	Peaks   []Peak
	Highest int // index of the phase that peaks
	Verdict Verdict
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
	o := Outcome{Way: w.Name, Verdict: Fits}
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
			o.Verdict = TooMuch
		case peak.Over > 0 && o.Verdict == Fits:
			o.Verdict = Tight
		}
	}
	if blocked != "" {
		o.Binding = blocked
	} else if p.Free > 0 && room >= max(p.Need, 1) && room < math.MaxInt64 {
		most := math.Floor(1000*float64(min(room, p.Free-p.Fixed)+p.Fixed)/float64(p.Free)) / 1000
		if pool := whole(most*float64(p.Free)) - p.Fixed; pool >= p.Need {
			o.Fraction, o.KV = &most, pool
		}
	}
	return o
}

// peak is what a phase takes.
func (p *Phases) peak(ph Phase) Peak {
	peak := Peak{Phase: ph.Name}
	for _, name := range ph.Holds {
		if c := (Component{Name: name, Size: p.size(name)}); c.Size.High > 0 {
			peak.Size = peak.Size.plus(c.Size)
			peak.Parts = append(peak.Parts, c)
		}
	}
	slices.SortStableFunc(peak.Parts, func(a, b Component) int { return cmp.Compare(b.Size.Middle(), a.Size.Middle()) })
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
func (r RL) Phases() (*Phases, error) {
	t, s := r.Training.normal(), r.Rollout
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
	st := t.states(t.hold(step.Stage))
	if t.OffloadStates {
		st = states{}
	}
	fixed := st.params + st.optimizer + st.master
	work := span{float64(step.Peak.Low) - fixed - st.grads, float64(step.Peak.High) - fixed - st.grads}
	part := func(name string) Range {
		for _, c := range fit.Components {
			if c.Name == name {
				return c.Size
			}
		}
		return Range{}
	}
	// Two processes, 0.5 GiB of CUDA context each, and NCCL's buffers of both.
	processes := t.Outside().plus(Range{400 << 20, 600 << 20})
	weights := part(Weights).High
	p := &Phases{Total: s.GPU.Total, Ways: ways(), Pool: RolloutKV, Need: fit.Need}
	p.Free, p.Fixed = s.GPU.Total, weights+part(Activations).High+processes.High
	if s.Engine.Name == SGLang {
		p.Free, p.Fixed = s.GPU.Total-processes.Low, weights
	}
	pool := max(whole(fit.Fraction*float64(p.Free))-p.Fixed, 0)
	add := func(name string, size Range, source string) {
		if size.High > 0 {
			p.Components = append(p.Components, Component{name, size, source})
		}
	}
	add(TrainerWeights, exactly(whole(st.params)), "sharded parameters")
	add(TrainerOptimizer, exactly(whole(st.optimizer+st.master)), "optimizer states and master weights")
	add(TrainerGradients, exactly(whole(st.grads)), "reduced gradients")
	add(TrainerWork, span{max(work.low, 0), max(work.high, 0)}.bytes(), "the peak of a training step, without its states: "+step.Moments[step.Largest].Name)
	add(TrainerCache, Range{0, whole(0.25 * max(work.low, 0))}, "what the trainer's allocator keeps of it; empty_cache before the hand-over gives back most")
	add(LogProbs, t.logProbs(), "logits of one forward, and the block at work")
	if r.Reference {
		add(ReferenceWeights, exactly(whole(st.params)), "a frozen copy of the shape, sharded")
	}
	if r.Critic {
		add(CriticStates, exactly(whole(fixed)), "a critic of the same shape, without its head")
	}
	add(RolloutWeights, exactly(weights), "as the engine lays them out")
	add(RolloutKV, exactly(pool), fmt.Sprintf("a memory fraction of %.4g", fit.Fraction))
	add(RolloutGraphs, part(Graphs), "not released by a pause unless asked for")
	add(RolloutWork, part(Activations), "a forward pass of the engine")
	add(SyncBuffers, Range{512 << 20, 2 << 30}, "buckets of gathered weights, handed over by IPC: 0.5 to 2 GiB in verl and slime")
	add(Processes, processes, "two CUDA contexts, and NCCL's buffers")
	return p, nil
}

// logProbs is a forward pass without gradients: bf16 and fp32 logits and their
// log-softmax or entropy, and what one block has live.
func (t Training) logProbs() Range {
	n := t.tokens() * float64(t.Model.Vocab) / float64(t.TP)
	logits := between(6, 10).times(n)
	if t.LossChunks > 1 {
		logits = between(2, 10).times(n / float64(t.LossChunks))
	}
	h := t.hold(t.PP - 1)
	block := point(0)
	if t.ZeRO == 3 {
		block = between(h.block, 2*h.block).times(t.ComputeBytes)
	}
	var most float64
	for i := range t.Model.Layers {
		p := t.share(t.perToken(&t.Model.Layers[i]))
		most = max(most, 2*(2*p.H+max(3*p.i, p.q+2*p.kv)))
	}
	return logits.plus(block).plus(between(most, 1.5*most).times(t.tokens())).bytes()
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
