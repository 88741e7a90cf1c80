//go:build linux && (amd64 || arm64)

package nvml

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// start runs the reader from memory: nothing is written to a disk.
func start(env []string, stuck *atomic.Int32) (*reader, error) {
	const name = "strandline-nvml"
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // before Linux 6.3
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	}
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), name)
	defer file.Close()
	if _, err := file.Write(program); err != nil {
		return nil, err
	}
	return run(fmt.Sprintf("/proc/self/fd/%d", fd), env, stuck)
}

// ownProcessGroup keeps Ctrl-C from the reader, which ends with this process.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
