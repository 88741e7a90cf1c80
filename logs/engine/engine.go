package engine

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

	"strandline/logs/failure"
	"strandline/logs/text"
	"strandline/plan/engine"
)

// worker is what one process of the log states about its last start.
type worker struct {
	engine.Rank
	parts map[string]int64 // sizes of devices, which are stated again
	ended bool             // the pools of SGLang are complete
	draft string           // [engine.DraftPart] once a second model is loaded
}

// Free memory at moments of SGLang's start, of which differences are taken.
const (
	freeFirst  = "free before the weights"
	freeLoaded = "free after the weights"
	freePool   = "free after the pool"
	freeBefore = "free before the graphs"
	freeAfter  = "free after the graphs"
)

// maxWorkers are as many as a log is read for; the largest runs have some thousands.
const maxWorkers = 1 << 14

// Scan reads a log to its end. Of several starts the last one counts, and of
// several figures of a rank the last one. A text whose lines seem to be broken at a width is
// also read with its lines joined, and the reading that finds more counts.
func Scan(r io.Reader) (*engine.Log, error) {
	in := bufio.NewReaderSize(r, text.LongestLine)
	head, _ := in.Peek(text.LongestLine)
	v, statements, lines, whole := vocabulary(), failure.NewFinder(), newReader(), newReader()
	join := text.NewJoiner(head, v, 1, whole)
	_, err := text.Each(in, v, statements, &twice{lines, join})
	lines.finish()
	if join != nil {
		join.Flush()
		if whole.finish(); lines.stated() < whole.stated() {
			lines = whole
		}
	}
	lines.fail(statements.Failures())
	return &lines.Log, err
}

// vocabulary is the words of failures and those of the lines of engines.
var vocabulary = sync.OnceValue(func() *text.Vocabulary {
	var words []string
	for _, u := range uses() {
		words = append(words, u.word)
	}
	return text.NewVocabulary(failure.Words(), words)
})

// twice has a text read by its lines, and by those that it had before they were broken if
// they seem to be.
type twice struct {
	lines *reader
	join  *text.Joiner
}

func (t *twice) Idle(int64) bool { return t.join == nil }

func (t *twice) Line(number int64, line []byte, hits []text.Hit) {
	t.lines.Line(number, line, hits)
	if t.join != nil {
		t.join.Line(number, line, hits)
	}
}

// finish takes what follows from all that was read.
func (e *reader) finish() {
	e.expect()
	e.collect()
}

// stated is how much was found: settings and figures, and of as many the longer ones.
func (e *reader) stated() (n int) {
	const each = 1 << 20
	for _, value := range e.Setup {
		n += each + min(len(value), 1<<10)
	}
	for _, r := range e.Ranks {
		n += each * len(r.Figures)
		if r.Tokens != nil {
			n += each
		}
	}
	return n
}

// A use is what a word of a vocabulary is for: a reading or, behind those, an argument.
type use struct {
	word    string
	index   int
	wording *text.Wording
	name    string // of the argument, with what is around it
}

// uses are the words of lines and arguments of engines.
var uses = sync.OnceValue(func() (out []use) {
	for i, r := range readings {
		for _, wording := range r.forms {
			w := text.NewWording(wording)
			out = append(out, use{word: w.Key, index: i, wording: w})
		}
	}
	for i, a := range arguments {
		for _, name := range a.names {
			for _, form := range []string{name + "=", "'" + name + "':", name + `":`} {
				out = append(out, use{word: form, index: len(readings) + i, name: form})
			}
		}
	}
	return out
})

// reader reads the lines of an engine.
type reader struct {
	engine.Log
	ranks  map[string]*worker
	number int64  // of the line
	text   []byte // of the line, or the piece of it

	pieces int64   // lines, or pieces of them, so far
	seen   []int64 // by reading and argument, the last piece that has it
	of     *worker // the rank of the piece; nil if it was not looked for
	args   bool    // the piece states arguments
	looked bool    // whether it does was looked for
	found  text.Match
	uses   []use // of the words of the vocabulary

	estimated []expected // of the last start
	gpus      map[string]bool
}

func newReader() *reader {
	return &reader{Log: engine.Log{Setup: map[string]string{}}, ranks: map[string]*worker{}, gpus: map[string]bool{}, seen: make([]int64, len(readings)+len(arguments)), uses: uses()}
}

// Idle implements [text.Reader].
func (e *reader) Idle(int64) bool { return true }

// Line implements [text.Reader].
func (e *reader) Line(number int64, line []byte, hits []text.Hit) {
	e.number, e.text, e.of, e.looked = number, line, nil, false
	e.pieces++
	const maxTries = 1024
	tries := 0
	for _, h := range hits {
		u := &e.uses[h.Word]
		if e.seen[u.index] == e.pieces {
			continue
		}
		if u.name != "" {
			e.argument(u, int(h.End))
			continue
		}
		if e.found.MatchAfter(line, int(h.End), u.wording) {
			e.seen[u.index] = e.pieces
			readings[u.index].take(e, &e.found)
		} else if tries++; tries == maxTries { // a line without end, of the same words
			return
		}
	}
}

// argument reads an argument whose name ends at some byte of the line, with what
// separates it from its value.
func (e *reader) argument(u *use, end int) {
	before := end - len(u.name)
	if before < 0 || string(e.text[before:end]) != u.name || u.name[0] != '\'' && before > 0 && text.Wordly(e.text[before-1]) {
		return
	}
	if !e.looked {
		e.looked, e.args = true, slices.ContainsFunc(inArguments, func(words []byte) bool { return bytes.Contains(e.text, words) })
	}
	if !e.args {
		return
	}
	a := &arguments[u.index-len(readings)]
	value := a.read(bytes.TrimPrefix(e.text[end:], []byte(" ")))
	if value == "" {
		return
	}
	e.seen[u.index] = e.pieces
	if value == "None" || a.name == "eager" && value != "True" && value != "False" {
		return
	}
	e.Setup[a.name] = value
	if tag := e.Setup["tag"]; tag != "" && (a.name == "tag" || a.name == "model" && bytes.Contains(e.text, []byte("model_tag"))) {
		e.Setup["model"] = tag // beside it is the default of --model
	}
}

// rank is that of the line; all lines without one are of the same.
func (e *reader) rank() *worker {
	if e.of != nil {
		return e.of
	}
	name := rankOf(e.text)
	r := e.ranks[string(name)]
	if r == nil {
		r = newRank(string(name))
		if len(e.ranks) < maxWorkers {
			e.ranks[r.Name] = r
		}
	}
	e.of = r
	return r
}

// rankOf is what names a rank in a line: "Worker_TP0 pid=7" in parentheses, or
// "DP0 TP1" behind a time in brackets, with the rank before that if there is one.
func rankOf(line []byte) []byte {
	const within, longest, stamp = 512, 96, 20
	line = line[:min(len(line), within)]
	for at, n := 0, 0; ; at += n {
		if n = bytes.IndexByte(line[at:], '('); n < 0 {
			n = len(line) - at
		}
		if bracket := bytes.IndexByte(line[at:at+n], '['); bracket >= 0 {
			n = bracket
		}
		i := at + n
		if n++; i == len(line) {
			return nil
		}
		rest := line[i+1:]
		switch c := line[i]; {
		case c == '(' && (text.HasPrefix(rest, "VllmWorker") || text.HasPrefix(rest, "RayWorker") || text.HasPrefix(rest, "Worker") || text.HasPrefix(rest, "EngineCore")):
			if end := bytes.IndexByte(rest[:min(len(rest), longest)], ')'); end >= 0 {
				return rest[:end]
			}
		case c == '[' && len(rest) > stamp:
			if end := bytes.IndexByte(rest[:min(len(rest), longest)], ']'); end > stamp && parallel(rest[stamp:end]) {
				if from := text.SourceOf(line[:i]); from != nil {
					return slices.Concat(from, rest[stamp:end])
				}
				return rest[stamp:end]
			}
		}
	}
}

// parallel reports whether a text is of words such as "DP0 TP1".
func parallel(line []byte) bool {
	for word := range bytes.FieldsSeq(line) {
		if len(word) < 3 || word[1] != 'P' || strings.IndexByte("DTPE", word[0]) < 0 || text.Run(word[2:], 5, text.Digit) != len(word)-2 {
			return false
		}
	}
	return true
}

// start begins a rank anew.
func (e *reader) start(*text.Match) {
	r := e.rank()
	clear(r.Figures)
	*r = worker{Rank: engine.Rank{Name: r.Name, Figures: r.Figures}}
}

// named takes the model of a line that happens to name it.
func (e *reader) named(m *text.Match) {
	if e.Setup["model"] == "" {
		e.Setup["model"] = strings.TrimSuffix(string(m.Text[0]), "...")
	}
}

// usages are what vLLM's summary of its memory states, of which any may be masked.
var usages = []struct{ name, words string }{
	{engine.Weights, "weight"}, {engine.Consumed, "consumed memory"}, {engine.Activation, "peak activation"},
	{engine.NonTorch, "non-torch"}, {engine.GraphPool, "CUDAGraph memory"}, {engine.GraphPool, "NPU graph memory"},
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
func (e *reader) usage(*text.Match) {
	const maxLen, of = 600, " for "
	at := bytes.Index(e.text, []byte("Actual usage"))
	if at < 0 {
		return
	}
	line := e.text[at:min(len(e.text), at+maxLen)]
	for end := 0; ; end += len(of) {
		next := bytes.Index(line[end:], []byte(of))
		if next < 0 {
			return
		}
		end += next
		name := usageOf(line[end+len(of):])
		if name == "" {
			continue
		}
		from := end
		for from > 0 && strings.IndexByte("0123456789.- GiB", line[from-1]) >= 0 {
			from--
		}
		figure := bytes.TrimLeft(line[from:end], " ")
		if text.WithUnit(figure, "GiB", "GB") == len(figure) {
			e.size(name, last, nil, [][]byte{figure})
		}
	}
}

// peakTorch reads the peak of PyTorch's memory in vLLM 0.6.4, weights included.
func (e *reader) peakTorch(m *text.Match) {
	r := e.rank()
	peak, rounding, ok := sized(m.Text[0])
	if weights, stated := r.Figures[engine.Weights]; stated && ok {
		r.Figures[engine.Activation] = engine.Stated{Size: peak - weights.Size, Line: e.number, Rounding: rounding + weights.Rounding}
	}
}

// sized returns the size of a number with its unit, of GiB if it has none, and the
// rounding error that it can have.
func sized(line []byte) (size, rounding int64, ok bool) {
	n := text.NumberLength(line)
	unit, exact := float64(1<<30), false
	switch name := string(bytes.TrimLeft(line[n:], " ")); name {
	case "bytes", "B":
		unit, exact = 1, true
	case "KiB", "MiB":
		unit = float64(text.UnitOf(name[0]))
	}
	x, err := strconv.ParseFloat(string(line[:n]), 64)
	const maxBytes = 1 << 50
	if x *= unit; err != nil || x > maxBytes || x < -maxBytes {
		return 0, 0, false
	}
	if exact {
		return int64(x), 0, true
	}
	decimals := 0
	if point := bytes.IndexByte(line[:n], '.'); point >= 0 {
		decimals = n - point - 1
	}
	return int64(x), int64(math.Ceil(unit / 2 / math.Pow10(decimals))), true
}

// fail keeps the last failure whose words are known.
func (e *reader) fail(failures []failure.Failure) {
	for i := range failures {
		if f := &failures[i]; f.Kind != failure.Unknown && !f.Weak {
			e.Failure = &engine.Failed{Line: f.Line, Quote: f.Quote}
		}
	}
}

func newRank(name string) *worker {
	return &worker{Rank: engine.Rank{Name: name, Figures: map[string]engine.Stated{}}}
}

// collect keeps the ranks that state something, by name.
func (e *reader) collect() {
	for _, name := range slices.Sorted(maps.Keys(e.ranks)) {
		e.ranks[name].differences()
		if r := e.ranks[name]; len(r.Figures) > 0 || r.Tokens != nil || r.Blocks != nil {
			e.Ranks = append(e.Ranks, r.Rank)
		}
	}
}

// differences are the sizes that a log states by what was free before and after,
// where it does not state them otherwise.
func (r *worker) differences() {
	for _, d := range []struct{ name, not, before, after string }{
		{engine.Weights, engine.Weights, freeFirst, freeLoaded}, {engine.Pool, engine.KV, freeLoaded, freePool}, {engine.GraphPool, engine.GraphPool, freeBefore, freeAfter},
		{engine.DraftPart + engine.Weights, engine.DraftPart + engine.Weights, engine.DraftPart + freeFirst, engine.DraftPart + freeLoaded},
	} {
		before, ok := r.Figures[d.before]
		after, too := r.Figures[d.after]
		if _, stated := r.Figures[d.not]; ok && too && !stated {
			r.Figures[d.name] = engine.Stated{Size: before.Size - after.Size, Line: after.Line, Rounding: before.Rounding + after.Rounding}
		}
	}
	for _, name := range []string{freeFirst, freeLoaded, freePool, freeBefore, freeAfter} {
		delete(r.Figures, name)
		delete(r.Figures, engine.DraftPart+name)
	}
}
