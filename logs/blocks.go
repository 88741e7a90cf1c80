package logs

import (
	"bytes"
	"io"
)

// A block is a part of a text that is read at once, and the words in it.
type block struct {
	in  io.Reader
	err error // at which the text ended

	room     []byte
	from, to int // what was read and not taken is there
	// hits are the words that end in what was not taken, by where that is in room.
	hits  []hit
	found []hit // in which they are
	words *literals
	state uint32
	next  int // up to here nothing is to be left out
}

// A hit is a word that was found, and where it ends.
type hit struct{ word, end int32 }

func newBlock(r io.Reader, words *literals) *block {
	const size = 4 * longestLine
	return &block{in: r, words: words, room: make([]byte, size)}
}

// fill reads until there is a line, or a piece of one that is too long; it reports
// whether anything is left.
func (b *block) fill() bool {
	for b.err == nil && b.to-b.from < longestLine && bytes.IndexByte(b.room[b.from:b.to], '\n') < 0 {
		if b.from == b.to || len(b.room)-b.to < longestLine {
			b.move()
		}
		var n int
		n, b.err = b.in.Read(b.room[b.to:])
		kept := len(b.hits)
		known := len(b.found)
		b.state = b.words.scan(b.state, b.room[b.to:b.to+n], func(word, end int) {
			b.found = append(b.found, hit{int32(word), int32(b.to + end)})
		})
		b.hits = b.found[known-kept:]
		b.to += n
	}
	return b.from < b.to
}

// move makes room behind what was not taken.
func (b *block) move() {
	copy(b.room, b.room[b.from:b.to])
	for i := range b.hits {
		b.hits[i].end -= int32(b.from)
	}
	b.next, b.to, b.from = max(0, b.next-b.from), b.to-b.from, 0
	b.found = append(b.found[:0], b.hits...)
	b.hits = b.found
}

// line takes the next line, and the words that end in it; more says that it is a
// piece of a line that is longer.
func (b *block) line() (text []byte, hits []hit, more bool) {
	text = b.room[b.from:min(b.to, b.from+longestLine)]
	n := len(text)
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		text, n = bytes.TrimSuffix(text[:end], []byte("\r")), end+1
	} else {
		more = n == longestLine
	}
	return text, b.take(n), more
}

// take takes n bytes, and the words that end in them, from their beginning.
func (b *block) take(n int) (hits []hit) {
	before := int32(b.from)
	b.from += n
	some := 0
	for some < len(b.hits) && int(b.hits[some].end) <= b.from {
		b.hits[some].end -= before
		some++
	}
	hits, b.hits = b.hits[:some], b.hits[some:]
	return hits
}

// skip takes lines in which no word ends, except for the last before one that has; it
// returns how many.
func (b *block) skip() (lines int64) {
	if b.from < b.next {
		return 0
	}
	text := b.room[b.from:b.to]
	if len(b.hits) > 0 {
		text = text[:int(b.hits[0].end)-b.from]
	}
	b.next = b.from + len(text)
	end := len(text)
	for range mostBefore + 2 {
		if end = bytes.LastIndexByte(text[:end], '\n'); end < 0 {
			return 0
		}
	}
	lines = int64(bytes.Count(text[:end+1], []byte("\n")))
	b.take(end + 1)
	return lines
}
