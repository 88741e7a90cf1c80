package report

import (
	"bytes"
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// Live returns the figures so far as lines for a screen with the given number of rows;
// 0 is unknown.
func (d *Trace) Live(s Style, rows int) []string {
	var text bytes.Buffer
	d.figures(&text, s)
	d.stacks(&text, s, 10)
	lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
	if rows > 1 {
		lines = lines[:min(len(lines), rows-1)] // one is left for the cursor
	}
	return lines
}

// Fit makes a line printable, in its colors, and cuts it to a number of columns of a
// terminal; 0 is unknown. It returns how many columns the result takes.
func Fit(line string, columns int) (string, int) {
	var b bytes.Buffer
	PrintableWriter(&b).Write([]byte(line))
	text := b.String()
	if columns > 0 {
		text = ansi.Truncate(text, columns, "")
	}
	return text, ansi.StringWidth(text)
}
