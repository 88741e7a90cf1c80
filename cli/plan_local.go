package cli

import (
	"fmt"
	"strconv"
	"strings"

	"slices"
	"strandline/plan/engine"
	"strandline/plan/model"
)

// llamaCommand turns the settings of llama-server into flags of plan.
func llamaCommand(settings map[engine.Setting]string, given map[string]string) error {
	for to, value := range settings {
		switch {
		case to == engine.AllKeys, to == engine.Unified:
			given[string(to)] = "true"
		case to == engine.Flash && value == "": // a switch in older builds
			given[string(to)] = "on"
		case to == engine.AllMoE:
			given[string(engine.HostMoE)] = "9999"
		case value == "", to == engine.Repo, to == engine.Context, to == engine.Requests:
		case to == engine.HostMoE && given[string(to)] != "":
		case to == engine.Layers && (value == "auto" || value == "-1"):
		case to == engine.Layers && (value == "all" || value == "-2"):
			given[string(to)] = "9999"
		default:
			given[string(to)] = value
		}
	}
	if name := settings[engine.Repo]; name != "" {
		given["model"], given["quant"] = repoModel(name)
	}
	return llamaContext(settings, given)
}

// llamaContext divides the context among the requests, as llama-server does unless
// they share it.
func llamaContext(settings map[engine.Setting]string, given map[string]string) error {
	number := func(flag string, of engine.Setting) (n int64, err error) {
		if text := settings[of]; text != "" {
			if n, err = strconv.ParseInt(text, 10, 32); err != nil {
				return 0, fmt.Errorf("the command's value for -%s: %q is not a number", flag, text)
			}
		}
		return max(n, 0), nil
	}
	context, err := number("c", engine.Context)
	if err != nil {
		return err
	}
	requests, err := number("np", engine.Requests)
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
func ollamaCommand(e *engine.Engine, words, rest []string, given map[string]string) (left []string) {
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok || !strings.HasPrefix(name, "OLLAMA_") {
			continue
		}
		if to := e.SettingOf(name); to != "" {
			given[string(to)] = value
		} else if !slices.Contains(e.NoMemory, name) {
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
