package ptrace

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// memory is the memory of a stopped thread's process.
type memory int

// Read fills b with what is at an address.
func (m memory) Read(b []byte, addr uint64) error {
	if !m.read(b, addr) {
		return unix.EFAULT
	}
	return nil
}

func (m memory) read(b []byte, addr uint64) bool {
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	remote := []unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}
	n, err := unix.ProcessVMReadv(int(m), local, remote, 0)
	return err == nil && n == len(b)
}

// word returns a word of memory, or 0 if there is none.
func (m memory) word(addr uint64) uint64 {
	var b [8]byte
	if !m.read(b[:], addr) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}
