package failure

import (
	"math"
	"strconv"
	"strings"
	"unicode"

	"strandline/logs/text"
)

// readLast reads the last place of a text where a wording is into a failure; it reports where
// that is. It searches the text in lower case.
func (f *Failure) readLast(w *text.Wording, compact string, lower []byte) (at int, ok bool) {
	var m text.Match
	if at, ok = m.Last(lower, w); !ok {
		return 0, false
	}
	for i, name := range w.Names {
		if name != "" {
			f.set(name, w.Kinds[i], compact[m.At[i]:m.At[i]+len(m.Text[i])])
		}
	}
	return at, true
}

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
	number = strings.TrimRightFunc(number, unicode.IsLetter) // the unit
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
func lowered(line string) []byte {
	b := []byte(line)
	for i, c := range b {
		if text.Capital(c) {
			b[i] = c | 0x20
		}
	}
	return b
}
