package pickle

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/big"
	"unicode/utf8"
)

const (
	// batchSize items at most are added to a list or dict at once, as CPython does.
	batchSize = 1000
	// maxTexts bounds the strings that are remembered to be fetched later.
	maxTexts = 1 << 20
)

// A Ref is a value that was put in the memo, to be fetched by [Encoder.Get].
// The zero Ref is none.
type Ref uint32

// An Encoder writes one pickle of protocol 4, value by value.
//
// A container is announced with its length and needs no end: the values that
// follow are its items, keys and values in turn for a dict. Only what is named
// shared goes to the memo, and strings, so that a file of any length is written
// in little memory. FRAME opcodes are left out; readers do not need them.
//
// Errors of the writer are kept for [Encoder.Close].
type Encoder struct {
	w     *bufio.Writer
	texts map[string]Ref
	memo  Ref // the last entry of the memo
	open  []container
	buf   [9]byte
}

// A container that is being written. Items of a dict are pairs.
type container struct {
	kind  Kind
	ref   *Ref // of a tuple that is shared
	left  int  // values to come
	batch int  // of these, in the current batch
	size  int  // values of the current batch
}

// NewEncoder begins a pickle.
func NewEncoder(w io.Writer) *Encoder {
	e := &Encoder{w: bufio.NewWriterSize(w, 64<<10), texts: map[string]Ref{}}
	e.w.WriteByte(opProto)
	e.w.WriteByte(4)
	return e
}

// Close ends the pickle after its one value and returns the first error.
func (e *Encoder) Close() error {
	e.w.WriteByte(opStop)
	if err := e.w.Flush(); err != nil {
		return err
	}
	if n := len(e.open); n > 0 {
		return fmt.Errorf("the %v at level %d lacks %d values", e.open[n-1].kind, n, e.open[n-1].left)
	}
	return nil
}

// begin precedes each value: the first of a batch needs a mark, unless it
// is alone.
func (e *Encoder) begin() {
	if len(e.open) == 0 {
		return
	}
	c := &e.open[len(e.open)-1]
	if c.batch == 0 {
		c.size = min(c.left, c.limit())
		c.batch = c.size
		if c.size > c.single() {
			e.w.WriteByte(opMark)
		}
	}
}

// limit is the length of a full batch in values, single of one item alone.
func (c *container) limit() int {
	switch c.kind {
	case List:
		return batchSize
	case Dict:
		return 2 * batchSize
	}
	return c.left
}

func (c *container) single() int {
	switch c.kind {
	case List:
		return 1
	case Dict:
		return 2
	}
	return 3
}

// end follows each value: it may have been the last of a batch, and of its
// container, and that one of another.
func (e *Encoder) end() {
	for len(e.open) > 0 {
		c := &e.open[len(e.open)-1]
		c.left--
		c.batch--
		if c.batch == 0 {
			e.w.WriteByte(c.closing())
		}
		if c.left > 0 {
			return
		}
		if c.ref != nil {
			*c.ref = e.memoize()
		}
		e.open = e.open[:len(e.open)-1]
	}
}

// closing is the opcode that adds the batch.
func (c *container) closing() byte {
	switch {
	case c.kind == List && c.size == 1:
		return opAppend
	case c.kind == List:
		return opAppends
	case c.kind == Dict && c.size == 2:
		return opSetItem
	case c.kind == Dict:
		return opSetItems
	}
	switch c.size {
	case 1:
		return opTuple1
	case 2:
		return opTuple2
	case 3:
		return opTuple3
	}
	return opTuple
}

// enter opens a container of n values, or ends one of none.
func (e *Encoder) enter(kind Kind, n int) {
	if n == 0 {
		e.end()
		return
	}
	e.open = append(e.open, container{kind: kind, left: n})
}

// memoize puts the value just made in the memo.
func (e *Encoder) memoize() Ref {
	e.w.WriteByte(opMemoize)
	e.memo++
	return e.memo
}

// List begins a list of n items.
func (e *Encoder) List(n int) {
	e.begin()
	e.w.WriteByte(opEmptyList)
	e.enter(List, n)
}

// Dict begins a dict of n keys, each followed by its value.
func (e *Encoder) Dict(n int) {
	e.begin()
	e.w.WriteByte(opEmptyDict)
	e.enter(Dict, 2*n)
}

// Tuple begins a tuple of n items.
func (e *Encoder) Tuple(n int) {
	e.begin()
	if n == 0 {
		e.w.WriteByte(opEmptyTuple)
	}
	e.enter(Tuple, n)
}

// SharedTuple is Tuple, to be fetched once it is whole: ref is set then.
func (e *Encoder) SharedTuple(n int, ref *Ref) {
	e.Tuple(n)
	if n > 0 {
		e.open[len(e.open)-1].ref = ref
	}
}

// SharedList is List, to be fetched later, even from inside itself.
func (e *Encoder) SharedList(n int) Ref {
	e.begin()
	e.w.WriteByte(opEmptyList)
	r := e.memoize()
	e.enter(List, n)
	return r
}

// SharedDict is Dict, to be fetched later.
func (e *Encoder) SharedDict(n int) Ref {
	e.begin()
	e.w.WriteByte(opEmptyDict)
	r := e.memoize()
	e.enter(Dict, 2*n)
	return r
}

// SharedString is String for a text that occurs repeatedly: fetching it by
// its Ref saves a look-up.
func (e *Encoder) SharedString(s string) Ref {
	e.begin()
	e.text(s)
	r := e.memoize()
	e.end()
	return r
}

// Get writes the value of r again.
func (e *Encoder) Get(r Ref) {
	e.begin()
	e.get(r)
	e.end()
}

func (e *Encoder) get(r Ref) {
	if r--; r <= math.MaxUint8 {
		e.w.Write(append(e.buf[:0], opBinGet, byte(r)))
		return
	}
	e.w.Write(binary.LittleEndian.AppendUint32(append(e.buf[:0], opLongBinGet), uint32(r)))
}

// None writes None.
func (e *Encoder) None() { e.constant(opNone) }

// Bool writes True or False.
func (e *Encoder) Bool(b bool) {
	if b {
		e.constant(opNewTrue)
	} else {
		e.constant(opNewFalse)
	}
}

func (e *Encoder) constant(op byte) {
	e.begin()
	e.w.WriteByte(op)
	e.end()
}

// Int64 writes an integer.
func (e *Encoder) Int64(n int64) {
	e.begin()
	b := e.buf[:0]
	switch {
	case n >= 0 && n <= math.MaxUint8:
		b = append(b, opBinInt1, byte(n))
	case n >= 0 && n <= math.MaxUint16:
		b = append(b, opBinInt2, byte(n), byte(n>>8))
	case n == int64(int32(n)):
		b = binary.LittleEndian.AppendUint32(append(b, opBinInt), uint32(n))
	default:
		size := 5
		for size < 8 && n>>(8*size-1) != n>>63 {
			size++
		}
		e.w.WriteByte(opLong1)
		e.w.WriteByte(byte(size))
		b = binary.LittleEndian.AppendUint64(b, uint64(n))[:size]
	}
	e.w.Write(b)
	e.end()
}

// Uint64 writes an integer that may be 2^63 or more.
func (e *Encoder) Uint64(n uint64) {
	if n <= math.MaxInt64 {
		e.Int64(int64(n))
		return
	}
	e.begin()
	e.w.WriteByte(opLong1)
	e.w.WriteByte(9)
	e.w.Write(append(binary.LittleEndian.AppendUint64(e.buf[:0], n), 0))
	e.end()
}

// BigInt writes an integer of any length.
func (e *Encoder) BigInt(x *big.Int) {
	if x.IsInt64() {
		e.Int64(x.Int64())
		return
	}
	b := twosComplement(x)
	if n := len(b); b[n-1] == 0xff && b[n-2] >= 0x80 {
		b = b[:n-1]
	}
	e.begin()
	if len(b) <= math.MaxUint8 {
		e.w.Write([]byte{opLong1, byte(len(b))})
	} else {
		e.w.Write(binary.LittleEndian.AppendUint32([]byte{opLong4}, uint32(len(b))))
	}
	e.w.Write(b)
	e.end()
}

// Float writes a floating-point number.
func (e *Encoder) Float(f float64) {
	e.begin()
	e.w.Write(binary.BigEndian.AppendUint64(append(e.buf[:0], opBinFloat), math.Float64bits(f)))
	e.end()
}

// String writes a text, or fetches it where it was written before.
func (e *Encoder) String(s string) {
	e.begin()
	if r, ok := e.texts[s]; ok {
		e.get(r)
	} else {
		e.text(s)
		if len(e.texts) < maxTexts {
			e.texts[s] = e.memoize()
		}
	}
	e.end()
}

func (e *Encoder) text(s string) {
	if !utf8.ValidString(s) {
		s = loadable(s)
	}
	e.sized(s, opShortBinUnicode, opBinUnicode, opBinUnicode8)
}

// sized writes a text behind its length, with the opcode for lengths of one,
// four or eight bytes.
func (e *Encoder) sized(s string, short, medium, long byte) {
	switch n := uint64(len(s)); {
	case n <= math.MaxUint8:
		e.w.WriteByte(short)
		e.w.WriteByte(byte(n))
	case n <= math.MaxUint32:
		e.w.Write(binary.LittleEndian.AppendUint32(append(e.buf[:0], medium), uint32(n)))
	default:
		e.w.Write(binary.LittleEndian.AppendUint64(append(e.buf[:0], long), n))
	}
	e.w.WriteString(s)
}

// Bytes writes a bytes object.
func (e *Encoder) Bytes(b []byte) {
	e.begin()
	e.sized(string(b), opShortBinBytes, opBinBytes, opBinBytes8)
	e.end()
}

// loadable encodes s so that Python loads it: lone surrogates stay as they are,
// other bytes that are not UTF-8 become the surrogates that Python itself
// uses for them (surrogateescape).
func loadable(s string) string {
	out := make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r != utf8.RuneError || n > 1:
			out = append(out, s[i:i+n]...)
		case surrogate(s[i:]):
			n = 3
			out = append(out, s[i:i+n]...)
		default:
			low := 0xdc00 + rune(s[i])
			out = append(out, 0xe0|byte(low>>12), 0x80|byte(low>>6)&0x3f, 0x80|byte(low)&0x3f)
		}
		i += n
	}
	return string(out)
}

// surrogate reports whether s begins with a lone surrogate as Python pickles it.
func surrogate(s string) bool {
	return len(s) >= 3 && s[0] == 0xed && s[1] >= 0xa0 && s[1] <= 0xbf && s[2] >= 0x80 && s[2] <= 0xbf
}
