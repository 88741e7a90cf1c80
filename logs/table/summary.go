package table

import (
	"bytes"
	"strconv"

	"strandline/logs/text"
	"strandline/times"
)

// A Summary is a table that torch.cuda.memory_summary() printed. What it does not
// state is nil: a table may be cut off, and rows may be missing; the row of
// requested memory is there since PyTorch 2.0.
//
// PyTorch cuts figures to whole units: [Grain] returns how much one can be short.
type Summary struct {
	Line  int64        // on which it begins, from 1
	Stamp *times.Stamp // when it was written, as its lines or one before them state it

	OOMs    *int64 // requests that failed, since the process began
	Retries *int64 // failures of the driver after which the cache was returned

	Allocated     Usage // blocks in use
	Active        Usage // with those that wait for a stream
	Requested     Usage // of the active ones, before rounding
	Reserved      Usage // segments
	LargePool     Usage // of the reserved memory, segments for requests above 1 MiB
	NonReleasable Usage // free pieces of segments partly in use; none of expandable segments
	Allocations   Usage // a number
	Segments      Usage // a number; expandable ones are not counted

	kept []int64 // has room for them
}

// keep returns where a figure is kept.
func (s *Summary) keep(n int64) *int64 {
	const room = 32 // a table has 28, and two counters
	if len(s.kept) == cap(s.kept) {
		s.kept = make([]int64, 0, room)
	}
	s.kept = append(s.kept, n)
	return &s.kept[len(s.kept)-1]
}

// A Usage is a row: bytes, or a number. Gained and Freed are sums since the
// process began.
type Usage struct{ Current, Peak, Gained, Freed *int64 }

// Grain is the unit in which PyTorch prints a size: the true one is up to a unit
// larger.
func Grain(bytes int64) int64 {
	const maxUnits = 768 << 10 // of a unit; then the next is taken
	unit := int64(1)
	for bytes/unit >= maxUnits {
		unit <<= 10
	}
	return unit
}

// The lines of a table, in their order.
const (
	title = iota - 1
	counters
	firstFigures
	reservedRow = firstFigures + 3
)

// largePool begins the second line of a row: the part of it that is in the large pool.
var largePool = []byte("from large pool ")

// rows are the lines behind the title, by what is in them. The name of the
// accelerator is in three: "CUDA OOMs", "cudaMalloc retries", "GPU reserved
// memory"; other backends put theirs.
var rows = []struct {
	name  []byte
	field func(*Summary) *Usage
	count bool // no bytes
}{
	counters:     {name: []byte(" OOMs: ")},
	firstFigures: {[]byte(" Allocated memory "), func(s *Summary) *Usage { return &s.Allocated }, false},
	{[]byte(" Active memory "), func(s *Summary) *Usage { return &s.Active }, false},
	{[]byte(" Requested memory "), func(s *Summary) *Usage { return &s.Requested }, false},
	{[]byte(" reserved memory "), func(s *Summary) *Usage { return &s.Reserved }, false},
	{[]byte(" Non-releasable memory "), func(s *Summary) *Usage { return &s.NonReleasable }, false},
	{[]byte(" Allocations "), func(s *Summary) *Usage { return &s.Allocations }, true},
	{[]byte(" reserved segments "), func(s *Summary) *Usage { return &s.Segments }, true},
}

// rowOf is the row of a table that is in a line, and where its figures begin;
// -1 if there is none.
func rowOf(line []byte) (row, figures int) {
	const memory = "memory "
	end := bytes.Index(line, []byte(memory)) + len(memory)
	once := end >= len(memory) && !bytes.Contains(line[end:], []byte(memory))
	for i, r := range rows {
		switch of := bytes.HasSuffix(r.name, []byte(memory)); {
		case of && end < len(memory):
		case of && once: // most lines of a table
			if bytes.HasSuffix(line[:end], r.name) {
				return i, end
			}
		default:
			if at := bytes.Index(line, r.name); at >= 0 {
				return i, at + len(r.name)
			}
		}
	}
	return -1, 0
}

// titleOf is the device that the title of a table names, nil if it names none,
// and where the title begins.
func titleOf(line []byte) (device *int, at int, ok bool) {
	const words = " memory summary, device ID "
	at = bytes.Index(line, []byte(words))
	if at < 0 {
		return nil, 0, false
	}
	if n, err := strconv.Atoi(string(text.Digits(bytes.TrimLeft(line[at+len(words):], " ")))); err == nil {
		device = &n
	}
	if bar := bytes.LastIndexByte(line[:at], '|'); bar >= 0 {
		at = bar
	}
	return device, at, true
}

// take reads the figures of a row, and reports whether all of them are there.
func (s *Summary) take(row int, text []byte) (whole bool) {
	if row == counters {
		s.OOMs = s.counter(text)
		if at := bytes.Index(text, []byte("retries: ")); at >= 0 {
			s.Retries = s.counter(text[at+len("retries: "):])
		}
		return s.Retries != nil
	}
	return s.cells(rows[row].field(s), rows[row].count, text)
}

// cells reads the cells of a row.
func (s *Summary) cells(u *Usage, count bool, text []byte) (whole bool) {
	name, cells, whole := bytes.Cut(text, []byte("|"))
	for _, to := range [...]**int64{&u.Current, &u.Peak, &u.Gained, &u.Freed} {
		// A cell ends with a bar: before that its number may be cut. What is
		// before the first bar belongs to the name.
		var cell []byte
		if cell, cells, whole = bytes.Cut(cells, []byte("|")); whole && len(bytes.TrimSpace(name)) == 0 {
			*to = s.figure(cell, count)
		}
	}
	return whole
}

// counter is a number that ends with a space or a bar: at the end of a line it
// may be cut.
func (s *Summary) counter(line []byte) *int64 {
	line = bytes.TrimLeft(line, " ")
	number := text.Digits(line)
	after := line[len(number):]
	n, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil || len(after) == 0 || after[0] != ' ' && after[0] != '|' {
		return nil
	}
	return s.keep(n)
}

// figure reads a cell: a number and its unit, nil if it is not a figure. Before PyTorch 2.0
// the units were KB, MB and so on, and meant the same.
func (s *Summary) figure(cell []byte, count bool) *int64 {
	cell = bytes.TrimSpace(cell)
	number := text.Digits(cell)
	unit := bytes.TrimSpace(cell[len(number):])
	base := int64(1 << 10)
	if count {
		base = 1000
	} else if len(unit) == 0 {
		return nil
	}
	factor := int64(1)
	switch string(unit) {
	case "", "B":
	case "K", "KB", "KiB":
		factor = base
	case "M", "MB", "MiB":
		factor = base * base
	case "GB", "GiB":
		factor = base * base * base
	case "TB", "TiB":
		factor = base * base * base * base
	case "PB", "PiB":
		factor = base * base * base * base * base
	default:
		return nil
	}
	n, err := strconv.ParseInt(string(number), 10, 64)
	const maxBytes = 1 << 62
	if err != nil || n > maxBytes/factor {
		return nil
	}
	n *= factor
	return s.keep(n)
}

// figures counts the rows that state what is there now.
func (s *Summary) figures() (n int) {
	for _, r := range rows[firstFigures:] {
		if r.field(s).Current != nil {
			n++
		}
	}
	return n
}

// Before reports whether another table of the same process can be a later one:
// what PyTorch counts since the process began never falls.
func (s *Summary) Before(later *Summary) bool {
	for _, r := range [][2]*int64{
		{s.OOMs, later.OOMs}, {s.Retries, later.Retries}, {s.Allocated.Gained, later.Allocated.Gained},
		{s.Reserved.Gained, later.Reserved.Gained}, {s.Allocations.Gained, later.Allocations.Gained},
	} {
		if r[0] != nil && r[1] != nil && *r[0] > *r[1] {
			return false
		}
	}
	return true
}
