package report

import (
	"crypto/rand"
	"io"
	"net/url"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// control reports whether a terminal would act on a character: a control character,
// another line break, or a mark that changes the direction of text.
func control(r rune) bool {
	if r < unicode.MaxASCII {
		return r != '\n' && r != '\t' && breaks(r)
	}
	return breaks(r) || unicode.Is(unicode.Bidi_Control, r)
}

// breaks reports whether a character moves to another line or column, or is
// another control character.
func breaks(r rune) bool {
	if ' ' <= r && r < unicode.MaxASCII { // most of all
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp)
}

// Printable replaces in text of unknown origin what a terminal would act on; its
// lines stay lines.
func Printable(s string) string { return replace(s, control) }

// Line is [Printable] for text inside a line, such as the name of a function in a
// user's file: line breaks and tabs are replaced too.
func Line(s string) string {
	return replace(s, func(r rune) bool { return control(r) || breaks(r) })
}

// replace replaces the characters for which is reports true, and what is not UTF-8,
// which terminals with one byte per character may act on.
func replace(s string, is func(rune) bool) string {
	return strings.Map(func(r rune) rune {
		if is(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// escape begins the colors and links of [Style] until [PrintableWriter] turns it into the
// character that a terminal acts on. It is random, so that no file can contain it and print
// in color.
var escape = "\x00" + rand.Text()

// ink begins a color.
var ink = escape + "["

// link has terminals open the file of a text; the file has its whole path.
func (s Style) link(file, text string) string {
	if !s.Links || !path.IsAbs(file) {
		return text
	}
	hidden := strings.NewReplacer("\x1b", escape, "\a", escape+"\\")
	at := url.URL{Scheme: "file", Path: file}
	return hidden.Replace(ansi.SetHyperlink(at.String())) + text + hidden.Replace(ansi.ResetHyperlink())
}

// PrintableWriter passes text on to w through [Printable], and with the colors and
// links of [Style], which no other text can have.
func PrintableWriter(w io.Writer) io.Writer { return &printableWriter{w: w} }

type printableWriter struct {
	w    io.Writer
	rest string // of the last text, the beginning of a character
}

func (p *printableWriter) Write(b []byte) (int, error) {
	text := p.rest + string(b)
	whole := len(text) - unfinished(text)
	text, p.rest = text[:whole], text[whole:]
	parts := strings.Split(text, escape)
	for i := range parts {
		parts[i] = Printable(parts[i])
	}
	if _, err := io.WriteString(p.w, strings.Join(parts, "\x1b")); err != nil {
		return 0, err
	}
	return len(b), nil
}

// unfinished returns the number of bytes at the end of a text that begin a character
// and do not complete it.
func unfinished(text string) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if tail := text[len(text)-n:]; utf8.RuneStart(tail[0]) {
			if utf8.FullRuneInString(tail) {
				return 0
			}
			return n
		}
	}
	return 0
}
