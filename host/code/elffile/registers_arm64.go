package elffile

// The registers of arm64 in DWARF's numbering. FP, SP and PC have the same names on all
// architectures. RA is where the return address is: the caller's PC, which has no DWARF
// number.
const (
	X19 = 19

	FP = 29
	RA = 30
	SP = 31
	PC = 32

	Registers = 33
)
