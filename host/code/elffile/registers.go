//go:build !arm64

package elffile

// The registers of x86-64 in DWARF's numbering. FP, SP and PC have the same names on
// all architectures. RA is where the return address is: the caller's PC.
const (
	RBX = 3
	R12 = 12

	FP = 6
	SP = 7
	PC = 16
	RA = PC

	Registers = 17
)
