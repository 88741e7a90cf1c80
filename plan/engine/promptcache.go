package engine

import (
	"path"
	"strconv"
	"strings"
)

// PromptCache is the bound of the cache in main memory that llama.cpp's server keeps of earlier
// prompts, bytes; -1 is no bound. It is nil of other programs. llama-cli has the cache in newer
// releases alone, so it counts where a flag sets it. variable is one of the environment.
func PromptCache(args []string, variable func(name string) string) *int64 {
	if len(args) == 0 {
		return nil
	}
	program := strings.TrimSuffix(path.Base(strings.ReplaceAll(args[0], `\`, "/")), ".exe")
	text, e := "", Named(LlamaCPP)
	switch program {
	case "llama-server":
		if text = variable("LLAMA_ARG_CACHE_RAM"); text == "" {
			text = strconv.Itoa(DefaultCacheRAM)
		}
	case "llama-cli":
	default:
		return nil
	}
	for i, arg := range args[1:] {
		flag, value, joined := strings.Cut(arg, "=")
		if !strings.HasPrefix(flag, "-") || e.SettingOf(strings.TrimLeft(flag, "-")) != CacheRAM {
			continue
		}
		if text = value; !joined && i+2 < len(args) {
			text = args[i+2]
		}
	}
	mib, err := strconv.ParseInt(text, 10, 40)
	if err != nil {
		return nil
	}
	if mib = max(mib, -1); mib > 0 {
		mib <<= 20
	}
	return &mib
}
