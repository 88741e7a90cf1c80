package serving

import (
	"strandline/plan"
	"strandline/plan/engine"
)

// graphs are the memory of captured CUDA graphs by the number of sizes that are
// captured: 2 to 32 MiB for each, as logs of models from 0.5B to 671B show. Their
// pool is shared, so that the cost is not linear. SGLang's pool also holds a forward pass
// of the largest batch, of all replicas of the attention, and what its kernels for experts
// keep for themselves.
func (s Setup) graphs() (plan.Range, string) {
	if s.Eager {
		return plan.Range{}, "none: eager mode"
	}
	n := s.Captures()
	const mib = 1 << 20
	low, high := 2.0*mib, 32.0*mib // of a size
	if s.Engine.Name != engine.SGLang {
		return plan.Between(float64(n)*low, float64(n)*high).Bytes(), "2 to 32 MiB for each size that is captured, as logs show"
	}
	source := "2 to 32 MiB for each size that is captured, as logs show, and a forward pass of the largest"
	if mixed, latent := s.mixtures(); mixed > 0 {
		each, text := logged, "0.25 to 3 MiB"
		if latent {
			each, text = loggedLatent, "1.5 to 4 MiB"
		}
		low, high = max(low, each.Low*mib*float64(mixed)), max(high, each.High*mib*float64(mixed))
		source = text + " for each size that is captured and layer with experts, as logs show, and a forward pass of the largest"
	}
	work := s
	work.Step = s.sglang().graphs * s.Parallel.DP
	r := plan.Between(float64(n)*low, float64(n)*high+work.forward().High).Bytes()
	if s.Parallel.DP > 1 && s.Parallel.EP > node && r.High < exchanged {
		r.High, source = exchanged, source+"; up to 20 GB where experts of several nodes exchange tokens, as a log of 32 ranks shows"
	}
	return r, source
}

// What a size takes of each layer with experts in SGLang, in MiB. Logs of models whose
// attention keeps latents: DeepSeek-V3 on 8 H200, 6.2 GB for 35 sizes (3 MiB); DeepSeek-R1 on
// 8 MI300X, 6.4 GB; most of it is taken with the first size, the largest. Of others:
// MiniMax-M2, 36 sizes, of which all but the first take 0.3 MiB.
var logged, loggedLatent = plan.Between(0.25, 3), plan.Between(1.5, 4)

// exchanged is what capturing took on each of 32 ranks with experts and attention of their
// own (DeepEP, 20 sizes up to 128, Kimi-K2), buffers of the exchange included, as a
// report to SGLang's developers of May 2026 states. Node is how many ranks exchange over fast links.
const exchanged, node = 20_500_000_000, 8

// Captures returns how many sizes of CUDA graphs the engine captures.
func (s Setup) Captures() int64 {
	switch {
	case s.Eager, s.Engine.Local():
		return 0
	case s.Engine.Name == engine.SGLang:
		return sglangSizes(s.sglang().graphs)
	case s.Graphs > 0:
		return vllmSizes(s.Graphs)
	case s.Engine.Has(engine.TwoGraphs) && !s.Engine.V0: // piecewise to 512, and full to 256
		return vllmSizes(512) + vllmSizes(256)
	case !s.Engine.V0:
		return 67
	}
	return vllmSizes(256)
}

// vllmSizes returns how many batch sizes vLLM captures up to a largest: 1, 2, 4, from 8 on
// every eighth, from 256 on every sixteenth. Source: vLLM, config/vllm.py,
// _set_cudagraph_sizes.
func vllmSizes(maxBatch int64) int64 {
	return sizes(maxBatch, []int64{1, 2, 4}, []step{{8, 8}, {256, 16}})
}

// sglangSizes returns how many batch sizes SGLang captures up to a largest: 1, 2, 4, 8, 12,
// from 16 on every eighth, from 256 on every sixteenth, from 512 on every 32nd. Source:
// SGLang, srt/server_args.py, _generate_cuda_graph_batch_sizes; its logs count 8 up to 32, 36
// up to 256, 52 up to 512.
func sglangSizes(maxBatch int64) int64 {
	return sizes(maxBatch, []int64{1, 2, 4, 8, 12}, []step{{16, 8}, {256, 16}, {512, 32}})
}

// step is a distance between sizes, and the size it begins with.
type step struct{ from, by int64 }

// sizes counts sizes up to a largest, which is one of them.
func sizes(maxBatch int64, first []int64, steps []step) (n int64) {
	last := int64(0)
	for _, size := range first {
		if size <= maxBatch {
			n, last = n+1, size
		}
	}
	for i, st := range steps {
		end := maxBatch
		if i+1 < len(steps) {
			end = min(end, steps[i+1].from-1)
		}
		if end >= st.from {
			more := (end-st.from)/st.by + 1
			n, last = n+more, st.from+(more-1)*st.by
		}
	}
	if last < maxBatch {
		n++
	}
	return n
}

// mixtures returns how many layers of a rank have experts, and whether attention keeps
// latents in them.
func (s Setup) mixtures() (n int64, latent bool) {
	for i := range s.Model.Layers {
		if l := &s.Model.Layers[i]; l.Experts > 0 {
			n++
			latent = latent || l.Cache.Latent > 0
		}
	}
	return n / s.Parallel.PP, latent
}

// nonTorch returns what is outside PyTorch: the CUDA context, libraries and the
// buffers of collectives.
func (s Setup) nonTorch() (plan.Range, string) {
	const mib = 1 << 20
	old := s.Engine.Name == engine.VLLM && !s.Engine.Has(engine.SmallOutside)
	switch ranks := s.Parallel.TP * s.Parallel.PP; {
	case old && ranks == 1:
		return plan.Range{Low: 350 * mib, High: 1830 * mib}, "logs of vLLM before 0.7 on one GPU"
	case old:
		return plan.Range{Low: 350 * mib, High: 3660 * mib}, "logs of vLLM before 0.7 on several GPUs"
	case s.Engine.Name == engine.SGLang && ranks == 1:
		return plan.Range{Low: 400 * mib, High: 1100 * mib}, "free memory before the weights, in logs of SGLang on one GPU"
	case s.Engine.Name == engine.SGLang:
		return plan.Range{Low: 1000 * mib, High: 2600 * mib}, "free memory before the weights, in logs of SGLang on 2 to 8 GPUs"
	case ranks == 1:
		return plan.Range{Low: 50 * mib, High: 700 * mib}, "logs of vLLM from 0.7 on one GPU"
	}
	return plan.Range{Low: 200 * mib, High: 2400 * mib}, "logs of vLLM from 0.7 on 2 to 16 GPUs"
}
