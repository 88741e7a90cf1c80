package logs

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// brokenAt is the width at which the lines of a text are broken, as a terminal and what is
// copied from it break them, by the beginning of the text; 0 if they are not. Several lines
// are then of that length, and none is longer. The prefix is how all lines begin, except for
// digits: what follows it may be the rest of the line before.
func brokenAt(head []byte) (width int, prefix []byte) {
	const least, most, some, longest = 60, 400, 3, 128
	count, lines := 0, 0
	shown, _ := io.ReadAll(plain(bytes.NewReader(head)))
	for line := range bytes.Lines(shown) {
		text := bytes.TrimRight(line, "\r\n")
		switch n := utf8.RuneCount(text); {
		case n > width:
			width, count = n, 1
		case n == width:
			count++
		}
		if lines++; lines == 1 {
			prefix = bytes.Clone(text[:min(len(text), longest)])
		} else if bytes.HasSuffix(line, []byte("\n")) && len(text) > 0 { // else the rest of it is not in the head
			prefix = prefix[:commonPrefix(text, prefix)]
		}
	}
	if width < least || width > most || count < some {
		return 0, nil
	}
	return width, prefix
}

// joiner joins the lines that were broken at a width, and reads what they were.
type joiner struct {
	e      *engineReader
	width  int    // in characters
	prefix []byte // of each line
	text   []byte
	hits   []hit
}

// line adds a line and the words that end in it.
func (j *joiner) line(text []byte, hits []hit, v *vocabulary, number int64) {
	width := utf8.RuneCount(text)
	if len(j.text) == 0 {
		if j.e.number = number; width != j.width { // it is whole
			j.e.line(text, hits, v)
			return
		}
	} else if n := len(j.prefix); n > 0 && commonPrefix(text, j.prefix) == n {
		text = text[n:]
	}
	at := int32(len(j.text))
	if len(j.prefix) == 0 {
		for _, h := range hits {
			j.hits = append(j.hits, hit{h.word, at + h.end})
		}
	}
	j.text = append(j.text, text...)
	if width != j.width || len(j.text) >= longestLine {
		j.flush(v)
	}
}

// flush reads the line that was joined. Words in which a prefix stood are searched for anew.
func (j *joiner) flush(v *vocabulary) {
	if len(j.prefix) > 0 {
		v.words.scan(0, j.text, func(word, end int) { j.hits = append(j.hits, hit{int32(word), int32(end)}) })
	}
	j.e.line(j.text, j.hits, v)
	j.text, j.hits = j.text[:0], j.hits[:0]
}
