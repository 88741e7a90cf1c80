package engine

import (
	"slices"
	"strconv"
	"strings"
)

// Version is a release by its first two numbers.
type Version struct{ Major, Minor int }

func (v Version) before(o Version) bool {
	return v.Major < o.Major || v.Major == o.Major && v.Minor < o.Minor
}

// A Trait is what releases of an engine do from some release on.
type Trait string

// The traits.
const (
	OwnWeightsMLA Trait = "keeps the two halves of MLA's up-projection, not products with others"
	ManyRequests  Trait = "runs 1,024 requests at once on large GPUs"
	SamplesInOne  Trait = "samples from the logits without sorting them"
	SkipsSampling Trait = "leaves sampling out of the profile of a chunk"
	KeepsWindows  Trait = "keeps only the window in layers that have one"
	LimitsPixels  Trait = "takes a width and a height as limits of images"
	TwoGraphs     Trait = "captures piecewise and full CUDA graphs"
	CountsGraphs  Trait = "leaves room for CUDA graphs beside its pool"
	SmallOutside  Trait = "measures memory outside PyTorch exactly"
	MarlinTuring  Trait = "widens weights on compute capability 7.5"
	RoomForImages Trait = "takes less for itself if the model sees images"
)

// Release is an engine of some version; 0.0 is unknown, and taken for the newest.
type Release struct {
	Name    string
	Version Version
	V0      bool // vLLM's first engine
}

// ParseRelease reads "vllm", "vllm 0.8.4", "sglang+ktransformers"; version is text beside
// it, such as "0.8.x V0 (2025-04)". Only engines that can be planned are known.
func ParseRelease(name, version string) (Release, bool) {
	word, rest, _ := strings.Cut(strings.ToLower(strings.TrimSpace(name)), " ")
	if version == "" {
		version = rest
	}
	for i := range engines {
		e := &engines[i]
		if !e.Planned || !slices.ContainsFunc(e.Begins, func(b string) bool { return strings.HasPrefix(word, b) }) {
			continue
		}
		r := Release{Name: e.Name, Version: versionOf(version)}
		r.V0 = r.Name == VLLM && (strings.Contains(strings.ToLower(version), "v0") || r.Version.Minor > 0 && r.Version.Minor < 8)
		return r, true
	}
	return Release{}, false
}

// versionOf is the first number of two parts in a text, 0.0 if there is none.
func versionOf(text string) Version {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' || i > 0 && (text[i-1] >= '0' && text[i-1] <= '9' || text[i-1] == '.') {
			continue
		}
		a, rest, ok := strings.Cut(text[i:], ".")
		if !ok {
			return Version{}
		}
		x, err := strconv.Atoi(a)
		end := 0
		for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
			end++
		}
		y, err2 := strconv.Atoi(rest[:end])
		if err == nil && err2 == nil && x < 100 {
			return Version{x, y}
		}
	}
	return Version{}
}

// Known reports whether the version is known.
func (r Release) Known() bool { return r.Version != Version{} }

// Engine is the entry of the table; one without facts if the name is not in it.
func (r Release) Engine() *Engine {
	if e := Named(r.Name); e != nil {
		return e
	}
	return &Engine{Name: r.Name}
}

// Local reports whether the engine is llama.cpp or runs it.
func (r Release) Local() bool { return r.Engine().Local }

// Has reports whether the release has a trait, as the newest does if its version is not known.
func (r Release) Has(t Trait) bool {
	since, ok := r.Engine().Since[t]
	return ok && !(r.Known() && r.Version.before(since))
}

// Share is the part of a GPU that the release takes by default; 0 if it has none.
func (r Release) Share() (x float64) {
	if s := r.Engine().Share; s != nil {
		for _, d := range s.Defaults {
			if !(r.Known() && r.Version.before(d.Since)) {
				x = d.Value
			}
		}
	}
	return x
}

// On is the release as it runs on a GPU, by the plain name of that: vLLM falls back to its
// first engine from 0.8 on where there is no CUDA, until 0.9, or none of compute capability
// 8.0, until 0.10. Source: vLLM 0.8, engine/arg_utils.py, _is_v1_supported_oracle.
func (r Release) On(gpu string) Release {
	if r.Name != VLLM || !r.Known() {
		return r
	}
	begins := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(gpu, name) })
	}
	noCUDA := begins("mi1", "mi2", "mi3", "hygon", "dcu")
	old := begins("v100", "t4", "p100", "p40", "rtx20", "titan")
	r.V0 = r.V0 || noCUDA && r.Version.before(Version{0, 9}) || old && r.Version.before(Version{0, 10})
	return r
}

// String is the engine's name, with its version if it is known.
func (r Release) String() string {
	if !r.Known() {
		return r.Name
	}
	text := r.Name + " " + strconv.Itoa(r.Version.Major) + "." + strconv.Itoa(r.Version.Minor)
	if r.V0 && r.Version.Minor >= 8 {
		text += " V0"
	}
	return text
}
