package engine

import (
	"cmp"
	"path"
	"strconv"
	"strings"
)

// Caches are the bounds of caches that programs fill in main memory; -1 is no bound, nil no such cache.
type Caches struct {
	Prompts *int64 // bytes of earlier prompts that llama.cpp's server keeps
	Tasks   *int64 // whose events Ray's gcs_server keeps
}

// CachesOf are those of a program by its arguments, of which the first is its name, and the
// variables of its environment.
func CachesOf(args []string, variable func(name string) string) (c Caches) {
	if len(args) == 0 {
		return c
	}
	switch program := strings.TrimSuffix(path.Base(strings.ReplaceAll(args[0], `\`, "/")), ".exe"); program {
	case "llama-server", "llama-cli":
		c.Prompts = promptCache(program, args[1:], variable)
	case "gcs_server":
		c.Tasks = taskEvents(variable)
	}
	return c
}

// taskEvents is how many tasks have events in Ray's gcs_server. Source: Ray, ray_config_def.h,
// task_events_max_num_task_in_gcs; without one above 0, it keeps all.
func taskEvents(variable func(name string) string) *int64 {
	const usual = 100_000
	n, err := strconv.ParseInt(variable("RAY_task_events_max_num_task_in_gcs"), 10, 32)
	switch {
	case err != nil:
		n = usual
	case n <= 0:
		n = -1
	}
	return &n
}

// promptCache is the bound of the cache of llama.cpp's programs. llama-cli has the cache in newer
// releases alone, so it counts where a flag sets it.
func promptCache(program string, args []string, variable func(name string) string) *int64 {
	text, e := "", Named(LlamaCPP)
	if program == "llama-server" {
		text = cmp.Or(variable("LLAMA_ARG_CACHE_RAM"), strconv.Itoa(DefaultCacheRAM))
	}
	for i, arg := range args {
		flag, value, joined := strings.Cut(arg, "=")
		if !strings.HasPrefix(flag, "-") || e.SettingOf(strings.TrimLeft(flag, "-")) != CacheRAM {
			continue
		}
		if text = value; !joined && i+1 < len(args) {
			text = args[i+1]
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
