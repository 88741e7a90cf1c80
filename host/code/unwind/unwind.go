// Package unwind turns a sample of a thread (its registers and a copy of the top of its
// stack) into the calls that led there. It steps from a function to its caller with the
// tables that compilers write for exceptions, so that no frame pointers are needed, and
// replaces the frames of a Python interpreter by those of the program that it runs.
//
// It does not read threads itself: samples are passed in. Note that a copy of a stack
// ends somewhere: [ErrCopyEnds] is the only error that a larger copy can fix.
package unwind

import (
	"encoding/binary"
	"errors"
	"fmt"

	"strandline/host/code/elffile"
	"strandline/host/code/image"
	"strandline/host/proc/procfs"
)

// Registers are the machine's registers in DWARF's numbering; [elffile.PC] is the next
// instruction to run.
type Registers [elffile.Registers]uint64

// A Sample is the captured state of a thread.
type Sample struct {
	Registers Registers
	Known     uint64 // which registers are known: bit i is that of register i
	Stack     []byte // from the stack pointer up
	// Interrupted is memory starting at the address InterruptedBase: the stack that was
	// interrupted by a signal that is handled on another stack.
	InterruptedBase uint64
	Interrupted     []byte
}

// allKnown is [Sample.Known] with every register.
const allKnown = 1<<elffile.Registers - 1

// A Call is a function call that has not returned.
type Call struct {
	// PC is an address in the call, or the interrupted instruction itself.
	PC uint64
	// sp and cfa are the ends of its part of the stack.
	sp, cfa uint64
	// guessed states that no table describes the function, so that its caller was found
	// with the frame pointer.
	guessed bool
}

// Reasons why a stack is not complete.
var (
	ErrCopyEnds = errors.New("the copy of the stack ends") // a larger copy helps
	errLost     = errors.New("a register that the table needs is not known")
	errStuck    = errors.New("a frame does not lie above the one before")
	errDeep     = errors.New("too many calls")
)

// maxCalls bounds a stack; a deeper recursion is cut off.
const maxCalls = 4096

// A part is memory that was copied.
type part struct {
	base uint64
	data []byte
}

// A walker steps through one sample.
type walker struct {
	image *image.Image
	regs  Registers
	known uint64
	parts [2]part
	row   elffile.Row
}

// Calls appends the calls of a sample to into, innermost first. The error states why they
// are incomplete: those that were found are valid nevertheless.
func Calls(im *image.Image, s *Sample, into []Call) ([]Call, error) {
	w := &walker{image: im, regs: s.Registers, known: s.Known, parts: [2]part{{s.Registers[elffile.SP], s.Stack}, {s.InterruptedBase, s.Interrupted}}}
	interrupted := true // the address is that of an instruction, not the one after a call
	for range maxCalls {
		pc := w.regs[elffile.PC]
		if pc == 0 {
			return into, nil
		}
		if !interrupted {
			pc--
		}
		call := Call{PC: pc, sp: w.regs[elffile.SP]}
		more, err := w.step(&call)
		into = append(into, call)
		if err != nil || !more {
			return into, err
		}
		interrupted = w.row.Signal
	}
	return into, errDeep
}

// step moves to the caller; it returns false at the outermost function.
func (w *walker) step(c *Call) (more bool, err error) {
	place, ok := w.image.Locate(c.PC)
	if !ok || !place.Mapping.Exec {
		return false, fmt.Errorf("no code is at %#x", c.PC)
	}
	err = elffile.ErrNoFrame
	if place.Object != nil {
		err = place.Object.Step(place.Linked, &w.row)
	}
	if errors.Is(err, elffile.ErrNoFrame) {
		return true, w.stepByPointer(c, place)
	}
	if err != nil {
		return false, fmt.Errorf("%s: %w", place.Object.Name(), err)
	}
	return w.stepByTable(c)
}

func (w *walker) stepByTable(c *Call) (more bool, err error) {
	cfa, err := w.cfa()
	if err != nil {
		return false, err
	}
	ra := w.row.Regs[elffile.RA].Kind
	if c.cfa = cfa; ra == elffile.Undefined { // the outermost function need not have a frame
		return false, nil
	}
	leaf := linked && ra == elffile.SameValue // it has no frame
	if (cfa < c.sp || cfa == c.sp && !leaf) && !w.row.Signal {
		return false, errStuck
	}
	next, known := Registers{}, uint64(0)
	for i := range next {
		v, ok, err := w.caller(i, cfa)
		if err != nil {
			return false, err
		}
		if ok {
			next[i] = v
			known |= 1 << i
		}
	}
	returns(&next, &known)
	if known>>elffile.PC&1 == 0 {
		return false, errLost
	}
	w.regs, w.known = next, known
	return true, nil
}

func (w *walker) cfa() (uint64, error) {
	switch rule := w.row.CFA; rule.Kind {
	case elffile.InRegister:
		v, ok := w.reg(int(rule.Reg))
		if !ok {
			return 0, errLost
		}
		return v + uint64(int64(rule.Offset)), nil
	case elffile.ValExpression:
		return w.expression(rule)
	}
	return 0, errLost
}

// caller returns a register's value in the caller; false if it is lost.
func (w *walker) caller(i int, cfa uint64) (v uint64, ok bool, err error) {
	rule := w.row.Regs[i]
	at := cfa + uint64(int64(rule.Offset))
	switch rule.Kind {
	case elffile.SameValue:
		if i == elffile.SP {
			return cfa, true, nil
		}
		v, ok = w.reg(i)
		return v, ok && (preserved>>i&1 == 1 || w.row.Signal), nil
	case elffile.AtCFA:
		if at < w.regs[elffile.SP] { // the function has already popped it off the stack
			v, ok = w.reg(i)
			return v, ok, nil
		}
		v, err = w.load(at)
		return v, err == nil, err
	case elffile.ValueCFA:
		return at, true, nil
	case elffile.InRegister:
		v, ok = w.reg(int(rule.Reg))
		return v, ok, nil
	case elffile.AtExpression:
		if at, err = w.expression(rule, cfa); err == nil {
			v, err = w.load(at)
		}
		return v, err == nil, err
	case elffile.ValExpression:
		v, err = w.expression(rule, cfa)
		return v, err == nil, err
	}
	return 0, false, nil
}

func (w *walker) reg(i int) (uint64, bool) {
	if i >= len(w.regs) || w.known>>i&1 == 0 {
		return 0, false
	}
	return w.regs[i], true
}

// expression computes the value of a rule, with the address of the frame as its first
// operand if that is known.
func (w *walker) expression(rule elffile.Rule, first ...uint64) (uint64, error) {
	var lost error
	v, ok := elffile.Eval(w.row.Expression(rule), w.reg, func(addr uint64) (uint64, bool) {
		v, err := w.load(addr)
		lost = err
		return v, err == nil
	}, first...)
	switch {
	case ok:
		return v, nil
	case lost != nil:
		return 0, lost
	}
	return 0, errLost
}

// load reads a word of the stack.
func (w *walker) load(addr uint64) (uint64, error) {
	for _, p := range w.parts {
		if at := addr - p.base; at < uint64(len(p.data)) && uint64(len(p.data))-at >= 8 {
			return binary.LittleEndian.Uint64(p.data[at:]), nil
		}
	}
	return 0, ErrCopyEnds
}

// stepByPointer steps out of code without tables, if it has a frame pointer: code from
// a just-in-time compiler, Go, or assembly.
func (w *walker) stepByPointer(c *Call, at image.Place) error {
	c.guessed = true
	w.row.Signal = false
	bp, ok := w.reg(elffile.FP)
	if !ok || bp < c.sp || bp%8 != 0 {
		return fmt.Errorf("no table states how to leave the function at %#x in %s", c.PC, objectName(at))
	}
	caller, err := w.load(bp)
	if err != nil {
		return err
	}
	pc, err := w.load(bp + 8)
	if err != nil {
		return err
	}
	pc = unsigned(pc)
	if m, ok := w.image.Map.Find(pc); !ok || !m.Exec {
		return fmt.Errorf("no table states how to leave the function at %#x in %s", c.PC, objectName(at))
	}
	c.cfa = bp + 16
	w.regs[elffile.PC], w.regs[elffile.SP], w.regs[elffile.FP] = pc, c.cfa, caller
	w.known = w.known&preserved | 1<<elffile.PC | 1<<elffile.SP | 1<<elffile.FP
	return nil
}

func objectName(p image.Place) string {
	if p.Object != nil {
		return p.Object.Name()
	}
	return mappingName(p.Mapping)
}

func mappingName(m procfs.Mapping) string {
	if m.Path != "" {
		return m.Path
	}
	return "anonymous memory"
}
