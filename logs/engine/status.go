package engine

import (
	"bytes"
	"math"
	"strconv"

	"strandline/logs/text"
)

// A Usage is how full a KV cache is, as a line of an engine states it that serves. Figures that
// it does not state are NaN.
type Usage struct {
	Process  string  // the engine or rank that the line names; "" if it names none
	Cache    string  // which cache it is, as in "on the CPU"; "" if there is one
	Share    float64 // of 1
	Tokens   float64 // in use
	Requests float64 // in progress
}

// A Room is the size of a KV cache: bytes, and tokens if they are stated, else 0.
type Room struct{ Bytes, Tokens float64 }

var (
	vllmUsage     = text.NewWording("KV cache usage: {number}%")
	vllmRunning   = text.NewWording("Running: {digits} reqs")
	vllmEngine    = text.NewWording("Engine {digits}:")
	vllmRooms     = []*text.Wording{text.NewWording("Available KV cache memory: {GiB}"), text.NewWording("memory reserved for KV Cache is {GiB}")}
	sglangUsage   = text.NewWording("usage: {number}")
	sglangRunning = text.NewWording("#running-req: {digits}")
	sglangTokens  = text.NewWording("token: {digits},")
	sglangRooms   = []*text.Wording{
		text.NewWording("KV Cache is allocated. {…}#tokens: {digits}, K size: {number} GB, V size: {number} GB"),
		text.NewWording("KV Cache is allocated. {…}#tokens: {digits}, KV size: {number} GB"),
	}
)

// number is a figure as engines print it; NaN if it is none.
func number(figure []byte) float64 {
	x, err := strconv.ParseFloat(string(figure), 64)
	if err != nil {
		return math.NaN()
	}
	return x
}

// first is the first figure of a wording in a line, where what precedes it is as it should be; NaN if it
// is not there.
func first(line []byte, w *text.Wording, precedes func(before []byte) bool) (x float64, figure []byte) {
	var m text.Match
	for at, next := m.Next(line, 0, w); at >= 0; at, next = m.Next(line, next, w) {
		if precedes == nil || precedes(line[:at]) {
			return number(m.Text[0]), m.Text[0]
		}
	}
	return math.NaN(), nil
}

// VLLMUsage appends what a line of vLLM states of its caches.
func VLLMUsage(out []Usage, line []byte) []Usage {
	var m text.Match
	for at, next := m.Next(line, 0, vllmUsage); at >= 0; at, next = m.Next(line, next, vllmUsage) {
		const maxUsages = 2
		if len(out) == maxUsages {
			break
		}
		u := Usage{Share: number(m.Text[0]) / 100, Tokens: math.NaN()}
		if text.HasSuffix(line[:at], "CPU ") {
			u.Cache = "on the CPU"
		}
		out = append(out, u)
	}
	if len(out) == 0 {
		return out
	}
	requests, _ := first(line, vllmRunning, nil)
	_, engine := first(line, vllmEngine, func(before []byte) bool { return len(before) == 0 || !text.Wordly(before[len(before)-1]) })
	for i := range out {
		if out[i].Requests = requests; engine != nil {
			out[i].Process = "engine " + string(engine)
		}
	}
	return out
}

// VLLMRoom is the room for the cache that a line of vLLM states, in bytes; 0 if it states none.
func VLLMRoom(line []byte) float64 {
	var m text.Match
	for _, w := range vllmRooms {
		if at, _ := m.Next(line, 0, w); at >= 0 {
			if size, _, ok := sized(m.Text[0]); ok {
				return float64(size)
			}
		}
	}
	return 0
}

// SGLangUsage appends what a line of SGLang states of its caches.
func SGLangUsage(out []Usage, line []byte) []Usage {
	var m text.Match
	for at, next := m.Next(line, 0, sglangUsage); at >= 0; at, next = m.Next(line, next, sglangUsage) {
		const maxUsages = 3
		if len(out) == maxUsages {
			break
		}
		if cache, ok := sglangCache(line[:at]); ok {
			out = append(out, Usage{Cache: cache, Share: number(m.Text[0])})
		}
	}
	if len(out) == 0 {
		return out
	}
	requests, _ := first(line, sglangRunning, nil)
	tokens, _ := first(line, sglangTokens, func(before []byte) bool { return text.HasSuffix(before, "#") || text.HasSuffix(before, " ") })
	rank := sglangRank(line)
	for i := range out {
		out[i].Process, out[i].Tokens, out[i].Requests = rank, tokens, requests
	}
	return out
}

// sglangCache is whose usage it is by the words before: "full token ", "swa ", or "token " of
// all; false if it is not of tokens.
func sglangCache(before []byte) (cache string, ok bool) {
	bare := bytes.TrimSuffix(before, []byte("token "))
	for _, cache := range []string{"full", "swa", "mamba"} {
		if text.HasSuffix(bare, cache+" ") {
			return "(" + cache + ")", true
		}
	}
	return "", len(bare) < len(before)
}

// sglangRank is the rank that a line names at the end of a part in brackets, "DP1 TP3]"; "" if it names none.
func sglangRank(line []byte) string {
	for {
		end := bytes.IndexByte(line, ']')
		if end < 0 {
			return ""
		}
		begin := end
		for stop := end; stop > 0; {
			at := bytes.LastIndexAny(line[:stop], " [")
			if at+1 == stop || !parallel(line[at+1:stop]) {
				break
			}
			if begin, stop = at+1, at; at >= 0 && line[at] == '[' {
				break
			}
		}
		if begin < end {
			return string(line[begin:end])
		}
		line = line[end+1:]
	}
}

// SGLangRoom is the size of the cache that a line of SGLang states; 0 if it states none. SGLang
// divides by 1024.
func SGLangRoom(line []byte) (r Room) {
	var m text.Match
	for _, w := range sglangRooms {
		if at, _ := m.Next(line, 0, w); at >= 0 {
			r = Room{Tokens: number(m.Text[0])}
			for _, part := range m.Text[1:m.Count] {
				r.Bytes += number(part) * (1 << 30)
			}
			return r
		}
	}
	return r
}
