package logs

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// EngineLog is what the log of an inference engine or of a trainer contains about memory.
// No value in it is 0 because it was not logged: a missing figure is not in the maps.
type EngineLog struct {
	Engine  string // "vllm", "sglang", "tensorrt-llm", "llama.cpp", "" if no line shows it
	Version string // as the log has it
	// Setup are settings by their names: model, tp, pp, dp, max_len, dtype, quant,
	// kv_dtype, eager, fraction, chunk, graphs (the largest batch captured), v0 (vLLM's first engine).
	Setup map[string]string
	Ranks []Rank
	// Failure is the last statement of the log that memory ran out, other than PyTorch's;
	// nil if there is none.
	Failure *Failure
}

// Rank is what one process of the log states about its last start.
type Rank struct {
	name string // as its lines begin, "" if they do not state it
	// Figures are by the names below.
	Figures map[string]Stated
	tokens  *int64   // that the KV cache holds
	blocks  *int64   // of the KV cache
	Length  *int64   // tokens of a request, of Concurrency
	many    *float64 // requests of that length at once

	parts map[string]int64 // sizes of devices, which are stated again
	ended bool             // the pools of SGLang are complete
}

// Names of the sizes of a rank.
const (
	LogWeights    = "weights"
	LogConsumed   = "weights and non-torch" // newer releases of vLLM log the sum
	LogNonTorch   = "non-torch"
	LogActivation = "activations"
	LogKV         = "KV cache"
	LogGraphs     = "CUDA graphs"
	LogTotal      = "GPU"
	LogTrain      = "training peak"
	LogPool       = "KV cache with its tables" // by the difference of what is free; SGLang to 0.4
)

// Free memory at moments of SGLang's start, of which differences are taken.
const (
	freeFirst  = "free before the weights"
	freeLoaded = "free after the weights"
	freePool   = "free after the pool"
	freeBefore = "free before the graphs"
	freeAfter  = "free after the graphs"
)

// mostWorkers are as many as a log is read for; the largest runs have some thousands.
const mostWorkers = 1 << 14

// ScanEngine reads a log to its end. Of several starts the last one counts, and of
// several figures of a rank the last one. A text whose lines seem to be broken at a width is
// also read with its lines joined, and the reading that finds more counts.
func ScanEngine(r io.Reader) (*EngineLog, error) {
	v := engineWords()
	in := bufio.NewReaderSize(r, longestLine)
	head, _ := in.Peek(longestLine)
	e, words := newEngineReader(), newFinder(v)
	whole := &joiner{}
	whole.width, whole.prefix = brokenAt(head)
	if whole.width > 0 {
		whole.e = newEngineReader()
	}
	err := eachLine(in, v,
		func(in *lines) { words.read(in, true) },
		func(in *lines) {
			for more := false; in.more(); {
				e.number += in.counted()
				if !more && whole.e == nil {
					e.number += in.skip()
				}
				if !more {
					e.number++
				}
				var line []byte
				var hits []hit
				line, hits, more = in.line()
				e.line(line, hits, v)
				if whole.e != nil {
					whole.line(line, hits, v, e.number)
				}
			}
		})
	e.finish()
	if whole.e != nil {
		whole.flush(v)
		whole.e.finish()
		if e.stated() < whole.e.stated() {
			e = whole.e
		}
	}
	e.fail(words.failures())
	return &e.EngineLog, err
}

// finish takes what follows from all that was read.
func (e *engineReader) finish() {
	e.expect()
	e.collect()
}

// stated is how much was found: settings and figures, and of as many the longer ones.
func (e *EngineLog) stated() (n int) {
	const each = 1 << 20
	for _, value := range e.Setup {
		n += each + min(len(value), 1<<10)
	}
	for _, r := range e.Ranks {
		n += each * len(r.Figures)
		if r.tokens != nil {
			n += each
		}
	}
	return n
}

// engineWords is the vocabulary of all families and of the lines of engines.
var engineWords = sync.OnceValue(func() *vocabulary { return newVocabulary(true) })

// engineReader reads the lines of an engine.
type engineReader struct {
	EngineLog
	ranks  map[string]*Rank
	number int64  // of the line
	text   []byte // of the line, or the piece of it

	pieces int64   // lines, or pieces of them, so far
	seen   []int64 // by reading and argument, the last piece that has it
	of     *Rank   // the rank of the piece; nil if it was not looked for
	args   bool    // the piece states arguments
	looked bool    // whether it does was looked for
	found  match

	estimated []expected // of the last start
	gpus      map[string]bool
}

func newEngineReader() *engineReader {
	return &engineReader{EngineLog: EngineLog{Setup: map[string]string{}}, ranks: map[string]*Rank{}, gpus: map[string]bool{}, seen: make([]int64, len(readings)+len(arguments))}
}

// line reads a line, or a piece of it, with the words that end in it.
func (e *engineReader) line(text []byte, hits []hit, v *vocabulary) {
	e.text, e.of, e.looked = text, nil, false
	e.pieces++
	const mostTries = 1024
	tries := 0
	for _, h := range hits {
		switch u := &v.use[h.word]; {
		case u.family == ofEngine && e.seen[u.reading] != e.pieces:
			e.found.count = 0
			if e.found.match(text[h.end:], u.steps) {
				e.seen[u.reading] = e.pieces
				readings[u.reading].take(e, &e.found)
			} else if tries++; tries == mostTries { // a line without end, of the same words
				return
			}
		case u.family == ofArguments && e.seen[len(readings)+u.reading] != e.pieces:
			e.argument(u, int(h.end))
		}
	}
}

// argument reads an argument whose name ends at some byte of the line, with what
// separates it from its value.
func (e *engineReader) argument(u *use, end int) {
	before := end - len(u.name)
	if before < 0 || string(e.text[before:end]) != u.name || u.name[0] != '\'' && before > 0 && wordly(e.text[before-1]) {
		return
	}
	if !e.looked {
		e.looked, e.args = true, slices.ContainsFunc(inArguments, func(words []byte) bool { return bytes.Contains(e.text, words) })
	}
	if !e.args {
		return
	}
	a := &arguments[u.reading]
	value := a.read(bytes.TrimPrefix(e.text[end:], []byte(" ")))
	if value == "" {
		return
	}
	e.seen[len(readings)+u.reading] = e.pieces
	if value == "None" || a.name == "eager" && value != "True" && value != "False" {
		return
	}
	e.Setup[a.name] = value
	if tag := e.Setup["tag"]; tag != "" && (a.name == "tag" || a.name == "model" && bytes.Contains(e.text, []byte("model_tag"))) {
		e.Setup["model"] = tag // beside it is the default of --model
	}
}

// rank is that of the line; all lines without one are of the same.
func (e *engineReader) rank() *Rank {
	if e.of != nil {
		return e.of
	}
	name := rankOf(e.text)
	r := e.ranks[string(name)]
	if r == nil {
		r = newRank(string(name))
		if len(e.ranks) < mostWorkers {
			e.ranks[r.name] = r
		}
	}
	e.of = r
	return r
}

// rankOf is what names a rank in a line: "Worker_TP0 pid=7" in parentheses, or
// "DP0 TP1" behind a time in brackets, with the rank before that if there is one.
func rankOf(text []byte) []byte {
	const within, longest, stamp = 512, 96, 20
	text = text[:min(len(text), within)]
	for at, n := 0, 0; ; at += n {
		if n = bytes.IndexByte(text[at:], '('); n < 0 {
			n = len(text) - at
		}
		if bracket := bytes.IndexByte(text[at:at+n], '['); bracket >= 0 {
			n = bracket
		}
		i := at + n
		if n++; i == len(text) {
			return nil
		}
		rest := text[i+1:]
		switch c := text[i]; {
		case c == '(' && (hasPrefix(rest, "VllmWorker") || hasPrefix(rest, "RayWorker") || hasPrefix(rest, "Worker") || hasPrefix(rest, "EngineCore")):
			if end := bytes.IndexByte(rest[:min(len(rest), longest)], ')'); end >= 0 {
				return rest[:end]
			}
		case c == '[' && len(rest) > stamp:
			if end := bytes.IndexByte(rest[:min(len(rest), longest)], ']'); end > stamp && parallel(rest[stamp:end]) {
				if from := sourceOf(text[:i]); from != nil {
					return slices.Concat(from, rest[stamp:end])
				}
				return rest[stamp:end]
			}
		}
	}
}

// parallel reports whether a text is of words such as "DP0 TP1".
func parallel(text []byte) bool {
	for word := range bytes.FieldsSeq(text) {
		if len(word) < 3 || word[1] != 'P' || strings.IndexByte("DTPE", word[0]) < 0 || runOf(word[2:], 5, digit) != len(word)-2 {
			return false
		}
	}
	return true
}

// start begins a rank anew.
func (e *engineReader) start(*match) {
	r := e.rank()
	clear(r.Figures)
	*r = Rank{name: r.name, Figures: r.Figures}
}

// named takes the model of a line that happens to name it.
func (e *engineReader) named(m *match) {
	if e.Setup["model"] == "" {
		e.Setup["model"] = strings.TrimSuffix(string(m.text[0]), "...")
	}
}

// usages are what vLLM's summary of its memory states, of which any may be masked.
var usages = []struct{ name, words string }{
	{LogWeights, "weight"}, {LogConsumed, "consumed memory"}, {LogActivation, "peak activation"},
	{LogNonTorch, "non-torch"}, {LogGraphs, "CUDAGraph memory"}, {LogGraphs, "NPU graph memory"},
}

// usageOf is the name of the usage with whose words a text begins, "" if there is none.
func usageOf(text []byte) string {
	for i := range usages {
		if bytes.HasPrefix(text, []byte(usages[i].words)) {
			return usages[i].name
		}
	}
	return ""
}

// usage reads that summary.
func (e *engineReader) usage(*match) {
	const most, of = 600, " for "
	at := bytes.Index(e.text, []byte("Actual usage"))
	if at < 0 {
		return
	}
	text := e.text[at:min(len(e.text), at+most)]
	for end := 0; ; end += len(of) {
		next := bytes.Index(text[end:], []byte(of))
		if next < 0 {
			return
		}
		end += next
		name := usageOf(text[end+len(of):])
		if name == "" {
			continue
		}
		from := end
		for from > 0 && strings.IndexByte("0123456789.- GiB", text[from-1]) >= 0 {
			from--
		}
		figure := bytes.TrimLeft(text[from:end], " ")
		if withUnit(figure, "GiB", "GB") == len(figure) {
			e.size(name, last, nil, [][]byte{figure})
		}
	}
}

// peakTorch reads the peak of PyTorch's memory in vLLM 0.6.4, weights included.
func (e *engineReader) peakTorch(m *match) {
	r := e.rank()
	peak, rounding, ok := sized(m.text[0])
	if weights, stated := r.Figures[LogWeights]; stated && ok {
		r.Figures[LogActivation] = Stated{peak - weights.Size, e.number, rounding + weights.Rounding}
	}
}

// sized returns the size of a number with its unit, of GiB if it has none, and the
// rounding error that it can have.
func sized(text []byte) (size, rounding int64, ok bool) {
	n := numberLength(text)
	unit, exact := float64(1<<30), false
	switch name := string(bytes.TrimLeft(text[n:], " ")); name {
	case "bytes", "B":
		unit, exact = 1, true
	case "KiB", "MiB":
		unit = float64(unitOf(name[0]))
	}
	x, err := strconv.ParseFloat(string(text[:n]), 64)
	const most = 1 << 50
	if x *= unit; err != nil || x > most || x < -most {
		return 0, 0, false
	}
	if exact {
		return int64(x), 0, true
	}
	decimals := 0
	if point := bytes.IndexByte(text[:n], '.'); point >= 0 {
		decimals = n - point - 1
	}
	return int64(x), int64(math.Ceil(unit / 2 / math.Pow10(decimals))), true
}

// fail keeps the last failure whose words are known.
func (e *EngineLog) fail(failures []Failure) {
	for i := range failures {
		if f := &failures[i]; f.Kind != Unknown && !f.Weak {
			e.Failure = f
		}
	}
}

func newRank(name string) *Rank {
	return &Rank{name: name, Figures: map[string]Stated{}}
}

// collect keeps the ranks that state something, by name.
func (e *engineReader) collect() {
	for _, name := range slices.Sorted(maps.Keys(e.ranks)) {
		e.ranks[name].differences()
		if r := e.ranks[name]; len(r.Figures) > 0 || r.tokens != nil || r.blocks != nil {
			e.Ranks = append(e.Ranks, *r)
		}
	}
}

// differences are the sizes that a log states by what was free before and after,
// where it does not state them otherwise.
func (r *Rank) differences() {
	for _, d := range []struct{ name, not, before, after string }{
		{LogWeights, LogWeights, freeFirst, freeLoaded}, {LogPool, LogKV, freeLoaded, freePool}, {LogGraphs, LogGraphs, freeBefore, freeAfter},
	} {
		before, ok := r.Figures[d.before]
		after, too := r.Figures[d.after]
		if _, stated := r.Figures[d.not]; ok && too && !stated {
			r.Figures[d.name] = Stated{before.Size - after.Size, after.Line, before.Rounding + after.Rounding}
		}
	}
	for _, name := range []string{freeFirst, freeLoaded, freePool, freeBefore, freeAfter} {
		delete(r.Figures, name)
	}
}

// A Stated is a figure of a log: bytes, the line that it is on, and its possible
// rounding error, either way.
type Stated struct{ Size, Line, Rounding int64 }

// Largest is the largest figure of that name of all ranks.
func (e *EngineLog) Largest(name string) (most Stated, ok bool) {
	for _, r := range e.Ranks {
		if s, there := r.Figures[name]; there && (!ok || s.Size > most.Size) {
			most, ok = s, true
		}
	}
	return most, ok
}

// Smallest is the smallest one.
func (e *EngineLog) Smallest(name string) (least Stated, ok bool) {
	for _, r := range e.Ranks {
		if s, there := r.Figures[name]; there && (!ok || s.Size < least.Size) {
			least, ok = s, true
		}
	}
	return least, ok
}

// Tokens returns what the KV cache holds: the fewest of all ranks, as engines take
// them. Blocks are of so many tokens.
func (e *EngineLog) Tokens(block int64) (n int64, ok bool) {
	for _, r := range e.Ranks {
		switch {
		case r.tokens != nil && (!ok || *r.tokens < n):
			n, ok = *r.tokens, true
		case r.tokens == nil && r.blocks != nil && (!ok || *r.blocks*block < n):
			n, ok = *r.blocks*block, true
		}
	}
	return n, ok
}

// counted is a number with separators of thousands.
func counted(text []byte) *int64 {
	n, err := strconv.ParseInt(strings.ReplaceAll(string(text), ",", ""), 10, 64)
	if err != nil || n > 1<<50 {
		return nil
	}
	return &n
}
