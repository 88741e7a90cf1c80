//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

const tracefs = "/sys/kernel/tracing"

// withTracefs runs f where the tracepoints' numbers can be read. If tracefs is not
// mounted, as in containers, it is mounted for f alone: in the mount namespace of one
// thread, which ends with that thread. Nothing else on the machine changes.
func withTracefs(f func() error) error {
	for _, at := range []string{tracefs, "/sys/kernel/debug/tracing"} {
		if _, err := os.Stat(at + "/events/syscalls"); err == nil {
			return f()
		}
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		if err := mountAlone(); err != nil {
			done <- unsupported{fmt.Errorf("tracefs is not mounted, and mounting it is refused (%w); as root of the machine: mount -t tracefs tracefs %s", err, tracefs)}
			return
		}
		done <- f()
	}()
	return <-done
}

func mountAlone() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("tracefs", tracefs, "tracefs", unix.MS_RDONLY, "")
}
