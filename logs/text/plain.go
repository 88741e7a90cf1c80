package text

import (
	"bufio"
	"bytes"
	"io"
)

// plain restores text that terminals, editors and web pages have changed: one byte a
// character where it has two or four, lines where the text is a string or a list in JSON,
// no colors, the characters of HTML, and common spaces.
// The prefix of a service that all its lines have is left out, and returned.
func plain(r io.Reader) (text io.Reader, service []byte) {
	in := bufio.NewReaderSize(r, LongestLine)
	head, _ := in.Peek(maxHead)
	if wide(head) {
		if byteOrder(head) {
			in.Discard(2) // what was peeked
		}
		in = bufio.NewReaderSize(narrow{in}, LongestLine)
	}
	head, _ = in.Peek(maxQuoted)
	if form, before := quotedAs(head); form != asLines {
		u := &unquoted{form: form}
		if form == asList {
			u.quote = head[before-1]
		}
		in.Discard(before) // what was peeked
		return unpainted(rewritten(in, u)), nil
	}
	if prettyAt(head) {
		r := rewritten(in, &pretty{})
		if recordsIn(head) {
			r = rewritten(r, &records{})
		}
		return unpainted(r), nil
	}
	if prefix := serviceIn(head); prefix != nil {
		return rewritten(unpainted(in), &unprefixed{prefix: prefix}), prefix
	}
	return unpainted(in), nil
}

// maxHead is how much of a text shows its encoding.
const maxHead = 64

// IsText reports whether a file that begins with some bytes is text, of one, two or
// four bytes a character.
func IsText(head []byte) bool {
	return len(head) > 0 && (bytes.IndexByte(head, 0) < 0 || wide(head[:min(len(head), maxHead)]))
}

// Plain is a text of which the beginning is shown: one byte a character and without colors,
// where it has more of them or colors.
func Plain(r io.Reader, head []byte) io.Reader {
	switch {
	case !IsText(head):
	case wide(head[:min(len(head), maxHead)]):
		if byteOrder(head) {
			io.CopyN(io.Discard, r, 2) // what was shown
		}
		return unpainted(narrow{r})
	case bytes.IndexByte(head, 0x1b) >= 0:
		return unpainted(r)
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
	const minCharacters = 4
	larger, smaller := max(zeros[0], zeros[1]), min(zeros[0], zeros[1])
	return smaller == 0 && larger >= minCharacters && 4*larger >= 3*(len(head)/2)
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
