package text

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// A Joiner is a reader of the lines that a text had before they were broken at a width, as a
// terminal and what is copied from it break them.
type Joiner struct {
	to     Reader
	words  *literals // the words of the vocabulary
	of     []wordOf  // their readers
	reader int32     // of which the lines are
	width  int       // in characters
	prefix []byte    // of each line
	text   []byte
	hits   []Hit
	number int64 // of the last line
}

// NewJoiner is a joiner for a text with some beginning, that gives a reader of the vocabulary
// its lines; nil where they are not broken: several lines are then of one length, and none is
// longer. The prefix is how all lines begin, except for digits: what follows it may be the
// rest of the line before.
func NewJoiner(head []byte, v *Vocabulary, reader int, to Reader) *Joiner {
	const minWidth, maxWidth, minLines, maxPrefix = 60, 400, 3, 128
	j := &Joiner{to: to, words: v.words, of: v.of, reader: int32(reader)}
	count, lines := 0, 0
	text, _ := plain(bytes.NewReader(head))
	shown, _ := io.ReadAll(text)
	for line := range bytes.Lines(shown) {
		text := bytes.TrimRight(line, "\r\n")
		switch n := utf8.RuneCount(text); {
		case n > j.width:
			j.width, count = n, 1
		case n == j.width:
			count++
		}
		if lines++; lines == 1 {
			j.prefix = bytes.Clone(text[:min(len(text), maxPrefix)])
		} else if bytes.HasSuffix(line, []byte("\n")) && len(text) > 0 { // else the rest of it is not in the head
			j.prefix = j.prefix[:CommonPrefix(text, j.prefix)]
		}
	}
	if j.width < minWidth || j.width > maxWidth || count < minLines {
		return nil
	}
	return j
}

// Idle implements [Reader].
func (j *Joiner) Idle(int64) bool { return false }

// Line implements [Reader]: it joins the line to those before it.
func (j *Joiner) Line(number int64, line []byte, hits []Hit) {
	width := utf8.RuneCount(line)
	if len(j.text) == 0 {
		if j.number = number; width != j.width { // it is whole
			j.to.Line(number, line, hits)
			return
		}
	} else if n := len(j.prefix); n > 0 && CommonPrefix(line, j.prefix) == n {
		line = line[n:]
	}
	at := int32(len(j.text))
	if len(j.prefix) == 0 {
		for _, h := range hits {
			j.hits = append(j.hits, Hit{h.Word, at + h.End})
		}
	}
	j.text = append(j.text, line...)
	if width != j.width || len(j.text) >= LongestLine {
		j.Flush()
	}
}

// Flush gives the reader the last line. Words in which a prefix stood are searched for anew.
func (j *Joiner) Flush() {
	if len(j.prefix) > 0 {
		j.words.scan(0, j.text, func(word, end int) {
			if of := j.of[word]; of.reader == j.reader {
				j.hits = append(j.hits, Hit{of.word, int32(end)})
			}
		})
	}
	j.to.Line(j.number, j.text, j.hits)
	j.text, j.hits = j.text[:0], j.hits[:0]
}
