// Package levels reads tables of memory over time: CSV files, and the output of
// nvidia-smi --query-gpu, docker stats and the like, with a column of times and
// columns of sizes. What several processes or devices wrote in turn is separated.
package levels

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"strandline/internal/budget"
	"strandline/internal/lazyregexp"
	"strandline/internal/secret"
	"strandline/profiles"
)

const (
	// longest is the longest line that is read, in bytes.
	longest = 1 << 20
	// maxCells is how many levels are kept, and maxColumns in how many columns.
	maxCells   = 20_000_000
	maxColumns = 4096
)

// The bytes of a level, of a column of them, and of the rows of one process.
const cellBytes, columnBytes, groupBytes = 16, 64, 256

// Is reports whether a text that begins with head is such a table: its first lines can
// be read as one.
func Is(head []byte) bool {
	const minRows = 2 // rows
	full := bytes.Count(head, []byte("\n"))
	t, err := newTable(bufio.NewReader(bytes.NewReader(head)))
	if t != nil {
		t.budget = budget.Of(int64(len(head)), budget.Plain)
	}
	if err != nil {
		return t != nil && err == t.header.reason
	}
	for t.rows < 20 && t.lines < max(full, 1) && t.row() == nil {
	}
	return t.rows >= minRows && t.bad == 0
}

// Columns counts the columns of a text that begins with a table: different names in the first line,
// and as many cells in each line after it. It is 0 if there is none.
func Columns(head []byte) int {
	const minColumns, minRows, longestName = 3, 2, 64
	t := &table{in: bufio.NewReader(bytes.NewReader(head))}
	first, err := t.line()
	if t.delimiter = delimiterOf(first); err != nil || t.delimiter == 0 || t.delimiter == ' ' {
		return 0
	}
	names, rows := t.split(first), 0
	if slices.ContainsFunc(names, func(name string) bool {
		_, _, number := parseSize(name, 1)
		_, time := parseClock(name)
		return name == "" || len(name) > longestName || number || time
	}) {
		return 0
	}
	for full := bytes.Count(head, []byte("\n")); t.lines < full; rows++ {
		if line, err := t.line(); err != nil || len(t.split(line)) != len(names) {
			return 0
		}
	}
	slices.Sort(names)
	if n := len(names); rows >= minRows && n >= minColumns && n == len(slices.Compact(names)) {
		return n
	}
	return 0
}

// Read reads a table. What cannot be one is [profiles.ErrOther]; a row that cannot be
// read is counted and left out.
func Read(r io.Reader) (*profiles.File, error) {
	r, b := budget.Reader(r, budget.Plain)
	t, err := newTable(bufio.NewReaderSize(r, 64<<10))
	switch {
	case err != nil && t != nil && err == t.header.reason:
		return nil, err
	case err != nil:
		return nil, profiles.ErrOther
	}
	t.budget = b
	f := &profiles.File{Format: profiles.Levels}
	for err == nil {
		err = t.row()
	}
	if err != io.EOF {
		f.Partial = err
	}
	if t.bad > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%d of %d rows could not be read, the first in line %d", t.bad, t.bad+t.rows, t.firstBad))
	}
	f.Columns = t.columns()
	if len(f.Columns) == 0 {
		return nil, profiles.ErrOther
	}
	return f, nil
}

// A table is one that is being read.
type table struct {
	in        *bufio.Reader
	budget    *budget.Budget
	delimiter byte // ' ' for any white space
	lines     int
	comment   string   // the last one, which can have the names of the columns
	pending   []string // a row that was read to find out about the columns
	header    header

	rows, bad, firstBad int
	kept                int    // levels
	cells               []cell // of the row that is read
	negative            []bool // by level column: it was below 0, as no size is
	groups              map[string]*group
	order               []*group
}

// A group is the rows of one process or device.
type group struct {
	name   string
	times  []float64
	values [][]float64 // by level column
	limits []float64   // what the rows state of capacities, by level column; NaN if they vary
}

// newTable reads as much as states what the columns are.
func newTable(in *bufio.Reader) (*table, error) {
	t := &table{in: in, groups: map[string]*group{}}
	first, err := t.line()
	if err != nil {
		return nil, err
	}
	t.delimiter = delimiterOf(first)
	if t.delimiter == 0 {
		return nil, profiles.ErrOther
	}
	names := t.split(first)
	if reason := listedEvents(first); reason != nil {
		t.header.reason = reason
		return t, reason
	}
	if smiTime.MatchString(names[0]) && t.delimiter == ',' && len(names) > 1 {
		t.pending = names
		t.header = smiHeader(names)
	} else if unnamed(names) {
		t.pending = names
		t.header = headerOf(t.commented(len(names)), names)
	} else if _, ok := parseClock(names[0]); ok {
		return nil, profiles.ErrOther // a log, whose lines begin with a time
	} else {
		second, err := t.line()
		if err != nil {
			return nil, err
		}
		t.pending = t.split(second)
		t.header = headerOf(names, t.pending)
	}
	if t.header.reason != nil {
		return t, t.header.reason
	}
	if t.header.time < 0 || len(t.header.levels) == 0 || t.delimiter == ' ' && !t.header.ofMemory() {
		return nil, profiles.ErrOther
	}
	t.cells, t.negative = make([]cell, len(t.header.levels)), make([]bool, len(t.header.levels))
	return t, nil
}

// commented are the names of so many columns in the comment above the first row, as
// psrecord and numpy write them; nil if it has none.
func (t *table) commented(columns int) []string {
	names := t.split(t.comment)
	if t.delimiter == ' ' && len(names) != columns {
		names = blankNames.FindAllString(t.comment, -1)
	}
	if len(names) != columns || !slices.ContainsFunc(names, timeName.MatchString) || !slices.ContainsFunc(names, memoryName.MatchString) {
		return nil
	}
	return names
}

// blankNames are names that can have blanks in them, with more than one between them.
var blankNames = lazyregexp.New(`\S+(?: \S+)*`)

// line returns the next line that is neither empty nor a comment.
func (t *table) line() (string, error) {
	for {
		var line []byte
		for {
			part, err := t.in.ReadSlice('\n')
			line = append(line, part...)
			if len(line) > longest {
				return "", fmt.Errorf("line %d is longer than %d bytes", t.lines+1, longest)
			}
			if err == nil || err == io.EOF && len(line) > 0 {
				break
			}
			if err != bufio.ErrBufferFull {
				return "", err
			}
		}
		t.lines++
		text := strings.Trim(string(line), " \r\n\ufeff")
		if comment, ok := strings.CutPrefix(text, "#"); ok {
			t.comment = strings.TrimSpace(comment)
		} else if text != "" {
			return text, nil
		}
	}
}

// delimiterOf returns what separates the cells of a line, 0 if nothing does.
func delimiterOf(line string) byte {
	best, most := byte(0), 0
	for _, d := range []byte{',', ';', '\t'} {
		if n := strings.Count(line, string(d)); n > most {
			best, most = d, n
		}
	}
	if best == 0 && len(strings.Fields(line)) > 1 {
		return ' '
	}
	return best
}

// split separates the cells of a line.
func (t *table) split(line string) []string {
	if t.delimiter == ' ' {
		return strings.Fields(line)
	}
	if strings.IndexByte(line, '"') >= 0 {
		r := csv.NewReader(strings.NewReader(line))
		r.Comma, r.LazyQuotes, r.FieldsPerRecord = rune(t.delimiter), true, -1
		cells, err := r.Read()
		if err == nil {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			return cells
		}
	}
	cells := strings.Split(line, string(t.delimiter))
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
		if t.delimiter == ';' && decimalComma.MatchString(cells[i]) {
			cells[i] = strings.Replace(cells[i], ",", ".", 1)
		}
	}
	return cells
}

// decimalComma is a number as it is written where semicolons separate the cells because
// commas stand before the decimals.
var decimalComma = lazyregexp.New(`^-?\d+,\d+$`)

// row reads one row. Its error is io.EOF at the end.
func (t *table) row() error {
	cells := t.pending
	if t.pending = nil; cells == nil {
		line, err := t.line()
		if err != nil {
			return err
		}
		cells = t.split(line)
	}
	h := &t.header
	if h.repeats(cells) {
		return nil // the output of several runs, one after another
	}
	now, ok := math.NaN(), false
	if h.time < len(cells) {
		now, ok = h.clock.read(cells[h.time])
	}
	if !ok && h.time < len(cells) {
		var factor float64
		if factor, ok = h.clock.sinceStart(cells[h.time]); ok {
			t.sinceStart(factor)
			now, ok = h.clock.read(cells[h.time])
		}
	}
	if !ok {
		t.wrong()
		return nil
	}
	if !h.read(cells, t.cells[:]) {
		t.wrong()
		return nil
	}
	g, err := t.groupOf(cells)
	if err != nil {
		return err
	}
	t.rows++
	if err := t.budget.Spend(cellBytes*(1+len(h.levels)), "levels"); err != nil { // a row may have fewer cells
		return fmt.Errorf("line %d: %w; the rest is left out", t.lines, err)
	}
	if t.kept += len(h.levels); t.kept > maxCells {
		return fmt.Errorf("line %d: more than %d levels; the rest is left out", t.lines, maxCells)
	}
	g.times = append(g.times, now)
	for i, c := range t.cells {
		if c.bytes < 0 {
			t.negative[i] = true
		}
		g.values[i] = append(g.values[i], c.bytes)
		switch {
		case len(g.times) == 1:
			g.limits[i] = c.limit
		case g.limits[i] != c.limit && !math.IsNaN(c.limit):
			g.limits[i] = math.NaN()
		}
	}
	return nil
}

// sinceStart reads again the times that were taken for those of the day, and are since a
// start: hours and minutes are minutes and seconds.
func (t *table) sinceStart(factor float64) {
	t.header.clock = clock{elapsed: true}
	for _, g := range t.order {
		for i := range g.times {
			g.times[i] = (g.times[i] + yearZero) * factor
		}
	}
}

func (t *table) wrong() {
	if t.bad++; t.bad == 1 {
		t.firstBad = t.lines
	}
}

// groupOf is the group of a row.
func (t *table) groupOf(cells []string) (*group, error) {
	var parts []string
	for _, i := range t.header.groups {
		if i < len(cells) && cells[i] != "" {
			parts = append(parts, t.header.names[i]+" "+cells[i])
		}
	}
	name := strings.Join(parts, ", ")
	if g := t.groups[name]; g != nil {
		return g, nil
	}
	n := len(t.header.levels)
	if err := t.budget.Spend(groupBytes+columnBytes*n, "columns"); err != nil {
		return nil, fmt.Errorf("line %d: %w; the rest is left out", t.lines, err)
	}
	if (len(t.groups)+1)*n > maxColumns {
		return nil, fmt.Errorf("line %d: more than %d columns of levels; the rest is left out", t.lines, maxColumns)
	}
	g := &group{name: secret.Line(name), values: make([][]float64, n), limits: make([]float64, n)}
	t.groups[name] = g
	t.order = append(t.order, g)
	return g, nil
}

// columns are the levels that were read.
func (t *table) columns() (out []profiles.Column) {
	for _, g := range t.order {
		if len(g.times) == 0 {
			continue // none of its rows could be read
		}
		start := g.times[0]
		times := make([]float64, len(g.times))
		for i, x := range g.times {
			times[i] = x - start
		}
		for i, l := range t.header.levels {
			if t.negative[i] {
				continue
			}
			c := profiles.Column{Name: l.name, Times: times, Bytes: g.values[i], Unit: t.header.clock.unit, Unstated: !l.memory}
			if len(t.order) > 1 {
				c.Process = g.name
			}
			if limit := g.limits[i]; limit > 0 {
				n := int64(min(limit, 1<<62))
				c.Limit = &n
			}
			out = append(out, c)
		}
	}
	return out
}
