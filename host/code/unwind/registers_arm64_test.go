package unwind

import (
	"encoding/binary"
	"testing"

	"strandline/host/code/elffile"
)

// A call leaves its return address in the link register: a leaf has no frame, a
// function that calls saves the register, signed or not, and below it the register
// states nothing.
func TestLinkRegister(t *testing.T) {
	const sp, signature = 0x7000, 0x3a << 48
	stack := make([]byte, 64)
	binary.LittleEndian.PutUint64(stack[16:], 0x7030)              // x29
	binary.LittleEndian.PutUint64(stack[24:], 0x40_0200|signature) // x30
	w := &walker{parts: [2]part{{sp, stack}}}
	w.regs[elffile.PC], w.regs[elffile.SP], w.regs[elffile.RA], w.regs[elffile.X19] = 0x40_0000, sp, 0x40_0100|signature, 5
	w.known = 1<<elffile.PC | 1<<elffile.SP | 1<<elffile.RA | 1<<elffile.X19

	leaf := elffile.Row{CFA: elffile.Rule{Kind: elffile.InRegister, Reg: elffile.SP}}
	caller := elffile.Row{CFA: elffile.Rule{Kind: elffile.InRegister, Reg: elffile.SP, Offset: 48}}
	caller.Regs[elffile.FP] = elffile.Rule{Kind: elffile.AtCFA, Offset: -32}
	caller.Regs[elffile.RA] = elffile.Rule{Kind: elffile.AtCFA, Offset: -24}
	for i, step := range []struct {
		row    elffile.Row
		pc, sp uint64
	}{{leaf, 0x40_0100, sp}, {caller, 0x40_0200, sp + 48}} {
		w.row = step.row
		c := Call{sp: w.regs[elffile.SP]}
		if more, err := w.stepByTable(&c); !more || err != nil {
			t.Fatalf("step %d: %v, %v", i, more, err)
		}
		if w.regs[elffile.PC] != step.pc || w.regs[elffile.SP] != step.sp {
			t.Errorf("step %d leads to %#x, with the stack at %#x", i, w.regs[elffile.PC], w.regs[elffile.SP])
		}
	}
	if v, ok := w.reg(elffile.FP); !ok || v != 0x7030 {
		t.Errorf("the frame pointer is %#x, %v", v, ok)
	}
	if v, ok := w.reg(elffile.X19); !ok || v != 5 {
		t.Errorf("x19 is %#x, %v", v, ok)
	}
	w.row = leaf // what was called is not a leaf: the register is another's by now
	if more, err := w.stepByTable(&Call{sp: w.regs[elffile.SP]}); more || err == nil {
		t.Errorf("a second leaf leads to %#x", w.regs[elffile.PC])
	}
	w.row = leaf // _start and the start of a thread have no frame and no caller
	w.row.Regs[elffile.RA] = elffile.Rule{Kind: elffile.Undefined}
	if more, err := w.stepByTable(&Call{sp: w.regs[elffile.SP]}); more || err != nil {
		t.Errorf("the outermost function: %v, %v", more, err)
	}
}
