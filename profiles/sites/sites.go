// Package sites reads texts that state memory by line of code or by operator: tables of
// torch.profiler's key_averages(), statistics of tracemalloc, reports of memory_profiler,
// `memray stats`, and stacks of bpftrace and gdb. In goes a text; out comes a [profiles.File] with a use for each line.
package sites

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/stack"
)

// The formats of the files.
const (
	Operators = "key_averages"    // bytes that an operator allocated, less those that it freed
	Objects   = "tracemalloc"     // bytes of Python's objects at a line, or their growth
	Lines     = "memory_profiler" // bytes by which a line raised the process's memory
	Totals    = "memray"          // bytes that a line allocated over the whole run
)

const (
	longest = 16 << 10 // bytes that are read of a line
	maxUses = 100_000
)

// A form is how one program prints.
type form struct {
	format string
	is     *lazyregexp.Regexp
	line   func(r *reader, text string)
	// also, unless nil, reports whether a beginning that fits can be of the form.
	also func(head []byte) bool
}

var forms = []form{
	{Operators, lazyregexp.New(`(?m)^ *Name +Self CPU.*\b(?:Self )?[A-Z]+ Mem\b`), (*reader).operator, nil},
	{Objects, lazyregexp.New(`(?m):\d+: size=-?[\d.]+ [KMGT]?i?B`), (*reader).objects, nil},
	{Lines, lazyregexp.New(`(?m)^ *Line # +Mem usage +Increment`), (*reader).increment, nil},
	{Totals, lazyregexp.New(`(?m)Top \d+ largest allocating locations \(by size\)`), (*reader).location, nil},
	{Stacks, stacksIn, (*reader).stack, maps},
}

func formOf(head []byte) *form {
	for i := range forms {
		if f := &forms[i]; (f.also == nil || f.also(head)) && f.is.Match(head) {
			return f
		}
	}
	return nil
}

// Is reports whether a text that begins with head is of one of these.
func Is(head []byte) bool { return formOf(head) != nil }

// Read reads a text. One without a line that has memory is [profiles.ErrOther].
func Read(r io.Reader) (*profiles.File, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, _ := in.Peek(64 << 10)
	form := formOf(head)
	if form == nil {
		return nil, profiles.ErrOther
	}
	t := &reader{file: &profiles.File{Format: form.format}, stacks: map[string]int{}, depth: -1}
	for {
		line, err := in.ReadSlice('\n')
		if len(t.file.Uses) < maxUses {
			form.line(t, string(bytes.TrimRight(line[:min(len(line), longest)], "\r\n")))
		}
		for err == bufio.ErrBufferFull { // the rest of the line
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			if err != io.EOF {
				t.file.Partial = err
			}
			break
		}
	}
	t.endStack()
	if len(t.file.Uses) == 0 {
		return nil, profiles.ErrOther
	}
	return t.file, nil
}

// A reader takes the lines of a text.
type reader struct {
	file   *profiles.File
	names  []string      // of the columns of a table of operators
	name   string        // of the file that lines are of
	frames []stack.Frame // of a stack, innermost first
	depth  int           // of its last frame, -1 if it has none
	length int64         // bytes of its call
	times  int64         // how often it was made, 0 for once
	call   string
	stacks map[string]int // the uses of stacks that came, by their frames
	sizes  []int          // columns of memory: those of the device first, of each what is its own first
}

// add adds a use of some bytes.
func (r *reader) add(kind string, at stack.Frame, bytes float64, count int64) {
	const maxBytes = 1 << 50
	if !(bytes > 0 && bytes < maxBytes) {
		return
	}
	r.file.Uses = append(r.file.Uses, profiles.Use{Kind: kind, Stack: []stack.Frame{at}, Size: int64(bytes), Count: max(count, 1)})
}

var (
	ofMemory  = lazyregexp.New(`^(Self )?([A-Z]+) Mem$`)
	sizeText  = lazyregexp.New(`^(-?[\d.]+) ?([kKMGT]?)i?[Bb]$`)
	objectsAt = lazyregexp.New(`^(?:.*?[ \]])??([^ ]\S*):(\d+): size=(-?[\d.]+ [KMGT]?i?B)(?: \(([+-][\d.]+ [KMGT]?i?B)\))?, count=(\d+)`)
	lineAt    = lazyregexp.New(`^ *(\d+) +-?[\d.]+ MiB +(-?[\d.]+) MiB +(?:(\d+) +)?(\S.*)$`)
	fileOf    = lazyregexp.New(`^Filename: (.+)$`)
	placeAt   = lazyregexp.New(`^\s*- (\S+):(.+):(\d+) -> ([\d.]+ ?[KMGT]?i?B)$`)
)

// sized is a size in bytes, NaN if the text is not one.
func sized(text string) float64 {
	m := sizeText.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return math.NaN()
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return math.NaN()
	}
	return x * math.Pow(1024, float64(strings.Index("KMGT", strings.ToUpper(m[2]))+1)*float64(min(len(m[2]), 1)))
}

// operator takes a row of a table of operators: the memory that is the operator's own where the
// table has it, and on the device rather than the host.
func (r *reader) operator(text string) {
	var cells []string
	for cell := range strings.SplitSeq(text, "  ") {
		if cell = strings.TrimSpace(cell); cell != "" {
			cells = append(cells, cell)
		}
	}
	if len(cells) == 0 {
		return
	}
	if cells[0] == "Name" {
		r.header(cells)
		return
	}
	if len(cells) != len(r.names) || len(r.sizes) == 0 {
		return
	}
	count := int64(1)
	if i := slices.Index(r.names, "# of Calls"); i >= 0 {
		count, _ = strconv.ParseInt(cells[i], 10, 64)
	}
	for _, i := range r.sizes {
		if x := sized(cells[i]); x > 0 {
			kind := strings.TrimPrefix(r.names[i], "Self ")
			if !strings.Contains(cells[0], "::") && !strings.HasPrefix(r.names[i], "Self ") {
				return // a range that the user named: what is in it is of its operators
			}
			r.add(kind, stack.Frame{Function: cells[0]}, x/float64(max(count, 1)), count)
			return
		}
	}
}

// header finds the columns of memory.
func (r *reader) header(cells []string) {
	r.names, r.sizes = cells, nil
	for i, name := range cells {
		if ofMemory.MatchString(name) {
			r.sizes = append(r.sizes, i)
		}
	}
	rank := func(i int) int {
		m := ofMemory.FindStringSubmatch(cells[i])
		rank := 0
		if m[2] == "CPU" {
			rank += 2
		}
		if m[1] == "" {
			rank++
		}
		return rank
	}
	sorts.StableBy(r.sizes, func(a, b int) int { return rank(a) - rank(b) })
}

// objects takes a statistic of tracemalloc: growth, if it compares two snapshots.
func (r *reader) objects(text string) {
	m := objectsAt.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return
	}
	kind, size := "", m[3]
	if m[4] != "" {
		kind, size = "growth", strings.TrimPrefix(m[4], "+")
	}
	line, _ := strconv.ParseInt(m[2], 10, 64)
	r.add(kind, stack.Frame{File: strings.Trim(m[1], `"'`), Line: line}, sized(size), 1)
}

// increment takes a row of memory_profiler.
func (r *reader) increment(text string) {
	if m := fileOf.FindStringSubmatch(text); m != nil {
		r.name = m[1]
		return
	}
	m := lineAt.FindStringSubmatch(text)
	if m == nil || strings.HasPrefix(m[4], "def ") || strings.HasPrefix(m[4], "@") { // the memory before the function
		return
	}
	line, _ := strconv.ParseInt(m[1], 10, 64)
	mib, _ := strconv.ParseFloat(m[2], 64)
	r.add("", stack.Frame{File: r.name, Line: line, Function: strings.TrimSpace(m[4])}, mib*(1<<20), 1)
}

// location takes a place of `memray stats`.
func (r *reader) location(text string) {
	if m := placeAt.FindStringSubmatch(text); m != nil {
		line, _ := strconv.ParseInt(m[3], 10, 64)
		r.add("", stack.Frame{File: m[2], Line: line, Function: m[1]}, sized(m[4]), 1)
	}
}
