package cli

import (
	"fmt"
	"strconv"
	"strings"

	"strandline/plan/model"
)

// llamaFlags are the flags of llama-server by those of plan. Source: llama.cpp,
// common/arg.cpp.
var llamaFlags = map[string]string{
	"m": "model", "model": "model", "hf": "hf", "hfr": "hf", "hf-repo": "hf", "c": "c", "ctx-size": "c", "np": "np", "parallel": "np",
	"ngl": "gpu-layers", "gpu-layers": "gpu-layers", "n-gpu-layers": "gpu-layers", "ctk": "kv-dtype", "cache-type-k": "kv-dtype",
	"ctv": "kv-dtype-v", "cache-type-v": "kv-dtype-v", "fa": "flash-attn", "flash-attn": "flash-attn", "ub": "max-batched-tokens", "ubatch-size": "max-batched-tokens",
	"ncmoe": "n-cpu-moe", "n-cpu-moe": "n-cpu-moe", "cmoe": "cpu-moe", "cpu-moe": "cpu-moe", "swa-full": "swa-full", "kvu": "kv-unified", "kv-unified": "kv-unified",
}

// llamaNoMemory lists flags of llama-server that do not change the plan.
var llamaNoMemory = strings.Fields("host port api-key alias a t threads tb threads-batch b batch-size jinja temp top-k top-p min-p seed no-mmap mlock numa metrics verbose v " +
	"chat-template chat-template-file reasoning-format n predict n-predict no-webui fit fit-target cont-batching cb log-file lv no-warmup props slots timeout to")

// llamaCommand turns the flags of llama-server into those of plan.
func llamaCommand(flags map[string]string, given map[string]string) error {
	for _, bare := range []string{"swa-full", "kv-unified"} {
		if _, ok := flags[bare]; ok {
			given[bare] = "true"
		}
	}
	for _, name := range []string{"model", "kv-dtype", "kv-dtype-v", "max-batched-tokens", "n-cpu-moe"} {
		if v := flags[name]; v != "" {
			given[name] = v
		}
	}
	if _, ok := flags["flash-attn"]; ok { // a switch in older builds
		if given["flash-attn"] = flags["flash-attn"]; flags["flash-attn"] == "" {
			given["flash-attn"] = "on"
		}
	}
	if _, ok := flags["cpu-moe"]; ok {
		given["n-cpu-moe"] = "9999"
	}
	switch n := flags["gpu-layers"]; n {
	case "", "auto", "-1":
	case "all", "-2":
		given["gpu-layers"] = "9999"
	default:
		given["gpu-layers"] = n
	}
	if name := flags["hf"]; name != "" {
		given["model"], given["quant"] = repoModel(name)
	}
	return llamaContext(flags, given)
}

// llamaContext divides the context among the requests, as llama-server does unless
// they share it.
func llamaContext(flags, given map[string]string) error {
	number := func(name string) (n int64, err error) {
		if text := flags[name]; text != "" {
			if n, err = strconv.ParseInt(text, 10, 32); err != nil {
				return 0, fmt.Errorf("the command's value for -%s: %q is not a number", name, text)
			}
		}
		return max(n, 0), nil
	}
	context, err := number("c")
	if err != nil {
		return err
	}
	requests, err := number("np")
	if err != nil {
		return err
	}
	if requests > 0 {
		given["max-num-seqs"] = strconv.FormatInt(requests, 10)
		if given["kv-unified"] == "" {
			context /= requests
		}
	}
	if context > 0 {
		given["max-model-len"] = strconv.FormatInt(context, 10)
	}
	return nil
}

// repoModel is the model of a repository of GGUF files, and the format after a colon.
func repoModel(name string) (m, quant string) {
	name, quant, _ = strings.Cut(name, ":")
	for _, suffix := range []string{"-GGUF", "-gguf", "-i1-GGUF"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name, strings.ToLower(quant)
}

// ollamaCommand turns Ollama's environment and the name of a model into flags of plan.
func ollamaCommand(words, rest []string, given map[string]string) (left []string) {
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || !strings.HasPrefix(name, "OLLAMA_") {
			continue
		}
		switch name {
		case "OLLAMA_CONTEXT_LENGTH":
			given["max-model-len"] = value
		case "OLLAMA_NUM_PARALLEL":
			given["max-num-seqs"] = value
		case "OLLAMA_KV_CACHE_TYPE":
			given["kv-dtype"] = value
		case "OLLAMA_FLASH_ATTENTION":
			given["flash-attn"] = value
		case "OLLAMA_HOST", "OLLAMA_KEEP_ALIVE", "OLLAMA_MODELS", "OLLAMA_DEBUG", "OLLAMA_ORIGINS":
		default:
			left = append(left, name)
		}
	}
	for _, word := range rest {
		if !strings.HasPrefix(word, "-") {
			given["model"], given["quant"] = ollamaModel(word)
			break
		}
	}
	return left
}

// ollamaSizes are the sizes that Ollama's library takes where a name has none.
var ollamaSizes = map[string]string{
	"llama3": "8b", "llama3.1": "8b", "llama3.2": "3b", "llama3.3": "70b", "qwen3": "8b", "qwen2.5": "7b", "qwen2.5-coder": "7b", "qwen2.5vl": "7b",
	"qwen3-coder": "30b", "qwen3-vl": "8b", "gemma2": "9b", "gemma3": "4b", "gpt-oss": "20b", "deepseek-r1": "8b", "mistral": "7b", "mixtral": "8x7b", "qwq": "32b",
}

// ollamaModel returns the catalog's model for a name of Ollama's library, the name
// itself if there is none, and the format in its tag.
func ollamaModel(name string) (m, quant string) {
	if repo, ok := strings.CutPrefix(name, "hf.co/"); ok {
		return repoModel(repo)
	}
	family, tag, _ := strings.Cut(strings.ToLower(name), ":")
	size, rest, _ := strings.Cut(tag, "-")
	if size == "" || size == "latest" {
		size = ollamaSizes[family]
	}
	for _, word := range strings.Split(rest, "-") {
		if model.KnownQuant(word) {
			quant = word
		}
	}
	plain := family
	for i := range family { // llama3.1 is Llama-3.1
		if i > 0 && family[i] >= '0' && family[i] <= '9' && family[i-1] >= 'a' && family[i-1] <= 'z' {
			plain = family[:i] + "-" + family[i:]
			break
		}
	}
	for _, begin := range []string{family + "-" + size, plain + "-" + size, "meta-" + plain + "-" + size, strings.Replace(family, "vl", "-vl", 1) + "-" + size,
		family + "-distill-llama-" + size, family + "-distill-qwen-" + size, plain, family} {
		for _, known := range model.Catalog() {
			short := strings.ToLower(known[strings.LastIndexByte(known, '/')+1:])
			if short == begin || strings.HasPrefix(short, begin+"-") {
				return known, quant
			}
		}
	}
	return name, quant
}
