package pickle

import (
	"encoding/binary"
	"fmt"
)

// An opcode is what the machine does for one that is not done in its loop.
type opcode struct {
	width uint8 // bytes of the argument of fixed length
	// run carries it out, with the position behind that argument; nil for an
	// opcode that the loop alone handles, and for one that is refused.
	run func(d *decoder, op byte, arg []byte) error
}

var opcodes = [256]opcode{
	opBinInt: {4, nil}, opBinInt1: {1, nil}, opBinInt2: {2, nil},

	opMark:    {0, (*decoder).tooDeep},
	opPop:     {0, (*decoder).pop},
	opPopMark: {0, (*decoder).popMark},
	opDup:     {0, (*decoder).dup},

	opBinGet:     {1, get1},
	opLongBinGet: {4, get4},
	opBinPut:     {1, put1},
	opLongBinPut: {4, put4},
	opMemoize:    {0, (*decoder).memoize},

	opNone:     {0, constant(Value{})},
	opNewTrue:  {0, constant(Value{Bool, 1})},
	opNewFalse: {0, constant(Value{Bool, 0})},
	opLong1:    {1, long1},
	opLong4:    {4, long4},
	opBinFloat: {8, (*decoder).binFloat},

	opShortBinUnicode: {1, text1(String)},
	opBinUnicode:      {4, text4(String)},
	opBinUnicode8:     {8, text8(String)},
	opShortBinString:  {1, text1(String)}, // the str of Python 2 is taken as text
	opBinString:       {4, text4(String)},
	opShortBinBytes:   {1, text1(Bytes)},
	opBinBytes:        {4, text4(Bytes)},
	opBinBytes8:       {8, text8(Bytes)},
	opByteArray8:      {8, text8(Bytes)},
	opReadonlyBuffer:  {0, (*decoder).readOnly},

	opEmptyTuple: {0, tuple(0)},
	opTuple1:     {0, tuple(1)},
	opTuple2:     {0, tuple(2)},
	opTuple3:     {0, tuple(3)},
	opTuple:      {0, (*decoder).gather},
	opList:       {0, (*decoder).gather},
	opDict:       {0, (*decoder).gather},
	opFrozenSet:  {0, (*decoder).gather},
	opEmptySet:   {0, (*decoder).emptySet},
	opAddItems:   {0, (*decoder).addItems},
	opSetItem:    {0, (*decoder).setItem},
	opAppend:     {0, (*decoder).appendOne},

	opProto: {1, (*decoder).proto},
	opFrame: {8, (*decoder).frame},

	opInt:     {0, (*decoder).textual},
	opLong:    {0, (*decoder).textual},
	opFloat:   {0, (*decoder).textual},
	opString:  {0, (*decoder).textual},
	opUnicode: {0, (*decoder).textual},
	opGet:     {0, (*decoder).textual},
	opPut:     {0, (*decoder).textual},
}

func (d *decoder) tooDeep(byte, []byte) error {
	return fmt.Errorf("containers are nested more than %d deep", maxMarks)
}

func (d *decoder) pop(byte, []byte) error {
	if n := len(d.marks); n > 0 && d.marks[n-1] == len(d.stack) {
		d.marks = d.marks[:n-1]
		return nil
	}
	if _, err := d.top(0); err != nil {
		return err
	}
	d.stack = d.stack[:len(d.stack)-1]
	return nil
}

func (d *decoder) popMark(byte, []byte) error {
	items, err := d.above()
	d.stack = d.stack[:len(d.stack)-len(items)]
	return err
}

func (d *decoder) dup(byte, []byte) error {
	v, err := d.top(0)
	if err == nil {
		d.stack = append(d.stack, v)
	}
	return err
}

func get1(d *decoder, _ byte, arg []byte) error { return d.memo(false, uint64(arg[0])) }
func put1(d *decoder, _ byte, arg []byte) error { return d.memo(true, uint64(arg[0])) }
func get4(d *decoder, _ byte, arg []byte) error { return d.memo(false, word4(arg)) }
func put4(d *decoder, _ byte, arg []byte) error { return d.memo(true, word4(arg)) }

func (d *decoder) memoize(byte, []byte) error { return d.memo(true, d.count) }

func word4(arg []byte) uint64 { return uint64(binary.LittleEndian.Uint32(arg)) }

// constant pushes a value that the opcode alone names.
func constant(v Value) func(*decoder, byte, []byte) error {
	return func(d *decoder, _ byte, _ []byte) error {
		d.stack = append(d.stack, v)
		return nil
	}
}

func long1(d *decoder, _ byte, arg []byte) error { return d.long(uint64(arg[0])) }
func long4(d *decoder, _ byte, arg []byte) error { return d.long(word4(arg)) }

func (d *decoder) binFloat(_ byte, arg []byte) error {
	d.stack = append(d.stack, Value{Float, binary.BigEndian.Uint64(arg)})
	return nil
}

// text1, text4 and text8 read a text behind its length, of so many bytes.
func text1(k Kind) func(*decoder, byte, []byte) error {
	return func(d *decoder, _ byte, arg []byte) error { return d.text(k, uint64(arg[0])) }
}

func text4(k Kind) func(*decoder, byte, []byte) error {
	return func(d *decoder, _ byte, arg []byte) error { return d.text(k, word4(arg)) }
}

func text8(k Kind) func(*decoder, byte, []byte) error {
	return func(d *decoder, _ byte, arg []byte) error { return d.text(k, binary.LittleEndian.Uint64(arg)) }
}

// readOnly makes a buffer read-only, which is what all data is here.
func (d *decoder) readOnly(byte, []byte) error {
	_, err := d.top(0)
	return err
}

// tuple makes a tuple of the last n values.
func tuple(n int) func(*decoder, byte, []byte) error {
	return func(d *decoder, _ byte, _ []byte) error {
		if len(d.stack)-n < d.floor() {
			return errEmpty
		}
		items := d.stack[len(d.stack)-n:]
		t, err := d.h.Tuple(items)
		d.stack = append(d.stack[:len(d.stack)-n], Value{Tuple, t})
		return err
	}
}

// emptySet makes a list: a set is handed on as one.
func (d *decoder) emptySet(byte, []byte) error { return d.push(List)(d.h.List()) }

func (d *decoder) addItems(op byte, _ []byte) error { return d.add(op) }

func (d *decoder) setItem(byte, []byte) error {
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
}

func (d *decoder) appendOne(byte, []byte) error {
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
}

func (d *decoder) proto(_ byte, arg []byte) error {
	const newest = 5
	if arg[0] > newest {
		return fmt.Errorf("pickle protocol %d is newer than the newest known, %d", arg[0], newest)
	}
	return nil
}

// frame skips the length of a frame, a hint for readers that want whole ones.
func (d *decoder) frame(byte, []byte) error { return nil }
