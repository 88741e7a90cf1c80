// Package engine is the one table of inference engines: their names, the flags that set
// their memory, the defaults of each release, the names that they print, their metrics, and
// the first thing to change when memory runs out. Plans, readers of logs and judgments read
// it, so no other file states these facts: table.go has the defaults, such as vLLM's share of a
// device. It reads no files and keeps no state.
package engine

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// The names of engines, as --engine takes them and documents state them.
const (
	VLLM     = "vllm"
	SGLang   = "sglang"
	LlamaCPP = "llama.cpp"
	Ollama   = "ollama"
	TGI      = "tgi"
	TensorRT = "tensorrt-llm"
	LMDeploy = "lmdeploy"
)

// Engine is an inference engine, in all its releases.
type Engine struct {
	Name    string
	Planned bool     // the memory of a set-up can be planned
	Local   bool     // llama.cpp, or runs it: layers that do not fit stay in the host's memory
	Begins  []string // how its name begins in tables and logs, in lower case

	// Programs serve a model; Verbs follow a program before its flags, none if the flags
	// follow at once; Modules are Python modules that serve.
	Programs, Verbs, Modules []string
	Flags                    []Flag   // in the order in which a command has them
	NoMemory                 []string // flags that do not change the memory, without dashes

	Share   *Share            // nil if it takes the memory that it needs
	Block   int64             // tokens of a block of the KV cache
	Since   map[Trait]Version // the releases from which on it has a trait
	Marks   []string          // that a log is its: lower case, without white space
	Mention string            // a regular expression for its name in an error
	Metrics *Metrics          // nil if they are not known
	Relief  Relief
}

// Share is the part of a GPU that an engine takes.
type Share struct {
	Flag     string    // with dashes; a key of a file if it ends in a colon
	Setting  string    // its name in Python
	Defaults []Default // by release, the oldest first
	Of       string    // what it is a part of, where not of the GPU
	Computed bool      // from the size of the GPU; Defaults is for an unknown one
}

// Default is a value from a release on.
type Default struct {
	Since Version
	Value float64
}

// Relief is the first change to make when PyTorch runs out of memory in an engine.
type Relief struct {
	Set  string // the setting; empty lowers the engine's share
	Text string // its effect, and other settings
}

// Metrics are the names of an engine's metrics without its prefix. The first that is there
// counts.
type Metrics struct{ Running, Waiting, Cache, Finished, Prompt, Done []string }

// Named is the engine of a name, nil if it is not known.
func Named(name string) *Engine {
	for i := range engines {
		if engines[i].Name == name {
			return &engines[i]
		}
	}
	return nil
}

// Planned are the names of the engines whose memory can be planned.
func Planned() (names []string) {
	for i := range engines {
		if engines[i].Planned {
			names = append(names, engines[i].Name)
		}
	}
	return names
}

// Measured are the engines whose metrics are known.
func Measured() (out []*Engine) {
	for i := range engines {
		if engines[i].Metrics != nil {
			out = append(out, &engines[i])
		}
	}
	return out
}

// OfCommand finds the engine in the words before the first flag of a command, and the words
// after its name: "vllm serve", "python -m sglang.launch_server". It is nil if there is none.
func OfCommand(words []string) (found *Engine, rest []string) {
	for i, word := range words {
		base := path.Base(word)
		if found != nil && slices.Contains(found.Verbs, base) {
			return found, words[i+1:]
		}
		for k := range engines {
			e := &engines[k]
			module := slices.ContainsFunc(e.Modules, func(m string) bool { return strings.HasPrefix(base, m) })
			program := slices.Contains(e.Programs, base)
			if module || program && len(e.Verbs) == 0 {
				return e, words[i+1:]
			}
			if program {
				found = e
			}
		}
	}
	return nil, nil
}

// Lowest is the smallest default of all releases.
func (s *Share) Lowest() float64 {
	return slices.MinFunc(s.Defaults, func(a, b Default) int { return int(1e6 * (a.Value - b.Value)) }).Value
}

// Words state the default: "the default is 0.92 (0.9 before 0.21)".
func (s *Share) Words() string {
	if s.Computed {
		return "the default follows from the size of the GPU"
	}
	now := s.Defaults[len(s.Defaults)-1]
	text := fmt.Sprintf("the default is %.4g", now.Value)
	if s.Of != "" {
		text += " of " + s.Of
	}
	if n := len(s.Defaults); n > 1 {
		text += fmt.Sprintf(" (%.4g before %d.%d)", s.Defaults[n-2].Value, now.Since.Major, now.Since.Minor)
	}
	return text
}

// Set is the flag with a value.
func (s *Share) Set(value string) string { return s.Flag + " " + value }
