package samples

import (
	"strconv"
	"strings"

	"strandline/plan/engine"
	"strandline/units"
)

// promptCache is the bound of the cache in main memory that llama.cpp's server keeps of earlier prompts, bytes; 0 if
// a command has none, or no bound.
func promptCache(command string) int64 {
	words := strings.Fields(command)
	if len(words) == 0 {
		return 0
	}
	e, _ := engine.OfCommand(words[:1])
	if e == nil || e.Name != engine.LlamaCPP {
		return 0
	}
	mib := int64(engine.DefaultCacheRAM)
	for i, word := range words[1:] {
		flag, value, joined := strings.Cut(word, "=")
		if !strings.HasPrefix(flag, "-") || e.SettingOf(strings.TrimLeft(flag, "-")) != engine.CacheRAM {
			continue
		}
		if !joined && i+2 < len(words) {
			value = words[i+2]
		}
		mib, _ = strconv.ParseInt(value, 10, 40)
	}
	return max(mib, 0) << 20
}

// cacheDoubt states that growth so far can be that cache.
func cacheDoubt(command string, s *series) string {
	grown := int64(s.high - s.low)
	bound := promptCache(command)
	if grown > bound+bound/16 { // what malloc adds
		return ""
	}
	return "llama.cpp's server keeps earlier prompts in up to " + units.Bytes(bound) + " of main memory (`--cache-ram`), and this is " + units.Bytes(grown) +
		"; to know, watch it until the cache is full, or start it with a smaller one"
}
