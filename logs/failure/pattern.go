package failure

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/logs/text"
)

// A pattern is the wording of a message with places for its figures, written as
// the program prints it: "Tried to allocate {request_bytes:size} of {:any}". White
// space in it and in the text does not matter, nor does case.
type pattern struct {
	expr  *lazyregexp.Regexp
	lead  string   // the words behind a place with which it begins, "" if it begins with words
	kinds []string // of its groups
}

// What can be in a place of a pattern.
var places = map[string]string{
	"size": `(-?[0-9][0-9.,]*(?:[kmgt]i?b?|bytes|b)?)`, // a number with its unit, binary whatever it is called; bytes without
	"gib":  `(-?[0-9][0-9.]*)(?:gib|gb|g)?`,            // a number of GiB
	"mib":  `([0-9][0-9.]*)(?:mib|mb)?`,                // a number of MiB
	"kb":   `([0-9][0-9,]*)kb`,                         // a number of KiB, maybe with commas
	"int":  `(-?[0-9][0-9,]*)`,
	"num":  `([0-9]+(?:\.[0-9]+)?)`,
	"word": `([\w./@:*+-]{1,160}?)`,
	"any":  `(.{0,160}?)`,
}

var placeIn = lazyregexp.New(`\{(\w*):(\w+)\}`)

// newPattern makes the pattern of a wording. Its expression is compiled when a text contains
// a word of its family.
func newPattern(words string) *pattern {
	p := &pattern{}
	var b strings.Builder
	for {
		at := placeIn.FindStringSubmatchIndex(words)
		if at == nil {
			break
		}
		b.WriteString(literal(words[:at[0]]))
		name, kind := words[at[2]:at[3]], words[at[4]:at[5]]
		expr, known := places[kind]
		if !known {
			panic("unknown place in a pattern: " + kind)
		}
		if name != "" {
			expr = strings.Replace(expr, "(", "(?P<"+name+">", 1)
		}
		b.WriteString(expr)
		if strings.Contains(places[kind], "(") && !strings.HasPrefix(places[kind], "(?:") {
			p.kinds = append(p.kinds, kind)
		}
		words = words[at[1]:]
		if at[0] == 0 && b.Len() == len(expr) {
			p.lead, _, _ = strings.Cut(words, "{")
			p.lead = strings.ToLower(text.Unspaced(p.lead))
		}
	}
	b.WriteString(literal(words))
	p.expr = lazyregexp.Of(b.String())
	return p
}

// last reads the last place of a text where the pattern matches into a failure; it
// reports where that is. It searches the text in lower case: so a pattern that
// begins with words is found by them.
func (p *pattern) last(text, lower string, f *Failure) (at int, ok bool) {
	m, from := p.lastIn(lower)
	if m == nil {
		return 0, false
	}
	text = text[from:]
	for i, name := range p.expr.SubexpNames() {
		if name == "" || m[2*i] < 0 {
			continue
		}
		f.set(name, p.kinds[i-1], text[m[2*i]:m[2*i+1]])
	}
	return from + m[0], true
}

// lastIn is the last match in a text in lower case, from some byte on; nil if there is
// none. A place at the beginning would be tried from every byte of the text: it is searched
// for before the words that follow it.
func (p *pattern) lastIn(lower string) (m []int, from int) {
	const most, widest = 1 << 10, 200
	if p.lead == "" {
		if all := p.expr.FindAllStringSubmatchIndex(lower, most); all != nil {
			m = all[len(all)-1]
		}
		return m, 0
	}
	for at, tries := strings.LastIndex(lower, p.lead), 0; at >= 0 && tries < most; tries++ {
		before := strings.LastIndex(lower[:at], p.lead)
		from = max(0, at-widest)
		if before >= 0 {
			from = max(from, before+len(p.lead))
		}
		if m = p.expr.FindStringSubmatchIndex(lower[from:]); m != nil {
			return m, from
		}
		at = before
	}
	return nil, 0
}

// literal is the expression of words.
func literal(words string) string { return regexp.QuoteMeta(strings.ToLower(text.Unspaced(words))) }

// set keeps what is in a place, unless something is there.
func (f *Failure) set(name, kind, text string) {
	if kind == "word" || kind == "any" {
		if name == "victim" && strings.HasPrefix(text, "(") && !strings.HasSuffix(text, ")") {
			text += ")" // the name that systemd gives a process before it starts the program
		}
		if f.Words[name] == "" {
			f.Words[name] = text
		}
		return
	}
	x, ok := amountOf(kind, text)
	if _, there := f.Figures[Figure(name)]; ok && !there {
		f.Figures[Figure(name)] = x
	}
	if Figure(name) == Request && kind == "int" && len(text) >= absurdDigits {
		f.Words["absurd"] = text
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			f.Figures[Request] = float64(n)
		}
	}
}

// absurdDigits is how many a number of bytes has that no machine has: above 100 PB.
const absurdDigits = 18

// amountOf returns a figure in bytes or as a number, false if it is neither.
func amountOf(kind, number string) (float64, bool) {
	factor := 1.0
	switch kind {
	case "size":
		unit := strings.TrimLeft(number, "-0123456789.,")
		number = strings.TrimSuffix(number, unit)
		if unit != "" {
			factor = float64(text.UnitOf(unit[0]))
		}
	case "gib":
		factor = 1 << 30
	case "mib":
		factor = 1 << 20
	case "kb":
		factor = 1 << 10
	}
	if i := strings.LastIndexByte(number, ','); i >= 0 && kind == "size" && len(number)-i-1 != 3 && !strings.Contains(number, ".") {
		number = number[:i] + "." + number[i+1:] // a decimal comma
	}
	x, err := strconv.ParseFloat(strings.TrimRight(strings.ReplaceAll(number, ",", ""), "."), 64)
	if x *= factor; err != nil || math.Abs(x) >= 1<<53 {
		return 0, false
	}
	return x, true
}

// lowered is a text in lower case, of ASCII alone, so that it keeps its length.
func lowered(line string) string {
	b := []byte(line)
	for i, c := range b {
		if text.Capital(c) {
			b[i] = c | 0x20
		}
	}
	return string(b)
}
