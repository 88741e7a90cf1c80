package cli

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"strandline/internal/secret"
	"strandline/plan/model"
	"strandline/plan/serving"
)

// engineFlags are the flags of the engines' commands by those of plan. Sources: vLLM,
// engine/arg_utils.py; SGLang, srt/server_args.py.
var engineFlags = map[string]map[string]string{
	serving.VLLM: {
		"model": "model", "tensor-parallel-size": "tp", "tp": "tp", "pipeline-parallel-size": "pp", "pp": "pp", "max-model-len": "max-model-len",
		"gpu-memory-utilization": "mem-fraction", "max-num-batched-tokens": "max-batched-tokens", "max-num-seqs": "max-num-seqs",
		"block-size": "block-size", "quantization": "quant", "q": "quant", "kv-cache-dtype": "kv-dtype", "enforce-eager": "eager", "nnodes": "nodes",
		"max-cudagraph-capture-size": "cuda-graph-max-bs", "cpu-offload-gb": "cpu-offload-gb",
	},
	serving.SGLang: {
		"model": "model", "model-path": "model", "tp": "tp", "tp-size": "tp", "tensor-parallel-size": "tp", "pp": "pp", "pp-size": "pp", "pipeline-parallel-size": "pp",
		"ep": "ep", "ep-size": "ep", "expert-parallel-size": "ep", "context-length": "max-model-len", "mem-fraction-static": "mem-fraction",
		"chunked-prefill-size": "max-batched-tokens", "max-running-requests": "max-num-seqs", "page-size": "block-size", "quantization": "quant",
		"kv-cache-dtype": "kv-dtype", "disable-cuda-graph": "eager", "nnodes": "nodes",
		"max-total-tokens": "max-total-tokens", "cuda-graph-max-bs": "cuda-graph-max-bs",
	},
}

// noMemory lists flags of both that do not change the plan.
var noMemory = strings.Fields("host port api-key served-model-name trust-remote-code dtype tokenizer seed disable-log-requests uvicorn-log-level log-level " +
	"enable-auto-tool-choice tool-call-parser reasoning-parser chat-template enable-prefix-caching no-enable-prefix-caching disable-log-stats distributed-executor-backend " +
	"node-rank dist-init-addr master-addr master-port headless generation-config download-dir load-format revision enable-metrics tokenizer-path")

// engineCommand fills the flags that are not given from the command of an engine. It
// returns the flags of that command that are left out of account.
func engineCommand(c *cobra.Command, words []string) (left []string, err error) {
	if len(words) == 1 { // in quotes
		words = strings.Fields(words[0])
	}
	words = secret.Args(words)
	engine, rest := engineOf(words)
	if engine == "" {
		return nil, fmt.Errorf("%q is not a command of vLLM, SGLang, llama.cpp or Ollama", strings.Join(words, " "))
	}
	given := map[string]string{"engine": engine}
	switch engine {
	case serving.Ollama:
		left = ollamaCommand(words, rest, given)
		return left, setFlags(c, given)
	case serving.LlamaCPP:
		flags, left := llamaWords(rest)
		if err := llamaCommand(flags, given); err != nil {
			return nil, err
		}
		return left, setFlags(c, given)
	}
	dp, attention, experts, whole := int64(1), false, false, false
	for i := 0; i < len(rest); i++ {
		name, value, inOne := strings.Cut(rest[i], "=")
		bare := strings.TrimLeft(name, "-")
		if bare == name { // vllm serve MODEL
			if i == 0 || given["model"] == "" && engine == serving.VLLM {
				given["model"] = rest[i]
			}
			continue
		}
		if !inOne && i+1 < len(rest) && (!strings.HasPrefix(rest[i+1], "-") || negative(rest[i+1])) {
			i++
			value = rest[i]
		}
		switch bare = strings.ReplaceAll(bare, "_", "-"); bare {
		case "data-parallel-size", "dp", "dp-size":
			if dp, err = strconv.ParseInt(value, 10, 32); err != nil || dp < 1 {
				return nil, fmt.Errorf("--%s %q is not a number above 0", bare, value)
			}
		case "enable-dp-attention":
			attention = true
		case "enable-expert-parallel":
			experts = true
		case "enable-ep-moe", "enable-deepep-moe", "moe-a2a-backend": // SGLang divides whole experts among all ranks
			whole = engine == serving.SGLang
			if !whole {
				left = append(left, "--"+bare)
			}
		default:
			if to := engineFlags[engine][bare]; to != "" {
				given[to] = value
			} else if !slices.Contains(noMemory, bare) {
				left = append(left, "--"+bare)
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
	left = append(left, divided(given, engine, dp, attention, experts)...)
	return left, setFlags(c, given)
}

// llamaWords are the flags of llama-server by the names in [llamaFlags], and those that
// are left out of account.
func llamaWords(rest []string) (flags map[string]string, left []string) {
	flags = map[string]string{}
	for i := 0; i < len(rest); i++ {
		name, value, inOne := strings.Cut(rest[i], "=")
		bare := strings.TrimLeft(name, "-")
		if bare == name {
			continue
		}
		if !inOne && i+1 < len(rest) && (!strings.HasPrefix(rest[i+1], "-") || negative(rest[i+1])) {
			i++
			value = rest[i]
		}
		if to := llamaFlags[bare]; to != "" {
			flags[to] = value
		} else if !slices.Contains(llamaNoMemory, bare) {
			left = append(left, name)
		}
	}
	return flags, left
}

// divided adds how the ranks are divided, and returns the options that are not planned.
func divided(given map[string]string, engine string, dp int64, attention, experts bool) (left []string) {
	number := func(name string) int64 {
		n, _ := strconv.ParseInt(given[name], 10, 32)
		return max(n, 1)
	}
	tp := number("tp")
	switch {
	case engine == serving.VLLM && experts: // its replicas share the experts
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
		if name == "max-model-len" {
			value = tokens(value)
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

// engineOf finds the engine in the words before the first flag, and the words after
// its name: "vllm serve", "python -m sglang.launch_server".
func engineOf(words []string) (engine string, rest []string) {
	for i, word := range words {
		base := path.Base(word)
		switch {
		case base == "serve" && engine != "":
			return engine, words[i+1:]
		case base == "vllm":
			engine = serving.VLLM
		case base == "sglang":
			engine = serving.SGLang
		case base == "run" && engine == serving.Ollama:
			return engine, words[i+1:]
		case base == "ollama":
			engine = serving.Ollama
		case base == "llama-server", base == "llama-cli", base == "llama-server.exe":
			return serving.LlamaCPP, words[i+1:]
		case strings.HasPrefix(base, "vllm.entrypoints"):
			return serving.VLLM, words[i+1:]
		case strings.HasPrefix(base, "sglang.launch_server"):
			return serving.SGLang, words[i+1:]
		}
	}
	return "", nil
}

func negative(word string) bool {
	_, err := strconv.ParseFloat(word, 64)
	return err == nil
}

// tokens is a length as vLLM takes it: 32k is 32,000, 32K is 32,768.
func tokens(text string) string {
	for _, unit := range []struct {
		suffix string
		of     float64
	}{{"k", 1e3}, {"m", 1e6}, {"K", 1 << 10}, {"M", 1 << 20}} {
		if digits, ok := strings.CutSuffix(text, unit.suffix); ok {
			if x, err := strconv.ParseFloat(digits, 64); err == nil && x > 0 && x < 1e9 {
				return strconv.FormatInt(int64(x*unit.of), 10)
			}
		}
	}
	return text
}
