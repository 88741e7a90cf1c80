package samples

import (
	"fmt"
	"strings"

	"strandline/host/sampling/sample"
	"strandline/plan/engine"
	"strandline/units"
)

// gcsTasks are those whose events Ray's gcs_server keeps, and maxGCSTask bounds one, bytes: 4.2 KiB
// were measured. Source: Ray, ray_config_def.h, task_events_max_num_task_in_gcs.
const gcsTasks, maxGCSTask = 100_000, 8 << 10

// promptCache is the bound of the cache in main memory that llama.cpp's server keeps of earlier
// prompts, as [engine.PromptCache] gives it. Older recordings have the command alone.
func promptCache(p *sample.Process) *int64 {
	if p.PromptCache != nil {
		return p.PromptCache
	}
	return engine.PromptCache(strings.Fields(p.Command), func(string) string { return "" })
}

// CacheDoubt states that growth of so many bytes can be a cache that a program is known to fill up
// to a bound; it is empty where it cannot.
func CacheDoubt(p *sample.Process, grown int64) string {
	if p.Name == "gcs_server" && grown < gcsTasks*maxGCSTask {
		return fmt.Sprintf("Ray's gcs_server keeps events of the last %s tasks (`RAY_task_events_max_num_task_in_gcs`), some KiB each. This is %s. To know, watch that many tasks, or set a smaller number",
			units.Count(gcsTasks), units.Bytes(grown))
	}
	bound := promptCache(p)
	if bound == nil || *bound <= 0 || grown > *bound+*bound/16 { // what malloc adds
		return ""
	}
	return "llama.cpp's server keeps earlier prompts in up to " + units.Bytes(*bound) + " of main memory (`--cache-ram`), and this is " + units.Bytes(grown) +
		"; to know, go on until the cache is full, or start it with a smaller one"
}

// unboundedCache states that the cache explains growth without an end, "" if it has a bound.
func unboundedCache(p *sample.Process) string {
	if bound := promptCache(p); bound == nil || *bound >= 0 {
		return ""
	}
	return "llama.cpp's server keeps all earlier prompts in main memory, since its cache has no bound (`--cache-ram -1`); set one"
}
