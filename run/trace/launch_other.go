//go:build !linux

package trace

import (
	"errors"
	"fmt"
	"os"
	"time"
)

type launched struct {
	pid   int
	begin func()
	drop  func()
	ended <-chan struct{}
	state func() *os.ProcessState
}

// launch fails with [errors.ErrUnsupported].
func launch([]string, *os.File) (*launched, error) {
	return nil, fmt.Errorf("watching a command needs Linux: %w", errors.ErrUnsupported)
}

// spent is not known.
func spent() time.Duration { return 0 }
