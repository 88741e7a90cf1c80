package engine

import (
	"slices"
	"strings"
)

// A Setting is one of memory. Its text is the flag of `strandline plan` that plans it.
type Setting string

// The settings that flags of engines set. The last group are llama.cpp's own, of which the
// flags of a plan are computed.
const (
	Model    Setting = "model"
	TP       Setting = "tp"
	PP       Setting = "pp"
	EP       Setting = "ep"
	DP       Setting = "dp"
	Nodes    Setting = "nodes"
	Length   Setting = "max-model-len"
	Fraction Setting = "mem-fraction"
	Step     Setting = "max-batched-tokens"
	Images   Setting = "images"
	Requests Setting = "max-num-seqs"
	MaxKV    Setting = "max-total-tokens"
	KVBytes  Setting = "kv-cache-bytes"
	Blocks   Setting = "kv-blocks"
	Graphs   Setting = "cuda-graph-max-bs"
	Block    Setting = "block-size"
	Offload  Setting = "cpu-offload-gb"
	KVType   Setting = "kv-dtype"
	ValType  Setting = "kv-dtype-v"
	Eager    Setting = "eager"
	Quant    Setting = "quant"
	Layers   Setting = "gpu-layers"
	HostMoE  Setting = "n-cpu-moe"
	Flash    Setting = "flash-attn"
	AllKeys  Setting = "swa-full"
	Unified  Setting = "kv-unified"
	CacheRAM Setting = "cache-ram"

	Context Setting = "context of all requests"
	AllMoE  Setting = "experts of all layers"
	Repo    Setting = "repository"
)

// DefaultCacheRAM is llama-server's own [CacheRAM], MiB. Source: common/common.h, cache_ram_mib.
const DefaultCacheRAM = 8192

// Flag is a flag of an engine's command, or a variable of its environment.
type Flag struct {
	Setting Setting
	Names   string // with dashes, separated by spaces; commands are written with the first
	Switch  bool   // it has no value
	After   string // further flags that it needs
	Unread  bool   // it is written to commands and not read from them
	Printed string // other names in the set-up that the engine prints, separated by spaces
}

// SettingOf is what a flag without its dashes sets, "" if the table does not have it.
func (e *Engine) SettingOf(name string) Setting {
	for i := range e.Flags {
		f := &e.Flags[i]
		if !f.Unread && slices.ContainsFunc(strings.Fields(f.Names), func(n string) bool { return strings.TrimLeft(n, "-") == name }) {
			return f.Setting
		}
	}
	return ""
}

// Command is the flags for some settings, in the table's order.
func (e *Engine) Command(values map[Setting]string) (out []string) {
	for i := range e.Flags {
		f := &e.Flags[i]
		value, ok := values[f.Setting]
		if !ok {
			continue
		}
		text, _, _ := strings.Cut(f.Names, " ")
		switch {
		case f.Switch:
		case strings.HasPrefix(text, "-"):
			text += " " + value
		default:
			text += "=" + value
		}
		out = append(out, text+f.After)
	}
	return out
}

// PrintedAs are the names of a setting in the set-ups that vLLM and SGLang print, in
// Python's spelling.
func PrintedAs(s Setting) (names []string) {
	for _, e := range []*Engine{Named(VLLM), Named(SGLang)} {
		for i := range e.Flags {
			f := &e.Flags[i]
			if f.Setting != s || f.Unread {
				continue
			}
			first, _, _ := strings.Cut(f.Names, " ")
			name := strings.ReplaceAll(strings.TrimLeft(first, "-"), "-", "_")
			for _, name := range append([]string{name}, strings.Fields(f.Printed)...) {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}
