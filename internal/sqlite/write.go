package sqlite

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
)

// written is the size of the pages of a file that is written, bytes: its schema fits into one.
const written = 16 << 10

// A Writer writes a database.
type Writer struct {
	w      io.WriterAt
	pages  uint32
	schema []cell
	err    error
}

// NewWriter returns the writer of a file, which is empty.
func NewWriter(w io.WriterAt) *Writer { return &Writer{w: w, pages: 1} }

// Table adds a table, from the statement that would create it, and calls fill with a function
// that adds a row. The first value of a row is its key, unless the table is WITHOUT ROWID: then
// all are values, of which the first ones are the key. Rows come in the order of keys. Values
// are nil, bool, int, int64 and string.
func (w *Writer) Table(create string, fill func(add func(...any))) {
	keyed := !strings.HasSuffix(strings.ToLower(create), "without rowid")
	t := &tree{w: w, index: !keyed}
	fill(func(values ...any) {
		var key int64
		if keyed {
			switch k := values[0].(type) {
			case int:
				key = int64(k)
			case int64:
				key = k
			default:
				w.fail(fmt.Errorf("the key of a row is %v", k))
			}
			values[0] = nil
		}
		t.add(key, record(values))
	})
	w.entry("table", create, int64(t.end()))
}

// View adds a view, from the statement that would create it.
func (w *Writer) View(create string) { w.entry("view", create, 0) }

func (w *Writer) entry(kind, create string, root int64) {
	words := wordsOf(create)
	if len(words) < 3 {
		w.fail(fmt.Errorf("%q creates nothing", create))
		return
	}
	name := words[2].text
	body := record([]any{kind, name, name, root, create})
	b := appendVarint(nil, uint64(len(body)))
	b = appendVarint(b, uint64(len(w.schema)+1))
	w.schema = append(w.schema, cell{body: append(b, body...)})
}

func (w *Writer) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// Close writes the first page, and returns the first error.
func (w *Writer) Close() error {
	page := layOut(leafTable, fileHeader, w.schema, 0)
	if page == nil {
		w.fail(fmt.Errorf("the schema is longer than %d bytes", written))
		return w.err
	}
	copy(page, magic)
	binary.BigEndian.PutUint16(page[16:], written)
	copy(page[18:], []byte{1, 1, 0, 64, 32, 32}) // no log of changes; as the format demands
	for at, n := range map[int]uint32{24: 1, 28: w.pages, 40: 1, 44: 4, 56: 1, 92: 1, 96: 3_040_000} {
		binary.BigEndian.PutUint32(page[at:], n) // changes, pages, schemas, format, UTF-8, changes, version
	}
	w.put(1, page)
	return w.err
}

func (w *Writer) put(n uint32, page []byte) {
	if w.err == nil {
		_, w.err = w.w.WriteAt(page, int64(n-1)*written)
	}
}

// next writes a page behind the others.
func (w *Writer) next(page []byte) uint32 {
	if w.pages == math.MaxUint32-1 {
		w.fail(fmt.Errorf("the database would have more than %d pages", w.pages))
		return w.pages
	}
	w.pages++
	w.put(w.pages, page)
	return w.pages
}

// A cell is a row or, with the page left of it, what separates two pages.
type cell struct {
	left uint32
	body []byte
}

func (c cell) size() int {
	n := 2 + len(c.body)
	if c.left != 0 {
		n += 4
	}
	return n
}

// A tree is a table that grows at its right edge: of each level one page is open.
type tree struct {
	w      *Writer
	index  bool
	levels []level // the leaves first
	last   int64   // key
}

type level struct {
	cells []cell
	bytes int
}

// add adds a row behind the others.
func (t *tree) add(key int64, record []byte) {
	if t.w.err != nil {
		return
	}
	b := appendVarint(nil, uint64(len(record)))
	if !t.index {
		if len(t.levels) > 0 && key <= t.last {
			t.w.fail(fmt.Errorf("row %d comes after row %d", key, t.last))
		}
		b = appendVarint(b, uint64(key))
	}
	onPage := local(int64(len(record)), written, t.index)
	b = append(b, record[:onPage]...)
	if record = record[onPage:]; len(record) > 0 {
		b = binary.BigEndian.AppendUint32(b, t.w.pages+1)
		for len(record) > 0 {
			page := make([]byte, written)
			n := copy(page[4:], record)
			if record = record[n:]; len(record) > 0 {
				binary.BigEndian.PutUint32(page, t.w.pages+2)
			}
			t.w.next(page)
		}
	}
	t.push(0, cell{body: b})
	t.last = key
}

// push adds a cell to the open page of a level. A full page is written, and what separates it
// from the next goes up: of an index its last cell, which the page then lacks.
func (t *tree) push(height int, c cell) {
	if height == len(t.levels) {
		t.levels = append(t.levels, level{})
	}
	l := &t.levels[height]
	if l.bytes+c.size() > written-interiorHeader {
		var up cell
		last := len(l.cells) - 1
		switch {
		case height > 0:
			up = cell{t.w.next(t.layOut(height, l.cells[:last], l.cells[last].left)), l.cells[last].body}
		case t.index:
			up = cell{t.w.next(t.layOut(0, l.cells[:last], 0)), l.cells[last].body}
		default:
			up = cell{t.w.next(t.layOut(0, l.cells, 0)), appendVarint(nil, uint64(t.last))}
		}
		*l = level{cells: l.cells[:0]}
		t.push(height+1, up)
		l = &t.levels[height]
	}
	l.cells, l.bytes = append(l.cells, c), l.bytes+c.size()
}

// end writes the open pages, and returns the root.
func (t *tree) end() uint32 {
	if len(t.levels) == 0 {
		return t.w.next(t.layOut(0, nil, 0))
	}
	var page uint32
	for height, l := range t.levels {
		page = t.w.next(t.layOut(height, l.cells, page))
	}
	return page
}

func (t *tree) layOut(height int, cells []cell, right uint32) []byte {
	kind := byte(leafTable)
	switch {
	case t.index && height > 0:
		kind = interiorIndex
	case t.index:
		kind = leafIndex
	case height > 0:
		kind = interiorTable
	}
	return layOut(kind, 0, cells, right)
}

// layOut makes a page whose header is at a place, nil if the cells do not fit.
func layOut(kind byte, at int, cells []cell, right uint32) []byte {
	page := make([]byte, written)
	pointers := at + leafHeader
	page[at] = kind
	if right != 0 {
		binary.BigEndian.PutUint32(page[at+8:], right)
		pointers = at + interiorHeader
	}
	binary.BigEndian.PutUint16(page[at+3:], uint16(len(cells)))
	end := written
	for i, c := range cells {
		var b []byte
		if c.left != 0 {
			b = binary.BigEndian.AppendUint32(b, c.left)
		}
		b = append(b, c.body...)
		if end -= len(b); end < pointers+2*len(cells) {
			return nil
		}
		copy(page[end:], b)
		binary.BigEndian.PutUint16(page[pointers+2*i:], uint16(end))
	}
	binary.BigEndian.PutUint16(page[at+5:], uint16(end))
	return page
}

// record encodes a row.
func record(values []any) []byte {
	var types, body []byte
	for _, v := range values {
		switch v := v.(type) {
		case nil:
			types = append(types, 0)
		case bool:
			types = append(types, 8)
			if v {
				types[len(types)-1] = 9
			}
		case string:
			types = appendVarint(types, uint64(13+2*len(v)))
			body = append(body, v...)
		case int:
			types, body = integer(types, body, int64(v))
		case int64:
			types, body = integer(types, body, v)
		default:
			panic(fmt.Sprintf("a value of type %T", v))
		}
	}
	head := len(types) + 1
	if head >= 128 {
		head++
	}
	return append(append(appendVarint(nil, uint64(head)), types...), body...)
}

// integer encodes one in as few bytes as there are kinds for.
func integer(types, body []byte, n int64) ([]byte, []byte) {
	if n == 0 || n == 1 {
		return append(types, byte(8+n)), body
	}
	for kind, bytes := range []int{1, 2, 3, 4, 6, 8} {
		bits := 8*bytes - 1
		if bytes == 8 || n >= -1<<bits && n < 1<<bits {
			for i := bytes - 1; i >= 0; i-- {
				body = append(body, byte(n>>(8*i)))
			}
			return append(types, byte(kind+1)), body
		}
	}
	return types, body
}
