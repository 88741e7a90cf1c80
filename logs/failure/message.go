package failure

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"strandline/internal/sorts"
	"strandline/logs/text"
)

// Found holds the out-of-memory errors of a text.
type Found struct {
	Count    int        // messages
	Failures []Failures // by rank and device, as they come
	// Cut is the line on which a message begins that was cut off before its first
	// figure, the last of them; 0 if there is none.
	Cut int64
}

// Failures are the messages of one rank and device.
type Failures struct {
	Rank     string
	Device   *int // nil if the messages do not state it
	Count    int
	Messages []*OOM // in their order; of many, the newest
}

// Last is the newest message of a rank and device.
func (f *Failures) Last() *OOM { return f.Messages[len(f.Messages)-1] }

// Last is the message that begins last, nil if there is none.
func (f *Found) Last() (last *OOM) {
	for i := range f.Failures {
		if o := f.Failures[i].Last(); last == nil || o.Line >= last.Line {
			last = o
		}
	}
	return last
}

// The bounds of memory and of patience. A message has some 700 characters; a
// narrow terminal makes some twenty lines of them.
const (
	maxMessageLength = 4 << 10
	maxLines         = 40
	maxOpen          = 64      // messages that are written at the same time, by several ranks
	MaxRanks         = 1024    // what comes after is counted alone
	MaxMessages      = 64      // that are kept of a rank and device
	maxReread        = 4 << 20 // bytes that are read again to leave out lines of others
	maxForeign       = 8       // such lines that follow each other
)

// A message is text of one source in which a message has begun, or may have.
type message struct {
	text   []byte // without white space
	begins []line // where in it the lines begin
	prefix []byte // what is before it on its first line
	named  bool   // it begins on that line with its name, behind the prefix
	alone  bool   // or nothing of the line before is in it
	lines  int    // since it began

	head     head // of a message that has begun and continues
	searched int  // bytes in which it does not end and no other begins; 0 if none has begun
	again    lineAgain
}

// lineAgain is a line of a message that comes again and again: what it adds is known.
// BenchmarkWorst takes twice as long for cut and reserved without it.
type lineAgain struct {
	line   []byte // as it is in the text
	times  int    // in a row
	size   int    // without white space
	left   int    // bytes of those that are not in the message, as they add nothing to it
	text   []byte // of the message before the line came last
	lines  int    // that it had then
	begins bool   // the line ends the message before it, and begins another that is the same
}

// maxRepeatedLength is how long a line may be that is known when it comes again.
const maxRepeatedLength = 512

// repeats reports whether a line is the one of before, and keeps it.
func (r *lineAgain) repeats(line []byte) bool {
	if len(line) == len(r.line) && bytes.Equal(line, r.line) {
		return true
	}
	r.begins, r.times, r.left = false, 0, 0
	r.line = append(r.line[:0], line[:min(len(line), maxRepeatedLength+1)]...)
	return false
}

// saturated reports whether the line is in the message so often that once more adds neither a
// figure nor words that a figure needs. Each process that is listed is one more.
func (m *message) saturated() bool {
	const times, some = 4, 256
	r := &m.again
	return r.times >= times && r.times*r.size >= some && len(r.line) <= maxRepeatedLength &&
		!bytes.Contains(m.text[len(m.text)-2*r.size:], []byte("memoryinuse"))
}

// A line begins at some byte of a message.
type line struct {
	at     int
	number int64
}

// lineAt is the number of the line of a byte.
func (m *message) lineAt(at int) int64 {
	number := m.begins[0].number
	for _, l := range m.begins {
		if l.at > at {
			break
		}
		number = l.number
	}
	return number
}

// cut takes out the first n bytes.
func (m *message) cut(n int) {
	number := m.lineAt(n)
	m.searched, m.again.times, m.again.left = 0, 0, 0
	m.text = m.text[:copy(m.text, m.text[n:])]
	m.begins = slices.DeleteFunc(m.begins, func(l line) bool { return l.at <= n })
	for i := range m.begins {
		m.begins[i].at -= n
	}
	m.begins = slices.Insert(m.begins, 0, line{0, number})
}

// add appends a line of the source without the prefix, of which the words are those of
// the first line except for digits.
func (m *message) add(from, content []byte, number int64) {
	at := max(len(from), text.CommonPrefix(content, m.prefix))
	before, content := content[:at], content[at:]
	if bytes.Count(before, []byte(`"`))%2 == 1 {
		content = text.UntilQuote(content)
	}
	if m.lines > 0 {
		content = text.PastMargin(content)
	}
	for n := len(content); n > 0 && (content[n-1] == ' ' || content[n-1] == '\t' || content[n-1] == '|'); n-- {
		content = content[:n-1]
	}
	content = bytes.TrimSuffix(content, []byte(`",`)) // a line of a list in JSON
	m.begins = append(m.begins, line{len(m.text), number})
	n := len(m.text)
	m.text = text.Compact(m.text, content)
	m.again.size = len(m.text) - n
	m.lines++
}

// patience returns how many lines a message may take until there is something to report
// it by.
func (m *message) patience() int {
	if bytes.Contains(m.text, []byte("Currentlyallocated:")) {
		return 6 // the rows of a table
	}
	return 2
}

func (m *message) full() bool {
	return m.lines >= maxLines || len(m.text)+m.again.left >= maxMessageLength
}

// An OOMReader finds the messages of PyTorch's allocators in a text: it is a [text.Reader] for
// [OOMWords].
type OOMReader struct {
	found  Found
	groups map[group]int       // in found.Failures
	group  lastGroup           // the one added to last
	older  []*OOM              // that are not kept, to be used again
	reread int                 // bytes that were read again to leave out lines of others
	number int64               // of the line
	open   map[string]*message // by source
	before lineBefore
	spare  []*message // that are closed, to be used again
	parser parser
	last   *OOM // that was counted
	same   sameLine
}

// sameLine is a line that held one whole message: many programs try again and again.
// BenchmarkWorst takes three times as long for heads and calloc without it.
type sameLine struct {
	line   []byte // empty if there is none
	prefix int    // bytes of the line before the message
	named  bool   // the line before is not read
	oom    OOM
	rest   []byte // of the line behind the message, without white space
}

// repeats reports whether a line is the same except for the digits before the message, as
// in times, where these do not name who wrote it.
func (r *sameLine) repeats(line []byte) bool {
	if len(r.line) == 0 || len(line) != len(r.line) || !bytes.Equal(line[r.prefix:], r.line[r.prefix:]) {
		return false
	}
	if r.oom.Rank != "" {
		return bytes.Equal(line[:r.prefix], r.line[:r.prefix])
	}
	return text.CommonPrefix(line, r.line[:r.prefix]) == r.prefix
}

// lastGroup is a group and where it is in found.Failures, -1 if that is unknown.
type lastGroup struct {
	group
	at int
}

// A group is what distinguishes the messages of a rank and device from others.
type group struct {
	rank   string
	device int // -1: unknown
}

// lineBefore is the end of the last line: a message may begin there.
type lineBefore struct {
	source []byte
	number int64
	text   []byte
}

// NewOOMReader returns a reader.
func NewOOMReader() *OOMReader {
	return &OOMReader{open: map[string]*message{}, groups: map[group]int{}, group: lastGroup{at: -1}}
}

// Idle implements [text.Reader].
func (s *OOMReader) Idle(int64) bool { return len(s.open) == 0 }

// Line implements [text.Reader].
func (s *OOMReader) Line(number int64, line []byte, hits []text.Hit) {
	s.number = number
	s.line(line, slices.ContainsFunc(hits, func(h text.Hit) bool { return messageWords[h.Word].matches(line, int(h.End)) }))
}

// Found are the messages, when the text has ended.
func (s *OOMReader) Found() Found {
	s.closeAll()
	return s.found
}

// line takes the next line of the text; hot reports whether words of a message are in
// it, as [telling] has it.
func (s *OOMReader) line(content []byte, hot bool) {
	if !hot && len(s.open) == 0 {
		s.remember(nil, content)
		return
	}
	if len(s.open) == 0 && (s.same.named || len(s.before.text) == 0) && s.same.repeats(content) {
		s.repeat()
		return
	}
	count := s.found.Count
	from := text.SourceOf(content)
	m := s.open[string(from)]
	if m == nil && hot {
		m = s.begin(from, content)
	}
	if m == nil {
		s.remember(from, content)
		return
	}
	again := len(s.open) == 1 && m.again.repeats(content)
	if again && s.known(m) {
		s.before.number = s.number
		return
	}
	cut, before := s.found.Cut, s.found.Count
	m.add(from, content, s.number)
	if s.take(m, from, false) {
		s.remember(from, nil)
		if again {
			m.again.times++
			m.again.learn(m, s.found.Count == before && s.found.Cut != cut && s.found.Cut == s.number-1, s.number)
		}
		return
	}
	s.remember(from, m.text[m.begins[len(m.begins)-1].at:])
	delete(s.open, string(from))
	s.spare = append(s.spare, m)
	if s.found.Count == count+1 && len(s.open) == 0 {
		s.note(content, m)
	}
}

// known takes a line that came again without reading it, false if what it adds is not known.
func (s *OOMReader) known(m *message) bool {
	switch r := &m.again; {
	case r.begins:
		s.found.Cut = m.begins[0].number
		m.begins[0].number = s.number
		return true
	case m.searched > 0 && m.saturated() && m.lines+1 < maxLines && len(m.text)+r.left+r.size < maxMessageLength:
		m.lines++
		r.left += r.size
		return true
	}
	return false
}

// learn notes whether a line that came again left the message as it was, where it ended the one
// before, which was cut off.
func (r *lineAgain) learn(m *message, ended bool, number int64) {
	if len(r.line) > maxRepeatedLength || m.searched > 0 || len(m.text) > maxRepeatedLength {
		return
	}
	r.begins = ended && len(m.begins) == 1 && m.begins[0] == line{0, number} && m.lines == r.lines && bytes.Equal(m.text, r.text)
	r.text, r.lines = append(r.text[:0], m.text...), m.lines
}

// note keeps a line, in which one message was counted, if that is whole in it.
func (s *OOMReader) note(text []byte, m *message) {
	s.same.line = s.same.line[:0]
	if o := s.last; (m.named || m.alone) && o.Whole && o.Line == s.number && s.found.Cut != s.number {
		s.same.line, s.same.prefix, s.same.named = append(s.same.line, text...), len(m.prefix), m.named
		s.same.oom, s.same.rest = *o, append(s.same.rest[:0], s.before.text...)
	}
}

// repeat counts the message of the line that was noted once more.
func (s *OOMReader) repeat() {
	var o *OOM
	if n := len(s.older); n > 0 {
		o, s.older = s.older[n-1], s.older[:n-1]
	} else {
		o = &OOM{}
	}
	*o = s.same.oom
	o.Line = s.number
	s.add(o)
	s.before.source = append(s.before.source[:0], text.SourceOf(s.same.line)...)
	s.before.number, s.before.text = s.number, append(s.before.text[:0], s.same.rest...)
}

// remember keeps the end of a line, as far as no message was found in it.
func (s *OOMReader) remember(from, text []byte) {
	const maxLen = 256
	b := &s.before
	b.source, b.number = append(b.source[:0], from...), s.number
	b.text = append(b.text[:0], text[max(0, len(text)-maxLen):]...)
}

// begin opens a message, with the line before if it is of the same source.
func (s *OOMReader) begin(from, content []byte) *message {
	if len(s.open) >= maxOpen {
		s.closeAll()
	}
	m := &message{}
	if n := len(s.spare); n > 0 {
		m, s.spare = s.spare[n-1], s.spare[:n-1]
	}
	*m = message{text: m.text[:0], begins: m.begins[:0], prefix: m.prefix[:0], again: lineAgain{line: m.again.line[:0], text: m.again.text[:0]}}
	const maxPrefixLength = 256 // of a log; more is text in which a message may have ended
	if at := nameAt(content[:min(len(content), 2*maxPrefixLength)]); at >= 0 && at <= maxPrefixLength {
		m.prefix, m.named = append(m.prefix, content[:at]...), true
	} else if bytes.Equal(s.before.source, from) && len(s.before.text) > 0 {
		m.prefix = append(m.prefix, from...)
		m.begins = append(m.begins, line{0, s.before.number})
		m.text = text.Compact(m.text, s.before.text)
	} else {
		m.alone = true
	}
	s.open[string(from)] = m
	return m
}

// maxHeadLength is how many bytes identify a head, without white space.
const maxHeadLength = 64

// goesOn reports whether a message has begun and what was added neither ends it nor
// begins another, so that there is nothing to read again.
func (m *message) goesOn() bool {
	if m.searched == 0 || m.full() {
		return false
	}
	from := max(m.head.end, m.searched-maxHeadLength)
	if _, another := headIn(m.text, from); another || m.head.endIn(m.text, from) >= 0 {
		return false
	}
	m.searched = len(m.text)
	return true
}

// take counts the messages that are whole in a text, with last also others, and
// reports whether more of one may follow.
func (s *OOMReader) take(m *message, from []byte, last bool) (more bool) {
	if !last && m.goesOn() {
		return true
	}
	h, ok := m.head, m.searched > 0 && m.head.known
	for counted, found := false, ok; ; counted = true {
		if !found {
			h, ok = headIn(m.text, 0)
		}
		if ok && h.at > 0 && !s.parser.headless(m.text[:h.at]) {
			m.cut(h.at)
			h.end, h.at = h.end-h.at, 0
		}
		if !ok && !s.parser.headless(m.text) {
			return !last && !counted && m.lines < m.patience()
		}
		if !ok || h.at > 0 {
			h = head{}
		}
		next, another := headIn(m.text, h.end)
		until := len(m.text)
		if another {
			until = next.at
		}
		end := h.endIn(m.text[:until], 0)
		if end < 0 && !another && !last && !m.full() {
			if m.head = h; len(m.text)-h.end > maxHeadLength {
				m.searched = len(m.text)
			}
			return true
		}
		if end >= 0 {
			until = end
		}
		s.count(m, from, h, until, end >= 0)
		if found = another && next.wording != NCCL; found { // whose device is in the text before it
			h, ok = next, true
			h.at, h.end = h.at-until, h.end-until
		}
	}
}

// count counts the message that the first n bytes of the text are, and takes
// them out.
func (s *OOMReader) count(m *message, from []byte, h head, n int, whole bool) {
	o := s.parser.parse(h, m.text[:n])
	switch {
	case o == nil && h.known:
		s.found.Cut = m.lineAt(0)
	case o != nil:
		if o.Missing() > 0 && s.reread < maxReread {
			o = s.dropInterleaved(m, h, n, o)
		}
		o.Line, o.Whole = m.lineAt(0), whole
		o.Rank = text.RankOf(string(from), m.prefix)
		s.last = o
		s.add(o)
	}
	m.cut(n)
	m.lines = 1
}

// dropInterleaved reads a message of several lines without those of others that are in the
// middle of it: what makes more figures whole is not part of it.
func (s *OOMReader) dropInterleaved(m *message, h head, n int, o *OOM) *OOM {
	text := bytes.Clone(m.text[:n])
	var starts []int
	for _, l := range m.begins {
		if l.at < n {
			starts = append(starts, l.at)
		}
	}
	for o.Missing() > 0 {
		better, from, to := s.findInterleaved(h, text, starts, o.Missing())
		if better == nil {
			break
		}
		o = better
		gone := starts[to] - starts[from]
		text = slices.Delete(text, starts[from], starts[to])
		starts = slices.Delete(starts, from, to)
		for i := from; i < len(starts); i++ {
			starts[i] -= gone
		}
	}
	return o
}

// findInterleaved reads a message without some of its lines, if it then lacks less: from
// one up to another, neither the first nor the last.
func (s *OOMReader) findInterleaved(h head, text []byte, starts []int, missing int) (o *OOM, from, to int) {
	rest := make([]byte, 0, len(text))
	for from = 1; from < len(starts)-1; from++ {
		for to = from + 1; to < min(len(starts), from+1+maxForeign); to++ {
			rest = append(append(rest[:0], text[:starts[from]]...), text[starts[to]:]...)
			s.reread += len(rest)
			if o = s.parser.parse(h, rest); o != nil && o.Missing() < missing {
				return o, from, to
			}
		}
	}
	return nil, 0, 0
}

// add keeps a message.
func (s *OOMReader) add(o *OOM) {
	g := group{o.Rank, -1}
	if o.Device != nil {
		g.device = *o.Device
	}
	i := s.group.at
	if i < 0 || g != s.group.group {
		var ok bool
		if i, ok = s.groups[g]; !ok {
			if i = len(s.found.Failures); i == MaxRanks {
				s.found.Count++
				return
			}
			s.groups[g] = i
			s.found.Failures = append(s.found.Failures, Failures{Rank: o.Rank, Device: o.Device})
		}
		s.group = lastGroup{g, i}
	}
	f := &s.found.Failures[i]
	if f.Count > 0 && o.goesOn(f.Last()) {
		if before := f.Last(); before.Request == nil || *before.Request < *o.Request {
			before.Request = o.Request
		}
		return
	}
	s.found.Count++
	f.Count++
	if len(f.Messages) == MaxMessages {
		s.older = append(s.older[:0], f.Messages[:MaxMessages/2]...)
		f.Messages = slices.Delete(f.Messages, 0, MaxMessages/2)
	}
	f.Messages = append(f.Messages, o)
}

// goesOn recognizes a further line of what the communication library prints about one
// failure: that the driver failed, and close behind how much it was asked for, at
// first and once more for the few bytes behind it.
func (o *OOM) goesOn(before *OOM) bool {
	const close = 4
	return o.Wording == NCCL && before.Wording == NCCL && o.Request != nil && o.Line-before.Line <= close
}

// closeAll ends all messages, in the order in which they began.
func (s *OOMReader) closeAll() {
	open := slices.Collect(maps.Keys(s.open))
	sorts.By(open, func(a, b string) int {
		return cmp.Compare(s.open[a].begins[0].number, s.open[b].begins[0].number)
	})
	for _, from := range open {
		s.take(s.open[from], []byte(from), true)
		s.spare = append(s.spare, s.open[from])
	}
	clear(s.open)
}
