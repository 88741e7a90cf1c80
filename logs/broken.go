package logs

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// brokenAt is the width at which the lines of a text are broken, as a terminal and what is
// copied from it break them, by the beginning of the text; 0 if they are not. Several lines
// are then of that length, and none is longer.
func brokenAt(head []byte) int {
	const least, most, some = 60, 400, 3
	width, count := 0, 0
	shown, _ := io.ReadAll(plain(bytes.NewReader(head)))
	for line := range bytes.Lines(shown) {
		switch n := utf8.RuneCount(bytes.TrimRight(line, "\r\n")); {
		case n > width:
			width, count = n, 1
		case n == width:
			count++
		}
	}
	if width < least || width > most || count < some {
		return 0
	}
	return width
}

// joiner joins the lines that were broken at a width, and reads what they were.
type joiner struct {
	e     *engineReader
	width int // in characters
	text  []byte
	hits  []hit
}

// line adds a line and the words that end in it.
func (j *joiner) line(text []byte, hits []hit, v *vocabulary, number int64) {
	if len(j.text) == 0 {
		j.e.number = number
	}
	at := int32(len(j.text))
	for _, h := range hits {
		j.hits = append(j.hits, hit{h.word, at + h.end})
	}
	j.text = append(j.text, text...)
	if utf8.RuneCount(text) != j.width || len(j.text) >= longestLine {
		j.flush(v)
	}
}

// flush reads the line that was joined.
func (j *joiner) flush(v *vocabulary) {
	j.e.line(j.text, j.hits, v)
	j.text, j.hits = j.text[:0], j.hits[:0]
}
