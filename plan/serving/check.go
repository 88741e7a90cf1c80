package serving

import (
	"fmt"
	"strconv"
	"strings"

	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/units"
)

// From takes from a log what it states of the set-up, where the set-up given does not
// state it.
func (s Setup) From(log *engine.Log) Setup {
	if log.Engine != "" {
		if e, ok := engine.ParseRelease(log.Engine, log.Version); ok && (s.Engine.Name == "" || !s.Engine.Known()) {
			s.Engine = e
		}
	}
	whole := func(name string, to *int64) {
		if n, err := strconv.ParseInt(log.Setup[name], 10, 64); err == nil && n > 0 && *to == 0 {
			*to = n
		}
	}
	if s.Engine.Local() {
		whole("slots", &s.Requests)
		whole("chunk", &s.Step)
		return s.fromLlama(log)
	}
	whole("tp", &s.Parallel.TP)
	whole("pp", &s.Parallel.PP)
	whole("max_len", &s.Length)
	whole("chunk", &s.Step)
	whole("seqs", &s.Requests)
	whole("graphs", &s.Graphs)
	whole("kv_bytes", &s.KVBytes)
	whole("blocks", &s.Blocks)
	if x, err := strconv.ParseFloat(log.Setup["fraction"], 64); err == nil && x > 0 && x <= 1 && s.Fraction == 0 {
		s.Fraction = x
	}
	s.Engine.V0 = s.Engine.V0 || s.Engine.Name == engine.VLLM && log.Setup["v0"] == "True"
	s.Eager = s.Eager || log.Setup["eager"] == "True"
	if d := log.Setup["draft"]; s.Engine.Name == engine.VLLM && strings.Contains(d, "mtp") { // its weights and its part of the pool are not logged apart
		s.Draft = s.Draft || len(s.Model.Predictors) > 0
	}
	for _, r := range log.Ranks {
		if r.Length != nil && s.Length == 0 {
			s.Length = *r.Length
		}
	}
	if total, ok := log.Smallest(engine.Total); ok && s.GPU == nil {
		s.GPU = &plan.GPU{Name: "GPU", Total: total.Size, Board: total.Size, Source: "total: the log"}
	}
	return s
}

// Spread divides the model among ranks of TP where neither the flags nor the log state them:
// among the GPUs that are given, or among as many as make the weights of the log. The note
// says what is assumed, "" if nothing is.
func (s Setup) Spread(log *engine.Log, gpus int64) (_ Setup, note string) {
	if s.Parallel.TP > 0 || s.Parallel.PP > 0 || s.Engine.Local() {
		return s, ""
	}
	why := "the GPUs that are given"
	if gpus <= 1 {
		if gpus = s.ranksOf(log); gpus == 0 {
			return s, ""
		}
		why = fmt.Sprintf("the weights on a GPU are about 1/%d of the model", gpus)
	}
	p, err := plan.Divide(s.Model, gpus, 0, 0, gpus)
	if err != nil {
		return s, ""
	}
	s.Parallel.TP, s.Parallel.PP = p.TP, p.PP
	return s, fmt.Sprintf("TP %d is assumed (%s): --tp and --pp give others", p.TP, why)
}

// ranksOf is among how many ranks a model is divided whose weights a log states, 0 if it need
// not be divided: no format makes a model more than four times smaller.
func (s Setup) ranksOf(log *engine.Log) int64 {
	const minRanks, maxRanks, near = 8, 64, 0.15
	stated, ok := log.Largest(engine.Weights)
	if !ok || stated.Size <= 0 {
		return 0
	}
	share := float64(s.Model.Bytes()) / float64(stated.Size)
	for n := int64(minRanks); n <= maxRanks; n *= 2 {
		if off := share/float64(n) - 1; -near < off && off < near {
			return n
		}
	}
	return 0
}

// Check compares what a log states with the plan of its set-up, the largest difference first.
func (s Setup) Check(log *engine.Log) ([]plan.Checked, error) {
	s = s.Normal()
	if err := s.possible(); err != nil {
		return nil, err
	}
	var out []plan.Checked
	largest := func(name, component string, planned plan.Range) {
		if n, ok := log.Largest(name); ok {
			out = append(out, stated(component, &planned, n))
		}
	}
	weights := s.Weights()
	// An engine's own rounding, and what its loader leaves behind, is a hundredth.
	around := plan.Range{Low: plan.Whole(0.99 * float64(weights)), High: plan.Whole(1.01 * float64(weights))}
	outside, _ := s.nonTorch()
	largest(engine.Weights, plan.Weights, around)
	largest(engine.Consumed, engine.Consumed, around.Plus(outside))
	largest(engine.Activation, plan.Activations, s.Activation())
	largest(engine.NonTorch, plan.NonTorch, outside)
	if n, ok := log.Largest(engine.GraphPool); ok {
		planned, _ := s.graphs()
		c := stated(plan.Graphs, &planned, n)
		c.Unplanned = n.Size < 0 // memory that others freed meanwhile
		c.Compare()
		out = append(out, c)
	}
	out = append(out, s.checkPool(log)...)
	out = append(out, s.checkDraft(log)...)
	return s.explained(out)
}

// checkDraft are the weights and the KV cache of a draft model that a log states apart. The
// model's own layers for multi-token prediction are planned: they may have the embedding and
// lm_head again, whole on every rank.
func (s Setup) checkDraft(log *engine.Log) (out []plan.Checked) {
	var weights, cache *plan.Range
	if m := s.Model; len(m.Predictors) > 0 {
		with := s
		with.Draft = true
		own, ends := with.Weights()-s.Weights(), 2*2*m.Vocab*m.Hidden
		weights = &plan.Range{Low: plan.Whole(0.9 * float64(own)), High: plan.Whole(1.1*float64(own)) + ends}
		if tokens, ok := log.Tokens(s.Block); ok {
			last := len(m.Layers) - 1
			k := cellOf(m.Layers[last:], s.KV, s.Engine, s.Parallel)
			n := float64(tokens*m.PredictorLayers) * (k.full + k.window)
			cache = &plan.Range{Low: plan.Whole(0.98 * n), High: plan.Whole(1.02*n) + plan.Whole(k.full)*s.Block}
		}
	}
	if n, ok := log.Largest(engine.DraftPart + engine.Weights); ok {
		out = append(out, stated(engine.DraftPart+engine.Weights, weights, n))
	}
	if n, ok := log.Smallest(engine.DraftPart + engine.KV); ok {
		out = append(out, stated(engine.DraftPart+engine.KV, cache, n))
	}
	return out
}

// Breakdown is what a log states, without a plan.
func Breakdown(log *engine.Log) (out []plan.Checked) {
	for _, name := range []string{engine.Weights, engine.Consumed, engine.DraftPart + engine.Weights, engine.KV, engine.DraftPart + engine.KV, engine.Pool, engine.Activation, engine.GraphPool, engine.NonTorch, engine.Train} {
		if n, ok := log.Largest(name); ok {
			out = append(out, stated(name, nil, n))
		}
	}
	if n, ok := log.Tokens(16); ok {
		out = append(out, plan.Checked{Component: poolTokens, Unplanned: true, Observed: n, Tokens: true})
	}
	return out
}

// CheckNotes is what to know of a log beside its figures.
func CheckNotes(log *engine.Log) (out []string) {
	if more := log.TwiceGraphs(); more > 0 {
		out = append(out, fmt.Sprintf("vLLM's own suggestion, --kv-cache-memory, takes CUDA graphs off twice: %s more is free", units.Bytes(more)))
	}
	switch d := log.Setup["draft"]; {
	case strings.HasPrefix(d, "ngram"), d == "suffix":
		out = append(out, "speculative decoding by "+d+" loads no draft model")
	case d != "" && !strings.Contains(d, "mtp") && !strings.Contains(d, "nextn"):
		out = append(out, "the log starts a draft model ("+d+"), whose weights and KV cache are no part of the plan")
	}
	return out
}

// CheckOther compares what the log of another engine states with what follows from the
// model alone: the weights, and what the KV cache has room for.
func (s Setup) CheckOther(log *engine.Log) ([]plan.Checked, error) {
	if s = s.From(log); s.Engine.Local() {
		return s.checkLlama(log)
	}
	s = s.Normal()
	if err := s.possible(); err != nil {
		return nil, err
	}
	weights := float64(s.Model.Bytes()) / float64(s.Parallel.TP*s.Parallel.PP)
	var out []plan.Checked
	if n, ok := log.Largest(engine.Weights); ok { // formats by tensor, and what a runtime repacks
		out = append(out, stated(plan.Weights, &plan.Range{Low: plan.Whole(0.95 * weights), High: plan.Whole(1.05 * weights)}, n))
	}
	if n, ok := log.Largest(engine.Activation); ok {
		out = append(out, stated(plan.Activations, nil, n))
	}
	pool, ok := log.Smallest(engine.KV)
	cell := s.widest().unwindowed().full
	tokens, counted := log.Tokens(s.Block)
	if ok {
		out = append(out, stated(plan.KVCache, nil, pool))
	}
	if counted {
		c := plan.Checked{Component: thatTokens, Observed: tokens, Tokens: true, PerToken: cell, Unplanned: !ok || cell == 0}
		if !c.Unplanned {
			n := plan.Whole(float64(pool.Size) / cell)
			slack := plan.Whole(float64(pool.Rounding)/cell) + 128 // a block
			c.Planned = plan.Range{Low: max(n-slack, 0), High: n + slack}
		}
		c.Compare()
		out = append(out, c)
	}
	return s.explained(out)
}

// explained adds the causes of what is off, and puts that first.
func (s Setup) explained(rows []plan.Checked) ([]plan.Checked, error) {
	if len(rows) == 0 {
		return nil, fmt.Errorf("the log holds no figure that can be checked")
	}
	device := int64(0)
	if s.GPU != nil {
		device = s.GPU.Total
	}
	plan.Of(rows, device)
	for i := range rows {
		rows[i].Cause = s.cause(&rows[i])
	}
	plan.Order(rows)
	return rows, nil
}

// stated is a figure of a log beside its plan, nil where there is none.
func stated(component string, planned *plan.Range, n engine.Stated) plan.Checked {
	c := plan.Checked{Component: component, Observed: n.Size, Line: n.Line, Rounding: n.Rounding, Unplanned: planned == nil}
	if planned != nil {
		c.Planned = *planned
	}
	c.Compare()
	return c
}

// The tokens that a log states, beside those of the planned pool and those that the
// pool in the log holds.
const (
	poolTokens = "tokens of the KV cache"
	thatTokens = "tokens of that KV cache"
)

// checkPool is the KV cache in bytes, and what it holds in tokens.
func (s Setup) checkPool(log *engine.Log) (out []plan.Checked) {
	pool, havePool := log.Smallest(engine.KV)
	havePool = havePool && s.blocks() == 0 // the size is stated before the blocks replace it
	var planned *plan.Range
	if s.GPU != nil {
		if f, err := s.Fit(); err == nil {
			planned = &f.KV
		}
	}
	if havePool {
		out = append(out, stated(plan.KVCache, planned, pool))
	} else if n, ok := log.Smallest(engine.Pool); ok && s.blocks() == 0 {
		c := stated(plan.KVCache, planned, n)
		c.Rounding += plan.GiB / 2 // tables of the requests are made with it
		c.Compare()
		out = append(out, c)
	}
	tokens, ok := log.Tokens(s.Block)
	if !ok {
		return out
	}
	c := plan.Checked{Component: poolTokens, Unplanned: planned == nil, Observed: tokens, Tokens: true, PerToken: s.printed().full}
	holds := func(pool int64) plan.Range { return plan.Exactly(s.TokensLogged(float64(pool) / plan.GiB)) }
	if s.widest().hybrid() && log.Capacity() {
		holds = s.wholeRequests
		c.PerToken = float64(s.sequence(s.step())) / float64(s.Length)
	}
	if planned != nil {
		c.Planned, c.Rounding = plan.Range{Low: holds(planned.Low).Low, High: holds(planned.High).High}, s.Block
	}
	c.Compare()
	if planned != nil || !havePool || pool.Size <= 0 {
		out = append(out, c)
	}
	if havePool && pool.Size > 0 {
		n := holds(pool.Size)
		slack := plan.Whole(float64(pool.Rounding)/max(c.PerToken, 1)) + s.Block
		c.Component, c.Unplanned, c.Rounding = thatTokens, false, 0
		c.Planned = plan.Range{Low: max(n.Low-slack, 0), High: n.High + slack}
		c.Compare()
		out = append(out, c)
	}
	return out
}

// sequence is what one request of the whole length takes, with so many tokens under way.
func (s Setup) sequence(step int64) int64 {
	return plan.Whole(s.widest().sequence(s.Length, step, s.Block))
}

// wholeRequests is how many tokens requests of the whole length have that a pool holds. vLLM
// counts up to two steps of tokens under way for each (asynchronous scheduling), and
// brings the pages of layers with a state to one size with those of others, which can take
// a tenth.
func (s Setup) wholeRequests(pool int64) plan.Range {
	padded := 1.0
	if s.hasKind(model.State) || s.hasKind(model.Sparse) {
		padded = 0.9
	}
	n := func(step int64) float64 { return float64(pool) / float64(max(s.sequence(step), 1)) * float64(s.Length) }
	return plan.Range{Low: plan.Whole(padded * n(2*s.step())), High: plan.Whole(n(s.step()))}
}

// cause returns what usually makes a component differ that way.
func (s Setup) cause(c *plan.Checked) string {
	more := c.Off > 0
	if !c.Differs() {
		return ""
	}
	m := s.Model
	if s.Engine.Local() {
		return s.causeLlama(c)
	}
	switch c.Component {
	case plan.Weights, engine.Consumed:
		switch {
		case c.Observed < 0:
			return "another process freed memory while the engine measured"
		case more && len(m.Predictors) > 0 && plan.RoughlyEqual(c.Off, predictors(m)/max(s.Parallel.TP*s.Parallel.PP, 1)):
			return "the layers of multi-token prediction are also loaded"
		case more && m.Quant != "":
			return "the files are less quantized than planned, or the kernel pads or repacks them"
		case more:
			return "a draft model, LoRA slots or a tower is loaded beside it, or the files are wider than planned"
		case m.Quant == "":
			return "the files are quantized: give --quant, or the folder itself"
		}
		return "the files are quantized further than planned, or another share of the model is on the rank"
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
	case poolTokens:
		return "the KV cache has another size than planned"
	}
	if s.widest().hybrid() {
		return "layers keep different amounts: the blocks that engines print there are no capacity"
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
