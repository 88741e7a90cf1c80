package text

import (
	"bytes"
	"slices"
)

// A Shape counts lines of the beginning of a text by what they look like: a program's output,
// or a page or source code that speaks of it.
type Shape struct {
	Lines    int // that are not empty
	Log      int // with a time, a level, a rank, a shell's prompt, a progress bar, or of a traceback
	Markup   int // headings, fences and directives of Markdown and reStructuredText
	Source   int // of source code, but for the lines that a traceback quotes
	Personal int // in which somebody asks, or tells what happened to them

	frame bool // the last line was of a traceback's frame
}

// maxShaped is how many lines a shape looks at.
const maxShaped = 2000

// Document reports whether a text is a page or source code: what it quotes need not have
// happened.
func (s *Shape) Document() bool {
	const minMarkup, minSource = 3, 5
	if s.Log > 0 || s.Personal > 0 {
		return false
	}
	return s.Markup >= minMarkup || s.Source >= minSource && 3*s.Source >= s.Lines
}

// Idle implements [Reader].
func (s *Shape) Idle(number int64) bool { return number > maxShaped }

// Line implements [Reader].
func (s *Shape) Line(number int64, line []byte, _ []Hit) {
	whole := bytes.TrimRight(line, " \t\r")
	line = bytes.TrimLeft(whole, " \t")
	if len(line) == 0 || number > maxShaped {
		return
	}
	s.Lines++
	frame := s.frame
	s.frame = false
	switch {
	case bytes.Contains(line, []byte(`File "`)) && bytes.Contains(line, []byte(`, line `)):
		s.frame = true
		s.Log++
	case frame:
	case logged(line):
		s.Log++
	case markup(whole, line):
		s.Markup++
	case sourceCode(line):
		s.Source++
	}
	if personal(line) {
		s.Personal++
	}
}

// logged reports whether a line is one that programs print while they run.
func logged(line []byte) bool {
	const head = 100
	for _, begin := range []string{"Traceback (", "[rank", "$ ", ">>> ", "(EngineCore", "(APIServer", "ERROR", "INFO", "WARNING", "FATAL"} {
		if HasPrefix(line, begin) {
			return true
		}
	}
	start := line[:min(len(line), head)]
	for i := 2; i+6 <= len(start); i++ { // 12:34:56
		if start[i] == ':' && start[i+3] == ':' && Digit(start[i-1]) && Digit(start[i-2]) && Digit(start[i+1]) && Digit(start[i+2]) && Digit(start[i+4]) && Digit(start[i+5]) {
			return true
		}
	}
	for _, level := range []string{" pid=", " INFO ", " WARNING ", " ERROR ", " DEBUG ", "[ERROR]", "[INFO]", "[WARN", "[E]", "[W]"} {
		if bytes.Contains(start, []byte(level)) {
			return true
		}
	}
	return bytes.Contains(line, []byte("%|")) || bytes.Contains(line, []byte("it/s"))
}

// markup reports whether a line is one of a page's own: whole with its indentation, and line
// without.
func markup(whole, line []byte) bool {
	if len(whole) != len(line) {
		return false
	}
	text := bytes.TrimLeft(line, "#")
	switch {
	case len(text) < len(line) && len(line)-len(text) <= 4 && HasPrefix(text, " "):
		return true
	case HasPrefix(line, "```"), HasPrefix(line, ".. "), HasPrefix(line, "**") && bytes.Count(line, []byte("**")) >= 2:
		return true
	}
	return bytes.Contains(line, []byte(":ref:")) || bytes.Contains(line, []byte("``"))
}

// sourceCode reports whether a line is one of a program.
func sourceCode(line []byte) bool {
	for _, begin := range []string{"def ", "class ", "import ", "from ", "return ", "assert ", "raise ", "@pytest", "@Test", "except ", "elif ", "RuntimeError(", "func ", "const ", "#include", "expect(", "assert_"} {
		if HasPrefix(line, begin) {
			return true
		}
	}
	last := line[len(line)-1]
	if (line[0] == '"' || line[0] == '\'' || line[0] == '(') && bytes.IndexByte([]byte(`"',)`), last) >= 0 {
		return !bytes.Contains(line, []byte(`":`))
	}
	return slices.ContainsFunc([]string{"):", "),", "(", "[", "],", ");", "{", ") {"}, func(end string) bool { return HasSuffix(line, end) })
}

// personal reports whether a line is of somebody who tells or asks.
func personal(line []byte) bool {
	for _, begin := range []string{"I ", "I'm ", "I've ", "My ", "We ", "Hi", "Hello"} {
		if HasPrefix(line, begin) {
			return true
		}
	}
	for _, word := range []string{" I ", " I'm ", " I've ", " my ", "escribe the bug", "eproduce", "Thanks", "appreciate", "xpected behavior"} {
		if bytes.Contains(line, []byte(word)) {
			return true
		}
	}
	return line[len(line)-1] == '?'
}
