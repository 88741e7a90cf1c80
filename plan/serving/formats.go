package serving

import (
	"fmt"
	"strings"

	"strandline/plan/engine"
	"strandline/plan/model"
)

// format is the name of the format of most weights, "16 bits" where they have none.
func (s Setup) format() string {
	if s.Model.Quant == "" {
		return "16 bits"
	}
	return s.Model.Quant
}

// refusal is why the engine cannot work with the weights on the GPU, or cannot divide them; ""
// if it can.
func (s Setup) refusal() string {
	format := s.Model.Quant
	if s.Engine.Local() {
		if format != "" && format != "mxfp4" && !strings.HasPrefix(format, "gguf") {
			return fmt.Sprintf("%s does not run %s: it reads GGUF files, such as --quant q4_k_m or q8_0", s.Engine.Name, format)
		}
		return ""
	}
	way, least := s.Engine.Runs(format, s.GPU.Arch)
	switch {
	case way == engine.Refuses && strings.HasPrefix(format, "mlx"):
		return fmt.Sprintf("%s does not run %s, which is a format of Apple's MLX", s.Engine.Name, format)
	case way == engine.Refuses && least == 0:
		return fmt.Sprintf("%s does not run %s on %s (%s)", s.Engine, s.format(), s.GPU.Name, s.GPU.Arch)
	case way == engine.Refuses:
		return fmt.Sprintf("%s does not run %s on %s: it needs compute capability %.1f, and this is %s", s.Engine, s.format(), s.GPU.Name, least, s.GPU.Arch)
	}
	return s.wholeBlocks()
}

// widened states that the GPU has no units for the format, "" if it has.
func (s Setup) widened() string {
	if s.GPU == nil {
		return ""
	}
	if way, native := s.Engine.Runs(s.Model.Quant, s.GPU.Arch); way == engine.Widens {
		return fmt.Sprintf("%s has no units for %s (compute capability %.1f has); %s computes in 16 bits (Marlin)", s.GPU.Name, s.Model.Quant, native, s.Engine.Name)
	}
	return ""
}

// wholeBlocks is why blocks that share a scale cannot be divided among ranks: those of fp8 of a
// feed-forward part or an expert, either way, and the groups of a dense part's columns.
// Source: vLLM, quantization/fp8.py and gptq_marlin.py, create_weights.
func (s Setup) wholeBlocks() string {
	p := s.Parallel
	for i := range s.Model.Layers {
		for j := range s.Model.Layers[i].Tensors {
			t := &s.Model.Layers[i].Tensors[j]
			rows, columns := t.Format.Group()
			tp := p.TP
			switch {
			case t.Role != model.MLP && t.Role != model.Expert || t.Meta, t.Role == model.Expert && (p.EP > 1 || rows < 2):
				continue
			case t.Role == model.MLP && s.Engine.Name == engine.VLLM:
				tp = max(tp/p.DP, 1)
			}
			width, group := t.In, columns
			if t.Part == model.ByOut {
				width, group = t.Out, rows
			}
			if t.Part != model.ByOut && t.Part != model.ByIn || group < 2 || tp < 2 || width%tp != 0 || width/tp%group == 0 {
				continue
			}
			instead := "a smaller --tp"
			if t.Role == model.Expert {
				instead += ", or --ep"
			}
			return fmt.Sprintf("--tp %d cuts %s of layer %d to %d numbers a rank; %s has a scale for %d; use %s", tp, t.Name, i, width/tp, t.Format.Name, group, instead)
		}
	}
	return ""
}
