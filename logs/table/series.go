package table

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"strandline/internal/sorts"
	"strandline/logs/text"
	"strandline/times"
)

// A Series is the tables of one process and device that a text holds, in its
// order.
type Series struct {
	Process string // as the lines or the one before the table name it, such as "rank3"; "" if they do not
	Device  *int   // nil if the titles are cut off
	Count   int    // of the last process
	// Tables are those of the last process: the first, the last and, of many, some
	// between them, evenly spread.
	Tables []*Summary
	// Earlier are tables before those, of other processes: what is counted since
	// the process began had fallen.
	Earlier int
}

// The bounds of memory.
const (
	MaxTables = 64   // tables of a series
	MaxSeries = 1024 // what comes after is left out
	maxTables = 1024 // that are written at the same time
	maxBroken = 512  // bytes of a row that is broken into lines
	maxTorn   = 256  // lines, of others too, in which its rest is awaited
	// maxBetween is the largest number of lines inside a table: several ranks write at once.
	maxBetween = 20_000
	// maxBefore is how far before a table a line may be with the time of the table.
	maxBefore = text.Before - 1
)

// A Reader finds tables in a text: it is a [text.Reader] for [Words].
type Reader struct {
	open   map[string]*table // by source
	torn   int64             // up to this line the rest of a broken row may follow
	seen   map[string]bool   // sources that had a title
	series map[series]*collection
	from   string // the source of the last line
	order  []*collection
	mixed  int

	lead   beginning // of the line "====" above a title
	before beginning // of the line before this one
	timed  beginning // of the last line with a time
}

// series is what identifies one.
type series struct {
	process string
	device  int // -1: unknown
}

// collection is a series while it grows.
type collection struct {
	Series
	stride int // of so many tables one is kept
	last   *Summary
}

// table is one that is being read.
type table struct {
	Summary
	process string
	device  *int
	titled  bool
	last    int // row
	number  int64
	mixed   bool   // with another: its rows are not in order
	broken  []byte // the figures so far of the last row, if some are missing
}

// beginning is how a line begins.
type beginning struct {
	source string
	number int64
	text   []byte
}

func (b *beginning) set(source string, number int64, text []byte) {
	const maxLen = 160
	b.source, b.number, b.text = source, number, append(b.text[:0], text[:min(len(text), maxLen)]...)
}

// NewReader returns a reader.
func NewReader() *Reader {
	return &Reader{open: map[string]*table{}, seen: map[string]bool{}, series: map[series]*collection{}}
}

// Idle implements [text.Reader].
func (t *Reader) Idle(number int64) bool { return number >= t.torn }

// Line implements [text.Reader].
func (t *Reader) Line(number int64, line []byte, hits []text.Hit) {
	hot := len(hits) > 0
	if hot && len(t.open) == 0 && number > t.torn && text.HasPrefix(line, rule) && bytes.IndexByte(line, '\\') < 0 { // and no table has begun
		t.lead.set("", number, nil)
		t.leadAfter(number)
	} else if hot || number <= t.torn {
		if bar := bytes.IndexByte(line, '|'); bar >= 0 && tabular(line[bar:]) || number <= t.torn {
			from := t.name(text.SourceOf(line))
			rest := line
			for bytes.IndexByte(rest, '\\') >= 0 { // a text inside a text
				piece, next, more := bytes.Cut(rest, []byte(`\n`))
				if !more {
					break
				}
				t.piece(from, number, piece)
				rest = next
			}
			t.piece(from, number, rest)
		}
	}
	t.before.set("", number, line)
	const within = 64
	if times.Likely(line[:min(len(line), within)]) {
		t.timed.set("", number, line)
	}
}

// Words are what a [Reader] searches a text for.
func Words() []string { return tableWords }

// tableWords are those of which one is in each line of a table, in lower case and
// without white space.
var tableWords = []string{
	rule, "memorysummary,deviceid", "ooms:", "allocatedmemory", "activememory", "requestedmemory", "reservedmemory", "releasablememory",
	"allocations", "reservedsegments", "fromlargepool",
}

// name is the name of a source, which stays the same string from line to line.
func (t *Reader) name(from []byte) string {
	if string(from) != t.from {
		t.from = string(from)
	}
	return t.from
}

// tabular reports whether a line is of a table, and not another with a bar.
func tabular(line []byte) bool {
	return ruleIn(line) >= 0 || bytes.Contains(line, []byte(" memory ")) || bytes.Contains(line, largePool) ||
		bytes.Contains(line, []byte(" OOMs: ")) || bytes.Contains(line, []byte(" Allocations ")) || bytes.Contains(line, []byte(" segments "))
}

// rule is how a line above and below the parts of a table begins.
const rule = "|===="

// ruleIn is where a rule of a table is in a line, -1 if there is none.
func ruleIn(line []byte) int {
	if text.HasPrefix(line, rule) {
		return 0
	}
	return bytes.Index(line, []byte(rule))
}

// piece takes a line of one source.
func (t *Reader) piece(from string, number int64, line []byte) {
	var tb *table
	if len(t.open) > 0 {
		tb = t.open[from]
	}
	if rule := ruleIn(line); rule >= 0 {
		if tb != nil && tb.last >= firstFigures {
			t.close(from)
		} else if tb == nil {
			t.lead.set(from, number, line[:rule])
			if blank := len(bytes.TrimSpace(line[len(from):max(rule, len(from))])) == 0; blank {
				t.leadAfter(number)
			}
		}
		return
	}
	if device, at, ok := titleOf(line); ok {
		tb = t.begin(from, number, line[:at])
		tb.titled, tb.device = true, device
		if len(t.seen) < MaxSeries {
			t.seen[from] = true
		}
		return
	}
	if at := bytes.Index(line, largePool); at >= 0 && tb != nil {
		if tb.last == reservedRow && number-tb.number < maxBetween {
			tb.cells(&tb.LargePool, false, line[at+len(largePool):])
		}
		return
	}
	row, figures := rowOf(line)
	switch {
	case row < 0 && tb != nil && tb.broken != nil:
		if from != "" {
			line = bytes.TrimLeft(line[len(from):], " ")
		}
		tb.goOn(line)
	case row < 0:
	case tb != nil && number-tb.number < maxBetween:
		t.row(tb, row, number, line[figures:])
	case row <= firstFigures || !t.seen[from]: // the title is cut off, or mangled
		tb = t.begin(from, number, nil)
		t.row(tb, row, number, line[figures:])
	}
}

// leadAfter adds the line before to a rule that nothing precedes.
func (t *Reader) leadAfter(number int64) {
	if t.before.number == number-1 {
		t.lead.text = append(append(t.lead.text, ' '), t.before.text...)
	}
}

// begin opens a table and closes the one before.
func (t *Reader) begin(from string, number int64, prefix []byte) *table {
	t.close(from)
	if len(t.open) >= maxTables {
		t.closeAll()
	}
	tb := &table{last: title, number: number}
	tb.Line = number
	if d := number - t.lead.number; t.lead.number > 0 && (t.lead.source == from && d < 3 || from == "" && d == 1) {
		tb.Line = t.lead.number
		prefix = slices.Concat(prefix, []byte(" "), t.lead.text)
	}
	if times.Likely(prefix) {
		tb.Stamp = times.In(string(prefix))
	}
	if tb.Stamp == nil && t.timed.text != nil && number-t.timed.number <= maxBefore {
		tb.Stamp = times.In(string(t.timed.text))
	}
	tb.process = text.RankOf(from, prefix)
	t.open[from] = tb
	return tb
}

// row takes a row of an open table. Rows that come twice, or in another order,
// are of two tables that were written into each other.
func (t *Reader) row(tb *table, row int, number int64, text []byte) {
	tb.number = number
	tb.broken = nil
	if row <= tb.last {
		tb.mixed = true
	}
	tb.last = row
	if !tb.take(row, text) {
		tb.broken = bytes.Clone(text[:min(len(text), maxBroken)])
		t.torn = number + maxTorn
	}
}

// goOn takes a line that may be the rest of a row: figures and bars.
func (tb *table) goOn(line []byte) {
	if len(tb.broken)+len(line) > maxBroken || len(bytes.Trim(line, "0123456789 |KMGTPiB\t\r")) > 0 {
		tb.broken = nil
		return
	}
	tb.broken = append(tb.broken, line...)
	if tb.take(tb.last, tb.broken) {
		tb.broken = nil
	}
}

// close ends the table of a source.
func (t *Reader) close(from string) {
	tb := t.open[from]
	if tb == nil {
		return
	}
	delete(t.open, from)
	const minFigures = 2 // rows without a title can be of something else
	switch n := tb.figures(); {
	case tb.mixed:
		t.mixed++
	case n >= minFigures || n > 0 && tb.titled:
		t.add(tb)
	}
}

func (t *Reader) closeAll() {
	open := slices.Collect(maps.Keys(t.open))
	sorts.By(open, func(a, b string) int { return cmp.Compare(t.open[a].Line, t.open[b].Line) })
	for _, from := range open {
		t.close(from)
	}
}

func (t *Reader) add(tb *table) {
	id := series{tb.process, -1}
	if tb.device != nil {
		id.device = *tb.device
	}
	c := t.series[id]
	if c == nil {
		if len(t.order) == MaxSeries {
			return
		}
		c = &collection{Series: Series{Process: tb.process, Device: tb.device}, stride: 1}
		t.series[id] = c
		t.order = append(t.order, c)
	}
	c.add(&tb.Summary)
}

// add appends a table, and thins out those that are kept if they are many.
func (c *collection) add(s *Summary) {
	if c.last != nil && !c.last.Before(s) {
		c.Earlier += c.Count
		c.Count, c.Tables, c.stride = 0, nil, 1
	}
	c.last = s
	if c.Count++; (c.Count-1)%c.stride != 0 {
		return
	}
	if len(c.Tables) == MaxTables {
		for i := range MaxTables / 2 {
			c.Tables[i] = c.Tables[2*i]
		}
		c.Tables = c.Tables[:MaxTables/2]
		c.stride *= 2
	}
	if (c.Count-1)%c.stride == 0 {
		c.Tables = append(c.Tables, s)
	}
}

// Found are the series when the text has ended, and how many tables are left out, as lines of
// several are mixed in them.
func (t *Reader) Found() (out []Series, mixed int) {
	t.closeAll()
	for _, c := range t.order {
		s := c.Series
		if s.Tables[len(s.Tables)-1] != c.last {
			s.Tables = append(s.Tables, c.last)
		}
		out = append(out, s)
	}
	return out, t.mixed
}
