package symbolize

import (
	"strandline/host/calls/event"
	"strandline/host/code/elffile"
)

// registersOf returns the registers of a sample in DWARF's numbering.
func registersOf(r *event.Regs) map[int]uint64 {
	return map[int]uint64{
		elffile.PC: r.IP, elffile.SP: r.SP, elffile.FP: r.BP, elffile.RA: r.BX,
		elffile.X19: r.R12, elffile.X19 + 1: r.R13, elffile.X19 + 2: r.R14, elffile.X19 + 3: r.R15,
	}
}
