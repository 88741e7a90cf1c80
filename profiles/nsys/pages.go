package nsys

import (
	"encoding/binary"
	"errors"
	"io"
)

// The kinds of pages of a table or an index that have pages below them, and the bytes of
// their headers.
const (
	interiorIndex, interiorTable = 2, 5
	pageHeader                   = 12
	fileHeader                   = 100 // which page 1 begins with
)

// errShared is why a database is not read.
var errShared = errors.New("a database whose pages are shared or form a circle, as SQLite writes none")

// pages are the pages of a database file, of which each may have one place in its tables.
// SQLite itself goes wherever a page leads, as often as one does: some pages that lead to
// each other are a table without an end.
type pages struct {
	r     io.ReaderAt
	bytes int64 // of the file
	size  int64 // of a page
	seen  []uint64
}

// pagesOf returns the pages of a file of so many bytes.
func pagesOf(r io.ReaderAt, bytes int64) (*pages, error) {
	var head [2]byte
	if _, err := r.ReadAt(head[:], 16); err != nil {
		return nil, err
	}
	size := int64(binary.BigEndian.Uint16(head[:]))
	if size == 1 {
		size = 64 << 10
	}
	if size < 512 || size&(size-1) != 0 {
		return nil, errors.New("a database whose pages have no size that SQLite knows")
	}
	return &pages{r, bytes, size, make([]uint64, bytes/size/64+1)}, nil
}

// check visits the pages of the tables and indexes with these roots. Pages behind the end
// of the file are left to SQLite, which reads nothing there.
func (p *pages) check(roots ...uint32) error {
	next := roots
	page := make([]byte, p.size)
	for len(next) > 0 {
		n := next[len(next)-1]
		next = next[:len(next)-1]
		word := int64(n / 64)
		if n == 0 || word >= int64(len(p.seen)) {
			continue
		}
		if p.seen[word]&(1<<(n%64)) != 0 {
			return errShared
		}
		p.seen[word] |= 1 << (n % 64)
		var err error
		if next, err = p.appendChildren(n, page, next); err != nil {
			return err
		}
	}
	return nil
}

// appendChildren appends the pages below page n to a list.
func (p *pages) appendChildren(n uint32, page []byte, list []uint32) ([]uint32, error) {
	from := int64(n-1) * p.size
	at := 0
	if n == 1 {
		at = fileHeader
	}
	if _, err := p.r.ReadAt(page[:at+pageHeader], from); err == io.EOF {
		return list, nil
	} else if err != nil {
		return nil, err
	}
	if kind := page[at]; kind != interiorIndex && kind != interiorTable {
		return list, nil
	}
	got, err := p.r.ReadAt(page, from)
	if err != nil && err != io.EOF {
		return nil, err
	}
	list = append(list, binary.BigEndian.Uint32(page[at+8:]))
	cells := int(binary.BigEndian.Uint16(page[at+3:]))
	for i := range cells {
		pointer := at + pageHeader + 2*i
		if pointer+2 > got {
			break
		}
		if cell := int(binary.BigEndian.Uint16(page[pointer:])); cell+4 <= got {
			list = append(list, binary.BigEndian.Uint32(page[cell:]))
		}
	}
	return list, nil
}
