package safefile

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// pipePoll is how often the context of a wait for a pipe's other end is looked at.
const pipePoll = 50 * time.Millisecond

// openPipe opens a pipe for reading or for writing, and waits for its other end until the
// context is done.
func openPipe(ctx context.Context, flags int, open func(flags int) (*os.File, error)) (*os.File, error) {
	for {
		f, err := open(flags | unix.O_NONBLOCK)
		switch {
		case errors.Is(err, unix.ENXIO): // nobody reads it
		case err != nil || flags != os.O_RDONLY || written(f):
			return f, err
		default:
			return waitForWriter(ctx, f)
		}
		select {
		case <-ctx.Done():
			return nil, interrupted(ctx)
		case <-time.After(pipePoll):
		}
	}
}

// waitForWriter closes a pipe if nobody writes to it until the context is done.
func waitForWriter(ctx context.Context, f *os.File) (*os.File, error) {
	for ctx.Err() == nil {
		var ready int
		err := control(f, func(fd int) (err error) {
			ready, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(pipePoll.Milliseconds()))
			return err
		})
		switch {
		case err != nil && err != unix.EINTR:
			return nil, errors.Join(err, f.Close())
		case err == nil && ready > 0: // there is something to read, or the writer has left
			return f, nil
		}
	}
	f.Close()
	return nil, interrupted(ctx)
}

// written reports whether a pipe is one without a name, such as standard input: who
// writes to it has it already.
func written(f *os.File) bool {
	const pipeFS = 0x50495045 // include/uapi/linux/magic.h
	var st unix.Statfs_t
	err := control(f, func(fd int) error { return unix.Fstatfs(fd, &st) })
	return err == nil && st.Type == pipeFS
}

// control calls a function with the descriptor of a file, which stays as it is.
func control(f *os.File, call func(fd int) error) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = call(int(fd)) }); err != nil {
		return err
	}
	return failed
}
