package text

import (
	"bytes"
	"errors"
	"io"
	"sync"
)

// A Reader takes the lines of a text, in their order.
type Reader interface {
	// Line takes a line, or the next piece of one that is longer than [LongestLine], by the
	// number of the line, with the reader's words that end in it.
	Line(number int64, line []byte, hits []Hit)
	// Idle reports whether lines behind one of a number can be skipped up to the next that has
	// a word, but for the last [Before].
	Idle(number int64) bool
}

const (
	// LongestLine is the longest line in bytes: the rest of a longer one is another piece.
	LongestLine = 64 << 10
	// Before is how many lines before one with a word are never skipped.
	Before = 21
)

// A Hit is a word that was found, by its index among the reader's, and the byte of the
// line where it ends.
type Hit struct{ Word, End int32 }

// A Vocabulary is the words for which several readers search a text at once.
type Vocabulary struct {
	words    *literals
	of       []wordOf // by word
	readers  int
	thorough bool // no line is skipped, for tests
}

// wordOf is the reader that a word is for, and its index there.
type wordOf struct{ reader, word int32 }

// NewVocabulary makes the vocabulary of as many readers as there are lists. The words are in
// lower case and without white space.
func NewVocabulary(lists ...[]string) *Vocabulary {
	v := &Vocabulary{readers: len(lists)}
	var words []string
	for reader, list := range lists {
		for i := range list {
			v.of = append(v.of, wordOf{int32(reader), int32(i)})
		}
		words = append(words, list...)
	}
	v.words = newLiterals(words)
	return v
}

// Thorough is the vocabulary for readers that get every line: what they find must be the same.
func (v *Vocabulary) Thorough() *Vocabulary {
	all := *v
	all.thorough = true
	return &all
}

// Each has readers go through a text at the same time, in the order of the lists of the
// vocabulary. It returns the number of lines, and the error at which the text ended, nil if that is its end.
func Each(in io.Reader, v *Vocabulary, readers ...Reader) (count int64, err error) {
	const ahead = 4
	s := source{v: v}
	var service []byte
	if s.in, service = plain(in); service != nil {
		s.name(service)
	}
	to := make([]chan *block, len(readers))
	var all sync.WaitGroup
	for i, r := range readers {
		to[i] = make(chan *block, ahead)
		all.Go(func() {
			l := lines{in: to[i], reader: i, block: &block{}}
			l.each(r, v.thorough)
			if i == 0 {
				count = l.number
			}
		})
	}
	var ring [ahead]block
	for n := 0; ; n++ {
		b := &ring[n%ahead]
		b.held.Wait()
		if !s.fill(b) {
			break
		}
		b.held.Add(len(readers))
		for _, c := range to {
			c <- b
		}
	}
	for _, c := range to {
		close(c)
	}
	all.Wait()
	for i := range ring {
		if text := ring[i].text; cap(text) == blockSize+blockRoom {
			buffers.Put((*[blockSize + blockRoom]byte)(text[:cap(text)]))
		}
	}
	if errors.Is(s.err, io.EOF) {
		return count, nil
	}
	return count, s.err
}

// A block is a part of a text: whole lines, or pieces of one that is too long; and the
// words that end in it, by reader.
type block struct {
	text []byte
	hits [][]Hit
	held sync.WaitGroup // by those who have not read it
}

// A source reads a text in blocks and finds the words in them, ahead of those who read
// the lines.
type source struct {
	in    io.Reader
	err   error // at which the text ended
	v     *Vocabulary
	state uint16 // of the search
	rest  block  // what follows the last line of the last block
}

// buffers are those of blocks: most of what a short text would cost.
const blockSize, blockRoom = 4 * LongestLine, 4 << 10

var buffers = sync.Pool{New: func() any { return new([blockSize + blockRoom]byte) }}

// fill reads the next block; it reports whether there is one.
func (s *source) fill(b *block) bool {
	if s.err != nil && len(s.rest.text) == 0 {
		return false
	}
	if b.text == nil {
		b.text, b.hits = buffers.Get().(*[blockSize + blockRoom]byte)[:0], make([][]Hit, s.v.readers)
	}
	if s.rest.hits == nil {
		s.rest.hits = make([][]Hit, s.v.readers)
	}
	b.text = append(b.text[:0], s.rest.text...)
	for i := range b.hits {
		b.hits[i] = append(b.hits[i][:0], s.rest.hits[i]...)
	}
	for s.err == nil && len(b.text) < blockSize {
		at := len(b.text)
		var n int
		n, s.err = s.in.Read(b.text[at:cap(b.text)])
		b.text = b.text[:at+n]
		s.find(b, at)
	}
	if s.err == nil {
		end := bytes.LastIndexByte(b.text, '\n') + 1
		if end == 0 {
			end = len(b.text) / LongestLine * LongestLine
		}
		s.keep(b, end)
	} else {
		s.keep(b, len(b.text))
	}
	return len(b.text) > 0
}

// name adds the words in the name of a service to the first line.
func (s *source) name(service []byte) {
	named := block{text: service, hits: make([][]Hit, s.v.readers)}
	s.find(&named, 0)
	for _, hits := range named.hits {
		for i := range hits {
			hits[i].End = 0
		}
	}
	s.state, s.rest.hits = 0, named.hits
}

// find adds the words that end in a block from some byte on, as [literals.scan] finds them:
// a call for each would cost as much as to find it.
func (s *source) find(b *block, from int) {
	words, state, of, hits := s.v.words, s.state, s.v.of, b.hits
	next, class := words.next, &words.class
	for i, c := range b.text[from:] {
		state = next[int(state)<<classBits|int(class[c])]
		if state&ending != 0 {
			state &^= ending
			for _, word := range words.ends[state] {
				of := of[word]
				hits[of.reader] = append(hits[of.reader], Hit{of.word, int32(from + i + 1)})
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
		for n > 0 && int(hits[n-1].End) > end {
			n--
		}
		s.rest.hits[i] = s.rest.hits[i][:0]
		for _, h := range hits[n:] {
			s.rest.hits[i] = append(s.rest.hits[i], Hit{h.Word, h.End - int32(end)})
		}
		b.hits[i] = hits[:n]
	}
}

// lines are those of a text, one after the other, with the words that are for one reader.
type lines struct {
	in     <-chan *block
	reader int
	number int64 // of the last line
	block  *block
	from   int   // what was not taken begins there
	hits   []Hit // that end in it, by where that is in the block
	next   int   // up to here nothing is to be left out
	begun  bool
}

// each gives a reader its lines.
func (l *lines) each(r Reader, thorough bool) {
	for within := false; l.hasNext(); {
		if !within {
			if !thorough && r.Idle(l.number) {
				l.skip()
			}
			l.number++
		}
		var line []byte
		var hits []Hit
		line, hits, within = l.line()
		r.Line(l.number, line, hits)
	}
}

// hasNext reports whether a line is left, or a piece of one that is too long.
func (l *lines) hasNext() bool {
	for {
		for HasPrefix(l.block.text[l.from:], passedLine) {
			l.from += len(passedLine)
			l.number++
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

// line takes the next line, and the words that end in it; more states that it is a
// piece of a line that is longer.
func (l *lines) line() (text []byte, hits []Hit, more bool) {
	text = l.block.text[l.from:min(len(l.block.text), l.from+LongestLine)]
	n := len(text)
	if end := bytes.IndexByte(text, '\n'); end >= 0 {
		text, n = bytes.TrimSuffix(text[:end], []byte("\r")), end+1
	} else {
		more = n == LongestLine
	}
	return text, l.take(n), more
}

// take takes n bytes, and the words that end in them, from their beginning.
func (l *lines) take(n int) (hits []Hit) {
	before := int32(l.from)
	l.from += n
	some := 0
	for some < len(l.hits) && int(l.hits[some].End) <= l.from {
		l.hits[some].End -= before
		some++
	}
	hits, l.hits = l.hits[:some], l.hits[some:]
	return hits
}

// skip takes lines in which no word ends, except for the last before one that has.
func (l *lines) skip() {
	if l.from < l.next {
		return
	}
	text := l.block.text[l.from:]
	if len(l.hits) > 0 {
		text = text[:int(l.hits[0].End)-l.from]
	}
	l.next = l.from + len(text)
	end := len(text)
	for range Before + 1 {
		if end = bytes.LastIndexByte(text[:end], '\n'); end < 0 {
			return
		}
	}
	l.number += int64(bytes.Count(text[:end+1], []byte("\n")))
	l.take(end + 1)
}
