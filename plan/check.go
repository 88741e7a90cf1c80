package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"strandline/logs"
	"strandline/plan/model"
)

// Checked is a component of a plan beside what was observed.
type Checked struct {
	Component string
	Planned   Range
	Unplanned bool // the set-up does not say what to plan; Planned is 0
	Observed  int64
	Tokens    bool  // it is a number of tokens, not of bytes
	Off       int64 // beyond the nearer end of the plan; 0 is within it
	Line      int64 // of the log; 0 is none
	Cause     string
}

// From takes from a log what it says of the set-up, where the set-up given does not
// say it.
func (s Serving) From(log *logs.EngineLog) Serving {
	if log.Engine != "" {
		if e, ok := ParseEngine(log.Engine, log.Version); ok && (s.Engine.Name == "" || s.Engine.Major == 0 && s.Engine.Minor == 0) {
			s.Engine = e
		}
	}
	whole := func(name string, to *int64) {
		if n, err := strconv.ParseInt(log.Setup[name], 10, 64); err == nil && n > 0 && *to == 0 {
			*to = n
		}
	}
	whole("tp", &s.Parallel.TP)
	whole("pp", &s.Parallel.PP)
	whole("max_len", &s.Length)
	whole("chunk", &s.Step)
	whole("graphs", &s.Graphs)
	if x, err := strconv.ParseFloat(log.Setup["fraction"], 64); err == nil && x > 0 && x <= 1 && s.Fraction == 0 {
		s.Fraction = x
	}
	s.Engine.V0 = s.Engine.V0 || s.Engine.Name == VLLM && log.Setup["v0"] == "True"
	s.Eager = s.Eager || log.Setup["eager"] == "True"
	for _, r := range log.Ranks {
		if r.Length != nil && s.Length == 0 {
			s.Length = *r.Length
		}
	}
	if total, _, ok := log.Smallest(logs.LogTotal); ok && s.GPU == nil {
		s.GPU = &GPU{Name: "GPU", Total: total, Board: total, Source: "total: the log"}
	}
	return s
}

// Check lays what a log says beside the plan of its set-up, what is off most first.
func (s Serving) Check(log *logs.EngineLog) ([]Checked, error) {
	s = s.normal()
	if err := s.possible(); err != nil {
		return nil, err
	}
	var out []Checked
	add := func(component string, planned Range, observed, line int64) {
		c := Checked{Component: component, Planned: planned, Observed: observed, Line: line}
		c.Off = beyond(planned, observed)
		out = append(out, c)
	}
	weights := s.Weights()
	// An engine's own rounding, and what its loader leaves behind, is a hundredth.
	around := Range{whole(0.99 * float64(weights)), whole(1.01 * float64(weights))}
	if n, line, ok := log.Largest(logs.LogWeights); ok {
		add(Weights, around, n, line)
	}
	outside, _ := s.nonTorch()
	if n, line, ok := log.Largest(logs.LogConsumed); ok {
		add(logs.LogConsumed, around.plus(outside), n, line)
	}
	if n, line, ok := log.Largest(logs.LogActivation); ok {
		add(Activations, s.Activation(), n, line)
	}
	if n, line, ok := log.Largest(logs.LogNonTorch); ok {
		add(NonTorch, outside, n, line)
	}
	if n, line, ok := log.Largest(logs.LogGraphs); ok {
		add(Graphs, s.graphs(), n, line)
	}
	pool, line, havePool := log.Smallest(logs.LogKV)
	if havePool {
		planned := false
		if s.GPU != nil {
			if f, err := s.Fit(); err == nil {
				add(KVCache, f.KV, pool, line)
				planned = true
			}
		}
		if !planned {
			out = append(out, Checked{Component: KVCache, Unplanned: true, Observed: pool, Line: line})
		}
	}
	switch tokens, ok := log.Tokens(s.Block); {
	case ok && (!havePool || pool <= 0):
		out = append(out, Checked{Component: "tokens of the KV cache", Unplanned: true, Observed: tokens, Tokens: true})
	case ok:
		n := s.tokensLogged(float64(pool) / gib)
		// The pool is logged with two decimals.
		slack := whole(0.006*gib/max(s.printed().Full, 1)) + s.Block
		c := Checked{Component: "tokens of that KV cache", Planned: Range{max(n-slack, 0), n + slack}, Observed: tokens, Tokens: true}
		c.Off = beyond(c.Planned, tokens)
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the log holds no figure that can be checked")
	}
	for i := range out {
		out[i].Cause = s.cause(&out[i])
	}
	slices.SortStableFunc(out, func(a, b Checked) int { return cmp.Compare(b.share(), a.share()) })
	return out, nil
}

// beyond is how far a figure lies outside a range: below 0 below it.
func beyond(planned Range, observed int64) int64 {
	switch {
	case observed > planned.High:
		return observed - planned.High
	case observed < planned.Low:
		return observed - planned.Low
	}
	return 0
}

// share is how far off a component is, for the order: bytes, and of tokens the
// share of what was planned. The KV cache is what the others leave: it comes after
// those that are off.
func (c *Checked) share() float64 {
	off := math.Abs(float64(c.Off))
	switch {
	case c.Tokens:
		return off / float64(max(c.Planned.High, 1)) * gib
	case c.Component == KVCache:
		return off / gib
	}
	return off
}

// cause is what usually makes a component differ that way.
func (s Serving) cause(c *Checked) string {
	more := c.Off > 0
	if c.Off == 0 {
		return ""
	}
	m := s.Model
	switch c.Component {
	case Weights, logs.LogConsumed:
		switch {
		case c.Observed < 0:
			return "another process freed memory while the engine measured"
		case more && len(m.Predictors) > 0 && within(c.Off, predictors(m)/max(s.Parallel.TP*s.Parallel.PP, 1)):
			return "the layers of multi-token prediction are loaded, too"
		case more && m.Quant != "":
			return "the files are less quantised than planned, or the kernel pads or repacks them"
		case more:
			return "a draft model, LoRA slots or a tower is loaded beside it, or the files are wider than planned"
		case m.Quant == "":
			return "the files are quantised: give --quant, or the folder itself"
		}
		return "the files are quantised further than planned, or another share of the model is on the rank"
	case Activations:
		if more && len(m.Towers) > 0 {
			return "the profile of the image encoder; --limit-mm-per-prompt lowers it"
		}
		if more {
			return "more tokens in a step or more requests at once than planned, or a sampler that copies the logits"
		}
		return "fewer tokens in a step or fewer requests at once than planned"
	case NonTorch:
		if more {
			return "another process took memory while the engine measured, or NCCL has more buffers than usual"
		}
		return "another process freed memory while the engine measured"
	case Graphs:
		if more {
			return "more sizes are captured than by default, or encoder graphs"
		}
		return "fewer sizes are captured than by default"
	case KVCache:
		if more {
			return "the other components are smaller than planned, or the memory fraction is another"
		}
		return "the other components are larger than planned, or the memory fraction is another"
	}
	if s.widest().hybrid() {
		return "layers differ in what they keep: engines print a number of blocks there, which is no capacity"
	}
	if s.Engine.V0 && s.Parallel.TP*s.Parallel.PP > 1 {
		return "the KV size and the tokens may be of different workers; the smallest one counts"
	}
	return "another type of keys and values, or more ranks than planned: give --kv-dtype and --tp"
}

func predictors(m *model.Model) (n int64) {
	for i := range m.Predictors {
		n += m.Predictors[i].Bytes()
	}
	return n
}

// within tells sizes that are a tenth apart at most.
func within(a, b int64) bool { return math.Abs(float64(a-b)) <= 0.1*float64(b) }

// CheckStep lays the memory of a training step, as a snapshot has it by purpose at
// its peak, beside the plan.
func (t Training) CheckStep(byPurpose map[string]int64) ([]Checked, error) {
	t = t.normal()
	step := t.Step()
	m := &step.Moments[step.Largest]
	planned := map[string]Range{}
	for _, p := range m.Parts {
		name := purposes[p.Name]
		planned[name] = planned[name].plus(p.Size)
	}
	var out []Checked
	for _, name := range []string{"parameters", "optimizer", "gradients", "activations", "communication"} {
		observed, there := byPurpose[name]
		plan, has := planned[name]
		if name == "activations" {
			observed += byPurpose["temporaries"]
		}
		if !there && !has {
			continue
		}
		c := Checked{Component: name, Planned: Range{whole(0.97 * float64(plan.Low)), whole(1.03 * float64(plan.High))}, Observed: observed}
		c.Off = beyond(c.Planned, observed)
		c.Cause = t.cause(&c)
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the snapshot tells the purpose of nothing")
	}
	slices.SortStableFunc(out, func(a, b Checked) int { return cmp.Compare(b.share(), a.share()) })
	return out, nil
}

// CheckLog lays the peak that a trainer logs beside the plan.
func (t Training) CheckLog(log *logs.EngineLog) ([]Checked, error) {
	n, line, ok := log.Largest(logs.LogTrain)
	if !ok {
		return nil, fmt.Errorf("the log holds no figure that can be checked")
	}
	c := Checked{Component: "peak", Planned: t.Step().Peak, Observed: n, Line: line}
	c.Off = beyond(c.Planned, n)
	if c.Off != 0 {
		step := t.Step()
		c.Cause = "the largest part of the plan is " + heaviest(step.Moments[step.Largest].Parts) + ", at the moment " + step.Moments[step.Largest].Name
	}
	return []Checked{c}, nil
}

// purposes are the parts of a moment by what a snapshot's memory is there for.
var purposes = map[string]string{
	"parameters": "parameters", "master weights": "parameters", "optimizer states": "optimizer", "gradients": "gradients",
	"lm_head's gradient": "gradients", "embedding's gradient": "gradients", "gradients, not reduced": "gradients",
	"activations": "activations", "logits and loss": "activations", "block at work": "activations", "optimizer temporaries": "activations",
	"gathered parameters": "communication", "reduce buckets": "communication",
}

func (t Training) cause(c *Checked) string {
	if c.Off == 0 {
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
			return "wider states than planned, or less sharding"
		}
		return "the states are made at the first step, and the recording may begin before it; or they are narrower"
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
