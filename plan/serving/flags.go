package serving

import (
	"fmt"
	"slices"

	"strandline/plan"
	"strandline/plan/model"
	"strandline/units"
)

// notes returns what to know of the set-up beside its figures.
func (s Setup) notes() (out []string) {
	if s.Model.Unsure != "" {
		out = append(out, s.Model.Unsure)
	}
	if stated := s.Model.KVFormat; stated != "" && s.KV.name == "auto" {
		out = append(out, fmt.Sprintf("the checkpoint states %s for keys and values, which releases of engines since the end of 2025 use without being told; they are planned in 16 bits here: give --kv-dtype %s to plan with it", stated, stated))
	}
	if n := s.Model.Host; n > 0 {
		out = append(out, fmt.Sprintf("the experts that are left out here take %s of the host's memory; every token waits for those it goes through", units.Bytes(n)))
	}
	if windows := s.windows(); windows && !s.keepsWindows() {
		out = append(out, "this engine keeps every token in layers with a window, too")
	} else if windows && s.Engine.Name == VLLM {
		out = append(out, "layers with a window keep the window only while the hybrid KV cache manager is on; KV connectors turn it off, and every token counts in every layer then")
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
		out = append(out, fmt.Sprintf("tokens and requests are those of one of %d replicas of the attention", s.Parallel.DP))
	}
	switch {
	case !s.keeps(model.Sparse):
	case s.Engine.Name == SGLang:
		out = append(out, "a token takes its share of the pools for the window and for the compressors' states, each a tenth of the tokens (swa_full_tokens_ratio 0.1)")
	default:
		out = append(out, "this engine brings the pages of layers that keep different things to one size; what it pads is not counted")
	}
	if s.GPU != nil && s.GPU.Name == "GB10" {
		out = append(out, "this GPU shares its memory with the host: what other programs use is missing here")
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
func (s Setup) windows() bool { return s.keeps(model.Window) }

// keeps reports whether a layer of the model keeps that kind of thing.
func (s Setup) keeps(kind model.Kind) bool {
	return slices.ContainsFunc(s.Model.Layers, func(l model.Layer) bool { return l.Cache.Kind == kind })
}

// flags returns what to paste after the engine's command.
//
// It is long because it has one case for each flag of the engines.
func (s Setup) flags(fraction float64) []string {
	p := s.Parallel
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s.Engine.Name == SGLang {
		add("--tp-size %d", p.TP)
		if p.PP > 1 {
			add("--pp-size %d", p.PP)
		}
		if p.EP > 1 {
			add("--ep-size %d", p.EP)
		}
		if p.DP > 1 {
			add("--dp-size %d --enable-dp-attention", p.DP)
		}
		if n := p.Nodes(); n > 1 {
			add("--nnodes %d --node-rank 0 --dist-init-addr HOST:PORT", n)
		}
		add("--context-length %d", s.Length)
		add("--mem-fraction-static %.4g", fraction)
		add("--chunked-prefill-size %d", s.step())
		if s.Requests > 0 {
			add("--max-running-requests %d", s.Requests)
		}
		if s.MaxKV > 0 {
			add("--max-total-tokens %d", s.MaxKV)
		}
		if s.Graphs > 0 {
			add("--cuda-graph-max-bs %d", s.Graphs)
		}
		if s.Block != s.ownBlock() {
			add("--page-size %d", s.Block)
		}
		switch s.KV.name {
		case "auto":
		case "fp8":
			add("--kv-cache-dtype fp8_e4m3")
		default:
			add("--kv-cache-dtype %s", s.KV.name)
		}
		if s.Eager {
			add("--disable-cuda-graph")
		}
		return out
	}
	add("--tensor-parallel-size %d", p.TP/p.DP)
	if p.PP > 1 {
		add("--pipeline-parallel-size %d", p.PP)
	}
	if p.DP > 1 {
		add("--data-parallel-size %d", p.DP)
	}
	if p.EP > 1 {
		add("--enable-expert-parallel")
	}
	add("--max-model-len %d", s.Length)
	add("--gpu-memory-utilization %.4g", fraction)
	add("--max-num-batched-tokens %d", s.step())
	if i := s.Images.normal(); s.Images.Count > 0 && s.profilesLargest() {
		add("--limit-mm-per-prompt image=%d", i.Count)
	} else if s.Images.Count > 0 {
		add(`--limit-mm-per-prompt '{"image": {"count": %d, "width": %d, "height": %d}}'`, i.Count, i.Width, i.Height)
	}
	if s.Requests > 0 {
		add("--max-num-seqs %d", s.Requests)
	}
	if s.Graphs > 0 {
		add("--max-cudagraph-capture-size %d", s.Graphs)
	}
	if s.Block != s.ownBlock() {
		add("--block-size %d", s.Block)
	}
	if s.Offload > 0 {
		add("--cpu-offload-gb %.4g", float64(s.Offload)/plan.GiB)
	}
	if s.KV.name != "auto" {
		add("--kv-cache-dtype %s", s.KV.name)
	}
	if s.Eager {
		add("--enforce-eager")
	}
	return out
}
