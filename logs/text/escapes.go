package text

import (
	"io"
	"strings"
)

// unpainted takes the escape sequences of terminals out of text, also as they are
// quoted ("\u001b[31m") or left over where the escape is lost ("[31m"), makes a
// common space of each that is not one, and a character or the end of a line of what is
// one in HTML.
func unpainted(r io.Reader) io.Reader { return rewritten(r, sequences{}) }

// sequences is that rewriting.
type sequences struct{}

// maxSequenceLength is as long as an escape sequence may be.
const maxSequenceLength = 32

func (sequences) longest() int { return maxSequenceLength }

// special are the bytes with which something to be taken out begins.
var special = [256]bool{0x1b: true, '[': true, '\\': true, '^': true, '&': true, '<': true, 0xc2: true, 0xe2: true, 0xef: true}

func (sequences) rewrite(p []byte, last bool) (kept, taken int) {
	from := 0
	for i := 0; i < len(p); {
		if !special[p[i]] {
			i++
			continue
		}
		n, instead := sequence(p[i:])
		if n < 0 && !last && len(p)-i < maxSequenceLength {
			p = p[:i]
			break
		}
		if n <= 0 {
			i++
			continue
		}
		if kept != from {
			copy(p[kept:], p[from:i])
		}
		kept += i - from
		if instead != 0 {
			p[kept] = instead
			kept++
		}
		i += n
		from = i
	}
	if kept != from {
		copy(p[kept:], p[from:])
	}
	return kept + len(p) - from, len(p)
}

// sequence is the length of what is to be taken out at the beginning of a text, 0 if
// that is nothing, and -1 if the text ends before it shows; what is to be there instead is
// 0 if nothing is.
func sequence(text []byte) (n int, instead byte) {
	const wide, none, mark = "\u202f", "\u200b", "\ufeff"
	switch text[0] {
	case 0x1b:
		return escape(text), 0
	case '[':
		if len(text) > 1 && !Digit(text[1]) && text[1] != ';' { // as most are
			return 0, 0
		}
		return colored(text, "["), 0
	case '^':
		if len(text) > 1 && text[1] != '[' {
			return 0, 0
		}
		return colored(text, "^[["), 0
	case '\\':
		return quotedColor(text), 0
	case '&', '<':
		return ofHTML(text)
	case 0xc2:
		return begins(text, "\u00a0"), ' '
	case 0xef:
		return begins(text, mark), 0
	}
	if n := begins(text, none); n != 0 {
		return n, 0
	}
	if len(text) > 2 && text[1] == wide[1] && text[2] >= 0x80 && text[2] <= 0x8a { // of several widths
		return len(wide), ' '
	}
	return begins(text, wide), ' '
}

// inHTML are characters and ends of lines as a page has them.
var inHTML = []struct {
	words   string
	instead byte
}{
	{"&lt;", '<'}, {"&gt;", '>'}, {"&amp;", '&'}, {"&quot;", '"'}, {"&#34;", '"'}, {"&#39;", '\''}, {"&#x27;", '\''}, {"&apos;", '\''}, {"&nbsp;", ' '}, {"&#160;", ' '},
	{"</span>", 0}, {"</code>", 0}, {"</pre>", 0}, {"<code>", 0}, {"<pre>", 0}, {"<p>", 0}, {"<table>", 0}, {"<tr>", ' '}, {"<td>", ' '}, {"</td>", ' '},
	{"<br>", '\n'}, {"<br/>", '\n'}, {"<br />", '\n'}, {"</p>", '\n'}, {"</div>", '\n'}, {"</li>", '\n'}, {"</tr>", '\n'},
}

// ofHTML is the length of such a character or end of a line, with the end of the line
// behind it.
func ofHTML(text []byte) (n int, instead byte) {
	for _, h := range inHTML {
		switch n = begins(text, h.words); {
		case n == 0:
			continue
		case n > 0 && h.instead == '\n' && len(text) == n:
			return -1, 0 // what is behind it does not show
		case n > 0 && h.instead == '\n' && text[n] == '\n':
			n++
		case n > 0 && h.instead == '\n' && HasPrefix(text[n:], "\r\n"):
			n += 2
		}
		return n, h.instead
	}
	return 0, 0
}

// quotedColor is the length of a color whose escape is written as in a program.
func quotedColor(text []byte) int {
	if len(text) > 1 && strings.IndexByte("ux0e", text[1]) < 0 {
		return 0
	}
	for _, quoted := range []string{`\u001b[`, `\u001B[`, `\x1b[`, `\x1B[`, `\033[`, `\e[`} {
		if n := colored(text, quoted); n != 0 {
			return n
		}
	}
	return 0
}

// begins is the length of some words if a text begins with them, 0 if it does not, -1
// if it ends within them.
func begins(text []byte, words string) int {
	switch n := min(len(text), len(words)); {
	case string(text[:n]) != words[:n]:
		return 0
	case n < len(words):
		return -1
	}
	return len(words)
}

// escape is the length of an escape sequence of a terminal (ECMA-48).
func escape(text []byte) int {
	if len(text) < 2 {
		return -1
	}
	switch text[1] {
	case '(', ')':
		if len(text) < 3 {
			return -1
		}
		return 3
	case ']': // a title or a link, up to a bell or another escape
		for i, c := range text[2:min(len(text), maxSequenceLength)] {
			switch c {
			case 0x07:
				return i + 3
			case 0x1b, '\n':
				return i + 2
			}
		}
	case '[':
		for i, c := range text[2:min(len(text), maxSequenceLength)] {
			switch {
			case c >= '@' && c <= '~':
				return i + 3
			case c < ' ' || c > '~':
				return i + 2
			}
		}
	default:
		return 1
	}
	if len(text) < maxSequenceLength {
		return -1
	}
	return 2
}

// colored returns the length of a color whose escape is written in some way: it is
// followed by numbers and an m.
func colored(text []byte, escape string) int {
	n := begins(text, escape)
	if n <= 0 {
		return n
	}
	for i, c := range text[n:min(len(text), maxSequenceLength)] {
		switch {
		case c == 'm' && i > 0:
			return n + i + 1
		case !Digit(c) && c != ';':
			return 0
		}
	}
	if len(text) < maxSequenceLength {
		return -1
	}
	return 0
}
