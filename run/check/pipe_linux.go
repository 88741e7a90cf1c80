package check

import (
	"os"

	"golang.org/x/sys/unix"
)

// shrink makes a pipe hold one page, so that a command cannot run far ahead of the reader
// of its output: its memory is measured when a line is read. The kernel may refuse.
func shrink(f *os.File) {
	if c, err := f.SyscallConn(); err == nil {
		c.Control(func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, os.Getpagesize()) })
	}
}
