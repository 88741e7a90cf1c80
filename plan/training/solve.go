package training

import (
	"fmt"
	"slices"

	"strandline/plan"
)

// Questions are what can be asked for of a trainer.
var Questions = []string{"batch", "seq", "gpus"}

// Solve answers a question for the set-up as given, and with more
// recomputation and with the optimizer in the host's memory. GPUs are added to the
// sharding degree.
func Solve(question string, t Setup, g *plan.GPU) ([]plan.Answer, error) {
	if !slices.Contains(Questions, question) {
		return nil, fmt.Errorf("--solve %q is not known; these are: %v", question, Questions)
	}
	t = t.Normal()
	var out []plan.Answer
	for _, keep := range []Checkpointing{t.Checkpointing, KeepMatmuls, KeepInputs} {
		for _, offload := range []bool{t.OffloadOptimizer, true} {
			v := t
			v.Checkpointing, v.OffloadOptimizer = keep, offload
			setup, changes := plan.AsGiven, 0
			if keep != t.Checkpointing {
				setup, changes = plan.Joined(setup, "checkpointing "+string(keep)), changes+1
			}
			if offload != t.OffloadOptimizer {
				setup, changes = plan.Joined(setup, "optimizer in the host's memory"), changes+1
			}
			if slices.ContainsFunc(out, func(a plan.Answer) bool { return a.Setup == setup }) {
				continue
			}
			a := v.solve(question, g)
			a.Setup, a.Changes = setup, changes
			out = append(out, a)
		}
	}
	plan.Rank(out, question == "gpus")
	return out, nil
}

func (t Setup) solve(question string, g *plan.GPU) plan.Answer {
	a := plan.Answer{}
	fits := func(v Setup) bool {
		step := v.Step()
		if plan.Judge(step.Peak, v.Outside(), g.Total) == plan.Fits {
			return true
		}
		a.Binding = step.Moments[step.Largest].Name + ": " + heaviest(step.Moments[step.Largest].Parts)
		return false
	}
	const limit = 1 << 16
	switch question {
	case "batch":
		a.Value = float64(plan.Largest(limit, func(n int64) bool {
			v := t
			v.Sequences = n
			return fits(v)
		}))
	case "seq":
		const step = 256
		a.Value = step * float64(plan.Largest(limit, func(n int64) bool {
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

func heaviest(list []plan.Component) string {
	most := plan.Component{}
	for _, p := range list {
		if p.Size.Middle() > most.Size.Middle() {
			most = p
		}
	}
	return most.Name
}
