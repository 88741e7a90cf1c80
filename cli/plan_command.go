package cli

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"strandline/internal/secret"
	"strandline/plan/engine"
	"strandline/plan/model"
)

// engineCommand fills the flags that are not given from the command of an engine. It
// returns the flags of that command that are left out of account.
func engineCommand(c *cobra.Command, words []string) (left []string, err error) {
	if len(words) == 1 { // in quotes
		words = strings.Fields(words[0])
	}
	words = secret.Args(words)
	e, rest := engine.OfCommand(words)
	if e == nil {
		return nil, fmt.Errorf("%q is not a command of vLLM, SGLang, llama.cpp or Ollama", strings.Join(words, " "))
	}
	given := map[string]string{"engine": e.Name}
	switch e.Name {
	case engine.Ollama:
		left = ollamaCommand(e, words, rest, given)
		return left, setFlags(c, given)
	case engine.LlamaCPP:
		settings, left := settingsOf(e, rest)
		if err := llamaCommand(settings, given); err != nil {
			return nil, err
		}
		return left, setFlags(c, given)
	}
	dp, attention, experts, whole := int64(1), false, false, false
	for i, f := range flagsOf(rest) {
		switch name := strings.ReplaceAll(f.name, "_", "-"); name {
		case "": // vllm serve MODEL
			if i == 0 || given["model"] == "" && e.Name == engine.VLLM {
				given["model"] = f.value
			}
		case "data-parallel-size", "dp", "dp-size":
			if dp, err = strconv.ParseInt(f.value, 10, 32); err != nil || dp < 1 {
				return nil, fmt.Errorf("--%s %q is not a number above 0", name, f.value)
			}
		case "enable-dp-attention":
			attention = true
		case "enable-expert-parallel":
			experts = true
		case "enable-ep-moe", "enable-deepep-moe", "moe-a2a-backend": // SGLang divides whole experts among all ranks
			whole = e.Name == engine.SGLang
			if !whole {
				left = append(left, "--"+name)
			}
		default:
			if to := e.SettingOf(name); to != "" {
				given[string(to)] = f.value
			} else if !slices.Contains(e.NoMemory, name) {
				left = append(left, "--"+name)
			}
		}
	}
	if given["eager"] == "" {
		if _, ok := given["eager"]; ok {
			given["eager"] = "true"
		}
	}
	if whole && given["ep"] == "" {
		given["ep"] = given["tp"]
	}
	left = append(left, divided(given, e.Name, dp, attention, experts)...)
	return left, setFlags(c, given)
}

// word is a flag of a command, without its dashes, or a word that is none.
type word struct{ shown, name, value string }

// flagsOf are the flags of a command with their values, and its other words.
func flagsOf(rest []string) (out []word) {
	for i := 0; i < len(rest); i++ {
		shown, value, inOne := strings.Cut(rest[i], "=")
		name := strings.TrimLeft(shown, "-")
		if name == shown {
			out = append(out, word{value: rest[i]})
			continue
		}
		if !inOne && i+1 < len(rest) && (!strings.HasPrefix(rest[i+1], "-") || negative(rest[i+1])) {
			i++
			value = rest[i]
		}
		out = append(out, word{shown, name, value})
	}
	return out
}

// settingsOf are what the flags of an engine's command set, and those that are left out of
// account.
func settingsOf(e *engine.Engine, rest []string) (settings map[engine.Setting]string, left []string) {
	settings = map[engine.Setting]string{}
	for _, f := range flagsOf(rest) {
		if to := e.SettingOf(f.name); to != "" {
			settings[to] = f.value
		} else if f.name != "" && !slices.Contains(e.NoMemory, f.name) {
			left = append(left, f.shown)
		}
	}
	return settings, left
}

// divided adds how the ranks are divided, and returns the options that are not planned.
func divided(given map[string]string, name string, dp int64, attention, experts bool) (left []string) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(given[name], 10, 32)
		return max(n, 1)
	}
	tp := number("tp")
	switch {
	case name == engine.VLLM && experts: // its replicas share the experts
		tp *= dp
		given["tp"], given["ep"] = strconv.FormatInt(tp, 10), strconv.FormatInt(tp, 10)
		given["dp"] = strconv.FormatInt(dp, 10)
	case attention:
		given["dp"] = strconv.FormatInt(dp, 10)
	case dp > 1:
		left = []string{"--data-parallel-size (one replica is planned)"}
	}
	if given["tp"] == "" {
		given["tp"] = "1"
	}
	given["gpus"] = strconv.FormatInt(tp*number("pp"), 10)
	return left
}

// setFlags sets flags of plan that are not given.
func setFlags(c *cobra.Command, given map[string]string) error {
	f := c.Flags()
	for name, value := range given {
		if name == "quant" && !model.KnownQuant(value) { // what the files state themselves
			continue
		}
		if name == "max-model-len" || name == "kv-cache-bytes" {
			value = readable(value)
		}
		if f.Changed(name) || value == "" {
			continue
		}
		if err := f.Set(name, value); err != nil {
			return fmt.Errorf("the command's value for --%s: %w", name, err)
		}
	}
	return nil
}

func negative(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil
}

// readable is a number as vLLM takes it: 32k is 32,000, 32K is 32,768.
func readable(text string) string {
	for _, unit := range []struct {
		suffix string
		of     float64
	}{{"k", 1e3}, {"m", 1e6}, {"g", 1e9}, {"K", 1 << 10}, {"M", 1 << 20}, {"G", 1 << 30}} {
		if digits, ok := strings.CutSuffix(text, unit.suffix); ok {
			if x, err := strconv.ParseFloat(digits, 64); err == nil && x > 0 && x < 1e9 {
				return strconv.FormatInt(int64(x*unit.of), 10)
			}
		}
	}
	return text
}
