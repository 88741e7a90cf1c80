package text

import (
	"bytes"
	"strings"
)

// A Wording is what a program prints, with places for what differs: "Tried to allocate
// {request_bytes:size} of {…}". A place is a name and a kind: {name:kind}, or {kind} without a
// name; what is in it is read. Of {:kind}, and of the gap {…}, it is not. A space stands for any
// number of them: so wordings match a text without white space, too.
type Wording struct {
	// Key is the words before the first place, in lower case and without white space. If it
	// begins with a place, they are those behind it.
	Key    string
	head   []byte // those words as they are written
	begins bool   // with a place
	steps  []step // behind the key, or all
	// Names and Kinds are those of the places that are read.
	Names, Kinds []string
}

// A step is words or a place.
type step struct {
	words string
	first []byte // of the words, up to a space
	kind
	read int // its index among those that are read; -1 if it is not
}

// A kind is what can be in a place.
type kind struct {
	// longest is how much of it a text begins with, 0 if nothing; greedy states that it is not
	// shorter for what follows.
	longest func(text []byte) int
	greedy  bool
	empty   bool // nothing may be there
	// in are the bytes that can be in it; of a gap, which is as short as what follows
	// allows, all if it is nil, and at most gap bytes long.
	in  func(c byte) bool
	gap int
}

// kinds are what can be in the places of wordings.
var kinds = map[string]kind{
	"…":    {gap: 300, empty: true},
	"any":  {gap: 160, empty: true},
	"word": {gap: 160, in: func(c byte) bool { return Wordly(c) || strings.IndexByte("./@:*+-", c) >= 0 }},
	// Numbers, of which white space is taken out.
	"size": {longest: func(text []byte) int {
		return signed(text, ".,", optional, "bytes", "b", "kib", "mib", "gib", "tib", "kb", "mb", "gb", "tb", "ki", "mi", "gi", "ti", "k", "m", "g", "t")
	}, in: numeric},
	"gib": {longest: func(text []byte) int { return signed(text, ".", optional, "gib", "gb", "g") }, in: numeric},
	"mib": {longest: func(text []byte) int { return unsigned(text, ".", optional, "mib", "mb") }},
	"kb":  {longest: func(text []byte) int { return unsigned(text, ",", !optional, "kb") }},
	"int": {longest: func(text []byte) int { return signed(text, ",", optional) }},
	"num": {longest: func(text []byte) int { return decimal(text, maxNumberLength, maxNumberLength) }},
	// Numbers in lines as they are.
	"number": {greedy: true, longest: NumberLength},
	"GiB":    {greedy: true, longest: func(text []byte) int { return WithUnit(text, "GiB", "GB") }},
	"bytes":  {greedy: true, longest: func(text []byte) int { return WithUnit(text, "bytes", "B", "KiB", "MiB", "GiB") }},
	"digits": {greedy: true, longest: func(text []byte) int { return Run(text, 15, Digit) }},
	"count":  {greedy: true, longest: func(text []byte) int { return Run(text, 19, func(c byte) bool { return Digit(c) || c == ',' }) }},
	"name": {greedy: true, longest: func(text []byte) int {
		return Run(text, 40, func(c byte) bool { return Wordly(c) || c == '.' || c == '+' || c == '-' })
	}},
	"path": {greedy: true, longest: func(text []byte) int {
		return Run(text, 300, func(c byte) bool { return c > ' ' && c != ';' && c != ',' })
	}},
	"rest": {greedy: true, longest: func(text []byte) int { return min(len(text), 200) }},
	"tail": {greedy: true, empty: true, longest: func(text []byte) int { return Run(text, 40, Wordly) }}, // of a name
	"signs": {greedy: true, empty: true, longest: func(text []byte) int {
		return Run(text, 20, func(c byte) bool { return strings.IndexByte(` :='"(`, c) >= 0 })
	}},
}

const optional = true

// numeric reports whether a byte can be in a size.
func numeric(c byte) bool { return Digit(c) || Letter(c) || c == '.' || c == ',' || c == '-' }

// maxNumberLength is as long as a number may be: a place is tried at each length of it.
const maxNumberLength = 40

// signed is [unsigned] of a number that may have a sign.
func signed(text []byte, signs string, optional bool, units ...string) int {
	if len(text) == 0 || text[0] != '-' {
		return unsigned(text, signs, optional, units...)
	}
	if n := unsigned(text[1:], signs, optional, units...); n > 0 {
		return 1 + n
	}
	return 0
}

// unsigned is the length of a number with signs between its digits, and of its unit, which may
// be optional.
func unsigned(text []byte, signs string, optional bool, units ...string) int {
	if len(text) == 0 || !Digit(text[0]) {
		return 0
	}
	n := Run(text, maxNumberLength+1, func(c byte) bool { return Digit(c) || strings.IndexByte(signs, c) >= 0 })
	if n > maxNumberLength {
		return 0
	}
	for _, unit := range units {
		if HasPrefix(text[n:], unit) {
			return n + len(unit)
		}
	}
	if !optional {
		return 0
	}
	return n
}

// decimal is the length of "12.5", with so many digits on both sides of the point.
func decimal(text []byte, whole, decimals int) int {
	n := Run(text, whole, Digit)
	if n > 0 && n < len(text) && text[n] == '.' {
		if places := Run(text[n+1:], decimals, Digit); places > 0 {
			n += 1 + places
		}
	}
	return n
}

// NumberLength is the length of "-12.5".
func NumberLength(text []byte) int {
	sign := 0
	if len(text) > 0 && text[0] == '-' {
		sign = 1
	}
	if n := decimal(text[sign:], 15, 6); n > 0 {
		return sign + n
	}
	return 0
}

// WithUnit is the length of a number and its unit, between which a space may be.
func WithUnit(text []byte, units ...string) int {
	n := NumberLength(text)
	if n == 0 {
		return 0
	}
	for _, at := range []int{n, n + 1} {
		if at > n && (at > len(text) || text[n] != ' ') {
			break
		}
		for _, unit := range units {
			if HasPrefix(text[at:], unit) {
				return at + len(unit)
			}
		}
	}
	return 0
}

// NewWording compiles a wording.
func NewWording(wording string) *Wording {
	words, rest, more := strings.Cut(wording, "{")
	w := &Wording{begins: words == "", head: []byte(strings.TrimRight(words, " "))}
	if w.Key = strings.ToLower(Unspaced(words)); strings.HasSuffix(words, " ") {
		w.steps = append(w.steps, step{words: " "})
	}
	for more {
		var place string
		place, rest, _ = strings.Cut(rest, "}")
		words, rest, more = strings.Cut(rest, "{")
		name, of, named := strings.Cut(place, ":")
		if !named {
			name, of = "", place
		}
		k, known := kinds[of]
		if !known {
			panic("unknown place in a wording: " + place)
		}
		s := step{kind: k, read: -1}
		if of != "…" && (name != "" || !named) {
			s.read = len(w.Names)
			w.Names, w.Kinds = append(w.Names, name), append(w.Kinds, of)
		}
		if w.steps = append(w.steps, s); words != "" {
			first, _, _ := strings.Cut(strings.TrimSpace(words), " ")
			w.steps = append(w.steps, step{words: words, first: []byte(first)})
		}
		if w.Key == "" {
			w.Key = strings.ToLower(Unspaced(words))
		}
	}
	return w
}

// Compact is the wording for a text in lower case and without white space.
func (w *Wording) Compact() *Wording {
	var steps []step
	for _, s := range w.steps {
		words := strings.ToLower(Unspaced(s.words))
		if s.words == "" || words != "" {
			s.words, s.first = words, []byte(words)
			steps = append(steps, s)
		}
	}
	w.steps = steps
	return w
}

// maxRead is the largest number of places of a wording that are read.
const maxRead = 8

// A Match is what is in the places of a wording that are read, and where each begins.
type Match struct {
	Text  [maxRead][]byte
	At    [maxRead]int
	Count int
}

// MatchAfter reports whether what follows the key of a wording, which ends at a byte of a text,
// is there.
func (m *Match) MatchAfter(text []byte, at int, w *Wording) bool {
	m.Count = 0
	return m.match(text, at, w.steps)
}

// Next finds the next place of a line, from some byte on, where a wording begins that is written
// so, and the byte behind its first words; -1 if there is none.
func (m *Match) Next(line []byte, from int, w *Wording) (at, behind int) {
	for {
		i := bytes.Index(line[from:], w.head)
		if i < 0 {
			return -1, -1
		}
		at = from + i
		if from = at + len(w.head); m.MatchAfter(line, from, w) {
			return at, from
		}
	}
}

// Last finds the last place of a text where a wording is.
func (m *Match) Last(text []byte, w *Wording) (at int, ok bool) {
	const maxTries = 1 << 10
	key := []byte(w.Key)
	for end, tries := len(text), 0; tries < maxTries; tries++ {
		at = bytes.LastIndex(text[:end], key)
		switch {
		case at < 0:
			return 0, false
		case !w.begins && m.MatchAfter(text, at+len(key), w):
			return at, true
		case w.begins:
			for from := w.steps[0].before(text, at); from < at; from++ {
				if m.MatchAfter(text, from, w) {
					return from, true
				}
			}
		}
		end = at + len(key) - 1
	}
	return 0, false
}

// before is where a place can begin at the earliest that ends at a byte of a text.
func (s *step) before(text []byte, end int) int {
	const widest = 200
	from := end
	for from > max(0, end-widest) && (s.in == nil || s.in(text[from-1])) {
		from--
	}
	return from
}

// match reads the rest of a wording from a byte of a text.
func (m *Match) match(text []byte, at int, steps []step) bool {
	for i := range steps {
		s := &steps[i]
		switch {
		case s.words != "":
			n := wordsLength(text[at:], s.words)
			if n < 0 {
				return false
			}
			at += n
		case s.gap > 0:
			return m.matchGap(text, at, steps[i:])
		case s.greedy:
			n := s.longest(text[at:])
			if n == 0 && !s.empty {
				return false
			}
			m.keep(s, text, at, at+n)
			at += n
		default:
			return m.place(text, at, steps[i:])
		}
	}
	return true
}

// place reads a place, as long as what follows it allows.
func (m *Match) place(text []byte, at int, steps []step) bool {
	s, count := &steps[0], m.Count
	longest := s.longest(text[at:])
	for n := longest; n > 0; n-- {
		if n < longest && s.longest(text[at:at+n]) != n {
			continue
		}
		m.keep(s, text, at, at+n)
		if m.match(text, at+n, steps[1:]) {
			return true
		}
		m.Count = count
	}
	return false
}

// matchGap reads a gap, as short as what follows it allows.
func (m *Match) matchGap(text []byte, at int, steps []step) bool {
	s, rest, count := &steps[0], steps[1:], m.Count
	to, end := at, min(len(text), at+s.gap)
	if s.in != nil {
		end = at + Run(text[at:], s.gap, s.in)
	}
	if !s.empty {
		to++
	}
	for ; to <= end; to++ {
		if len(rest) > 0 && len(rest[0].first) > 0 {
			first := rest[0].first
			next := bytes.Index(text[to:min(len(text), end+len(first))], first)
			if next < 0 {
				return false
			}
			to += next
		}
		m.keep(s, text, at, to)
		if m.match(text, to, rest) {
			return true
		}
		m.Count = count
	}
	return false
}

// keep keeps what is in a place.
func (m *Match) keep(s *step, text []byte, from, to int) {
	if s.read >= 0 {
		m.Text[s.read], m.At[s.read], m.Count = text[from:to], from, s.read+1
	}
}

// wordsLength is the length of words at the beginning of a text, -1 if they are not
// there.
func wordsLength(text []byte, words string) int {
	at := 0
	for i := range len(words) {
		if words[i] == ' ' {
			for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
				at++
			}
			continue
		}
		if at == len(text) || text[at] != words[i] {
			return -1
		}
		at++
	}
	return at
}
