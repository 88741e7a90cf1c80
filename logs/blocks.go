package logs

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// A block is a part of a text: whole lines, or pieces of one that is too long; and the
// words that end in it, for each of those who read it.
type block struct {
	text []byte
	hits [mostReaders][]hit
	held sync.WaitGroup // by those who have not read it
}

// A hit is a word that was found, and where it ends.
type hit struct{ word, end int32 }

// mostReaders is how many can read a text at once, each the words that are for it.
const mostReaders = 3

// A source reads a text in blocks and finds the words in them, ahead of those who read
// the lines.
type source struct {
	in     io.Reader
	err    error // at which the text ended
	words  *literals
	reader []uint8 // by word
	state  uint16  // of words
	rest   block   // what follows the last line of the last block
}

// eachLine has readers go through a text, at the same time, in the order of their numbers. It returns the error at
// which the text ended, nil if that is its end.
func eachLine(in io.Reader, v *vocabulary, read ...func(*lines)) error {
	const ahead = 4
	s := source{in: plain(in), words: v.words, reader: v.reader}
	to := make([]chan *block, len(read))
	var all sync.WaitGroup
	for i := range to {
		to[i] = make(chan *block, ahead)
		all.Go(func() { read[i](&lines{in: to[i], reader: i, block: &block{}}) })
	}
	var ring [ahead]block
	for n := 0; ; n++ {
		b := &ring[n%ahead]
		b.held.Wait()
		if !s.fill(b) {
			break
		}
		b.held.Add(len(read))
		for _, c := range to {
			c <- b
		}
	}
	for _, c := range to {
		close(c)
	}
	all.Wait()
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// fill reads the next block; it reports whether there is one.
func (s *source) fill(b *block) bool {
	const size, room = 4 * longestLine, 4 << 10
	if b.text == nil {
		b.text = make([]byte, 0, size+room)
	}
	b.text = append(b.text[:0], s.rest.text...)
	for i := range b.hits {
		b.hits[i] = append(b.hits[i][:0], s.rest.hits[i]...)
	}
	for s.err == nil && len(b.text) < size {
		at := len(b.text)
		var n int
		n, s.err = s.in.Read(b.text[at:cap(b.text)])
		b.text = b.text[:at+n]
		s.find(b, at)
	}
	if s.err == nil {
		end := bytes.LastIndexByte(b.text, '\n') + 1
		if end == 0 {
			end = len(b.text) / longestLine * longestLine
		}
		s.keep(b, end)
	} else {
		s.keep(b, len(b.text))
	}
	return len(b.text) > 0
}

// find adds the words that end in a block from some byte on, as [literals.scan] finds them:
// a call for each would cost as much as to find it.
func (s *source) find(b *block, from int) {
	next, class, state := s.words.next, &s.words.class, s.state
	for i, c := range b.text[from:] {
		state = next[int(state)<<classBits|int(class[c])]
		if state&ending != 0 {
			state &^= ending
			for _, word := range s.words.ends[state] {
				hits := &b.hits[s.reader[word]]
				*hits = append(*hits, hit{int32(word), int32(from + i + 1)})
			}
		}
	}
	s.state = state
}

// keep takes what is behind some byte out of a block, for the next one.
func (s *source) keep(b *block, end int) {
	s.rest.text = append(s.rest.text[:0], b.text[end:]...)
	b.text = b.text[:end]
	for i, hits := range b.hits {
		n := len(hits)
		for n > 0 && int(hits[n-1].end) > end {
			n--
		}
		s.rest.hits[i] = s.rest.hits[i][:0]
		for _, h := range hits[n:] {
			s.rest.hits[i] = append(s.rest.hits[i], hit{h.word, h.end - int32(end)})
		}
		b.hits[i] = hits[:n]
	}
}

// lines are those of a text, one after the other, with the words that are for one reader.
type lines struct {
	in     <-chan *block
	reader int
	block  *block
	from   int   // what was not taken begins there
	hits   []hit // that end in it, by where that is in the block
	next   int   // up to here nothing is to be left out
	begun  bool
	passed int64 // lines that are only counted, since the last one
}

// more reports whether a line is left, or a piece of one that is too long.
func (l *lines) more() bool {
	for {
		for hasPrefix(l.block.text[l.from:], passedLine) {
			l.from += len(passedLine)
			l.passed++
		}
		if l.from < len(l.block.text) {
			return true
		}
		if l.begun {
			l.block.held.Done()
		}
		b, ok := <-l.in
		if l.begun = ok; !ok {
			return false
		}
		l.block, l.from, l.hits, l.next = b, 0, b.hits[l.reader], 0
	}
}

// counted is how many lines were only counted since it was asked.
func (l *lines) counted() (n int64) {
	n, l.passed = l.passed, 0
	return n
}

// line takes the next line, and the words that end in it; more states that it is a
// piece of a line that is longer.
func (l *lines) line() (text []byte, hits []hit, more bool) {
	text = l.block.text[l.from:min(len(l.block.text), l.from+longestLine)]
	n := len(text)
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		text, n = bytes.TrimSuffix(text[:end], []byte("\r")), end+1
	} else {
		more = n == longestLine
	}
	return text, l.take(n), more
}

// take takes n bytes, and the words that end in them, from their beginning.
func (l *lines) take(n int) (hits []hit) {
	before := int32(l.from)
	l.from += n
	some := 0
	for some < len(l.hits) && int(l.hits[some].end) <= l.from {
		l.hits[some].end -= before
		some++
	}
	hits, l.hits = l.hits[:some], l.hits[some:]
	return hits
}

// skip takes lines in which no word ends, except for the last before one that has; it
// returns how many.
func (l *lines) skip() (count int64) {
	if l.from < l.next {
		return 0
	}
	text := l.block.text[l.from:]
	if len(l.hits) > 0 {
		text = text[:int(l.hits[0].end)-l.from]
	}
	l.next = l.from + len(text)
	end := len(text)
	for range mostBefore + 2 {
		if end = bytes.LastIndexByte(text[:end], '\n'); end < 0 {
			return 0
		}
	}
	count = int64(bytes.Count(text[:end+1], []byte("\n")))
	l.take(end + 1)
	return count
}
