package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"strandline/plan/model"
)

// Answer is the best value of what is asked for under one set-up. Value is 0 where
// nothing fits.
type Answer struct {
	Setup   string  // what is changed, "as given" if nothing
	Changes int     // how many things are
	Value   float64 // tokens, requests, sequences, GPUs or a fraction
	Binding string  // what stands in the way of more, or of anything
}

// What can be asked for of an inference engine, and of a trainer.
var (
	ServingQuestions  = []string{"context", "requests", "fraction", "gpus"}
	TrainingQuestions = []string{"batch", "seq", "gpus"}
)

// A Variant is a set-up, and how it differs from what was given.
type Variant struct {
	Serving Serving
	Setup   string
	Changes int
	Staged  bool // more pipeline stages
}

// Solve answers a question for each variant, the best first: the largest value, or
// the fewest GPUs; of equals the fewest changes.
func Solve(question string, variants []Variant) ([]Answer, error) {
	var out []Answer
	for _, v := range variants {
		if question == "gpus" && v.Staged { // any division is tried there
			continue
		}
		a, err := solve(question, v.Serving)
		if err != nil {
			return nil, err
		}
		a.Setup, a.Changes = v.Setup, v.Changes
		out = append(out, a)
	}
	rank(out, question == "gpus")
	return out, nil
}

func rank(list []Answer, least bool) {
	slices.SortStableFunc(list, func(a, b Answer) int {
		if none := cmp.Compare(b2i(a.Value == 0), b2i(b.Value == 0)); none != 0 {
			return none
		}
		order := cmp.Compare(b.Value, a.Value)
		if least {
			order = -order
		}
		return cmp.Or(order, cmp.Compare(a.Changes, b.Changes))
	})
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func solve(question string, s Serving) (Answer, error) {
	switch question {
	case "context":
		return s.longest()
	case "requests":
		f, err := s.Fit()
		if err != nil {
			return Answer{Binding: err.Error()}, nil
		}
		return Answer{Value: math.Floor(f.Requests[0]), Binding: f.Binding}, nil
	case "fraction":
		return s.largestFraction()
	case "gpus":
		return s.fewest()
	}
	return Answer{}, fmt.Errorf("--solve %q is not known; these are: %v", question, ServingQuestions)
}

// largest is the largest number from 1 on that fits, 0 if none does. What fits
// grows no wider with the number.
func largest(most int64, fits func(n int64) bool) int64 {
	low, high := int64(0), most
	for low < high {
		mid := low + (high-low+1)/2
		if fits(mid) {
			low = mid
		} else {
			high = mid - 1
		}
	}
	return low
}

// longest is the longest context that fits at the high end of the ranges.
func (s Serving) longest() (Answer, error) {
	limit := s.Model.Context
	if limit == 0 {
		limit = 1 << 24
	}
	s = s.loaded()
	var last *Fit
	var failed error
	n := largest(limit, func(n int64) bool {
		s.Length = n
		f, err := s.Fit()
		if err != nil {
			failed = err
			return false
		}
		if f.Verdict != Fits {
			last = f
			return false
		}
		return true
	})
	a := Answer{Value: float64(n), Binding: "the model's own limit"}
	switch {
	case failed != nil:
		a.Binding = failed.Error()
	case last != nil && n < limit:
		a.Binding = last.Binding
	}
	return a, nil
}

// loaded computes what does not change with the length once.
func (s Serving) loaded() Serving {
	s.Parallel = s.Parallel.normal()
	if s.possibleStages() {
		s.stages = s.loadStages()
	}
	return s
}

func (s Serving) possibleStages() bool { return s.Parallel.PP <= int64(len(s.Model.Layers)) }

// largestFraction is the share of the GPU above which activations, graphs and what
// stands outside PyTorch may not fit beside the engine's pool.
func (s Serving) largestFraction() (Answer, error) {
	f, err := s.Fit()
	if err != nil {
		return Answer{Binding: err.Error()}, nil
	}
	s = f.Serving
	part := func(name string) Range {
		for _, c := range f.Components {
			if c.Name == name {
				return c.Size
			}
		}
		return Range{}
	}
	of, need, what := s.beside(part(Activations), part(Graphs), part(NonTorch))
	share := float64(of-need.High) / float64(max(of, 1))
	a := Answer{Binding: what}
	a.Value = max(math.Floor(share*1000)/1000, 0)
	s.Fraction = a.Value
	if best, err := s.Fit(); a.Value == 0 || err != nil || best.Verdict == TooMuch {
		return Answer{Binding: "no fraction leaves room for one request of the whole context"}, nil
	}
	return a, nil
}

// fewest is the least number of GPUs, in the powers of two that engines take.
func (s Serving) fewest() (Answer, error) {
	why := ""
	const most = 256
	for n := int64(1); n <= most; n *= 2 {
		p, err := Divide(s.Model, n, 0, 0)
		if err != nil {
			return Answer{}, err
		}
		p.EP, p.DP = s.Parallel.EP, s.Parallel.DP
		try := s
		try.Parallel = p
		f, err := try.Fit()
		switch {
		case err != nil:
			why = err.Error()
		case f.Verdict == Fits:
			return Answer{Value: float64(n), Binding: why}, nil
		default:
			why = f.Binding
		}
	}
	return Answer{Binding: why}, nil
}

// Variants are the set-up as given, and others: keys and values in fp8, more
// stages in the place of TP, and for each model of others its weights.
func Variants(s Serving, others []*model.Model) (out []Variant) {
	add := func(s Serving, setup string, changes int) {
		out = append(out, Variant{Serving: s, Setup: setup, Changes: changes})
	}
	kv := func(s Serving, setup string, changes int) {
		add(s, setup, changes)
		if s.KV.Name == "auto" {
			s.KV = KVType{"fp8", 1, 0}
			add(s, joined(setup, "KV cache in fp8"), changes+1)
		}
	}
	kv(s, asGiven, 0)
	if p := s.Parallel.normal(); p.TP > 1 && p.TP%2 == 0 && p.DP == 1 && p.Stages == nil {
		staged := s
		staged.Parallel.TP, staged.Parallel.PP = p.TP/2, p.PP*2
		out = append(out, Variant{staged, fmt.Sprintf("TP %d, PP %d", p.TP/2, p.PP*2), 1, true})
	}
	for _, m := range others {
		other := s
		other.Model = m
		kv(other, "weights in "+m.Quant, 2) // another checkpoint is a larger change
	}
	return out
}

const asGiven = "as given"

func joined(a, b string) string {
	if a == asGiven {
		return b
	}
	return a + ", " + b
}

// SolveTraining answers a question for the set-up as given, and with more
// recomputation and with the optimizer in the host's memory. GPUs are added to the
// sharding degree.
func SolveTraining(question string, t Training, g *GPU) ([]Answer, error) {
	if !slices.Contains(TrainingQuestions, question) {
		return nil, fmt.Errorf("--solve %q is not known; these are: %v", question, TrainingQuestions)
	}
	t = t.normal()
	var out []Answer
	for _, keep := range []Checkpointing{t.Checkpointing, KeepMatmuls, KeepInputs} {
		for _, offload := range []bool{t.OffloadOptimizer, true} {
			v := t
			v.Checkpointing, v.OffloadOptimizer = keep, offload
			setup, changes := asGiven, 0
			if keep != t.Checkpointing {
				setup, changes = joined(setup, "checkpointing "+string(keep)), changes+1
			}
			if offload != t.OffloadOptimizer {
				setup, changes = joined(setup, "optimizer in the host's memory"), changes+1
			}
			if slices.ContainsFunc(out, func(a Answer) bool { return a.Setup == setup }) {
				continue
			}
			a := v.solve(question, g)
			a.Setup, a.Changes = setup, changes
			out = append(out, a)
		}
	}
	rank(out, question == "gpus")
	return out, nil
}

func (t Training) solve(question string, g *GPU) Answer {
	a := Answer{}
	fits := func(v Training) bool {
		step := v.Step()
		if Judge(step.Peak, v.Outside(), g.Total) == Fits {
			return true
		}
		a.Binding = step.Moments[step.Largest].Name + ": " + heaviest(step.Moments[step.Largest].Parts)
		return false
	}
	const most = 1 << 16
	switch question {
	case "batch":
		a.Value = float64(largest(most, func(n int64) bool {
			v := t
			v.Sequences = n
			return fits(v)
		}))
	case "seq":
		const step = 256
		a.Value = step * float64(largest(most, func(n int64) bool {
			v := t
			v.Length = step * n
			return fits(v)
		}))
	case "gpus":
		rest := t.TP * t.PP * t.CP
		for n := int64(1); n <= 4096; n *= 2 {
			v := t
			v.Shard = n
			if fits(v) {
				a.Value = float64(n * rest)
				break
			}
		}
	}
	return a
}

func heaviest(list []Part) string {
	most := Part{}
	for _, p := range list {
		if p.Size.Middle() > most.Size.Middle() {
			most = p
		}
	}
	return most.Name
}
