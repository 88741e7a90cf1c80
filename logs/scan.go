package logs

import "io"

// A Text is what a text contains about memory.
type Text struct {
	Lines int64
	OOM   Found
	// Failures are the last statements of others that memory ran out, in the order of
	// their lines.
	Failures []Failure
	// Remark is the last line that states this in words that are not known, and may not
	// be an error; nil if there is none.
	Remark *Failure
	Hints  map[Hint]int64 // what the text is of, and the last line that shows it
	Series []Series       // tables of memory_summary(), by process and device, as they come
	// Mixed counts tables that are left out, as lines of several are mixed in them.
	Mixed int
}

// Empty reports whether a text contains none of it.
func (t *Text) Empty() bool {
	return !t.Failed() && len(t.Series) == 0 && t.Mixed == 0
}

// Failed reports whether a text states that memory ran out.
func (t *Text) Failed() bool { return t.OOM.Count > 0 || len(t.Failures) > 0 }

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
	longestLine    = 64 << 10 // of which the rest is taken as another line
	longestMessage = 4 << 10
	mostLines      = 40
	mostOpen       = 64      // messages that are written at the same time, by several ranks
	mostRanks      = 1024    // what comes after is counted alone
	mostMessages   = 64      // that are kept of a rank and device
	mostMending    = 4 << 20 // bytes that are read again to leave out lines of others
	mostForeign    = 8       // such lines that follow each other
)

// Scan reads a text to its end and finds in it the messages of out-of-memory
// errors and the tables of torch.cuda.memory_summary(): behind prefixes, in
// color, broken into lines, and of several ranks at once, distinguished by the
// beginnings of their lines. It holds some lines of the text at a time, however
// long that is.
func Scan(r io.Reader) (Text, error) { return scan(r, true) }

// scan reads a text; if it is quick, it skips lines that cannot matter,
// and does not read again what it has read.
func scan(r io.Reader, quick bool) (Text, error) {
	v := known()
	s, t, words := newScanner(), newTables(), newFinder(v)
	s.slow = !quick
	err := eachLine(r, v,
		func(in *lines) { words.read(in, quick) },
		func(in *lines) { s.read(in, v) },
		func(in *lines) { t.read(in, quick) })
	text := Text{Lines: words.number, OOM: s.found, Series: t.found(), Mixed: t.mixed, Hints: words.hinted()}
	text.keep(words.failures())
	return text, err
}

// keep sorts statements into those of which the words are known and others: these
// count where there is nothing else.
func (t *Text) keep(failures []Failure) {
	for i, f := range failures {
		if f.Kind != Unknown {
			t.Failures = append(t.Failures, f)
			continue
		}
		t.Remark = &failures[i]
	}
	if t.Remark != nil && t.Remark.Words["quiet"] == "" && !t.Failed() {
		t.Failures, t.Remark = append(t.Failures, *t.Remark), nil
	}
}
