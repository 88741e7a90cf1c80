package logs

import (
	"bytes"
	"strings"
)

// A form is the wording of a log line with places for its figures, as a program prints
// it: "Load weight end.{…}avail mem={gib}". What precedes the first place is searched for
// in all lines at once, whatever its case and white space; the rest is compared from
// there, where a space stands for any number of them. Forms are matched at each hit in a log of
// any length; a [pattern], whose notation differs, only in the few lines of an excerpt.
type form struct {
	key   string // without white space, in lower case
	steps []step
}

// A step is words, a gap, or a place, of which the length is known.
type step struct {
	words  string
	length func(text []byte) int
	unread bool // it may be empty, and is not a figure
}

// mostGap is how many bytes a gap "{…}" takes at most.
const mostGap = 300

// newForm compiles a wording.
func newForm(wording string) form {
	head, rest, more := strings.Cut(wording, "{")
	f := form{key: strings.ToLower(unspaced(head))}
	if strings.HasSuffix(head, " ") {
		f.steps = append(f.steps, step{words: " "})
	}
	for more {
		var place, words string
		place, rest, _ = strings.Cut(rest, "}")
		words, rest, more = strings.Cut(rest, "{")
		if lengths[place] == nil && place != "…" {
			panic("unknown place in a form: " + place)
		}
		f.steps = append(f.steps, step{length: lengths[place], unread: place == "tail" || place == "signs"})
		if words != "" {
			f.steps = append(f.steps, step{words: words})
		}
	}
	return f
}

// lengths are how many bytes at the beginning of a text a place takes; 0 if they are
// not there. Those of a gap depend on what follows.
var lengths = map[string]func(text []byte) int{
	"num":  func(text []byte) int { return numberLength(text) },
	"gb":   func(text []byte) int { return numberLength(text) }, // a number of GiB, whatever it is called
	"gib":  func(text []byte) int { return withUnit(text, "GiB", "GB") },
	"size": func(text []byte) int { return withUnit(text, "bytes", "B", "KiB", "MiB", "GiB") },
	"int":  func(text []byte) int { return runOf(text, 15, digit) },
	"many": func(text []byte) int { return runOf(text, 19, func(c byte) bool { return digit(c) || c == ',' }) },
	"word": func(text []byte) int {
		return runOf(text, 40, func(c byte) bool { return wordly(c) || c == '.' || c == '+' || c == '-' })
	},
	"path": func(text []byte) int {
		return runOf(text, 300, func(c byte) bool { return c > ' ' && c != ';' && c != ',' })
	},
	"rest": func(text []byte) int { return min(len(text), 200) },
	"tail": func(text []byte) int { return runOf(text, 40, wordly) }, // of a name; there may be none
	"signs": func(text []byte) int {
		return runOf(text, 20, func(c byte) bool { return strings.IndexByte(` :='"(`, c) >= 0 })
	},
}

func wordly(c byte) bool { return letter(c) || digit(c) || c == '_' }

func runOf(text []byte, most int, is func(byte) bool) (n int) {
	for n < min(len(text), most) && is(text[n]) {
		n++
	}
	return n
}

// numberLength is the length of "-12.5".
func numberLength(text []byte) int {
	sign := 0
	if len(text) > 0 && text[0] == '-' {
		sign = 1
	}
	const whole, decimals = 15, 6
	n := runOf(text[sign:], whole, digit)
	if n == 0 {
		return 0
	}
	n += sign
	if n < len(text) && text[n] == '.' {
		if places := runOf(text[n+1:], decimals, digit); places > 0 {
			n += 1 + places
		}
	}
	return n
}

// withUnit is the length of a number and its unit, between which a space may be.
func withUnit(text []byte, units ...string) int {
	n := numberLength(text)
	if n == 0 {
		return 0
	}
	for _, at := range []int{n, n + 1} {
		if at > n && (at > len(text) || text[n] != ' ') {
			break
		}
		for _, unit := range units {
			if hasPrefix(text[at:], unit) {
				return at + len(unit)
			}
		}
	}
	return 0
}

// mostFigures is the largest number of places of a form that are read.
const mostFigures = 4

// A match is what is in the places of a form, but for gaps and signs.
type match struct {
	text  [mostFigures][]byte
	count int
}

// match reads what follows the key of a form.
func (m *match) match(text []byte, steps []step) bool {
	for i, s := range steps {
		n := 0
		switch {
		case s.words != "":
			if n = wordsLength(text, s.words); n < 0 {
				return false
			}
		case s.length == nil: // a gap
			return m.across(text, steps[i+1:])
		default:
			if n = s.length(text); s.unread {
				break
			}
			if n == 0 || m.count == mostFigures {
				return false
			}
			m.text[m.count] = text[:n]
			m.count++
		}
		text = text[n:]
	}
	return true
}

// across reads the rest of a form behind a gap.
func (m *match) across(text []byte, steps []step) bool {
	text = text[:min(len(text), mostGap+len(steps[0].words)+len("12345.67 GiB"))]
	first, _, _ := strings.Cut(strings.TrimSpace(steps[0].words), " ")
	count := m.count
	for {
		at := bytes.Index(text, []byte(first))
		if at < 0 {
			return false
		}
		if m.match(text[at:], steps) {
			return true
		}
		m.count = count
		text = text[at+1:]
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
