// Package pickle decodes and encodes Python's pickle format without ever
// executing anything: it knows plain data (numbers, text, lists, dicts, tuples)
// and refuses every opcode that names a class or calls one. It is not a general
// unpickler: objects of classes, such as tensors, cannot be read.
//
// It is designed for files of gigabytes. The machine reads its input in windows,
// keeps only its own stack and memo, and hands each container to a [Handler]
// as soon as the file fills it; no tree of boxed values is built. A handler
// that keeps columns can thus read a file in a fraction of its size.
//
// Hostile input costs an error, never memory: declared lengths are trusted
// only as far as bytes arrive, the stack may not outgrow the input that filled
// it, and nothing recurses. What a handler itself keeps, it must bound itself:
// containers may contain themselves or be in many places.
//
// The opcodes are those of CPython's Lib/pickletools.py, protocols 0 to 5.
package pickle

import "math"

// Kind is what a [Value] is.
type Kind uint8

// The kinds of a value. The N of a value means, for
//
//	None     nothing
//	Bool     0 or 1
//	Int      an int64 in two's complement
//	Uint     an unsigned number of 2^63 or more
//	Float    the bits of a float64
//	String, Bytes, BigInt, List, Dict, Tuple
//	         what the handler answered when the value was made
const (
	None Kind = iota
	Bool
	Int
	Uint
	BigInt
	Float
	String
	Bytes
	List
	Dict
	Tuple

	// Mark is seen by [Handler.Salvage] only: a place where the file had begun
	// to list the items of the container below it.
	Mark
)

var kindNames = [...]string{"None", "bool", "int", "int", "int", "float", "str", "bytes", "list", "dict", "tuple", "mark"}

func (k Kind) String() string { return kindNames[k] }

// A Value is one plain datum: the datum itself where it fits in a word, otherwise
// the number by which the handler knows it.
type Value struct {
	Kind Kind
	N    uint64
}

// IntValue is the value of an integer.
func IntValue(n int64) Value { return Value{Int, uint64(n)} }

// FloatValue is the value of a floating-point number.
func FloatValue(f float64) Value { return Value{Float, math.Float64bits(f)} }

// BoolValue is the value of a truth value.
func BoolValue(b bool) Value {
	if b {
		return Value{Bool, 1}
	}
	return Value{Bool, 0}
}

// Int64 is the number of an Int, Bool or integral Float; ok is false for
// anything else, and for a Uint, which does not fit.
func (v Value) Int64() (n int64, ok bool) {
	switch v.Kind {
	case Int, Bool:
		return int64(v.N), true
	case Float:
		f := math.Float64frombits(v.N)
		if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f), true
		}
	}
	return 0, false
}

// Uint64 is the number as an address: the C++ writer of PyTorch stores
// addresses of 2^63 and more as negative integers.
func (v Value) Uint64() (n uint64, ok bool) {
	if v.Kind == Uint {
		return v.N, true
	}
	s, ok := v.Int64()
	return uint64(s), ok
}

// Float64 is the number of a Float, Int or Bool.
func (v Value) Float64() (f float64, ok bool) {
	switch v.Kind {
	case Float:
		return math.Float64frombits(v.N), true
	case Int, Bool:
		return float64(int64(v.N)), true
	case Uint:
		return float64(v.N), true
	}
	return 0, false
}

// A Handler receives what the machine makes. It answers each new string and
// container with a unique number, below 2^60, by which the machine names
// it from then on. Slices are valid during the call only. An error ends the
// decoding and is returned with the place.
//
// A container is made empty and filled later, in one call or in several. The
// same container may be in many places.
type Handler interface {
	String(b []byte) (uint64, error)
	Bytes(b []byte) (uint64, error)
	// BigInt takes an integer that fits neither int64 nor uint64, as
	// two's-complement little-endian bytes.
	BigInt(b []byte) (uint64, error)

	List() (uint64, error)
	Dict() (uint64, error)
	Tuple(items []Value) (uint64, error)
	Append(list uint64, items []Value) error
	// SetItems takes keys and values in turn: len(pairs) is even.
	SetItems(dict uint64, pairs []Value) error

	// Salvage is called when the input ends early or is damaged, with all that
	// was on the machine's stack, the outermost container first. A [Mark]
	// follows each container whose items were being listed.
	Salvage(rest []Value)
}
