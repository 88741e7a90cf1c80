package text

import (
	"bytes"
	"strconv"
)

// A Frame is a line of a Python program in a traceback.
type Frame struct {
	File     string
	Line     int64
	Function string
}

// A Traceback is frames that follow each other in a text, the innermost last.
type Traceback struct {
	Frames []Frame
	Last   int64 // the number of the text's line of the innermost frame
	prefix string
}

// Tracebacks reads the tracebacks of Python in a text.
type Tracebacks struct {
	found []Traceback // the last, oldest first
}

// TracebackWords are the words of [Tracebacks].
func TracebackWords() []string { return []string{`file"`} }

// The bounds of what is kept.
const (
	maxTracebacks = 64
	maxFrames     = 64 // of each, the innermost
	maxName       = 1024
	// frameLines is how many lines a frame has at most: where it is, its source, and marks
	// below that.
	frameLines = 4
)

// Idle implements [Reader].
func (t *Tracebacks) Idle(int64) bool { return true }

// Line implements [Reader].
func (t *Tracebacks) Line(number int64, line []byte, hits []Hit) {
	if len(hits) == 0 {
		return
	}
	f, prefix, ok := frameOf(line)
	if !ok {
		return
	}
	for i := len(t.found) - 1; i >= 0 && number-t.found[i].Last <= frameLines*int64(len(t.found)-i); i-- {
		if x := &t.found[i]; x.prefix == prefix { // lines of ranks can alternate
			if x.Frames, x.Last = append(x.Frames, f), number; len(x.Frames) > maxFrames {
				x.Frames = x.Frames[1:]
			}
			return
		}
	}
	if len(t.found) == maxTracebacks {
		t.found = append(t.found[:0], t.found[1:]...)
	}
	t.found = append(t.found, Traceback{Frames: []Frame{f}, Last: number, prefix: prefix})
}

// frameOf reads the line of a frame, and what a launcher or a log put before it, without the
// digits of times.
func frameOf(line []byte) (f Frame, prefix string, ok bool) {
	before, rest, ok := bytes.Cut(line, []byte(`File "`))
	if !ok || len(rest) > 2*maxName {
		return f, "", false
	}
	file, rest, ok := bytes.Cut(rest, []byte(`", line `))
	if !ok || len(file) == 0 || len(file) > maxName {
		return f, "", false
	}
	number, rest, _ := bytes.Cut(rest, []byte(`,`))
	n, err := strconv.ParseInt(string(bytes.TrimRight(number, " \r\n")), 10, 64)
	if err != nil || n <= 0 {
		return f, "", false
	}
	name, _ := bytes.CutPrefix(rest, []byte(" in "))
	return Frame{File: string(file), Line: n, Function: string(bytes.TrimSpace(name))}, withoutTimes(before), true
}

// withoutTimes is a prefix without digits, but for those of a rank.
func withoutTimes(prefix []byte) string {
	if bytes.Contains(prefix, []byte("rank")) {
		return string(prefix)
	}
	return string(bytes.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, prefix))
}

// Before is the traceback that ends shortly before a line of the text; nil if there is none.
func (t *Tracebacks) Before(line int64) *Traceback {
	const maxLines = 8 // lines, of the source, and of an error that says more than its name
	for i := len(t.found) - 1; i >= 0; i-- {
		if x := &t.found[i]; x.Last <= line && line-x.Last <= maxLines {
			return x
		}
	}
	return nil
}
