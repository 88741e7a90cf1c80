package ptrace

import (
	"encoding/binary"

	"strandline/host/proc/procfs"
)

// memory is the memory of a stopped thread's process.
type memory int

// Read fills b with what is at an address.
func (m memory) Read(b []byte, addr uint64) error { return procfs.Process(m).Peek(b, addr) }

func (m memory) read(b []byte, addr uint64) bool { return m.Read(b, addr) == nil }

// word returns a word of memory, or 0 if there is none.
func (m memory) word(addr uint64) uint64 {
	var b [8]byte
	if !m.read(b[:], addr) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}
