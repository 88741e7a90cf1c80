package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
)

// ErrShared is why a file is not read: its tables would have no end.
var ErrShared = errors.New("a database whose pages are shared or form a circle, as SQLite writes none")

// ErrDamaged is what a file lacks of the pages or rows that its header and pages promise.
var ErrDamaged = errors.New("the database is damaged or cut off")

// maxDepth is how many pages lie above a row, at most; SQLite has the same limit.
const maxDepth = 20

// maxRecord is how many bytes are read of a row: columns after them have no value.
const maxRecord = 1 << 20

// A DB is a database that is open to be read.
type DB struct {
	Tables map[string]*Table
	// Damage is ErrDamaged once something could not be read.
	Damage error

	ctx    context.Context
	r      io.ReaderAt
	size   int64 // of a page, bytes
	usable int64 // of these, for cells
	wide   binary.ByteOrder
	seen   []uint64 // the pages visited
}

// A Table is one with rows of its own: no view, no virtual table.
type Table struct {
	root    uint32
	columns []string // as records have them; "" for one that is computed
	key     int      // the column that is the number of the row, or -1
}

// Has reports whether a table stores these columns. A table that is nil has none.
func (t *Table) Has(columns ...string) bool {
	for _, c := range columns {
		if t == nil || !slices.Contains(t.columns, c) {
			return false
		}
	}
	return t != nil
}

// A Kind is the kind of a value.
type Kind byte

const (
	Other Kind = iota // null, a fraction, bytes, or a value that lies too far back in a long row
	Integer
	Text
)

// A Value is one column of a row. Its bytes change with the next row.
type Value struct {
	Kind Kind
	Int  int64
	text []byte
	wide binary.ByteOrder
}

// Text is the first maxBytes of a text, as UTF-8.
func (v Value) Text(maxBytes int) string {
	b := v.text[:min(len(v.text), maxBytes)]
	if v.wide == nil {
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	var units []uint16
	for ; len(b) >= 2; b = b[2:] {
		units = append(units, v.wide.Uint16(b))
	}
	return string(utf16.Decode(units))
}

// Open reads the schema of a file of so many bytes. The context ends this and later calls.
func Open(ctx context.Context, r io.ReaderAt, bytes int64) (*DB, error) {
	var head [fileHeader]byte
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, ErrDamaged
	}
	size := int64(binary.BigEndian.Uint16(head[16:]))
	if size == 1 {
		size = 64 << 10
	}
	usable := size - int64(head[20])
	if !Is(head[:]) || size < 512 || size&(size-1) != 0 || usable < 480 {
		return nil, errors.New("not a database of SQLite")
	}
	db := &DB{Tables: map[string]*Table{}, ctx: ctx, r: r, size: size, usable: usable, seen: make([]uint64, bytes/size/64+1)}
	switch binary.BigEndian.Uint32(head[56:]) {
	case 2:
		db.wide = binary.LittleEndian
	case 3:
		db.wide = binary.BigEndian
	}
	counted := string(head[24:28]) == string(head[92:96]) // else the count is an older program's
	if pages := int64(binary.BigEndian.Uint32(head[28:])); counted && pages > bytes/size {
		db.Damage = ErrDamaged
	}
	return db, db.schema()
}

// schema finds the tables. Of two with one name, neither is read.
func (db *DB) schema() error {
	const maxText = 1 << 16
	twice := map[string]bool{}
	schema := &Table{1, []string{"type", "name", "tbl_name", "rootpage", "sql"}, -1}
	return db.Rows(schema, []string{"type", "name", "rootpage", "sql"}, func(v []Value) {
		name := v[1].Text(maxText)
		if v[0].Text(maxText) != "table" || v[2].Int <= 1 || v[2].Int >= 1<<32 || twice[name] {
			return
		}
		if db.Tables[name] != nil {
			twice[name] = true
			delete(db.Tables, name)
			return
		}
		if columns, key, ok := columnsOf(v[3].Text(maxText)); ok {
			db.Tables[name] = &Table{uint32(v[2].Int), columns, key}
		}
	})
}

// Rows calls row with these columns of each row of a table. It may be called once for a table.
// What is damaged is left out; the error is another.
func (db *DB) Rows(t *Table, columns []string, row func([]Value)) error {
	s := scan{DB: db, table: t, row: row, at: make([]int, len(t.columns)), values: make([]Value, len(columns))}
	for i := range s.at {
		s.at[i] = slices.Index(columns, t.columns[i])
		if s.at[i] >= 0 {
			s.last = i
		}
	}
	return s.page(t.root, 0)
}

// A scan visits the pages of one table.
type scan struct {
	*DB
	table  *Table
	row    func([]Value)
	at     []int // where the value of a column goes, or -1
	last   int   // the last column that is read
	values []Value
	record []byte
	pages  [maxDepth][]byte
}

// visit reads a page into b, once. It is empty behind the end of the file.
func (db *DB) visit(n uint32, b []byte) ([]byte, error) {
	if err := db.ctx.Err(); err != nil {
		return nil, context.Cause(db.ctx)
	}
	word := int64(n / 64)
	if n == 0 || word >= int64(len(db.seen)) {
		db.Damage = ErrDamaged
		return nil, nil
	}
	if db.seen[word]&(1<<(n%64)) != 0 {
		return nil, ErrShared
	}
	db.seen[word] |= 1 << (n % 64)
	got, err := db.r.ReadAt(b[:db.size], int64(n-1)*db.size)
	if err != nil && err != io.EOF {
		return nil, err
	}
	if int64(got) < db.size {
		db.Damage = ErrDamaged
	}
	return b[:min(int64(got), db.usable)], nil
}

func (s *scan) page(n uint32, depth int) error {
	if depth == maxDepth {
		s.Damage = ErrDamaged
		return nil
	}
	if s.pages[depth] == nil {
		s.pages[depth] = make([]byte, s.size)
	}
	page, err := s.visit(n, s.pages[depth])
	if err != nil {
		return err
	}
	at := 0
	if n == 1 {
		at = fileHeader
	}
	if len(page) < at+interiorHeader || page[at] != leafTable && page[at] != interiorTable {
		s.Damage = ErrDamaged
		return nil
	}
	pointers, interior := at+leafHeader, page[at] == interiorTable
	if interior {
		pointers = at + interiorHeader
	}
	cells := int(binary.BigEndian.Uint16(page[at+3:]))
	room := len(page) // what cells that share bytes would exceed
	for i := range cells {
		if pointers+2*i+2 > len(page) {
			s.Damage = ErrDamaged
			break
		}
		cell := page[min(len(page), int(binary.BigEndian.Uint16(page[pointers+2*i:]))):]
		if !interior {
			if err := s.cell(cell, &room); err != nil {
				return err
			}
		} else if len(cell) < 4 {
			s.Damage = ErrDamaged
		} else if err := s.page(binary.BigEndian.Uint32(cell), depth+1); err != nil {
			return err
		}
	}
	if interior {
		return s.page(binary.BigEndian.Uint32(page[at+8:]), depth+1)
	}
	return nil
}

// cell reads a row: the length of its record, its key, and as much of the record as lies here.
func (s *scan) cell(b []byte, room *int) error {
	length, n := varint(b)
	key, m := varint(b[n:])
	b = b[n+m:]
	onPage := local(int64(length), s.usable, false)
	if n == 0 || m == 0 || length > 1<<31 || onPage > int64(len(b)) || onPage > int64(*room) {
		s.Damage = ErrDamaged
		return nil
	}
	*room -= int(onPage)
	record := b[:onPage]
	if onPage < int64(length) {
		if len(b) < int(onPage)+4 {
			s.Damage = ErrDamaged
			return nil
		}
		var err error
		if record, err = s.whole(record, binary.BigEndian.Uint32(b[onPage:]), min(int64(length), maxRecord)); err != nil {
			return err
		}
	}
	if s.decode(record, int64(length)) {
		if k := s.table.key; k >= 0 && s.at[k] >= 0 {
			s.values[s.at[k]] = Value{Kind: Integer, Int: int64(key)}
		}
		s.row(s.values)
	} else {
		s.Damage = ErrDamaged
	}
	return nil
}

// whole appends to a record what lies on the chain of pages that begins with next.
func (s *scan) whole(record []byte, next uint32, length int64) ([]byte, error) {
	s.record = append(s.record[:0], record...)
	page := make([]byte, s.size)
	for int64(len(s.record)) < length {
		b, err := s.visit(next, page)
		if err != nil {
			return nil, err
		}
		if len(b) < 4 {
			break
		}
		next = binary.BigEndian.Uint32(b)
		b = b[4:]
		s.record = append(s.record, b[:min(int64(len(b)), length-int64(len(s.record)))]...)
	}
	return s.record, nil
}

// decode takes the values out of a record that has length bytes, as far as it was read.
func (s *scan) decode(record []byte, length int64) bool {
	clear(s.values)
	head, n := varint(record)
	if n == 0 || head < uint64(n) || head > uint64(len(record)) {
		return false
	}
	types, body := record[n:head], int64(head)
	for column := 0; column <= s.last && len(types) > 0; column++ {
		kind, n := varint(types)
		if n == 0 {
			return false
		}
		types = types[n:]
		size := sizeOf(kind)
		if size < 0 || size > length-body {
			return false
		}
		if at := s.at[column]; at >= 0 && body <= int64(len(record)) {
			s.values[at] = s.value(kind, record[body:min(int64(len(record)), body+size)], size)
		}
		body += size
	}
	return true
}

// sizeOf is how many bytes a value of a kind has, -1 of a kind that there is not.
func sizeOf(kind uint64) int64 {
	switch {
	case kind < 10:
		return [...]int64{0, 1, 2, 3, 4, 6, 8, 8, 0, 0}[kind]
	case kind < 12 || kind > 1<<40:
		return -1
	}
	return int64(kind-12) / 2
}

// value decodes one of size bytes, of which b are there.
func (s *scan) value(kind uint64, b []byte, size int64) Value {
	switch {
	case kind == 8 || kind == 9:
		return Value{Kind: Integer, Int: int64(kind - 8)}
	case kind >= 1 && kind <= 6 && int64(len(b)) == size:
		n := int64(int8(b[0]))
		for _, c := range b[1:] {
			n = n<<8 | int64(c)
		}
		return Value{Kind: Integer, Int: n}
	case kind >= 13 && kind%2 == 1:
		return Value{Kind: Text, text: b, wide: s.wide}
	}
	return Value{}
}
