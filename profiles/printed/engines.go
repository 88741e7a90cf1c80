package printed

import (
	"math"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
)

// ofCache is the name of the column of a KV cache.
const ofCache = "KV cache in use"

// A cache is the KV cache of an engine, as far as its log states its size.
type cache struct {
	*levels
	bytes  float64 // 0 if the log does not state it
	tokens float64
}

// state adds how full the cache is: a share of 1, with the number of requests in progress,
// which is NaN if the line does not state it.
func (c *cache) state(line, process, name string, share, requests float64) {
	if math.IsNaN(share) || share < 0 || share > 1.5 {
		return
	}
	at, ok := c.clock.Read(line)
	if !ok {
		at = math.NaN()
	}
	c.begin(at)
	k := c.byKey[key{process, name}]
	inBytes := c.bytes > 0 && name == ofCache
	if k != nil {
		inBytes = !k.Percent
	}
	level, limit := max(100*share, zero), 100.0
	if inBytes {
		level, limit = max(share*c.bytes, zero), c.bytes
	}
	if k = c.add(process, name, level, limit); k == nil {
		return
	}
	k.Percent, k.Cache = !inBytes, true
	if !math.IsNaN(requests) {
		k.Requests = append(k.Requests, requests)
	}
}

func (c *cache) end() error { return nil }

// number is a number as engines print it, NaN if it is none.
func number(text string) float64 {
	x, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil || math.IsInf(x, 0) {
		return math.NaN()
	}
	return x
}

// first is what the first group of a regular expression matches in a line, as a number;
// NaN if it does not match.
func first(re *lazyregexp.Regexp, line string) float64 {
	if m := re.FindStringSubmatch(line); m != nil {
		return number(m[1])
	}
	return math.NaN()
}

type vllm struct{ cache }

func newVLLM(l *levels) reader { return &vllm{cache{levels: l}} }

var (
	vllmRoom    = lazyregexp.New(`(?:Available KV cache memory: |memory reserved for KV Cache is )([\d.]+) ?GiB`)
	vllmUsage   = lazyregexp.New(`(?:(GPU|CPU) )?KV cache usage: (\d+(?:\.\d+)?)%`)
	vllmEngine  = lazyregexp.New(`\bEngine (\d+):`)
	vllmRunning = lazyregexp.New(`Running: (\d+) reqs`)
)

func (v *vllm) line(text string) {
	if !strings.Contains(text, "KV ") {
		return
	}
	if n := first(vllmRoom, text); n > 0 && n < 1<<20 {
		if n *= 1 << 30; v.bytes == 0 || n < v.bytes { // the workers have as many blocks as the smallest has room for
			v.bytes = n
		}
		return
	}
	for _, m := range vllmUsage.FindAllStringSubmatch(text, 2) {
		process, name, share := "", ofCache, number(m[2])/100
		if e := vllmEngine.FindStringSubmatch(text); e != nil {
			process = "engine " + e[1]
		}
		if m[1] == "CPU" {
			name = "KV cache in use on the CPU"
			if share == 0 && v.byKey[key{process, name}] == nil {
				continue // it is not used
			}
		}
		v.state(text, process, name, share, first(vllmRunning, text))
	}
}

type sglang struct{ cache }

func newSGLang(l *levels) reader { return &sglang{cache{levels: l}} }

var (
	sglangRoom    = lazyregexp.New(`KV Cache is allocated\. .*#tokens: (\d+), K size: ([\d.]+) GB, V size: ([\d.]+) GB`)
	sglangRoomMLA = lazyregexp.New(`KV Cache is allocated\. .*#tokens: (\d+), KV size: ([\d.]+) GB`)
	sglangTokens  = lazyregexp.New(`[# ]token: (\d+),`)
	sglangUsage   = lazyregexp.New(`(?:(full|swa|mamba) (?:token )?|token )usage: (\d+(?:\.\d+)?)`)
	sglangRank    = lazyregexp.New(`((?:DP\d+ )?(?:[TEP]P\d+ ?)+)\]`)
	sglangRunning = lazyregexp.New(`#running-req: (\d+)`)
)

func (s *sglang) line(text string) {
	if !strings.Contains(text, " batch") {
		s.room(text)
		return
	}
	process := ""
	if m := sglangRank.FindStringSubmatch(text); m != nil {
		process = strings.TrimSpace(m[1])
	}
	requests := first(sglangRunning, text)
	for _, m := range sglangUsage.FindAllStringSubmatch(text, 3) {
		name, share := ofCache, number(m[2])
		switch {
		case m[1] != "":
			name += " (" + m[1] + ")"
		case s.tokens > 0:
			if n := first(sglangTokens, text); !math.IsNaN(n) && n <= s.tokens { // which is more exact
				share = n / s.tokens
			}
		}
		s.state(text, process, name, share, requests)
	}
}

// room reads the size of the cache, which is stated once for each layer's kind.
func (s *sglang) room(text string) {
	if s.bytes > 0 || !strings.Contains(text, "Cache is allocated") {
		return
	}
	m := sglangRoom.FindStringSubmatch(text)
	if m == nil {
		m = sglangRoomMLA.FindStringSubmatch(text)
	}
	if m == nil {
		return
	}
	bytes := 0.0
	for _, part := range m[2:] {
		bytes += number(part) * (1 << 30) // it divides by 1024
	}
	if tokens := number(m[1]); bytes > 0 && bytes < 1<<50 && tokens > 0 {
		s.bytes, s.tokens = bytes, tokens
	}
}
