package serving

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"strandline/logs"
	"strandline/plan"
	"strandline/plan/model"
)

// From takes from a log what it says of the set-up, where the set-up given does not
// say it.
func (s Setup) From(log *logs.EngineLog) Setup {
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
		s.GPU = &plan.GPU{Name: "GPU", Total: total, Board: total, Source: "total: the log"}
	}
	return s
}

// Check lays what a log says beside the plan of its set-up, what is off most first.
func (s Setup) Check(log *logs.EngineLog) ([]plan.Checked, error) {
	s = s.Normal()
	if err := s.possible(); err != nil {
		return nil, err
	}
	var out []plan.Checked
	add := func(component string, planned plan.Range, observed, line int64) {
		c := plan.Checked{Component: component, Planned: planned, Observed: observed, Line: line}
		c.Off = plan.Beyond(planned, observed)
		out = append(out, c)
	}
	weights := s.Weights()
	// An engine's own rounding, and what its loader leaves behind, is a hundredth.
	around := plan.Range{Low: plan.Whole(0.99 * float64(weights)), High: plan.Whole(1.01 * float64(weights))}
	if n, line, ok := log.Largest(logs.LogWeights); ok {
		add(plan.Weights, around, n, line)
	}
	outside, _ := s.nonTorch()
	if n, line, ok := log.Largest(logs.LogConsumed); ok {
		add(logs.LogConsumed, around.Plus(outside), n, line)
	}
	if n, line, ok := log.Largest(logs.LogActivation); ok {
		add(plan.Activations, s.Activation(), n, line)
	}
	if n, line, ok := log.Largest(logs.LogNonTorch); ok {
		add(plan.NonTorch, outside, n, line)
	}
	if n, line, ok := log.Largest(logs.LogGraphs); ok {
		add(plan.Graphs, s.graphs(), n, line)
	}
	pool, line, havePool := log.Smallest(logs.LogKV)
	if havePool {
		planned := false
		if s.GPU != nil {
			if f, err := s.Fit(); err == nil {
				add(plan.KVCache, f.KV, pool, line)
				planned = true
			}
		}
		if !planned {
			out = append(out, plan.Checked{Component: plan.KVCache, Unplanned: true, Observed: pool, Line: line})
		}
	}
	switch tokens, ok := log.Tokens(s.Block); {
	case ok && (!havePool || pool <= 0):
		out = append(out, plan.Checked{Component: "tokens of the KV cache", Unplanned: true, Observed: tokens, Tokens: true})
	case ok:
		n := s.TokensLogged(float64(pool) / plan.GiB)
		// The pool is logged with two decimals.
		slack := plan.Whole(0.006*plan.GiB/max(s.printed().Full, 1)) + s.Block
		c := plan.Checked{Component: "tokens of that KV cache", Planned: plan.Range{Low: max(n-slack, 0), High: n + slack}, Observed: tokens, Tokens: true}
		c.Off = plan.Beyond(c.Planned, tokens)
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("the log holds no figure that can be checked")
	}
	for i := range out {
		out[i].Cause = s.cause(&out[i])
	}
	slices.SortStableFunc(out, func(a, b plan.Checked) int { return cmp.Compare(b.Share(), a.Share()) })
	return out, nil
}

// cause is what usually makes a component differ that way.
func (s Setup) cause(c *plan.Checked) string {
	more := c.Off > 0
	if c.Off == 0 {
		return ""
	}
	m := s.Model
	switch c.Component {
	case plan.Weights, logs.LogConsumed:
		switch {
		case c.Observed < 0:
			return "another process freed memory while the engine measured"
		case more && len(m.Predictors) > 0 && plan.Near(c.Off, predictors(m)/max(s.Parallel.TP*s.Parallel.PP, 1)):
			return "the layers of multi-token prediction are loaded, too"
		case more && m.Quant != "":
			return "the files are less quantised than planned, or the kernel pads or repacks them"
		case more:
			return "a draft model, LoRA slots or a tower is loaded beside it, or the files are wider than planned"
		case m.Quant == "":
			return "the files are quantised: give --quant, or the folder itself"
		}
		return "the files are quantised further than planned, or another share of the model is on the rank"
	case plan.Activations:
		if more && len(m.Towers) > 0 {
			return "the profile of the image encoder; --limit-mm-per-prompt lowers it"
		}
		if more {
			return "more tokens in a step or more requests at once than planned, or a sampler that copies the logits"
		}
		return "fewer tokens in a step or fewer requests at once than planned"
	case plan.NonTorch:
		if more {
			return "another process took memory while the engine measured, or NCCL has more buffers than usual"
		}
		return "another process freed memory while the engine measured"
	case plan.Graphs:
		if more {
			return "more sizes are captured than by default, or encoder graphs"
		}
		return "fewer sizes are captured than by default"
	case plan.KVCache:
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
