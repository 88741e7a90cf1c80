package logs

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// A Text is what a text tells of memory.
type Text struct {
	OOM    Found
	Series []Series // tables of memory_summary(), by process and device, as they come
	// Mixed counts tables that are left out, as lines of several are mixed in them.
	Mixed int
}

// Empty tells a text that holds nothing of it.
func (t *Text) Empty() bool { return t.OOM.Last == nil && len(t.Series) == 0 && t.Mixed == 0 }

// Found is what a text holds of out-of-memory errors.
type Found struct {
	Count int  // messages
	Last  *OOM // nil if there is none
	// Cut is the line on which a message begins that was cut off before its first
	// figure, the last of them; 0 if there is none.
	Cut int64
}

// The bounds of memory and of patience. A message has some 700 characters; a
// narrow terminal makes some twenty lines of them.
const (
	longestLine    = 64 << 10 // of which the rest is taken as another line
	longestMessage = 4 << 10
	mostLines      = 40
	mostOpen       = 64 // messages that are written at the same time, by several ranks
)

// Scan reads a text to its end and finds in it the messages of out-of-memory
// errors and the tables of torch.cuda.memory_summary(): behind prefixes, in
// colour, broken into lines, and of several ranks at once, told apart by the
// beginnings of their lines. It holds some lines of the text at a time, however
// long that is.
func Scan(r io.Reader) (Text, error) {
	s := scanner{open: map[string]*message{}}
	t := newTables()
	in := bufio.NewReaderSize(unicode16(r), longestLine)
	for {
		line, more, err := in.ReadLine()
		if err != nil {
			s.closeAll()
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return Text{OOM: s.found, Series: t.found(), Mixed: t.mixed}, err
		}
		s.number++
		s.line(line)
		t.line(s.number, line)
		for more && err == nil { // what follows in a very long line has the same number
			if line, more, err = in.ReadLine(); err == nil {
				s.line(line)
				t.line(s.number, line)
			}
		}
	}
}

// A message is text of one source in which a message has begun, or may have.
type message struct {
	text   []byte // without white space
	prefix []byte // what stands before it on its first line
	line   int64  // where it begins
	lines  int
}

type scanner struct {
	found  Found
	number int64               // of the line
	open   map[string]*message // by source
	before lineBefore
}

// lineBefore is the end of the last line: a message may begin there.
type lineBefore struct {
	source string
	number int64
	text   []byte
}

// source is how lines of one of several ranks or workers begin.
var source = regexp.MustCompile(`^\s*(?:\[(?:rank|default|worker)?\s?\d+\]:?|\([^()]{0,60}\b(?:pid|rank|ip)=[^()]{0,60}\)|(?:[Rr]ank|RANK)[ _:]?\d+\b:?)`)

func sourceOf(line []byte) string {
	if text := bytes.TrimLeft(line, " \t"); len(text) == 0 || !strings.ContainsRune("[(rR", rune(text[0])) {
		return ""
	}
	return string(source.Find(line))
}

// paint is what colours text in a terminal.
var paint = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// nameAt is where the name of the error begins in a line, and the prefix of the
// log ends; -1 if it is not there.
func nameAt(line []byte) int {
	i := bytes.Index(line, []byte(" out of memory"))
	if i < 0 {
		return -1
	}
	word := func(c byte) bool { return c == '.' || c == '_' || digit(c) || c|0x20 >= 'a' && c|0x20 <= 'z' }
	back := func() {
		for i > 0 && word(line[i-1]) {
			i--
		}
	}
	back() // CUDA
	if class := bytes.TrimSuffix(line[:i], []byte("Error: ")); len(class) < i {
		i = len(class)
		back() // torch.OutOfMemory
	}
	return i
}

// line takes the next line of the text.
func (s *scanner) line(line []byte) {
	hot := maybe(line)
	if !hot && len(s.open) == 0 {
		s.remember("", line)
		return
	}
	if bytes.IndexByte(line, 0x1b) >= 0 {
		line = paint.ReplaceAll(line, nil)
	}
	from := sourceOf(line)
	m := s.open[from]
	if m == nil && hot {
		m = s.begin(from, line)
	}
	if m != nil {
		m.add(line, s.number)
		if !s.take(m) {
			delete(s.open, from)
		}
	}
	s.remember(from, line)
}

// maybe tells lines in which a message begins, or on the line before: of the
// words of its start, one at least is whole wherever the line is broken.
func maybe(line []byte) bool {
	return bytes.Contains(line, []byte("Tried")) || bytes.Contains(line, []byte("capac")) || allocate(line)
}

// allocate tells lines with that word. Many logs have "allocated" in every line.
func allocate(line []byte) bool {
	const word = "allocate"
	for {
		at := bytes.Index(line, []byte(word))
		if at < 0 {
			return false
		}
		line = line[at+len(word):]
		if len(line) == 0 || line[0]|0x20 < 'a' || line[0]|0x20 > 'z' {
			return true
		}
	}
}

// remember keeps the end of a line.
func (s *scanner) remember(from string, line []byte) {
	const most = 256
	s.before.source, s.before.number = from, s.number
	s.before.text = append(s.before.text[:0], line[max(0, len(line)-most):]...)
}

// begin opens a message, with the line before if it is of the same source.
func (s *scanner) begin(from string, line []byte) *message {
	if len(s.open) >= mostOpen {
		s.closeAll()
	}
	m := &message{line: s.number}
	if at := nameAt(line); at >= 0 {
		m.prefix = bytes.Clone(line[:at])
	} else if s.before.source == from {
		m.prefix = bytes.Clone(source.Find(line))
		m.text, m.line = compact(nil, s.before.text), s.before.number
	}
	s.open[from] = m
	return m
}

// add appends a line without the prefix, which differs from that of the first
// line in digits at most.
func (m *message) add(line []byte, number int64) {
	if n := len(m.prefix); n > 0 && len(line) >= n && alike(line[:n], m.prefix) {
		line = line[n:]
	} else if at := source.FindIndex(line); at != nil {
		line = line[at[1]:]
	}
	if len(m.text) == 0 {
		m.line = number
	}
	m.lines++
	m.text = compact(m.text, line)
}

// alike tells whether two prefixes differ in digits alone: times do.
func alike(a, b []byte) bool {
	for i := range a {
		if a[i] != b[i] && !(digit(a[i]) && digit(b[i])) {
			return false
		}
	}
	return true
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

// compact appends a line without white space and control characters.
func compact(to, line []byte) []byte {
	for _, c := range line {
		if c > ' ' && c != 0x7f {
			to = append(to, c)
		}
	}
	return to
}

// take counts the whole messages of a text and tells whether more of one may
// follow.
func (s *scanner) take(m *message) bool {
	for {
		at := begins(start, m.text)
		if at == nil {
			return m.lines < 2
		}
		behind, until := at[1]-at[0], len(m.text)-at[0]
		m.text = m.text[at[0]:]
		next := begins(head, m.text[behind:])
		if next != nil {
			until = behind + next[0]
		}
		switch end := whole.FindIndex(m.text[:until]); {
		case end != nil:
			s.count(m, end[1])
		case next != nil:
			s.count(m, until)
		default:
			return m.lines < mostLines && len(m.text) < longestMessage || s.count(m, until)
		}
	}
}

// begins is where a message begins in a text, and where that pattern ends.
func begins(how *regexp.Regexp, text []byte) []int {
	if !bytes.Contains(text, []byte("Triedtoallocate")) && !bytes.Contains(text, []byte("totalcapac")) {
		return nil
	}
	return how.FindIndex(text)
}

// count counts the message that the first n bytes of the text are, and takes
// them out. It is false, for there is nothing to wait for.
func (s *scanner) count(m *message, n int) bool {
	if o := parse(string(m.text[:n])); o != nil {
		o.Line = m.line
		s.found.Count++
		if s.found.Last == nil || o.Line >= s.found.Last.Line {
			s.found.Last = o
		}
	} else {
		s.found.Cut = m.line
	}
	m.text, m.line = m.text[n:], s.number
	return false
}

// closeAll ends all messages, in the order in which they began.
func (s *scanner) closeAll() {
	open := slices.Collect(maps.Values(s.open))
	slices.SortFunc(open, func(a, b *message) int { return cmp.Compare(a.line, b.line) })
	for _, m := range open {
		if at := begins(start, m.text); at != nil {
			m.text = m.text[at[0]:]
			s.count(m, len(m.text))
		}
	}
	clear(s.open)
}

// unicode16 takes the zeros out of text of two bytes a character, as a redirection
// in PowerShell writes it: what is looked for is all ASCII.
func unicode16(r io.Reader) io.Reader {
	in := bufio.NewReader(r)
	if head, _ := in.Peek(2); !bytes.Equal(head, []byte("\xff\xfe")) {
		return in
	}
	return narrow{in}
}

type narrow struct{ r io.Reader }

func (n narrow) Read(p []byte) (int, error) {
	for {
		got, err := n.r.Read(p)
		kept := 0
		for _, c := range p[:got] {
			if c != 0 {
				p[kept] = c
				kept++
			}
		}
		if kept > 0 || err != nil || len(p) == 0 {
			return kept, err
		}
	}
}
