package serving

import (
	"strandline/plan"
)

// graphs are the memory of captured CUDA graphs by the number of sizes that are
// captured: 2 to 32 MiB for each, as logs of models from 0.5B to 671B show. Their
// pool is shared, so that the cost is not linear. SGLang's take up to 3 MiB for each
// size and layer with experts (6.2 GB for 35 sizes of DeepSeek-V3 on 8 ranks), and
// its pool holds a forward pass of the largest batch, of all replicas of the attention.
func (s Setup) graphs() (plan.Range, string) {
	if s.Eager {
		return plan.Range{}, "none: eager mode"
	}
	n := s.Captures()
	const mib = 1 << 20
	low, high := int64(2*mib), int64(32*mib)
	if s.Engine.Name != SGLang {
		return plan.Range{Low: n * low, High: n * high}, "2 to 32 MiB for each size that is captured, as logs show"
	}
	source := "2 to 32 MiB for each size that is captured, as logs show, and a forward pass of the largest"
	if mixed := s.mixtures(); 3*mib*mixed > high {
		high = 3 * mib * mixed
		source = "2 MiB for each size that is captured to 3 MiB for each of its layers with experts, as logs show, and a forward pass of the largest"
	}
	work := s
	work.Step = s.sglang().graphs * s.Parallel.DP
	r := plan.Range{Low: n * low, High: n*high + plan.Whole(work.forward().High)}
	if s.Parallel.DP > 1 && s.Parallel.EP > node && r.High < exchanged {
		r.High, source = exchanged, source+"; up to 20 GB where experts of several nodes exchange tokens, as a log of 32 ranks shows"
	}
	return r, source
}

// exchanged is what capturing took on each of 32 ranks with experts and attention of their
// own (DeepEP, 20 sizes up to 128, Kimi-K2), buffers of the exchange included, as a
// report to SGLang's developers of May 2026 states. Node is how many ranks exchange over fast links.
const exchanged, node = 20_500_000_000, 8

// Captures returns how many sizes of CUDA graphs the engine captures.
func (s Setup) Captures() int64 {
	switch {
	case s.Eager, s.Engine.Local():
		return 0
	case s.Engine.Name == SGLang:
		return captures(s.sglang().graphs)
	case s.Graphs > 0:
		return captures(s.Graphs)
	case !s.Engine.v0 && !s.Engine.before(0, 11): // piecewise to 512, and full to 256
		return 51 + 35
	case !s.Engine.v0:
		return 67
	}
	return 35
}

// mixtures returns how many layers of a rank have experts.
func (s Setup) mixtures() (n int64) {
	for i := range s.Model.Layers {
		if s.Model.Layers[i].Experts > 0 {
			n++
		}
	}
	return n / s.Parallel.PP
}

// captures returns how many batch sizes are captured up to a largest.
func captures(most int64) int64 {
	n := min(most, 4)
	if most > 4 {
		n += most / 8
	}
	return n
}

// nonTorch returns what is outside PyTorch: the CUDA context, libraries and the
// buffers of collectives.
func (s Setup) nonTorch() (plan.Range, string) {
	const mib = 1 << 20
	switch ranks := s.Parallel.TP * s.Parallel.PP; {
	case s.Engine.before(0, 7) && ranks == 1:
		return plan.Range{Low: 350 * mib, High: 1830 * mib}, "logs of vLLM before 0.7 on one GPU"
	case s.Engine.before(0, 7):
		return plan.Range{Low: 350 * mib, High: 3660 * mib}, "logs of vLLM before 0.7 on several GPUs"
	case s.Engine.Name == SGLang && ranks == 1:
		return plan.Range{Low: 400 * mib, High: 1100 * mib}, "free memory before the weights, in logs of SGLang on one GPU"
	case s.Engine.Name == SGLang:
		return plan.Range{Low: 1000 * mib, High: 2600 * mib}, "free memory before the weights, in logs of SGLang on 2 to 8 GPUs"
	case ranks == 1:
		return plan.Range{Low: 50 * mib, High: 700 * mib}, "logs of vLLM from 0.7 on one GPU"
	}
	return plan.Range{Low: 200 * mib, High: 2400 * mib}, "logs of vLLM from 0.7 on 2 to 16 GPUs"
}
