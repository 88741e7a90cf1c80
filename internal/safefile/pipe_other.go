//go:build !linux

package safefile

import (
	"context"
	"os"
)

// openPipe opens a pipe for reading or for writing, and waits for its other end until the
// context is done. The system call waits longer.
func openPipe(ctx context.Context, flags int, open func(flags int) (*os.File, error)) (*os.File, error) {
	type opened struct {
		f   *os.File
		err error
	}
	done := make(chan opened, 1)
	go func() {
		f, err := open(flags)
		done <- opened{f, err}
	}()
	select {
	case o := <-done:
		return o.f, o.err
	case <-ctx.Done():
		go func() {
			if o := <-done; o.f != nil {
				o.f.Close()
			}
		}()
		return nil, interrupted(ctx)
	}
}
