// Package sqlite reads and writes database files of SQLite 3 without SQL: the rows of tables,
// in the order of their keys. The SQLite library itself would be a seventh of the program.
//
// A reader trusts nothing: it visits each page once, and reads what can be read of a file that
// is damaged or cut off. A writer adds rows in order, and writes each page once.
//
// https://www.sqlite.org/fileformat2.html describes the format.
package sqlite

import "strings"

const (
	magic      = "SQLite format 3\x00"
	fileHeader = 100 // bytes, which page 1 begins with
)

// Is reports whether a file begins as a database does.
func Is(head []byte) bool { return strings.HasPrefix(string(head), magic) }

// The kinds of pages. Interior pages have pages below them. An index also holds the rows of a
// table WITHOUT ROWID.
const (
	interiorIndex = 2
	interiorTable = 5
	leafIndex     = 10
	leafTable     = 13
)

// Bytes of the header of a page.
const (
	leafHeader     = 8
	interiorHeader = 12
)

// local is how many bytes of a record lie on its page, of which usable bytes hold cells. The
// others lie on a chain of pages of their own.
func local(bytes, usable int64, index bool) int64 {
	maxLocal := usable - 35
	if index {
		maxLocal = (usable-12)*64/255 - 23
	}
	if bytes <= maxLocal {
		return bytes
	}
	least := (usable-12)*32/255 - 23
	if n := least + (bytes-least)%(usable-4); n <= maxLocal {
		return n
	}
	return least
}

// varint decodes an integer of up to 9 bytes, 7 bits in each but the last. It is 0 bytes
// long if b ends within it.
func varint(b []byte) (n uint64, bytes int) {
	for i, c := range b {
		if i == 8 {
			return n<<8 | uint64(c), 9
		}
		n = n<<7 | uint64(c&0x7f)
		if c < 0x80 {
			return n, i + 1
		}
	}
	return 0, 0
}

// appendVarint encodes an integer as varint decodes it.
func appendVarint(b []byte, n uint64) []byte {
	if n >= 1<<56 {
		for shift := 57; shift >= 8; shift -= 7 {
			b = append(b, byte(n>>shift)|0x80)
		}
		return append(b, byte(n))
	}
	shift := 0
	for n>>(shift+7) > 0 {
		shift += 7
	}
	for ; shift > 0; shift -= 7 {
		b = append(b, byte(n>>shift)|0x80)
	}
	return append(b, byte(n&0x7f))
}
