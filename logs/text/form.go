package text

import (
	"bytes"
	"strings"
)

// A form is the wording of a log line with places for its figures, as a program prints
// it: "Load weight end.{…}avail mem={gib}". What precedes the first place is searched for
// in all lines at once, whatever its case and white space; the rest is compared from
// there, where a space stands for any number of them. Forms are matched at each hit in a log of
// any length; a [pattern], whose notation differs, only in the few lines of an excerpt.
type Form struct {
	Key   string // without white space, in lower case
	Steps []Step
}

// A Step is words, a gap, or a place, of which the length is known.
type Step struct {
	words  string
	length func(text []byte) int
	unread bool // it may be empty, and is not a figure
}

// MostGap is how many bytes a gap "{…}" takes at most.
const MostGap = 300

// NewForm compiles a wording.
func NewForm(wording string) Form {
	head, rest, more := strings.Cut(wording, "{")
	f := Form{Key: strings.ToLower(Unspaced(head))}
	if strings.HasSuffix(head, " ") {
		f.Steps = append(f.Steps, Step{words: " "})
	}
	for more {
		var place, words string
		place, rest, _ = strings.Cut(rest, "}")
		words, rest, more = strings.Cut(rest, "{")
		if lengths[place] == nil && place != "…" {
			panic("unknown place in a form: " + place)
		}
		f.Steps = append(f.Steps, Step{length: lengths[place], unread: place == "tail" || place == "signs"})
		if words != "" {
			f.Steps = append(f.Steps, Step{words: words})
		}
	}
	return f
}

// lengths are how many bytes at the beginning of a text a place takes; 0 if they are
// not there. Those of a gap depend on what follows.
var lengths = map[string]func(text []byte) int{
	"num":  func(text []byte) int { return NumberLength(text) },
	"gb":   func(text []byte) int { return NumberLength(text) }, // a number of GiB, whatever it is called
	"gib":  func(text []byte) int { return WithUnit(text, "GiB", "GB") },
	"size": func(text []byte) int { return WithUnit(text, "bytes", "B", "KiB", "MiB", "GiB") },
	"int":  func(text []byte) int { return Run(text, 15, Digit) },
	"many": func(text []byte) int { return Run(text, 19, func(c byte) bool { return Digit(c) || c == ',' }) },
	"word": func(text []byte) int {
		return Run(text, 40, func(c byte) bool { return Wordly(c) || c == '.' || c == '+' || c == '-' })
	},
	"path": func(text []byte) int {
		return Run(text, 300, func(c byte) bool { return c > ' ' && c != ';' && c != ',' })
	},
	"rest": func(text []byte) int { return min(len(text), 200) },
	"tail": func(text []byte) int { return Run(text, 40, Wordly) }, // of a name; there may be none
	"signs": func(text []byte) int {
		return Run(text, 20, func(c byte) bool { return strings.IndexByte(` :='"(`, c) >= 0 })
	},
}

// NumberLength is the length of "-12.5".
func NumberLength(text []byte) int {
	sign := 0
	if len(text) > 0 && text[0] == '-' {
		sign = 1
	}
	const whole, decimals = 15, 6
	n := Run(text[sign:], whole, Digit)
	if n == 0 {
		return 0
	}
	n += sign
	if n < len(text) && text[n] == '.' {
		if places := Run(text[n+1:], decimals, Digit); places > 0 {
			n += 1 + places
		}
	}
	return n
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

// mostFigures is the largest number of places of a form that are read.
const mostFigures = 4

// A Match is what is in the places of a form, but for gaps and signs.
type Match struct {
	Text  [mostFigures][]byte
	Count int
}

// Match reads what follows the key of a form.
func (m *Match) Match(text []byte, steps []Step) bool {
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
			if n == 0 || m.Count == mostFigures {
				return false
			}
			m.Text[m.Count] = text[:n]
			m.Count++
		}
		text = text[n:]
	}
	return true
}

// across reads the rest of a form behind a gap.
func (m *Match) across(text []byte, steps []Step) bool {
	text = text[:min(len(text), MostGap+len(steps[0].words)+len("12345.67 GiB"))]
	first, _, _ := strings.Cut(strings.TrimSpace(steps[0].words), " ")
	count := m.Count
	for {
		at := bytes.Index(text, []byte(first))
		if at < 0 {
			return false
		}
		if m.Match(text[at:], steps) {
			return true
		}
		m.Count = count
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
