package text

import "bytes"

// prettyAt reports whether a text is an object or a list in JSON that is written over
// several lines, such as a notebook, by its beginning.
func prettyAt(head []byte) bool {
	opening, rest, more := bytes.Cut(bytes.TrimLeft(head, " \t\r\n\xef\xbb\xbf"), []byte("\n"))
	opening, rest = bytes.TrimSpace(opening), bytes.TrimSpace(rest)
	return more && len(opening) == 1 && (opening[0] == '{' || opening[0] == '[') && len(rest) > 0 && bytes.IndexByte([]byte(`"{[`), rest[0]) >= 0
}

// pretty makes lines of what strings in such a text hold: of the ends of lines as they are
// written in them, and of each element of a list, without its quotes.
type pretty struct {
	inString bool
	comma    bool // the string that ended was an element, which a comma may follow
	lists    uint64
	depth    int // of which as many as lists has bits are known to be lists or objects
}

// maxEndLength is as long as what decides on an escape may be: `\r\n"`.
const maxEndLength = 5

func (j *pretty) longest() int { return maxEndLength }

func (j *pretty) rewrite(p []byte, last bool) (kept, taken int) {
	for i := 0; i < len(p); i++ {
		from, of := i, outsideStrings
		if j.inString {
			of = insideStrings
		}
		for i < len(p) && decides[p[i]]&of == 0 {
			i++
		}
		if i > from {
			j.comma = false
			if kept != from {
				copy(p[kept:], p[from:i])
			}
			if kept += i - from; i == len(p) {
				break
			}
		}
		c := p[i]
		if c == '\\' {
			if !last && len(p)-i < maxEndLength {
				return kept, i
			}
			n, with := unescaped(p[i:])
			if with != 0 {
				p[kept] = with
				kept++
			}
			i += n - 1
			continue
		}
		if j.accepts(c) {
			p[kept] = c
			kept++
		}
	}
	return kept, len(p)
}

const (
	outsideStrings uint8 = 1 << iota
	insideStrings
)

// decides states of each byte where it is more than a part of the lines.
var decides = [256]uint8{
	'"': outsideStrings | insideStrings, '\\': insideStrings, '\n': insideStrings,
	',': outsideStrings, '[': outsideStrings, ']': outsideStrings, '{': outsideStrings, '}': outsideStrings,
}

// accepts takes a byte that decides and is no escape, and reports whether it is part of the lines.
func (j *pretty) accepts(c byte) bool {
	comma := j.comma
	j.comma = false
	switch {
	case c == '"':
		j.inString = !j.inString
		j.comma = !j.inString && j.inList()
		return !j.inList()
	case c == '\n':
		j.inString = false // a string ends on its line
	case j.inString:
	case c == ',':
		return !comma
	case c == '[':
		j.lists, j.depth = j.lists<<1|1, j.depth+1
	case c == '{':
		j.lists, j.depth = j.lists<<1, j.depth+1
	case (c == ']' || c == '}') && j.depth > 0:
		j.lists, j.depth = j.lists>>1, j.depth-1
	}
	return true
}

// inList reports whether the innermost of what is open is a list.
func (j *pretty) inList() bool { return j.lists&1 == 1 }

// unescaped is what an escape stands for, 0 if it is the end of the string's last line, and
// the length of the escape.
func unescaped(text []byte) (n int, with byte) {
	if len(text) < 2 {
		return 1, text[0]
	}
	switch c := text[1]; c {
	case 'r':
		if HasPrefix(text[2:], `\n`) {
			n, with = unescaped(text[2:])
			return 2 + n, with
		}
		return 2, 0
	case 'n':
		if HasPrefix(text[2:], `"`) {
			return 2, 0
		}
		return 2, '\n'
	case 't':
		return 2, '\t'
	case '"', '\\', '/':
		return 2, c
	}
	return 1, text[0]
}
