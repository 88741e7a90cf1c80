package procfs

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// HasExited reports whether an error of reading about a process states that the process has
// ended. Other errors do not: a program that has too many files open cannot read about
// processes that run.
func HasExited(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, os.ErrProcessDone)
}

// Lacks reports whether an error states that this program, or this machine, has no file
// descriptors or memory left to read with.
func Lacks(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// Ended reports whether the process that began at a time, in clock ticks since boot, has
// ended: there is no process of its number, or it is another one.
func (p Process) Ended(started uint64) bool {
	now, err := p.Started()
	return HasExited(err) || err == nil && now != started
}
