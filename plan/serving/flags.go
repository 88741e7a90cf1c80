package serving

import (
	"fmt"
	"slices"

	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/units"
)

// notes returns what to know of the set-up beside its figures.
func (s Setup) notes() (out []string) {
	if s.Model.Unsure != "" {
		out = append(out, s.Model.Unsure)
	}
	if text := s.widened(); text != "" {
		out = append(out, text)
	}
	if stated := s.Model.KVFormat; stated != "" && s.KV.name == "auto" {
		out = append(out, fmt.Sprintf("the checkpoint sets %s for keys and values, which engines use by themselves since the end of 2025. They are planned in 16 bits here: give --kv-dtype %s to plan with it", stated, stated))
	}
	if s.Blocks != s.blocks() {
		out = append(out, "the number of blocks is not planned: layers of several kinds share them in this model")
	}
	if n := s.Model.Host; n > 0 {
		out = append(out, fmt.Sprintf("the experts that are left out here take %s of the host's memory. Every token waits for those it goes through", units.Bytes(n)))
	}
	if windows := s.windows(); windows && !s.keepsWindows() {
		out = append(out, "this engine also keeps every token in layers with a window")
	} else if windows && s.Engine.Name == engine.VLLM {
		out = append(out, "layers with a window keep only the window while the hybrid KV cache manager is on. KV connectors turn it off: every token then counts in every layer")
	}
	if k := s.widest(); k.state > 0 {
		out = append(out, "layers with a state keep the same for a sequence of any length; engines round their blocks up to it")
	}
	kv := int64(0)
	for i := range s.Model.Layers {
		if c := s.Model.Layers[i].Cache; c.Kind == model.Full && c.Heads > 0 {
			kv = c.Heads
		}
	}
	if tp := s.Parallel.TP / s.Parallel.DP; kv > 0 && kv < tp {
		out = append(out, fmt.Sprintf("the model has %d key-value heads: beyond TP %d every rank keeps a copy", kv, kv))
	}
	out = append(out, s.nodeNotes()...)
	if s.Parallel.DP > 1 {
		out = append(out, fmt.Sprintf("tokens and requests are of one replica of the attention, of %d", s.Parallel.DP))
	}
	switch {
	case !s.hasKind(model.Sparse):
	case s.Engine.Name == engine.SGLang:
		out = append(out, "a token also takes its share of the pools for the window and the compressors, each a tenth of the tokens (swa_full_tokens_ratio 0.1)")
	default:
		out = append(out, "this engine brings the pages of different layers to one size; the padding is not counted")
	}
	if s.GPU != nil && s.GPU.Name == "GB10" {
		out = append(out, "this GPU shares its memory with the host: other programs' use is missing here")
	}
	if len(s.Model.Predictors) > 0 && !s.Draft {
		out = append(out, "the layers for multi-token prediction are not loaded; --mtp plans them")
	}
	if s.Model.Quant == "" && s.Model.Width == 4 {
		out = append(out, "engines load fp32 weights as 16 bits by default; this plan keeps them")
	}
	return out
}

// windows reports whether the model has layers with a window.
func (s Setup) windows() bool { return s.hasKind(model.Window) }

// hasKind reports whether a layer of the model keeps that kind of thing.
func (s Setup) hasKind(kind model.Kind) bool {
	return slices.ContainsFunc(s.Model.Layers, func(l model.Layer) bool { return l.Cache.Kind == kind })
}

// flags returns what to paste after the engine's command.
func (s Setup) flags(fraction float64) []string {
	p, values := s.Parallel, map[engine.Setting]string{}
	add := func(when bool, setting engine.Setting, value any) {
		if when {
			values[setting] = fmt.Sprint(value)
		}
	}
	tp, kv := p.TP, s.KV.name
	switch {
	case s.Engine.Name == engine.VLLM: // counts TP inside a replica
		tp /= p.DP
	case kv == "fp8":
		kv = "fp8_e4m3"
	}
	add(true, engine.TP, tp)
	add(p.PP > 1, engine.PP, p.PP)
	add(p.EP > 1, engine.EP, p.EP)
	add(p.DP > 1, engine.DP, p.DP)
	add(p.Nodes() > 1 && s.Engine.Name == engine.SGLang, engine.Nodes, p.Nodes())
	add(true, engine.Length, s.Length)
	add(!s.setPool(), engine.Fraction, fmt.Sprintf("%.4g", fraction))
	add(s.KVBytes > 0, engine.KVBytes, s.KVBytes)
	add(s.Blocks > 0, engine.Blocks, s.Blocks)
	add(true, engine.Step, s.step())
	if i := s.Images.normal(); s.profilesLargest() {
		add(s.Images.Count > 0, engine.Images, fmt.Sprintf("image=%d", i.Count))
	} else {
		add(s.Images.Count > 0, engine.Images, fmt.Sprintf(`'{"image": {"count": %d, "width": %d, "height": %d}}'`, i.Count, i.Width, i.Height))
	}
	add(s.Requests > 0, engine.Requests, s.Requests)
	add(s.MaxKV > 0, engine.MaxKV, s.MaxKV)
	add(s.Graphs > 0, engine.Graphs, s.Graphs)
	add(s.Block != s.ownBlock(), engine.Block, s.Block)
	add(s.Offload > 0, engine.Offload, fmt.Sprintf("%.4g", float64(s.Offload)/plan.GiB))
	add(kv != "auto", engine.KVType, kv)
	add(s.Eager, engine.Eager, "")
	return s.Engine.Engine().Command(values)
}
