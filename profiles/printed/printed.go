// Package printed reads levels of memory from what programs print again and again: the
// tables of nvidia-smi, also those of -q, dmon and pmon, the lines in which vLLM and SGLang
// log how full their KV cache is, and the listings of ps, top, docker stats, kubectl top and
// sar.
package printed

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"

	"strandline/internal/lazyregexp"
	"strandline/profiles"
	"strandline/times"
)

const (
	// longest is the longest line that is read, in bytes; the rest of a longer one is
	// passed over.
	longest = 64 << 10
	// maxLevels is how many levels are kept, and maxColumns in how many columns.
	maxLevels  = 5_000_000
	maxColumns = 4096
	// The first level is in the first so many bytes of a log: what precedes it is the
	// start of an engine.
	maxBefore = 512 << 10
)

// A form is what one program prints.
type form struct {
	writer string
	is     *lazyregexp.Regexp // in the beginning of such a text
	// unit is what the moments are counted in if the text holds no times.
	unit string
	new  func(l *levels) reader
}

// A reader takes the lines of a text.
type reader interface {
	line(line []byte)
	// end returns an error if the text is of this form and holds no levels, with what
	// to do about it.
	end() error
}

var forms = []form{
	{"nvidia-smi -q", lazyregexp.New(`(?m)^=+ ?NVSMI LOG ?=+`), "text", newQuery},
	{"nvidia-smi", lazyregexp.New(`(?m)^\s*\| NVIDIA-SMI +\d+\.\d+`), "table", newTables},
	{"nvidia-smi", lazyregexp.New(`(?m)^# ?(?:Date +)?(?:Time +)?gpu +\S`), "sample", newMonitor},
	{"vLLM", lazyregexp.New(`KV cache usage: \d+(?:\.\d+)?%|vLLM API server version|\[loggers\.py:\d+\]`), "line", newVLLM},
	{"SGLang", lazyregexp.New(`(?:Decode|Prefill) batch[.,] #|server_args=ServerArgs\(|Cache is allocated\. `), "line", newSGLang},
	{"llama.cpp", lazyregexp.New(`prompt cache is enabled, size limit|cache state: \d+ prompts|cache size limit reached|making room for prompt cache entry`), "line", newPromptCache},
	{"mprof", lazyregexp.New(`(?m)\A(?:CMDLINE .*\n)?MEM \d+\.\d+ \d{10}\.\d+`), "sample", newMprof},
	{"ps", lazyregexp.New(`(?m)^[ A-Z%+]*\bPID\b[ A-Z%+]*\bRSS\b[ A-Z%+]*$|` + auxRow), "table", newListing},
	{"top", lazyregexp.New(`(?m)^ *PID +USER .*\bRES\b`), "table", newListing},
	{"docker stats", lazyregexp.New(`(?m)MEM USAGE / LIMIT +MEM %`), "table", newListing},
	{"kubectl top", lazyregexp.New(`(?m)^(?:NAMESPACE +)?(?:POD +)?NAME +CPU\(cores\) +(?:CPU\(?%\)? +)?MEMORY\(bytes\)`), "table", newListing},
	{"Ray", lazyregexp.New(`(?m)^\s*PID\s+MEM(?:\(GB\))?\s+COMMAND`), "table", newListing},
	{"sar", lazyregexp.New(`(?m)^\d\d:\d\d:\d\d(?: [AP]M)? +kbmemfree .*\bkbmemused\b`), "row", newListing},
	{"tegrastats", lazyregexp.New(`(?m)\bRAM \d+/\d+MB \(lfb `), "line", newTegra},
}

func formOf(head []byte) *form {
	for i := range forms {
		if f := &forms[i]; f.is.Match(head) {
			return f
		}
	}
	return nil
}

// Is reports whether a text that begins with head is of a form that is read. A few bytes
// of it may be garbage.
func Is(head []byte) bool {
	const garbage = 1000
	return bytes.Count(head, []byte{0}) <= len(head)/garbage && formOf(head) != nil
}

// Read reads a text. One without a level in its beginning is [profiles.ErrOther].
func Read(r io.Reader) (*profiles.File, error) {
	in := bufio.NewReaderSize(r, longest)
	head, _ := in.Peek(longest)
	form := formOf(head)
	if form == nil {
		return nil, profiles.ErrOther
	}
	f := &profiles.File{Format: profiles.Levels, Writer: form.writer}
	l := &levels{byKey: map[key]*column{}}
	lines := form.new(l)
	read := 0
	for {
		text, err := in.ReadSlice('\n')
		read += len(text)
		if err == nil || err == io.EOF {
			lines.line(bytes.TrimRight(text, "\r\n"))
		} else if err == bufio.ErrBufferFull {
			err = nil // no such line states a level
		}
		switch {
		case l.kept > maxLevels:
			f.Partial = fmt.Errorf("more than %d levels; the rest is left out", maxLevels)
		case l.left:
			f.Partial = fmt.Errorf("more than %d devices and processes; the rest is left out", maxColumns)
		case err != nil && err != io.EOF:
			f.Partial = err
		}
		if l.kept == 0 && read > maxBefore {
			return nil, profiles.ErrOther
		}
		if err != nil || f.Partial != nil {
			break
		}
	}
	if err := lines.end(); err != nil {
		return nil, err
	}
	f.Columns, f.Host = l.columns(form.unit), l.host
	if len(f.Columns) == 0 {
		return nil, profiles.ErrOther
	}
	return f, nil
}

// levels collects what is read.
type levels struct {
	clock   times.Clock
	rounds  int     // how often something was printed
	at      float64 // when, NaN if that is not stated
	undated bool    // some of them
	kept    int
	left    bool // a column is left out
	byKey   map[key]*column
	order   []*column
	host    *profiles.Host // what the text states of a cgroup beside the levels
}

type key struct{ process, name string }

// A column is a level over time; rounds are those in which it was printed.
type column struct {
	profiles.Column
	times  []float64
	rounds []int
	stride int // of so many levels one is kept
	seen   int // how many there were
	round  int // of the last
}

// maxOf is how many levels are kept of a column: of more, some that are evenly spread.
const maxOf = 1 << 16

// thin leaves out every other level.
func (c *column) thin() (left int) {
	n := 0
	for i := 0; i < len(c.Bytes); i += 2 {
		c.Bytes[n], c.times[n], c.rounds[n] = c.Bytes[i], c.times[i], c.rounds[i]
		if i < len(c.Requests) {
			c.Requests[n] = c.Requests[i]
		}
		n++
	}
	left = len(c.Bytes) - n
	c.Bytes, c.times, c.rounds = c.Bytes[:n], c.times[:n], c.rounds[:n]
	c.Requests = c.Requests[:min(len(c.Requests), n)]
	c.stride *= 2
	return left
}

// begin begins what is printed at a time, which is NaN if it is not stated.
func (l *levels) begin(at float64) {
	l.rounds++
	l.date(at)
}

// date sets the time of what is printed.
func (l *levels) date(at float64) { l.at = at }

// zero stands for an empty cache: among others, a level of 0 bytes is a failed reading.
const zero = 1e-9

// add adds a level in bytes, NaN if it is missing, and the most that it can be, 0 if that
// is not stated. What is printed twice, such as a process in two parts of a device, is
// summed. It returns nil if the level is not kept.
func (l *levels) add(process, name string, level, limit float64) *column {
	k := key{process, name}
	c := l.byKey[k]
	if c == nil {
		if l.left = len(l.order) == maxColumns; l.left {
			return nil
		}
		c = &column{Column: profiles.Column{Process: process, Name: name}, stride: 1, round: -1}
		l.byKey[k] = c
		l.order = append(l.order, c)
	}
	if limit > 0 && limit < 1<<62 {
		most := int64(limit)
		c.Limit = &most
	}
	if n := len(c.rounds); n > 0 && c.rounds[n-1] == l.rounds {
		c.Bytes[n-1] += level
		return c
	}
	if c.round != l.rounds {
		c.round = l.rounds
		c.seen++
	}
	if (c.seen-1)%c.stride != 0 {
		return nil
	}
	if len(c.Bytes) == maxOf {
		l.kept -= c.thin()
		if (c.seen-1)%c.stride != 0 {
			return nil
		}
	}
	l.kept++
	l.undated = l.undated || math.IsNaN(l.at)
	c.Bytes, c.times, c.rounds = append(c.Bytes, level), append(c.times, l.at), append(c.rounds, l.rounds)
	return c
}

// columns are the levels that were read, with times if all of them have one.
func (l *levels) columns(unit string) (out []profiles.Column) {
	for _, c := range l.order {
		c.Times = make([]float64, len(c.times))
		for i := range c.times {
			if c.Times[i] = c.times[i] - c.times[0]; l.undated {
				c.Times[i] = float64(c.rounds[i] - c.rounds[0])
			}
		}
		if l.undated {
			c.Unit = unit
		}
		if c.Requests != nil && len(c.Requests) != len(c.Bytes) {
			c.Requests = nil // not every line states them
		}
		out = append(out, c.Column)
	}
	return out
}

// mebibytes is a size that is printed in MiB, NaN if it is not one.
func mebibytes(text string) float64 {
	var n int64
	if _, err := fmt.Sscan(text, &n); err != nil || n < 0 || n > 1<<40 {
		return math.NaN()
	}
	return float64(n << 20)
}
