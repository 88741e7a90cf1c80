package samples

import (
	"fmt"
	"strings"

	"strandline/host/sampling/sample"
	"strandline/plan/engine"
	"strandline/units"
)

// maxTask bounds the events of a task in Ray's gcs_server, bytes: 4.2 KiB were measured.
const maxTask = 8 << 10

// Caches are those of a process that was sampled. Older recordings have the command alone.
func Caches(p *sample.Process) engine.Caches {
	if p.PromptCache != nil || p.TaskEvents != nil {
		return engine.Caches{Prompts: p.PromptCache, Tasks: p.TaskEvents}
	}
	return engine.CachesOf(strings.Fields(p.Command), func(string) string { return "" })
}

// CacheDoubt states that growth of so many bytes can be a cache that a program is known to fill up
// to a bound; it is empty where it cannot.
func CacheDoubt(c engine.Caches, grown int64) string {
	if n := c.Tasks; n != nil && grown < *n*maxTask {
		return fmt.Sprintf("Ray's gcs_server keeps events of the last %s tasks (`RAY_task_events_max_num_task_in_gcs`), some KiB each. This is %s. To know, watch that many tasks, or set a smaller number",
			units.Count(*n), units.Bytes(grown))
	}
	bound := c.Prompts
	if bound == nil || *bound <= 0 || grown > *bound+*bound/16 { // what malloc adds
		return ""
	}
	return "llama.cpp's server keeps earlier prompts in up to " + units.Bytes(*bound) + " of main memory (`--cache-ram`), and this is " + units.Bytes(grown) +
		"; to know, go on until the cache is full, or start it with a smaller one"
}

// unboundedCache states that a cache explains growth without an end, "" if it has a bound.
func unboundedCache(c engine.Caches) string {
	switch {
	case c.Tasks != nil && *c.Tasks < 0:
		return "Ray's gcs_server keeps events of all tasks, since it has no bound (`RAY_task_events_max_num_task_in_gcs`); set one"
	case c.Prompts == nil || *c.Prompts >= 0:
		return ""
	}
	return "llama.cpp's server keeps all earlier prompts in main memory, since its cache has no bound (`--cache-ram -1`); set one"
}
