package printed

import (
	"math"
	"strconv"

	"strandline/internal/lazyregexp"
)

// promptCache is the cache of prompts that llama.cpp's server keeps in the host's memory, 8 GiB
// by default (tools/server/server-task.cpp, --cache-ram).
type promptCache struct {
	*levels
	limit float64 // bytes, 0 if no line states it
	last  float64
}

func newPromptCache(l *levels) reader { return &promptCache{levels: l} }

var (
	cacheState = lazyregexp.New(`cache state: \d+ prompts, ([\d.]+) MiB(?: \(limits: ([\d.]+) MiB)?`)
	cacheLimit = lazyregexp.New(`prompt cache is enabled, size limit: ([\d.]+) MiB`)
	cacheFull  = lazyregexp.New(`cache size limit reached, removing oldest|making room for prompt cache entry`)
)

func (c *promptCache) line(line []byte) {
	text := string(line)
	const mib = 1 << 20
	if m := cacheLimit.FindStringSubmatch(text); m != nil {
		c.limit = size(m[1]) * mib
	}
	var level float64
	switch m := cacheState.FindStringSubmatch(text); {
	case m != nil:
		if level = size(m[1]) * mib; m[2] != "" {
			c.limit = size(m[2]) * mib
		}
		c.last = level
	case cacheFull.MatchString(text) && c.limit > 0 && c.last == 0:
		level = c.limit // it was full before this line
	default:
		return
	}
	c.begin(math.NaN())
	if at, ok := c.clock.Read(text); ok {
		c.date(at)
	}
	if column := c.add("", "llama.cpp's prompt cache in host memory (--cache-ram)", max(level, zero), c.limit); column != nil {
		column.Evicts = true
	}
}

func (c *promptCache) end() error { return nil }

func size(text string) float64 {
	x, _ := strconv.ParseFloat(text, 64)
	return x
}
