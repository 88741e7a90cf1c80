package printed

import (
	"bytes"
	"math"
	"strings"

	"strandline/logs/engine"
)

// ofCache is the name of the column of a KV cache.
const ofCache = "KV cache in use"

// A cache is the KV cache of an engine, as far as its log states its size.
type cache struct {
	*levels
	bytes  float64 // 0 if the log does not state it
	tokens float64
	usages []engine.Usage // of a line
}

// state adds how full the cache is: a share of 1, with the number of requests in progress,
// which is NaN if the line does not state it.
func (c *cache) state(line []byte, process, name string, share, requests float64) {
	if math.IsNaN(share) || share < 0 || share > 1.5 {
		return
	}
	at, ok := c.clock.Read(string(line))
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

type vllm struct{ cache }

func newVLLM(l *levels) reader { return &vllm{cache{levels: l}} }

func (v *vllm) line(line []byte) {
	if !bytes.Contains(line, []byte("KV ")) {
		return
	}
	if bytes.Contains(line, []byte(" memory")) {
		if n := engine.VLLMRoom(line); n > 0 {
			if v.bytes == 0 || n < v.bytes { // the workers have as many blocks as the smallest has room for
				v.bytes = n
			}
			return
		}
	}
	v.usages = engine.VLLMUsage(v.usages[:0], line)
	for _, u := range v.usages {
		name := nameOf(u.Cache)
		if u.Cache != "" && u.Share == 0 && v.byKey[key{u.Process, name}] == nil {
			continue // it is not used
		}
		v.state(line, u.Process, name, u.Share, u.Requests)
	}
}

// nameOf is the name of the column of a cache.
func nameOf(cache string) string { return strings.TrimSuffix(ofCache+" "+cache, " ") }

type sglang struct{ cache }

func newSGLang(l *levels) reader { return &sglang{cache{levels: l}} }

func (s *sglang) line(line []byte) {
	if !bytes.Contains(line, []byte(" batch")) {
		if s.bytes == 0 && bytes.Contains(line, []byte("Cache is allocated")) { // stated once for each layer's kind
			if r := engine.SGLangRoom(line); r.Bytes > 0 && r.Bytes < 1<<50 && r.Tokens > 0 {
				s.bytes, s.tokens = r.Bytes, r.Tokens
			}
		}
		return
	}
	s.usages = engine.SGLangUsage(s.usages[:0], line)
	for _, u := range s.usages {
		if u.Cache == "" && s.tokens > 0 && u.Tokens <= s.tokens { // which is more exact
			u.Share = u.Tokens / s.tokens
		}
		s.state(line, u.Process, nameOf(u.Cache), u.Share, u.Requests)
	}
}
