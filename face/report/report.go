// Package report renders what the analyses found: as text that a person reads in ten
// seconds, and as the JSON whose structs are in package api. The document of a
// command is filled in the file of its name: diagnosis.go for diagnose (profiles.go for other
// tools' files, trace.go for recordings), comparison.go, inspection.go, simulation.go,
// plan.go and so on; findings are of package finding, and are worded
// where they are made, in judge/*. It computes nothing
// that another face would have to compute again.
package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"strandline/face/api"
	"strandline/stack"
	"strandline/torch/timeline"
)

// Style states how text is printed. Its colors show through a [PrintableWriter].
type Style struct {
	Color   bool
	Width   int  // of the terminal in columns; 0 is unknown
	Verbose bool // print every detail
	Links   bool // have the terminal open the files of places
}

// columns returns the width that sentences are wrapped to. Paths and tables are never
// wrapped.
func (s Style) columns() int {
	const narrow, usual, wide = 60, 100, 120
	if s.Width == 0 {
		return usual
	}
	return min(max(s.Width, narrow), wide)
}

// wrap breaks a text at spaces into lines of at most n characters; a longer word
// is a line of its own. Line breaks in the text are kept.
func wrap(text string, n int) (lines []string) {
	line, used := "", 0
	for _, word := range strings.Split(Line(text), " ") {
		w := ansi.StringWidth(word)
		if used > 0 && used+1+w > n {
			lines = append(lines, line)
			line, used = "", 0
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+w
	}
	return append(lines, line)
}

// JSON writes a document as indented JSON. Characters that a terminal would act
// on are escaped.
func JSON(w io.Writer, doc any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return err
	}
	_, err := w.Write(escaped(text.Bytes()))
	return err
}

// escaped returns JSON with escapes for the control characters that the standard does
// not require them for, such as DEL, and for marks that change the direction of text.
func escaped(text []byte) []byte {
	if !bytes.ContainsFunc(text, control) {
		return text
	}
	var out []byte
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if control(r) { // all of them are below U+10000
			out = fmt.Appendf(out, "\\u%04x", r)
		} else {
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

func (s Style) paint(code, text string) string {
	if !s.Color {
		return text
	}
	return ink + code + "m" + text + ink + "0m"
}

func (s Style) bold(t string) string   { return s.paint("1", t) }
func (s Style) dim(t string) string    { return s.paint("2", t) }
func (s Style) red(t string) string    { return s.paint("1;31", t) }
func (s Style) yellow(t string) string { return s.paint("33", t) }
func (s Style) green(t string) string  { return s.paint("32", t) }

// sparkline draws values as one line of blocks, the lowest at the bottom.
// Differences of less than a hundredth are drawn flat.
func sparkline(values []int64) string {
	if len(values) < 2 {
		return ""
	}
	low, high := values[0], values[0]
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	const maxShown = 60
	return curve(thinned(values, maxShown), low, high)
}

// thinned returns at most maxShown values, the first and the last among them.
func thinned(values []int64, maxShown int) []int64 {
	if len(values) <= maxShown {
		return values
	}
	out := make([]int64, maxShown)
	for i := range out {
		out[i] = values[i*(len(values)-1)/(maxShown-1)]
	}
	return out
}

// curve draws values from low to high.
func curve(values []int64, low, high int64) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	var b strings.Builder
	for _, v := range values {
		i := 0
		if high-low > high/100 {
			i = int(float64(v-low) / float64(high-low) * float64(len(levels)-1))
		}
		b.WriteRune(levels[i])
	}
	return b.String()
}

// table writes rows in aligned columns; the columns in right are aligned to the right.
type table struct {
	rows  [][]string
	right map[int]bool
}

func (t *table) row(cells ...string) {
	for i := range cells {
		cells[i] = Line(cells[i])
	}
	t.rows = append(t.rows, cells)
}

func (t *table) write(w io.Writer, indent string) {
	var widths []int
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], ansi.StringWidth(c))
		}
	}
	for _, r := range t.rows {
		var b strings.Builder
		b.WriteString(indent)
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-ansi.StringWidth(c))
			if i > 0 {
				b.WriteString("  ")
			}
			if t.right[i] {
				b.WriteString(pad + c)
			} else {
				b.WriteString(c + pad)
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

func siteOf(s stack.Site) api.Site {
	if s == (stack.Site{}) {
		return api.Site{}
	}
	return api.Site{File: &s.File, Line: &s.Line, Function: &s.Function}
}

// placeName prints a site or why there is none.
func placeName(s api.Site, missing timeline.Missing) string {
	if missing != "" {
		return "(" + string(missing) + ")"
	}
	return siteName(s)
}

func siteName(s api.Site) string {
	switch {
	case s.File == nil && s.Function != nil: // an operator
		return Line(*s.Function)
	case s.File == nil:
		return "(stack unknown)"
	}
	return Line(fmt.Sprintf("%s:%d %s", *s.File, *s.Line, *s.Function))
}

// frameName prints a frame without the parts that are unknown.
func frameName(f stack.Frame) string {
	switch {
	case f.File == "":
		return Line(f.Function)
	case f.Line == 0:
		return Line(strings.TrimSpace(f.File + " " + f.Function))
	}
	return Line(strings.TrimSpace(fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function)))
}

// inputName returns the name of a file for people.
func inputName(path string) string {
	if path == "-" {
		return "standard input"
	}
	return Line(path)
}

// keyValues writes tab-separated lines aligned, for short key-value lists.
func keyValues(w io.Writer, f func(w io.Writer)) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	f(tw)
	tw.Flush()
}
