package serving

import (
	"fmt"
	"math"

	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/units"
)

// Questions are what can be asked for of an inference engine.
var Questions = []string{"context", "requests", "fraction", "gpus"}

// A Variant is a set-up, and how it differs from what was given.
type Variant struct {
	setup   Setup
	name    string
	changes int
	staged  bool // more pipeline stages
}

// Solve answers a question for each variant, the best first: the largest value, or
// the fewest GPUs; of equals the fewest changes.
func Solve(question string, variants []Variant) ([]plan.Answer, error) {
	var out []plan.Answer
	for _, v := range variants {
		if question == "gpus" && v.staged { // any division is tried there
			continue
		}
		a, err := solve(question, v.setup)
		if err != nil {
			return nil, err
		}
		a.Setup, a.Changes = v.name, v.changes
		out = append(out, a)
	}
	plan.Rank(out, question == "gpus")
	return out, nil
}

func solve(question string, s Setup) (plan.Answer, error) {
	if s.Engine.Local() {
		s = s.allOnGPU()
	}
	switch question {
	case "context":
		return s.longest()
	case "requests":
		if s.Engine.Local() {
			return s.maxRequests(), nil
		}
		f, err := s.Fit()
		if err != nil {
			return plan.Answer{Binding: err.Error()}, nil
		}
		return plan.Answer{Value: math.Floor(f.Requests[0]), Binding: f.Binding}, nil
	case "fraction":
		return s.largestFraction()
	case "gpus":
		return s.minGPUs()
	}
	return plan.Answer{}, fmt.Errorf("--solve %q is not known; these are: %v", question, Questions)
}

// allOnGPU is a set-up of llama.cpp with all layers on GPUs unless it states how many: otherwise
// everything fits, as what does not goes to the host.
func (s Setup) allOnGPU() Setup {
	if s.Local.Layers == nil {
		n := int64(len(s.Model.Layers)) + 1
		s.Local.Layers = &n
	}
	return s
}

// mostRequests returns how many requests of the whole context llama.cpp can take at once.
func (s Setup) maxRequests() plan.Answer {
	const maxRequests = 1 << 16
	a := plan.Answer{Binding: "the KV cache"}
	n := plan.Largest(maxRequests, func(n int64) bool {
		s.Requests, s.Local.Unified = n, false
		f, err := s.Fit()
		if err != nil {
			a.Binding = err.Error()
		}
		return err == nil && f.Verdict == plan.Fits
	})
	a.Value = float64(n)
	return a
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
	asked := int64(0)
	n := plan.Largest(limit, func(n int64) bool {
		s.Length = n
		f, err := s.Fit()
		if err != nil {
			failed = err
			return false
		}
		if f.Verdict != plan.Fits && !f.exceedsContext() { // a longer context holds that request
			last = f
			return false
		}
		asked = max(asked, f.requestTokens())
		return true
	})
	a := plan.Answer{Value: float64(n), Binding: "the model's own limit"}
	switch {
	case failed == nil && asked > n:
		a.Value = 0
		a.Binding = fmt.Sprintf("a request of %s tokens is longer than the longest context that fits, %s", units.Count(asked), units.Count(n))
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
// is outside PyTorch may not fit beside the engine's pool.
func (s Setup) largestFraction() (plan.Answer, error) {
	if s.Engine.Local() {
		return plan.Answer{Binding: s.Engine.Name + " takes as much as it needs: it has no memory fraction"}, nil
	}
	if s.setPool() {
		return plan.Answer{}, fmt.Errorf("--solve fraction: the size of the KV cache is set, so no memory fraction changes it")
	}
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
	of, need, what := s.outsideShare(part(plan.Activations), part(plan.Graphs), part(plan.NonTorch))
	share := float64(of-need.High) / float64(max(of, 1))
	a := plan.Answer{Binding: what}
	a.Value = max(math.Floor(share*1000)/1000, 0)
	s.Fraction = a.Value
	if best, err := s.Fit(); a.Value == 0 || err != nil || !best.Verdict.Possible() {
		return plan.Answer{Binding: "no fraction leaves room for one request of the whole context"}, nil
	}
	return a, nil
}

// minGPUs is the least number of GPUs, in the powers of two that engines take.
func (s Setup) minGPUs() (plan.Answer, error) {
	why := ""
	const maxGPUs = 256
	for n := int64(1); n <= maxGPUs; n *= 2 {
		p, err := plan.Divide(s.Model, n, 0, 0, s.node())
		if err != nil {
			return plan.Answer{}, err
		}
		p.EP, p.DP = s.Parallel.EP, s.Parallel.DP
		if s.Engine.Local() {
			p = plan.Parallel{TP: 1, PP: n}
		}
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
// stages instead of TP, and for each model of others its weights.
func Variants(s Setup, others []*model.Model) (out []Variant) {
	add := func(s Setup, setup string, changes int) {
		out = append(out, Variant{setup: s, name: setup, changes: changes})
	}
	kv := func(s Setup, setup string, changes int) {
		add(s, setup, changes)
		if s.KV.name == "auto" && s.Engine.Local() {
			s.KV = KVType{name: "q8_0", bytes: ggmlTypes["q8_0"], ggml: true}
			if s.Engine.Name == engine.Ollama {
				s.Local.Flash = On
			}
			add(s, plan.Joined(setup, "KV cache in q8_0"), changes+1)
		} else if s.KV.name == "auto" {
			s.KV = KVType{name: "fp8", bytes: 1}
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
