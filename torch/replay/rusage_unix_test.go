//go:build unix

package replay

import (
	"syscall"
	"testing"
	"time"
)

// processorTime returns what this process took of processors, and the kernel for it.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
