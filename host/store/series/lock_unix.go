//go:build unix

package series

import (
	"os"

	"golang.org/x/sys/unix"
)

// lock keeps other writers out until the file is closed.
func lock(f *os.File) error {
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return errBusy
	}
	return nil
}
