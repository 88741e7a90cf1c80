package printed

import (
	"iter"
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

// behind yields what precedes some words in a line and what follows them, at each place where
// they are: an expression for the whole line would take ten times as long.
func behind(line, words string) iter.Seq2[string, string] {
	return func(yield func(before, after string) bool) {
		for at := 0; ; at += len(words) {
			i := strings.Index(line[at:], words)
			if i < 0 {
				return
			}
			if at += i; !yield(line[:at], line[at+len(words):]) {
				return
			}
		}
	}
}

// digits is how many a text begins with.
func digits(text string) (n int) {
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n
}

// decimal is the number that a text begins with, such as 12 or 12.5, and what follows it; NaN
// if there is none.
func decimal(text string) (x float64, rest string) {
	n := digits(text)
	if n == 0 {
		return math.NaN(), text
	}
	if n < len(text) && text[n] == '.' {
		if places := digits(text[n+1:]); places > 0 {
			n += 1 + places
		}
	}
	return number(text[:n]), text[n:]
}

// whole is the whole number behind some words, with what ends it; NaN if there is none.
func whole(line, words, end string) float64 {
	for _, after := range behind(line, words) {
		if n := digits(after); n > 0 && strings.HasPrefix(after[n:], end) {
			return number(after[:n])
		}
	}
	return math.NaN()
}

type vllm struct{ cache }

func newVLLM(l *levels) reader { return &vllm{cache{levels: l}} }

var vllmRoom = lazyregexp.New(`(?:Available KV cache memory: |memory reserved for KV Cache is )([\d.]+) ?GiB`)

func (v *vllm) line(text string) {
	if !strings.Contains(text, "KV ") {
		return
	}
	if strings.Contains(text, " memory") {
		if n := first(vllmRoom, text); n > 0 && n < 1<<20 {
			if n *= 1 << 30; v.bytes == 0 || n < v.bytes { // the workers have as many blocks as the smallest has room for
				v.bytes = n
			}
			return
		}
	}
	found := 0
	for before, after := range behind(text, "KV cache usage: ") {
		percent, rest := decimal(after)
		if math.IsNaN(percent) || !strings.HasPrefix(rest, "%") {
			continue
		}
		const most = 2
		if found++; found > most {
			break
		}
		process, name, share := vllmEngine(text), ofCache, percent/100
		if strings.HasSuffix(before, "CPU ") {
			name = "KV cache in use on the CPU"
			if share == 0 && v.byKey[key{process, name}] == nil {
				continue // it is not used
			}
		}
		v.state(text, process, name, share, whole(text, "Running: ", " reqs"))
	}
}

// vllmEngine is the engine that a line names, "" if it names none: "Engine 000:".
func vllmEngine(text string) string {
	for before, after := range behind(text, "Engine ") {
		if n := digits(after); n > 0 && strings.HasPrefix(after[n:], ":") && (before == "" || !wordly(before[len(before)-1])) {
			return "engine " + after[:n]
		}
	}
	return ""
}

func wordly(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

type sglang struct{ cache }

func newSGLang(l *levels) reader { return &sglang{cache{levels: l}} }

var (
	sglangRoom    = lazyregexp.New(`KV Cache is allocated\. .*#tokens: (\d+), K size: ([\d.]+) GB, V size: ([\d.]+) GB`)
	sglangRoomMLA = lazyregexp.New(`KV Cache is allocated\. .*#tokens: (\d+), KV size: ([\d.]+) GB`)
)

func (s *sglang) line(text string) {
	if !strings.Contains(text, " batch") {
		s.room(text)
		return
	}
	process, requests := sglangRankOf(text), whole(text, "#running-req: ", "")
	found := 0
	for before, after := range behind(text, "usage: ") {
		share, _ := decimal(after)
		kind, ok := sglangKind(before)
		if !ok || math.IsNaN(share) {
			continue
		}
		const most = 3
		if found++; found > most {
			break
		}
		name := ofCache
		switch {
		case kind != "":
			name += " (" + kind + ")"
		case s.tokens > 0:
			if n := sglangTokens(text); !math.IsNaN(n) && n <= s.tokens { // which is more exact
				share = n / s.tokens
			}
		}
		s.state(text, process, name, share, requests)
	}
}

// sglangRankOf is the rank that a line names, "" if it names none: "DP1 TP3]".
func sglangRankOf(text string) string {
	for part := range strings.SplitAfterSeq(text, "]") {
		before, ok := strings.CutSuffix(part, "]")
		if !ok {
			break
		}
		if rank := rankAt(before); rank != "" {
			return rank
		}
	}
	return ""
}

// rankAt is the rank with which a text ends: the parts of TP, EP and PP, and before them, with a
// blank, that of DP.
func rankAt(text string) string {
	at := len(text)
	for {
		end := at
		if end > 0 && text[end-1] == ' ' {
			end--
		}
		digit := startOfDigits(text[:end])
		if digit == end || digit < 2 || text[digit-1] != 'P' || strings.IndexByte("TEP", text[digit-2]) < 0 {
			break
		}
		at = digit - 2
	}
	if at == len(text) {
		return ""
	}
	if before, ok := strings.CutSuffix(text[:at], " "); ok {
		if digit := startOfDigits(before); digit < len(before) && strings.HasSuffix(before[:digit], "DP") {
			at = digit - 2
		}
	}
	return strings.TrimSpace(text[at:])
}

// startOfDigits is where the digits begin with which a text ends.
func startOfDigits(text string) int {
	n := len(text)
	for n > 0 && text[n-1] >= '0' && text[n-1] <= '9' {
		n--
	}
	return n
}

// sglangKind is whose usage it is by the words before: "full token ", "swa ", or "token " of
// all; false if it is not of tokens.
func sglangKind(before string) (kind string, ok bool) {
	bare := strings.TrimSuffix(before, "token ")
	for _, kind := range []string{"full", "swa", "mamba"} {
		if strings.HasSuffix(bare, kind+" ") {
			return kind, true
		}
	}
	return "", len(bare) < len(before)
}

// sglangTokens is how many tokens are in use, NaN if a line does not state it.
func sglangTokens(text string) float64 {
	for before, after := range behind(text, "token: ") {
		if n := digits(after); n > 0 && strings.HasPrefix(after[n:], ",") && before != "" && strings.IndexByte("# ", before[len(before)-1]) >= 0 {
			return number(after[:n])
		}
	}
	return math.NaN()
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
