package logs

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Engines of which figures are read beside those of vLLM and SGLang.
const (
	EngineTensorRT = "tensorrt-llm"
	EngineLlama    = "llama.cpp"
)

// other is a pattern of an engine that states sizes by device or in several units: its
// groups are named n (a number), unit (bytes if there is none) and tokens.
type other struct {
	expr *regexp.Regexp
	name string
	join func(before, size int64) int64 // of several lines; nil replaces
}

func sum(a, b int64) int64 { return a + b }

func most(a, b int64) int64 { return max(a, b) }

const otherSize = `(?P<n>\d{1,15}(?:\.\d{1,6})?) ?(?P<unit>bytes|MiB|GiB)`

// The lines of TensorRT-LLM's C++ runtime and of llama.cpp, which has a line for each
// device.
var otherSizes = []other{
	{regexp.MustCompile(`Allocate ` + otherSize + ` for k/v cache`), LogKV, nil},
	{regexp.MustCompile(`Max tokens in paged KV cache: (?P<tokens>\d{1,15})\. Allocating ` + otherSize), LogKV, nil},
	{regexp.MustCompile(`Allocated ` + otherSize + ` for max tokens in paged KV cache \((?P<tokens>\d{1,15})\)`), LogKV, nil},
	{regexp.MustCompile(`Using (?P<tokens>\d{1,15}) tokens in paged KV cache`), "", nil},
	{regexp.MustCompile(`Loaded engine size: ` + otherSize), LogWeights, nil},
	{regexp.MustCompile(`Allocated ` + otherSize + ` for execution context memory`), LogActivation, nil},
	{regexp.MustCompile(`load_tensors: +[\w.]{1,40} (?:model )?buffer size = +` + otherSize), LogWeights, sum},
	{regexp.MustCompile(`llama_kv_cache\w{0,20}: +[\w.]{1,40} KV buffer size = +` + otherSize), LogKV, sum},
	{regexp.MustCompile(`llama_\w{1,40}: +[\w.]{1,40} compute buffer size = +` + otherSize), LogActivation, most},
}

// otherSettings are what those engines print of their set-up.
var otherSettings = map[string]*regexp.Regexp{
	"model":     regexp.MustCompile(`(?:print_info|print_meta): (?:general\.)?name +(?:=|:) (.{1,200})`),
	"file_type": regexp.MustCompile(`(?:print_info|print_meta): (?:file type|model ftype) += (.{1,60})`),
	"max_len":   regexp.MustCompile(`llama_(?:context|new_context_with_model): n_ctx += (\d{1,12})`),
}

// otherLine reads a line of those engines into the rank that it belongs to.
func (e *EngineLog) otherLine(text string, n int64, r *Rank) {
	switch {
	case strings.Contains(text, "[TensorRT-LLM]"), strings.Contains(text, "[TRT-LLM]"):
		e.Engine = EngineTensorRT
	case strings.Contains(text, "load_tensors:"), strings.Contains(text, "llama_"), strings.Contains(text, "print_info:"), strings.Contains(text, "print_meta:"):
	default:
		return
	}
	for name, expr := range otherSettings {
		if m := expr.FindStringSubmatch(text); m != nil {
			e.Engine, e.Setup[name] = EngineLlama, strings.TrimSpace(m[1])
		}
	}
	for i := range otherSizes {
		o := &otherSizes[i]
		m := o.expr.FindStringSubmatch(text)
		if m == nil {
			continue
		}
		if i >= slices.IndexFunc(otherSizes, func(o other) bool { return o.join != nil }) {
			e.Engine = EngineLlama
		}
		if at := o.expr.SubexpIndex("tokens"); at >= 0 {
			r.Tokens = counted(m[at])
		}
		if o.name != "" {
			r.takeOther(o, m, n)
		}
	}
}

func (r *Rank) takeOther(o *other, m []string, line int64) {
	digits := m[o.expr.SubexpIndex("n")]
	x, err := strconv.ParseFloat(digits, 64)
	unit := map[string]float64{"bytes": 1, "MiB": 1 << 20, "GiB": 1 << 30}[m[o.expr.SubexpIndex("unit")]]
	const largest = 1 << 50
	if err != nil || x*unit > largest {
		return
	}
	size := int64(x * unit)
	_, decimals, _ := strings.Cut(digits, ".")
	rounding := int64(math.Ceil(unit / 2 / math.Pow10(len(decimals))))
	if unit == 1 {
		rounding = 0
	}
	if o.join != nil && r.Lines[o.name] > 0 {
		size, rounding = o.join(r.Sizes[o.name], size), rounding+r.Rounding[o.name]
	}
	if size > largest {
		return
	}
	r.Sizes[o.name], r.Lines[o.name], r.Rounding[o.name] = size, line, rounding
}
