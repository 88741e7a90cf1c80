package text

import "bytes"

// A quoting is the form of a text that is one string, list or object of JSON, or of a
// program, on a single line.
type quoting int

// The forms.
const (
	asLines   quoting = iota // it has lines of its own
	asString                 // "a\nb", {"log": "a\nb"}
	asList                   // ["a", "b"]
	asObjects                // [{"log": "a"}, {"log": "b"}]
)

// maxQuoted is how much of a text shows whether it is on a single line.
const maxQuoted = 8 << 10

// quotedAs is the form of a text by its beginning, and how many bytes are before what is in
// the first element of a list.
func quotedAs(head []byte) (form quoting, before int) {
	const space = " \t\r\n\xef\xbb\xbf"
	text := bytes.TrimLeft(head, space)
	if len(text) == 0 || bytes.IndexByte([]byte("[{\"'b"), text[0]) < 0 {
		return asLines, 0
	}
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	const little = 256 // an error at the end of a program's output
	if len(rest) > little {
		return asLines, 0
	}
	opened := bytes.TrimLeft(line[1:], " ")
	if len(opened) == 0 {
		return asLines, 0
	}
	before = len(head) - len(text) + len(line) - len(opened)
	const some = 2 // lines
	switch {
	case text[0] == '[' && Quotation(opened[0]):
		return asList, before + 1
	case text[0] == '[' && opened[0] == '{' && bytes.Count(line, []byte("},")) >= some:
		return asObjects, before + 1
	case text[0] == '[' || text[0] == 'b' && !Quotation(opened[0]) || bytes.Count(line, []byte(`\n`)) < some:
		return asLines, 0
	}
	return asString, 0
}

// unquoted makes lines of a text that is one line: of the ends of lines as they are
// written in strings, and of what is between the elements of a list.
type unquoted struct {
	form  quoting
	quote byte // that ends the string, 0 before the first
}

// maxBetweenLength is as long as that may be: `\r\n", "`.
const maxBetweenLength = 8

func (u *unquoted) longest() int { return maxBetweenLength }

func (u *unquoted) rewrite(p []byte, last bool) (kept, taken int) {
	for i := 0; i < len(p); {
		c := p[i]
		if c != '\\' && !Quotation(c) && c != '}' {
			p[kept] = c
			kept, i = kept+1, i+1
			continue
		}
		if !last && len(p)-i < maxBetweenLength {
			return kept, i
		}
		n, with := u.instead(p[i:])
		p[kept] = with
		kept, i = kept+1, i+n
	}
	return kept, len(p)
}

// instead is what a text begins with instead of its first n bytes.
func (u *unquoted) instead(text []byte) (n int, with byte) {
	if text[0] != '\\' {
		switch n = u.separatorLength(text); {
		case n > 0:
			return n, '\n'
		case u.quote == 0 && Quotation(text[0]):
			u.quote = text[0]
		}
		return 1, text[0]
	}
	if len(text) == 1 {
		return 1, text[0]
	}
	switch c := text[1]; c {
	case 'n':
		return 2 + u.separatorLength(text[2:]), '\n'
	case 'r':
		if HasPrefix(text[2:], `\n`) {
			const ends = len(`\r\n`)
			return ends + u.separatorLength(text[ends:]), '\n'
		}
		return 2, '\n'
	case 't':
		return 2, '\t'
	case '"', '\'', '\\', '/':
		return 2, c
	}
	return 1, text[0]
}

// separatorLength is the length of what is between two elements of a list, 0 if the text does not
// begin with it.
func (u *unquoted) separatorLength(text []byte) int {
	n, space := 0, func(n int) int {
		for n < min(len(text), maxBetweenLength) && text[n] == ' ' {
			n++
		}
		return n
	}
	if u.form == asString || len(text) == 0 || text[0] != u.end() {
		return 0
	}
	if n = space(1); n == len(text) || text[n] != ',' {
		return 0
	}
	if n = space(n + 1); n == len(text) || text[n] != '{' && (u.form == asObjects || !Quotation(text[n])) {
		return 0
	}
	u.quote = text[n]
	return n + 1
}

// end is with what an element of a list ends.
func (u *unquoted) end() byte {
	if u.form == asObjects {
		return '}'
	}
	return u.quote
}
