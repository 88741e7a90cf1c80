package serving

import (
	"strings"

	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
)

// bigGPU is from where on vLLM takes larger defaults. Source: vLLM,
// engine/arg_utils.py, get_batch_defaults.
const bigGPU = 70 * plan.GiB

func (s Setup) big() bool {
	return s.GPU != nil && s.GPU.Total >= bigGPU && !strings.HasPrefix(s.GPU.Name, "A100") && !strings.HasPrefix(s.GPU.Name, "A800")
}

// step returns how many tokens a forward pass takes at most.
func (s Setup) step() int64 {
	switch {
	case s.Step > 0:
		return s.Step
	case s.Engine.Name == engine.SGLang:
		return s.sglang().chunk
	case s.Engine.V0 && !s.chunked():
		return max(s.Length, 2048)
	case s.Engine.V0 || !s.big():
		return 2048
	}
	return 8192
}

// chunked reports whether vLLM's first engine cuts prompts into chunks: by default
// only for models with a long context, and never with MLA or images. Source: vLLM
// 0.8, engine/arg_utils.py, _set_default_args_v0.
func (s Setup) chunked() bool {
	return s.Length > 32768 && !s.hasKind(model.Latent) && len(s.Model.Towers) == 0
}

// requests returns how many requests run at once at most.
func (s Setup) requests() int64 {
	switch {
	case s.Requests > 0:
		return s.Requests
	case s.Engine.Has(engine.ManyRequests) && !s.Engine.V0 && s.big():
		return 1024
	}
	return 256
}

// Activation is the peak of what a forward pass allocates: vLLM profiles it with a
// step of as many tokens as it allows, and a sampling of as many requests.
func (s Setup) Activation() plan.Range {
	s = s.Normal()
	peak := s.forward()
	if s.samples() {
		if floor := s.sampler(); floor.Middle() > peak.Middle() {
			peak = plan.Span{Low: max(floor.Low, peak.Low), High: max(floor.High, peak.High)}
		}
	}
	if tower := s.towers(); tower.Middle() > peak.Middle() {
		peak = tower
	}
	return peak.Within(2).Bytes()
}

// forward is the peak of the layers: the widest of what is live at one time in a
// feed-forward part, in a mixture or in attention, beside the residual stream.
// Kernels may keep a further copy of their input or output.
func (s Setup) forward() plan.Span {
	m := s.Model
	tokens, h := float64(s.step()), float64(m.Hidden)
	tp := float64(max(s.Parallel.TP/s.Parallel.DP, 1))
	experts := float64(s.Parallel.TP)
	if s.Parallel.EP > 1 {
		experts = 1
	}
	most := 0.0
	for i := range m.Layers {
		l := &m.Layers[i]
		c := &l.Cache
		dense := 3 * float64(l.FFN) / float64(s.Parallel.TP)
		mixture := 0.0
		if l.TopK > 0 {
			// A row for each expert of a token: its input's and output's buffer is one,
			// that between the matrices another. Ranks that hold whole experts get a share
			// of the rows.
			k := float64(l.TopK)
			if s.Parallel.EP > 1 {
				k = max(k/float64(s.Parallel.EP), 1)
			}
			width := float64(l.ExpertFFN) / experts
			mixture = k*max(2*width, h) + k*width + h
		}
		kv := float64(c.Heads * (c.Key + c.Value))
		if c.Kind == model.Latent { // made of the latent vector for every head
			kv = float64(c.QueryHeads * (c.Key + c.OutputWidth/max(c.QueryHeads, 1)))
		}
		attention := (2*float64(c.QueryWidth) + kv + float64(c.OutputWidth+c.LinearWidths)) / tp
		most = max(most, dense, mixture, attention)
	}
	const reused, copied = 0.9, 1.45 // as logs show; no code states how much
	return plan.Point(2*tokens*(most+3*h)).Stretched(reused, copied)
}

// samples reports whether the profile samples for all requests. The first engine
// does not where it profiles a chunk of a long prompt, from 0.7 on.
func (s Setup) samples() bool {
	if s.Engine.Name != engine.VLLM {
		return false
	}
	return !s.Engine.V0 || !s.chunked() || !s.Engine.Has(engine.SkipsSampling)
}

// sampler returns what sampling with top-k and top-p makes of the logits of every
// request, whole on every rank: bf16 and fp32 logits, the sorted ones and their
// int64 indices, softmax, its sum, masks, what is scattered back, probabilities
// and their logarithms: 38 to 52 bytes for each. The second engine leaves out the
// logarithms, 26 or more; from 0.10 on it does not sort where a kernel samples from
// the logits, 13 or more.
func (s Setup) sampler() plan.Span {
	bytes := plan.Between(38, 52)
	switch {
	case s.Engine.V0:
	case !s.Engine.Has(engine.SamplesInOne):
		bytes = plan.Between(26, 52)
	default:
		bytes = plan.Between(13, 26)
	}
	return bytes.Times(float64(s.requests() * s.Model.Vocab))
}

// profilesLargest reports whether the engine profiles the largest image whatever is
// asked for: vLLM until its limits took a width and a height.
func (s Setup) profilesLargest() bool {
	return s.Engine.Name == engine.VLLM && !s.Engine.Has(engine.LimitsPixels)
}

// towers is the peak of encoding images: in vLLM's profile as many patches as the
// largest image has; otherwise those that are asked for.
func (s Setup) towers() plan.Span {
	each := s.perPatch()
	if each.High == 0 {
		return plan.Span{}
	}
	// Qwen's processors allow 12,845,056 pixels: 16,384 tokens of 2 × 2 patches of
	// 14 × 14. Others know one size of some thousand patches.
	patches := 4096.0
	if strings.HasPrefix(s.Model.Type, "qwen") {
		patches = 65536
	}
	profile := plan.Point(patches*each.High).Stretched(1, 2)
	if s.Images.Count == 0 {
		return profile
	}
	i := s.Images.normal()
	one, ok := s.Model.Encode(i.Width, i.Height)
	if !ok {
		return plan.Span{}
	}
	work := each.Times(float64(s.encodedAtOnce(one) * one.Patches))
	if s.profilesLargest() && profile.Middle() > work.Middle() {
		return profile
	}
	return work
}
