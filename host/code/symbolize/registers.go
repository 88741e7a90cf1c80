//go:build !arm64

package symbolize

import (
	"strandline/host/calls/event"
	"strandline/host/code/elffile"
)

// registersOf returns the registers of a sample in DWARF's numbering.
func registersOf(r *event.Regs) map[int]uint64 {
	return map[int]uint64{
		elffile.PC: r.IP, elffile.SP: r.SP, elffile.FP: r.BP, elffile.RBX: r.BX,
		elffile.R12: r.R12, elffile.R12 + 1: r.R13, elffile.R12 + 2: r.R14, elffile.R12 + 3: r.R15,
	}
}
