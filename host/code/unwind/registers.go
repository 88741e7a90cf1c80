//go:build !arm64

package unwind

import "strandline/host/code/elffile"

// linked reports whether a call leaves its return address in a register.
const linked = false

// preserved are the registers that a function preserves.
const preserved = 1<<elffile.RBX | 1<<elffile.FP | 1<<elffile.R12 | 1<<(elffile.R12+1) | 1<<(elffile.R12+2) | 1<<(elffile.R12+3)

// returns completes the registers of a caller.
func returns(*Registers, *uint64) {}

// unsigned returns a return address without a signature.
func unsigned(pc uint64) uint64 { return pc }
