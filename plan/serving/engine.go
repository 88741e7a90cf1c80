package serving

import (
	"slices"
	"strconv"
	"strings"

	"strandline/plan"
)

// The engines whose conventions are known.
const (
	VLLM     = "vllm"
	SGLang   = "sglang"
	LlamaCPP = "llama.cpp"
	Ollama   = "ollama"
)

// Engine is an inference engine. A version of 0.0 is unknown and taken for the
// newest.
type Engine struct {
	Name         string
	major, minor int
	v0           bool // vLLM's first engine
}

// ParseEngine reads "vllm", "vllm 0.8.4", "sglang+ktransformers"; version is text
// beside it, such as "0.8.x V0 (2025-04)".
func ParseEngine(name, version string) (Engine, bool) {
	word, rest, _ := strings.Cut(strings.ToLower(strings.TrimSpace(name)), " ")
	if version == "" {
		version = rest
	}
	e := Engine{}
	switch {
	case strings.HasPrefix(word, VLLM):
		e.Name = VLLM
	case strings.HasPrefix(word, SGLang):
		e.Name = SGLang
	case strings.HasPrefix(word, "llama.cpp"), strings.HasPrefix(word, "llama-server"), strings.HasPrefix(word, "llamacpp"):
		e.Name = LlamaCPP
	case strings.HasPrefix(word, Ollama):
		e.Name = Ollama
	default:
		return e, false
	}
	e.major, e.minor = versionOf(version)
	v := strings.ToLower(version)
	e.v0 = e.Name == VLLM && (strings.Contains(v, "v0") || e.minor > 0 && e.minor < 8)
	return e, true
}

// on is the engine as it runs on a GPU: vLLM falls back to its first engine from 0.8
// on where there is no CUDA, until 0.9, or none of compute capability 8.0. Source:
// vLLM 0.8, engine/arg_utils.py, _is_v1_supported_oracle.
func (e Engine) on(g *plan.GPU) Engine {
	if g == nil || e.Name != VLLM || e.major == 0 && e.minor == 0 {
		return e
	}
	begins := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(plan.PlainGPU(g.Name), name) })
	}
	noCUDA := begins("mi1", "mi2", "mi3", "hygon", "dcu")
	old := begins("v100", "t4", "p100", "p40", "rtx20", "titan")
	e.v0 = e.v0 || noCUDA && e.before(0, 9) || old && e.before(0, 10)
	return e
}

// versionOf is the first number of two parts in a text, 0.0 if there is none.
func versionOf(text string) (major, minor int) {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' || i > 0 && (text[i-1] >= '0' && text[i-1] <= '9' || text[i-1] == '.') {
			continue
		}
		a, rest, ok := strings.Cut(text[i:], ".")
		if !ok {
			return 0, 0
		}
		x, err := strconv.Atoi(a)
		end := 0
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		y, err2 := strconv.Atoi(rest[:end])
		if err == nil && err2 == nil && x < 100 {
			return x, y
		}
	}
	return 0, 0
}

// before reports whether the version is known and older than major.minor.
func (e Engine) before(major, minor int) bool {
	if e.major == 0 && e.minor == 0 {
		return false
	}
	return e.major < major || e.major == major && e.minor < minor
}

// String is the engine's name, with its version if it is known.
func (e Engine) String() string {
	switch {
	case e.major == 0 && e.minor == 0:
		return e.Name
	case e.v0 && e.minor >= 8:
		return e.Name + " " + strconv.Itoa(e.major) + "." + strconv.Itoa(e.minor) + " V0"
	}
	return e.Name + " " + strconv.Itoa(e.major) + "." + strconv.Itoa(e.minor)
}
