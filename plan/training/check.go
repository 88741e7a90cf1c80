package training

import (
	"fmt"

	"strandline/plan"
	"strandline/plan/engine"
)

// CheckStep compares the memory of a training step, as a snapshot has it by purpose at
// its peak, with the plan.
func (t Setup) CheckStep(byPurpose map[string]int64) ([]plan.Checked, error) {
	t = t.Normal()
	step := t.Step()
	m := &step.Moments[step.Largest]
	planned := map[string]plan.Range{}
	for _, p := range m.Parts {
		name := purposes[p.Name]
		planned[name] = planned[name].Plus(p.Size)
	}
	var out []plan.Checked
	for _, name := range []string{"parameters", "optimizer", "gradients", "activations", "communication"} {
		observed, there := byPurpose[name]
		size, has := planned[name]
		if name == "activations" {
			observed += byPurpose["temporaries"]
		}
		if !there && !has {
			continue
		}
		c := plan.Checked{Component: name, Planned: plan.Range{Low: plan.Whole(0.97 * float64(size.Low)), High: plan.Whole(1.03 * float64(size.High))}, Observed: observed}
		c.Compare()
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the snapshot does not show the purpose of any memory")
	}
	plan.Of(out, 0)
	for i := range out {
		out[i].Cause = t.cause(&out[i])
	}
	plan.Order(out)
	return out, nil
}

// CheckLog compares the peak that a trainer logs with the plan.
func (t Setup) CheckLog(log *engine.Log) ([]plan.Checked, error) {
	n, ok := log.Largest(engine.Train)
	if !ok {
		return nil, fmt.Errorf("the log holds no figure that can be checked")
	}
	c := plan.Checked{Component: "peak", Planned: t.Step().Peak, Observed: n.Size, Line: n.Line, Rounding: n.Rounding}
	c.Compare()
	if c.Differs() {
		step := t.Step()
		c.Cause = "the largest part of the plan is " + heaviest(step.Moments[step.Largest].Parts) + ", at the moment " + step.Moments[step.Largest].Name
	}
	return []plan.Checked{c}, nil
}

// purposes are the parts of a moment by what a snapshot's memory is there for.
var purposes = map[string]string{
	"parameters": "parameters", "master weights": "parameters", "optimizer states": "optimizer", "gradients": "gradients",
	"lm_head's gradient": "gradients", "embedding's gradient": "gradients", "gradients, not reduced": "gradients",
	"cast weights": "activations", "gradient buckets": "communication", "activations": "activations", "logits and loss": "activations", "block at work": "activations", "optimizer temporaries": "activations",
	"gathered parameters": "communication", "reduce buckets": "communication",
}

func (t Setup) cause(c *plan.Checked) string {
	if !c.Differs() {
		return ""
	}
	more := c.Off > 0
	switch c.Component {
	case "parameters":
		if more {
			return "a wider type, a second copy (reference, EMA, master weights), or less sharding than planned"
		}
		return "a narrower type, or more sharding than planned"
	case "optimizer":
		if more {
			return "wider optimizer state than planned, or less sharding"
		}
		return "the optimizer's state is made at the first step, and the recording may begin before it; or it is narrower"
	case "gradients":
		if more {
			return "gradients of several steps, or wider ones than planned"
		}
		return "the peak is not where gradients are, or zero_grad freed them"
	case "activations":
		if more {
			return "more tokens than planned, less recomputation, or whole logits in fp32"
		}
		return "fewer tokens than planned, or more recomputation"
	}
	if more {
		return "more parameters are gathered at once than planned: a block that is not wrapped by itself"
	}
	return "fewer parameters are gathered at once than planned"
}
