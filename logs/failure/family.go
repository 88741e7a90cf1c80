package failure

import (
	"bytes"
	"slices"
	"strings"
	"sync"

	"strandline/internal/lazyregexp"
	"strandline/internal/secret"
	"strandline/internal/sorts"
	"strandline/logs/text"
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
	nearby []string
	// begin are keys that begin a statement even inside another, end those after
	// which few lines of it follow.
	begin, end []string

	lines int // that can follow a key and belong to the statement; 0 is a few
	bytes int // that are read of a statement; 0 is some thousand

	// harmless is what resembles a statement and is not one.
	harmless *lazyregexp.Regexp
	wordings []wording // the first that is found is the kind of the statement
	facts    []string  // wordings of further figures
	// read adds what patterns do not cover; it reports whether the statement is one.
	read func(*excerpt, *Failure) bool
}

// A wording is one of the messages of a family.
type wording struct {
	kind   Kind
	text   string // see [text.Wording]
	line   string // or a regular expression for an unchanged line
	source Source // instead of the family's
	host   bool   // of the host, whatever the family is
	weak   bool
}

const (
	maxFollowing = 4
	maxStatement = 8 << 10
	tail         = 512
	maxRead      = 64 << 10 // bytes of an excerpt in which patterns are looked for
)

// compiled is a family with its patterns.
type compiled struct {
	*family
	texts []*text.Wording      // by wording, nil where it is a line
	exprs []*lazyregexp.Regexp // the others
	facts []*text.Wording
}

// A use is what a word of the families is for: one of them, or a hint.
type use struct {
	family int // notFamily: the hint
	hint   Hint
	around bool
	begin  bool
	end    bool
}

const notFamily = -1

// vocabulary is what a text is searched for.
type vocabulary struct {
	words    []string
	use      []use // by word
	families []compiled
}

// known is the vocabulary of all families, made when the first text is read.
var known = sync.OnceValue(func() *vocabulary {
	v := &vocabulary{}
	add := func(word string, u use) { v.words, v.use = append(v.words, word), append(v.use, u) }
	for i, f := range families {
		c := compiled{family: f}
		for _, w := range f.wordings {
			var p *text.Wording
			var e *lazyregexp.Regexp
			if w.line != "" {
				e = lazyregexp.Of(w.line)
			} else {
				p = text.NewWording(w.text).Compact()
			}
			c.texts, c.exprs = append(c.texts, p), append(c.exprs, e)
		}
		for _, fact := range f.facts {
			c.facts = append(c.facts, text.NewWording(fact).Compact())
		}
		v.families = append(v.families, c)
		for _, key := range f.keys {
			add(key, use{family: i, begin: slices.Contains(f.begin, key), end: slices.Contains(f.end, key)})
		}
		for _, word := range f.nearby {
			add(word, use{family: i, around: true})
		}
	}
	for _, h := range hints {
		for _, word := range h.words {
			add(word, use{family: notFamily, hint: h.hint})
		}
	}
	return v
})

// Words are what a [Finder] searches a text for.
func Words() []string { return known().words }

// States reports whether a statement in words that are known may have a word of [Words], by its
// index: others are hints, around statements, or of errors in unknown wording.
func States(word int) bool {
	u := known().use[word]
	return u.family != notFamily && !u.around && known().families[u.family].family != familyUnknown
}

// An excerpt is a part of a text that may contain a statement.
type excerpt struct {
	raw    []byte
	jumps  []jump   // the first line, and those that do not follow the one before
	count  int      // of lines
	last   int64    // the number of the last one
	opened int64    // the line of the word
	lines  int      // that may still follow
	stated []string // the line of the statement that was read in it, and those that follow
}

// A jump is the number of a line, by its index in an excerpt.
type jump struct {
	at     int
	number int64
}

// add appends a line.
func (e *excerpt) add(number int64, line []byte) {
	e.raw = append(append(e.raw, line...), '\n')
	if e.count == 0 || number != e.last+1 {
		e.jumps = append(e.jumps, jump{e.count, number})
	}
	e.count, e.last = e.count+1, number
}

// number is the number of a line of an excerpt.
func (e *excerpt) number(at int) int64 {
	i := len(e.jumps) - 1
	for i > 0 && e.jumps[i].at > at {
		i--
	}
	return e.jumps[i].number + int64(at-e.jumps[i].at)
}

// A Finder finds the statements of all families in a text: it is a [text.Reader] for [Words].
type Finder struct {
	v      *vocabulary
	before lookback
	open   []*excerpt // by family
	opened []int      // the families that have one
	about  []numbered // by family, the last line that statements may refer to
	kept   []kept     // by family
	spare  []*excerpt // by family, one to be used again
	count  []int
	hints  [maxHints]int64 // the last lines that show them

	relapses int
}

// numbered is a line with its number.
type numbered struct {
	number int64
	line   []byte
}

// kept are the newest excerpts of a family, the oldest first.
type kept struct {
	ring  [maxExcerpts]*excerpt
	first int
	count int
	bytes int
}

// maxExcerpts is the largest number of excerpts that are kept of a family.
const maxExcerpts = 32

// add keeps an excerpt, for which there is room.
func (k *kept) add(e *excerpt) {
	k.ring[(k.first+k.count)%maxExcerpts] = e
	k.count, k.bytes = k.count+1, k.bytes+len(e.raw)
}

// drop takes out the oldest.
func (k *kept) drop() (e *excerpt) {
	e, k.ring[k.first] = k.ring[k.first], nil
	k.first, k.count, k.bytes = (k.first+1)%maxExcerpts, k.count-1, k.bytes-len(e.raw)
	return e
}

// newestFirst yields those that are kept.
func (k *kept) newestFirst(yield func(*excerpt) bool) {
	for i := k.count - 1; i >= 0 && yield(k.ring[(k.first+i)%maxExcerpts]); i-- {
	}
}

// NewFinder returns a finder.
func NewFinder() *Finder {
	v := known()
	n := len(v.families)
	return &Finder{v: v, open: make([]*excerpt, n), about: make([]numbered, n), kept: make([]kept, n), spare: make([]*excerpt, n), count: make([]int, n)}
}

// Hints are the hints of the text and the last lines that show them.
func (s *Finder) Hints() map[Hint]int64 {
	hints := map[Hint]int64{}
	for hint, line := range s.hints {
		if line > 0 {
			hints[Hint(hint)] = line
		}
	}
	return hints
}

// Relapses counts how often the driver refused a request after the program had gone on since the
// one before.
func (s *Finder) Relapses() int { return s.relapses }

// Idle implements [text.Reader].
func (s *Finder) Idle(int64) bool { return len(s.opened) == 0 }

// Line implements [text.Reader].
func (s *Finder) Line(number int64, line []byte, hits []text.Hit) {
	for i := len(s.opened) - 1; i >= 0; i-- { // what is extended may be closed, and leaves the list
		s.extend(s.opened[i], number, line)
	}
	for _, h := range hits {
		s.take(h, number, line)
	}
	s.before.add(line, number)
}

// A lookback holds the ends of the last lines: a statement can have begun there.
type lookback struct {
	lines [2]numbered
	count int // that it holds
	next  int
}

func (b *lookback) add(line []byte, number int64) {
	l := &b.lines[b.next]
	l.number, l.line = number, append(l.line[:0], line[max(0, len(line)-tail):]...)
	b.next = (b.next + 1) % len(b.lines)
	b.count = min(b.count+1, len(b.lines))
}

// appendTo adds the lines to an excerpt, the oldest first.
func (b *lookback) appendTo(e *excerpt) {
	for i := range b.count {
		l := &b.lines[(b.next-b.count+i+len(b.lines))%len(b.lines)]
		e.add(l.number, l.line)
	}
}

// take opens an excerpt at a word of a line, or notes what it shows.
func (s *Finder) take(h text.Hit, number int64, line []byte) {
	u := &s.v.use[h.Word]
	switch {
	case u.family == notFamily:
		if last := &s.hints; u.hint == HintAttempt && last[HintAttempt] > 0 && last[HintProgress] > last[HintAttempt] {
			s.relapses++
		}
		if engines[u.hint] && inFolder(line, int(h.End)) {
			return
		}
		s.hints[u.hint] = number
		return
	case u.around:
		a := &s.about[u.family]
		a.number, a.line = number, append(a.line[:0], line[:min(len(line), 2*tail)]...)
		return
	}
	e := s.open[u.family]
	if e != nil && u.begin && number != e.opened {
		s.close(u.family)
		e = nil
	}
	if e == nil {
		e = s.begin(u, number, line, int(h.End))
	}
	if u.end {
		e.lines = min(e.lines, maxFollowing)
	}
}

// begin opens an excerpt at a word that ends at some byte of a line, with the lines
// before unless a statement begins with the word.
func (s *Finder) begin(u *use, number int64, line []byte, at int) *excerpt {
	family := u.family
	f := s.v.families[family].family
	e := s.spare[family]
	if s.spare[family] = nil; e == nil {
		e = &excerpt{}
	}
	*e = excerpt{opened: number, lines: f.lines, raw: e.raw[:0], jumps: e.jumps[:0]}
	if e.lines == 0 {
		e.lines = maxFollowing
	}
	if a := &s.about[family]; a.number > 0 && a.number < number-int64(s.before.count) {
		e.add(a.number, a.line)
	}
	if !u.begin {
		s.before.appendTo(e)
	}
	from := max(0, at-maxStatement/2) // of a very long line, what is around the word
	e.add(number, line[from:min(len(line), max(from+maxStatement, f.bytes))])
	s.open[family] = e
	s.opened = append(s.opened, family)
	return e
}

// extend adds a line to an excerpt that is open, and closes it when it is full.
func (s *Finder) extend(family int, number int64, line []byte) {
	e := s.open[family]
	maxBytes := max(maxStatement, s.v.families[family].bytes)
	e.add(number, line[:max(0, min(len(line), maxBytes-len(e.raw)))])
	if e.lines--; e.lines <= 0 || len(e.raw) >= maxBytes {
		s.close(family)
	}
}

// close keeps an excerpt, and as many of those before it as fit.
func (s *Finder) close(family int) {
	const bytes = 8 << 20
	e, k := s.open[family], &s.kept[family]
	s.open[family] = nil
	at, last := slices.Index(s.opened, family), len(s.opened)-1
	s.opened[at] = s.opened[last]
	s.opened = s.opened[:last]
	s.count[family]++
	for k.count == maxExcerpts || k.count > 0 && k.bytes+len(e.raw) > bytes {
		s.spare[family] = k.drop()
	}
	k.add(e)
}

// Failures are the last statement of each family, in the order of their lines.
func (s *Finder) Failures() (out []Failure) {
	for i := range s.v.families {
		if s.open[i] != nil {
			s.close(i)
		}
		if f := s.v.families[i].last(&s.kept[i]); f != nil {
			f.Count = s.count[i]
			out = append(out, *f)
		}
	}
	sorts.StableBy(out, func(a, b Failure) int { return int(a.Line - b.Line) })
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
			if found, ok := f.readLast(p, compact, lower); ok {
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
	f.Line, f.Quote = e.number(text.original(at)), quote(text.lines[at])
	e.stated = text.lines[at:]
	for _, p := range c.facts {
		f.readLast(p, compact, lower)
	}
	if len(f.Figures) == 0 && (f.Kind == HostUnknown || f.Kind == DriverMemory || f.Kind == TorchShort) {
		f.state(text.lines[at], false)
	}
	return f, c.read == nil || c.read(e, &f)
}

// A passage is the text of an excerpt without colors and the prefixes of logs.
type passage struct {
	lines   []string
	compact string // without white space
	starts  []int  // of the lines in it

	cut, cutAt int // how many lines are left out, and before which
}

// original is the index in the excerpt of a line of the passage.
func (p *passage) original(at int) int {
	if p.cut != 0 && at >= p.cutAt {
		at += p.cut
	}
	return at
}

// clean reads an excerpt.
func (e *excerpt) clean() *passage {
	p := &passage{}
	raw := e.raw
	if len(raw) > maxRead { // what is between is a table, which patterns do not read
		raw = slices.Concat(raw[:maxRead/2], []byte("\n"), raw[len(raw)-maxRead/2:])
		p.cut = bytes.Count(e.raw[maxRead/2:len(e.raw)-maxRead/2], []byte("\n")) - 1
		p.cutAt = bytes.Count(raw[:maxRead/2], []byte("\n")) + 1
	}
	var compacted []byte
	empty := false
	for line := range bytes.Lines(raw) {
		line = bytes.TrimRight(line, "\r\n")
		p.lines = append(p.lines, string(line))
		p.starts = append(p.starts, len(compacted))
		if len(p.lines) > 1 {
			line = text.LogPrefix.ReplaceAll(line, nil)
		}
		n := len(compacted)
		if compacted = text.Compact(compacted, line); empty && n > 0 && n < len(compacted) && text.Digit(compacted[n-1]) && text.Digit(compacted[n]) {
			compacted = slices.Insert(compacted, n, ' ') // a number does not go on behind an empty line
			p.starts[len(p.starts)-1]++
		}
		empty = n == len(compacted)
	}
	p.compact = string(compacted)
	return p
}

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
	const maxLen = 200
	line = strings.TrimSpace(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, secret.Text(strings.ToValidUTF8(line, "?"))))
	if len(line) > maxLen {
		line = strings.ToValidUTF8(line[:maxLen], "") + "…"
	}
	return line
}
