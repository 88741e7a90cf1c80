package ptrace

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// calls are those that change mappings, and the one by which a program would trace
// another; the program is not stopped at any other call.
var calls = []uint32{
	unix.SYS_MMAP, unix.SYS_MUNMAP, unix.SYS_MREMAP, unix.SYS_BRK, unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT,
	unix.SYS_MADVISE, unix.SYS_SHMAT, unix.SYS_SHMDT, unix.SYS_MEMFD_CREATE, unix.SYS_FTRUNCATE, unix.SYS_PTRACE,
}

// Filtered turns this process into the command, once what it reads from the file
// descriptor states that it is traced. A seccomp filter then hands the calls that change
// mappings to the tracer. It returns only if it fails.
func Filtered(ready uintptr, command []string) error {
	runtime.LockOSThread() // the filter applies to one thread, and that one becomes the command
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	from := os.NewFile(ready, "ready")
	if n, err := from.Read(make([]byte, 1)); n != 1 {
		return fmt.Errorf("no tracer: %w", err)
	}
	from.Close()
	if err := install(); err != nil {
		return fmt.Errorf("seccomp: %w", err)
	}
	return unix.Exec(path, command, os.Environ())
}

func install() error {
	const (
		loadWord = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
		equal    = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
		answer   = unix.BPF_RET | unix.BPF_K
		archAt   = 4 // in struct seccomp_data
		allow    = 0x7fff0000
		trace    = 0x7ff00000
	)
	n := uint8(len(calls))
	program := []unix.SockFilter{
		{Code: loadWord, K: archAt},
		{Code: equal, Jf: n + 1, K: unix.AUDIT_ARCH_X86_64},
		{Code: loadWord},
	}
	for i, c := range calls {
		program = append(program, unix.SockFilter{Code: equal, Jt: n - uint8(i), K: c})
	}
	program = append(program, unix.SockFilter{Code: answer, K: allow}, unix.SockFilter{Code: answer, K: trace})
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&p)), 0, 0)
}
