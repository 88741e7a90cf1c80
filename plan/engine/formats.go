package engine

import (
	"slices"
	"strconv"
	"strings"
)

// A Support is what an engine needs of a GPU for weights of a format: NVIDIA's compute
// capabilities, and the architectures of other makers.
type Support struct {
	Begins  string  // of the format's name
	Native  float64 // from here on it computes in the format
	Widened float64 // from here on it keeps the weights in the format and computes in 16 bits; 0 if it does not
	Others  []string
}

// supports are the formats of engines, the first whose name fits. vLLM and SGLang have Marlin
// kernels for GPUs without units for a format. Sources: the get_min_capability of each method, and the choice of
// kernels, in vLLM's and SGLang's layers/quantization. vLLM's Marlin kernels take compute
// capability 7.5 from 0.14 on.
var supports = map[string][]Support{
	VLLM: {
		{"fp8", 8.9, 8.0, []string{"cdna3", "cdna4", "rdna4", "xe", "gaudi"}},
		{"mxfp8", 10.0, 8.0, []string{"cdna4"}},
		{"nvfp4", 10.0, 8.0, nil},
		{"mxfp4", 10.0, 8.0, []string{"cdna3", "cdna4"}},
		{"int8", 7.5, 0, nil},
		{"awq", 0, 7.5, nil},
		{"gptq", 0, 7.0, nil},
		{"int4", 0, 8.0, nil},
		{"", 7.0, 0, nil},
	},
	SGLang: {
		{"fp8", 8.9, 8.0, []string{"cdna3", "cdna4", "gaudi"}},
		{"int8", 7.5, 0, nil},
		{"awq", 0, 7.5, nil},
		{"", 7.5, 0, nil},
	},
}

// A Way is how a GPU works with weights of a format.
type Way int

// The ways.
const (
	Unknown Way = iota // the architecture or the format is not known
	Computes
	Widens // it keeps the weights in the format and computes in 16 bits
	Refuses
)

// Runs returns how a release works with a format on an architecture, and the compute capability
// that it needs.
func (r Release) Runs(format, arch string) (Way, float64) {
	if strings.HasPrefix(format, "mlx") && r.Engine().Planned && !r.Local() {
		return Refuses, 0
	}
	capability, err := strconv.ParseFloat(arch, 64)
	for _, s := range supports[r.Name] {
		if !strings.HasPrefix(format, s.Begins) {
			continue
		}
		widened := s.Widened
		if widened == 8.0 && r.Name == VLLM && r.Has(MarlinTuring) {
			widened = 7.5
		}
		least := s.Native
		if widened > 0 && (least == 0 || widened < least) {
			least = widened
		}
		switch {
		case err != nil && slices.Contains(s.Others, arch):
			return Computes, 0
		case err != nil && len(s.Others) > 0 && arch != "" && s.Begins == "fp8":
			return Refuses, 0
		case err != nil:
			return Unknown, 0
		case capability < least:
			return Refuses, least
		case s.Native > 0 && capability < s.Native:
			return Widens, s.Native
		}
		return Computes, least
	}
	return Unknown, 0
}
