package cpython

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf16"

	"strandline/host/calls/event"
	"strandline/stack"
)

// Codes reads and keeps the names of functions, by the address of their code. It is not
// safe for concurrent use.
type Codes struct {
	runtime *Runtime
	known   map[uint64]*code
	kept    int // bytes
}

// Codes returns an empty cache of the names of functions that the interpreter runs.
func (r *Runtime) Codes() *Codes { return &Codes{runtime: r, known: map[uint64]*code{}} }

// code is the part of a function's code object that matters here.
type code struct {
	// The addresses of the two names distinguish an object from another that later took
	// its place.
	fileAt, nameAt uint64
	file, name     string
	first          int
	lines          []byte
}

// Bounds on what is accepted as a name or a table.
const (
	longestText  = 4096
	longestTable = 128 << 10
	maxCodes     = 1 << 16
	maxKept      = 64 << 20 // bytes of names and tables
)

// Name returns the function of a frame, with its file and current line; the line is 0
// if it is not known.
func (c *Codes) Name(mem Memory, f Frame) (stack.Frame, error) {
	f.Code &^= uint64(c.runtime.codeMask) // the frame may have been read elsewhere
	k, err := c.code(mem, f)
	if err != nil {
		return stack.Frame{}, err
	}
	return stack.Frame{File: k.file, Function: k.name, Line: int64(c.runtime.line(k, f))}, nil
}

var errGone = errors.New("the function is gone")

// Internal reports whether a function comes from no source file: 3.13 and later put
// such a function between a class and its __init__.
func Internal(f stack.Frame) bool {
	return f.File == "__init__" && f.Function == "__init__" && f.Line == 0
}

// matches reports whether a frame's code is this object, and not one that was in its place
// earlier or later.
func (k *code) matches(f Frame) bool {
	return f.Names == 0 || f.Names == event.NamesOf(k.fileAt, k.nameAt)
}

func (c *Codes) code(mem Memory, f Frame) (*code, error) {
	r, addr := c.runtime, f.Code
	w := words{mem: mem}
	k := &code{fileAt: w.at(addr, r.codeFile), nameAt: w.at(addr, r.codeName)}
	old := c.known[addr]
	same := old != nil && old.fileAt == k.fileAt && old.nameAt == k.nameAt
	if w.err != nil || same || !k.matches(f) {
		switch {
		case old != nil && old.matches(f): // if the code is gone, use what was there
			return old, nil
		case w.err != nil:
			return nil, w.err
		}
		return nil, errGone
	}
	k.first = int(int32(w.at(addr, r.codeFirstLine)))
	lines := w.at(addr, r.codeLines)
	if w.err != nil {
		return nil, w.err
	}
	var err error
	if k.file, err = r.text(mem, k.fileAt); err != nil {
		return nil, err
	}
	if k.name, err = r.text(mem, k.nameAt); err != nil {
		return nil, err
	}
	if k.lines, err = r.bytes(mem, lines); err != nil {
		k.lines = nil // names alone are useful
	}
	c.kept += len(k.file) + len(k.name) + len(k.lines)
	if len(c.known) >= maxCodes || c.kept > maxKept {
		clear(c.known)
		c.kept = 0
	}
	c.known[addr] = k
	return k, nil
}

// text reads a string object.
func (r *Runtime) text(mem Memory, addr uint64) (string, error) {
	w := words{mem: mem}
	length, state := w.at(addr, r.textLength), w.at(addr, r.textLength+16)
	if w.err != nil {
		return "", w.err
	}
	if length > longestText {
		return "", fmt.Errorf("a name of %d characters is too long", length)
	}
	width, ascii, ok := textForm(uint32(state))
	if !ok {
		return "", fmt.Errorf("there is no string at %#x", addr)
	}
	data := r.textOther
	if ascii {
		data = r.textASCII
	}
	b := make([]byte, length*uint64(width))
	if err := mem.Read(b, addr+uint64(data)); err != nil {
		return "", err
	}
	runes := make([]rune, length)
	for i := range runes {
		switch width {
		case 1:
			runes[i] = rune(b[i])
		case 2:
			runes[i] = rune(binary.LittleEndian.Uint16(b[2*i:]))
		case 4:
			runes[i] = rune(binary.LittleEndian.Uint32(b[4*i:]))
		}
		if utf16.IsSurrogate(runes[i]) { // a byte of a file name that is not text
			runes[i] = '\uFFFD'
		}
	}
	return string(runes), nil
}

// textForm reads the bits in which a string states how its characters are stored. They
// follow those that say whether it is interned; depending on the version these take 2,
// 8 or 16 bits.
func textForm(state uint32) (width int, ascii, ok bool) {
	for _, interned := range []int{2, 8, 16} {
		kind, compact := state>>interned&7, state>>(interned+3)&1
		if compact == 1 && (kind == 1 || kind == 2 || kind == 4) {
			return int(kind), state>>(interned+4)&1 == 1, true
		}
	}
	return 0, false, false
}

func (r *Runtime) bytes(mem Memory, addr uint64) ([]byte, error) {
	w := words{mem: mem}
	length := w.at(addr, r.textLength)
	if w.err != nil {
		return nil, w.err
	}
	if length > longestTable {
		return nil, fmt.Errorf("a table of %d bytes is too long", length)
	}
	b := make([]byte, length)
	return b, mem.Read(b, addr+uint64(r.bytesData))
}

// line returns the line that a frame is at.
func (r *Runtime) line(k *code, f Frame) int {
	switch {
	case r.Minor <= 9:
		return lineBefore310(k.lines, k.first, int(int32(f.Instruction)))
	case r.Minor == 10:
		return line310(k.lines, k.first, 2*int(int32(f.Instruction)))
	}
	at := int64(f.Instruction - f.Code - uint64(r.codeCode))
	switch {
	case at == -2:
		return k.first // it has not begun
	case at < 0:
		return 0 // a thread's own copy of the code, in a build without the global lock
	}
	unit := at / 2
	return lineFrom311(k.lines, k.first, unit)
}

// lineBefore310 reads pairs of bytes: the next line begins the first number of bytes of
// code further on, and is the second number of lines further on.
func lineBefore310(table []byte, line, at int) int {
	for addr := 0; len(table) >= 2; table = table[2:] {
		if addr += int(table[0]); addr > at {
			break
		}
		line += int(int8(table[1]))
	}
	return line
}

// line310 reads pairs of bytes: the first is a number of bytes of code, the second how
// many lines further on their line is, or that they have none.
func line310(table []byte, line, at int) int {
	const none = -128
	for addr := 0; len(table) >= 2; table = table[2:] {
		further := int(int8(table[1]))
		if further != none {
			line += further
		}
		if addr += int(table[0]); addr > max(at, 0) {
			if further == none {
				return 0
			}
			return line
		}
	}
	return 0
}

// lineFrom311 reads entries of several forms: each covers a number of units of code at
// one place in the source, whose line is given as the difference from the line of the
// entry before.
func lineFrom311(table []byte, line int, unit int64) int {
	const (
		noLine = 15
		long   = 14
		short  = 13
	)
	for at := int64(0); len(table) > 0; {
		head := table[0]
		if head&0x80 == 0 {
			return 0 // no entry begins like this
		}
		table = table[1:]
		form := int(head >> 3 & 15)
		switch {
		case form == long || form == short:
			line += signedVarint(table)
		case form >= 10 && form < short:
			line += form - 10
		}
		if at += int64(head&7) + 1; at > unit {
			if form == noLine {
				return 0
			}
			return line
		}
		for len(table) > 0 && table[0]&0x80 == 0 {
			table = table[1:]
		}
	}
	return 0
}

// signedVarint reads six bits from each byte, the lowest first; the very lowest bit is
// the sign.
func signedVarint(b []byte) int {
	v := 0
	for i := 0; i < len(b) && i < 6; i++ {
		v |= int(b[i]&0x3f) << (6 * i)
		if b[i]&0x40 == 0 {
			break
		}
	}
	if v&1 == 1 {
		return -(v >> 1)
	}
	return v >> 1
}
