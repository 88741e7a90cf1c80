package procfs

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Peek fills b with what is at an address in the memory of a process, in one call to the system:
// for a thread that waits meanwhile.
func (p Process) Peek(b []byte, addr uint64) error {
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	n, err := unix.ProcessVMReadv(int(p), local, []unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}, 0)
	if err == nil && n < len(b) {
		err = syscall.EFAULT
	}
	return err
}
