package serving

import (
	"fmt"
	"math"

	"strandline/plan"
	"strandline/plan/model"
)

// Questions are what can be asked for of an inference engine.
var Questions = []string{"context", "requests", "fraction", "gpus"}

// A Variant is a set-up, and how it differs from what was given.
type Variant struct {
	Serving Setup
	Setup   string
	Changes int
	Staged  bool // more pipeline stages
}

// Solve answers a question for each variant, the best first: the largest value, or
// the fewest GPUs; of equals the fewest changes.
func Solve(question string, variants []Variant) ([]plan.Answer, error) {
	var out []plan.Answer
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
	plan.Rank(out, question == "gpus")
	return out, nil
}

func solve(question string, s Setup) (plan.Answer, error) {
	switch question {
	case "context":
		return s.longest()
	case "requests":
		f, err := s.Fit()
		if err != nil {
			return plan.Answer{Binding: err.Error()}, nil
		}
		return plan.Answer{Value: math.Floor(f.Requests[0]), Binding: f.Binding}, nil
	case "fraction":
		return s.largestFraction()
	case "gpus":
		return s.fewest()
	}
	return plan.Answer{}, fmt.Errorf("--solve %q is not known; these are: %v", question, Questions)
}

// longest is the longest context that fits at the high end of the ranges.
func (s Setup) longest() (plan.Answer, error) {
	limit := s.Model.Context
	if limit == 0 {
		limit = 1 << 24
	}
	s = s.loaded()
	var last *Fit
	var failed error
	n := plan.Largest(limit, func(n int64) bool {
		s.Length = n
		f, err := s.Fit()
		if err != nil {
			failed = err
			return false
		}
		if f.Verdict != plan.Fits {
			last = f
			return false
		}
		return true
	})
	a := plan.Answer{Value: float64(n), Binding: "the model's own limit"}
	switch {
	case failed != nil:
		a.Binding = failed.Error()
	case last != nil && n < limit:
		a.Binding = last.Binding
	}
	return a, nil
}

// loaded computes what does not change with the length once.
func (s Setup) loaded() Setup {
	s.Parallel = s.Parallel.Normal()
	if s.possibleStages() {
		s.stages = s.loadStages()
	}
	return s
}

func (s Setup) possibleStages() bool { return s.Parallel.PP <= int64(len(s.Model.Layers)) }

// largestFraction is the share of the GPU above which activations, graphs and what
// stands outside PyTorch may not fit beside the engine's pool.
func (s Setup) largestFraction() (plan.Answer, error) {
	f, err := s.Fit()
	if err != nil {
		return plan.Answer{Binding: err.Error()}, nil
	}
	s = f.Serving
	part := func(name string) plan.Range {
		for _, c := range f.Components {
			if c.Name == name {
				return c.Size
			}
		}
		return plan.Range{}
	}
	of, need, what := s.beside(part(plan.Activations), part(plan.Graphs), part(plan.NonTorch))
	share := float64(of-need.High) / float64(max(of, 1))
	a := plan.Answer{Binding: what}
	a.Value = max(math.Floor(share*1000)/1000, 0)
	s.Fraction = a.Value
	if best, err := s.Fit(); a.Value == 0 || err != nil || best.Verdict == plan.TooMuch {
		return plan.Answer{Binding: "no fraction leaves room for one request of the whole context"}, nil
	}
	return a, nil
}

// fewest is the least number of GPUs, in the powers of two that engines take.
func (s Setup) fewest() (plan.Answer, error) {
	why := ""
	const most = 256
	for n := int64(1); n <= most; n *= 2 {
		p, err := plan.Divide(s.Model, n, 0, 0)
		if err != nil {
			return plan.Answer{}, err
		}
		p.EP, p.DP = s.Parallel.EP, s.Parallel.DP
		try := s
		try.Parallel = p
		f, err := try.Fit()
		switch {
		case err != nil:
			why = err.Error()
		case f.Verdict == plan.Fits:
			return plan.Answer{Value: float64(n), Binding: why}, nil
		default:
			why = f.Binding
		}
	}
	return plan.Answer{Binding: why}, nil
}

// Variants are the set-up as given, and others: keys and values in fp8, more
// stages in the place of TP, and for each model of others its weights.
func Variants(s Setup, others []*model.Model) (out []Variant) {
	add := func(s Setup, setup string, changes int) {
		out = append(out, Variant{Serving: s, Setup: setup, Changes: changes})
	}
	kv := func(s Setup, setup string, changes int) {
		add(s, setup, changes)
		if s.KV.Name == "auto" {
			s.KV = KVType{"fp8", 1, 0}
			add(s, plan.Joined(setup, "KV cache in fp8"), changes+1)
		}
	}
	kv(s, plan.AsGiven, 0)
	if p := s.Parallel.Normal(); p.TP > 1 && p.TP%2 == 0 && p.DP == 1 && p.Stages == nil {
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
