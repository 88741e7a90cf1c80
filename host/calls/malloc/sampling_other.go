//go:build !linux || !(amd64 || arm64)

package malloc

import (
	"errors"
	"time"
)

// A Sampling is that of one command; see the one for Linux.
type Sampling struct{}

// New fails: there is no library for this system.
func New() (*Sampling, error) { return nil, errors.ErrUnsupported }

// Environ is env.
func (*Sampling) Environ(env []string) []string { return env }

// Sample does nothing.
func (*Sampling) Sample(bool) {}

// Kept knows nothing.
func (*Sampling) Kept(int, time.Time) ([]Kept, []Span) { return nil, nil }

// Close does nothing.
func (*Sampling) Close() {}
