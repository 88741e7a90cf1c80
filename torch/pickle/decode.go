package pickle

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
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
	// freeStack values may be on the stack whatever the size of the input;
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
	// op is the position of the current opcode, pos that of the next byte to read, both in
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
	first  *[256]uint64 // of the first page, the entries that BINGET reaches
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

var errEmpty = errors.New("the opcode finds too little on the stack")

// above removes and returns the items above the last mark.
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

// top returns the last value but n, if no mark comes before it.
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

// run is the machine. The opcodes that files consist of are done here, on
// copies of the window and the stack that stay in registers; the others in
// rare, on the decoder itself. It is one long function because a call for each
// opcode would cost more than most opcodes do.
//
// long: one case an opcode
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

// refill makes a whole opcode available, or reports why there is none.
func (d *decoder) refill() error {
	if !d.eof {
		if err := d.fill(margin); err != nil && err != ErrTruncated {
			return err
		}
	}
	if d.pos >= len(d.buf) || d.pos+1+int(opcodes[d.buf[d.pos]].width) > len(d.buf) {
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

// push stores what the handler returned for a new value.
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

// rare runs an opcode that few files have, by the table, or refuses it.
func (d *decoder) rare(op byte, arg []byte) error {
	o := &opcodes[op]
	if o.run == nil {
		if name, ok := unsafeOpcodes[op]; ok {
			return &UnsafeError{name}
		}
		return fmt.Errorf("0x%02x is not a pickle opcode", op)
	}
	d.pos += int(o.width)
	return o.run(d, op, arg)
}

// gather makes a list, dict or tuple of the items above the mark.
func (d *decoder) gather(op byte, _ []byte) error {
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
