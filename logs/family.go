package logs

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"strandline/internal/lazyregexp"
	"strandline/internal/secret"
)

// A family is a program, or a part of a system, and the words in which it states
// that memory ran out.
type family struct {
	source Source
	host   bool
	weak   bool

	// keys are words of which one is in every statement of the family, in lower
	// case and without white space.
	keys []string
	// around are words of lines that a statement may refer to: the last such line
	// before a statement is read with it.
	around []string
	// begin are keys that begin a statement even inside another, end those after
	// which few lines of it follow.
	begin, end []string

	lines int // that can follow a key and belong to the statement; 0 is a few
	bytes int // that are read of a statement; 0 is some thousand

	// harmless is what resembles a statement and is not one.
	harmless *lazyregexp.Regexp
	wordings []wording // the first that is found is the kind of the statement
	facts    []string  // patterns of further figures
	// read adds what patterns do not cover; it reports whether the statement is one.
	read func(*excerpt, *Failure) bool
}

// A wording is one of the messages of a family.
type wording struct {
	kind   Kind
	text   string // a pattern; see [pattern]
	line   string // or a regular expression for an unchanged line
	source Source // instead of the family's
	host   bool   // of the host, whatever the family is
	weak   bool
}

const (
	fewLines  = 4
	someBytes = 8 << 10
	tail      = 512
	mostRead  = 64 << 10 // bytes of an excerpt in which patterns are looked for
)

// compiled is a family with its patterns.
type compiled struct {
	*family
	texts []*pattern           // by wording, nil where it is a line
	exprs []*lazyregexp.Regexp // the others
	facts []*pattern
}

// vocabulary is all that a text is searched for.
type vocabulary struct {
	words    *literals
	use      []use   // by word
	reader   []uint8 // by word, who reads it
	families []compiled
}

// A use is what a word of the vocabulary is for.
type use struct {
	family int // or one of those below
	hint   Hint
	around bool
	begin  bool
	end    bool

	messageWord *messageWord

	reading int    // of the lines of an engine, or the argument
	steps   []step // behind the word
	name    string // of the argument, with what is around it
}

// The readers of words.
const (
	byFinder  = iota
	byScanner // or [engineReader]
	byTables
)

// The families of words that belong to none.
const (
	ofHint     = -1
	ofMessages = -2 // PyTorch's, which [scanner] reads
	ofTables   = -3 // which [tables] reads
	// Those of [engineReader]: lines, and arguments in them.
	ofEngine    = -4
	ofArguments = -5
)

// known is the vocabulary of all families, made when the first text is read.
var known = sync.OnceValue(func() *vocabulary { return newVocabulary(false) })

// newVocabulary makes the vocabulary of all families and of PyTorch's messages and tables,
// or instead of these of the lines of engines.
func newVocabulary(engines bool) *vocabulary {
	v := &vocabulary{}
	var words []string
	add := func(word string, u use) {
		words, v.use = append(words, word), append(v.use, u)
		switch {
		case u.family == ofTables:
			v.reader = append(v.reader, byTables)
		case u.family < ofHint:
			v.reader = append(v.reader, byScanner)
		default:
			v.reader = append(v.reader, byFinder)
		}
	}
	for i, f := range families {
		c := compiled{family: f}
		for _, w := range f.wordings {
			var p *pattern
			var e *lazyregexp.Regexp
			if w.line != "" {
				e = lazyregexp.Of(w.line)
			} else {
				p = newPattern(w.text)
			}
			c.texts, c.exprs = append(c.texts, p), append(c.exprs, e)
		}
		for _, fact := range f.facts {
			c.facts = append(c.facts, newPattern(fact))
		}
		v.families = append(v.families, c)
		for _, key := range f.keys {
			add(key, use{family: i, begin: slices.Contains(f.begin, key), end: slices.Contains(f.end, key)})
		}
		for _, word := range f.around {
			add(word, use{family: i, around: true})
		}
	}
	for _, h := range hints {
		for _, word := range h.words {
			add(word, use{family: ofHint, hint: h.hint})
		}
	}
	if engines {
		addEngines(add)
	} else {
		for i := range messageWords {
			add(messageWords[i].word, use{family: ofMessages, messageWord: &messageWords[i]})
		}
		for _, word := range tableWords {
			add(word, use{family: ofTables})
		}
	}
	v.words = newLiterals(words)
	return v
}

// addEngines adds the words of lines and arguments of engines.
func addEngines(add func(string, use)) {
	for i, r := range readings {
		for _, wording := range r.forms {
			f := newForm(wording)
			add(f.key, use{family: ofEngine, reading: i, steps: f.steps})
		}
	}
	for i, a := range arguments {
		for _, name := range a.names {
			for _, form := range []string{name + "=", "'" + name + "':", name + `":`} {
				add(form, use{family: ofArguments, reading: i, name: form})
			}
		}
	}
}

// An excerpt is a part of a text that may contain a statement.
type excerpt struct {
	line   int64 // of its first
	opened int64 // the line of the word
	raw    []byte
	lines  int      // that may still follow
	around int64    // the line that is before the others though it is not next to them; 0 if there is none
	stated []string // the line of the statement that was read in it, and those that follow

	numbers []int64 // of its lines, where others between them are only counted
}

// finder finds the statements of all families in a text, line by line.
type finder struct {
	v      *vocabulary
	number int64
	before lookback
	open   []*excerpt // by family
	opened []int      // the families that have one
	about  []excerpt  // by family, the last line that statements may refer to
	kept   []kept     // by family
	spare  []*excerpt // by family, one to be used again
	count  []int
	hints  [mostHints]int64 // the last lines that show them
	gaps   bool             // lines of the text are only counted
}

// kept are the newest excerpts of a family, the oldest first.
type kept struct {
	ring  [mostExcerpts]*excerpt
	first int
	count int
	bytes int
}

// mostExcerpts is the largest number of excerpts that are kept of a family.
const mostExcerpts = 32

// add keeps an excerpt, for which there is room.
func (k *kept) add(e *excerpt) {
	k.ring[(k.first+k.count)%mostExcerpts] = e
	k.count, k.bytes = k.count+1, k.bytes+len(e.raw)
}

// drop takes out the oldest.
func (k *kept) drop() (e *excerpt) {
	e, k.ring[k.first] = k.ring[k.first], nil
	k.first, k.count, k.bytes = (k.first+1)%mostExcerpts, k.count-1, k.bytes-len(e.raw)
	return e
}

// newestFirst yields those that are kept.
func (k *kept) newestFirst(yield func(*excerpt) bool) {
	for i := k.count - 1; i >= 0 && yield(k.ring[(k.first+i)%mostExcerpts]); i-- {
	}
}

func newFinder(v *vocabulary) *finder {
	n := len(v.families)
	return &finder{v: v, open: make([]*excerpt, n), about: make([]excerpt, n), kept: make([]kept, n), spare: make([]*excerpt, n), count: make([]int, n)}
}

// hinted are the hints of the text and the last lines that show them.
func (s *finder) hinted() map[Hint]int64 {
	hints := map[Hint]int64{}
	for hint, line := range s.hints {
		if line > 0 {
			hints[Hint(hint)] = line
		}
	}
	return hints
}

// read reads the lines of a text; if it is quick, it skips those that cannot matter.
func (s *finder) read(in *lines, quick bool) {
	for more := false; in.more(); {
		if n := in.counted(); n > 0 {
			s.number, s.gaps = s.number+n, true
		}
		if quick && !more && len(s.opened) == 0 {
			s.number += in.skip()
		}
		if !more {
			s.number++
		}
		var line []byte
		var hits []hit
		line, hits, more = in.line()
		s.line(line, hits)
	}
	s.number += in.counted()
}

// line takes the next line of the text, or another piece of it, with the words that end in it.
func (s *finder) line(text []byte, hits []hit) {
	for i := len(s.opened) - 1; i >= 0; i-- { // what is extended may be closed, and leaves the list
		s.extend(s.opened[i], text)
	}
	for _, h := range hits {
		s.take(h, text)
	}
	s.before.add(text, s.number)
}

// A lookback holds the ends of the last lines: a statement can have begun there.
type lookback struct {
	text  [2][]byte
	at    [2]int64 // their numbers
	lines int      // that it holds
	next  int
}

func (b *lookback) add(line []byte, number int64) {
	b.at[b.next] = number
	b.text[b.next] = append(b.text[b.next][:0], line[max(0, len(line)-tail):]...)
	b.next = (b.next + 1) % len(b.text)
	b.lines = min(b.lines+1, len(b.text))
}

// appendTo adds the lines to a text, the oldest first.
func (b *lookback) appendTo(text []byte) []byte {
	for i := range b.lines {
		text = append(append(text, b.text[(b.next-b.lines+i+len(b.text))%len(b.text)]...), '\n')
	}
	return text
}

// take opens an excerpt at a word of a line, or notes what it shows.
func (s *finder) take(h hit, text []byte) {
	u := &s.v.use[h.word]
	switch {
	case u.family == ofHint:
		s.hints[u.hint] = s.number
		return
	case u.around:
		a := &s.about[u.family]
		a.line, a.raw = s.number, append(a.raw[:0], text[:min(len(text), 2*tail)]...)
		return
	}
	e := s.open[u.family]
	if e != nil && u.begin && s.number != e.opened {
		s.close(u.family)
		e = nil
	}
	if e == nil {
		e = s.begin(u, text, int(h.end))
	}
	if u.end {
		e.lines = min(e.lines, fewLines)
	}
}

// begin opens an excerpt at a word that ends at some byte of a line, with the lines
// before unless a statement begins with the word.
func (s *finder) begin(u *use, text []byte, at int) *excerpt {
	family := u.family
	f := s.v.families[family].family
	e := s.spare[family]
	if s.spare[family] = nil; e == nil {
		e = &excerpt{}
	}
	*e = excerpt{opened: s.number, lines: f.lines, raw: e.raw[:0], numbers: e.numbers[:0]}
	if e.lines == 0 {
		e.lines = fewLines
	}
	if a := &s.about[family]; a.line > 0 && a.line < s.number-int64(s.before.lines) {
		e.raw, e.around = append(append(e.raw, a.raw...), '\n'), a.line
	}
	if e.line = s.number; !u.begin {
		e.raw, e.line = s.before.appendTo(e.raw), s.number-int64(s.before.lines)
	}
	from := max(0, at-someBytes/2) // of a very long line, what is around the word
	e.raw = append(append(e.raw, text[from:min(len(text), max(from+someBytes, f.bytes))]...), '\n')
	if s.gaps {
		s.numberLines(e)
	}
	s.open[family] = e
	s.opened = append(s.opened, family)
	return e
}

// numberLines keeps the numbers of the lines with which an excerpt begins.
func (s *finder) numberLines(e *excerpt) {
	if e.around > 0 {
		e.numbers = append(e.numbers, e.around)
	}
	b := &s.before
	if e.line < s.number { // the lines before are in it
		for i := range b.lines {
			e.numbers = append(e.numbers, b.at[(b.next-b.lines+i+len(b.at))%len(b.at)])
		}
	}
	e.numbers = append(e.numbers, s.number)
}

// extend adds a line to an excerpt that is open, and closes it when it is full.
func (s *finder) extend(family int, text []byte) {
	e := s.open[family]
	most := max(someBytes, s.v.families[family].bytes)
	e.raw = append(append(e.raw, text[:max(0, min(len(text), most-len(e.raw)))]...), '\n')
	if s.gaps {
		e.numbers = append(e.numbers, s.number)
	}
	if e.lines--; e.lines <= 0 || len(e.raw) >= most {
		s.close(family)
	}
}

// close keeps an excerpt, and as many of those before it as fit.
func (s *finder) close(family int) {
	const bytes = 8 << 20
	e, k := s.open[family], &s.kept[family]
	s.open[family] = nil
	at, last := slices.Index(s.opened, family), len(s.opened)-1
	s.opened[at] = s.opened[last]
	s.opened = s.opened[:last]
	s.count[family]++
	for k.count == mostExcerpts || k.count > 0 && k.bytes+len(e.raw) > bytes {
		s.spare[family] = k.drop()
	}
	k.add(e)
}

// failures are the last statement of each family, in the order of their lines.
func (s *finder) failures() (out []Failure) {
	for i := range s.v.families {
		if s.open[i] != nil {
			s.close(i)
		}
		if f := s.v.families[i].last(&s.kept[i]); f != nil {
			f.Count = s.count[i]
			out = append(out, *f)
		}
	}
	slices.SortStableFunc(out, func(a, b Failure) int { return int(a.Line - b.Line) })
	return out
}

// last returns the last statement in some excerpts, preferably one that is not a
// consequence of others. It is nil if there is none.
func (c *compiled) last(kept *kept) (weak *Failure) {
	for e := range kept.newestFirst {
		switch f, ok := c.parse(e); {
		case ok && !f.Weak:
			return &f
		case ok && weak == nil:
			weak = &f
		}
	}
	return weak
}

// parse reads the statement in an excerpt, false if there is none.
func (c *compiled) parse(e *excerpt) (Failure, bool) {
	f := Failure{Source: c.source, Host: c.host, Weak: c.weak, Figures: map[Figure]float64{}, Words: map[string]string{}}
	text := e.clean()
	compact := text.compact
	if c.harmless != nil {
		compact = c.harmless.ReplaceAllStringFunc(compact, func(s string) string { return strings.Repeat(" ", len(s)) })
	}
	lower := lowered(compact)
	at := -1
	for i, w := range c.wordings {
		if p := c.texts[i]; p != nil {
			if found, ok := p.last(compact, lower, &f); ok {
				if at = text.lineAt(found); explained.MatchString(text.lines[at]) && len(f.Figures) == 0 {
					at = -1
				}
			}
		} else {
			at = text.lineLike(c.exprs[i], c.harmless)
		}
		if at < 0 {
			continue
		}
		f.Kind, f.Host, f.Weak = w.kind, f.Host || w.host, f.Weak || w.weak
		if w.source != "" {
			f.Source = w.source
		}
		break
	}
	if at < 0 {
		return f, false
	}
	f.Line, f.Quote = e.number(text, at), quote(text.lines[at])
	e.stated = text.lines[at:]
	for _, p := range c.facts {
		p.last(compact, lower, &f)
	}
	if len(f.Figures) == 0 && (f.Kind == HostUnknown || f.Kind == DriverMemory || f.Kind == TorchShort) {
		f.state(text.lines[at], false)
	}
	return f, c.read == nil || c.read(e, &f)
}

// number is the number of a line of an excerpt.
func (e *excerpt) number(p *passage, at int) int64 {
	if p.cut != 0 && at >= p.cutAt {
		at += p.cut
	}
	if at < len(e.numbers) {
		return e.numbers[at]
	}
	if e.around > 0 {
		if at == 0 {
			return e.around
		}
		at--
	}
	return e.line + int64(at)
}

// A passage is the text of an excerpt without colors and the prefixes of logs.
type passage struct {
	lines   []string
	compact string // without white space
	starts  []int  // of the lines in it

	cut, cutAt int // how many lines are left out, and before which
}

// clean reads an excerpt.
func (e *excerpt) clean() *passage {
	p := &passage{}
	raw := e.raw
	if len(raw) > mostRead { // what is between is a table, which patterns do not read
		raw = slices.Concat(raw[:mostRead/2], []byte("\n"), raw[len(raw)-mostRead/2:])
		p.cut = bytes.Count(e.raw[mostRead/2:len(e.raw)-mostRead/2], []byte("\n")) - 1
		p.cutAt = bytes.Count(raw[:mostRead/2], []byte("\n")) + 1
	}
	var compacted []byte
	empty := false
	for line := range bytes.Lines(raw) {
		line = bytes.TrimRight(line, "\r\n")
		p.lines = append(p.lines, string(line))
		p.starts = append(p.starts, len(compacted))
		if len(p.lines) > 1 {
			line = logPrefix.ReplaceAll(line, nil)
		}
		n := len(compacted)
		if compacted = compact(compacted, line); empty && n > 0 && n < len(compacted) && digit(compacted[n-1]) && digit(compacted[n]) {
			compacted = slices.Insert(compacted, n, ' ') // a number does not go on behind an empty line
			p.starts[len(p.starts)-1]++
		}
		empty = n == len(compacted)
	}
	p.compact = string(compacted)
	return p
}

// logPrefix is what a log writes before a line.
var logPrefix = lazyregexp.New(`^\s*(?:(?:` + syslogPrefix + `|\([^()]{1,80}pid=[^()]{1,60}\)|\[[^\[\]]{1,60}\]:?|\d{4}-\d\d-\d\d[T :][\d:.,]+Z?|\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?|(?:ERROR|WARNING|INFO|DEBUG|CRITICAL|FATAL|stderr|stdout)\b(?: [FP]\b)?:?|\{"(?:log|msg|message)": ?"|\d+\.\d\d\.\d{3}\.\d{3} [A-Z]\b|[|│>]|\d{1,5}:\s|\d{1,3}%\|[^|]{0,80}\|[^\[\]]{0,60}\[[^\[\]]{0,80}\])\s*)+`)

// syslogPrefix is how syslog and journald begin a line: time, host, program.
const syslogPrefix = `[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w.@/-]{1,64}(?:\[\d{1,10}\])?:`

// lineAt is the index of the line of a byte of the compact text.
func (p *passage) lineAt(at int) int {
	i, exact := slices.BinarySearch(p.starts, at)
	if !exact {
		i--
	}
	for i+1 < len(p.starts) && p.starts[i+1] == p.starts[i] && exact {
		i++ // of lines that are empty, the last
	}
	return i
}

// lineLike is the index of the last line that an expression matches, -1 if there
// is none.
func (p *passage) lineLike(expr *lazyregexp.Regexp, harmless *lazyregexp.Regexp) int {
	for i := len(p.lines) - 1; i >= 0; i-- {
		if expr.MatchString(p.lines[i]) && (harmless == nil || !harmless.MatchString(p.lines[i])) && !explained.MatchString(p.lines[i]) {
			return i
		}
	}
	return -1
}

// explained is a sentence about a failure, as guides have it, and not the failure.
var explained = lazyregexp.New(`(?i)\b(?:means|indicates) (?:that |the |a |an |your )|\brecorded as\b|\bthe dreaded\b|\b(?:happens|occurs|arises|appears|is (?:raised|thrown|caused)) (?:when|if|because|by)\b|\bis (?:a|the most) common\b|\bcommon (?:causes?|errors?|issues?)\b`)

// quote is a line to be shown.
func quote(line string) string {
	const most = 200
	line = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, secret.Text(strings.ToValidUTF8(line, "?"))))
	if len(line) > most {
		line = strings.ToValidUTF8(line[:most], "") + "…"
	}
	return line
}
