package unwind

import "strandline/host/code/elffile"

// linked reports whether a call leaves its return address in a register.
const linked = true

// preserved are the registers that a function preserves: x19 to x29. The link register is
// kept as long as nothing was called, and forgotten by returns.
const preserved = (1<<11-1)<<elffile.X19 | 1<<elffile.RA

// returns completes the registers of a caller: it resumes where the link register points,
// which its call had overwritten.
func returns(next *Registers, known *uint64) {
	next[elffile.PC] = unsigned(next[elffile.RA])
	*known = *known&^(1<<elffile.RA|1<<elffile.PC) | *known>>elffile.RA&1<<elffile.PC
}

// unsigned returns a return address without the signature that pointer authentication
// puts into the bits above those of addresses.
func unsigned(pc uint64) uint64 { return pc & (1<<48 - 1) }
