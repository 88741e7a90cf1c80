package report

import (
	"io"
	"regexp"
	"strings"
	"unicode"
)

// control is what a terminal would act on: control characters, and marks that
// turn the direction of text around.
func control(r rune) bool {
	return unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
}

// Printable replaces in text of unknown origin, such as the name of a function
// in somebody's file, what a terminal would act on.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if control(r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// color is how [Style] paints.
var color = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// PrintableWriter passes text on to w through [Printable], colours excepted.
func PrintableWriter(w io.Writer) io.Writer { return printableWriter{w} }

type printableWriter struct{ w io.Writer }

func (p printableWriter) Write(b []byte) (int, error) {
	text := string(b)
	if strings.IndexFunc(text, control) >= 0 {
		var out strings.Builder
		from := 0
		for _, m := range color.FindAllStringIndex(text, -1) {
			out.WriteString(Printable(text[from:m[0]]))
			out.WriteString(text[m[0]:m[1]])
			from = m[1]
		}
		out.WriteString(Printable(text[from:]))
		text = out.String()
	}
	if _, err := io.WriteString(p.w, text); err != nil {
		return 0, err
	}
	return len(b), nil
}
