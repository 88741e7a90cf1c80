// Package logs finds in a text what it states about memory: in goes a terminal, a log of one
// rank or of many, the kernel's messages; out come the failures and PyTorch's tables.
//
// It has the rooms' readers read it in one pass: failure finds who ran out or was killed, and
// table the tables of memory_summary(); text gives them the lines. The start-up figures of
// engines are read by engine. It only reads; judge/texts names causes.
package logs

import (
	"io"
	"sync"

	"strandline/logs/failure"
	"strandline/logs/table"
	"strandline/logs/text"
)

// A Text is what a text contains about memory.
type Text struct {
	Lines int64
	OOM   failure.Found
	// Failures are the last statements of others that memory ran out, in the order of
	// their lines.
	Failures []failure.Failure
	// Remark is the last line that states this in words that are not known, and may not
	// be an error; nil if there is none.
	Remark *failure.Failure
	Hints  map[failure.Hint]int64 // what the text is of, and the last line that shows it
	Shape  text.Shape             // of its beginning
	Traces text.Tracebacks
	// Relapses counts how often a request was refused after the program had gone on.
	Relapses int
	Series   []table.Series // tables of memory_summary(), by process and device, as they come
	// Mixed counts tables that are left out, as lines of several are mixed in them.
	Mixed int
}

// Empty reports whether a text contains none of it.
func (t *Text) Empty() bool {
	return !t.Failed() && len(t.Series) == 0 && t.Mixed == 0
}

// Failed reports whether a text states that memory ran out.
func (t *Text) Failed() bool { return t.OOM.Count > 0 || len(t.Failures) > 0 }

// Scan reads a text to its end and finds in it the messages of out-of-memory
// errors and the tables of torch.cuda.memory_summary(): behind prefixes, in
// color, broken into lines, and of several ranks at once, distinguished by the
// beginnings of their lines. It holds some lines of the text at a time, however
// long that is.
func Scan(r io.Reader) (Text, error) { return scan(r, vocabulary()) }

func scan(r io.Reader, v *text.Vocabulary) (t Text, err error) {
	statements, messages, tables := failure.NewFinder(), failure.NewOOMReader(), table.NewReader()
	t.Lines, err = text.Each(r, v, statements, messages, tables, &t.Shape, &t.Traces)
	t.OOM, t.Hints = messages.Found(), statements.Hints()
	t.Relapses = statements.Relapses()
	t.Series, t.Mixed = tables.Found()
	t.keep(statements.Failures())
	return t, err
}

// vocabulary is what the readers search a text for.
var vocabulary = sync.OnceValue(func() *text.Vocabulary {
	return text.NewVocabulary(failure.Words(), failure.OOMWords(), table.Words(), nil, text.TracebackWords())
})

// endsWith reports whether a text ends with a statement: nothing follows that is an error, or
// shows that the program went on.
func (t *Text) endsWith(f *failure.Failure) bool {
	const maxFollowing = 3 // lines
	return t.Lines-f.Line <= maxFollowing && t.Hints[failure.HintReady] < f.Line && t.Hints[failure.HintCrash] < f.Line && t.OOM.Count == 0
}

// keep sorts statements into those of which the words are known and others: these
// count where there is nothing else.
func (t *Text) keep(failures []failure.Failure) {
	for i, f := range failures {
		if f.Kind == failure.StartUp && (len(failures) > 1 || !t.endsWith(&f)) {
			continue
		}
		if f.Kind != failure.Unknown {
			t.Failures = append(t.Failures, f)
			continue
		}
		t.Remark = &failures[i]
	}
	if t.Remark != nil && t.Remark.Words["quiet"] == "" && !t.Failed() {
		t.Failures, t.Remark = append(t.Failures, *t.Remark), nil
	}
}
