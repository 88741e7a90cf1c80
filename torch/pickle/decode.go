package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
)

// ErrTruncated is the cause of a [SyntaxError] where the input ended before the
// pickle did.
var ErrTruncated = errors.New("the file ends in the middle of the data")

// A SyntaxError is a place in the input beyond which nothing can be read.
type SyntaxError struct {
	Offset int64 // of the opcode, in bytes of the (uncompressed) input
	Err    error
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("at byte %d: %v", e.Offset, e.Err) }
func (e *SyntaxError) Unwrap() error { return e.Err }

// An UnsafeError is an opcode that would make Python run code or load a class.
// No writer of snapshots uses one.
type UnsafeError struct{ Opcode string }

func (e *UnsafeError) Error() string {
	return "opcode " + e.Opcode + " names or calls code; plain data never does, so nothing from there on is read"
}

const (
	windowSize = 256 << 10
	// margin is more than the longest opcode with a fixed argument.
	margin = 16
	// maxText bounds one string or integer, in bytes.
	maxText = 256 << 20
	// freeStack values may stand on the stack whatever the size of the input;
	// beyond, each needs two bytes of input: the shortest opcodes that writers
	// use for an item have two.
	freeStack = 1 << 16
	// maxMarks bounds how deep containers may be nested.
	maxMarks = 1 << 10
	pageBits = 13
	pageSize = 1 << pageBits
)

// Decode reads one pickle from r, drives h and returns the value left at STOP.
// What follows STOP is not read on purpose. Read errors of r are returned as
// they are; damage is a [*SyntaxError], after a call of h.Salvage.
func Decode(r io.Reader, h Handler) (Value, error) {
	d := decoder{r: r, h: h, buf: make([]byte, 0, windowSize), first: &noMemo}
	d.repeater, _ = h.(Repeater)
	v, err := d.run()
	if err == nil {
		return v, nil
	}
	rest := make([]Value, 0, len(d.stack)+len(d.marks))
	from := 0
	for _, m := range d.marks {
		rest = append(append(rest, d.stack[from:m]...), Value{Kind: Mark})
		from = m
	}
	h.Salvage(append(rest, d.stack[from:]...))
	var read *readError
	if errors.As(err, &read) {
		return Value{}, fmt.Errorf("at byte %d: %w", d.base+int64(d.pos), read.err)
	}
	return Value{}, &SyntaxError{Offset: d.base + int64(d.op), Err: err}
}

type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }

type decoder struct {
	r   io.Reader
	h   Handler
	buf []byte // the window
	// op is where the current opcode stands, pos the byte to read next, both in
	// the window; base is the offset of the window in the input.
	op, pos int
	base    int64
	eof     bool

	stack []Value
	marks []int // stack heights

	// The memo in pages of packed values (see pack), for indices that come in
	// order, as all writers number them; strays has the others, so that a page
	// is paid for by the entries before it.
	pages  [][]uint64
	first  *[256]uint64 // of the first page, what BINGET reaches
	count  uint64       // entries of the memo, which MEMOIZE numbers by
	strays map[uint64]uint64
	wide   []Value // values that do not fit in a packed word

	repeats  repeats
	repeater Repeater // the handler, if it is one
}

// fill makes at least n bytes available from pos on.
func (d *decoder) fill(n int) error {
	for len(d.buf)-d.pos < n {
		if d.eof {
			return ErrTruncated
		}
		if d.op > 0 { // move what is still needed to the front
			k := copy(d.buf, d.buf[d.op:])
			d.buf = d.buf[:k]
			d.base += int64(d.op)
			d.pos -= d.op
			d.op = 0
		}
		if len(d.buf) == cap(d.buf) { // double: as much as has arrived
			grown := make([]byte, len(d.buf), 2*cap(d.buf))
			copy(grown, d.buf)
			d.buf = grown
		}
		k, err := d.r.Read(d.buf[len(d.buf):cap(d.buf)])
		d.buf = d.buf[:len(d.buf)+k]
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			d.eof = true
		} else if err != nil {
			return &readError{err}
		}
	}
	return nil
}

// take is the next n bytes of the input, valid until the next call.
func (d *decoder) take(n uint64) ([]byte, error) {
	if n > maxText {
		return nil, fmt.Errorf("a text of %d bytes is declared; at most %d are read", n, maxText)
	}
	if err := d.fill(int(n)); err != nil {
		return nil, err
	}
	b := d.buf[d.pos : d.pos+int(n)]
	d.pos += int(n)
	return b, nil
}

// line is the text up to the next newline, as protocol 0 writes arguments.
func (d *decoder) line() ([]byte, error) {
	for n := 0; ; n++ {
		if d.pos+n >= len(d.buf) {
			if n > maxText {
				return nil, fmt.Errorf("a line of more than %d bytes", maxText)
			}
			if err := d.fill(n + 1); err != nil {
				return nil, err
			}
		}
		if d.buf[d.pos+n] == '\n' {
			b := d.buf[d.pos : d.pos+n]
			d.pos += n + 1
			return b, nil
		}
	}
}

const (
	packShift = 60
	packMask  = 1<<packShift - 1
)

// pack puts a value in one word: the kind above, the number below.
func (d *decoder) pack(v Value) uint64 {
	if v.N>>packShift == 0 {
		return uint64(v.Kind)<<packShift | v.N
	}
	d.wide = append(d.wide, v)
	return uint64(Mark)<<packShift | uint64(len(d.wide)-1)
}

func (d *decoder) unpack(w uint64) Value {
	v := Value{Kind(w >> packShift), w & packMask}
	if v.Kind == Mark {
		return d.wide[v.N]
	}
	return v
}

// unset stands in pages where no value was stored.
const unset = ^uint64(0)

// noMemo is the first page before there is one.
var noMemo = func() (p [256]uint64) {
	for i := range p {
		p[i] = unset
	}
	return p
}()

func (d *decoder) put(i uint64, v Value) {
	w := d.pack(v)
	page := int(i >> pageBits)
	if _, stray := d.strays[i]; stray || page > len(d.pages) || page == len(d.pages) && d.count < i/2 {
		if d.strays == nil {
			d.strays = map[uint64]uint64{}
		}
		if stray {
			d.repeats.forget()
		} else {
			d.count++
		}
		d.strays[i] = w
		return
	}
	if page == len(d.pages) {
		p := make([]uint64, pageSize)
		for k := range p {
			p[k] = unset
		}
		d.pages = append(d.pages, p)
		if page == 0 {
			d.first = (*[256]uint64)(p)
		}
	}
	slot := &d.pages[page][i&(pageSize-1)]
	if *slot == unset {
		d.count++
	} else {
		d.repeats.forget()
	}
	*slot = w
}

func (d *decoder) get(i uint64) (Value, error) {
	w := unset
	if page := i >> pageBits; page < uint64(len(d.pages)) {
		w = d.pages[page][i&(pageSize-1)]
	}
	if w == unset {
		var ok bool
		if w, ok = d.strays[i]; !ok {
			return Value{}, fmt.Errorf("memo entry %d is used before it is stored", i)
		}
	}
	return d.unpack(w), nil
}

var errEmpty = errors.New("the opcode finds too little on the stack")

// above is the items above the last mark, which it takes off.
func (d *decoder) above() ([]Value, error) {
	if len(d.marks) == 0 {
		return nil, errors.New("the opcode finds no mark on the stack")
	}
	m := d.marks[len(d.marks)-1]
	d.marks = d.marks[:len(d.marks)-1]
	return d.stack[m:], nil
}

// floor is the height below which an opcode without mark may not reach.
func (d *decoder) floor() int {
	if n := len(d.marks); n > 0 {
		return d.marks[n-1]
	}
	return 0
}

// top is the last value but n, if no mark stands before it.
func (d *decoder) top(n int) (Value, error) {
	if len(d.stack)-1-n < d.floor() {
		return Value{}, errEmpty
	}
	return d.stack[len(d.stack)-1-n], nil
}

// target is the container of the given kind under items that were marked.
func (d *decoder) target(items []Value, kind Kind) (uint64, error) {
	i := len(d.stack) - len(items) - 1
	if i < d.floor() {
		return 0, errEmpty
	}
	if v := d.stack[i]; v.Kind == kind {
		return v.N, nil
	}
	return 0, fmt.Errorf("items are added to a %v, not a %v", d.stack[i].Kind, kind)
}

// fixed has the number of bytes that follow each opcode at least.
var fixed = [256]uint8{
	opBinGet: 1, opLongBinGet: 4, opBinPut: 1, opLongBinPut: 4, opBinInt: 4, opBinInt1: 1, opBinInt2: 2,
	opBinFloat: 8, opLong1: 1, opLong4: 4, opShortBinUnicode: 1, opBinUnicode: 4, opBinUnicode8: 8,
	opShortBinBytes: 1, opBinBytes: 4, opBinBytes8: 8, opByteArray8: 8, opShortBinString: 1, opBinString: 4,
	opProto: 1, opFrame: 8,
}

// run is the machine. The opcodes that files consist of are done here, on
// copies of the window and the stack that stay in registers; the others in
// rare, on the decoder itself.
func (d *decoder) run() (Value, error) {
	buf, pos, stack := d.buf, d.pos, d.stack
	for {
		if len(buf)-pos < margin {
			d.op, d.pos, d.stack = pos, pos, stack
			if err := d.refill(); err != nil {
				return Value{}, err
			}
			buf, pos = d.buf, d.pos
		}
		op := buf[pos]
		arg := buf[pos+1:]
		var err error
		switch op {
		case opBinGet:
			if w := d.first[arg[0]]; w < uint64(Mark)<<packShift {
				pos += 2
				stack = append(stack, Value{Kind(w >> packShift), w & packMask})
				continue
			}
		case opLongBinGet:
			i := binary.LittleEndian.Uint32(arg)
			if page := int(i >> pageBits); page < len(d.pages) {
				if w := d.pages[page][i&(pageSize-1)]; w < uint64(Mark)<<packShift {
					pos += 5
					stack = append(stack, Value{Kind(w >> packShift), w & packMask})
					continue
				}
			}
		case opMemoize:
			if page := int(d.count >> pageBits); page < len(d.pages) && len(stack) > d.floor() && d.strays == nil {
				v := stack[len(stack)-1]
				if slot := &d.pages[page][d.count&(pageSize-1)]; *slot == unset && v.N>>packShift == 0 {
					*slot = uint64(v.Kind)<<packShift | v.N
					d.count++
					pos++
					continue
				}
			}
		case opMark:
			if n := d.repeated(buf, pos+1, stack); n > 0 {
				pos += 1 + n
				continue
			}
			if len(d.marks) < maxMarks {
				d.marks = append(d.marks, len(stack))
				pos++
				continue
			}
		case opBinInt1:
			stack = append(stack, Value{Int, uint64(arg[0])})
			pos += 2
			continue
		case opBinInt2:
			stack = append(stack, Value{Int, uint64(binary.LittleEndian.Uint16(arg))})
			pos += 3
			continue
		case opBinInt:
			stack = append(stack, IntValue(int64(int32(binary.LittleEndian.Uint32(arg)))))
			pos += 5
			continue
		case opLong1:
			if n := int(arg[0]); n-1 < 8 && n > 0 && len(arg) > 8 {
				s := 64 - 8*n
				stack = append(stack, IntValue(int64(binary.LittleEndian.Uint64(arg[1:])<<s)>>s))
				pos += 2 + n
				continue
			}
		case opEmptyDict:
			v := Value{Kind: Dict}
			if v.N, err = d.h.Dict(); err == nil {
				stack = append(stack, v)
				pos++
				continue
			}
		case opEmptyList:
			v := Value{Kind: List}
			if v.N, err = d.h.List(); err == nil {
				stack = append(stack, v)
				pos++
				continue
			}
		case opSetItems, opAppends:
			d.op, d.stack = pos, stack
			if err = d.add(op); err == nil {
				stack = d.stack
				pos++
				continue
			}
		}
		d.op, d.pos, d.stack = pos, pos+1, stack
		if err == nil {
			if op == opStop {
				return d.top(0)
			}
			err = d.rare(op, arg)
		}
		if err != nil {
			return Value{}, err
		}
		buf, pos, stack = d.buf, d.pos, d.stack
	}
}

// refill makes a whole opcode available, or tells that there is none.
func (d *decoder) refill() error {
	if !d.eof {
		if err := d.fill(margin); err != nil && err != ErrTruncated {
			return err
		}
	}
	if d.pos >= len(d.buf) || d.pos+1+int(fixed[d.buf[d.pos]]) > len(d.buf) {
		return ErrTruncated
	}
	if n := len(d.stack) - freeStack; n > 0 && int64(n) > (d.base+int64(d.pos))/2 {
		return fmt.Errorf("%d values wait on the stack, more than the input accounts for", len(d.stack))
	}
	return nil
}

// add puts the items above the mark into the container below it.
func (d *decoder) add(op byte) error {
	items, err := d.above()
	if err != nil {
		return err
	}
	kind := List
	if op == opSetItems {
		kind = Dict
		if len(items)%2 != 0 {
			return errors.New("a key has no value")
		}
	}
	container, err := d.target(items, kind)
	if err != nil {
		return err
	}
	if len(items) > 0 {
		if kind == Dict {
			err = d.h.SetItems(container, items)
		} else {
			err = d.h.Append(container, items)
		}
	}
	d.stack = d.stack[:len(d.stack)-len(items)]
	return err
}

// push stores what the handler answered for a new value.
func (d *decoder) push(k Kind) func(n uint64, err error) error {
	return func(n uint64, err error) error {
		d.stack = append(d.stack, Value{k, n})
		return err
	}
}

func (d *decoder) text(k Kind, n uint64) error {
	b, err := d.take(n)
	if err != nil {
		return err
	}
	if k == String {
		return d.push(k)(d.h.String(b))
	}
	return d.push(k)(d.h.Bytes(b))
}

// long reads an integer of n bytes, little-endian two's complement.
func (d *decoder) long(n uint64) error {
	b, err := d.take(n)
	if err != nil {
		return err
	}
	return d.integer(b)
}

func (d *decoder) integer(b []byte) error {
	var fill byte // the sign
	if len(b) > 0 && b[len(b)-1] >= 0x80 {
		fill = 0xff
	}
	// A shorter form of the same number, or the 9 bytes of an unsigned word.
	for len(b) > 9 && b[len(b)-1] == fill && b[len(b)-2]&0x80 == fill&0x80 {
		b = b[:len(b)-1]
	}
	word := [8]byte{fill, fill, fill, fill, fill, fill, fill, fill}
	copy(word[:], b)
	n := binary.LittleEndian.Uint64(word[:])
	switch {
	case len(b) <= 8, len(b) == 9 && b[8] == 0xff && n>>63 == 1:
		d.stack = append(d.stack, Value{Int, n})
	case len(b) == 9 && b[8] == 0 && n>>63 == 0:
		d.stack = append(d.stack, Value{Int, n})
	case len(b) == 9 && b[8] == 0:
		d.stack = append(d.stack, Value{Uint, n})
	default:
		return d.push(BigInt)(d.h.BigInt(b))
	}
	return nil
}

// rare handles the opcodes that few files have, and refuses the rest.
func (d *decoder) rare(op byte, arg []byte) error {
	switch op {
	case opBinGet, opLongBinGet, opBinPut, opLongBinPut:
		i := uint64(arg[0])
		d.pos++
		if op == opLongBinGet || op == opLongBinPut {
			i = uint64(binary.LittleEndian.Uint32(arg))
			d.pos += 3
		}
		return d.memo(op == opBinPut || op == opLongBinPut, i)
	case opMemoize:
		return d.memo(true, d.count)
	case opMark:
		return fmt.Errorf("containers are nested more than %d deep", maxMarks)
	case opLong1:
		d.pos++
		return d.long(uint64(arg[0]))
	case opLong4:
		d.pos += 4
		return d.long(uint64(binary.LittleEndian.Uint32(arg)))
	case opBinFloat:
		d.pos += 8
		d.stack = append(d.stack, Value{Float, binary.BigEndian.Uint64(arg)})
	case opNone:
		d.stack = append(d.stack, Value{})
	case opNewTrue:
		d.stack = append(d.stack, Value{Bool, 1})
	case opNewFalse:
		d.stack = append(d.stack, Value{Bool, 0})
	case opShortBinUnicode:
		d.pos++
		return d.text(String, uint64(arg[0]))
	case opBinUnicode:
		d.pos += 4
		return d.text(String, uint64(binary.LittleEndian.Uint32(arg)))
	case opBinUnicode8:
		d.pos += 8
		return d.text(String, binary.LittleEndian.Uint64(arg))
	case opProto:
		d.pos++
		if arg[0] > 5 {
			return fmt.Errorf("pickle protocol %d is newer than the newest known, 5", arg[0])
		}
	case opFrame: // a hint for readers that want whole frames
		d.pos += 8
	case opSetItem:
		if _, err := d.top(2); err != nil {
			return err
		}
		pair := d.stack[len(d.stack)-2:]
		dict, err := d.target(pair, Dict)
		if err != nil {
			return err
		}
		err = d.h.SetItems(dict, pair)
		d.stack = d.stack[:len(d.stack)-2]
		return err
	case opAppend:
		if _, err := d.top(1); err != nil {
			return err
		}
		item := d.stack[len(d.stack)-1:]
		list, err := d.target(item, List)
		if err != nil {
			return err
		}
		err = d.h.Append(list, item)
		d.stack = d.stack[:len(d.stack)-1]
		return err
	case opEmptySet: // a set is told as a list
		return d.push(List)(d.h.List())
	case opAddItems:
		return d.add(op)
	case opList, opDict, opTuple, opFrozenSet:
		return d.gather(op)
	case opEmptyTuple, opTuple1, opTuple2, opTuple3:
		n := map[byte]int{opEmptyTuple: 0, opTuple1: 1, opTuple2: 2, opTuple3: 3}[op]
		if len(d.stack)-n < d.floor() {
			return errEmpty
		}
		items := d.stack[len(d.stack)-n:]
		t, err := d.h.Tuple(items)
		d.stack = append(d.stack[:len(d.stack)-n], Value{Tuple, t})
		return err
	case opPop:
		if n := len(d.marks); n > 0 && d.marks[n-1] == len(d.stack) {
			d.marks = d.marks[:n-1]
			return nil
		}
		if _, err := d.top(0); err != nil {
			return err
		}
		d.stack = d.stack[:len(d.stack)-1]
	case opPopMark:
		items, err := d.above()
		d.stack = d.stack[:len(d.stack)-len(items)]
		return err
	case opDup:
		v, err := d.top(0)
		if err == nil {
			d.stack = append(d.stack, v)
		}
		return err
	case opShortBinBytes, opShortBinString:
		d.pos++
		return d.text(textKind(op), uint64(arg[0]))
	case opBinBytes, opBinString:
		d.pos += 4
		return d.text(textKind(op), uint64(binary.LittleEndian.Uint32(arg)))
	case opBinBytes8, opByteArray8:
		d.pos += 8
		return d.text(Bytes, binary.LittleEndian.Uint64(arg))
	case opReadonlyBuffer: // of a buffer that stands in the file already
		_, err := d.top(0)
		return err
	case opInt, opLong, opFloat, opString, opUnicode, opGet, opPut:
		b, err := d.line()
		if err != nil {
			return err
		}
		return d.textual(op, b)
	default:
		if name, ok := unsafeOpcodes[op]; ok {
			return &UnsafeError{name}
		}
		return fmt.Errorf("0x%02x is no pickle opcode", op)
	}
	return nil
}

// textKind tells text from bytes: the str of Python 2 is taken as text.
func textKind(op byte) Kind {
	if op == opShortBinString || op == opBinString {
		return String
	}
	return Bytes
}

// gather makes a list, dict or tuple of the items above the mark.
func (d *decoder) gather(op byte) error {
	items, err := d.above()
	if err != nil {
		return err
	}
	v := Value{Kind: List}
	switch op {
	case opTuple:
		v.Kind = Tuple
		v.N, err = d.h.Tuple(items)
	case opList, opFrozenSet:
		if v.N, err = d.h.List(); err == nil && len(items) > 0 {
			err = d.h.Append(v.N, items)
		}
	case opDict:
		v.Kind = Dict
		if len(items)%2 != 0 {
			return errors.New("a key has no value")
		}
		if v.N, err = d.h.Dict(); err == nil && len(items) > 0 {
			err = d.h.SetItems(v.N, items)
		}
	}
	d.stack = append(d.stack[:len(d.stack)-len(items)], v)
	return err
}

// textual handles the opcodes of protocol 0 that write their argument as text.
func (d *decoder) textual(op byte, b []byte) error {
	switch op {
	case opInt:
		if s := string(b); s == "00" || s == "01" {
			d.stack = append(d.stack, BoolValue(s == "01"))
			return nil
		}
		return d.decimal(b)
	case opLong:
		if n := len(b); n > 0 && b[n-1] == 'L' {
			b = b[:n-1]
		}
		return d.decimal(b)
	case opFloat:
		f, err := strconv.ParseFloat(string(b), 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("%q is no number", clip(b))
		}
		d.stack = append(d.stack, FloatValue(f))
	case opString:
		if n := len(b); n < 2 || b[0] != b[n-1] || b[0] != '\'' && b[0] != '"' {
			return fmt.Errorf("the text %q is not quoted", clip(b))
		}
		return d.push(String)(d.h.String(unescape(b[1:len(b)-1], true)))
	case opUnicode:
		return d.push(String)(d.h.String(unescape(b, false)))
	case opGet, opPut:
		i, err := strconv.ParseUint(string(b), 10, 32)
		if err != nil {
			return fmt.Errorf("%q is no index into the memo", clip(b))
		}
		return d.memo(op == opPut, i)
	}
	return nil
}

// memo stores the top of the stack under an index, or fetches what is there.
func (d *decoder) memo(store bool, i uint64) error {
	if store {
		v, err := d.top(0)
		if err == nil {
			d.put(i, v)
		}
		return err
	}
	v, err := d.get(i)
	if err == nil {
		d.stack = append(d.stack, v)
	}
	return err
}

func (d *decoder) decimal(b []byte) error {
	if n, err := strconv.ParseInt(string(b), 10, 64); err == nil {
		d.stack = append(d.stack, IntValue(n))
		return nil
	}
	// Conversion from decimal takes time quadratic in the digits.
	const maxDigits = 10_000
	x, ok := new(big.Int), len(b) <= maxDigits
	if ok {
		x, ok = x.SetString(string(b), 10)
	}
	if !ok {
		return fmt.Errorf("%q is no integer of at most %d digits", clip(b), maxDigits)
	}
	return d.integer(twosComplement(x))
}

// twosComplement is x as little-endian bytes with room for the sign.
func twosComplement(x *big.Int) []byte {
	n := x.BitLen()/8 + 1
	if x.Sign() < 0 {
		x = new(big.Int).Add(x, new(big.Int).Lsh(big.NewInt(1), uint(8*n)))
	}
	b := x.FillBytes(make([]byte, n))
	for i, j := 0, n-1; i < j; i, j = i+1, j-1 {
		b[i], b[j] = b[j], b[i]
	}
	return b
}

// BigIntOf turns the bytes that [Handler.BigInt] gets into a number.
func BigIntOf(b []byte) *big.Int {
	rev := make([]byte, len(b))
	for i, c := range b {
		rev[len(b)-1-i] = c
	}
	x := new(big.Int).SetBytes(rev)
	if len(rev) > 0 && rev[0] >= 0x80 {
		x.Sub(x, new(big.Int).Lsh(big.NewInt(1), uint(8*len(rev))))
	}
	return x
}

// unescape undoes Python's raw-unicode-escape (\uXXXX and \UXXXXXXXX; other
// bytes are Latin-1) or, for the str of Python 2, its string-escape.
func unescape(b []byte, str bool) []byte {
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		c := b[i]
		if c != '\\' || i+1 == len(b) {
			out = appendLatin1(out, c, str)
			continue
		}
		digits := 0
		switch e := b[i+1]; {
		case e == 'u' && !str:
			digits = 4
		case e == 'U' && !str:
			digits = 8
		case e == 'x' && str:
			digits = 2
		case str:
			if k := indexByte(`\'"ntr`, e); k >= 0 {
				out = append(out, "\\'\"\n\t\r"[k])
				i++
				continue
			}
		}
		if digits > 0 && i+2+digits <= len(b) {
			if n, err := strconv.ParseUint(string(b[i+2:i+2+digits]), 16, 32); err == nil {
				if str {
					out = append(out, byte(n))
				} else {
					out = append(out, string(rune(min(n, math.MaxInt32)))...)
				}
				i += 1 + digits
				continue
			}
		}
		out = append(out, c)
	}
	return out
}

func appendLatin1(out []byte, c byte, raw bool) []byte {
	if raw || c < 0x80 {
		return append(out, c)
	}
	return append(out, string(rune(c))...)
}

func indexByte(s string, c byte) int {
	for i := range len(s) {
		if s[i] == c {
			return i
		}
	}
	return -1
}

// clip shortens input that is quoted in an error.
func clip(b []byte) []byte {
	const most = 40
	return b[:min(len(b), most)]
}
