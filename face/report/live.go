package report

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
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

// Fit cuts a line to a number of columns of a terminal; 0 is unknown. It returns how
// many columns the result takes. Colors take none, and end with the line.
func Fit(line string, columns int) (string, int) {
	used := 0
	for i := 0; i < len(line); {
		if color, ok := strings.CutPrefix(line[i:], ink); ok {
			i += len(ink) + strings.IndexByte(color, 'm') + 1
			continue
		}
		r, size := utf8.DecodeRuneInString(line[i:])
		if w := cells(r); columns > 0 && used+w > columns {
			rest := ""
			if strings.Contains(line[:i], ink) {
				rest = ink + "0m"
			}
			return line[:i] + rest, used
		}
		used += cells(r)
		i += size
	}
	return line, used
}

// wide are the characters that take two columns: those of East Asia, and emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, {Lo: 0x231a, Hi: 0x231b, Stride: 1}, {Lo: 0x2329, Hi: 0x232a, Stride: 1},
		{Lo: 0x23e9, Hi: 0x23ec, Stride: 1}, {Lo: 0x2e80, Hi: 0x303e, Stride: 1}, {Lo: 0x3041, Hi: 0x4dbf, Stride: 1},
		{Lo: 0x4e00, Hi: 0xa4cf, Stride: 1}, {Lo: 0xa960, Hi: 0xa97f, Stride: 1}, {Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, {Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, {Lo: 0xff00, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1b000, Hi: 0x1b2ff, Stride: 1}, {Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, {Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1faff, Stride: 1}, {Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// cells returns how many columns of a terminal a character takes.
func cells(r rune) int {
	switch {
	case r < unicode.MaxASCII: // most of all
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}
