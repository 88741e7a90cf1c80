package logs

import (
	"bufio"
	"bytes"
	"io"
	"strings"
)

// plain restores text that terminals, editors and web pages have changed: one byte a
// character where it has two or four, lines where the text is a string or a list in JSON,
// no colors, the characters of HTML, and common spaces.
func plain(r io.Reader) io.Reader {
	in := bufio.NewReaderSize(r, longestLine)
	head, _ := in.Peek(mostHead)
	if wide(head) {
		if byteOrder(head) {
			in.Discard(2) // what was peeked
		}
		in = bufio.NewReaderSize(narrow{in}, longestLine)
	}
	head, _ = in.Peek(mostQuoted)
	if form, before := quotedAs(head); form != asLines {
		u := &unquoted{r: in, form: form}
		if form == asList {
			u.quote = head[before-1]
		}
		in.Discard(before) // what was peeked
		return &unpainted{r: u}
	}
	if prettyAt(head) {
		if recordsIn(head) {
			return &unpainted{r: &records{r: &pretty{r: in}}}
		}
		return &unpainted{r: &pretty{r: in}}
	}
	if prefix := serviceIn(head); prefix != nil {
		return &unprefixed{r: &unpainted{r: in}, prefix: prefix}
	}
	return &unpainted{r: in}
}

// mostHead is how much of a text shows its encoding.
const mostHead = 64

// IsText reports whether a file that begins with some bytes is text, of one, two or
// four bytes a character.
func IsText(head []byte) bool {
	return len(head) > 0 && (bytes.IndexByte(head, 0) < 0 || wide(head[:min(len(head), mostHead)]))
}

// Plain is a text of which the beginning is shown: one byte a character and without colors,
// where it has more of them or colors.
func Plain(r io.Reader, head []byte) io.Reader {
	switch {
	case !IsText(head):
	case wide(head[:min(len(head), mostHead)]):
		if byteOrder(head) {
			io.CopyN(io.Discard, r, 2) // what was shown
		}
		return &unpainted{r: narrow{r}}
	case bytes.IndexByte(head, 0x1b) >= 0:
		return &unpainted{r: r}
	}
	return r
}

// wide reports whether text has two or four bytes a character, as a redirection in
// PowerShell writes it: by the mark at its beginning, or as the others of each pair
// are zero.
func wide(head []byte) bool {
	if byteOrder(head) {
		return true
	}
	zeros := [2]int{}
	for i, c := range head {
		switch {
		case c == 0:
			zeros[i%2]++
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != 0x1b:
			return false
		}
	}
	const least = 4 // characters
	most, fewest := max(zeros[0], zeros[1]), min(zeros[0], zeros[1])
	return fewest == 0 && most >= least && 4*most >= 3*(len(head)/2)
}

// byteOrder reports whether text begins with the mark of two bytes a character.
func byteOrder(head []byte) bool {
	return bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff"))
}

// narrow removes the zeros from wide text: all that is searched for is ASCII.
type narrow struct{ r io.Reader }

func (n narrow) Read(p []byte) (int, error) {
	for {
		got, err := n.r.Read(p)
		kept := 0
		for _, c := range p[:got] {
			if c != 0 {
				p[kept] = c
				kept++
			}
		}
		if kept > 0 || err != nil || len(p) == 0 {
			return kept, err
		}
	}
}

// unpainted takes the escape sequences of terminals out of text, also as they are
// quoted ("\u001b[31m") or left over where the escape is lost ("[31m"), makes a
// common space of each that is not one, and a character or the end of a line of what is
// one in HTML.
type unpainted struct {
	r    io.Reader
	held []byte // the beginning of what may be a sequence
	err  error
}

// longestSequence is as long as an escape sequence may be.
const longestSequence = 32

func (u *unpainted) Read(p []byte) (int, error) {
	if len(p) <= longestSequence {
		return 0, io.ErrShortBuffer
	}
	for {
		if u.err != nil && len(u.held) == 0 {
			return 0, u.err
		}
		n := copy(p, u.held)
		u.held = u.held[:0]
		if u.err == nil {
			var got int
			got, u.err = u.r.Read(p[n:])
			n += got
		}
		if kept := u.clean(p[:n]); kept > 0 {
			return kept, nil
		}
	}
}

// special are the bytes with which something to be taken out begins.
var special = [256]bool{0x1b: true, '[': true, '\\': true, '^': true, '&': true, '<': true, 0xc2: true, 0xe2: true, 0xef: true}

// clean cleans text in its place and returns how much is left of it; what may be a
// sequence that continues is held, unless the text has ended.
func (u *unpainted) clean(p []byte) (kept int) {
	from := 0
	for i := 0; i < len(p); {
		if !special[p[i]] {
			i++
			continue
		}
		n, instead := sequence(p[i:])
		if n < 0 && u.err == nil && len(p)-i < longestSequence {
			u.held = append(u.held, p[i:]...)
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
	return kept + len(p) - from
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
		return colored(text, "["), 0
	case '^':
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
		case n > 0 && h.instead == '\n' && hasPrefix(text[n:], "\r\n"):
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
		for i, c := range text[2:min(len(text), longestSequence)] {
			switch c {
			case 0x07:
				return i + 3
			case 0x1b, '\n':
				return i + 2
			}
		}
	case '[':
		for i, c := range text[2:min(len(text), longestSequence)] {
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
	if len(text) < longestSequence {
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
	for i, c := range text[n:min(len(text), longestSequence)] {
		switch {
		case c == 'm' && i > 0:
			return n + i + 1
		case !digit(c) && c != ';':
			return 0
		}
	}
	if len(text) < longestSequence {
		return -1
	}
	return 0
}
